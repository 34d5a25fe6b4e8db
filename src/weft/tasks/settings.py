"""The settings of a run, as its config.json holds them: what all tasks have, and where each task's own are."""

from __future__ import annotations

import importlib
from typing import Any

from weft.config import Config
from weft.errors import DataError
from weft.models import ModelConfig
from weft.tasks.sources import FilesConfig
from weft.text import TokenizerConfig
from weft.training import TrainingConfig

HOMES = {  # tasks that exist, each a file of this folder, or several: the model's family says which
    "generate": ("generate", "generate_recurrent"),
    "fill": ("fill",),
    "classify": ("classify", "classify_pictures"),
    "translate": ("translate",),
}


class RunConfig(Config):
    """What every task has."""

    model: ModelConfig
    tokenizer: TokenizerConfig | None = None  # None: it came with the model that training began from, or there is none
    data: FilesConfig
    training: TrainingConfig
    start: str | None = None  # the run or folder whose weights it began with; its first checkpoint holds them


def read_settings(raw: dict[str, Any], where: object) -> RunConfig:
    """The settings of a run from its config.json, by the task it names."""
    task = raw.get("task")
    if task not in HOMES:
        raise DataError(f"{where} is a run of a task this version does not know: {task!r}")
    model = raw.get("model")
    home = home_of(task, model.get("kind") if isinstance(model, dict) else None)
    found = home.settings.from_dict({key: value for key, value in raw.items() if key != "task"})
    assert isinstance(found, RunConfig)
    return found


def home_of(task: str, family: object) -> Any:
    """The task of this name for a model of this family; for a family that none knows, the first: it says so."""
    found = [importlib.import_module(f"weft.tasks.{name}").TASK for name in HOMES[task]]
    return next((home for home in found if family in home.families), found[0])
