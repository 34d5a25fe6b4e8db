"""A run on disk: its directory, its checkpoints, and files that are there whole or not at all.

Names are loaded when they are first used: listing runs needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

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

__getattr__, __dir__ = lazy(__name__, _HOME)
