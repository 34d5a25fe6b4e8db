"""What every family for images shares: pixels in, a state for each place out, and class logits from these.

Letters: B batch, C channels, Y and X rows and columns of pixels, P places (patches), D width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks.attention import Grid
from weft.blocks.roles import LABEL_HEAD, by_name
from weft.config import Count, Share, Size
from weft.errors import ShapeError, UnsupportedError
from weft.models.base import Maker, Model, ModelConfig
from weft.models.capabilities import Capability, ClassifiesImages, EncodesImages
from weft.models.classes import Classes
from weft.models.example_step import example_cross_entropy
from weft.models.sizing import Budget, SizePreset, Sizing

Pixels = Float[Tensor, "B C Y X"]
States = Float[Tensor, "B P D"]


STAGE_WIDTHS = (16, 24, 32, 48, 64, 96)  # of the first stage, in models of several, from the smallest
LEARNING_RATES = {  # of a model trained from scratch
    "optimizer.learning_rate": 0.02,
    "optimizer.embedding_rate": 0.01,
    "optimizer.head_rate": 0.01,
    "warmup": 0.05,
    "decay": 0.95,
}


def image_sizing(fields: Callable[[Budget, int], dict[str, Any]], *, default: bool = False) -> dict[Capability, Sizing]:
    """Six sizes for images of a given number of rows, each given by `fields(budget, number)`
    (docs/decisions/009-small-images.md)."""

    def sizes(budget: Budget) -> list[SizePreset]:
        return [SizePreset(fields(budget, number)) for number in range(len(STAGE_WIDTHS))]

    return {ClassifiesImages: Sizing(sizes, head={"head": {"classes": 2}}, training=LEARNING_RATES, default=default)}


class ImageHead(Classes):
    """The head on one vector for each image: a score for each class; `classes` = 0 is the trunk alone, which gives
    the state of each place.

    `hidden`: the width of a layer with tanh before the scores, as ViT has it while it is pre-trained; 0: none. Without
    classes it is the whole head, and gives one vector for each image.
    """

    classes: Count = 0
    hidden: Count = 0
    dropout: Share = 0.0

    def build(self, width: int) -> nn.Sequential | None:
        """The head for vectors of this width."""
        if not self.classes and not self.hidden:
            return None
        hidden = [nn.Linear(width, self.hidden), nn.Tanh()] if self.hidden else []
        scores = [nn.Linear(self.hidden or width, self.classes)] if self.classes else []
        return nn.Sequential(nn.Dropout(self.dropout), *hidden, *scores)


class ImageConfig(ModelConfig):
    """Fields of every such family. `channels`: 1 for grey images, 3 for coloured ones."""

    channels: Size = 3
    head: ImageHead = ImageHead()

    @property
    def provides(self) -> frozenset[Capability]:
        return frozenset({EncodesImages, ClassifiesImages} if self.head.classes else {EncodesImages})

    def build(self) -> ImageModel:
        raise UnsupportedError(f"model family {self.kind!r} cannot be built")


class ImageModel(Model):
    """Pixels in, a logit for each class out; `hidden` gives the state of each place, which the head reads. A trunk
    (`head.classes` = 0) gives these states by the call too."""

    roles = by_name(classes=LABEL_HEAD)

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.classes: nn.Sequential | None = None

    def example_inputs(self, batch: int, length: int, make: Maker) -> tuple[Tensor]:
        return (make((batch, self.config.channels, length, length), 0),)

    def example_loss(self, batch: int, length: int, make: Maker) -> Tensor:
        """The loss of the classes, or the sum of all states without any."""
        found = self(*self.example_inputs(batch, length, make))
        return example_cross_entropy(found, make) if self.config.head.classes else found.sum()

    def forward(self, pixels: Pixels) -> Float[Tensor, "B classes"] | States:
        """A logit for each class; a trunk (`head.classes` = 0) gives the state of each place."""
        states = self.hidden(pixels)
        return self.class_logits(states) if self.config.head.classes else states

    def hidden(self, pixels: Pixels) -> States:
        """The state of each place, from which the head reads."""
        raise UnsupportedError(f"{type(self).__name__} does not define hidden()")

    def check_pixels(self, pixels: Pixels) -> None:
        """Refuse what is no batch of images with the model's channels."""
        if pixels.dim() != 4 or pixels.shape[1] != self.config.channels:
            expected = f"(B, {self.config.channels}, Y, X)"
            raise ShapeError(f"pixels have shape {tuple(pixels.shape)}", expected=expected)

    def place_grids(self, rows: int, columns: int) -> list[Grid]:
        """The grid of places of each stage, for an image of so many pixels."""
        raise UnsupportedError(f"{type(self).__name__} does not define place_grids()")

    def pixels_read(self, rows: int, columns: int) -> tuple[int, int]:
        """How many rows and columns of such an image its first places cover; pixels beyond them are not read."""
        raise UnsupportedError(f"{type(self).__name__} does not define pixels_read()")

    def pooled(self, states: States) -> Float[Tensor, "B D"]:
        """One vector for each image."""
        return states.mean(1)

    def class_logits(self, states: States) -> Float[Tensor, "B classes"]:
        """A logit for each class, or the one number of a regression."""
        if self.classes is None or not self.config.head.classes:
            raise UnsupportedError("this model has no head for classes: head.classes = 0")
        return self.classes(self.pooled(states))
