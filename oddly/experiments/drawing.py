"""Line charts and histograms as SVG files, in plain text and without a plotting package."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from oddly.plane import Plane, find_steps
from oddly.records import write_atomic

WIDTH, HEIGHT = 640, 400
TICKS = 10  # on an axis, at the most
COLOURS = ("#1f6feb", "#d1480f", "#2c8a3f", "#8250df", "#a8810a", "#57606a", "#c2255c", "#0b7285")
Points = Sequence[tuple[float, float]]


def draw_lines(
    path: Path,
    title: str,
    series: Mapping[str, Points],
    axes: tuple[str, str],
    marks: Mapping[str, float] | None = None,
) -> Path:
    """One line per series, from left to right; `marks` are vertical lines with a name."""
    every = [point for points in series.values() for point in points]
    x_ticks = _ticks([x for x, _ in every] + list((marks or {}).values()))
    y_ticks = _ticks([y for _, y in every])
    spans = (x_ticks[0], x_ticks[-1]), (y_ticks[0], y_ticks[-1])
    plane = Plane(WIDTH, HEIGHT, *spans, left=70, right=20, top=50, bottom=50)
    body = [*_frame(title, axes, plane, x_ticks, y_ticks)]
    legend, anchor = float(plane.left + 12), "start"
    if _is_lower_on_the_right(every, spans[0]):
        legend, anchor = float(WIDTH - plane.right), "end"
    for k, (name, points) in enumerate(series.items()):
        colour = COLOURS[k % len(COLOURS)]
        places = " ".join(f"{plane.x(x)},{plane.y(y)}" for x, y in sorted(points))
        body.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [
            f'<circle cx="{plane.x(x)}" cy="{plane.y(y)}" r="3" fill="{colour}"/>'
            for x, y in points
            if len(points) <= 12
        ]
        body.append(_text(legend, plane.top + 16 + 16 * k, name, colour, anchor=anchor))
    for k, (name, place) in enumerate((marks or {}).items()):
        x = plane.x(place)
        body.append(
            f'<line x1="{x}" x2="{x}" y1="{plane.top}" y2="{plane.floor}" stroke="#24292f"'
            ' stroke-dasharray="4 3"/>'
        )
        body.append(_text(x + 3, plane.top + 10 + 14 * k, name, "#24292f"))
    return _save(path, body)


def _is_lower_on_the_right(points: Points, span: tuple[float, float]) -> bool:
    """Whether names in the upper right corner hide less than in the upper left one."""
    third = (span[1] - span[0]) / 3
    left = max((y for x, y in points if x < span[0] + third), default=-math.inf)
    right = max((y for x, y in points if x > span[1] - third), default=-math.inf)
    return right < left


def histogram_points(edges: Sequence[float], counts: Sequence[int]) -> Points:
    """Counts as a density: shares per unit, at the middle of each bin; no empty end."""
    total = max(1, sum(counts))
    filled = max((k + 1 for k, count in enumerate(counts) if count), default=0)
    bins = list(zip(edges[:-1], edges[1:], counts, strict=True))[: filled + 1]
    return [((low + high) / 2, count / total / (high - low)) for low, high, count in bins]


def _ticks(values: Sequence[float]) -> list[float]:
    return find_steps(min(values, default=0.0), max(values, default=1.0), TICKS, outside=True)


def _frame(
    title: str,
    axes: tuple[str, str],
    plane: Plane,
    x_ticks: Sequence[float],
    y_ticks: Sequence[float],
) -> Iterator[str]:
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    yield _text(plane.left, 24, title, "#24292f", 15)
    yield _text(WIDTH / 2, HEIGHT - 10, axes[0], "#57606a", anchor="middle")
    yield _text(8, plane.top - 10, axes[1], "#57606a")
    line = f"M{plane.left} {plane.top} V{plane.floor} H{WIDTH - plane.right}"
    yield f'<path d="{line}" fill="none" stroke="#57606a"/>'
    for x in x_ticks:
        yield _text(plane.x(x), plane.floor + 18, f"{x:g}", "#57606a", anchor="middle")
    for y in y_ticks:
        yield _text(plane.left - 6, plane.y(y) + 4, f"{y:g}", "#57606a", anchor="end")


def _text(x: float, y: float, text: str, colour: str, size: int = 12, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}"'
        f' font-family="sans-serif" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _save(path: Path, body: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
    write_atomic(path, "\n".join([start, *body, "</svg>\n"]))
    return path
