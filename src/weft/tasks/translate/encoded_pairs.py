"""Pairs of texts as tokens: each with the token that ends it, and cut where it is too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.data.by_tokens import ByTokens
from weft.data.keyed_draws import KeyedDraws
from weft.data.order import hash_numbers
from weft.data.parallel import Pairs
from weft.data.subword_regularisation import SubwordRegularisation
from weft.objectives.text_to_text import PairBatch
from weft.text import Tokenizer

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of both sides; mostly they are one."""

    source: Tokenizer
    target: Tokenizer

    @property
    def are_one(self) -> bool:
        return self.source is self.target


def with_end(tokenizer: Tokenizer, texts: Sequence[str], longest: int) -> tuple[list[Ids], int]:
    """The tokens of each text and its end; and how many texts were cut."""
    found, cut = [], 0
    for ids in tokenizer.encode_batch(texts):
        cut += len(ids) >= longest
        found.append(np.append(ids[: longest - 1], tokenizer.end).astype(np.int64))
    return found, cut


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """Tokens of sources and targets; `cut` is the share of texts that were too long."""

    sources: list[Ids]
    targets: list[Ids]
    cut: float = 0.0

    @classmethod
    def of(cls, pairs: Pairs, tokenizers: TokenizerPair, longest: int) -> EncodedPairs:
        """The pairs, each side by its tokenizer."""
        sources, first = with_end(tokenizers.source, pairs.sources, longest)
        targets, second = with_end(tokenizers.target, pairs.targets, longest)
        return cls(sources, targets, (first + second) / (2 * max(1, len(pairs))))

    def __len__(self) -> int:
        return len(self.sources)

    def __repr__(self) -> str:
        return f"EncodedPairs({len(self)} pairs)"

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(N, 2): tokens of each source and target."""
        return np.array([[len(s), len(t)] for s, t in zip(self.sources, self.targets, strict=True)], dtype=np.int64)

    @property
    def tokens(self) -> int:
        """Of both sides together."""
        return int(self.lengths.sum())

    def batch(self, places: Sequence[int] | Ids, start: int) -> PairBatch:
        """These pairs as they are."""
        return PairBatch.of([self.sources[n] for n in places], [self.targets[n] for n in places], start=start)


def varied_batches(
    pairs: EncodedPairs,
    tokenizers: TokenizerPair,
    *,
    tokens: int,
    share: float,
    longest: int,
    start: int,
    seed: int,
) -> tuple[ByTokens, Callable[[np.ndarray], PairBatch]]:
    """Bunches of pairs by a budget of tokens, and what gives those with some numbers as one batch.

    A share of the sub-words is spelled in smaller pieces, in each epoch others. What would become too long stays.
    """
    order = ByTokens(pairs.lengths, tokens, seed)
    first = SubwordRegularisation.of(tokenizers.source)
    tables = (first, first if tokenizers.are_one else SubwordRegularisation.of(tokenizers.target))
    chances = (KeyedDraws(hash_numbers(seed, 1)), KeyedDraws(hash_numbers(seed, 2)))

    def spelled(texts: list[Ids], numbers: Ids, side: int) -> list[Ids]:
        if share == 0:
            return texts
        flat, whose = np.concatenate(texts), np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        new, old = tables[side].respelled(flat, whose, numbers, share, chances[side])
        lengths = np.bincount(whose[old], minlength=len(texts))
        parts = np.split(new, np.cumsum(lengths)[:-1])
        return [part if len(part) <= longest else text for part, text in zip(parts, texts, strict=True)]

    def batch(numbers: np.ndarray) -> PairBatch:
        length_buckets = [order[number] for number in numbers]
        epochs = np.repeat(np.asarray(numbers) // order.per_epoch, [len(bucket) for bucket in length_buckets])
        places = np.concatenate(length_buckets)
        sample = places + epochs * len(pairs)
        sources = spelled([pairs.sources[n] for n in places], sample, 0)
        return PairBatch.of(sources, spelled([pairs.targets[n] for n in places], sample, 1), start=start)

    return order, batch
