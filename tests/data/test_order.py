"""The order of samples: a permutation, a pure function, and well mixed."""

import numpy as np
import pytest

from weft.data import Shuffle
from weft.errors import ConfigError


@pytest.mark.parametrize("seed", [0, 1, 2**63, -5])
def test_every_index_exactly_once(seed):
    for n in [*range(1, 130), 255, 256, 257, 1000, 4095, 4097, 65536, 99_991]:
        order = Shuffle(n, seed, epoch=n % 3)[np.arange(n)]
        assert order.dtype == np.int64
        assert np.array_equal(np.sort(order), np.arange(n)), n


def test_it_is_a_pure_function():
    n = 10_000
    whole = Shuffle(n, 7, 3)[np.arange(n)]
    places = np.random.default_rng(0).integers(0, n, (5, 40))
    again = Shuffle(n, 7, 3)
    assert np.array_equal(again[places], whole[places])
    assert np.array_equal(np.concatenate([again[np.array([p])] for p in range(50)]), whole[:50])
    assert again[np.array([], dtype=np.int64)].shape == (0,)


def test_it_does_not_count_to_n():
    n = 10**15
    order = Shuffle(n, 0, 0)[np.arange(1000)]
    assert len(set(order.tolist())) == 1000 and 0 <= order.min() and order.max() < n
    assert abs(order.mean() / n - 0.5) < 0.05


def test_another_seed_or_epoch_is_another_order():
    n = 1000
    orders = {tuple(Shuffle(n, seed, epoch)[np.arange(n)]) for seed in range(8) for epoch in range(8)}
    assert len(orders) == 64
    first, second = (Shuffle(n, 0, epoch)[np.arange(n)] for epoch in (0, 1))
    assert (first == second).sum() < 10


@pytest.mark.parametrize("n", [10, 97, 1000, 2**14])
def test_it_is_well_mixed(n):
    rows = np.stack([Shuffle(n, seed, 0)[np.arange(n)] for seed in range(300 if n <= 1000 else 20)])
    count = len(rows)
    for place in (0, n // 2, n - 1):  # whatever stands at a place is uniform
        mean = rows[:, place].mean()
        assert abs(mean - (n - 1) / 2) < 4.5 * n / np.sqrt(12 * count)
    steps = np.diff(rows, axis=1)
    neighbours = (np.abs(steps) == 1).mean()  # neighbours stay together as often as by chance
    assert abs(neighbours - 2 / n) < 5 * np.sqrt(2 / n / steps.size) + 0.005
    fixed = (rows == np.arange(n)).sum(axis=1).mean()  # a random permutation leaves one in place, on average
    assert abs(fixed - 1) < 5 / np.sqrt(count)
    centred = rows - (n - 1) / 2
    lag = (centred[:, 1:] * centred[:, :-1]).mean() / (centred**2).mean()
    assert abs(lag + 1 / n) < 5 / np.sqrt(rows.size)


def test_all_orders_of_three_occur():
    orders = [tuple(Shuffle(3, seed, 0)[np.arange(3)]) for seed in range(600)]
    counts = [orders.count(order) for order in sorted(set(orders))]
    assert len(counts) == 6 and min(counts) > 50


def test_what_it_refuses():
    with pytest.raises(ConfigError, match="at least one sample"):
        Shuffle(0, 0, 0)
    for wrong in ([5], [-1], [0, 10]):
        with pytest.raises(IndexError, match="for 5 samples"):
            Shuffle(5, 0, 0)[np.array(wrong)]
    assert repr(Shuffle(5, 0, 0)) == "Shuffle(n=5)"
