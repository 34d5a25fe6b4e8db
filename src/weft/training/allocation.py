"""Memory that a step frees is kept for the next step.

The C library of Linux hands blocks above a threshold (32 MB at most, by its own measure) back to the system at every
free and asks for them anew: the system then clears each page again, in every step. For long sequences that was a
quarter of a step's time, and the reason why work that grows with the length took longer than that. GPUs and other
systems have allocators of their own, and are left alone.
"""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # malloc.h: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
MAX_KEPT_BLOCK = 2**30  # blocks up to this size are kept
MAX_FREE_AT_TOP = 2**31 - 1  # so much may lie free at the end of the heap


def keep_freed_memory() -> bool:
    """Until the process ends; whether the C library took it (others than glibc do not)."""
    if not sys.platform.startswith("linux"):
        return False
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    return (
        tell is not None and bool(tell(MMAP_THRESHOLD, MAX_KEPT_BLOCK)) and bool(tell(TRIM_THRESHOLD, MAX_FREE_AT_TOP))
    )
