"""Learned positions of an image's patches, stretched to another grid (Dosovitskiy et al. 2021, §3.2)."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from weft.errors import ShapeError

Cells = tuple[int, int]


def stretched(positions: Float[Tensor, "P D"], cells: Cells, wanted: Cells) -> Float[Tensor, "Q D"]:
    """A table for `cells` (rows, columns) as a table for the `wanted` ones, by cubic interpolation."""
    if len(positions) != cells[0] * cells[1]:
        raise ShapeError(f"{len(positions)} positions", expected=f"{cells[0]} × {cells[1]}")
    if cells == wanted:
        return positions
    image = positions.t().view(1, -1, *cells)
    return F.interpolate(image, size=wanted, mode="bicubic", align_corners=False)[0].flatten(1).t()
