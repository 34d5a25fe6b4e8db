"""T5's pretraining of an encoder-decoder: spans of a text are hidden, and the decoder writes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from torch import nn

from weft.data.spans import SHORTEST, SpanMarks, SpanSamples
from weft.errors import ConfigError
from weft.objectives import spans_loss
from weft.objectives.text_to_text import PairBatch
from weft.tasks.fill.training import LENGTH_SAMPLES, FillTraining
from weft.text.special import SENTINEL

PAD = "<pad>"  # fills up, and begins what is written
SENTINEL_COUNT = 100  # sentinels, as T5 has
SPAN_TOKENS = (PAD, *(SENTINEL.format(n) for n in range(SENTINEL_COUNT)))  # what it needs besides the text


@dataclass
class SpanPretraining(FillTraining):
    """Windows of sentences with gaps, and the text that was removed from them."""

    def loss(self, model: nn.Module, batch: Any) -> tuple[Any, ...]:
        return spans_loss(cast("Any", model), batch)

    @cached_property
    def marks(self) -> SpanMarks:
        return SpanMarks.of(self.tokenizer)

    @cached_property
    def stretch(self) -> int:
        """Tokens of text in a sample at most, such that source and target fit in with all their marks."""
        spans, sizes = self.config.objective.spans.spans, np.arange(SHORTEST, self.length + 1)
        fit = np.logical_and.accumulate(np.maximum(*spans.lengths(sizes)) <= self.length)
        if not fit.any():
            raise ConfigError(f"{self.length} tokens of a text", expected="more: spans need room for their marks")
        return int(sizes[fit][-1])

    def made_from(self, part: str, seed: int) -> SpanSamples:
        return SpanSamples(self.texts.parts[part], self.marks, self.stretch, self.config.objective.spans.spans, seed)

    def batch(self, samples: SpanSamples, numbers: np.ndarray) -> PairBatch:
        sources, targets = zip(*samples.batch(numbers).pairs(), strict=True)
        return PairBatch.of(sources, targets, start=int(self.config.model.start))  # type: ignore[attr-defined]

    @cached_property
    def usual(self) -> float:
        """Tokens of source and target together."""
        numbers = np.arange(min(LENGTH_SAMPLES, self.learned.per_epoch))
        return float(np.add(*self.learned.lengths(numbers)).mean())

    @property
    def read(self) -> int:
        """Of source and target each, on average."""
        return max(1, round(self.usual / 2))
