"""Texts in batches of similar length: each once an epoch, in an order that is arithmetic."""

import time

import numpy as np
import pytest

from weft.data import ByLength
from weft.data.by_length import POOL
from weft.errors import ConfigError, DataError
from weft.training import Ranks


def lengths(count, seed=0):
    """Mostly short, a few long: as texts are."""
    return np.random.default_rng(seed).geometric(0.08, size=count) + 2


def padding(batches, sizes):
    """The share of slots that would be padding."""
    slots = sum(len(batch) * sizes[batch].max() for batch in batches)
    return 1 - sum(sizes[batch].sum() for batch in batches) / slots


@pytest.mark.parametrize(
    ("count", "batch"), [(1, 1), (1, 8), (5, 8), (64, 8), (70, 8), (1000, 7), (700, 700), (33, 32)]
)
def test_every_epoch_has_every_text_once(count, batch):
    order = ByLength(lengths(count), batch, seed=3)
    assert order.per_epoch == count
    for epoch in range(4):
        found = order[np.arange(count) + epoch * count]
        assert sorted(found.tolist()) == list(range(count))


def test_epochs_and_seeds_have_orders_of_their_own():
    sizes = lengths(2000)
    order = ByLength(sizes, 8, seed=0)
    first, second = order[np.arange(2000)], order[np.arange(2000) + 2000]
    other = ByLength(sizes, 8, seed=1)[np.arange(2000)]
    assert (first != second).mean() > 0.9 and (first != other).mean() > 0.9
    assert (first == ByLength(sizes, 8, seed=0)[np.arange(2000)]).all()
    batches, later = ({frozenset(batch) for batch in found.reshape(-1, 8).tolist()} for found in (first, second))
    assert len(batches) == 250 and len(batches & later) < 5  # other texts come together


def test_a_sample_is_the_same_alone_in_a_batch_and_after_others():
    """A negative control for any state that is kept between questions."""
    sizes = lengths(150)
    whole = ByLength(sizes, 8, seed=5)[np.arange(900)]
    order, rng = ByLength(sizes, 8, seed=5), np.random.default_rng(0)
    for number in [0, 899, 149, 150, 151, 450, 3, 600, 0]:  # forwards and back, over the borders of epochs
        assert order[np.array([number])] == whole[number]
    mixed = rng.permutation(900)
    assert (order[mixed] == whole[mixed]).all()
    assert (ByLength(sizes, 8, seed=5)[np.array([[7, 160], [899, 0]])] == whole[[[7, 160], [899, 0]]]).all()


def test_a_late_sample_costs_what_an_early_one_does():
    sizes = lengths(3000)

    def seconds(start):
        order, began = ByLength(sizes, 16, seed=0), time.perf_counter()
        order[np.arange(16) + start]
        return time.perf_counter() - began

    seconds(0)
    early, late = min(seconds(0) for _ in range(5)), min(seconds(10**6 - 5) for _ in range(5))
    assert late < 5 * early + 0.01
    order = ByLength(sizes, 16, seed=0)
    for number in range(0, 10**6, 10**5):
        order[np.arange(16) + number]
    assert len(order._orders) <= 2  # nothing grows with the number of epochs


def test_batches_are_of_similar_length():
    sizes = lengths(2000)
    order = ByLength(sizes, 16, seed=0)
    batches = order[np.arange(2000)].reshape(-1, 16)
    assert padding(batches, sizes) < 0.15
    plain = np.arange(2000).reshape(-1, 16)  # the order of the file
    assert padding(plain, sizes) > 0.5
    means = sizes[batches].mean(1)
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.3  # not from short to long, which would teach so


@pytest.mark.parametrize("count", [3990, 4003])
def test_batches_that_the_trainer_takes_stay_similar_where_epochs_do_not_divide(count):
    """The trainer's batches begin at multiples of the batch, wherever the epoch began."""
    sizes = lengths(count)
    order = ByLength(sizes, 16, seed=0)
    found = order[np.arange(16 * (5 * count // 16))].reshape(-1, 16)
    inside = [batch for n, batch in enumerate(found) if n * 16 // count == (n * 16 + 15) // count]
    assert len(inside) > 0.9 * len(found)
    assert padding(inside, sizes) < 0.15
    shifted = [order[np.arange(16) + 16 * n + 8] for n in range(len(found) - 1)]  # a negative control: half a batch on
    assert padding(shifted, sizes) > padding(inside, sizes) + 0.1


def test_a_batch_over_the_border_of_epochs_has_texts_of_both():
    order = ByLength(lengths(10), 4, seed=0)
    batch = order[np.arange(8, 12)]
    assert batch[:2].tolist() == order[np.array([8, 9])].tolist()
    assert batch[2:].tolist() == order[np.array([10, 11])].tolist()
    assert set(order[np.arange(10)].tolist()) == set(range(10))


def test_processes_share_a_batch():
    order = ByLength(lengths(100), 10, seed=0)
    numbers = np.arange(10) + 40
    whole = order[numbers]
    for world in (2, 3, 4):
        parts = [ByLength(lengths(100), 10, seed=0)[numbers[Ranks(rank, world).share(10)]] for rank in range(world)]
        assert np.concatenate(parts).tolist() == whole.tolist()


def test_pools_are_of_many_batches():
    """Sorted over everything, the same texts would meet in every epoch."""
    sizes = np.arange(POOL * 4 * 3)
    order = ByLength(sizes, 4, seed=0)
    pools = order[np.arange(len(sizes))].reshape(3, -1)
    assert all(sizes[pool].max() - sizes[pool].min() > 0.8 * len(sizes) for pool in pools)


def test_it_refuses_and_speaks():
    with pytest.raises(DataError, match="no texts"):
        ByLength([], 4, seed=0)
    with pytest.raises(ConfigError, match="batch = 0"):
        ByLength([1, 2], 0, seed=0)
    assert repr(ByLength([1, 2], 1, seed=7)) == "ByLength(2 texts, batch=1, seed=7)"


def test_the_texts_of_a_small_table_meet_others_in_another_epoch():
    order = ByLength(lengths(320), 16, seed=0)
    first, second = (
        {frozenset(batch) for batch in order[np.arange(320) + 320 * epoch].reshape(-1, 16).tolist()} for epoch in (0, 1)
    )
    assert len(first & second) == 0
    company = [max(len(batch & other) for other in second) for batch in first]
    assert np.mean(company) < 10  # of 16; with one pool for all it would be nearly all
