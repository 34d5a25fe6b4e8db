"""ResNet: convolutions in branches around a stream that is never interrupted.

He et al. 2016, "Identity Mappings in Deep Residual Networks": norm and ReLU come before each convolution, so what a
layer adds reaches the end unchanged. The norm is group norm (Wu & He 2018, "Group Normalization") where the paper has
batch norm: it takes its statistics from one image alone. So the answer for an image does not depend on the other images
of its batch, training and inference compute the same, a batch may be cut into any parts, and there is no running
average beside the parameters that a checkpoint would have to hold.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks.attention import Grid
from weft.blocks.roles import CONVOLUTIONS, PATCHES, by_name
from weft.blocks.sight import Convolves, Sight
from weft.config import Between, Size
from weft.errors import ConfigError, ShapeError
from weft.models.base import LayerStack, stack_of_stages
from weft.models.images import STAGE_WIDTHS, ImageConfig, ImageHead, ImageModel, Pixels, States, image_sizing
from weft.models.sites import ReachStack, no_part, seeing
from weft.models.sizing import Budget

Map = Float[Tensor, "B D Y X"]
MAX_STAGES = 12  # each halves the image, so more stages would need images of thousands of rows


def resnet(*depths: int) -> dict[str, object]:
    """The paper's widths, for images of 224 × 224, with 32 groups as group norm's paper has them."""
    return {
        "stem": "large",
        "widths": (64, 128, 256, 512),
        "depths": depths,
        "groups": 32,
        "head": ImageHead(classes=1000),
    }


PRESETS: dict[str, dict[str, object]] = {
    "resnet-18": resnet(2, 2, 2, 2),
    "resnet-34": resnet(3, 4, 6, 3),
}


MIN_ROWS_FOR_LARGE_STEM = 64  # of an image; smaller ones keep their size in the stem


def _size(budget: Budget, number: int) -> dict[str, Any]:
    width = 16 * max(1, STAGE_WIDTHS[number] // 16)
    stem = "large" if budget.image >= MIN_ROWS_FOR_LARGE_STEM else "small"
    stages = max(1, min(4, budget.halvings(7) + (-1 if stem == "large" else 1)))
    return {"stem": stem, "widths": tuple(width * 2**n for n in range(stages)), "depths": (1 + number // 3,) * stages}


class ResNetConfig(ImageConfig, kind="resnet"):
    """The sizes and parts of a ResNet.

    stem          the first convolution: "small", 3 × 3 at every pixel, or "large", 7 × 7 and a maximum that together
                  leave a quarter of rows and columns
    widths        the width of each stage; all but the first begin by halving the image
    depths        the layers of each stage, two convolutions each
    groups        into how many groups of channels a norm divides; every width must be a multiple
    zero_outputs  branches and scores begin at zero
    """

    learns: ClassVar = image_sizing(_size)
    presets: ClassVar = PRESETS

    stem: Literal["small", "large"] = "small"
    widths: tuple[Size, ...] = (64, 128, 256)
    depths: tuple[Annotated[int, Between(1, 1000)], ...] = (2, 2, 2)
    groups: Size = 16
    zero_outputs: bool = True

    def check(self) -> None:
        super().check()
        if len(self.widths) != len(self.depths) or not 1 <= len(self.widths) <= MAX_STAGES:
            given = f"{len(self.widths)} widths and {len(self.depths)} depths"
            raise ConfigError(given, expected=f"one of each for every stage, and from 1 to {MAX_STAGES} stages")
        for width in self.widths:
            if width % self.groups:
                raise ConfigError(f"a width of {width} in {self.groups} groups", expected="a multiple of the groups")

    @property
    def width(self) -> int:
        """The width of what comes out."""
        return self.widths[-1]

    @property
    def depth(self) -> int:
        """The layers of all stages."""
        return sum(self.depths)

    def build(self) -> ResNet:
        return ResNet(self)


class ResNetLayer(nn.Module):
    """x + second(ReLU(norm(first(ReLU(norm(x)))))); where the size changes, a 1 × 1 convolution maps x."""

    roles = by_name(first=CONVOLUTIONS, second=CONVOLUTIONS, shortcut=CONVOLUTIONS)

    def __init__(self, width: int, new_width: int, *, stride: int, groups: int) -> None:
        super().__init__()
        self.first_norm = nn.GroupNorm(groups, width)
        self.first = nn.Conv2d(width, new_width, kernel_size=3, stride=stride, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(groups, new_width)
        self.second = nn.Conv2d(new_width, new_width, kernel_size=3, padding=1, bias=False)
        changes = stride > 1 or width != new_width
        self.shortcut = nn.Conv2d(width, new_width, kernel_size=1, stride=stride, bias=False) if changes else None

    def sees(self) -> tuple[Sight, ...]:
        return Convolves(self.first), Convolves(self.second)

    def forward(self, x: Map) -> Map:
        ready = F.relu(self.first_norm(x))
        x = x if self.shortcut is None else self.shortcut(ready)
        return x + self.second(F.relu(self.second_norm(self.first(ready))))


class ResNetStage(nn.Module):
    """Layers of one width; the first of them may halve the image."""

    def __init__(self, layers: list[ResNetLayer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Map) -> Map:
        for layer in self.layers:
            x = layer(x)
        return x


class ResNet(ImageModel):
    """Pixels in, a state for each place of the last stage out."""

    roles = by_name(stem=PATCHES)

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        size, stride = (3, 1) if config.stem == "small" else (7, 2)
        first = config.widths[0]
        self.stem = nn.Conv2d(config.channels, first, kernel_size=size, stride=stride, padding=size // 2, bias=False)
        self.stages = nn.ModuleList(self._stage(number) for number in range(len(config.widths)))
        self.norm = nn.GroupNorm(config.groups, config.width)
        self.classes = config.head.build(config.width)
        self._initialise()

    def _stage(self, number: int) -> ResNetStage:
        config = self.config
        width = config.widths[number]
        shrinks = number > 0
        before = config.widths[number - 1] if shrinks else width
        first = ResNetLayer(before, width, stride=2 if shrinks else 1, groups=config.groups)
        others = [ResNetLayer(width, width, stride=1, groups=config.groups) for _ in range(config.depths[number] - 1)]
        return ResNetStage([first, *others])

    def _initialise(self) -> None:
        """Convolutions by √(2/inputs), which keeps the size of a signal through ReLU (He et al. 2015)."""
        last = "" if self.classes is None else f"classes.{len(self.classes) - 1}.weight"
        for name, p in self.named_parameters():
            if p.dim() < 2:
                if name.endswith("bias"):
                    nn.init.zeros_(p)
            elif self.config.zero_outputs and (name.endswith(".second.weight") or name == last):
                nn.init.zeros_(p)
            elif name.startswith("classes."):
                nn.init.normal_(p, std=0.02)
            else:
                nn.init.normal_(p, std=math.sqrt(2 / p[0].numel()))

    def layers_in_order(self) -> list[LayerStack]:
        return [stack_of_stages(self.stages)]

    def hidden(self, pixels: Pixels) -> States:
        """The state of each place, row by row."""
        self.check_pixels(pixels)
        self._check_norms(pixels)
        x = self.stem(pixels)
        if self.config.stem == "large":
            x = F.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        for stage in self.stages:
            x = stage(x)
        return F.relu(self.norm(x)).flatten(2).transpose(1, 2)

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        no_part(self, part)
        return [
            ReachStack(
                [
                    seeing(f"stage {number}: layer {n}", layer)
                    for number, stage in enumerate(self.stages, 1)
                    for n, layer in enumerate(stage.layers, 1)  # type: ignore[arg-type]
                ]
            )
        ]

    def place_grids(self, rows: int, columns: int) -> list[Grid]:
        first = 4 if self.config.stem == "large" else 1
        sizes = [first * 2**number for number in range(len(self.stages))]
        return [Grid(-(-rows // size), -(-columns // size)) for size in sizes]

    def pixels_read(self, rows: int, columns: int) -> tuple[int, int]:
        return rows, columns

    def _check_norms(self, pixels: Pixels) -> None:
        """Refuse images so small that a group norm would have a single number to normalise."""
        left = [-(-size // (4 if self.config.stem == "large" else 1)) for size in pixels.shape[2:]]
        for number, width in enumerate(self.config.widths):
            left = [-(-size // 2) for size in left] if number else left
            if width // self.config.groups * math.prod(left) < 2:
                given = f"images of {pixels.shape[2]} × {pixels.shape[3]} pixels"
                raise ShapeError(
                    given, expected="larger ones, fewer stages, or fewer groups: a norm needs several numbers"
                )
