"""What a text is: one class, several, or a number. The loss of a row of labelled texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.config import Config, Share
from weft.models import ClassifiesText, PackedTexts

Kind = Literal["single", "multilabel", "regression"]


class ClassifyConfig(Config):
    """How a classifier learns.

    weights          of the classes: "none", "balanced" (a rare class counts as much as a frequent one), or "auto":
                     balanced where the most frequent class is ten times as frequent as the rarest
    respelling       share of the tokens that are spelled by two others while it learns, others in every epoch
    word_dropout     share of the tokens that are hidden from the model while it learns, likewise
    smoothing        share of the label that is given to all classes alike
    """

    weights: Literal["auto", "none", "balanced"] = "auto"
    respelling: Share = 0.3
    word_dropout: Share = 0.1
    smoothing: Share = 0.0


@dataclass(frozen=True, eq=False)
class LabelledRow:
    """Texts in a row, and what each of them is: ids (N,), rows of 0 and 1 (N, classes), or numbers (N,)."""

    row: PackedTexts
    labels: Tensor

    def to(self, device: torch.device | str) -> LabelledRow:
        """The same on another device."""
        return LabelledRow(self.row.to(device), self.labels.to(device))


class Classification:
    """The loss of a model with a head for classes: cross-entropy, binary cross-entropy, or squared error.

    hidden    the token that stands for one that is hidden; `whole` are those that never are
    """

    def __init__(
        self,
        kind: Kind,
        *,
        weights: Sequence[float] | None = None,
        smoothing: float = 0.0,
        word_dropout: float = 0.0,
        hidden: int = 0,
        whole: Sequence[int] = (),
    ) -> None:
        self.kind, self.smoothing, self.word_dropout, self.hidden = kind, smoothing, word_dropout, hidden
        self.weights = None if weights is None else torch.tensor(list(weights), dtype=torch.float32)
        self.whole = torch.tensor(list(whole), dtype=torch.long)

    def __repr__(self) -> str:
        return f"Classification({self.kind})"

    def __call__(self, model: nn.Module, batch: LabelledRow) -> tuple[Tensor, int]:
        """Summed over the texts, and how many there are."""
        logits = class_logits(model, self.with_gaps(batch.row) if model.training else batch.row)
        return self.loss(logits, batch.labels), len(batch.labels)

    def with_gaps(self, row: PackedTexts) -> PackedTexts:
        """The row with some of its tokens hidden."""
        return hide_tokens(row, self.word_dropout, self.hidden, self.whole)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Of logits (N, classes), summed."""
        logits = logits.float()
        weights = None if self.weights is None else self.weights.to(logits.device)
        if self.kind == "regression":
            return (logits[:, 0] - labels.float()).square().sum()
        if self.kind == "multilabel":
            wanted = labels.float() * (1 - self.smoothing) + self.smoothing / 2
            return F.binary_cross_entropy_with_logits(logits, wanted, reduction="sum") / logits.shape[1]
        each = F.cross_entropy(logits, labels, reduction="none", label_smoothing=self.smoothing)
        if weights is None:
            return each.sum()
        return (each * (weights[labels] if labels.dim() == 1 else labels @ weights)).sum()


def hide_tokens(row: PackedTexts, share: float, hidden: int, whole: Tensor) -> PackedTexts:
    """The row with this share of its tokens replaced by `hidden`, by torch's random state; none of `whole` is."""
    if not share:
        return row
    chosen = torch.rand(row.tokens.shape, device=row.tokens.device) < share
    chosen &= ~torch.isin(row.tokens, whole.to(row.tokens.device))
    return PackedTexts(row.tokens.masked_fill(chosen, hidden), row.segments, row.packed)


def class_logits(model: nn.Module, row: PackedTexts) -> Tensor:
    """(N, classes): what the model says of each text in the row."""
    assert isinstance(model, ClassifiesText)
    return model.text_logits(row)
