"""The verbs of tasks from plugins: `weft NAME RUN TEXT…` shows what `Task.predict` says of each text."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options
from weft.cli.streams import groups, lines_from, open_run, output_to
from weft.errors import ConfigError
from weft.tasks.names import REGISTERED

if TYPE_CHECKING:
    from weft.tasks import Run

AT_ONCE = 64
_VERBS: list[Callable[..., None]] = []  # of the plugins that are loaded now: in one process, others may have been


def add_verbs(app: typer.Typer) -> None:
    """A command for each task that a plugin has registered and that answers texts, and for no other plugin's."""
    app.registered_commands = [one for one in app.registered_commands if one.callback not in _VERBS]
    _VERBS.clear()
    for name, task in REGISTERED.items():
        if "predict" in vars(task):
            verb = _verb(name, inspect.getdoc(task) or "")
            _VERBS.append(verb)
            app.command(name)(verb)


def _verb(name: str, told: str) -> Callable[..., None]:
    def use(
        run: options.RunOrFolder,
        text: Annotated[list[str] | None, typer.Argument(help="Texts; - is stdin, a text on each line.")] = None,
        input_: options.Lines = None,
        output: Annotated[str | None, typer.Option(help="A new file instead of stdout.")] = None,
        threads: options.Threads = None,
        as_json: options.ObjectEach = False,
    ) -> None:
        with ExitStack() as files:
            lines = lines_from(text, input_, files)
            opened = open_run(run, threads)
            _check_task(opened, name)
            file = output_to(output, files)
            for group in groups(lines, AT_ONCE):
                for answer in opened.description.predict(opened, group):
                    file.write((json.dumps(answer, ensure_ascii=False) if as_json else in_a_line(answer)) + "\n")
                file.flush() if file is not sys.stdout else None

    use.__doc__ = f"{told}\n\nExample:  weft {name} RUN TEXT"
    return use


def _check_task(run: Run, name: str) -> None:
    if run.task != name:
        raise ConfigError(f"{run.directory.path} is a run of {run.task}", expected=f"a run of {name}")


def in_a_line(answer: dict[str, Any]) -> str:
    """The values of an answer; names stand before all but the first."""
    values = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in answer.values()]
    return "  ".join(
        [*values[:1], *(f"{key} {value}" for key, value in zip(list(answer)[1:], values[1:], strict=True))]
    )
