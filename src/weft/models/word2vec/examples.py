"""Training examples of word2vec: subsampling of frequent words, random window sizes, and negative samples.

Every draw is a pure function of the seed, the block and a counter (SplitMix64, Steele et al. 2014), so examples do not
depend on which thread works on which block. The compiled loop draws the same numbers one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int32]
Flags = NDArray[np.bool_]
DOCUMENT_BORDER = -1  # between two documents: no context reaches across it
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
MASK_64_BITS = (1 << 64) - 1


def hash_pair(base: int, number: int) -> int:
    """The draw with this number: 64 pseudo-random bits."""
    z = (base + (number + 1) * GOLDEN) & MASK_64_BITS
    z = ((z ^ (z >> 30)) * FIRST) & MASK_64_BITS
    z = ((z ^ (z >> 27)) * SECOND) & MASK_64_BITS
    return z ^ (z >> 31)


def hash_many(base: int, numbers: NDArray[np.integer]) -> NDArray[np.uint64]:
    """The same for many numbers at once."""
    z = np.uint64(base) + (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class Word2VecExamples:
    """Context words and what is to be guessed from them: the right word first, then negatives; `keep` marks the real
    ones.

    context (N, C), words (N, 1 + negative)
    """

    context: NDArray[np.int64]
    context_keep: Flags
    words: NDArray[np.int64]
    words_keep: Flags


class Chances:
    """Subsampling and negative-sampling probabilities of each word, from its frequency."""

    def __init__(self, counts: NDArray[np.int64], config: Any, seed: int) -> None:
        self.config, self.seed = config, hash_pair(seed, 0)
        share = counts / max(1, counts.sum())
        kept = np.ones(len(counts))
        if config.sample:
            excess = np.maximum(share, 1e-300) / config.sample
            kept = np.minimum(1.0, (np.sqrt(excess) + 1) / excess)  # word2vec.c's; the paper prints √(t/f)
        self.kept = np.ceil(kept * 2**32 - 1).astype(np.uint32)
        self.table = alias_table(counts.astype(np.float64) ** config.power)

    def base(self, block: int) -> int:
        """The seed of a block's draws."""
        return hash_pair(self.seed, block)

    def examples(self, words: Words, base: int) -> Word2VecExamples:
        """All examples of a block; `words` are ids, with `DOCUMENT_BORDER` between documents."""
        window, negative, count = self.config.window, self.config.negative, len(words)
        is_word = words != DOCUMENT_BORDER
        stays = is_word & ((hash_many(base, np.arange(count)) >> np.uint64(32)) <= self.kept[words])
        document = np.cumsum(~is_word)[stays]
        kept = words[stays].astype(np.int64)
        places = np.arange(len(kept))
        reach = window - scaled(hash_many(base, count + places), window)
        offsets = np.delete(np.arange(-window, window + 1), window)
        others = places[:, None] + offsets
        inside = (others >= 0) & (others < len(kept)) & (np.abs(offsets) <= reach[:, None])
        others = np.clip(others, 0, max(0, len(kept) - 1))
        inside &= document[others] == document[:, None]
        if self.config.alone:
            center, slot = np.nonzero(inside)
            first = (center * (2 * window + 1) + offsets[slot] + window) * negative
            context, context_keep = kept[others[center, slot]][:, None], np.ones((len(center), 1), dtype=bool)
        else:
            center = np.flatnonzero(inside.any(1))
            first = center * negative
            context_keep = inside[center]
            context = np.where(context_keep, kept[others[center]], 0)
        drawn = self.drawn(hash_many(base, 2 * count + first[:, None] + np.arange(negative)))
        right = kept[center][:, None]
        return Word2VecExamples(
            context,
            context_keep,
            np.concatenate([right, drawn], axis=1),
            np.concatenate([np.ones_like(right, dtype=bool), drawn != right], axis=1),
        )

    def drawn(self, bits: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Negatives: the upper half of the bits picks a place of the table, the lower decides between its two words."""
        place = scaled(bits, len(self.table))
        own = (bits & np.uint64(0xFFFFFFFF)) < self.table[place, 0]
        return np.where(own, place, self.table[place, 1].astype(np.int64))


def scaled(bits: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    """A number from 0 … size − 1 by the upper half of the bits."""
    return (((bits >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32)).astype(np.int64)


def alias_table(weights: NDArray[np.float64]) -> NDArray[np.uint32]:
    """(V, 2): to draw words by weight, pick a place; below the first entry (of 2³²) it is that word, else the second
    entry's (Walker 1977). Each draw takes the same time, however large the vocabulary."""
    size = len(weights)
    heights = weights * (size / weights.sum())
    table = np.stack([np.full(size, 2**32 - 1, dtype=np.uint32), np.arange(size, dtype=np.uint32)], axis=1)
    low = [i for i in range(size) if heights[i] < 1]
    high = [i for i in range(size) if heights[i] >= 1]
    while low and high:
        short, tall = low.pop(), high[-1]
        table[short] = min(2**32 - 1, int(heights[short] * 2**32)), tall
        heights[tall] -= 1 - heights[short]
        if heights[tall] < 1:
            low.append(high.pop())
    return table
