"""The one exception that means "what you gave us cannot work", and words that every room needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MOST_LISTED = 30  # names; more say nothing


class InputError(ValueError):
    """Invalid input. The message is one line; the command line prints it without a traceback."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An `InputError` for a name nobody knows, with the nearest one that somebody does."""
    known = sorted(known)
    plain = {each.casefold(): each for each in known}  # 'odd' is like 'ODD'
    near = get_close_matches(name.casefold(), plain, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean '{plain[near[0]]}'?"
    elif len(known) > MOST_LISTED:
        hint = f"none of the {len(known):,} known names is similar"
    else:
        # A name that holds a comma would look like two.
        told = [f"'{each}'" if "," in each else each for each in known]
        hint = f"known: {', '.join(told) or 'none'}"
    return InputError(f"unknown {kind} '{name}'; {hint}")


def first_line(error: Exception) -> str:
    """What somebody else's error says, on one line; its kind where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def shown(name: str) -> str:
    """A name that stays on its line and tells the terminal nothing, whatever its maker wrote."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in name)


def count(number: int, noun: str) -> str:
    """`1 image`, `1,200 images`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def first_few(names: Sequence[str], limit: int = 10) -> str:
    """`a, b, c`, cut after `limit` names."""
    listed = ", ".join(shown(name) for name in names[:limit])
    return listed + (", …" if len(names) > limit else "")
