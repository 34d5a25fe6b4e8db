"""ConvNeXt: a convolutional network with the habits of a Transformer.

Liu et al. 2022, "A ConvNet for the 2020s". A layer reads its surroundings by one large depthwise
convolution, and a feed-forward part follows at each place: what attention and feed-forward are to ViT. The
image begins as patches, and between two stages every 2 × 2 places become one. The formats of other programs
are in `converters.py` and `timm.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks import FeedForward, LayerNorm
from weft.blocks.attention import Grid
from weft.blocks.feedforward import Activation
from weft.blocks.roles import CONVOLUTIONS, LAYER_SCALE, PATCH_NORM, PATCHES, by_name
from weft.blocks.sight import Convolves, Sight
from weft.config import Amount, Between, Share, Size
from weft.errors import ConfigError, ShapeError
from weft.models.base import LayerStack, stack_of_stages
from weft.models.images import STAGE_WIDTHS, ImageConfig, ImageHead, ImageModel, Pixels, States, image_sizing
from weft.models.sites import ReachLayer, ReachStack, no_part, seeing
from weft.models.sizing import Budget

Map = Float[Tensor, "B D Y X"]
MAX_STAGES = 12  # each halves the image, so more stages would need images of thousands of rows


def convnext(depths: tuple[int, ...], width: int) -> dict[str, object]:
    """The paper's own parts in a given size, for images of 224 × 224; each stage is twice as wide as the last."""
    return {
        "patch": 4,
        "widths": tuple(width * 2**stage for stage in range(len(depths))),
        "depths": depths,
        "head": ImageHead(classes=1000),
    }


PRESETS: dict[str, dict[str, object]] = {
    "convnext-tiny": convnext((3, 3, 9, 3), 96),
    "convnext-small": convnext((3, 3, 27, 3), 96),
    "convnext-base": convnext((3, 3, 27, 3), 128),
}


def _size(budget: Budget, number: int) -> dict[str, Any]:
    width, halvings = STAGE_WIDTHS[number], budget.halvings(4)
    stages = min(3, 1 + halvings)
    patch = 2 ** max(0, halvings + 1 - stages)
    return {"patch": patch, "widths": tuple(width * 2**n for n in range(stages)), "depths": (2,) * stages}


class ConvNeXtConfig(ImageConfig, kind="convnext"):
    """The sizes and parts of a ConvNeXt.

    patch        rows and columns of a patch; stages halve these again, so images of 28 × 28 want 2 or 4
    widths       the width of each stage
    depths       the layers of each stage
    kernel       rows and columns that a layer's convolution sees, an odd number
    ff_ratio     how many times wider the feed-forward part is inside
    layer_scale  the initial factor of each branch; 0: there is none
    eps, last_eps  of the norms, and of the one after pooling (None: the same)
    drop_path    share of branches left out for an image in training, rising with the layer from 0 to this (Huang et
                 al. 2016, "Deep Networks with Stochastic Depth")
    """

    learns: ClassVar = image_sizing(_size)
    presets: ClassVar = PRESETS

    patch: Size = 2
    widths: tuple[Size, ...] = (64, 128, 256)
    depths: tuple[Annotated[int, Between(1, 1000)], ...] = (2, 2, 2)
    kernel: Size = 7
    ff_ratio: Size = 4
    activation: Activation = "gelu"
    layer_scale: Amount = 1e-6
    eps: Amount = 1e-6
    last_eps: Amount | None = None
    drop_path: Share = 0.0

    def check(self) -> None:
        super().check()
        if len(self.widths) != len(self.depths) or not 1 <= len(self.widths) <= MAX_STAGES:
            given = f"{len(self.widths)} widths and {len(self.depths)} depths"
            raise ConfigError(given, expected=f"one of each for every stage, and from 1 to {MAX_STAGES} stages")
        if self.kernel % 2 == 0:
            raise ConfigError(f"kernel = {self.kernel}", expected="an odd number: a place in the middle, others around")
        if self.drop_path == 1:
            raise ConfigError("drop_path = 1", expected="less: the last branch would never be used")

    @property
    def width(self) -> int:
        """The width of the last stage."""
        return self.widths[-1]

    @property
    def depth(self) -> int:
        """The layers of all stages."""
        return sum(self.depths)

    @property
    def smallest(self) -> int:
        """The rows and columns that an image must have at least."""
        return self.patch * 2 ** (len(self.widths) - 1)

    def build(self) -> ConvNeXt:
        return ConvNeXt(self)


class ConvNeXtLayer(nn.Module):
    """x + scale · feed_forward(norm(depthwise(x)))."""

    roles = by_name(depthwise=CONVOLUTIONS, scale=LAYER_SCALE)

    def __init__(self, config: ConvNeXtConfig, width: int, drop_path: float) -> None:
        super().__init__()
        kernel, inner = config.kernel, config.ff_ratio * width
        self.depthwise = nn.Conv2d(width, width, kernel_size=kernel, padding=kernel // 2, groups=width)
        self.norm = LayerNorm(width, eps=config.eps)
        self.feed_forward = FeedForward(width, inner, activation=config.activation)
        self.scale = nn.Parameter(torch.full((width,), config.layer_scale)) if config.layer_scale else None
        self.drop_path = drop_path

    def extra_repr(self) -> str:
        return f"drop_path={self.drop_path:g}" if self.drop_path else ""

    def sees(self) -> tuple[Sight, ...]:
        return (Convolves(self.depthwise),)

    def forward(self, x: Map) -> Map:
        branch = self.feed_forward(self.norm(_last(self.depthwise(x))))
        branch = branch if self.scale is None else self.scale * branch
        if self.training and self.drop_path:
            keep = 1 - self.drop_path
            branch = branch * (torch.rand(len(x), 1, 1, 1, dtype=x.dtype, device=x.device) < keep) / keep
        return x + _first(branch)


class ConvNeXtDownsample(nn.Module):
    """Every 2 × 2 places become one: norm, and a convolution whose stride is its kernel."""

    roles = by_name(patches=CONVOLUTIONS)

    def __init__(self, width: int, new_width: int, *, eps: float) -> None:
        super().__init__()
        self.norm = LayerNorm(width, eps=eps)
        self.patches = nn.Conv2d(width, new_width, kernel_size=2, stride=2)

    def sees(self) -> tuple[Sight, ...]:
        return (Convolves(self.patches),)

    def forward(self, x: Map) -> Map:
        return self.patches(_first(self.norm(_last(x))))


class ConvNeXtStage(nn.Module):
    """Layers of one width; all stages but the first begin by halving the image."""

    def __init__(self, halving: ConvNeXtDownsample | None, layers: list[ConvNeXtLayer]) -> None:
        super().__init__()
        self.halving = halving
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Map) -> Map:
        x = x if self.halving is None else self.halving(x)
        for layer in self.layers:
            x = layer(x)
        return x


class ConvNeXt(ImageModel):
    """Pixels in; states are those of the places of the last stage."""

    roles = by_name(patches=PATCHES, patches_norm=PATCH_NORM)

    def __init__(self, config: ConvNeXtConfig) -> None:
        super().__init__(config)
        first = config.widths[0]
        self.patches = nn.Conv2d(config.channels, first, kernel_size=config.patch, stride=config.patch)
        self.patches_norm = LayerNorm(first, eps=config.eps)
        self.stages = nn.ModuleList(self._stage(number) for number in range(len(config.widths)))
        self.norm = LayerNorm(config.width, eps=config.eps if config.last_eps is None else config.last_eps)
        self.classes = config.head.build(config.width)
        self._initialise()

    def _stage(self, number: int) -> ConvNeXtStage:
        config = self.config
        width, before, last = config.widths[number], sum(config.depths[:number]), max(1, config.depth - 1)
        halving = ConvNeXtDownsample(config.widths[number - 1], width, eps=config.eps) if number else None
        shares = [config.drop_path * (before + i) / last for i in range(config.depths[number])]
        return ConvNeXtStage(halving, [ConvNeXtLayer(config, width, share) for share in shares])

    def _initialise(self) -> None:
        """The paper's start: normal, 0.02, cut at two; biases 0."""
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.trunc_normal_(p, std=0.02, a=-0.04, b=0.04)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def layers_in_order(self) -> list[LayerStack]:
        return [stack_of_stages(self.stages, "halving")]

    def hidden(self, pixels: Pixels) -> States:
        """The state of each place, row by row; pixels at the border that fill no patch are not read."""
        self.check_pixels(pixels)
        if min(pixels.shape[2:]) < self.config.smallest:
            given = f"images of {pixels.shape[2]} × {pixels.shape[3]} pixels"
            size = self.config.smallest
            raise ShapeError(given, expected=f"at least {size} × {size}, or a smaller patch, or fewer stages")
        x = self.patches(pixels.contiguous(memory_format=torch.channels_last))  # so that `_last` copies nothing
        x = _first(self.patches_norm(_last(x)))
        for stage in self.stages:
            x = stage(x)
        return x.flatten(2).transpose(1, 2)

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        no_part(self, part)
        found: list[ReachLayer] = []
        for number, stage in enumerate(self.stages, 1):
            assert isinstance(stage, ConvNeXtStage)
            if stage.halving is not None:
                found.append(seeing(f"stage {number}: halved", stage.halving))
            found += [seeing(f"stage {number}: layer {n}", layer) for n, layer in enumerate(stage.layers, 1)]
        return [ReachStack(found)]

    def place_grids(self, rows: int, columns: int) -> list[Grid]:
        sizes = [self.config.patch * 2**number for number in range(len(self.stages))]
        return [Grid(rows // size, columns // size) for size in sizes]

    def pixels_read(self, rows: int, columns: int) -> tuple[int, int]:
        patch = self.config.patch
        return rows // patch * patch, columns // patch * patch

    def pooled(self, states: States) -> Float[Tensor, "B D"]:
        return self.norm(states.mean(1))


def _last(x: Map) -> Float[Tensor, "B Y X D"]:
    """Channels to the last axis, where norms and maps read them."""
    return x.permute(0, 2, 3, 1)


def _first(x: Float[Tensor, "B Y X D"]) -> Map:
    return x.permute(0, 3, 1, 2)
