"""Learners of word2vec: the compiled loop where numba is installed, else numpy, which is some hundred times slower and
computes the same. A full softmax is always numpy's: its time goes into products of all words."""

from __future__ import annotations

import importlib.util
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from weft.models.word2vec.examples import Chances, Words

CACHE_LINE_NUMBERS = 16  # float32 numbers of 64 bytes
Floats = NDArray[np.floating[Any]]


class Learner(Protocol):
    """Learns a block of words with a learning rate (0: only measures); gives the summed loss and how many examples."""

    def __call__(self, words: Words, rate: float, base: int) -> tuple[float, int]: ...


def has_loop() -> bool:
    """Whether the compiled loop is available."""
    return importlib.util.find_spec("numba") is not None


def learner(model: Any, chances: Chances) -> Learner:
    """The learner that changes the weights of this model in place; it is fast if they are `lined_up`."""
    if model.config.negative and has_loop() and model.input.weight.dtype == torch.float32:
        return _Compiled(model, chances)
    return _Plain(model, chances)


def lined_up(weight: torch.Tensor) -> torch.Tensor:
    """The same table with rows that begin on cache lines; the padding between them stays zero."""
    rows, width = weight.shape
    across = -(-width // CACHE_LINE_NUMBERS) * CACHE_LINE_NUMBERS
    room = torch.zeros(rows * across + CACHE_LINE_NUMBERS)
    begin = -(room.data_ptr() // 4) % CACHE_LINE_NUMBERS
    whole = room[begin : begin + rows * across].view(rows, across)
    whole[:, :width] = weight
    return whole[:, :width]


def _array(weight: torch.Tensor) -> Floats:
    """The rows as numpy sees them, with the zeros between them where there are any."""
    rows, across = weight.shape[0], weight.stride(0)
    whole = weight.detach().as_strided((rows, across), (across, 1))
    found: Floats = whole.numpy()
    return found


class _Compiled:
    def __init__(self, model: Any, chances: Chances) -> None:
        from weft.models.word2vec import kernel as word2vec_kernel

        config = model.config
        self.loop = word2vec_kernel.skipgram if config.alone else word2vec_kernel.cbow
        self.arrays = _array(model.input.weight), _array(model.output.weight), chances.kept, chances.table
        self.window, self.negative = config.window, config.negative

    def __call__(self, words: Words, rate: float, base: int) -> tuple[float, int]:
        loss, count = self.loop(words, *self.arrays, self.window, self.negative, np.float32(rate), np.uint64(base))
        return float(loss), int(count)


class _Plain:
    def __init__(self, model: Any, chances: Chances) -> None:
        self.chances, self.negative = chances, model.config.negative
        self.input, self.output = _array(model.input.weight), _array(model.output.weight)

    def __call__(self, words: Words, rate: float, base: int) -> tuple[float, int]:
        examples = self.chances.examples(words, base)
        learn = self._against_some if self.negative else self._against_all
        loss = 0.0
        for n in range(len(examples.words)):
            context = examples.context[n, examples.context_keep[n]]
            hidden = self.input[context].mean(0)
            value, error = learn(hidden, examples.words[n, examples.words_keep[n]], rate)
            loss += value
            np.add.at(self.input, context, error / len(context))
        return loss, len(examples.words)

    def _against_some(self, hidden: Floats, words: NDArray[np.int64], rate: float) -> tuple[float, Floats]:
        """The right word, the first, against negatives: the loss, and the step of `hidden`."""
        rows = self.output[words]
        scores = rows @ hidden
        signs = np.full_like(scores, -1.0)
        signs[0] = 1.0
        loss = np.logaddexp(0, -signs * scores)
        gradients = rate * signs * -np.expm1(-loss)  # 1 − σ(±s)
        np.add.at(self.output, words, gradients[:, None] * hidden)
        return float(loss.sum(dtype=np.float64)), gradients @ rows

    def _against_all(self, hidden: Floats, words: NDArray[np.int64], rate: float) -> tuple[float, Floats]:
        """The right word against all others."""
        scores = self.output @ hidden
        scores -= scores.max()
        shares = np.exp(scores)
        whole = shares.sum()
        gradients = shares * (-rate / whole)
        gradients[words[0]] += rate
        step = gradients @ self.output
        self.output += gradients[:, None] * hidden
        return float(np.log(whole) - scores[words[0]]), step
