"""Charts as coordinates, which the template draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oddly.errors import count as tell_count
from oddly.plane import Plane, find_steps
from oddly.report.data import Curve
from oddly.report.histogram import ScoreHistogram
from oddly.report.words import shorten


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Bar:
    """A bin of the histogram, for tooltips."""

    x: float
    width: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A chart, in pixels."""

    key: str
    """Unique on the page; used in the ids of title and description."""
    title: str
    description: str
    plane: Plane
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    x_name: str
    y_name: str
    line: str
    """The `d` of a path."""
    line_kind: str
    bars: Sequence[Bar] = ()
    filled: str = ""
    """The `d` of all bars together."""
    spared: str = ""
    """The `d` of bars of examples that are kept although they are above the threshold."""
    dots: Sequence[tuple[float, float]] = ()
    """Shown if a line would have no length."""
    mark: Tick | None = None
    """A vertical line: the threshold, or the epoch of pruning."""


def draw_histogram(data: ScoreHistogram, width: int, key: str) -> Chart:
    """Bars of kept and removed examples, the counterfactual as an outline, the threshold."""
    most = max(int(data.kept.max()), int(data.removed.max()), 1)
    start, end = float(data.edges[0]), float(data.edges[-1])
    plane = Plane(width, 340 if width > 500 else 280, (start, end), (0, most), square_root=True)
    mark, above = None, np.zeros(len(data.kept), np.bool_)
    if data.threshold is not None:
        above = data.edges[:-1] >= data.threshold
        mark = Tick(plane.x(data.threshold), f"threshold {shorten(data.threshold)}")
    return Chart(
        key=f"scores-{key}",
        title=f"{data.unit.title()} of each kept and removed example",
        description=describe_histogram(data),
        plane=plane,
        x_ticks=[Tick(plane.x(v), shorten(v)) for v in find_steps(start, end, width // 60)],
        y_ticks=[Tick(plane.y(v), f"{v:,}") for v in find_root_steps(most)],
        x_name=data.unit,
        y_name="examples (square-root scale)",
        bars=list_bars(data, plane),
        filled=draw_bars(data.kept + data.removed, data.edges, plane),
        spared=draw_bars(np.where(above, data.kept, 0), data.edges, plane),
        line=draw_outline(data, plane),
        line_kind="counterfactual",
        mark=mark,
    )


def draw_bars(counts: NDArray[np.int64], edges: NDArray[np.float64], plane: Plane) -> str:
    """One outline of a bar for each bin that is not empty."""
    bars = []
    for count, low, high in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        y = min(plane.y(count), plane.floor - 1.5)  # keep a single example visible
        right = round(plane.x(float(high)) - plane.width / 1000, 2)
        bar = f"M{plane.x(float(low))},{plane.floor}V{y}H{right}V{plane.floor}Z"
        bars += [bar] if count else []
    return "".join(bars)


def list_bars(data: ScoreHistogram, plane: Plane) -> list[Bar]:
    """The bins with their tooltips."""
    places = [plane.x(edge) for edge in data.edges.tolist()]
    counts = (data.kept + data.removed).tolist()
    return [
        Bar(
            x=left,
            width=round(right - left, 2),
            text=f"{tell_count(count, 'example')}: {data.unit} {describe_bin(data, i)}",
        )
        for i, (left, right, count) in enumerate(zip(places, places[1:], counts, strict=False))
    ]


def describe_bin(data: ScoreHistogram, i: int) -> str:
    """The range of a bin in words; the outer bins may be open."""
    low, high = shorten(float(data.edges[i])), shorten(float(data.edges[i + 1]))
    if data.has_less and i == 0:
        return f"below {high}"
    if data.has_more and i == len(data.kept) - 1:
        return f"{low} or more"
    return f"{low} to {high}"


def draw_outline(data: ScoreHistogram, plane: Plane) -> str:
    """The counterfactual as a line of steps."""
    if data.counterfactual is None:
        return ""
    steps = [f"M{plane.x(float(data.edges[0]))},{plane.floor}"]
    for edge, count in zip(data.edges[1:].tolist(), data.counterfactual.tolist(), strict=True):
        steps.append(f"V{plane.y(count)}H{plane.x(edge)}")
    return "".join(steps)


def describe_histogram(data: ScoreHistogram) -> str:
    """The histogram in words, for screen readers."""
    kept, removed = int(data.kept.sum()), int(data.removed.sum())
    text = f"{kept:,} examples are kept and {removed:,} removed."
    if data.threshold is not None:
        text += f" The threshold is a {data.unit} of {shorten(data.threshold)}."
    if data.counterfactual is not None:
        text += " A line shows the distribution for random labels."
    return text


def draw_curve(curve: Curve, key: str) -> Chart:
    """One number over the epochs, the epoch of pruning marked."""
    points = [(e, v) for e, v in zip(curve.epochs, curve.values, strict=True) if v is not None]
    values = [v for _, v in points]
    steps = find_steps(min(values), max(values), 4, outside=True)
    first, last = curve.epochs[0], curve.epochs[-1]
    plane = Plane(310, 210, (first, last), (steps[0], steps[-1]))
    text = f"{values[0]:.4g} at epoch {points[0][0]}, {values[-1]:.4g} at epoch {points[-1][0]}."
    mark = None
    if curve.prune_after is not None and first <= curve.prune_after <= last:
        mark = Tick(plane.x(curve.prune_after), f"E = {curve.prune_after}")
        text += f" Pruned after epoch {curve.prune_after}."
    return Chart(
        key=key,
        title=curve.name,
        description=text,
        plane=plane,
        x_ticks=[Tick(plane.x(v), f"{v:g}") for v in find_steps(first, last, 5) if v == int(v)],
        y_ticks=[Tick(plane.y(v), f"{v:g}") for v in steps],
        x_name="epoch",
        y_name=curve.name,
        line="M" + "L".join(f"{plane.x(e)},{plane.y(v)}" for e, v in points),
        line_kind="curve",
        dots=[(plane.x(e), plane.y(v)) for e, v in points] if len(points) == 1 else [],
        mark=mark,
    )


def find_root_steps(most: int) -> list[int]:
    """Counts of one leading digit, about evenly spaced on a square-root scale."""
    counts = [max(int(most * share), 1) for share in (1 / 16, 1 / 4, 9 / 16, 1)]
    digits = [10 ** (len(str(count)) - 1) for count in counts]
    steps = [0]
    for count in sorted(c // d * d for c, d in zip(counts, digits, strict=True)):
        # closer steps would have overlapping labels
        if math.sqrt(count) - math.sqrt(steps[-1]) > math.sqrt(most) / 10:
            steps.append(count)
    return steps
