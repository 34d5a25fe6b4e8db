"""The options of `weft train` and `weft compare`, defined here once: name, type, help, and what a value is called.

The commands take their options from these classes (`cli/options.py`), `weft.train` and `weft.compare` their keywords:
for editors and mypy by `**options: Unpack[TrainOptions]`, for `help` by `with_keywords`. No torch is needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, get_type_hints

from weft.config import fit
from weft.errors import ConfigError, did_you_mean
from weft.tasks.names import task_names

Given = Any  # a path, several, texts, tuples of a text and its label or target, arrays and labels, or a data frame
F = TypeVar("F", bound=Callable[..., Any])
COLUMN_OPTIONS = ("text", "pair", "label", "pairs", "source", "target")  # options that name columns of a table


@dataclass(frozen=True)
class Option:
    """A keyword that is an option of the command too: its help, and what its value is called if its type says less."""

    help: str
    metavar: str | None = None


class SharedOptions(TypedDict, total=False):
    """Those of both; what is None is found out or planned."""

    task: str | None  # the command's first word
    tokenizer: Annotated[
        str | None,
        Option("characters, words, bytes, bpe, unigram or wordpiece. Default: bpe to write, wordpiece to read"),
    ]
    text: Annotated[str | None, Option("The column of the text, or path, in a table. Default: found")]
    pair: Annotated[str | None, Option("The column of a second text. Default: found")]
    label: Annotated[str | None, Option("The column of the label. Default: found")]
    pairs: Annotated[str | Path | None, Option("fill: labelled pairs for the objective `entailment`.", "TABLE")]
    source: Annotated[str | None, Option("translate: the column to read. Default: the first", "COLUMN")]
    target: Annotated[str | None, Option("translate: the column to write. Default: the second", "COLUMN")]
    validation: Annotated[Given, Option("Data to hold out instead of a tenth.", "FILE…")]
    test: Annotated[Given, Option("Data to measure the best weights on, at the very end.", "FILE…")]
    from_: Annotated[str | Path | None, Option("Begin with the weights of another model.", "RUN|HF_DIR")]
    freeze: Annotated[int | str | None, Option("What keeps its weights: the first N layers.", "N|embeddings")]
    minutes: Annotated[float | None, Option("Plan for this time. Default: 5; a table is read a few times")]
    steps: Annotated[int | None, Option("Train this many steps.")]
    epochs: Annotated[float | None, Option("Read the data this many times.")]
    seed: Annotated[int | None, Option("Another seed, another run. Default: 0")]
    out: Annotated[str | Path | None, Option("Directory of the run. Default: runs/TASK-NAME-N")]
    device: Annotated[str | None, Option("cpu, cuda or mps. Default: cuda if there is one")]
    threads: Annotated[int | None, Option("Processor threads. Default: all")]
    config: Annotated[str | Path | None, Option("Settings from a file; options win over it.", "RECIPE.toml")]
    set: Annotated[Mapping[str, Any] | None, Option("Any setting.", "KEY=VALUE")]
    watch: Annotated[bool, Option("Show the softmax health of each head at every evaluation (health.jsonl).")]


class ModelOption(TypedDict, total=False):
    """Which model is trained."""

    model: Annotated[
        str | None,
        Option("A family (gpt, bert, vit …: sized by the plan) or a named size (gpt2, vit-b). Default: by task"),
    ]


class TrainOptions(ModelOption, SharedOptions, total=False):
    """Of one training."""

    sample: Annotated[str | None, Option("generate: what the model writes after it, before and after.", "PROMPT")]


class VariedOptions(TypedDict, total=False):
    """What differs between several trainings."""

    vary: Annotated[
        Mapping[str, Sequence[Any]] | None,
        Option(
            "A setting and its values. Values that hold commas are separated by `;`: KEY='a,b;c'. Given several times: "
            "every combination.",
            "KEY=V1,V2",
        ),
    ]
    models: Annotated[str | Sequence[str] | None, Option("Models, as --model of `weft train` names them.", "A,B")]


class CompareOptions(VariedOptions, SharedOptions, total=False):
    """Of several that are compared: what differs, or the comparison that is continued."""

    resume: Annotated[
        str | Path | None, Option("Go on with a comparison that was stopped: what is finished is kept.", "DIR")
    ]


def flag_of(name: str) -> str:
    """`--dry-run` of dry_run, `--from` of from_."""
    return "--" + name.rstrip("_").replace("_", "-")


# -- signatures that follow from them ---------------------------------------------------------


def with_keywords(kind: type, annotate: Callable[[str, Any], Any] = lambda _, hint: hint) -> Callable[[F], F]:
    """Let `help`, editors and typer see every option in the signature of a function that takes them as `**options`.

    `annotate` gives the annotation of an option by its name and type; an option for which it gives None is left out.
    """

    def signed(function: F) -> F:
        hints = get_type_hints(function, include_extras=True)
        own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        own = [p.replace(annotation=hints.get(p.name, p.annotation)) for p in own]
        defaults = {name: False if hint is bool else None for name, hint in get_type_hints(kind).items()}
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=annotation)
            for name, hint in get_type_hints(kind, include_extras=True).items()
            if (annotation := annotate(name, hint)) is not None
        ]
        first = [p for p in own if p.kind is p.POSITIONAL_OR_KEYWORD]
        made = inspect.signature(function).replace(parameters=[*first, *named, *own[len(first) :]])
        function.__signature__ = made  # type: ignore[attr-defined]
        function.__annotations__ = {name: p.annotation for name, p in made.parameters.items()}
        return function

    return signed


# -- what was said ----------------------------------------------------------------------------


class Asked(TypedDict):
    """The given options, from the command line or Python: `make_request` and `refuse_mistakes` take it."""

    data: tuple[str, ...]
    options: dict[str, Any]
    task: str | None
    config: str | None
    changes: dict[str, Any]


def collect_options(data: Sequence[str], said: Mapping[str, Any]) -> Asked:
    """Words of data, and options by name; what is None, false or empty was not said."""
    apart = ("task", "config", "set")
    given = {name: value for name, value in said.items() if value is not None and value is not False and value != ()}
    options = {"start" if name == "from_" else name: value for name, value in given.items() if name not in apart}
    task, config, changes = (given.get(name) for name in apart)
    return Asked(data=tuple(data), options=options, task=task, config=config, changes=dict(changes or {}))


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
