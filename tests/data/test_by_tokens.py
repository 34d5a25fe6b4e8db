"""Bunches by a budget of tokens: every pair once in an epoch, within the budget, a pure function of (seed, number)."""

import numpy as np
import pytest

from weft.data.by_tokens import ByTokens
from weft.errors import DataError

LENGTHS = np.random.default_rng(0).integers(2, 30, (500, 2))


def epoch(order, number):
    return [order[n] for n in range(number * order.per_epoch, (number + 1) * order.per_epoch)]


@pytest.mark.parametrize("number", [0, 1, 7])
def test_every_pair_once(number):
    length_buckets = epoch(ByTokens(LENGTHS, 200, 3), number)
    assert sorted(np.concatenate(length_buckets).tolist()) == list(range(500))


def test_budget_counts_padding_and_is_used():
    order = ByTokens(LENGTHS, 200, 3)
    areas = [LENGTHS[bucket].max(0).sum() * len(bucket) for bucket in epoch(order, 0)]
    assert max(areas) <= 200 * 1.2  # targets may be a little out of order
    assert np.mean(areas) > 150  # not one pair at a time
    padding = sum(areas) / LENGTHS.sum()
    assert padding < 1.25


def test_a_pair_beyond_the_budget_goes_alone():
    order = ByTokens(np.array([[500, 500], [2, 2], [3, 2]]), 100, 0)
    assert sorted(len(order[n]) for n in range(order.per_epoch)) == [1, 2]


def test_pure_and_different_in_each_epoch_and_seed():
    one, again, other = ByTokens(LENGTHS, 200, 3), ByTokens(LENGTHS, 200, 3), ByTokens(LENGTHS, 200, 4)
    number = 5 * one.per_epoch + 2
    one[0]  # what was asked before does not matter
    assert np.array_equal(one[number], again[number])
    assert any(not np.array_equal(one[n], other[n]) for n in range(5))
    first, second = epoch(one, 0), epoch(one, 1)
    assert any(not np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    lengths = [[int(LENGTHS[bucket, 0].max()) for bucket in length_buckets] for length_buckets in (first, second)]
    assert sorted(lengths[0]) == sorted(lengths[1]) and lengths[0] != lengths[1]  # long and short ones at other times
    company = [{frozenset(bucket.tolist()) for bucket in length_buckets} for length_buckets in (first, second)]
    assert len(company[0] & company[1]) < len(company[0]) / 2  # not the same pairs together


def test_short_and_long_come_mixed():
    totals = [LENGTHS[bucket].sum(1).mean() for bucket in epoch(ByTokens(LENGTHS, 200, 3), 0)]
    assert abs(np.corrcoef(np.arange(len(totals)), totals)[0, 1]) < 0.3


def test_nothing_to_learn_from():
    with pytest.raises(DataError, match="no pairs"):
        ByTokens(np.zeros((0, 2)), 100, 0)
