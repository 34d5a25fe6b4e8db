"""The names of all tasks, found without loading any of them."""

from __future__ import annotations

import functools
import pkgutil
from pathlib import Path


@functools.cache
def task_names() -> tuple[str, ...]:
    """Of all tasks: folders beside this file that describe one."""
    here = Path(__file__).parent
    return tuple(m.name for m in pkgutil.iter_modules([str(here)]) if (here / m.name / "task.py").exists())
