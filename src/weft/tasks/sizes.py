"""Which size of model suits an amount of computing.

Measured (docs/decisions/004-default-gpt.md): for a given amount, the size that reached the lowest held-out loss on
texts of about a megabyte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rung:
    """A size that suits up to `flops` operations of training."""

    flops: float
    width: int
    depth: int
    heads: int
    length: int
    batch: int


LADDER = (
    Rung(4e12, 128, 3, 4, 64, 12),
    Rung(2e13, 128, 4, 4, 128, 12),
    Rung(8e13, 192, 5, 6, 128, 16),
    Rung(3e14, 256, 6, 8, 256, 8),
    Rung(3e15, 384, 6, 6, 256, 16),
    Rung(1e30, 512, 8, 8, 512, 16),
)


def rung_for(flops: float) -> Rung:
    """The size for this much computing."""
    return next(rung for rung in LADDER if flops <= rung.flops)


def sizes_of(rung: Rung) -> dict[str, Any]:
    """The fields of a model of this size."""
    return {"width": rung.width, "depth": rung.depth, "max_length": rung.length, "attention.heads": rung.heads}


# -- models that write one text from another --------------------------------------------------

PAIR_LADDER = (  # width, depth, heads, dropout
    (128, 2, 4, 0.1),
    (192, 3, 6, 0.15),
    (256, 4, 8, 0.15),
    (384, 4, 12, 0.15),
    (512, 6, 8, 0.15),
)
EPOCHS = 9  # readings for which there should be time


def pair_sizes(flops: float, tokens: int, vocab_size: int) -> dict[str, Any]:
    """The largest size with which pairs of so many tokens on each side can be read so often."""
    chosen = PAIR_LADDER[0]
    for rung in PAIR_LADDER:
        width, depth, _, _ = rung
        maps = depth * (12 + 16) * width**2 + vocab_size * width
        if 6 * maps * tokens * EPOCHS <= flops:
            chosen = rung
    return dict(zip(("width", "depth", "attention.heads", "dropout"), chosen, strict=True))
