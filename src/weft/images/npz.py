"""The arrays in a NumPy archive (.npz): headers first, and never anything that is more than numbers and words."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError

HARMLESS = 1 << 24  # bytes that an array may unpack to, whatever its size in the archive
TIMES = 200  # beyond, not more than so many times its size
SUFFIX = ".npy"


def names_in_npz(path: str | Path) -> list[str]:
    """The names of the arrays, in their order."""
    with _opened(Path(path)) as archive:
        return [name.removesuffix(SUFFIX) for name in archive.namelist() if name.endswith(SUFFIX)]


def read_npz(path: str | Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """These arrays of an archive; their sizes are checked before room is made for them."""
    path = Path(path)
    with _opened(path) as archive:
        return {name: _array(path, archive, name) for name in names}


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        why = " ".join(str(error).split())[:100]
        raise DataError(
            f"{path} is no NumPy archive, or a damaged one: {why}", expected="what np.savez writes"
        ) from None


def _array(path: Path, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    info = archive.getinfo(name + SUFFIX)
    with archive.open(info) as file:
        header, needed = _needed(path, file, name)
    if needed + header != info.file_size:
        given = f"{name!r} in {path} holds {info.file_size} bytes"
        raise DataError(given, expected=f"{needed + header}, by its own header", advice="the file is damaged")
    if needed > max(HARMLESS, TIMES * info.compress_size):
        given = f"{name!r} in {path} unpacks to more than {TIMES} times its size"
        raise DataError(given, expected="images or labels")
    with archive.open(info) as file:
        return np.lib.format.read_array(file)  # which refuses objects unless it is asked for them


def _needed(path: Path, file: IO[bytes], name: str) -> tuple[int, int]:
    """The bytes of the header, and those of the values that it promises."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise DataError(f"{name!r} in {path} has the format {version}", expected="1.0 or 2.0")
    shape, _, kind = readers[version](file)
    if kind.hasobject or kind.fields is not None:
        raise DataError(f"{name!r} in {path} holds {kind} values", expected="numbers or words")
    return file.tell(), math.prod(shape) * kind.itemsize
