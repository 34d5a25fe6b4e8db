"""What the user asked for: words, options, a recipe and `--set`, put together and checked before anything is read."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from weft.checkpoints import RunDirectory
from weft.config import Config, Count, Positive, Size, within
from weft.errors import ConfigError
from weft.models import preset
from weft.tasks.recipe import NO_RECIPE, SECTIONS, Recipe, read_recipe
from weft.tasks.sources import FilesConfig
from weft.tasks.task import task_of
from weft.text import TokenizerConfig
from weft.training import TrainingConfig

C = TypeVar("C", bound=Config)
D = TypeVar("D", bound=FilesConfig)
DEVICES: dict[str, Callable[[], bool]] = {
    "cpu": lambda: True,
    "cuda": torch.cuda.is_available,
    "mps": torch.backends.mps.is_available,
}
COLUMNS = ("text", "pair", "label", "pairs", "source", "target")
LENGTHS = ("minutes", "steps", "epochs")
PLANNED = ("width", "depth", "max_length", "attention.heads")  # of a model that is named by its family alone


def default_device() -> str:
    """A GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Request:
    """What the user asked for; what is None is planned."""

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
    task_is_told: bool = False  # from the data: nobody named it
    watch: bool = False
    started: float = field(default_factory=time.perf_counter)

    def check(self) -> None:
        """Refuse what cannot be before anything is read."""
        for name in (*LENGTHS, "threads"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} = {value}", expected="more than 0")
        if self.seed < 0:
            raise ConfigError(f"seed = {self.seed}", expected="0 or more")
        kind = self.device.partition(":")[0]
        if kind not in DEVICES:
            raise ConfigError(f"device {self.device!r}", expected=f"one of {', '.join(DEVICES)}")
        if not DEVICES[kind]():
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
        for name in COLUMNS:
            if (value := getattr(self, name)) is not None:
                if name not in kind.columns:
                    raise ConfigError(f"--{name} {value} for {self.task}", expected="no such option for this task")
                given[name] = value
        return self.apply("data", kind(**given))

    def apply(self, section: str, config: C) -> C:
        """The config with what the recipe and then `--set` say about its section."""
        told = functools.partial(within, section, lambda: config.override(below(section, self.recipe.settings)))
        config = within(self.recipe.path, told) if self.recipe.path else told()
        return within(section, lambda: config.override(below(section, self.changes)))


def below(section: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of one section, without its name."""
    prefix = section + "."
    return {key.removeprefix(prefix): value for key, value in changes.items() if key.startswith(prefix)}


# -- putting it together ----------------------------------------------------------------------


class _Lifted(Config):
    """Settings of a recipe or of `--set` that are options of the command too."""

    preset: str = ""
    train: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    minutes: Positive | None = None
    steps: Size | None = None
    epochs: Positive | None = None
    seed: Count = 0
    threads: Size | None = None
    device: str = ""


_LIFTED = {f"training.{name}": name for name in (*LENGTHS, "seed", "threads", "device")}
_LIFTED |= {"model.preset": "model", "data.train": "data", "data.validation": "validation", "data.test": "test"}


def make_request(
    data: Sequence[str],
    options: Mapping[str, Any],
    *,
    task: str | None = None,
    config: str | Path | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Request:
    """Recipe, then options, then `--set`: a later word wins. What is None or empty was not said."""
    changes = dict(changes or {})
    for key in changes:
        if key.partition(".")[0] not in SECTIONS:
            raise ConfigError(
                f"unknown setting {key!r}", expected="model.…, tokenizer.…, data.…, objective.… or training.…"
            )
    recipe = read_recipe(config) if config is not None else NO_RECIPE
    given = {name: value for name, value in {"data": tuple(data), **options}.items() if value not in (None, ())}
    asked = within(recipe.path, lambda: _options_of(recipe)) if recipe.path else {}
    recipe = _without_replaced(recipe, given)
    for layer in (asked, given, _lift(changes)):
        lengths = [name for name in LENGTHS if name in layer]
        if len(lengths) > 1:
            where = recipe.path if layer is asked else "--minutes, --steps, --epochs"
            raise ConfigError(f"{where}: {' and '.join(lengths)} together", expected="one of them")
        if lengths:  # another way to say how long replaces the earlier one
            asked = {name: value for name, value in asked.items() if name not in LENGTHS}
        asked |= layer
    if not asked.get("data"):
        raise ConfigError("no data was given", expected="text files, a folder, or demo", advice="weft train demo")
    said = {key: value for key, value in changes.items() if key not in _LIFTED}
    columns = {*asked, *(key.removeprefix("data.") for key in (*recipe.settings, *said))}
    named = task or recipe.task or task_of(asked["data"], columns)
    told = task is None and recipe.task is None
    return Request(**asked, task=named, recipe=recipe.without(*_LIFTED), changes=said, task_is_told=told)


def _without_replaced(recipe: Recipe, given: Mapping[str, Any]) -> Recipe:
    """An option that names a model or a tokenizer replaces what the recipe says about the same fields."""
    if "model" in given:
        _, fields = preset(given["model"])
        recipe = recipe.without("model.preset", *(f"model.{name}" for name in (*fields, *(() if fields else PLANNED))))
    registry, kind = TokenizerConfig.registry, recipe.settings.get("tokenizer.kind", "bpe")
    if "tokenizer" in given and registry.find(given["tokenizer"]) is not registry.find(kind):
        recipe = recipe.without("tokenizer")
    return recipe


def _options_of(recipe: Recipe) -> dict[str, Any]:
    """What the recipe says of options; names of models and tokenizers must exist."""
    asked = _lift(recipe.settings)
    if "model" in asked:
        preset(asked["model"])
    if "tokenizer.kind" in recipe.settings:
        asked["tokenizer"] = TokenizerConfig.registry.find(recipe.settings["tokenizer.kind"]).kind  # type: ignore[attr-defined]
    return asked


def _lift(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those settings that are options, by the name of the option."""
    found: dict[str, Any] = {}
    for key, option in _LIFTED.items():
        if key in settings:
            section, _, name = key.partition(".")
            change = {name: settings[key]}
            found[option] = getattr(within(section, functools.partial(_Lifted().override, change)), name)
    return {option: value for option, value in found.items() if value is not None}
