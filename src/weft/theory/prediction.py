"""What is predicted for a number: this one, about this one, at most, at least; and how numbers are told."""

from __future__ import annotations

import math
from dataclasses import dataclass

Measured = float | int | bool | str


@dataclass(frozen=True)
class Near:
    """This number, or one so close to it: `within` is absolute, `share` is relative to the number."""

    value: float
    within: float = 0.0
    share: float = 0.0

    def agrees(self, measured: Measured) -> bool:
        """Whether a measured number is close enough."""
        apart = abs(float(measured) - self.value)
        return apart <= max(self.within, self.share * abs(self.value))

    def __str__(self) -> str:
        return number(self.value)

    @property
    def tolerance(self) -> str:
        """How close that is, in words."""
        return f"±{number(self.within)}" if self.within >= self.share * abs(self.value) else f"±{100 * self.share:g} %"


@dataclass(frozen=True)
class AtMost:
    """This number or less."""

    value: float

    def agrees(self, measured: Measured) -> bool:
        """Whether a measured number is no larger."""
        return float(measured) <= self.value

    def __str__(self) -> str:
        return f"≤ {number(self.value)}"

    @property
    def tolerance(self) -> str:
        """It is in the number."""
        return ""


@dataclass(frozen=True)
class AtLeast:
    """This number or more."""

    value: float

    def agrees(self, measured: Measured) -> bool:
        """Whether a measured number is no smaller."""
        return float(measured) >= self.value

    def __str__(self) -> str:
        return f"≥ {number(self.value)}"

    @property
    def tolerance(self) -> str:
        """It is in the number."""
        return ""


@dataclass(frozen=True)
class Exactly:
    """This and nothing else: a count, a word, yes or no."""

    value: Measured

    def agrees(self, measured: Measured) -> bool:
        """Whether it is the same."""
        return measured == self.value

    def __str__(self) -> str:
        return number(self.value)

    @property
    def tolerance(self) -> str:
        """None."""
        return "exactly"


Prediction = Near | AtMost | AtLeast | Exactly
ROUNDING = 1e-11  # what float64 may leave of a difference that is zero
ZERO = Near(0.0, within=ROUNDING)


def prediction(value: Prediction | Measured) -> Prediction:
    """A bare value is meant exactly; a bare number with a point to nine digits."""
    if isinstance(value, Near | AtMost | AtLeast | Exactly):
        return value
    return Near(value, share=1e-9) if isinstance(value, float) else Exactly(value)


def number(value: Measured) -> str:
    """A number as one reads it: 33,554,432, 0.28, 5.6e-42; yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (value.is_integer() and 1 <= abs(value) < 1e15):
        return f"{int(value):,}"
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "not a number")
    size = abs(value)
    if size >= 1e6 or size < 1e-3:
        digits, _, power = f"{value:.2g}".partition("e")
        return f"{digits}e{int(power)}" if power else digits
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size < 100 else f"{value:.1f}"
