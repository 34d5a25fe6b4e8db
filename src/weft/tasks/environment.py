"""What a run was made with, and what its directory says to a reader."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch

from weft import __version__


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


def run_readme(path: Path) -> str:
    """The exact commands to go on with this run."""
    return f"""# {path.name}

A model trained by Weft. What it was made of is in `config.json`, how it went in `metrics.jsonl`.

    weft resume {path}        # go on, if it was interrupted
    weft evaluate {path}      # measure it again

`model.safetensors` holds the weights that did best on the held-out text.
"""
