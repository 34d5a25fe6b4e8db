"""The user's request: words, options, a recipe and `--set`, put together and checked before anything is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from weft.checkpoints import RunDirectory
from weft.config import Config
from weft.errors import ConfigError
from weft.models import preset
from weft.tasks.asking import LENGTHS, Names, applied, check_values, layered
from weft.tasks.options import COLUMN_OPTIONS
from weft.tasks.recipe import NO_RECIPE, Recipe
from weft.tasks.sources import FilesConfig
from weft.tasks.task import task_of
from weft.text import TokenizerConfig
from weft.training import TrainingConfig

C = TypeVar("C", bound=Config)
D = TypeVar("D", bound=FilesConfig)
AVAILABLE: dict[str, Callable[[], bool]] = {
    "cpu": lambda: True,
    "cuda": torch.cuda.is_available,
    "mps": torch.backends.mps.is_available,
}


def default_device() -> str:
    """A GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Request:
    """The user's request; what is None is planned."""

    data: tuple[str, ...]
    task: str
    model: str | None = None
    tokenizer: str | None = None
    validation: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    minutes: float | None = None
    steps: int | None = None
    epochs: float | None = None
    seed: int = 0
    device: str = field(default_factory=default_device)
    threads: int | None = None
    out: str | None = None
    text: str | None = None
    pair: str | None = None
    label: str | None = None
    pairs: str | None = None
    source: str | None = None
    target: str | None = None
    start: str | None = None
    freeze: int | str | None = None
    sample: str | None = None
    recipe: Recipe = NO_RECIPE
    changes: dict[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    task_is_recognised: bool = False  # from the data: nobody named it
    watch: bool = False
    started: float = field(default_factory=time.perf_counter)

    def check(self) -> None:
        """Refuse what cannot be before anything is read."""
        check_values({name: getattr(self, name) for name in (*LENGTHS, "threads", "seed", "device")})
        kind = self.device.partition(":")[0]
        if not AVAILABLE[kind]():
            raise ConfigError(f"the device {self.device} is not available here", expected="cpu")
        if self.out is not None:
            RunDirectory(self.out).check_free()

    def says(self, section: str) -> bool:
        """Whether the recipe or `--set` says anything about it."""
        return any(key.startswith(section + ".") for key in (*self.recipe.settings, *self.changes))

    def training_config(self, planned: TrainingConfig) -> TrainingConfig:
        """The plan with what the user says about training."""
        frozen = {} if self.freeze is None else {"freeze": self.freeze}
        return self.apply("training", planned.override(frozen))

    def data_config(self, kind: type[D]) -> D:
        """Which data, how they are split, and which columns of a table are meant."""
        for key in (*self.recipe.settings, *self.changes):
            if key.removeprefix("data.") in kind.found:
                raise ConfigError(f"{key!r} is found out from the data", expected="nobody to set it")
        given: dict[str, Any] = {"train": self.data, "validation": self.validation, "test": self.test}
        for name in COLUMN_OPTIONS:
            if (value := getattr(self, name)) is not None:
                if name not in kind.columns:
                    raise ConfigError(f"--{name} {value} for {self.task}", expected="no such option for this task")
                given[name] = value
        return self.apply("data", kind(**given))

    def apply(self, section: str, config: C) -> C:
        """The config with what the recipe and then `--set` say about its section."""
        return applied(section, config, self.recipe, self.changes)


# -- putting it together ----------------------------------------------------------------------


def make_request(
    data: Sequence[str],
    options: Mapping[str, Any],
    *,
    task: str | None = None,
    config: str | Path | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Request:
    """Recipe, then options, then `--set`: a later word wins. What is None or empty was not said."""
    names = Names(preset, TokenizerConfig.registry)
    asked, recipe, said = layered(data, options, names, config=config, changes=changes)
    columns = {*asked, *(key.removeprefix("data.") for key in (*recipe.settings, *said))}
    named = task or recipe.task or task_of(asked["data"], columns)
    told = task is None and recipe.task is None
    return Request(**asked, task=named, recipe=recipe, changes=said, task_is_recognised=told)
