"""`weft inspect`: what a model is made of and what it costs, before it is trained or after.

What is told is a list of sections; each finds its numbers and says them. A section that needs a run or an option of
its own says so in `wanted`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options

if TYPE_CHECKING:
    from weft.tasks.inspected import Inspected


@dataclass(frozen=True)
class Section:
    """One part of what is told.

    name   its key in the JSON object
    find   its numbers, ready for JSON
    tell   these in lines, for a terminal of so many columns
    """

    name: str
    find: Callable[[Inspected], Any]
    tell: Callable[[Any, int], Iterator[str]]


def inspect(
    what: Annotated[str, typer.Argument(metavar="PRESET|RUN|FILE.toml", help="A named size (gpt2), a run, a recipe.")],
    length: Annotated[
        int | None, typer.Option(help="Tokens of a text, rows of a picture. Default: the model's or the run's own")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Texts or pictures in a step. Default: the run's own, or 16")
    ] = None,
    set_: options.Settings = None,
    as_json: options.OneObject = False,
) -> None:
    """What a model is made of and what it costs, before it is trained: parameters, operations, memory, seconds.

    Example:  weft inspect gpt-small

    Example:  weft inspect runs/generate-book-1 --length 512 --batch 8
    """
    from weft.cli.train import parse_changes
    from weft.tasks.inspected import inspected

    found = inspected(what, length=length, batch=batch, changes=parse_changes(set_ or []))
    sections = [PARAMETERS]
    told = {section.name: section.find(found) for section in sections}
    if as_json:
        typer.echo(json.dumps({"flops": {}, "memory": {}, "seconds": {}} | told))
        return
    columns = shutil.get_terminal_size().columns
    for section in sections:
        for line in section.tell(told[section.name], columns):
            typer.echo(line)


# -- parameters -------------------------------------------------------------------------------


def _parameters(found: Inspected) -> dict[str, Any]:
    from weft.cost.parts import parameters_by_part

    parts = parameters_by_part(found.config.skeleton())
    return {"total": sum(parts.values()), "parts": parts}


def _tell_parameters(told: dict[str, Any], columns: int) -> Iterator[str]:
    yield f"{told['total']:,} parameters"
    for part, count in told["parts"].items():
        yield f"  {part:22} {count:>15,}"[:columns]


PARAMETERS = Section("parameters", _parameters, _tell_parameters)
