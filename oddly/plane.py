"""Coordinates for drawings, and round numbers for their axes. No torch here."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Plane:
    """Maps numbers to pixels; the origin is the upper left corner."""

    width: int
    height: int
    x_span: tuple[float, float]
    y_span: tuple[float, float]
    square_root: bool = False
    """Scale y by its square root, or the many easy examples would flatten all others."""
    left: int = 52
    right: int = 14
    top: int = 40
    bottom: int = 40
    """Room around the plot, in pixels."""

    @property
    def floor(self) -> int:
        """The y of the horizontal axis."""
        return self.height - self.bottom

    def x(self, value: float) -> float:
        """Pixels from the left."""
        low, high = self.x_span
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.left + (self.width - self.left - self.right) * share, 2)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        low, high = self.y_span
        share = min((value - low) / (high - low), 1) if high > low else 0.5
        share = math.sqrt(share) if self.square_root else share
        return round(self.floor - (self.floor - self.top) * share, 2)


def find_steps(low: float, high: float, about: int, outside: bool = False) -> list[float]:
    """Round numbers, 1, 2 or 5 times a power of ten apart, within low and high or around them."""
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(m * power for m in (1, 2, 5, 10) if span / (m * power) <= about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if outside:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]
