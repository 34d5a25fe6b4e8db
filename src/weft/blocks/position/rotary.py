"""Rotary positions: queries and keys are rotated by an angle that grows with their position, so that
their product depends on the distance alone (Su et al. 2021, "RoFormer")."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor, nn

from weft.blocks.attention.base import Keys, Queries
from weft.blocks.position.base import Position, PositionConfig
from weft.blocks.position.sinusoidal import angles_of
from weft.config import Positive
from weft.errors import ConfigError, ShapeError, UnsupportedError


class Rotary(Position):
    """Rotates feature i and feature i + K/2 as a pair by position / base^(2i/K) (the layout of Llama).

    Nothing is stored: angles come from the positions at hand, so lengths are free and no table loses
    precision when the model is cast.
    """

    def __init__(self, head_width: int, *, base: float = 10_000.0) -> None:
        super().__init__()
        if head_width % 2:
            raise ConfigError(f"rotary positions with head width {head_width}", expected="an even head width")
        self.head_width, self.base = head_width, base

    def extra_repr(self) -> str:
        return f"head_width={self.head_width}, base={self.base:g}"

    @property
    def qk(self) -> nn.Module:
        return self

    def forward(self, query: Queries, key: Keys, positions: Int[Tensor, "*rows T"] | None) -> tuple[Queries, Keys]:
        if positions is None:
            raise UnsupportedError(
                "rotary positions in cross-attention", expected="self-attention: a memory has no common positions"
            )
        if query.shape[-1] != self.head_width:
            raise ShapeError(f"queries of width {query.shape[-1]}", expected=f"the head width {self.head_width}")
        angles = angles_of(positions, self.head_width, self.base)
        if angles.dim() == 3:  # ragged rows: (B, T, K/2) → (B, 1, T, K/2), the same for every head
            angles = angles[:, None]
        cos, sin = angles.cos().to(query.dtype), angles.sin().to(query.dtype)
        return _turn(query, cos, sin), _turn(key, cos, sin)


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class RotaryConfig(PositionConfig, kind="rotary"):
    """Rotary positions; a larger base rotates more slowly and reaches further."""

    base: Positive = 10_000.0

    def build(self, *, width: int, heads: int, head_width: int, max_length: int) -> Rotary:
        return Rotary(head_width, base=self.base)
