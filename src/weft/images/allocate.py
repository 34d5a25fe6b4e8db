"""Room for many images: in memory, or in a file that goes with the program if they are too many."""

from __future__ import annotations

import shutil
import tempfile

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError

IN_MEMORY = 1 << 31  # bytes; beyond, the disk holds them


def allocate(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """An array of bytes to be filled; a large one lies in a temporary file without a name."""
    needed = int(np.prod(shape, dtype=object))
    if needed <= IN_MEMORY:
        return np.empty(shape, dtype=np.uint8)
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if needed > free:  # writing would kill the process, without a word
        given = f"images of the shape {shape} take {needed / 2**30:.1f} GB, and {folder} has {free / 2**30:.1f}"
        raise DataError(given, advice="choose a smaller size, or another folder with TMPDIR")
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.uint8, mode="w+", shape=shape)
