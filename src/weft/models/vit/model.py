"""ViT: a Transformer that reads an image as a row of patches.

Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale". One config
expresses the paper's models exactly (class token, learned positions, pre-norm, GELU, biases: `vit-b` and the other
sizes) and what learns fastest from few images on a laptop, which is the default: a stem of small convolutions before
the patches (Xiao et al. 2021, "Early Convolutions Help Transformers See Better"), and the mean of all states instead of
a class token. Cutting an image into patches and mapping each is one convolution whose stride is its kernel: ViT is not
free of convolutions. The formats of other programs are in `converters.py` and `timm.py`.
"""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from weft.blocks import (
    AttentionConfig,
    FeedForwardConfig,
    Layers,
    Mask,
    NormConfig,
    PreNorm,
    QKNorm,
    TransformerLayer,
)
from weft.blocks.attention import SoftmaxConfig
from weft.blocks.attention.base import Grid
from weft.blocks.feedforward import PlainConfig
from weft.blocks.norm import LayerNormConfig
from weft.blocks.position.stretching import Cells, stretched
from weft.blocks.roles import CLASS_TOKEN, PATCH_POSITIONS, PATCHES, by_name
from weft.config import Between, Share, Size
from weft.errors import ConfigError, ShapeError
from weft.models.base import LayerStack, stack_of
from weft.models.images import ImageConfig, ImageHead, ImageModel, Pixels, States, image_sizing
from weft.models.sites import AttentionSite, sites_in
from weft.models.sizing import Budget


def vit(width: int, depth: int, heads: int, patch: int = 16, ff_width: int | None = None) -> dict[str, object]:
    """The paper's own parts in a given size, for images of 224 × 224."""
    return {
        "image_size": 224,
        "patch": patch,
        "width": width,
        "depth": depth,
        "attention": SoftmaxConfig(heads=heads),
        "feed_forward": PlainConfig(activation="gelu", ff_width=ff_width),
        "norm": LayerNormConfig(eps=1e-6),
        "qk_norm": False,
        "zero_outputs": False,
        "pool": "class",
        "head": ImageHead(classes=1000),
    }


PRESETS: dict[str, dict[str, object]] = {
    "vit-ti": vit(192, 12, 3),
    "vit-s": vit(384, 12, 6),
    "vit-b": vit(768, 12, 12),
    "vit-l": vit(1024, 24, 16),
    "vit-h": vit(1280, 32, 16, patch=14),
}


SIZES = (  # first width of the stem, width, depth, rows of patches
    (32, 64, 2, 4),
    (32, 96, 2, 4),
    (32, 128, 2, 4),
    (48, 192, 3, 4),
    (48, 192, 6, 8),
    (64, 256, 8, 8),
)


def _size(budget: Budget, number: int) -> dict[str, Any]:
    stem, width, depth, rows = SIZES[number]
    halvings = budget.halvings(rows)
    return {
        "image_size": budget.image,
        "patch": 2**halvings,
        "stem": tuple(stem * 2 ** min(n, 2) for n in range(halvings)),
        "width": width,
        "depth": depth,
        "attention.heads": width // 32,
    }


class ViTConfig(ImageConfig, kind="vit"):
    """The sizes and parts of a ViT. Attention heads are a field of `attention`, the hidden width of `feed_forward`.

    image_size   rows and columns of the images it is made for; others are read with stretched positions
    patch        rows and columns of a patch
    stem         widths of 3×3 convolutions before the patches, each of which halves the image; a patch is that much
                 smaller for them, so the number of patches stays
    pool         the vector of the whole image: a "class" token that is read with the patches, or their "mean"
    """

    learns: ClassVar = image_sizing(_size, default=True)
    presets: ClassVar = PRESETS

    image_size: Size = 32
    patch: Size = 4
    stem: tuple[Size, ...] = ()
    width: Size = 128
    depth: Annotated[int, Between(1, 1000)] = 4
    attention: AttentionConfig = SoftmaxConfig(bias=False)
    feed_forward: FeedForwardConfig = PlainConfig(activation="gelu", bias=False)
    norm: NormConfig = LayerNormConfig()
    qk_norm: bool = False
    zero_outputs: bool = True
    dropout: Share = 0.0
    pool: Literal["class", "mean"] = "mean"

    def check(self) -> None:
        super().check()
        if self.patch % self.halved:
            raise ConfigError(
                f"a stem of {len(self.stem)} convolutions with patches of {self.patch}",
                expected=f"patches of a multiple of {self.halved}: each convolution halves the image",
            )
        if self.pool == "class" and any(self.attention.for_layer(number).by_rows for number in range(self.depth)):
            expected = "pool = mean: a class token has no place in the image, and so is in no window"
            raise ConfigError("attention by windows with pool = class", expected=expected)
        if self.image_size < self.patch:
            raise ConfigError(f"patches of {self.patch} in images of {self.image_size}", expected="smaller patches")

    @property
    def cells(self) -> Cells:
        """Rows and columns of patches; pixels at the border that fill no patch are not read."""
        side = self.patches_along(self.image_size)
        return side, side

    def patches_along(self, pixels: int) -> int:
        """How many patches a row or column of so many pixels has."""
        return math.ceil(pixels / self.halved) // (self.patch // self.halved)

    @property
    def halved(self) -> int:
        """How many times smaller the stem makes an image."""
        return 2 ** len(self.stem)

    def build(self) -> ViT:
        return ViT(self)


class ViT(ImageModel):
    """Pixels in, a state for each patch out (the class token first, if there is one)."""

    roles = by_name(stem=PATCHES, patches=PATCHES, class_token=CLASS_TOKEN, positions=PATCH_POSITIONS)

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        width, inner = config.width, config.patch // config.halved
        channels = [config.channels, *config.stem]
        self.stem = nn.Sequential(*(_halving(a, b) for a, b in itertools.pairwise(channels)))
        self.patches = nn.Conv2d(channels[-1], width, kernel_size=inner, stride=inner)
        first = 1 if config.pool == "class" else 0
        self.class_token = nn.Parameter(torch.zeros(width)) if first else None
        self.positions = nn.Parameter(torch.empty(first + math.prod(config.cells), width))
        self.dropout = nn.Dropout(config.dropout)
        self.layers = Layers(self._layer(number) for number in range(config.depth))
        self.norm = config.norm.build(width)
        self.classes = config.head.build(width)
        self._initialise()

    def _layer(self, number: int) -> TransformerLayer:
        config = self.config
        attention = config.attention.for_layer(number)
        qk = QKNorm(attention.sizes(config.width)[1]) if config.qk_norm else None
        return TransformerLayer(
            attention=attention.build(config.width, qk=qk),
            attention_residual=PreNorm(config.norm.build(config.width), dropout=config.dropout),
            feed_forward=config.feed_forward.build(config.width),
            feed_forward_residual=PreNorm(config.norm.build(config.width), dropout=config.dropout),
        )

    def _initialise(self) -> None:
        """ViT's start (normal, 0.02, biases 0); or maps by 1/√inputs, and outputs of branches and scores at zero."""
        zero_ends = self.config.zero_outputs
        last = "" if self.classes is None else f"classes.{len(self.classes) - 1}.weight"
        for name, p in self.named_parameters():
            inputs = p[0].numel() if p.dim() > 1 else 1
            if p.dim() < 2 or not p.requires_grad or name.endswith("core.learned"):
                if name.endswith("bias"):
                    nn.init.zeros_(p)
            elif name.startswith("stem."):
                nn.init.normal_(p, std=math.sqrt(2 / inputs))
            elif zero_ends and (name.endswith(("attention.output.weight", "feed_forward.down.weight")) or name == last):
                nn.init.zeros_(p)
            elif name == "patches.weight" or (zero_ends and name.startswith("layers.")):
                nn.init.uniform_(p, -math.sqrt(3 / inputs), math.sqrt(3 / inputs))
            else:
                nn.init.normal_(p, std=0.02)

    def layers_in_order(self) -> list[LayerStack]:
        return [stack_of("layers", self.layers)]

    def hidden(self, pixels: Pixels) -> States:
        """The state of each patch, row by row."""
        self.check_pixels(pixels)
        if min(pixels.shape[2:]) < self.config.patch:
            given = f"images of {pixels.shape[2]} × {pixels.shape[3]} pixels"
            raise ShapeError(given, expected=f"at least one patch of {self.config.patch} × {self.config.patch}")
        places = self.patches(self.stem(pixels))
        x = self._with_positions(places.flatten(2).transpose(1, 2), (places.shape[2], places.shape[3]))
        return self.norm(self.layers(self.dropout(x), mask=self._mask(places)))

    def attention_sites(self) -> list[AttentionSite]:
        return sites_in(self, "layers", rows="places", class_token=self.class_token is not None)

    def place_grids(self, rows: int, columns: int) -> list[Grid]:
        return [Grid(self.config.patches_along(rows), self.config.patches_along(columns))]

    def pixels_read(self, rows: int, columns: int) -> tuple[int, int]:
        """Whole patches only: pixels that fill none are left out."""
        (grid,), patch = self.place_grids(rows, columns), self.config.patch
        return min(rows, grid.rows * patch), min(columns, grid.columns * patch)

    def _mask(self, places: Tensor) -> Mask:
        return Mask(grid=None if self.config.pool == "class" else Grid(places.shape[2], places.shape[3]))

    def _with_positions(self, x: Tensor, cells: Cells) -> Tensor:
        table = self.positions
        if self.class_token is None:
            return x + stretched(table, self.config.cells, cells)
        first = (self.class_token + table[0]).expand(len(x), 1, -1)
        return torch.cat([first, x + stretched(table[1:], self.config.cells, cells)], dim=1)

    def pooled(self, states: States) -> Tensor:
        return states.mean(1) if self.class_token is None else states[:, 0]


def _halving(channels: int, width: int) -> nn.Sequential:
    """A convolution, ReLU, and the largest of each 2 × 2 places: half of the rows and columns are left, or one more."""
    return nn.Sequential(
        nn.Conv2d(channels, width, kernel_size=3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)
    )
