"""A run on disk: its directory, its checkpoints, and files that are there whole or not at all."""

from weft.checkpoints.checkpoint import Checkpoint, list_checkpoints, load_newest, remove_old, save_checkpoint
from weft.checkpoints.run_directory import FORMAT, RunDirectory

__all__ = [
    "FORMAT",
    "Checkpoint",
    "RunDirectory",
    "list_checkpoints",
    "load_newest",
    "remove_old",
    "save_checkpoint",
]
