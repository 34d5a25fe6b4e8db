"""What an image shows: one class, several, or a number. The loss of a batch of labelled images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from weft.config import Config, Share
from weft.data.augmentation import AugmentConfig
from weft.objectives.classification import Classification


class ImageObjectiveConfig(Config):
    """How a classifier of images learns.

    weights      of the classes: "none", "balanced" (a rare class counts as much as a frequent one), or "auto":
                 balanced where the most frequent class is ten times as frequent as the rarest
    smoothing    share of the label that is given to all classes alike
    augment      how images are changed while they are learned from
    """

    weights: Literal["auto", "none", "balanced"] = "auto"
    smoothing: Share = 0.0
    augment: AugmentConfig = AugmentConfig()


@dataclass(frozen=True, eq=False)
class ImageBatch:
    """Pixels (N, C, Y, X), and what each shows: ids (N,), shares or rows of 0 and 1 (N, classes), or numbers (N,)."""

    pixels: Tensor
    labels: Tensor

    def to(self, device: torch.device | str) -> ImageBatch:
        """The same on another device."""
        return ImageBatch(self.pixels.to(device), self.labels.to(device))


class ImageClassification(Classification):
    """The loss of a model that looks at images: cross-entropy, binary cross-entropy, or squared error."""

    def __call__(self, model: nn.Module, batch: ImageBatch) -> tuple[Tensor, int]:  # type: ignore[override]
        """Summed over the images, and how many there are."""
        return self.loss(image_logits(model, batch.pixels), batch.labels), len(batch.labels)


def image_logits(model: nn.Module, pixels: Tensor) -> Tensor:
    """(N, classes): what the model says of each image."""
    logits: Tensor = model(pixels)
    return logits
