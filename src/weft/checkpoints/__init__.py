"""A run on disk: its directory, its checkpoints, and files that are there whole or not at all.

Names are loaded when they are first used: listing runs needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.checkpoints.checkpoint import Checkpoint, list_checkpoints, load_newest, remove_old, save_checkpoint
    from weft.checkpoints.run_directory import FORMAT, RunDirectory

_HOME = {
    "FORMAT": "run_directory",
    "Checkpoint": "checkpoint",
    "RunDirectory": "run_directory",
    "list_checkpoints": "checkpoint",
    "load_newest": "checkpoint",
    "remove_old": "checkpoint",
    "save_checkpoint": "checkpoint",
}

__all__ = [
    "FORMAT",
    "Checkpoint",
    "RunDirectory",
    "list_checkpoints",
    "load_newest",
    "remove_old",
    "save_checkpoint",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'weft.checkpoints' has no attribute {name!r}")
    return getattr(import_module(f"weft.checkpoints.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
