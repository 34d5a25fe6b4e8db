"""The compiled loop of word2vec: blocks of words in, two matrices changed, the loss out. It computes what
`loss.py` says, one example after another, each with the weights after the last one.

numba compiles it at its first use and keeps the result on disk; it holds no lock of Python, so threads work on the same
matrices at once without waiting for each other (Recht et al. 2011, "Hogwild!"). Rows begin on cache lines (`lined_up`),
the inner loops are vectorised, and the loss needs one logarithm for hundreds of examples: the factors 1 + e^−|s| are
multiplied up first. Import this file only where numba is installed.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.models.word2vec.examples import DOCUMENT_BORDER, FIRST, GOLDEN, SECOND

logging.getLogger("numba").setLevel(logging.WARNING)
Floats = NDArray[np.float32]
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract", "nsz"},
    "error_model": "numpy",
}
_GOLDEN, _FIRST, _SECOND = np.uint64(GOLDEN), np.uint64(FIRST), np.uint64(SECOND)
_ONE, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_MAX_PRODUCT = 1e200  # of factors: one example more does not overflow
ZERO, UNIT = np.float32(0), np.float32(1)


@njit(**OPTIONS)
def _mixed(base, number):  # type: ignore[no-untyped-def]
    z = base + (number + _ONE) * _GOLDEN
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@njit(**OPTIONS)
def _scaled(bits, size):  # type: ignore[no-untyped-def]
    return np.int64(((bits >> _HALF) * np.uint64(size)) >> _HALF)


@njit(**OPTIONS)
def _stay(words, kept, base, stays, left, right):  # type: ignore[no-untyped-def]
    """The words that are not passed over, and for each the first and the last place of its document."""
    count = start = 0
    for i in range(len(words)):
        word = words[i]
        if word == DOCUMENT_BORDER:
            start = count
        elif np.uint32(_mixed(base, np.uint64(i)) >> _HALF) <= kept[word]:
            stays[count] = word
            left[count] = start
            count += 1
    last = count - 1
    for i in range(count - 1, -1, -1):
        right[i] = last
        if left[i] == i:
            last = i - 1
    return count


@njit(**OPTIONS)
def _draw(base, first, negative, table, center, words):  # type: ignore[no-untyped-def]
    """The right word and the negatives that are not the right word; how many they are."""
    words[0] = center
    count = 1
    for k in range(negative):
        bits = _mixed(base, np.uint64(first + k))
        place = _scaled(bits, len(table))
        word = place if np.uint32(bits & _LOW) < table[place, 0] else np.int64(table[place, 1])
        if word != center:
            words[count] = word
            count += 1
    return count


@njit(**OPTIONS)
def _learn(hidden, error, output, words, count, rate, gradients):  # type: ignore[no-untyped-def]
    """One example: all scores first, then the steps of the guessed words. `error` is the step of what they were
    guessed from. Gives the two parts of the loss: a sum and a product."""
    width = len(error)
    for t in range(count):
        row = words[t]
        score = ZERO
        for k in range(width):
            score += hidden[k] * output[row, k]
        gradients[t] = score
    total, product = ZERO, 1.0
    for t in range(count):
        score = gradients[t]
        small = np.exp(-abs(score))
        chance = UNIT / (UNIT + small)  # σ(|s|)
        product *= 1.0 + small
        if t == 0:
            total += max(-score, ZERO)
            gradients[t] = rate * (small * chance if score >= ZERO else chance)
        else:
            total += max(score, ZERO)
            gradients[t] = -rate * (chance if score >= ZERO else small * chance)
    for k in range(width):
        error[k] = ZERO
    for t in range(count):
        row, gradient = words[t], gradients[t]
        for k in range(width):
            error[k] += gradient * output[row, k]
    for t in range(count):  # apart from the above: a word may have been drawn twice
        row, gradient = words[t], gradients[t]
        for k in range(width):
            output[row, k] += gradient * hidden[k]
    return total, product


@njit(**OPTIONS)
def cbow(words, input, output, kept, table, window, negative, rate, base):  # type: ignore[no-untyped-def]
    """Learn a block of words; gives the summed loss and how many examples there were."""
    size, width = len(words), input.shape[1]
    stays, left, right = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    hidden, error = np.empty(width, np.float32), np.empty(width, np.float32)
    gradients, guessed = np.empty(negative + 1, np.float32), np.empty(negative + 1, np.int64)
    loss, product, examples = 0.0, 1.0, 0
    for p in range(_stay(words, kept, base, stays, left, right)):
        reach = window - _scaled(_mixed(base, np.uint64(size + p)), window)
        first, last = max(left[p], p - reach), min(right[p], p + reach)
        if first == last:
            continue
        for k in range(width):
            hidden[k] = ZERO
        for q in range(first, last + 1):
            if q != p:
                row = stays[q]
                for k in range(width):
                    hidden[k] += input[row, k]
        share = UNIT / np.float32(last - first)
        for k in range(width):
            hidden[k] *= share
        count = _draw(base, 2 * size + p * negative, negative, table, stays[p], guessed)
        total, factor = _learn(hidden, error, output, guessed, count, rate, gradients)
        for k in range(width):
            error[k] *= share
        for q in range(first, last + 1):
            if q != p:
                row = stays[q]
                for k in range(width):
                    input[row, k] += error[k]
        loss += total
        product *= factor
        if product > _MAX_PRODUCT:
            loss += np.log(product)
            product = 1.0
        examples += 1
    return loss + np.log(product), examples


@njit(**OPTIONS)
def skipgram(words, input, output, kept, table, window, negative, rate, base):  # type: ignore[no-untyped-def]
    """The same; the place of a context word decides which draws are its own."""
    size, width = len(words), input.shape[1]
    stays, left, right = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    error, gradients = np.empty(width, np.float32), np.empty(negative + 1, np.float32)
    guessed = np.empty(negative + 1, np.int64)
    loss, product, examples = 0.0, 1.0, 0
    for p in range(_stay(words, kept, base, stays, left, right)):
        reach = window - _scaled(_mixed(base, np.uint64(size + p)), window)
        for q in range(max(left[p], p - reach), min(right[p], p + reach) + 1):
            if q == p:
                continue
            row = stays[q]
            place = 2 * size + (p * (2 * window + 1) + q - p + window) * negative
            count = _draw(base, place, negative, table, stays[p], guessed)
            total, factor = _learn(input[row], error, output, guessed, count, rate, gradients)
            for k in range(width):
                input[row, k] += error[k]
            loss += total
            product *= factor
            if product > _MAX_PRODUCT:
                loss += np.log(product)
                product = 1.0
            examples += 1
    return loss + np.log(product), examples
