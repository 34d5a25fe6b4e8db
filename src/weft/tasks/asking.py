"""What the user typed, put together without torch: a recipe, then options, then `--set`; a later word wins.

`Names` says which models and tokenizers there are: the registries do, and so does the index, which needs no torch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from weft.config import Config, Count, Positive, Size, within
from weft.errors import ConfigError
from weft.registry import Registry
from weft.tasks.recipe import NO_RECIPE, SECTIONS, Recipe, read_recipe

C = TypeVar("C", bound=Config)
DEVICES = ("cpu", "cuda", "mps")
LENGTHS = ("minutes", "steps", "epochs")
PLANNED_FIELDS = ("width", "depth", "max_length", "attention.heads")  # of a model that is named by its family alone


@dataclass(frozen=True)
class Names:
    """Family and fields of a model by its name, and the tokenizers by theirs."""

    preset: Callable[[str], tuple[str, dict[str, Any]]]
    tokenizers: Registry


def check_values(asked: Mapping[str, Any]) -> None:
    """Refuse lengths, seeds and devices that cannot be; what is None or not there was not said."""
    for name in (*LENGTHS, "threads"):
        value = asked.get(name)
        if value is not None and not value > 0:
            raise ConfigError(f"{name} = {value}", expected="more than 0")
    seed, device = asked.get("seed"), asked.get("device")
    if seed is not None and seed < 0:
        raise ConfigError(f"seed = {seed}", expected="0 or more")
    if device is not None and device.partition(":")[0] not in DEVICES:
        raise ConfigError(f"device {device!r}", expected=f"one of {', '.join(DEVICES)}")


def applied(section: str, config: C, recipe: Recipe, changes: Mapping[str, Any]) -> C:
    """The config with what the recipe and then `--set` say about its section."""
    told = functools.partial(within, section, lambda: config.override(below(section, recipe.settings)))
    config = within(recipe.path, told) if recipe.path else told()
    return within(section, lambda: config.override(below(section, changes)))


def below(section: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of one section, without its name."""
    prefix = section + "."
    return {key.removeprefix(prefix): value for key, value in changes.items() if key.startswith(prefix)}


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


OPTION_OF_SETTING = {f"training.{name}": name for name in (*LENGTHS, "seed", "threads", "device")}
OPTION_OF_SETTING |= {
    "model.preset": "model",
    "data.train": "data",
    "data.validation": "validation",
    "data.test": "test",
}


def layered(
    data: Sequence[str],
    options: Mapping[str, Any],
    names: Names,
    *,
    config: str | Path | None = None,
    changes: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], Recipe, dict[str, Any]]:
    """Options by name, what else the recipe says, and what else `--set` says. What is None or empty was not said."""
    changes = dict(changes or {})
    for key in changes:
        if key.partition(".")[0] not in SECTIONS:
            raise ConfigError(
                f"unknown setting {key!r}", expected="model.…, tokenizer.…, data.…, objective.… or training.…"
            )
    recipe = read_recipe(config) if config is not None else NO_RECIPE
    given = {name: value for name, value in {"data": tuple(data), **options}.items() if value not in (None, ())}
    asked = within(recipe.path, lambda: _options_of(recipe, names)) if recipe.path else {}
    recipe = _without_replaced(recipe, given, names)
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
    said = {key: value for key, value in changes.items() if key not in OPTION_OF_SETTING}
    return asked, recipe.without(*OPTION_OF_SETTING), said


def _without_replaced(recipe: Recipe, given: Mapping[str, Any], names: Names) -> Recipe:
    """An option that names a model or a tokenizer replaces what the recipe says about the same fields."""
    if "model" in given:
        _, fields = names.preset(given["model"])
        recipe = recipe.without(
            "model.preset", *(f"model.{name}" for name in (*fields, *(() if fields else PLANNED_FIELDS)))
        )
    registry, kind = names.tokenizers, recipe.settings.get("tokenizer.kind", "bpe")
    if "tokenizer" in given and registry.find(given["tokenizer"]) is not registry.find(kind):
        recipe = recipe.without("tokenizer")
    return recipe


def _options_of(recipe: Recipe, names: Names) -> dict[str, Any]:
    """What the recipe says of options; names of models and tokenizers must exist."""
    asked = _lift(recipe.settings)
    if "model" in asked:
        names.preset(asked["model"])
    if "tokenizer.kind" in recipe.settings:
        asked["tokenizer"] = names.tokenizers.find(recipe.settings["tokenizer.kind"]).kind  # type: ignore[attr-defined]
    return asked


def _lift(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those settings that are options, by the name of the option."""
    found: dict[str, Any] = {}
    for key, option in OPTION_OF_SETTING.items():
        if key in settings:
            section, _, name = key.partition(".")
            change = {name: settings[key]}
            found[option] = getattr(within(section, functools.partial(_Lifted().override, change)), name)
    return {option: value for option, value in found.items() if value is not None}
