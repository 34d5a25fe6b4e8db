"""A learned vector for each position, added to the token vectors (GPT-2, BERT, ViT)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from weft.blocks.position.base import Position, PositionConfig
from weft.errors import ShapeError


class Learned(Position):
    """Adds row n of a table to the token at position n; there are `max_length` rows and no more."""

    def __init__(self, max_length: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_length, width))
        nn.init.normal_(self.weight, std=0.02)

    def extra_repr(self) -> str:
        return f"max_length={self.weight.shape[0]}, width={self.weight.shape[1]}"

    def at_input(self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "*rows T"]) -> Float[Tensor, "B T D"]:
        last = int(positions.max())
        if last >= len(self.weight):
            raise ShapeError(
                f"a text of {last + 1} tokens",
                expected=f"at most {len(self.weight)}, for which positions were learned",
                advice="shorten the text, or stretch the positions with .stretched(length)",
            )
        if x.shape[-1] != self.weight.shape[1]:
            raise ShapeError(f"x has width {x.shape[-1]}", expected=f"{self.weight.shape[1]}")
        return x + F.embedding(positions, self.weight)

    def stretched(self, max_length: int) -> Learned:
        """The same curve over more (or fewer) positions, by linear interpolation; ends stay ends."""
        other = Learned(max_length, self.weight.shape[1]).to(self.weight)
        curve = self.weight.detach().t()[None]
        other.weight.data = F.interpolate(curve, size=max_length, mode="linear", align_corners=True)[0].t().contiguous()
        return other


class LearnedConfig(PositionConfig, kind="learned"):
    """A table of positions, as long as the longest text."""

    def build(self, *, width: int, heads: int, head_width: int, max_length: int) -> Learned:
        return Learned(max_length, width)
