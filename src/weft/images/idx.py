"""The idx files of MNIST and its relatives: a few numbers about the shape, then the values, plain or gzip.

Format: two zero bytes, a code for the type, the number of axes, the length of each as four bytes, then the values;
all of it big-endian (http://yann.lecun.com/exdb/mnist).
"""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_AXES = 4
PIECE = 1 << 20
HARMLESS = 1 << 24  # bytes that a gzip file may unpack to, whatever its size
TIMES = 200  # beyond, not more than so many times its size: Fashion-MNIST shrinks to a half, a trap to a thousandth


def read_idx(path: str | Path) -> NDArray[Any]:
    """The array in an idx file; its header, its length and its type are checked before room is made for it."""
    path = Path(path)
    try:
        packed = path.stat().st_size
        with _unpacked(path) as file:
            shape, kind, header = _header(path, file)
            values = math.prod(shape) * kind.itemsize
            zipped = isinstance(file, gzip.GzipFile)
            if zipped and values > max(HARMLESS, TIMES * packed):
                raise DataError(f"{path} unpacks to more than {TIMES} times its size", expected="images or labels")
            if not zipped and packed != header + values:
                raise _wrong_length(path, shape, header + values, str(packed))
            data = _read(file, values)
            more = len(data) < values or file.read(1)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"{path} is a damaged gzip file", advice="copy or download it again") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    if more:
        found = f"{header + len(data)}" if len(data) < values else "more"
        raise _wrong_length(path, shape, header + values, found)
    array = np.frombuffer(data, dtype=kind).reshape(shape)
    return array.astype(kind.newbyteorder("="), copy=False)


def _unpacked(path: Path) -> io.BufferedIOBase:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else path.open("rb")


def _header(path: Path, file: io.BufferedIOBase) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """The shape, the type of the values, and how many bytes said so."""
    start = file.read(4)
    axes = start[3] if len(start) == 4 else 0
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in TYPES or not 1 <= axes <= MOST_AXES:
        shown = start.hex(" ") or "nothing"
        raise DataError(f"{path} is no idx file: it begins with {shown}", expected="00 00 08 03 for images")
    lengths = file.read(4 * axes)
    if len(lengths) < 4 * axes:
        raise DataError(f"{path} ends within its header", advice="copy or download it again")
    return struct.unpack(f">{axes}I", lengths), np.dtype(TYPES[start[2]]), 4 + 4 * axes


def _read(file: io.BufferedIOBase, count: int) -> bytearray:
    """Up to so many bytes; memory grows with what is there, not with what was promised."""
    data = bytearray()
    while len(data) < count and (piece := file.read(min(PIECE, count - len(data)))):
        data += piece
    return data


def _wrong_length(path: Path, shape: tuple[int, ...], expected: int, found: str) -> DataError:
    given = f"{path} holds {found} bytes, and its header says {' × '.join(map(str, shape))}"
    return DataError(given, expected=f"{expected} bytes", advice="copy or download it again")
