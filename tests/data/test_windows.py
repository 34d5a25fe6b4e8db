"""What a language model reads: every window once an epoch, other borders in the next, and no state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data import Sweep, TokenFile, Windows
from weft.errors import DataError


@settings(max_examples=100, deadline=None)
@given(count=st.integers(2, 400), length=st.integers(1, 50), seed=st.integers(0, 5), epoch=st.integers(0, 1000))
def test_each_epoch_reads_each_of_its_windows_once(count, length, seed, epoch):
    row = np.arange(count, dtype=np.uint16)
    if count < length + 1:
        with pytest.raises(DataError, match=f"only {count} tokens"):
            Windows(row, length, seed)
        return
    windows = Windows(row, length, seed)
    assert windows.per_epoch >= 1
    batch = windows.batch(np.arange(epoch * windows.per_epoch, (epoch + 1) * windows.per_epoch))
    assert batch.shape == (windows.per_epoch, length + 1) and batch.dtype == np.int64
    assert (np.diff(batch, axis=1) == 1).all(), "a window is a stretch of the text"
    predicted = np.sort(batch[:, 1:].ravel())
    assert (np.diff(predicted) == 1).all(), "nothing is predicted twice, and nothing left out between"
    assert count - len(predicted) - 1 < 2 * length


@pytest.mark.parametrize("count", [17, 20, 31, 32, 33, 47, 48, 100])
def test_over_the_epochs_every_token_is_predicted(count):
    windows = Windows(np.arange(count), 16, seed=1)
    batch = windows.batch(np.arange(400 * windows.per_epoch))
    assert set(batch[:, 1:].ravel()) == set(range(1, count))


def test_epochs_differ_in_order_and_in_borders():
    windows = Windows(np.arange(10_000), 64, seed=0)
    n = windows.per_epoch
    assert n == 10_000 // 64 - 1
    offsets = {int(windows.starts(np.arange(e * n, (e + 1) * n)).min()) for e in range(40)}
    assert len(offsets) > 20
    first, second = (windows.starts(np.arange(e * n, (e + 1) * n)) for e in (0, 1))
    assert not np.array_equal(np.argsort(first), np.argsort(second))
    other = Windows(np.arange(10_000), 64, seed=1).starts(np.arange(n))
    assert not np.array_equal(first, other)


def test_it_is_a_pure_function_of_the_sample_number():
    row = np.random.default_rng(0).integers(0, 500, 5000).astype(np.uint16)
    whole = Windows(row, 32, seed=3).batch(np.arange(1000))
    assert np.array_equal(Windows(row, 32, seed=3).batch(np.arange(990, 1000)), whole[990:])
    windows = Windows(row, 32, seed=3)
    mixed_up = np.random.default_rng(1).permutation(1000)  # over several epochs, in any order
    assert np.array_equal(windows.batch(mixed_up), whole[mixed_up])
    assert np.array_equal(windows.batch(np.arange(5)), whole[:5])
    assert windows.batch(np.arange(10**15, 10**15 + 3)).shape == (3, 33)
    assert windows.batch(np.array([], dtype=np.int64)).shape == (0, 33)


def test_too_little_text():
    tokens = TokenFile(np.arange(64, dtype=np.uint16), 64)
    with pytest.raises(DataError, match=r"only 64 tokens of text\nexpected at least 65, .*\ngive more text"):
        Windows(tokens, 64, 0)
    windows = Windows(tokens, 63, 0)
    assert windows.per_epoch == 1 and windows.batch(np.array([0, 1]))[1].tolist() == list(range(64))
    assert repr(windows) == "Windows(length=63, per_epoch=1, seed=0)"


# -- the sweep --------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(count=st.integers(2, 300), length=st.integers(1, 40), rows=st.integers(1, 9), ranks=st.integers(1, 3))
def test_a_sweep_predicts_every_token_but_the_first_once(count, length, rows, ranks):
    sweep = Sweep(np.arange(count, dtype=np.uint16), length, rows)
    batches = list(sweep)
    assert len(batches) == len(sweep)
    assert all(batch.shape[0] <= rows and batch.shape[1] <= length + 1 for batch in batches)
    assert all(batch.dtype == np.int64 and (np.diff(batch, axis=1) == 1).all() for batch in batches)
    assert np.concatenate([batch[:, 1:].ravel() for batch in batches]).tolist() == list(range(1, count))
    assert sweep.predicted == count - 1
    parts = [sweep[rank::ranks] for rank in range(ranks)]
    assert sum(part.predicted for part in parts) == sweep.predicted
    shared = np.concatenate([batch[:, 1:].ravel() for part in parts for batch in part])
    assert sorted(shared.tolist()) == list(range(1, count))


def test_a_sweep_over_nothing():
    for count in (0, 1):
        with pytest.raises(DataError, match="expected at least 2"):
            Sweep(np.arange(count), 8, 2)
    assert repr(Sweep(np.arange(20), 8, 2)) == "Sweep(length=8, rows=2, batches=2)"
