"""Which size of model suits an amount of computing.

Measured (docs/decisions/004-default-gpt.md): for a given amount, the size that reached the lowest held-out loss on
texts of about a megabyte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.cost import cost_of
from weft.models import PairModelConfig
from weft.models.seq2seq import RecurrentPairConfig


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
RECURRENT_LADDER = ((128, 1, 0.1), (256, 1, 0.15), (384, 1, 0.2), (512, 2, 0.2), (768, 2, 0.2))  # width, depth, dropout
EPOCHS = 9  # readings for which there should be time


def pair_sizes(model: PairModelConfig, flops: float, tokens: int) -> dict[str, Any]:
    """The largest size with which pairs of so many tokens on each side can be read so often."""
    if isinstance(model, RecurrentPairConfig):
        sizes = [dict(zip(("width", "depth", "dropout"), rung, strict=True)) for rung in RECURRENT_LADDER]
        needed = [cost_of(model.override(rung), batch=tokens, length=1).flops for rung in sizes]
    else:
        sizes = [dict(zip(("width", "depth", "attention.heads", "dropout"), rung, strict=True)) for rung in PAIR_LADDER]
        needed = [6.0 * (d * (12 + 16) * w**2 + model.vocab_size * w) * tokens for w, d, _, _ in PAIR_LADDER]
    return next((size for size, n in zip(sizes[:0:-1], needed[:0:-1], strict=True) if EPOCHS * n <= flops), sizes[0])
