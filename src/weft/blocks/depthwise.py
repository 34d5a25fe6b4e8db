"""Positions by depthwise convolution: each channel of a place receives from the same channel of its neighbours."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks.attention.base import Grid, Stream
from weft.blocks.roles import NEIGHBOURS


def as_map(x: Float[Tensor, "B P D"], grid: Grid) -> Float[Tensor, "B D Y X"]:
    """A state for each place as a map of channels; no number is moved."""
    return x.view(x.shape[0], grid.rows, grid.columns, x.shape[2]).permute(0, 3, 1, 2)


def as_places(channels: Float[Tensor, "B D Y X"]) -> Float[Tensor, "B P D"]:
    """The inverse of `as_map`: places row by row."""
    return channels.permute(0, 2, 3, 1).flatten(1, 2)


class DepthwisePositions(nn.Module):
    """x + a convolution of each channel by itself: the zero padding shows where the border is.

    Chu et al. 2021, "Conditional Positional Encodings for Vision Transformers": no table of places, so any size of
    image can be read.
    """

    role = NEIGHBOURS

    def __init__(self, width: int, *, kernel: int = 3) -> None:
        super().__init__()
        self.map = nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=width)

    def forward(self, x: Stream, grid: Grid) -> Stream:
        return x + as_places(self.map(as_map(x, grid)))
