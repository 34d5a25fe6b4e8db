"""ALiBi: scores fall linearly with distance, with another slope in every head; nothing is learned
(Press, Smith & Lewis 2022, "Train Short, Test Long")."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from weft.blocks.position.base import Position, PositionConfig, distances


def slopes(heads: int) -> list[float]:
    """2^(−8/H), 2^(−16/H), …; for H no power of two, the paper's series of the next lower one, filled
    up with every other slope of the series of the next higher one."""
    power = 2 ** math.floor(math.log2(heads))
    series = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    finer = [2 ** (-4 * (h + 1) / power) for h in range(0, 2 * power, 2)]
    return series + finer[: heads - power]


class ALiBi(Position):
    """bias[h, t, s] = −slope[h] · |s − t|."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.unit = nn.Buffer(torch.ones(()), persistent=False)  # its type follows the model's

    def extra_repr(self) -> str:
        return f"heads={self.heads}"

    def at_scores(self, asking: Int[Tensor, "*rows T"], answering: Int[Tensor, "*rows S"]) -> Float[Tensor, "R H T S"]:
        slope = torch.tensor(slopes(self.heads), dtype=self.unit.dtype, device=asking.device)
        return -slope[:, None, None] * distances(asking, answering).abs()[:, None]


class ALiBiConfig(PositionConfig, kind="alibi"):
    """Linear biases; works beyond the trained length."""

    def build(self, *, width: int, heads: int, head_width: int, max_length: int) -> ALiBi:
        return ALiBi(heads)
