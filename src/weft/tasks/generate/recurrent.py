"""Training a recurrent model that writes: the same task, the text read in streams whose state is carried."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from torch import nn

from weft.data import ContiguousStreams
from weft.errors import UnsupportedError
from weft.models import Budget, CarriesState, Sizing
from weft.objectives import RecurrentLoss, StretchBatch
from weft.tasks import planning
from weft.tasks.experiment import Origin
from weft.tasks.generate.task import Generate, GenerateConfig, Sizes, TextExperiment
from weft.tasks.preparation import TokenisedSplits
from weft.tasks.start import DEFAULT_WINDOW_TOKENS

MIN_WINDOWS_PER_STREAM = 4  # that a stream has at least, so that there is something to carry


class GenerateRecurrent(Generate):
    """Predict the next token, with a state that is carried from step to step (truncated BPTT)."""

    capabilities = (CarriesState,)
    turn = None

    def reading(self, config: GenerateConfig, texts: TokenisedSplits, origin: Origin) -> TextExperiment:
        return RecurrentTextExperiment(config, texts, origin)

    def sizes(self, sizing: Sizing, flops: float, texts: TokenisedSplits) -> Sizes:
        size, tokens = sizing.choose(Budget(flops)), len(texts.train)
        length = max(1, min(size.length, tokens // MIN_WINDOWS_PER_STREAM))
        streams = max(1, min(size.batch, tokens // (MIN_WINDOWS_PER_STREAM * length)))
        return Sizes(size.model, length, streams * length, sizing.training)


@dataclass
class RecurrentTextExperiment(TextExperiment):
    """Texts as tokens, read in as many streams as a step has samples."""

    @cached_property
    def carried(self) -> RecurrentLoss:
        return RecurrentLoss(self.config.training.batch)

    def loss(self, model: nn.Module, batch: Any) -> tuple[Any, ...]:
        return self.carried(cast("Any", model), batch)

    def seconds_per_step(self) -> float:
        """With states that are thrown away too."""
        model, training = self.config.model.build(), self.config.training
        return planning.seconds_per_step(model, training, self.samples, RecurrentLoss(training.batch))

    @cached_property
    def streams(self) -> ContiguousStreams:
        training = self.config.training
        if training.sharded:
            raise UnsupportedError("training.sharded with a state that is carried", expected="whole weights")
        return ContiguousStreams(self.texts.train, self.length, training.batch, training.seed)

    @property
    def length(self) -> int:
        """Tokens in a stretch."""
        return self.config.data.length or DEFAULT_WINDOW_TOKENS

    @property
    def per_epoch(self) -> int:
        return self.streams.per_epoch

    def samples(self, numbers: np.ndarray) -> StretchBatch:
        return StretchBatch.of(self.streams.batch(numbers), self.streams.count)


TASK = GenerateRecurrent()
