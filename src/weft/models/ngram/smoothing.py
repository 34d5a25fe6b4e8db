"""Smoothing: how counts become probabilities, so that what was never seen is not impossible.

Every way fills the same tables (`tables.py`): a probability for each n-gram that was seen, and for each history
what remains for the tokens that never followed it. Below the single tokens lies the uniform distribution, so that
every token of the vocabulary has a share, except under maximum likelihood.

Chen and Goodman 1998, "An Empirical Study of Smoothing Techniques for Language Modeling".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from weft.config import Choice, Positive, Share
from weft.errors import ConfigError, UnsupportedError
from weft.models.ngram.counts import Counted
from weft.models.ngram.tables import Floats, Ints, Level, NGramTables

Whole = NDArray[np.int64]
DEFAULT_DISCOUNTS = (0.5, 1.0, 1.5)  # discounts where there are too few n-grams to estimate them
K_CANDIDATES = tuple(float(f"{value:.3g}") for value in np.logspace(-5, 1, 61))  # values of k
MAX_EM_ROUNDS = 500  # of expectation and maximisation
EM_TOLERANCE = 1e-5  # they end when no weight changes by more


class SmoothingConfig(Choice):
    """How probability is moved from n-grams that were seen to those that were not; `SmoothingConfig.registry` lists the
    ways."""

    chained: ClassVar[bool] = True  # an unseen history is replaced by a shorter one
    counts: ClassVar[bool] = True  # else its probabilities come from an imported file

    def fitted(self, counted: Sequence[Counted], validation: Ints, end: int | None) -> SmoothingConfig:
        """The same with its open numbers chosen on validation tokens."""
        return self

    def check_order(self, order: int) -> None:
        """Refuse numbers that are meant for n-grams of another length."""

    def counted_as(self, counted: Sequence[Counted], length: int) -> Whole:
        """What counts for the n-grams of a length: how often they occur."""
        return counted[length - 1].counts

    def shares(self, level: Counted, counts: Whole, length: int, size: int) -> tuple[Floats, Floats]:
        """(N) what each n-gram has by itself, (C) what each history leaves to the shorter one.

        `counts` are those of `counted_as`, `size` is the size of the vocabulary.
        """
        raise UnsupportedError(f"smoothing kind {self.kind!r} has no shares of its own")

    def tables(self, counted: Sequence[Counted], end: int | None = None) -> NGramTables:
        """The tables of a model with these counts."""
        size = len(counted[0].tokens)
        levels: list[Level] = []
        below: Floats = np.full(1, 1 / size)
        for length, level in enumerate(counted, 1):
            own, left = self.shares(level, self.counted_as(counted, length), length, size)
            if levels:  # what a history leaves is kept with it, one level below
                levels[-1] = replace(levels[-1], backoff=np.where(np.diff(level.starts) > 0, left, 1.0))
            lower = below[level.shorter] if self.chained else 1 / size
            below = own + left[level.parents] * lower
            levels.append(Level(level.tokens, _narrow(level.starts), below, np.empty(0)))
        return NGramTables(levels, end, self.chained)


def _narrow(starts: Whole) -> NDArray[Any]:
    return starts.astype(np.int32) if starts[-1] < 2**31 else starts


def _divided(above: NDArray[Any], below: NDArray[Any]) -> Floats:
    """above / below, and 0 where there is nothing to divide by."""
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)


class MaximumLikelihoodConfig(SmoothingConfig, kind="maximum-likelihood", aliases=("ml", "mle", "none")):
    """How often a token followed its history, of all tokens that did.

    What never followed it is impossible. After a history that was never seen, the next shorter one decides.
    """

    def shares(self, level: Counted, counts: Whole, length: int, size: int) -> tuple[Floats, Floats]:
        totals = level.sums(counts)
        return _divided(counts, totals[level.parents]), np.zeros(len(totals))


class AddKConfig(SmoothingConfig, kind="add-k", aliases=("laplace", "lidstone")):
    """(count + k) / (count of the history + k · vocabulary), as if each token had followed k times more (Lidstone).

    `k`: None is the value that predicts the validation text best. After a history that was never seen, all tokens are
    equally likely: there is no backoff to shorter histories.
    """

    chained: ClassVar[bool] = False

    k: Positive | None = None

    def shares(self, level: Counted, counts: Whole, length: int, size: int) -> tuple[Floats, Floats]:
        extra = (self.k or 1.0) * size
        totals: Floats = level.sums(counts).astype(np.float64)
        return counts / (totals + extra)[level.parents], extra / (totals + extra)

    def fitted(self, counted: Sequence[Counted], validation: Ints, end: int | None) -> SmoothingConfig:
        if self.k is not None or len(validation) < 2:
            return self
        size = len(counted[0].tokens)
        seen, after = np.zeros(len(validation)), np.zeros(len(validation))
        for reaches, histories, places, level in _matches(counted, validation, end):
            seen[reaches] = np.where(places >= 0, level.counts[places], 0)[reaches]
            after[reaches] = np.where(histories >= 0, level.sums(level.counts)[histories], 0)[reaches]
        losses = [-np.log((seen[1:] + k) / (after[1:] + k * size)).sum() for k in K_CANDIDATES]
        return AddKConfig(k=K_CANDIDATES[int(np.argmin(losses))])


class JelinekMercerConfig(SmoothingConfig, kind="jelinek-mercer", aliases=("interpolated",)):
    """A mixture of what histories of all lengths say: weight · (count / count of the history) + (1 − weight) ·
    what the shorter one says.

    `weights`: one for each length of n-grams, from single tokens on; empty: those that predict the validation text
    best, found by expectation and maximisation (Jelinek and Mercer 1980).
    """

    weights: tuple[Share, ...] = ()

    def check_order(self, order: int) -> None:
        if self.weights and len(self.weights) != order:
            raise ConfigError(
                f"{len(self.weights)} smoothing weights for n-grams of 1 … {order} tokens", expected=f"{order} of them"
            )
        if any(weight == 1 for weight in self.weights):
            raise ConfigError("a smoothing weight of 1", expected="less than 1: unseen tokens need some probability")

    def shares(self, level: Counted, counts: Whole, length: int, size: int) -> tuple[Floats, Floats]:
        weight = self.weights[length - 1] if self.weights else 0.5
        totals = level.sums(counts)
        return weight * _divided(counts, totals[level.parents]), np.full(len(totals), 1 - weight)

    def fitted(self, counted: Sequence[Counted], validation: Ints, end: int | None) -> SmoothingConfig:
        if self.weights or len(validation) < 2:
            return self
        size, said, known = len(counted[0].tokens), [], []
        for reaches, histories, places, level in _matches(counted, validation, end):
            after = np.where(histories >= 0, level.sums(level.counts)[histories], 0)
            said.append(_divided(np.where(places >= 0, level.counts[places], 0), after)[1:])
            known.append(((after > 0) & reaches)[1:])
        weights = np.full(len(counted), 0.5)
        for _ in range(MAX_EM_ROUNDS):
            earlier = weights.copy()
            mixed = [np.full(len(validation) - 1, 1 / size)]
            for weight, own, here in zip(weights, said, known, strict=True):
                mixed.append(np.where(here, weight * own + (1 - weight) * mixed[-1], mixed[-1]))
            asked = np.ones(len(validation) - 1)  # how much of each token's probability comes from this length or below
            for n in reversed(range(len(counted))):
                taken = np.where(known[n], asked * weights[n] * said[n] / mixed[n + 1], 0.0)
                weights[n] = taken.sum() / max(asked[known[n]].sum(), 1e-300)
                asked = asked - taken
            if np.abs(weights - earlier).max() < EM_TOLERANCE:
                break
        return JelinekMercerConfig(weights=tuple(float(f"{w:.6g}") for w in weights.clip(1e-6, 1 - 1e-6)))


class WittenBellConfig(SmoothingConfig, kind="witten-bell"):
    """Unseen tokens get as much as there were different tokens T after the history: T / (count + T)
    (Witten and Bell 1991, method C). Nothing has to be chosen."""

    def shares(self, level: Counted, counts: Whole, length: int, size: int) -> tuple[Floats, Floats]:
        totals, kinds = level.sums(counts), level.sums((counts > 0).astype(np.int64))
        return _divided(counts, (totals + kinds)[level.parents]), _divided(kinds, totals + kinds)


class KneserNeyConfig(SmoothingConfig, kind="kneser-ney", aliases=("modified-kneser-ney",)):
    """Modified Kneser–Ney, interpolated: the best of them on most texts, and the default.

    From each count something is taken away (how much, follows from how many n-grams occur once, twice, three and four
    times) and given to the shorter history. Shorter n-grams count not how often they occur but after how many different
    tokens: "Francisco" is frequent, but follows one word alone. What begins a text keeps its plain count, as in KenLM
    (Heafield et al. 2013). Where an estimate makes no sense, 0.5, 1 and 1.5 are taken away.
    """

    def counted_as(self, counted: Sequence[Counted], length: int) -> Whole:
        plain = counted[length - 1].counts
        if length == len(counted):
            return plain
        before = np.bincount(counted[length].shorter, minlength=len(plain))
        return np.where(before > 0, before, plain)

    def shares(self, level: Counted, counts: Whole, length: int, size: int) -> tuple[Floats, Floats]:
        taken = np.array([0.0, *discounts(counts)])[np.minimum(counts, 3)]
        totals = level.sums(counts)
        grouped = [level.sums((np.minimum(counts, 3) == n).astype(np.int8)) for n in (1, 2, 3)]
        left = np.zeros(len(totals))
        for amount, group in zip(discounts(counts), grouped, strict=True):
            left += amount * group
        return _divided(counts - taken, totals[level.parents]), _divided(left, totals)


class ImportedConfig(SmoothingConfig, kind="imported"):
    """Probabilities as an imported file gives them; a text cannot be counted in this way."""

    counts: ClassVar[bool] = False


def discounts(counts: Whole) -> tuple[float, float, float]:
    """What is taken from counts of 1, 2 and 3 or more (Chen and Goodman's equation 26)."""
    ones, twos, threes, fours = (int((counts == n).sum()) for n in (1, 2, 3, 4))
    if not ones or not twos or not threes:
        return DEFAULT_DISCOUNTS
    share = ones / (ones + 2 * twos)
    found = (1 - 2 * share * twos / ones, 2 - 3 * share * threes / twos, 3 - 4 * share * fours / threes)
    return found if all(0 < amount <= n for n, amount in enumerate(found, 1)) else DEFAULT_DISCOUNTS


def _matches(
    counted: Sequence[Counted], validation: Ints, end: int | None
) -> Iterator[tuple[NDArray[np.bool_], Whole, Whole, Counted]]:
    """For each level: which tokens have so long a history, where their histories and their n-grams are, and the
    counts."""
    tables = NGramTables([Level(one.tokens, one.starts, np.empty(0), np.empty(0)) for one in counted], end)
    reach = tables.reach(validation)
    walk = tables.walk(validation, reach, len(counted))
    for length, ((histories, places), level) in enumerate(zip(walk, counted, strict=True), 1):
        yield reach >= length - 1, histories, places, level
