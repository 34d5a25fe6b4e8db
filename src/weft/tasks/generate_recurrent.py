"""Training a recurrent model that writes: the same task, the text read in lanes whose state is carried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.data import Lanes
from weft.errors import UnsupportedError
from weft.objectives import CarriedLoss, StretchBatch
from weft.tasks.generate import Generate, GenerateConfig, Reading, Sizes
from weft.tasks.preparation import Texts
from weft.tasks.start import LENGTH
from weft.training import MuonConfig
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
        return Sizes(fields, length, lanes * length, LEARNING)


LADDER = (  # operations of training, then width, depth, tokens of a stretch, lanes, dropout
    (4e12, 128, 2, 64, 32, 0.0),
    (2e13, 192, 2, 64, 32, 0.0),
    (8e13, 256, 2, 32, 64, 0.0),
    (3e14, 384, 2, 64, 64, 0.1),
    (3e15, 512, 2, 64, 64, 0.2),
    (1e30, 1024, 2, 64, 64, 0.3),
)
# Characters of Shakespeare, a layer of width 256, 200 steps of 32 lanes, held out: AdamW 2.00 nats (the best of five
# rates), Muon 1.93, Muon with each gate as a matrix of its own 1.82, in two thirds more time; 1.78 with 64 lanes of 32
# tokens instead of 32 of 64. Two layers of width 128 reach 1.84 in half the time. Larger sizes were not compared.
LEARNING = {"optimizer": MuonConfig(learning_rate=0.03, embedding_rate=0.05)}


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
        return lambda numbers: StretchBatch.of(lanes.batch(numbers), lanes.count)


TASK = GenerateRecurrent()
