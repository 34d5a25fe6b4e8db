"""Training of word vectors: a run like any other (steps, log, checkpoints, signals, a plan by the clock), but a step is
some blocks of text, each learned word after word by whichever thread is free.

Draws and learning rates follow from the number of the block, so with one thread the same run gives the same bytes, also
after a kill.
"""

from __future__ import annotations

import math
import time
from typing import Any, NoReturn

from weft.models.base import Model
from weft.models.block_learning import LearnsBlocks
from weft.training.trainer import Trainer

MIN_RATE_SHARE = 0.004  # the lowest learning rate, as a share of the first


def _no_samples(*_: Any) -> NoReturn:
    raise AssertionError("word vectors are learned block by block")


class VectorTrainer(Trainer):
    """A trainer whose steps are `batch` blocks."""

    def __init__(self, model: Model, *, workers: LearnsBlocks, **rest: Any) -> None:
        """The workers change the model's own weights."""
        super().__init__(model, samples=_no_samples, loss=_no_samples, **rest)
        self.workers = workers

    def _evaluate(self) -> dict[str, float]:
        """The last weights are kept, not those that guess validation text best: the vectors still get better
        when that loss does not."""
        progress = self.progress
        progress.best, progress.goal = math.inf, -math.inf
        return super()._evaluate()

    def _step(self) -> dict[str, Any]:
        began = time.perf_counter()
        step, batch = self.progress.step, self.settings.batch
        rate = self.settings.optimizer.learning_rate * max(MIN_RATE_SHARE, self.schedule.factor(step))
        done = self.workers.learn(range(step * batch, (step + 1) * batch), rate)
        loss = done.loss / max(1, done.examples)
        if not math.isfinite(loss):
            self._refuse(step, loss, math.nan)
        self.progress.step += 1
        self.progress.tokens += done.words
        return {
            "step": self.progress.step,
            "tokens": self.progress.tokens,
            "loss": loss,
            "examples": done.examples,
            "learning_rate": rate,
            "seconds": time.perf_counter() - began,
        }
