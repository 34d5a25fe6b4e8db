"""The keywords of `weft.train` and `weft.compare`: each is defined here once, with its type, and checked by it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar, get_type_hints

from weft.config import fit
from weft.errors import ConfigError, did_you_mean
from weft.tasks.names import task_names

Given = Any  # a path, several, texts, tuples of a text and its label or target, arrays and labels, or a data frame
F = TypeVar("F", bound=Callable[..., Any])


class SharedKeywords(TypedDict, total=False):
    """Those of both; what is None is found out or planned, as the command does it."""

    task: str | None
    tokenizer: str | None
    text: str | None
    pair: str | None
    label: str | None
    pairs: str | Path | None
    source: str | None
    target: str | None
    validation: Given
    test: Given
    from_: str | Path | None
    freeze: int | str | None
    minutes: float | None
    steps: int | None
    epochs: float | None
    seed: int | None
    out: str | Path | None
    device: str | None
    threads: int | None
    config: str | Path | None
    set: Mapping[str, Any] | None
    watch: bool


class TrainKeywords(SharedKeywords, total=False):
    """Of one training."""

    model: str | None
    sample: str | None


class CompareKeywords(SharedKeywords, total=False):
    """Of several that are compared: what differs, or the comparison that is continued."""

    models: str | Sequence[str] | None
    vary: Mapping[str, Sequence[Any]] | None
    resume: str | Path | None


def with_keywords(kind: type) -> Callable[[F], F]:
    """Let `help` and editors show every keyword of a function that takes them as `**options`."""

    def signed(function: F) -> F:
        hints = get_type_hints(kind)
        first = [p for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        defaults = {name: False if hint is bool else None for name, hint in hints.items()}
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=hint)
            for name, hint in hints.items()
        ]
        made = inspect.signature(function).replace(parameters=[*first, *named])
        function.__signature__ = made  # type: ignore[attr-defined]
        return function

    return signed


def check_keywords(data: Given, given: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """What was said, without what is None, paths as text; an unknown keyword or another type is refused by name."""
    if isinstance(data, str) and data in task_names() and not Path(data).exists():
        raise ConfigError(f"the data is {data!r}: that is a task", expected=f'data first: "data.csv", task="{data}"')
    hints = get_type_hints(kind)
    for name in given:
        if name not in hints:
            raise ConfigError(f"unknown option {name!r}", advice=did_you_mean(name, hints))
    said = {name: value for name, value in {"data": data, **given}.items() if value is not None and value is not False}
    return {name: _checked(value, hints.get(name, Given), name) for name, value in said.items()}


def _checked(value: Any, hint: Any, name: str) -> Any:
    if name in ("data", "validation", "test"):
        if not hasattr(value, "__len__") and not isinstance(value, Path):
            raise ConfigError(f"{name} = {value!r}", expected="a path, several, texts, tuples, arrays or a data frame")
        return value
    if name in ("set", "vary"):
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            wanted = '{"model.width": [64, 128]}' if name == "vary" else '{"model.width": 128}'
            raise ConfigError(f"{name} = {value!r}", expected=f"settings by name, such as {wanted}")
        return dict(value)
    if name == "models":
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, Sequence) or not all(isinstance(one, str) for one in names):
            raise ConfigError(f"models = {value!r}", expected="a list of names of models")
        return tuple(one.strip() for one in names)
    found = fit(value, hint, name)
    return str(found) if isinstance(found, Path) else found
