"""A recipe: the settings of a run as a TOML file, for `weft train --config recipe.toml`.

    task = "generate"                 # may be left out
    [data]                            # train, validation, test, validation_share; paths from where the command is given
    train = ["book.txt"]
    [tokenizer]                       # kind and its fields
    [model]                           # preset = "gpt-small", or any fields, or both
    [objective]                       # what is asked of the model, where a task leaves a choice
    [training]                        # minutes, steps or epochs, and any other field

What a recipe does not say is planned; options win over it, and `--set` wins over both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.errors import ConfigError, DataError, did_you_mean

SECTIONS = ("model", "tokenizer", "data", "objective", "training")
SHORT = {"model": "preset", "tokenizer": "kind"}  # `model = "gpt2"` is `[model] preset = "gpt2"`


@dataclass(frozen=True)
class Recipe:
    """What a file says: a task, and settings with dotted names such as `model.attention.heads`."""

    path: str = ""
    task: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def without(self, *names: str) -> Recipe:
        """The same recipe without these settings and what is below them."""
        gone = tuple(f"{name}." for name in names)
        kept = {key: value for key, value in self.settings.items() if not f"{key}.".startswith(gone)}
        return Recipe(self.path, self.task, kept)


NO_RECIPE = Recipe()


def read_recipe(path: str | Path) -> Recipe:
    """Read the file; sections are checked here, their fields where they are used."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        near = [item.name for item in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, near)
        raise DataError(f"there is no recipe {path}", expected="a TOML file", advice=hint) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", expected="a TOML file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not valid UTF-8 at byte {error.start}", expected="a TOML file") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    task = table.pop("task", None)
    if task is not None and not isinstance(task, str):
        raise ConfigError(f"{path}: task = {task!r}", expected='a word, such as "generate"')
    settings = dict(_settings(table, path))
    for key in ("data.train", "data.validation", "data.test"):
        if isinstance(settings.get(key), str):
            settings[key] = [settings[key]]  # one path, which may have a comma in it
    return Recipe(str(path), task, settings)


def _settings(table: dict[str, Any], path: Path) -> Iterator[tuple[str, Any]]:
    for section, value in table.items():
        if section not in SECTIONS:
            known = ("task", *SECTIONS)
            raise ConfigError(f"{path}: unknown section {section!r}", advice=did_you_mean(section, known))
        if isinstance(value, str) and section in SHORT:
            yield f"{section}.{SHORT[section]}", value
        elif isinstance(value, dict):
            yield from _dotted(value, section)
        else:
            raise ConfigError(f"{path}: {section} = {value!r}", expected=f"a table, [{section}]")


def _dotted(table: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """Tables in tables as one level of dotted names."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{name}.{key}")
        else:
            yield f"{name}.{key}", value
