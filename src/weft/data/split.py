"""Dividing examples into a part to learn from and a part to judge by, fairly and without leaks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.order import Shuffle
from weft.errors import ConfigError, DataError, ShapeError

QUANTILES = 10
Indices = NDArray[np.int64]


def stratified_split(
    labels: NDArray[Any] | Sequence[Any], share: float, seed: int, *, groups: Sequence[Hashable] | None = None
) -> tuple[Indices, Indices]:
    """Which examples to learn from, and which (about `share` of every class) to judge by; both in ascending order.

    Integers and words are classes, floats are numbers and are divided by quantiles, rows of 0 and 1 are several
    labels. Examples with equal entries in `groups` (`Examples.keys`) stay together. A class with two examples or
    more is on both sides, unless examples that must stay together or have other labels too forbid it; therefore
    the rarest classes are dealt first (Sechidis et al. 2011).
    """
    array = np.asarray(labels)
    if not 0 < share < 1:
        raise ConfigError(f"share = {share!r}", expected="more than 0 and less than 1")
    if groups is not None and len(groups) != len(array):
        raise ShapeError(f"{len(groups)} groups for {len(array)} labels", expected="one for each")
    units = _units(len(array), groups)
    if len(units) < 2:
        raise DataError(f"{len(array)} examples with {len(units)} different texts", expected="at least two to divide")
    strata = _strata(array, share)
    held = np.zeros(len(units), dtype=np.int8)  # 0 open, 1 to judge by, -1 to learn from
    counts = _counts(units, strata)
    for rank, stratum in enumerate(sorted(counts, key=lambda s: (sum(counts[s].values()), s))):
        _deal(counts[stratum], held, share, Shuffle(len(counts[stratum]), seed, rank))
    if not (held == 1).any() or not (held == -1).any():
        sizes = [len(unit) for unit in units]
        held[int(np.argmin(sizes))] *= -1
    parts = [
        [place for unit, side in zip(units, held, strict=True) if side == wanted for place in unit]
        for wanted in (-1, 1)
    ]
    learn, judge = (np.sort(np.array(part, dtype=np.int64)) for part in parts)
    return learn, judge


def grouped_split(groups: Sequence[Hashable], most: int, seed: int) -> tuple[Indices, Indices]:
    """Which examples to learn from, and which to judge by: at most `most` of them, and one at least.

    Examples with equal entries in `groups` stay together. If one group alone is more than `most`, the smallest one is
    held out all the same.
    """
    units = _units(len(groups), groups)
    if len(units) < 2:
        raise DataError(f"{len(groups)} examples with {len(units)} different texts", expected="at least two to divide")
    held: list[int] = []
    for unit in Shuffle(len(units), seed, 0)[np.arange(len(units))]:
        if len(held) == most:
            break
        if len(held) + len(units[unit]) <= most:
            held += units[unit]
    held = held if 0 < len(held) < len(groups) else min(units, key=len)
    judge = np.sort(np.array(held, dtype=np.int64))
    return np.setdiff1d(np.arange(len(groups), dtype=np.int64), judge), judge


def _units(count: int, groups: Sequence[Hashable] | None) -> list[list[int]]:
    """Places that must stay together, in the order of their first member."""
    if groups is None:
        return [[place] for place in range(count)]
    together: dict[Hashable, list[int]] = defaultdict(list)
    for place, key in enumerate(groups):
        together[key].append(place)
    return list(together.values())


def _strata(labels: NDArray[Any], share: float) -> list[list[int]]:
    """The strata that each example belongs to, as small numbers."""
    if labels.ndim == 2:
        none = labels.shape[1]  # rows without any label are a stratum too
        return [np.flatnonzero(row > 0.5).tolist() or [none] for row in labels]
    if labels.ndim != 1:
        raise ShapeError(f"labels of the shape {labels.shape}", expected="(N,) or (N, classes)")
    if labels.dtype.kind == "f":
        bins = min(QUANTILES, max(int(len(labels) * min(share, 1 - share)), 1))  # each with one to hold out
        ranks = np.empty(len(labels), dtype=np.int64)
        ranks[np.argsort(labels, kind="stable")] = np.arange(len(labels))
        return [[int(rank) * bins // len(labels)] for rank in ranks]
    return [[int(place)] for place in np.unique(labels, return_inverse=True)[1]]


def _counts(units: list[list[int]], strata: list[list[int]]) -> dict[int, dict[int, int]]:
    """How many examples of each stratum stand in each unit that has any."""
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    for number, unit in enumerate(units):
        for place in unit:
            for stratum in strata[place]:
                counts[stratum][number] = counts[stratum].get(number, 0) + 1
    return counts


def _deal(sizes: dict[int, int], held: NDArray[np.int8], share: float, shuffle: Shuffle) -> None:
    """Decide on the open units of one stratum, so that the part held out comes close to its share."""
    units = list(sizes)
    wanted = round(share * sum(sizes.values())) if len(units) > 1 else 0  # one alone is learned
    order = [units[place] for place in shuffle[np.arange(len(units))]]
    done = sum(sizes[unit] for unit in units if held[unit] == 1)
    mine = [unit for unit in order if held[unit] == 0]
    for unit in mine:
        nearer = abs(done + sizes[unit] - wanted) < abs(done - wanted)
        held[unit] = 1 if nearer else -1
        done += sizes[unit] * nearer
    one_sided = len({int(held[unit]) for unit in units}) == 1
    if one_sided and mine and len(units) > 1:
        smallest = min(mine, key=lambda unit: sizes[unit])
        held[smallest] *= -1


def class_weights(ids: NDArray[np.integer] | Sequence[int], classes: int | None = None) -> NDArray[np.float64]:
    """A weight for each class, inverse to how often it occurs; the mean over the examples is 1.

    A class without examples has weight 0.
    """
    array = np.asarray(ids)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        raise ShapeError(f"labels of shape {array.shape} and type {array.dtype}", expected="ids of classes (N,)")
    counts = np.bincount(array, minlength=classes or 0).astype(np.float64)
    present = counts > 0
    weights = np.zeros_like(counts)
    weights[present] = array.size / (present.sum() * counts[present])
    return weights
