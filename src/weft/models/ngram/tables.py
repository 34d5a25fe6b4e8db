"""The tables of a count model, and how they are read: which n-grams there are, and what each says.

Level m holds the n-grams of m tokens as a tree: those that begin with the same m − 1 tokens (their history) lie
together, in the order of their last token, and `starts` says where. So an n-gram is found by walking: its place in
level m follows from the place of its history in level m − 1. A whole text is looked up level by level with arrays.

    p(w | h) = probability of h w, if that was seen; else backoff of h × p(w | h without its first token)

Everything is float64 and not in logarithms, so that the shares of all tokens add up to 1 to the last digits.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
MIN_TOKENS_FOR_LOOPS = 200_000  # for fewer, loading the compiled loops takes longer than they save
TOKENS_PER_LOOKUP = 1 << 20  # bounds the memory of a long text


@functools.cache
def has_loops() -> bool:
    """Whether numba is installed."""
    return importlib.util.find_spec("numba") is not None


def loops(count: int) -> Any | None:
    """The compiled loops if they are worth it for so many tokens and installed."""
    if count < MIN_TOKENS_FOR_LOOPS or not has_loops():
        return None
    from weft.models.ngram import loops as compiled

    return compiled


@dataclass(frozen=True)
class Level:
    """N n-grams of one length, C histories.

    tokens        (N) the last token of each
    starts        (C + 1) the followers of history c are at starts[c] … starts[c + 1]
    probability   (N) of the last token after the others
    backoff       (N) what remains for tokens that never followed the n-gram, times what the shorter one says;
                  none (0) in the last level
    """

    tokens: Ints
    starts: Ints
    probability: Floats
    backoff: Floats

    @property
    def parents(self) -> NDArray[np.int64]:
        """(N) the history of each n-gram."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def find(self, histories: Ints, words: Ints) -> NDArray[np.int64]:
        """Where the n-gram of each history (−1: none) and word is in the table; −1: it was not seen."""
        compiled = loops(len(words))
        if compiled is not None:
            found = np.empty(len(words), dtype=np.int64)
            compiled.find_followers(self.starts, self.tokens, histories, words, found)
            return found
        return _find(self.starts, self.tokens, histories, words)


def _find(starts: Ints, tokens: Ints, histories: Ints, words: Ints) -> NDArray[np.int64]:
    """Binary search in all ranges at once."""
    found = np.full(len(words), -1, dtype=np.int64)
    asked = np.flatnonzero(histories >= 0)
    wanted = words[asked]
    low = starts[histories[asked]].astype(np.int64)
    high = starts[histories[asked] + 1].astype(np.int64)
    after = high.copy()
    left = np.flatnonzero(low < high)
    while left.size:
        middle = (low[left] + high[left]) // 2
        below = tokens[middle] < wanted[left]
        low[left[below]] = middle[below] + 1
        high[left[~below]] = middle[~below]
        left = left[low[left] < high[left]]
    inside = low < after
    hit = inside.copy()
    hit[inside] = tokens[low[inside]] == wanted[inside]
    found[asked[hit]] = low[hit]
    return found


@dataclass(frozen=True)
class NGramTables:
    """All levels, from single tokens to the longest n-grams.

    end       the token that ends a text: histories do not reach across it. None: there is none
    chained   whether a history that is not there is replaced by a shorter one; else every token is equally likely
    """

    levels: Sequence[Level]
    end: int | None = None
    chained: bool = True

    @property
    def order(self) -> int:
        return len(self.levels)

    @property
    def vocab_size(self) -> int:
        return len(self.levels[0].tokens)

    @property
    def size(self) -> int:
        """How many numbers there are to know: a probability for each n-gram, a backoff for each that begins a longer
        one."""
        return sum(len(level.probability) + len(level.backoff) for level in self.levels)

    # -- walking through texts ----------------------------------------------------------------

    def reach(self, ids: Ints, fresh: Ints | None = None) -> NDArray[np.int64]:
        """How many tokens of the same text come before each token; `fresh` are positions where a text begins."""
        places = np.arange(len(ids))
        borders = np.zeros(len(ids), dtype=np.int64)
        if fresh is not None:
            borders[fresh] = fresh
        if self.end is not None and len(ids) > 1:
            ended = np.flatnonzero(ids[:-1] == self.end)
            if fresh is not None:
                ended = ended[~np.isin(ended + 1, fresh)]
            borders[ended + 1] = ended
        return np.minimum(places - np.maximum.accumulate(borders), self.order - 1)

    def walk(self, ids: Ints, reach: Ints, levels: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each of the first levels: the row of each token's history, and of the n-gram that ends with it.

        −1: it was not seen, or it would reach too far back. The history of a single token is nothing, which is there.
        """
        places = ids.astype(np.int64)
        yield np.zeros_like(places), places
        for length in range(2, levels + 1):
            histories = np.full_like(places, -1)
            histories[1:] = places[:-1]
            histories[reach < length - 1] = -1
            places = self.levels[length - 1].find(histories, ids)
            yield histories, places

    def probabilities(self, ids: Ints, fresh: Ints | None = None) -> Floats:
        """Of each token after those before it; `fresh` are places where a text begins."""
        reach = self.reach(ids, fresh)
        result = np.zeros(len(ids))
        for length, (histories, places) in enumerate(self.walk(ids, reach, self.order), 1):
            if not self.chained:
                result[reach >= length - 1] = 1 / self.vocab_size
            if length > 1:
                known = np.flatnonzero(histories >= 0)
                result[known] *= self.levels[length - 2].backoff[histories[known]]
            seen = np.flatnonzero(places >= 0)
            result[seen] = self.levels[length - 1].probability[places[seen]]
        return result

    def nats(self, ids: Ints) -> float:
        """The summed negative log-probability of every token but the first; infinite if one cannot be."""
        total = 0.0
        for start in range(1, len(ids), TOKENS_PER_LOOKUP):
            first = max(0, start - self.order + 1)
            found = self.probabilities(np.asarray(ids[first : start + TOKENS_PER_LOOKUP]))[start - first :]
            with np.errstate(divide="ignore"):
                total -= float(np.log(found).sum())
        return total

    # -- what may come next -------------------------------------------------------------------

    def next_shares(self, ids: Ints, fresh: Ints, asked: Ints) -> Floats:
        """Probabilities of all tokens after the tokens at the positions `asked`: (asked, V)."""
        reach = self.reach(ids, fresh)
        places = [place[asked] for _, place in self.walk(ids, reach, self.order - 1)] if self.order > 1 else []
        ends = np.zeros(len(asked), dtype=bool) if self.end is None else ids[asked] == self.end
        behind = np.where(ends, 1, reach[asked] + 1)  # tokens to look back at, the asked one among them
        shares = np.repeat(self.levels[0].probability[None], len(asked), axis=0)
        for length, place in enumerate(places, 1):
            there = behind >= length
            if not self.chained:
                shares[there] = 1 / self.vocab_size
            rows = np.flatnonzero(there & (place >= 0))
            shares[rows] *= self.levels[length - 1].backoff[place[rows]][:, None]
            self._spread(shares, rows, self.levels[length], place[rows])
        return shares

    @staticmethod
    def _spread(shares: Floats, rows: Ints, level: Level, histories: Ints) -> None:
        """Write the probabilities of all followers of each history into its row."""
        starts = level.starts[histories].astype(np.int64)
        counts = level.starts[histories + 1].astype(np.int64) - starts
        before = np.cumsum(counts) - counts
        flat = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
        shares[np.repeat(rows, counts), level.tokens[flat]] = level.probability[flat]
