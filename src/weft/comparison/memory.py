"""How much memory a process held at its peak."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_memory() -> int | None:
    """Bytes of this process at its peak; None where the system does not tell.

    Linux hands the peak of a parent down to what it starts, in `getrusage` but not in /proc: that is asked first.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    except (OSError, StopIteration, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def peak_memory_on(device: str) -> int | None:
    """The same for the device that is trained on: a GPU counts its own."""
    if not device.startswith("cuda"):
        return peak_memory()
    import torch

    return int(torch.cuda.max_memory_allocated(device))
