"""What is planned: each variant as a recipe and words of `weft train`, so that it can also be trained alone."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.errors import ConfigError
from weft.tasks.asking import OPTION_OF_SETTING
from weft.tasks.options import COLUMN_OPTIONS, flag_of
from weft.tasks.request import Request
from weft.toml import toml_lines, toml_value


@dataclass(frozen=True)
class Trial:
    """One variant, ready to be trained by `weft train --config RECIPE.toml WORDS`.

    recipe        its settings by dotted names, with all that was planned; in the comparison's folder it is a file
    words         what a recipe cannot say
    fingerprint   of the data; tokenizer: of its tokenizer.json, empty where no text is read
    flops         operations of one step; None where nobody can tell yet
    reason        why it cannot be trained; empty if it can
    """

    name: str
    settings: dict[str, Any]
    recipe: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    parameters: int | None = None
    flops: float | None = None
    memory: int | None = None
    fingerprint: str = ""
    tokenizer: str = ""
    reason: str = ""

    def to_toml(self, path: Path) -> str:
        """The recipe as it is written to this file."""
        typed = shlex.join(["weft", "train", "--config", str(path), *self.words])
        told = "".join(letter if letter.isprintable() else " " for letter in typed)
        sections: dict[str, dict[str, Any]] = {}
        for key, value in self.recipe.items():
            section, _, name = key.partition(".")
            sections.setdefault(section, {})[name] = value
        task = sections.pop("task", {})
        lines = [f"# {self.name}, as weft compare planned it. Alone:  {told}"]
        lines += toml_lines({"task": task[""]} if task else {})
        for section, fields in sections.items():
            names = {name: f'"{name}"' if _has_table(name, fields) else name for name in fields}
            lines += ["", *toml_lines({section: {names[name]: value for name, value in fields.items()}})[1:]]
        return "\n".join(lines) + "\n"


def _has_table(name: str, names: Iterable[str]) -> bool:
    """Whether `attention.heads` stands beside `attention`: such a key is quoted in TOML."""
    return any(name.startswith(other + ".") for other in names)


def recipe_of(request: Request) -> dict[str, Any]:
    """All settings that a recipe can say, by dotted names."""
    found: dict[str, Any] = {} if request.task_is_recognised else {"task": request.task}
    for key, option in OPTION_OF_SETTING.items():
        value = getattr(request, option)
        if value not in (None, ()):
            found[key] = list(value) if isinstance(value, tuple) else value
    if request.tokenizer is not None:
        found["tokenizer.kind"] = request.tokenizer
    found |= request.recipe.settings
    return {key: "none" if value is None else _plain(value) for key, value in found.items()}


def words_of(request: Request) -> list[str]:
    """The options of `weft train` for what a recipe cannot say; what was set wins over a recipe, as it did."""
    named = {"from_": request.start} | {name: getattr(request, name) for name in (*COLUMN_OPTIONS, "freeze")}
    words = [f"{flag_of(name)}={value}" for name, value in named.items() if value is not None]
    words += [flag_of("watch")] if request.watch else []
    return words + [f"{flag_of('set')}={key}={_spelled(value)}" for key, value in request.changes.items()]


def _spelled(value: Any) -> str:
    """A value as text that `--set` reads."""
    value = _plain(value)
    if isinstance(value, str):
        return value
    return "none" if value is None else toml_value(value)


def _plain(value: Any) -> Any:
    """As JSON would give it back."""
    try:
        return json.loads(json.dumps(value))
    except TypeError as error:
        raise ConfigError(f"a setting cannot be written down: {error}", expected="numbers, words or lists") from None


@dataclass(frozen=True)
class Plan:
    """All variants in order, and how long one takes: minutes if they are what is given, or seconds as measured."""

    task: str
    orders: list[Trial]
    steps: int
    seconds: float | None
    timed: bool  # whether all are trained for the same time

    def words(self) -> str:
        """How many runs there are, and about how long they take."""
        each = f"{length(self.seconds or 0)}" if self.timed else f"{self.steps:,} steps"
        count = sum(not order.reason for order in self.orders)
        told = f"{count} run{'s' * (count > 1)} of {each}{' each' * (count > 1)}"
        return f"{told}, about {length(count * self.seconds)} in all" if self.seconds and count > 1 else told


def length(seconds: float) -> str:
    """A time in words, with two digits."""
    if seconds < 99.5:
        return f"{seconds:.2g} seconds"
    return f"{seconds / 60:.2g} minutes" if seconds < 5970 else f"{seconds / 3600:.2g} hours"


def digest(data: bytes) -> str:
    """What a tokenizer.json is known by."""
    return hashlib.sha256(data).hexdigest()
