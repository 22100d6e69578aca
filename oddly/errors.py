"""The exception for invalid input, and helpers for messages that all rooms need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MOST_LISTED = 30  # names; longer lists are not helpful


class InputError(ValueError):
    """Invalid input. The message is one line; the command line prints it without a traceback."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An `InputError` for an unknown name, with the most similar known one."""
    known = sorted(known)
    plain = {each.casefold(): each for each in known}  # 'odd' is like 'ODD'
    near = get_close_matches(name.casefold(), plain, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean '{plain[near[0]]}'?"
    elif len(known) > MOST_LISTED:
        hint = f"none of the {len(known):,} known names is similar"
    else:
        # A name with a comma would look like two names.
        told = [f"'{each}'" if "," in each else each for each in known]
        hint = f"known: {', '.join(told) or 'none'}"
    return InputError(f"unknown {kind} '{name}'; {hint}")


def first_line(error: Exception) -> str:
    """The first line of an error's message; its type if there is no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def shown(name: str) -> str:
    """A name with control characters and line breaks escaped, safe to print."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in name)


def count(number: int, noun: str) -> str:
    """`1 image`, `1,200 images`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def first_few(names: Sequence[str], limit: int = 10) -> str:
    """`a, b, c`, cut after `limit` names."""
    listed = ", ".join(shown(name) for name in names[:limit])
    return listed + (", …" if len(names) > limit else "")
