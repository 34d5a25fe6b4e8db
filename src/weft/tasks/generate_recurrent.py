"""Training a recurrent model that writes: the same task, the text read in lanes whose state is carried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from weft.data import Lanes
from weft.errors import UnsupportedError
from weft.objectives import CarriedLoss, StretchBatch
from weft.tasks.generate import Generate, GenerateConfig, Reading, Sizes
from weft.tasks.preparation import Texts
from weft.tasks.start import LENGTH
from weft.training import AdamWConfig
from weft.training.resume import Carried

STRETCHES = 4  # that a lane has at least, so that there is something to carry


class GenerateRecurrent(Generate):
    """Predict the next token, with a state that goes on from step to step."""

    family = "lstm"
    families = ("rnn", "gru", "lstm")

    def reading(self, config: GenerateConfig, texts: Texts) -> Reading:
        return CarriedReading(config, texts)

    def sizes(self, flops: float, texts: Texts) -> Sizes:
        width, depth, length, lanes, dropout = next(rung[1:] for rung in LADDER if flops <= rung[0])
        tokens = len(texts.train)
        length = max(1, min(length, tokens // STRETCHES))
        lanes = max(1, min(lanes, tokens // (STRETCHES * length)))
        fields = {"width": width, "depth": depth, "dropout": dropout}
        rate = 1.5 / width  # the best of a few, at widths of 128 and 256
        return Sizes(fields, length, lanes * length, {"optimizer": AdamWConfig(learning_rate=rate, weight_decay=0.0)})


LADDER = (  # operations of training, then width, depth, tokens of a stretch, lanes, dropout
    (4e12, 128, 1, 64, 16, 0.0),
    (2e13, 192, 1, 64, 16, 0.0),
    (8e13, 256, 2, 64, 32, 0.0),
    (3e14, 384, 2, 64, 32, 0.1),
    (1e30, 512, 2, 128, 32, 0.2),
)


@dataclass
class CarriedReading(Reading):
    """Texts as tokens, read in as many lanes as a step has samples."""

    @property
    def loss(self) -> Callable[..., Any]:
        """A new one each time: whoever measures steps has states of their own."""
        return CarriedLoss(self.config.training.batch)

    def carried(self, loss: Callable[..., Any]) -> Carried | None:
        assert isinstance(loss, CarriedLoss)
        return loss

    @property
    def lanes(self) -> Lanes:
        training = self.config.training
        if training.sharded:
            raise UnsupportedError("training.sharded with a state that is carried", expected="whole weights")
        return Lanes(self.texts.train, self.length, training.batch, training.seed)

    @property
    def length(self) -> int:
        """Tokens in a stretch."""
        return self.config.data.length or LENGTH

    @property
    def per_epoch(self) -> int:
        return self.lanes.per_epoch

    def samples(self) -> Callable[[np.ndarray], StretchBatch]:
        lanes = self.lanes
        return lambda numbers: StretchBatch(*map(torch.from_numpy, lanes.batch(numbers)))


TASK = GenerateRecurrent()
