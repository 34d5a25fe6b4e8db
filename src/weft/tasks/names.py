"""The names of all tasks, found without loading any: folders beside this file, and what plugins register."""

from __future__ import annotations

import functools
import pkgutil
from pathlib import Path

from weft.registry import Registry

REGISTERED = Registry("task")  # descriptions from outside this folder, by name


def task_names() -> tuple[str, ...]:
    """Of all tasks: those of this folder first, then those of plugins."""
    return (*task_folders(), *REGISTERED)


@functools.cache
def task_folders() -> tuple[str, ...]:
    """Folders beside this file that describe a task."""
    here = Path(__file__).parent
    return tuple(m.name for m in pkgutil.iter_modules([str(here)]) if (here / m.name / "task.py").exists())
