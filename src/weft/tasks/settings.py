"""The settings of a run, as its config.json holds them: what all tasks have, and where each task's own are."""

from __future__ import annotations

import importlib
from typing import Any

from weft.config import Config
from weft.errors import DataError
from weft.models import ModelConfig
from weft.tasks.sources import DataConfig
from weft.text import TokenizerConfig
from weft.training import TrainingConfig

HOMES = ("generate", "fill", "classify", "translate")  # tasks that exist, each a file of this folder


class RunConfig(Config):
    """What every task has."""

    model: ModelConfig
    tokenizer: TokenizerConfig | None  # None: it came with the model that training began from
    data: DataConfig
    training: TrainingConfig
    start: str | None = None  # the run or folder whose weights it began with; its first checkpoint holds them


def read_settings(raw: dict[str, Any], where: object) -> RunConfig:
    """The settings of a run from its config.json, by the task it names."""
    task = raw.get("task")
    if task not in HOMES:
        raise DataError(f"{where} is a run of a task this version does not know: {task!r}")
    home = importlib.import_module(f"weft.tasks.{task}")
    found = home.TASK.settings.from_dict({key: value for key, value in raw.items() if key != "task"})
    assert isinstance(found, RunConfig)
    return found
