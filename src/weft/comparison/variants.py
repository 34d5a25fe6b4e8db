"""What is compared: settings with several values each, every combination of them under a name of its own. No torch."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.errors import ConfigError, UnsupportedError
from weft.tasks.options import Asked

LONGEST = 80  # letters of a name
MANY = 200  # runs; more are a slip of the keyboard
NO_WORDS = ("none", "true", "false", "yes", "no")  # values that say nothing without the name of their setting
FIXED = ("train", "validation", "test", "held_out", "text", "pair", "label", "pairs", "source", "target")


@dataclass(frozen=True)
class Variant:
    """One of the runs: a name for its folder, the model if several are compared, and its own settings."""

    name: str
    model: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """What sets it apart from the others."""
        return {**({} if self.model is None else {"model": self.model}), **self.changes}


@dataclass(frozen=True)
class TrialSpec:
    """What the user asked for: as for `weft train`, and the models and settings that vary."""

    data: tuple[str, ...]
    task: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    config: str | None = None
    models: Sequence[str] = ()
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def variants(self) -> list[Variant]:
        """All that are to be trained; what contradicts itself is refused."""
        for key in self.vary:
            if key in self.changes:
                raise ConfigError(f"{key} is both set and varied", expected="one of them")
        if self.models and "model.preset" in self.vary:
            raise ConfigError("--models and --vary model.preset", expected="one of them")
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise UnsupportedError("weft compare under torchrun", expected="one process: it starts others by itself")
        return make_variants(self.models, self.vary)

    def asked_by(self, variant: Variant) -> Asked:
        """What `weft train` would be asked for to make this variant alone."""
        options = self.options | ({} if variant.model is None else {"model": variant.model})
        changes = self.changes | variant.changes
        return Asked(data=self.data, options=options, task=self.task, config=self.config, changes=changes)


def parse_vary(words: Sequence[str]) -> dict[str, list[str]]:
    """`key=a,b` as a key and its values; where there is a `;`, it separates them, and a value may hold commas."""
    found: dict[str, list[str]] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--vary {word}", expected="key=value,value, such as model.attention.kind=softmax,hard")
        if key in found:
            raise ConfigError(f"--vary {key} is given twice", expected="all its values in one place")
        found[key] = parse_values(text, f"--vary {word}")
    return found


def parse_values(text: str, where: str) -> list[str]:
    """`a,b` or `a,b;c`, without the spaces around them."""
    parts = [part.strip() for part in text.split(";" if ";" in text else ",")]
    if len(parts) > 1 and not parts[-1]:
        parts.pop()  # `softmax,local;` is one value
    if not all(parts):
        raise ConfigError(f"{where}: a value is empty", expected="values such as softmax,hard")
    return parts


def make_variants(models: Sequence[str], vary: Mapping[str, Sequence[Any]]) -> list[Variant]:
    """Every combination, the last setting changing fastest; names are unique, also where case does not count."""
    if not models and not vary:
        raise ConfigError(
            "nothing to compare",
            expected="--vary KEY=V1,V2 or --models A,B",
            advice="weft compare demo --vary model.attention.kind=softmax,hard",
        )
    for what, values in (("--models", models), *vary.items()):
        _check_values(what, values)
    axes: list[list[tuple[str, Any]]] = [[("", model) for model in models]] if models else []
    axes += [[(key, value) for value in values] for key, values in vary.items()]
    count = 1
    for axis in axes:
        count *= len(axis)
    if count == 1:
        raise ConfigError(
            "one run is nothing to compare", expected="several values or models", advice="weft train DATA trains one"
        )
    if count > MANY:
        raise ConfigError(f"{count} combinations", expected=f"at most {MANY}")
    taken: set[str] = set()
    return [_variant(combination, taken) for combination in itertools.product(*axes)]


def _check_values(what: str, values: Sequence[Any]) -> None:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ConfigError(f"{what}: {values!r}", expected="a list of values")
    told = [as_text(value) for value in values]
    for value in told:
        if told.count(value) > 1:
            raise ConfigError(f"{what}: {value} is given twice", expected="each value once")
    if what == "--models":
        return
    if not values:
        raise ConfigError(f"{what} has no values", expected="at least one")
    section, _, name = what.partition(".")
    if section == "data" and name in FIXED:
        raise ConfigError(f"{what} cannot vary", expected="the same data and split for all: that is what is compared")


def _variant(combination: Sequence[tuple[str, Any]], taken: set[str]) -> Variant:
    stem = "-".join(label(key, value) for key, value in combination)[:LONGEST].rstrip("-.") or "run"
    name, number = stem, 1
    while name.casefold() in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name.casefold())
    model = next((str(value) for key, value in combination if not key), None)
    return Variant(name, model, {key: value for key, value in combination if key})


def label(key: str, value: Any) -> str:
    """A word stands for itself (`softmax`), a number needs its setting (`width-64`); fit for a folder's name."""
    text = as_text(value)
    if text.startswith("{"):  # a table of settings: its kind stands for itself too
        parts = (re.split("[=:]", part, maxsplit=1) for part in re.sub(r"[{}\"']", "", text).split(","))
        text = "-".join("-".join(word.strip() for word in part if word.strip() != "kind") for part in parts)
    if not text[:1].isalpha() or text.lower() in NO_WORDS:
        text = f"{key.rpartition('.')[2]}-{text}" if key else text
    return re.sub(r"[^\w.+-]+", "-", text.replace(",", "+")).strip("-.")


def as_text(value: Any) -> str:
    """As it is written after `--vary KEY=`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(as_text(item) for item in value)
    return "none" if value is None else str(value)


def told(settings: Mapping[str, Any]) -> Iterator[str]:
    """Settings as a person would type them."""
    return (f"{key}={as_text(value)}" for key, value in settings.items())


def of_variant(variant: Variant, build: Callable[[], Any]) -> Any:
    """Name the variant whose setting is refused."""
    try:
        return build()
    except ConfigError as error:
        raise ConfigError(f"{', '.join(told(variant.settings))}: {error}") from None
