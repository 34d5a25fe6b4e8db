"""Options of the verbs; those that several verbs have stand here once, those of `train` and `compare` follow from
`tasks/options.py`, and what these two ask for is put together here."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from weft.errors import ConfigError
from weft.tasks.asking import LENGTHS
from weft.tasks.names import task_names
from weft.tasks.options import Asked, Option, SharedOptions, collect_options, flag_of, with_keywords

F = TypeVar("F", bound=Callable[..., Any])


def _typed(name: str, hint: Any, different: Mapping[str, str | None]) -> Any:
    """What typer wants to know of an option; None if it is none of the command."""
    kind, *found = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    if not found or different.get(name, "") is None:
        return None
    words = get_args(kind) or (kind,)
    plain: Any = next((one for one in (str, bool, int, float) if one in words), list[str])
    told = typer.Option(flag_of(name), metavar=found[0].metavar, help=different.get(name) or found[0].help)
    return Annotated[plain if plain is bool else plain | None, told]


def with_options(kind: type, different: Mapping[str, str | None] | None = None) -> Callable[[F], F]:
    """Give a command that takes `**given` the options of this class: after its words, before its own.

    `different` is the help where it is another for this command; None: not an option of this command.
    """
    return with_keywords(kind, lambda name, hint: _typed(name, hint, different or {}))


def shared(name: str) -> Any:
    """An option of `train` and `compare` for another verb."""
    found: Option = get_args(get_type_hints(SharedOptions, include_extras=True)[name])[1]
    return typer.Option(flag_of(name), metavar=found.metavar, help=found.help)


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TASK] DATA…",
        help="generate, fill or embed, then text files or folders; classify, then tables (.csv .tsv .jsonl) or a "
        "folder of images; translate, then tables or two text files; or demo",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]
Settings = Annotated[list[str] | None, shared("set")]
Threads = Annotated[int | None, shared("threads")]
InputAndPosition = Annotated[
    list[str] | None,
    typer.Argument(metavar="[INPUT] [POSITION]", help="--health: a text or image; --reach: a number, from 0."),
]
Health = Annotated[
    bool, typer.Option("--health", help="Softmax health of every head of a run, on INPUT or held-out input.")
]
Reach = Annotated[bool, typer.Option("--reach", help="What POSITION can see after each layer.")]
Flow = Annotated[bool, typer.Option("--flow", help="Gradients through layers, and back in time.")]
Events = Annotated[bool, typer.Option("--json", help="Events as JSON lines on stdout.")]
UntilEof = Annotated[
    bool,
    typer.Option("--until-eof", hidden=True, help="Save and stop when stdin is closed: for a program that listens."),
]
OneObject = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
ObjectEach = Annotated[bool, typer.Option("--json", help="One JSON object for each text.")]
RunDirectory = Annotated[str, typer.Argument(help="The directory of the run.")]
RunOrFolder = Annotated[str, typer.Argument(help="A run, or a Hugging Face folder.")]
Lines = Annotated[str | None, typer.Option("--input", help="A file with a text on each line; - is stdin.")]


# -- what words and options ask for -----------------------------------------------------------


def read_options(verb: str, data: Sequence[str] | None, given: Mapping[str, Any]) -> Asked:
    """What `weft train` or `weft compare` is asked for; what contradicts itself is refused."""
    one_length(given)
    task, words = task_and_data(list(data or ()))
    if task is None and len(words) > 1:
        check_is_data(words[0])
    if not words and given["config"] is None:
        raise ConfigError(
            "no data was given", expected="text files, a folder, tables, or demo", advice=f"weft {verb} demo"
        )
    said = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return collect_options(words, said | {"task": task, "set": parse_changes(given["set"] or ())})


def task_and_data(words: list[str]) -> tuple[str | None, list[str]]:
    """The first word is the task if it is one."""
    return (words[0], words[1:]) if words and words[0] in task_names() else (None, words)


def check_is_data(word: str) -> None:
    """Refuse what is no data but nearly a task."""
    meant = difflib.get_close_matches(word, task_names(), n=1, cutoff=0.75)
    if meant and not Path(word).exists():
        raise ConfigError(f"{word} is no data and no task", advice=f"did you mean {meant[0]!r}?")


def one_length(given: Mapping[str, Any]) -> None:
    """Refuse more than one way to say how long."""
    if sum(given.get(name) is not None for name in LENGTHS) > 1:
        raise ConfigError("more than one of --minutes, --steps, --epochs", expected="one of them")


def parse_changes(settings: Sequence[str]) -> dict[str, str]:
    """`--set a.b=c` as a dict."""
    changes = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}", expected="key=value, such as model.width=128")
        changes[key] = value
    return changes
