"""Which label each word has: the loss of a row of texts whose words are labelled at their first subwords."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.config import Config, Share
from weft.models import PackedTexts
from weft.models.capabilities import TagsTokens
from weft.objectives.classification import hide_tokens


class TokenClassifyConfig(Config):
    """How labels of words are learned.

    word_dropout     share of the tokens that are hidden from the model while it learns, others in every epoch: then
                     it learns from the words around a name, and not the names by heart
    smoothing        share of the label that is given to all labels alike
    """

    word_dropout: Share = 0.1
    smoothing: Share = 0.0


@dataclass(frozen=True, eq=False)
class TaggedRow:
    """Texts in a row, the slots of the row where labelled words begin, and the ids of their labels."""

    row: PackedTexts
    places: Tensor
    labels: Tensor

    def __repr__(self) -> str:
        return f"TaggedRow({self.row.packed}, {len(self.labels)} words)"

    def to(self, device: torch.device | str) -> TaggedRow:
        """The same on another device."""
        return TaggedRow(self.row.to(device), self.places.to(device), self.labels.to(device))


class TokenClassification:
    """Cross-entropy of words, each at its first subword (Devlin et al. 2019, section 5.3).

    hidden    the token that stands for one that is hidden; `whole` are those that never are
    """

    def __init__(
        self, *, smoothing: float = 0.0, word_dropout: float = 0.0, hidden: int = 0, whole: Sequence[int] = ()
    ) -> None:
        self.smoothing, self.word_dropout, self.hidden = smoothing, word_dropout, hidden
        self.whole = torch.tensor(list(whole), dtype=torch.long)

    def __repr__(self) -> str:
        return f"TokenClassification(smoothing={self.smoothing:g}, word_dropout={self.word_dropout:g})"

    def __call__(self, model: nn.Module, batch: TaggedRow) -> tuple[Tensor, int]:
        """Summed over the words, and how many there are."""
        row = hide_tokens(batch.row, self.word_dropout, self.hidden, self.whole) if model.training else batch.row
        logits = word_logits(model, row, batch.places)
        summed = F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=self.smoothing)
        return summed, len(batch.labels)


def word_logits(model: nn.Module, row: PackedTexts, places: Tensor) -> Tensor:
    """(words, labels) in float32: what the model says of the tokens at these slots of the row, and of no others."""
    assert isinstance(model, TagsTokens)
    logits = model.token_logits(row.states(model)[0, places])
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
