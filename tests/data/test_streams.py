"""ContiguousStreams: every stretch follows the one before it in its stream; the sample number alone decides."""

import numpy as np
import pytest

from weft.data import ContiguousStreams
from weft.errors import DataError

TOKENS = np.arange(1000)


@pytest.mark.parametrize(
    ("length", "count", "size"), [(8, 4, 1000), (7, 3, 100), (1, 1, 5), (10, 10, 100), (16, 5, 97)]
)
def test_a_lane_is_read_from_its_beginning_to_its_end(length, count, size):
    streams = ContiguousStreams(np.arange(size), length, count, seed=3)
    for epoch in range(3):
        seen, end = [], None
        for place in range(streams.steps):
            step = epoch * streams.steps + place
            found = streams.batch(np.arange(count) + step * count)
            assert found.windows.shape == (count, length + 1) and found.streams.tolist() == list(range(count))
            assert found.fresh.all() == found.fresh.any() == (place == 0)
            assert ((np.diff(found.windows) - 1) % size == 0).all()  # a ring
            if place:
                assert (found.windows[:, 0] == end).all()  # it goes on with the token that was predicted last
            end = found.windows[:, -1]
            seen += found.windows[:, 1:].ravel().tolist()
        assert len(seen) == len(set(seen)) == streams.steps * count * length > size - count * length


def test_epochs_begin_elsewhere_and_seeds_differ():
    def first(seed, epoch):
        streams = ContiguousStreams(TOKENS, 8, 4, seed)
        return int(streams.batch(np.array([epoch * streams.per_epoch])).windows[0, 0])

    assert len({first(0, epoch) for epoch in range(8)}) > 4
    assert len({first(seed, 0) for seed in range(8)}) > 4


def test_a_sample_depends_on_its_number_alone():
    streams, again = ContiguousStreams(TOKENS, 8, 4, 0), ContiguousStreams(TOKENS, 8, 4, 0)
    numbers = np.array([5, 10**9, 0, 130, 6])
    together = streams.batch(numbers)
    for place, number in enumerate(numbers):
        alone = again.batch(np.array([number]))
        assert (alone.windows[0] == together.windows[place]).all()
        assert alone.streams[0] == together.streams[place] and alone.fresh[0] == together.fresh[place]


def test_too_little_text_is_refused():
    with pytest.raises(DataError, match=r"31 tokens.*\n.*32, for 4 streams"):
        ContiguousStreams(np.arange(31), 8, 4, 0)
    assert repr(ContiguousStreams(np.arange(32), 8, 4, 0)) == "ContiguousStreams(4 of 1 stretches of 8, seed=0)"
