"""What the training steps on example inputs share: packed texts and the loss."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from weft.blocks import PackedSequences
from weft.models.base import Maker
from weft.models.encoding import PackedTexts


def example_row(make: Maker, vocab_size: int, batch: int, length: int, *, segments: int = 0) -> PackedTexts:
    """Texts of one length, one after the other, as a model that reads without padding gets them."""
    told = make((1, batch * length), segments) if segments else None
    return PackedTexts(make((1, batch * length), vocab_size), told, PackedSequences((length,) * batch))


def example_cross_entropy(logits: Tensor, make: Maker, smoothing: float = 0.0) -> Tensor:
    """The summed cross-entropy of logits (…, classes) and example targets; the one number of a regression has the
    squared error."""
    logits = logits.flatten(0, -2)
    if logits.shape[-1] == 1:
        return F.mse_loss(logits[:, 0], make((len(logits),), 0), reduction="sum")
    return F.cross_entropy(logits, make((len(logits),), logits.shape[-1]), reduction="sum", label_smoothing=smoothing)
