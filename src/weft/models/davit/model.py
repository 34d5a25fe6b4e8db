"""DaViT: attention within windows of places, then attention between channels, which have seen the whole image.

Ding et al. 2022, "DaViT: Dual Attention Vision Transformers". Both kinds of attention cost no more than the number of
places, so an image can be read in small patches; a pyramid of stages halves it a few times while it grows wider. One
config expresses the paper's models exactly (`davit-tiny`, `davit-small`, `davit-base`); the default is for small
images on a laptop. The format of timm is in `converters.py`.

Letters: B batch, C channels, Y and X rows and columns, P places, D width.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks import FeedForwardConfig, Mask, NormConfig, PreNorm
from weft.blocks.attention import ChannelConfig, Grid, WindowConfig
from weft.blocks.depthwise import DepthwisePositions, as_map, as_places
from weft.blocks.feedforward import PlainConfig
from weft.blocks.norm import LayerNormConfig
from weft.blocks.roles import CONVOLUTIONS, PATCH_NORM, PATCHES, by_name
from weft.blocks.sight import Convolves, Looks, Sight
from weft.config import Share, Size
from weft.errors import ConfigError
from weft.models.base import LayerStack, stack_of_stages
from weft.models.images import STAGE_WIDTHS, ImageConfig, ImageHead, ImageModel, Pixels, States, image_sizing
from weft.models.sites import AttentionSite, Place, ReachLayer, ReachStack, no_part, seeing
from weft.models.sizing import Budget

HALVES = {"spatial": "windows", "channel": "channels"}  # of a layer, and what attends in them


def davit(width: int, depths: tuple[int, ...]) -> dict[str, object]:
    """The paper's own parts in a given size; the width is that of the first stage."""
    return {
        "widths": tuple(width * 2**stage for stage in range(4)),
        "depths": depths,
        "strides": (4, 2, 2, 2),
        "stem": 7,
        "zero_outputs": False,
        "head": ImageHead(classes=1000),
    }


PRESETS: dict[str, dict[str, object]] = {
    "davit-tiny": davit(96, (1, 1, 3, 1)),
    "davit-small": davit(96, (1, 1, 9, 1)),
    "davit-base": davit(128, (1, 1, 9, 1)),
}


def _size(budget: Budget, number: int) -> dict[str, Any]:
    first = max(32, 32 * round(STAGE_WIDTHS[number] / 32))  # channels come in groups of 32
    stride = 2 ** max(0, budget.halvings(8) - 1)
    return {"widths": (first, 2 * first), "depths": (1, 1 + number // 2), "strides": (stride, 2)}


class DaViTConfig(ImageConfig, kind="davit"):
    """The sizes and parts of a DaViT. Widths, depths and strides have one number for each stage.

    depths      layers of a stage; each is one for the windows and one for the channels
    strides     how many times smaller a stage makes the image before it reads it; 1 leaves it as it is
    stem        rows and columns of the pixels that a place of the first stage sees, an odd number
    head_width  channels of a head, of places and of channels alike
    window      rows and columns of a window
    """

    learns: ClassVar = image_sizing(_size)
    presets: ClassVar = PRESETS

    widths: tuple[Size, ...] = (64, 128)
    depths: tuple[Size, ...] = (1, 2)
    strides: tuple[Size, ...] = (2, 2)
    stem: Size = 3
    head_width: Size = 32
    window: Size = 7
    feed_forward: FeedForwardConfig = PlainConfig()
    norm: NormConfig = LayerNormConfig()
    zero_outputs: bool = True
    dropout: Share = 0.0

    def check(self) -> None:
        super().check()
        sizes = {"widths": self.widths, "depths": self.depths, "strides": self.strides}
        if not self.widths or len({len(numbers) for numbers in sizes.values()}) > 1:
            given = ", ".join(f"{len(numbers)} {name}" for name, numbers in sizes.items())
            raise ConfigError(given, expected="as many of each as there are stages, and at least one stage")
        if wrong := [width for width in self.widths if width % self.head_width]:
            raise ConfigError(f"width {wrong[0]}", expected=f"a multiple of head_width = {self.head_width}")
        if self.stem % 2 == 0:
            raise ConfigError(f"stem = {self.stem}", expected="an odd number: the place is in its middle")

    @property
    def width(self) -> int:
        """The width of the last stage."""
        return self.widths[-1]

    @property
    def depth(self) -> int:
        """The layers of all stages, of windows and of channels."""
        return 2 * sum(self.depths)

    def build(self) -> DaViT:
        return DaViT(self)


# -- parts ------------------------------------------------------------------------------------


class Stem(nn.Module):
    """norm(map(pixels)): an overlapping convolution makes the first places. The border is padded with zeros."""

    roles = by_name(map=PATCHES, norm=PATCH_NORM)

    def __init__(self, channels: int, width: int, *, kernel: int, stride: int, norm: nn.Module) -> None:
        super().__init__()
        self.stride = stride
        self.map = nn.Conv2d(channels, width, kernel, stride=stride, padding=kernel // 2)
        self.norm = norm

    def forward(self, pixels: Pixels) -> tuple[States, Grid]:
        channels = self.map(filled(pixels, self.stride))
        return self.norm(as_places(channels)), Grid(*channels.shape[2:])


class DaViTDownsample(nn.Module):
    """map(norm(x)): each square of stride × stride places becomes one. The border is padded with zeros."""

    roles = by_name(map=CONVOLUTIONS)

    def __init__(self, width: int, wider: int, *, stride: int, norm: nn.Module) -> None:
        super().__init__()
        self.stride = stride
        self.norm = norm
        self.map = nn.Conv2d(width, wider, stride, stride=stride)

    def sees(self) -> tuple[Sight, ...]:
        return (Convolves(self.map),)

    def forward(self, x: States, grid: Grid) -> tuple[States, Grid]:
        channels = self.map(filled(as_map(self.norm(x), grid), self.stride))
        return as_places(channels), Grid(*channels.shape[2:])


def filled(channels: Float[Tensor, "B D Y X"], multiple: int) -> Float[Tensor, "B D Y2 X2"]:
    """Pad with zeros at the right and below until rows and columns are multiples."""
    below, right = (-size % multiple for size in channels.shape[2:])
    return F.pad(channels, (0, right, 0, below)) if below or right else channels


class PlacedLayer(nn.Module):
    """A layer with positions from convolutions: positions, attention, positions, feed-forward; pre-norm residuals."""

    def __init__(
        self,
        width: int,
        *,
        attention: nn.Module,
        attention_residual: PreNorm,
        feed_forward: nn.Module,
        feed_forward_residual: PreNorm,
    ) -> None:
        super().__init__()
        self.attention_positions = DepthwisePositions(width)
        self.attention = attention
        self.attention_residual = attention_residual
        self.feed_forward_positions = DepthwisePositions(width)
        self.feed_forward = feed_forward
        self.feed_forward_residual = feed_forward_residual

    def forward(self, x: States, grid: Grid) -> States:
        x = self.attention_positions(x, grid)
        x = self.attention_residual(x, lambda h: self.attend(h, grid))
        x = self.feed_forward_positions(x, grid)
        return self.feed_forward_residual(x, self.feed_forward)

    def sees(self) -> tuple[Sight, ...]:
        """Neighbours by a convolution, then those of the window or all, then neighbours again."""
        return Convolves(self.attention_positions.map), Looks(), Convolves(self.feed_forward_positions.map)

    def attend(self, h: States, grid: Grid) -> States:
        """The output of attention at each place."""
        return self.attention(h, mask=Mask(grid=grid))


class WindowLayer(PlacedLayer):
    """Attention of places within their window. Windows at the border are padded with zeros, which are attended to as
    places: this is how DaViT was trained, where window attention by itself would leave them out."""

    def __init__(self, width: int, *, window: int, **parts: Any) -> None:
        super().__init__(width, **parts)
        self.window = window

    def attend(self, h: States, grid: Grid) -> States:
        whole = filled(as_map(h, grid), self.window)
        around = Grid(*whole.shape[2:])
        seen = as_map(super().attend(as_places(whole), around), around)
        return as_places(seen[:, :, : grid.rows, : grid.columns])


class DualLayer(nn.Module):
    """Attention within windows, then attention between channels."""

    def __init__(self, spatial: WindowLayer, channel: PlacedLayer) -> None:
        super().__init__()
        self.spatial, self.channel = spatial, channel

    def forward(self, x: States, grid: Grid) -> States:
        return self.channel(self.spatial(x, grid), grid)


class DaViTStage(nn.Module):
    """Layers on one grid; all stages but the first make the image smaller and wider before."""

    def __init__(self, shrink: DaViTDownsample | None, layers: list[DualLayer]) -> None:
        super().__init__()
        self.shrink = shrink
        self.layers = nn.ModuleList(layers)

    def forward(self, x: States, grid: Grid) -> tuple[States, Grid]:
        if self.shrink is not None:
            x, grid = self.shrink(x, grid)
        for layer in self.layers:
            x = layer(x, grid)
        return x, grid


# -- the model --------------------------------------------------------------------------------


class DaViT(ImageModel):
    """Pixels in; states are those of the places of the last stage."""

    def __init__(self, config: DaViTConfig) -> None:
        super().__init__(config)
        first, last = config.widths[0], config.widths[-1]
        self.stem = Stem(
            config.channels, first, kernel=config.stem, stride=config.strides[0], norm=config.norm.build(first)
        )
        self.stages = nn.ModuleList(self._stage(number) for number in range(len(config.widths)))
        self.norm = config.norm.build(last)
        self.classes = config.head.build(last)
        self._initialise()

    def _stage(self, number: int) -> DaViTStage:
        config, width = self.config, self.config.widths[number]
        shrink = None
        if number:
            before = config.widths[number - 1]
            shrink = DaViTDownsample(before, width, stride=config.strides[number], norm=config.norm.build(before))
        return DaViTStage(shrink, [self._layer(width) for _ in range(config.depths[number])])

    def _layer(self, width: int) -> DualLayer:
        config, heads = self.config, width // self.config.head_width
        window = WindowConfig(heads=heads, window=config.window).build(width)
        channel = ChannelConfig(heads=heads).build(width)
        return DualLayer(
            WindowLayer(width, window=config.window, attention=window, **self._parts(width)),
            PlacedLayer(width, attention=channel, **self._parts(width)),
        )

    def _parts(self, width: int) -> dict[str, Any]:
        """The modules that both halves of a layer have, each its own."""
        config = self.config
        return {
            "attention_residual": PreNorm(config.norm.build(width), dropout=config.dropout),
            "feed_forward": config.feed_forward.build(width),
            "feed_forward_residual": PreNorm(config.norm.build(width), dropout=config.dropout),
        }

    def _initialise(self) -> None:
        """DaViT's start (normal, 0.02, biases 0, convolutions by their inputs); or maps by 1/√inputs, and outputs of
        branches and scores at zero."""
        zero_ends = self.config.zero_outputs
        last = "" if self.classes is None else f"classes.{len(self.classes) - 1}"
        for name, module in self.named_modules():
            if not isinstance(module, nn.Linear):
                continue
            if zero_ends and (name.endswith(("attention.output", "feed_forward.down")) or name == last):
                nn.init.zeros_(module.weight)
            elif zero_ends and name.startswith("stages."):
                bound = math.sqrt(3 / module.in_features)
                nn.init.uniform_(module.weight, -bound, bound)
            else:
                nn.init.normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def layers_in_order(self) -> list[LayerStack]:
        return [stack_of_stages(self.stages, "shrink")]

    def hidden(self, pixels: Pixels) -> States:
        """The state of each place of the last stage, row by row; any size of image will do."""
        *_, (states, _) = self.pyramid(pixels)
        return states

    def pyramid(self, pixels: Pixels) -> Iterator[tuple[States, Grid]]:
        """Every stage's states, and their grid."""
        self.check_pixels(pixels)
        x, grid = self.stem(pixels)
        for stage in self.stages:
            x, grid = stage(x, grid)
            yield x, grid

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        """Each half of a layer is a step: convolutions around attention in windows, then around that of channels."""
        no_part(self, part)
        found: list[ReachLayer] = []
        for number, stage in enumerate(self.stages, 1):
            assert isinstance(stage, DaViTStage)
            if stage.shrink is not None:
                found.append(seeing(f"stage {number}: shrunk", stage.shrink))
            for n, layer in enumerate(stage.layers, 1):
                halves = ((word, getattr(layer, half)) for half, word in HALVES.items())
                found += [seeing(f"stage {number}: {word} {n}", half) for word, half in halves]
        return [ReachStack(found)]

    def attention_sites(self) -> list[AttentionSite]:
        """Of places in windows, and of channels: neither half alone carries all information between places."""
        return [
            AttentionSite(
                f"stages.{stage}.layers.{n}.{half}.attention",
                Place(f"stage {stage + 1}, {word}", n + 1),
                "places",
                "places",
                grid=stage,
            )
            for stage, depth in enumerate(self.config.depths)
            for n in range(depth)
            for half, word in HALVES.items()
        ]

    def place_grids(self, rows: int, columns: int) -> list[Grid]:
        sizes = itertools.accumulate(self.config.strides, lambda size, stride: size * stride)
        return [Grid(-(-rows // size), -(-columns // size)) for size in sizes]

    def pixels_read(self, rows: int, columns: int) -> tuple[int, int]:
        return rows, columns

    def pooled(self, states: States) -> Float[Tensor, "B D"]:
        """The norm of the mean: what timm's head reads."""
        return self.norm(states.mean(1))
