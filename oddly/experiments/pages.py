"""The tables as Markdown, and pages whose tables are rewritten from stored results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from oddly.errors import InputError
from oddly.experiments.base import Experiment, Filled, fill
from oddly.experiments.results import Store
from oddly.records import write_atomic

SEEDS = 3
BLOCK = re.compile(r"<!-- (\w+)( fast)? -->\n.*?<!-- end -->", re.DOTALL)


def arrange(filled: Sequence[Filled]) -> tuple[list[str], list[str]]:
    """The rows as they come, the columns by name and then by the number in it."""
    rows = list(dict.fromkeys(cell.row for cell in filled))
    columns = dict.fromkeys(cell.column for cell in filled)
    return rows, sorted(columns, key=_natural_order)


def _natural_order(column: str) -> tuple[str, float]:
    words = column.replace("%", "").split()
    numbers = [float(word) for word in words if word.replace(".", "").isdigit()]
    return words[0] if words else "", numbers[-1] if numbers else 0.0


def ours_text(cell: Filled, digits: int) -> str:
    """`72.31±0.20 n=3`, or that there is nothing."""
    if cell.ours is None:
        return "missing"
    spread = "" if cell.spread is None else f"±{cell.spread:.{digits}f}"
    return f"{cell.ours:.{digits}f}{spread} n={len(cell.values)}"


def markdown_table(experiment: Experiment, filled: Sequence[Filled]) -> str:
    """Ours / paper in every cell, where the paper prints numbers."""
    rows, columns = arrange(filled)
    by_place = {(cell.row, cell.column): cell for cell in filled}
    printed = any(cell.paper for cell in filled)
    if not printed and not any(cell.values for cell in filled):
        return f"Nothing is stored yet: all {len(filled)} numbers are missing."
    lines = ["| " + " | ".join(["ours / paper" if printed else "ours", *columns]) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for row in rows:
        texts = []
        for column in columns:
            cell = by_place.get((row, column))
            ours = ours_text(cell, experiment.digits) if cell else ""
            paper = f" / {cell.paper or '–'}" if cell and printed else ""
            texts.append(ours + paper)
        lines.append("| " + " | ".join([row, *texts]) + " |")
    return "\n".join(lines)


def refresh(page: Path, experiments: Mapping[str, Experiment], store: Store) -> None:
    """Write anew every block `<!-- NAME -->` … `<!-- end -->` of a page."""
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{page}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{page} is not UTF-8 text") from None

    def table(match: re.Match[str]) -> str:
        name, fast = match[1], match[2]
        if name not in experiments:
            raise InputError(f"{page}: unknown table or figure '{name}'")
        sizes, wanted = experiments[name].sizes, "fast" if fast else "full"
        if wanted not in sizes:
            raise InputError(f"{page}: {name} has no size '{wanted}'")
        filled = fill(experiments[name].cells(sizes[wanted], SEEDS), store)
        body = markdown_table(experiments[name], filled)
        return f"<!-- {name}{fast or ''} -->\n{body}\n<!-- end -->"

    write_atomic(page, BLOCK.sub(table, text))
