"""What changes with the length and with the width: the cost along both, and where attention becomes the larger part.

Scores and mixing grow with the square of the length, maps with the length: somewhere they meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weft.cost.flops import OperationCount, walk
from weft.cost.learning import PLAIN, Learning
from weft.errors import WeftError
from weft.models import ModelConfig

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
FLAT = 0.2  # an exponent below this is none


@dataclass(frozen=True)
class Point:
    """A model at another length or width: its parameters, operations of a step, and the share of attention's scores;
    bytes at the peak of a step, and its seconds (None: not asked for, or it does not fit)."""

    length: int
    width: int
    parameters: int
    flops: float
    scores: float
    memory: int | None = None
    seconds: float | None = None


Price = Callable[[ModelConfig, int], tuple[int | None, float | None]]
"""Memory and seconds of a model on texts of a length."""


def over_lengths(config: ModelConfig, *, batch: int, length: int, learning: Learning = PLAIN) -> list[Variation]:
    """The same model, texts of other lengths; the number of tokens in a step grows with them, and with it a table of
    positions that would be too short."""
    lengths = [max(1, round(length * factor)) for factor in FACTORS]
    found = [Variation(longer(config, at), batch, at, learning) for at in dict.fromkeys(lengths)]
    return [one for one in found if one.can_be]


def over_widths(config: ModelConfig, *, batch: int, length: int, learning: Learning = PLAIN) -> list[Variation]:
    """Models that are wider or narrower, all else as it is."""
    changed = [wider(config, factor) for factor in FACTORS]
    found = [Variation(model, batch, length, learning) for model in changed if model is not None]
    return [one for one in found if one.can_be]


@dataclass(frozen=True)
class Variation:
    """A model at another length or width, of which nothing is known yet."""

    config: ModelConfig
    batch: int
    length: int
    learning: Learning

    @property
    def can_be(self) -> bool:
        """Whether it reads texts of this length at all."""
        try:
            self._walk()
        except WeftError:
            return False
        return True

    def point(self, price: Price | None = None) -> Point:
        """What it costs; memory and seconds if somebody tells them."""
        found = self._walk()
        total = found.total.total
        width = getattr(self.config, "width", 0) or 0
        count = sum(p.numel() for p in self.config.skeleton().parameters())
        share = found.of("attention scores") / total if total else 0.0
        memory, seconds = (None, None) if price is None else price(self.config, self.length)
        return Point(self.length, int(width), count, total, share, memory, seconds)

    def _walk(self) -> OperationCount:
        return walk(self.config, batch=self.batch, length=self.length, learning=self.learning)


def longer(config: ModelConfig, length: int) -> ModelConfig:
    """The model with a table of positions that is long enough, if it has learned ones."""
    most, position = getattr(config, "max_length", None), getattr(config, "position", None)
    if most is None or most >= length or getattr(position, "kind", "") != "learned":
        return config
    return config.override({"max_length": length})


def wider(config: ModelConfig, factor: float) -> ModelConfig | None:
    """The same family at another width, with heads as wide as they were; None if that cannot be."""
    changes: dict[str, Any] = {}
    for name in ("width", "widths"):
        if name in type(config).__dataclass_fields__:
            now = getattr(config, name)
            changes[name] = tuple(_times(n, factor) for n in now) if isinstance(now, tuple) else _times(now, factor)
    attention = getattr(config, "attention", None)
    if getattr(attention, "heads", None):
        changes["attention.heads"] = max(1, round(attention.heads * factor))  # type: ignore[union-attr]
    try:
        found = config.override(changes) if changes else None
        return found if found is not None and found.skeleton() is not None else None
    except WeftError:
        return None


def _times(size: int, factor: float) -> int:
    return max(8, 8 * round(size * factor / 8))


@dataclass(frozen=True)
class Crossing:
    """The length from which on attention's scores cost more than its maps, and than all maps; None: they never do."""

    maps: int | None
    everything: int | None


def crossing(config: ModelConfig, *, length: int, learning: Learning = PLAIN) -> Crossing | None:
    """Solved from two walks: what grows with a power of the length is known from two points. None without attention."""
    near, far = (walk(config, batch=1, length=at, learning=learning) for at in (length, 2 * length))
    if not near.of("attention scores"):
        return None
    return Crossing(_meets(near, far, length, "attention maps"), _meets(near, far, length, ""))


def _meets(near: OperationCount, far: OperationCount, length: int, maps: str) -> int | None:
    shares = []
    for found in (near, far):
        scores = found.of("attention scores")
        others = found.of(maps) if maps else found.total.total - scores
        shares.append(scores / others if others else math.inf)
    power = math.log2(shares[1] / shares[0]) if 0 < shares[0] < math.inf and shares[1] > 0 else 0.0
    if power < FLAT:
        return None
    return math.ceil(length * shares[0] ** (-1 / power))
