"""One process at a time in a run directory; the lock dies with its process, however that dies."""

from __future__ import annotations

import os
from typing import IO, Any


def try_lock(file: IO[Any], *, shared: bool = False) -> bool:
    """Take the lock if it is free. `shared` only asks: several may ask at once, a worker excludes them.
    It is given back when the file is closed."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            if shared:  # Windows knows only exclusive ones: give it back at once
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file.fileno(), (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
