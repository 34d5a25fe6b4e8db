"""Sinusoids added to the token vectors (Vaswani et al. 2017)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.blocks.position.base import Position, PositionConfig
from weft.config import Positive


def sinusoids(
    positions: Int[Tensor, "*rows T"], width: int, base: float = 10_000.0, *, halves: bool = False
) -> Float[Tensor, "*rows T D"]:
    """sin(n / base^(i/D)) at even i and cos(n / base^((i−1)/D)) at odd i, for each position n.

    Bounded, different for every position, and a shift by k is one fixed rotation of each (sin, cos) pair. `halves`:
    all sines first, then all cosines, as Marian orders them.
    """
    angles = angles_of(positions, width, base)
    if halves:
        return torch.cat([angles.sin(), angles.cos()], -1)[..., :width]
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :width]


def angles_of(positions: Int[Tensor, "*rows T"], width: int, base: float) -> Float[Tensor, "*rows T half"]:
    """positions / base^(2i/width) for i < width/2, in float64 where there is one: float32 loses a
    hundredth of a turn at position 100 000."""
    precise = torch.float32 if positions.device.type == "mps" else torch.float64
    exponent = torch.arange(0, width, 2, device=positions.device, dtype=precise) / width
    return positions[..., None].to(precise) * base**-exponent


class Sinusoidal(Position):
    """Adds the sinusoids; no parameters, any length."""

    def __init__(self, width: int, *, base: float = 10_000.0, halves: bool = False) -> None:
        super().__init__()
        self.width, self.base, self.halves = width, base, halves

    def extra_repr(self) -> str:
        return f"width={self.width}, base={self.base:g}"

    def at_input(self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "*rows T"]) -> Float[Tensor, "B T D"]:
        return x + sinusoids(positions, self.width, self.base, halves=self.halves).to(x.dtype)


class SinusoidalConfig(PositionConfig, kind="sinusoidal"):
    """Sinusoids with base L (10 000 in the paper). `halves`: sines first, then cosines, as in Marian."""

    base: Positive = 10_000.0
    halves: bool = False

    def build(self, *, width: int, heads: int, head_width: int, max_length: int) -> Sinusoidal:
        return Sinusoidal(width, base=self.base, halves=self.halves)
