"""`weft inspect`: what a model is made of and what it costs, before it is trained or after.

What is told is a list of sections; each finds its numbers and says them. A section that needs a run or an option of
its own says so in `wanted`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options
from weft.errors import ConfigError, DataError

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
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INPUT] [POSITION]", help="--health: a text or picture; --reach: a number, from 0."),
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a text, rows of a picture. Default: the model's or the run's own")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Texts or pictures in a step. Default: the run's own, or 16")
    ] = None,
    set_: options.Settings = None,
    health: Annotated[
        bool, typer.Option("--health", help="Softmax health of every head of a run, on INPUT or held-out input.")
    ] = False,
    reach: Annotated[bool, typer.Option("--reach", help="What POSITION can see after each layer.")] = False,
    flow: Annotated[bool, typer.Option("--flow", help="Gradients through layers, and back in time.")] = False,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --health, --reach, --flow, a picture: .png or .svg.")
    ] = None,
    as_json: options.OneObject = False,
) -> None:
    """What a model is made of and what it costs, before it is trained: parameters, operations, memory, seconds.

    Example:  weft inspect gpt-small

    Example:  weft inspect runs/generate-book-1 --length 512 --batch 8

    Example:  weft inspect runs/generate-book-1 --health "Once upon a time" --reach 7 --flow
    """
    from weft.cli.train import parse_changes
    from weft.tasks.inspected import inspected

    found = inspected(what, length=length, batch=batch, changes=parse_changes(set_ or []))
    inside = asked_inside(words or [], health=health, reach=reach, flow=flow, out=out)
    sections = inside or [PARAMETERS, SHORT_HEALTH]
    told = {section.name: section.find(found) for section in sections}
    told = {name: value for name, value in told.items() if value is not None}
    if out is not None:
        from weft.report.inside import write_inside

        write_inside(told, Path(out))
        typer.echo(f"open {out}", err=True)
    if as_json and inside:
        typer.echo(json.dumps(told))
        return
    if as_json:
        typer.echo(json.dumps({"flops": {}, "memory": {}, "seconds": {}} | told))
        return
    columns = shutil.get_terminal_size().columns
    for section in sections if out is None else ():
        if section.name not in told:
            continue
        for line in section.tell(told[section.name], columns):
            typer.echo(line)


# -- looking inside ---------------------------------------------------------------------------


def asked_inside(words: list[str], *, health: bool, reach: bool, flow: bool, out: str | None) -> list[Section]:
    """The sections that were asked for by an option of their own."""
    from weft.cli import inspect_inside as inside
    from weft.tasks.inside import position_of

    position, given = position_of(words)
    if given is not None and not health:
        raise ConfigError(f"an input ({given!r}) without --health", expected="--health, which reads it")
    if position is not None and not reach:
        if not health or given is not None:
            raise ConfigError(f"a position ({position}) without --reach", expected="--reach, which asks for one")
        position, given = None, str(position)
    if out is not None:
        if not (health or reach or flow):
            raise ConfigError("--out without --health, --reach or --flow", expected="one of them: they are drawn")
        check_place(out)
    sections = []
    if health:
        sections.append(Section("health", lambda found: inside.health(found, given), inside.tell_health))
    if reach:
        sections.append(Section("reach", lambda found: inside.reach(found, position), inside.tell_reach))
    if flow:
        sections.append(Section("flow", inside.flow, inside.tell_flow))
    return sections


def check_place(out: str) -> None:
    """Before any work is done for it."""
    if Path(out).suffix not in (".png", ".svg"):
        raise ConfigError(f"--out {out}", expected="a file that ends in .png or .svg")
    if Path(out).exists():
        raise DataError(f"{out} is there already", advice="choose another --out")
    if not Path(out).parent.is_dir():
        raise DataError(f"{out} cannot be written: there is no folder {Path(out).parent}")


def _short_health(found: Inspected) -> Any:
    from weft.cli.inspect_inside import short_health

    return short_health(found)


def _tell_health(told: Any, columns: int) -> Iterator[str]:
    from weft.cli.inspect_inside import tell_health

    return tell_health(told, columns)


SHORT_HEALTH = Section("health", _short_health, _tell_health)

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
