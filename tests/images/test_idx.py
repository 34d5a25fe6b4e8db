"""The idx files of MNIST: read exactly, packed or not, and refused if a byte is missing or too many."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from weft.errors import DataError
from weft.images.idx import read_idx

CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}


def idx(array, shape=None):
    shape = shape or array.shape
    code = CODES[array.dtype.str[1:]]
    return (
        struct.pack(f">BBBB{len(shape)}I", 0, 0, code, len(shape), *shape)
        + array.astype(array.dtype.newbyteorder(">")).tobytes()
    )


VALUES = np.arange(3 * 4 * 5).reshape(3, 4, 5)


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("packed", [False, True])
def test_every_type(kind, packed, tmp_path):
    array = VALUES.astype(kind)
    data = idx(array)
    (tmp_path / "a").write_bytes(gzip.compress(data) if packed else data)
    found = read_idx(tmp_path / "a")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype and found.dtype.isnative


@pytest.mark.parametrize("shape", [(60,), (12, 5), (3, 4, 5), (3, 4, 5, 1)])
def test_every_number_of_axes(shape, tmp_path):
    (tmp_path / "a").write_bytes(idx(VALUES.astype("u1").reshape(shape)))
    assert read_idx(tmp_path / "a").shape == shape


GOOD = idx(VALUES.astype("u1"))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "begins with nothing"),
        (b"\0\0\x08", "no idx file"),
        (b"\x01" + GOOD[1:], "no idx file: it begins with 01 00 08 03"),
        (GOOD[:2] + b"\x07" + GOOD[3:], "no idx file"),
        (GOOD[:3] + b"\x00" + GOOD[4:], "no idx file"),
        (GOOD[:3] + b"\x05" + GOOD[4:], "no idx file"),
        (GOOD[:10], "ends within its header"),
        (GOOD[:-1], r"3 × 4 × 5\nexpected 76 bytes"),
        (GOOD + b"x", "expected 76 bytes"),
        (b"these are words", "no idx file"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_broken_files(data, said, packed, tmp_path):
    (tmp_path / "a-images").write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(DataError, match=said) as caught:
        read_idx(tmp_path / "a-images")
    assert "a-images" in str(caught.value)


def test_damaged_gzip(tmp_path):
    data = gzip.compress(GOOD)
    for broken in (data[:-9], data[:20], data[:15] + b"\xff\xff" + data[17:]):
        (tmp_path / "a").write_bytes(broken)
        with pytest.raises(DataError):
            read_idx(tmp_path / "a")
    with pytest.raises(DataError, match="No such file"):
        read_idx(tmp_path / "none")


def test_a_promise_of_terabytes_takes_no_memory(tmp_path):
    header = struct.pack(">BBBB3I", 0, 0, 8, 3, 2**31, 2**15, 2**10)
    for name, data in (("plain", header), ("packed", gzip.compress(header))):
        (tmp_path / name).write_bytes(data)
        tracemalloc.start()
        with pytest.raises(DataError):
            read_idx(tmp_path / name)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20


def test_a_gzip_bomb(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress(idx(np.zeros((20, 1000, 1000), "u1"))))
    with pytest.raises(DataError, match="200 times its size"):
        read_idx(tmp_path / "a")
