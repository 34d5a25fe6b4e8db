"""The settings of a run, as its config.json holds them: what all tasks have."""

from __future__ import annotations

from weft.config import Config
from weft.models import ModelConfig
from weft.tasks.sources import FilesConfig
from weft.text import TokenizerConfig
from weft.training import TrainingConfig


class RunConfig(Config):
    """What every task has."""

    model: ModelConfig
    tokenizer: TokenizerConfig | None = None  # None: it came with the model that training began from, or there is none
    data: FilesConfig
    training: TrainingConfig
    start: str | None = None  # the run or folder whose weights it began with; its first checkpoint holds them
