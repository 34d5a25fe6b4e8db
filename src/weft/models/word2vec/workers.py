"""Threads that learn word vectors, block after block, each block by whichever thread is free.

Several threads change the same matrices without waiting for each other (Recht et al. 2011, "Hogwild!"): that is faster
and learns as well, but the last digits depend on the order of the threads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from weft.models.block_learning import BlockLosses
from weft.models.word2vec.examples import DOCUMENT_BORDER, Chances, Words
from weft.models.word2vec.learning import learner


class Workers:
    """Threads that learn blocks of words into one model.

    blocks(number)  the words of a block, as ids
    Sums are kept for each block in float64 and added in their order, so what is reported does not depend on the number
    of threads (gensim#2617).
    """

    def __init__(
        self, model: Any, chances: Chances, blocks: Callable[[int], Words], threads: int, first: int = 0
    ) -> None:
        self.blocks, self.chances, self.threads = blocks, chances, max(1, threads)
        self.first = first  # validation blocks have other draws than those of the text
        self.learn_block = learner(model, chances)

    def learn(self, numbers: Sequence[int], rate: float) -> BlockLosses:
        """All of these blocks, in order if there is one thread; rate 0 only measures."""
        found = np.zeros((len(numbers), 3))
        places = itertools.count()

        def work() -> None:
            while (place := next(places)) < len(numbers):
                words = self.blocks(numbers[place])
                base = self.chances.base(self.first + numbers[place])
                loss, examples = self.learn_block(words, rate, base)
                found[place] = loss, examples, np.count_nonzero(words != DOCUMENT_BORDER)

        if self.threads == 1:
            work()
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                for done in [pool.submit(work) for _ in range(self.threads)]:
                    done.result()
        return BlockLosses(math.fsum(found[:, 0]), int(found[:, 1].sum()), int(found[:, 2].sum()))
