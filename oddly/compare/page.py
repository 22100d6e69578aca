"""compare.html: the table and a small picture, in one file that opens from disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from oddly.compare.run import Comparison
from oddly.compare.table import lines_of
from oddly.errors import count
from oddly.plane import Plane
from oddly.records import write_atomic

WIDTH, LEFT, RIGHT, ROW = 760, 190, 90, 24
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c1c1c; background: #fff }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #8884;
  white-space: nowrap }
th:first-child, td:first-child { text-align: left }
div { overflow-x: auto }
text { font: 13px system-ui, sans-serif; fill: currentColor }
@media (prefers-color-scheme: dark) { body { color: #e8e8e8; background: #161616 } }
"""


def write_page(comparison: Comparison, out: Path | None = None) -> Path:
    """Write the page; beside compare.json unless told otherwise."""
    path = out or comparison.path / "compare.html"
    write_atomic(path, render(comparison.result))
    return path


def render(result: Mapping[str, Any]) -> str:
    plan, rows = result["plan"], result["rows"]
    one = plan["epochs"] == 1
    budget = "epoch requested" if one else "epochs requested"
    if plan["equal_cost"]:
        budget = "pass over the data each" if one else "passes over the data each"
    seeds = count(plan["seeds"], "seed")
    what = f"{count(len(rows), 'method')}, {seeds}, {plan['epochs']} {budget}"
    if missing := result.get("missing"):
        what += f" ({count(missing, 'run')} still missing)"
    known = {**result.get("training", {}), **plan["options"]}
    shown = ["model", *(name for name in plan["options"] if name not in ("model", "epochs"))]
    told = ", ".join(f"{name} {known[name]}" for name in shown if name in known)
    columns, *lines = lines_of(rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Methods on {escape(str(plan['data']))}</title><style>{STYLE}</style>"
        f"<h1>Methods on {escape(str(plan['data']))}</h1>"
        f"<p>{escape(what)}{'; ' + escape(told) if told else ''}. Mean ± standard deviation.</p>"
        + tell(result.get("caveat"))
        + tell(result.get("left_out"))
        + show_accuracy(rows)
        + "<h2>All figures</h2>"
        f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        + list_notes("Unreliable verdicts", rows, "doubt")
        + list_notes("Failed", rows, "failure")
        + "</html>\n"
    )


def tell(remark: str | None) -> str:
    """A remark as a sentence of its own; empty if there is none."""
    return f"<p>{escape(remark[0].upper() + remark[1:])}.</p>" if remark else ""


def show_accuracy(rows: Sequence[Mapping[str, Any]]) -> str:
    """The heading and the chart; empty if no accuracy is known."""
    picture = draw(rows)
    return f"<h2>Test accuracy</h2><div>{picture}</div>" if picture else ""


def list_notes(heading: str, rows: Sequence[Mapping[str, Any]], key: str) -> str:
    """A heading and the entries under this key by method; empty if there are none."""
    noted = [row for row in rows if row.get(key)]  # comparisons older than the key have none
    items = "".join(f"<li>{escape(row['method'])}: {escape(row[key])}</li>" for row in noted)
    return f"<h2>{heading}</h2><ul>{items}</ul>" if items else ""


def draw(rows: Sequence[Mapping[str, Any]]) -> str:
    """Test accuracy of each method, best first: a dot, and a line of one deviation either side."""
    known = [row for row in rows if row["test_accuracy"]["mean"] is not None]
    if not known:
        return ""
    known.sort(key=lambda row: -row["test_accuracy"]["mean"])
    spans = [(r["test_accuracy"]["mean"], r["test_accuracy"]["std"] or 0.0) for r in known]
    span = min(m - s for m, s in spans), max(m + s for m, s in spans)
    plane = Plane(WIDTH, ROW * (len(known) + 1), span, (0, 1), left=LEFT, right=RIGHT)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {plane.height}" width="{WIDTH}" role="img"'
        ' aria-label="Test accuracy of each method with its standard deviation">'
    ]
    for i, (row, (centre, spread)) in enumerate(zip(known, spans, strict=True)):
        y = ROW * (i + 0.75)
        a, x, b = (plane.x(v) for v in (centre - spread, centre, centre + spread))
        parts.append(
            f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(row["method"])}</text>'
            f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}" stroke="#888" stroke-width="2"/>'
            f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="#1f6feb"/>'
            f'<text x="{b + 10:.1f}" y="{y + 4}">{centre:.2f} %</text>'
        )
    return "".join(parts) + "</svg>"
