"""What the scripts share: rows made one after another, each shown beside the stored one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from platform import system
from typing import Any

from oddly.errors import InputError
from oddly.records import environment, write_json
from oddly.records.files import read_json

RESULTS = Path(__file__).parents[1] / "oddly/results"
MACHINE = ("hardware", "torch", "python")  # of the stored file: what is made has its own

Row = dict[str, Any]
Cells = Iterable[tuple[Row, Callable[[], Row]]]
"""What tells a row from others, in the order of the file, and what makes the rest of it."""


@dataclass(frozen=True)
class Table:
    """Rows of a file in oddly/results."""

    file: str
    rows: str
    """The key that they lie under."""


def options(about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="rows whose name has these words (see --list)")
    parser.add_argument("--list", action="store_true", help="name the rows and make none")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/evidence"),
        help="folder for the JSON, and for what is looked at once only [runs/evidence]",
    )
    return parser


def make(table: Table, cells: Cells, args: argparse.Namespace) -> None:
    """Make the rows that are asked for and not there yet; every one is on disk before the next."""
    stored = json.loads((RESULTS / table.file).read_text(encoding="utf-8"))
    chosen = [(name, work) for name, work in cells if args.only in title(name)]
    if not chosen:
        raise InputError(f"no row is named like '{args.only}'; --list names them all")
    if args.list:
        print("\n".join(title(name) for name, _ in chosen))
        return
    out = args.out / table.file
    out.parent.mkdir(parents=True, exist_ok=True)
    document = read_json(out) if out.exists() else _head(stored)
    rows: list[Row] = document.setdefault(table.rows, [])
    for name, work in chosen:
        if _find(rows, name) is not None:
            print(f"{title(name)}: made before")
            continue
        rows.append(name | work())
        write_json(out, {**document, "environment": {**environment(), "platform": system()}})
        print(f"{title(name)}: {compare(_find(stored[table.rows], name), rows[-1])}", flush=True)
    print(f"written: {out}")


def main(run: Callable[[], None]) -> None:
    """A user's mistake is one line."""
    try:
        run()
    except InputError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; call the same again to go on")


def title(name: Row) -> str:
    return ", ".join(str(value) for value in name.values())


def compare(stored: Row | None, made: Row) -> str:
    """Whether the figures are the stored ones, to the digits that are stored."""
    if stored is None:
        return f"not stored; {json.dumps(made)}"
    now = dict(_leaves(made))
    other = [
        f"{name} {value} stored, {now.get(name, 'nothing')} now"
        for name, value in _leaves(stored)
        if not _alike(value, now.get(name))
    ]
    return "; ".join(other) or "as stored"


def _alike(stored: Any, made: Any) -> bool:
    if isinstance(stored, bool) or not isinstance(stored, float) or made is None:
        return bool(stored == made)
    digits = len(repr(stored).partition(".")[2])
    return bool(abs(stored - float(made)) <= 0.5 * 10**-digits + 1e-9)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping | list):
        inner = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in inner:
            yield from _leaves(item, f"{name}.{key}".strip("."))
    else:
        yield name, value


def _find(rows: list[Row], name: Row) -> Row | None:
    return next((row for row in rows if name.items() <= row.items()), None)


def _head(stored: Row) -> Row:
    """What the file says of itself, without figures and without the machine they came from."""
    is_words = {key: not isinstance(value, list) for key, value in stored.items()}
    return {key: stored[key] for key in stored if is_words[key] and key not in MACHINE}
