"""Axes of a chart: round numbers around the values, and where a value stands between them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def span(values: Sequence[float]) -> tuple[float, float]:
    """The least and the most, at least two percent apart: less looks like more than it is."""
    low, high = min(values), max(values)
    if low == high == 0:
        return 0.0, 1.0
    missing = max(0.02 * max(abs(low), abs(high)), 1e-6) - (high - low)
    return (low - missing / 2, high + missing / 2) if missing > 0 else (low, high)


def ticks(values: Sequence[float], count: int = 5) -> list[float]:
    """Round numbers around the values, about so many; the first and the last are the ends of the axis."""
    low, high = span(values)
    raw = (high - low) / max(1, count - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def powers(values: Sequence[float], count: int = 7) -> list[float]:
    """Powers of ten around the values, about so many at most."""
    first, last = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    last = max(last, first + 1)
    step = max(1, math.ceil((last - first) / (count - 1)))
    return [10.0**power for power in range(first, last + step, step)]


def tick_text(value: float) -> str:
    """A round number as one reads it at an axis: 0.25, 1,500, 1e6."""
    if value and not 1e-4 <= abs(value) < 1e6:
        digits, _, power = f"{value:g}".partition("e")
        return f"{digits}e{int(power)}" if power else digits
    return f"{value:,g}"


class Axis:
    """Its ticks, and a place from 0 to 1 for each value; what it cannot show (a zero among logarithms) stands at its
    end. Values that are no numbers are for the caller to leave out."""

    def __init__(self, values: Sequence[float], *, log: bool = False, count: int = 5) -> None:
        self.log = log
        known = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [1.0]
        self.ticks = powers(known) if log else ticks(known, count)

    def place(self, value: float) -> float:
        """From the first tick to the last."""
        first, last = self._at(self.ticks[0]), self._at(self.ticks[-1])
        return min(1.0, max(0.0, (self._at(value) - first) / (last - first)))

    def _at(self, value: float) -> float:
        if not self.log:
            return value
        return math.log10(value) if value > 0 else -400.0


def spread(places: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """The places moved as little as needed to be `apart` from each other, within the bounds if there is room."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    moved = list(places)
    for before, after in itertools.pairwise(order):
        moved[after] = max(moved[after], moved[before] + apart)
    over = moved[order[-1]] - high if order else 0.0
    if over > 0:
        bound = high
        for n in reversed(order):
            moved[n] = min(moved[n], bound)
            bound = moved[n] - apart
    if order and moved[order[0]] < low:
        bound = low
        for n in order:
            moved[n] = max(moved[n], bound)
            bound = moved[n] + apart
    return moved
