"""The verbs: which data, model, objective and metrics belong together.

Names are loaded when they are first used: looking at a text needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.tasks.experiment import Experiment
    from weft.tasks.generate.task import GenerateConfig
    from weft.tasks.request import Request
    from weft.tasks.run import Run, load
    from weft.tasks.training import train

_HOME = {
    "Experiment": "experiment",
    "GenerateConfig": "generate.task",
    "Request": "request",
    "Run": "run",
    "load": "run",
    "train": "training",
}

__all__ = ["Experiment", "GenerateConfig", "Request", "Run", "load", "train"]

__getattr__, __dir__ = lazy(__name__, _HOME)
