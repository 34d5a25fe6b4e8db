"""What changes with the length and with the width: operations along both, and where attention becomes the larger part.

Scores and mixing grow with the square of the length, maps with the length: somewhere they meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from weft.cost.flops import Walk, walk
from weft.cost.parts import parameters_by_part
from weft.errors import WeftError
from weft.models import ModelConfig

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
FLAT = 0.2  # an exponent below this is none


@dataclass(frozen=True)
class Point:
    """A model at another length or width: its parameters, operations of a step, and the share of attention's scores."""

    length: int
    width: int
    parameters: int
    flops: float
    scores: float


def over_lengths(config: ModelConfig, *, batch: int, length: int) -> list[Point]:
    """The same model, texts of other lengths; the number of tokens in a step grows with them."""
    lengths = [max(1, round(length * factor)) for factor in FACTORS]
    return [_point(config, batch, at) for at in dict.fromkeys(lengths) if _can(config, batch, at)]


def over_widths(config: ModelConfig, *, batch: int, length: int) -> list[Point]:
    """Models that are wider or narrower, all else as it is."""
    changed = [wider(config, factor) for factor in FACTORS]
    return [_point(model, batch, length) for model in changed if model is not None and _can(model, batch, length)]


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


def _can(config: ModelConfig, batch: int, length: int) -> bool:
    try:
        walk(config, batch=batch, length=length)
    except WeftError:
        return False
    return True


def _point(config: ModelConfig, batch: int, length: int) -> Point:
    found = walk(config, batch=batch, length=length)
    total = found.total.total
    width = getattr(config, "width", 0) or 0
    count = sum(parameters_by_part(config.skeleton()).values())
    return Point(length, int(width), count, total, found.of("attention scores") / total if total else 0.0)


@dataclass(frozen=True)
class Crossing:
    """The length from which on attention's scores cost more than its maps, and than all maps; None: they never do."""

    maps: int | None
    everything: int | None


def crossing(config: ModelConfig, *, length: int) -> Crossing | None:
    """Solved from two walks: what grows with a power of the length is known from two points. None without attention."""
    near, far = (walk(config, batch=1, length=at) for at in (length, 2 * length))
    if not near.of("attention scores"):
        return None
    return Crossing(_meets(near, far, length, "attention maps"), _meets(near, far, length, ""))


def _meets(near: Walk, far: Walk, length: int, maps: str) -> int | None:
    shares = []
    for found in (near, far):
        scores = found.of("attention scores")
        others = found.of(maps) if maps else found.total.total - scores
        shares.append(scores / others if others else math.inf)
    power = math.log2(shares[1] / shares[0]) if 0 < shares[0] < math.inf and shares[1] > 0 else 0.0
    if power < FLAT:
        return None
    return math.ceil(length * shares[0] ** (-1 / power))
