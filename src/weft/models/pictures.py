"""What every family that looks at pictures shares: pixels in, a state for each place out, classes read from these.

Letters: B batch, C channels, Y and X rows and columns of pixels, P places (patches), D width.
"""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from weft.config import Count, Share, Size
from weft.errors import ShapeError, UnsupportedError
from weft.models.base import ModelConfig
from weft.models.classes import Classes

Pixels = Float[Tensor, "B C Y X"]
States = Float[Tensor, "B P D"]


class PictureHead(Classes):
    """What is read from one vector for each picture: a score for each class; `classes` = 0 is the trunk alone.

    `hidden`: the width of a layer with tanh before the scores, as ViT has it while it is pre-trained; 0: none. Without
    classes it is the whole head: one vector for the picture, where others read from.
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


class PictureConfig(ModelConfig):
    """Fields of every such family. `channels`: 1 for grey pictures, 3 for coloured ones."""

    heads = ("classes.",)

    channels: Size = 3
    head: PictureHead = PictureHead()

    def build(self) -> PictureModel:
        raise UnsupportedError(f"model family {self.kind!r} cannot be built")


class PictureModel(nn.Module):
    """Pixels in, a state for each place out; `class_logits` reads from these."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.classes: nn.Sequential | None = None

    def check_pixels(self, pixels: Pixels) -> None:
        """Refuse what is no batch of pictures with the model's channels."""
        if pixels.dim() != 4 or pixels.shape[1] != self.config.channels:
            expected = f"(B, {self.config.channels}, Y, X)"
            raise ShapeError(f"pixels have shape {tuple(pixels.shape)}", expected=expected)

    def pooled(self, states: States) -> Float[Tensor, "B D"]:
        """One vector for each picture."""
        return states.mean(1)

    def class_logits(self, states: States) -> Float[Tensor, "B classes"]:
        """A logit for each class, or the one number of a regression."""
        if self.classes is None or not self.config.head.classes:
            raise UnsupportedError("this model has no head for classes: head.classes = 0")
        return self.classes(self.pooled(states))
