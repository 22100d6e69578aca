"""Figures as SVG files: lines over an axis, and histograms; plain text, no package needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from oddly.records import write_atomic

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 50, 50
COLOURS = ("#1f6feb", "#d1480f", "#2c8a3f", "#8250df", "#a8810a", "#57606a", "#c2255c", "#0b7285")
Points = Sequence[tuple[float, float]]


def draw_lines(
    path: Path,
    title: str,
    series: Mapping[str, Points],
    axes: tuple[str, str],
    marks: Mapping[str, float] | None = None,
) -> Path:
    """One line per series over common axes; `marks` are vertical lines with a name."""
    every = [point for points in series.values() for point in points]
    x_range = _spread([x for x, _ in every] + list((marks or {}).values()))
    y_range = _spread([y for _, y in every])
    body = [*_frame(title, axes, x_range, y_range)]
    for k, (name, points) in enumerate(series.items()):
        colour = COLOURS[k % len(COLOURS)]
        places = " ".join(f"{_x(x, x_range):.1f},{_y(y, y_range):.1f}" for x, y in points)
        body.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [
            f'<circle cx="{_x(x, x_range):.1f}" cy="{_y(y, y_range):.1f}" r="3" fill="{colour}"/>'
            for x, y in points
            if len(points) <= 12
        ]
        body.append(_text(LEFT + 12, TOP + 16 + 16 * k, name, colour))
    for k, (name, place) in enumerate((marks or {}).items()):
        x = _x(place, x_range)
        body.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#24292f"'
            ' stroke-dasharray="4 3"/>'
        )
        body.append(_text(x + 3, TOP + 10 + 14 * k, name, "#24292f"))
    return _save(path, body)


def histogram_points(edges: Sequence[float], counts: Sequence[int]) -> Points:
    """Counts as a density: shares per unit, at the middle of each bin; no empty end."""
    total = max(1, sum(counts))
    filled = max((k + 1 for k, count in enumerate(counts) if count), default=0)
    bins = list(zip(edges[:-1], edges[1:], counts, strict=True))[: filled + 1]
    return [((low + high) / 2, count / total / (high - low)) for low, high, count in bins]


def _frame(
    title: str, axes: tuple[str, str], x_range: tuple[float, float], y_range: tuple[float, float]
) -> list[str]:
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 24, title, "#24292f", 15),
        _text(WIDTH / 2, HEIGHT - 10, axes[0], "#57606a", anchor="middle"),
        _text(8, TOP - 10, axes[1], "#57606a"),
        f'<path d="M{LEFT} {TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}" fill="none"'
        ' stroke="#57606a"/>',
    ]
    for x in ticks(x_range):
        place = _x(x, x_range)
        parts.append(_text(place, HEIGHT - BOTTOM + 18, f"{x:g}", "#57606a", anchor="middle"))
    for y in ticks(y_range):
        parts.append(_text(LEFT - 6, _y(y, y_range) + 4, f"{y:g}", "#57606a", anchor="end"))
    return parts


def round_step(length: float) -> float:
    """1, 2 or 5 times a power of ten, such that five to ten steps make the length."""
    power = 10.0 ** math.floor(math.log10(length / 5))
    return power * max(m for m in (1, 2, 5) if m * power <= length / 5 * (1 + 1e-9))


def ticks(bounds: tuple[float, float]) -> list[float]:
    """Round numbers from one end to the other."""
    step = round_step(bounds[1] - bounds[0])
    first, last = (round(bound / step) for bound in bounds)
    return [float(f"{k * step:.10g}") for k in range(first, last + 1)]


def _text(x: float, y: float, text: str, colour: str, size: int = 12, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}"'
        f' font-family="sans-serif" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """From the least to the greatest, each moved out to a round number; never nothing."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    step = round_step(high - low)
    return step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)


def _x(value: float, bounds: tuple[float, float]) -> float:
    return LEFT + (value - bounds[0]) / (bounds[1] - bounds[0]) * (WIDTH - LEFT - RIGHT)


def _y(value: float, bounds: tuple[float, float]) -> float:
    share = (value - bounds[0]) / (bounds[1] - bounds[0])
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _save(path: Path, body: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
    write_atomic(path, "\n".join([start, *body, "</svg>\n"]))
    return path
