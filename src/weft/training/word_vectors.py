"""Training of word vectors: a run like any other (steps, log, checkpoints, signals, a plan by the clock), but a step is
some blocks of text, each learned word after word by whichever thread is free.

Draws and learning rates follow from the number of the block, so with one thread the same run gives the same bytes, also
after a kill. Several threads change the same matrices without waiting for each other (Recht et al. 2011, "Hogwild!"):
that is faster and learns as well, but the last digits depend on who was first.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.models.word2vec import Word2Vec
from weft.models.word2vec_examples import BORDER, Chances, Words
from weft.models.word2vec_learning import learner
from weft.training.trainer import Outcome, Trainer

FLOOR = 0.004  # the lowest learning rate, as a share of the first


@dataclass(frozen=True)
class Learned:
    """What blocks gave: the summed loss over all examples, their number, and how many words were read."""

    loss: float
    examples: int
    words: int


class Workers:
    """Threads that learn blocks of words into one model.

    blocks(number)  the words of a block, as ids
    Sums are kept for each block in float64 and added in their order, so what is reported does not depend on the number
    of threads (gensim#2617).
    """

    def __init__(
        self, model: Word2Vec, chances: Chances, blocks: Callable[[int], Words], threads: int, first: int = 0
    ) -> None:
        self.blocks, self.chances, self.threads = blocks, chances, max(1, threads)
        self.first = first  # draws of what is held out are others than those of the text
        self.learn_block = learner(model, chances)

    def learn(self, numbers: Sequence[int], rate: float) -> Learned:
        """All of these blocks, in order if there is one thread; rate 0 only measures."""
        found = np.zeros((len(numbers), 3))
        places = itertools.count()

        def work() -> None:
            while (place := next(places)) < len(numbers):
                words = self.blocks(numbers[place])
                base = self.chances.base(self.first + numbers[place])
                loss, examples = self.learn_block(words, rate, base)
                found[place] = loss, examples, np.count_nonzero(words != BORDER)

        if self.threads == 1:
            work()
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                for done in [pool.submit(work) for _ in range(self.threads)]:
                    done.result()
        return Learned(math.fsum(found[:, 0]), int(found[:, 1].sum()), int(found[:, 2].sum()))


class VectorTrainer(Trainer):
    """A trainer whose steps are `batch` blocks."""

    workers: Workers

    def train_with(self, workers: Workers) -> Outcome:
        """Train; the workers change the model's own weights."""
        self.workers = workers
        return self.train()

    def _evaluate(self) -> dict[str, float]:
        """The last weights are kept, not those that guess held-out text best: that is soon done, and vectors are still
        getting better then."""
        progress = self.progress
        progress.best, progress.goal = math.inf, -math.inf
        return super()._evaluate()

    def _step(self) -> dict[str, Any]:
        began = time.perf_counter()
        step, batch = self.progress.step, self.settings.batch
        rate = self.settings.optimizer.learning_rate * max(FLOOR, self.schedule.factor(step))
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
