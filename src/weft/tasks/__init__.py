"""The verbs: which data, model, objective and metrics belong together.

Names are loaded when they are first used: looking at a text needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.tasks.generate import resume_generate, train_generate
    from weft.tasks.preparation import GenerateConfig
    from weft.tasks.request import Request
    from weft.tasks.run import Run, load
    from weft.tasks.training import train

_HOME = {
    "GenerateConfig": "preparation",
    "Request": "request",
    "Run": "run",
    "load": "run",
    "resume_generate": "generate",
    "train": "training",
    "train_generate": "generate",
}

__all__ = ["GenerateConfig", "Request", "Run", "load", "resume_generate", "train", "train_generate"]

__getattr__, __dir__ = lazy(__name__, _HOME)
