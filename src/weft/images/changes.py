"""Changes of images that leave what they show: moved, turned, mirrored, brighter, with a piece missing.

Each is a pure function of a batch and of numbers for every image in it; where these numbers come from is decided
elsewhere. Pixels are floats in which 0 is the mean grey of the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

Batch = Float[Tensor, "B C Y X"]
Each = Float[Tensor, "B"]


@dataclass(frozen=True, eq=False)
class Movement:
    """For every image: turned by `angle` (radians), slanted by `shear`, `zoom` times larger, moved by `down` and
    `right` (shares of the image), and mirrored where `mirror` is −1 instead of 1."""

    angle: Each
    shear: Each
    zoom: Each
    down: Each
    right: Each
    mirror: Each

    def maps(self) -> Float[Tensor, "B 2 3"]:
        """Where each pixel of the result is taken from, as `affine_grid` wants it: x and y from −1 to 1."""
        cos, sin = self.angle.cos() / self.zoom, self.angle.sin() / self.zoom
        x = torch.stack([cos * self.mirror, (self.shear * cos - sin) * self.mirror, -2 * self.right], dim=1)
        y = torch.stack([sin, self.shear * sin + cos, -2 * self.down], dim=1)
        return torch.stack([x, y], dim=1)


def moved(pixels: Batch, movement: Movement) -> Batch:
    """What moves in from outside continues the border."""
    grid = F.affine_grid(movement.maps().to(pixels), list(pixels.shape), align_corners=False)
    return F.grid_sample(pixels, grid, mode="bilinear", padding_mode="border", align_corners=False)


def recoloured(pixels: Batch, contrast: Each, brightness: Each) -> Batch:
    """Contrast times each image's deviation from its own mean, plus brightness."""
    middle = pixels.mean(dim=(1, 2, 3), keepdim=True)
    return (pixels - middle) * _each(contrast) + middle + _each(brightness)


def erased(pixels: Batch, boxes: Float[Tensor, "B 4"]) -> Batch:
    """Zero inside a box: its middle (row, column) and half its sides, as shares of the image."""
    return pixels.masked_fill(inside(pixels, boxes), 0.0)


def blended(pixels: Batch, others: Batch, share: Each) -> Batch:
    """`share` of each image and the rest of another (mixup, Zhang et al. 2018)."""
    return others.lerp(pixels, _each(share))


def pasted(pixels: Batch, others: Batch, boxes: Float[Tensor, "B 4"]) -> tuple[Batch, Each]:
    """Another image inside a box (CutMix, Yun et al. 2019), and how much of the first is left."""
    box = inside(pixels, boxes)
    return torch.where(box, others, pixels), 1 - box.float().mean(dim=(1, 2, 3))


def inside(pixels: Batch, boxes: Float[Tensor, "B 4"]) -> Tensor:
    """(B, 1, Y, X): whether the middle of a pixel is in the box."""
    rows, columns = ((torch.arange(n, device=pixels.device) + 0.5) / n for n in pixels.shape[2:])
    row, column, high, wide = (part[:, None].to(pixels) for part in boxes.unbind(1))
    down, right = (rows - row).abs() < high, (columns - column).abs() < wide
    return (down[:, :, None] & right[:, None, :])[:, None]


def _each(values: Each) -> Tensor:
    return values[:, None, None, None]
