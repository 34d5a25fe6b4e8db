"""What a run was made with, and what its directory says to a reader."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch

from weft import __version__
from weft.errors import DataError
from weft.plugins import with_plugins

BEST_WEIGHTS = "the weights with the best validation result"


def environment() -> dict[str, Any]:
    """Versions and machine, for whoever wants to repeat the run."""
    return {
        "weft": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "tokenizers": tokenizers.__version__,
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def run_readme(path: Path, use: str, *, exportable: bool, kept: str = BEST_WEIGHTS) -> str:
    """The exact commands to continue with this run."""
    resume, evaluate, export = (
        with_plugins(f"weft {words}") for words in (f"resume {path}", f"evaluate {path}", f"export {path} DIR")
    )
    away = f"\n    {export}  # take it to Hugging Face" if exportable else ""
    return f"""# {path.name}

A model trained by Weft. What it was made of is in `config.json`, how it went in `metrics.jsonl`.

    {use}
    {resume}      # continue, if it was interrupted
    {evaluate}    # measure it again{away}

`model.safetensors` holds {kept}.
"""


def usual_threads() -> int:
    """As many as the environment allows (OMP_NUM_THREADS), or as there are processors that this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_in_use() -> int:
    """Bytes of memory this process holds now; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def peak_memory() -> int | None:
    """Bytes of this process at its peak, or those of GPUs if it used any; None where the system does not tell.

    Linux hands the peak of a parent down to what it starts, in `getrusage` but not in /proc: that is asked first.
    """
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return sum(int(torch.cuda.max_memory_allocated(gpu)) for gpu in range(torch.cuda.device_count()))
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


def check_fits(parameters: int, what: str) -> None:
    """Refuse a model whose weights alone would not fit, before anything is allocated for it."""
    needed, free = 4 * parameters, memory_free("cpu")
    if needed > free:
        raise DataError(
            f"{what} describes a model of {parameters:,} parameters: {needed / 1e9:,.0f} GB",
            expected=f"one that fits into the {free / 1e9:,.0f} GB that are free here",
        )


def memory_free(device: str) -> float:
    """Bytes that can still be had there; infinite where the system does not tell."""
    if device.startswith("cuda"):
        return float(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024.0 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1])
    except (OSError, StopIteration):
        return float("inf")
