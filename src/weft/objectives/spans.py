"""Learning to write what is missing in a text (Raffel et al. 2020): how much of it is hidden, and the loss."""

from __future__ import annotations

import math
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.config import Between, Config
from weft.data.spans import Spans
from weft.models import EncoderDecoder
from weft.objectives.text_to_text import PairBatch, wanted_logits

SPANS = "spans"  # the task's name, in settings and in the log


class SpanConfig(Config):
    """How a model that writes learns from raw text.

    share       of the tokens that are hidden
    span        tokens of a span, on average
    anywhere    True: spans are anywhere behind the first token; False: the last token of a text is always hidden, as in
                T5's own code, and a short text loses the same end in every epoch
    """

    share: Annotated[float, Between(0, 1, open=True)] = 0.15
    span: Annotated[float, Between(1, math.inf)] = 3.0
    anywhere: bool = True

    @property
    def spans(self) -> Spans:
        return Spans(self.share, self.span, self.anywhere)


def spans_loss(model: EncoderDecoder, batch: PairBatch) -> tuple[Tensor, int, dict[str, tuple[Tensor, Tensor, int]]]:
    """The summed loss of all target tokens, sentinels and ends too, how many they are, and how many were right.

    Each is predicted from the source and the true tokens before it (teacher forcing).
    """
    logits = wanted_logits(model, batch)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    summed, count = F.cross_entropy(logits, batch.wanted, reduction="sum"), len(batch.wanted)
    right = (logits.detach().argmax(-1) == batch.wanted).sum()
    return summed, count, {SPANS: (summed.detach(), right, count)}
