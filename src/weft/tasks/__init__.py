"""The verbs: which data, model, objective and metrics belong together.

Names are loaded when they are first used: looking at a text needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.tasks.flow import resume_task, train_task
    from weft.tasks.generate import GenerateConfig
    from weft.tasks.request import Request
    from weft.tasks.run import Run, load
    from weft.tasks.training import train

_HOME = {
    "GenerateConfig": "generate",
    "Request": "request",
    "Run": "run",
    "load": "run",
    "resume_task": "flow",
    "train": "training",
    "train_task": "flow",
}

__all__ = ["GenerateConfig", "Request", "Run", "load", "resume_task", "train", "train_task"]

__getattr__, __dir__ = lazy(__name__, _HOME)
