"""`weft inspect`: what a model is made of and what it costs, before it is trained or after.

What is told is a list of sections: each finds its numbers, as JSON shows them, and says them in lines.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.cli.inspect_section import InspectSection, Told
from weft.errors import ConfigError, DataError

if TYPE_CHECKING:
    from weft.tasks.inspection import Inspected


def inspect(
    what: Annotated[
        str, typer.Argument(metavar="PRESET|RUN|FILE.toml", help="A named size (gpt2), a run or folder, or a recipe.")
    ],
    words: options.InputAndPosition = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a text, rows of an image. Default: the model's or the run's own")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Texts or images in a step. Default: the run's own, else 16 or 64")
    ] = None,
    curves: Annotated[bool, typer.Option("--curves", help="Other lengths and widths too.")] = False,
    out: Annotated[
        str | None, typer.Option(metavar="FILE.png|.svg", help="Draw the curves, or what is inside.")
    ] = None,
    health: options.Health = False,
    reach: options.Reach = False,
    flow: options.Flow = False,
    set_: options.Settings = None,
    as_json: options.OneObject = False,
) -> None:
    """What a model is made of and what it costs, before it is trained: parameters, operations, memory, seconds.

    Example:  weft inspect gpt-small

    Example:  weft inspect runs/generate-book-1 --length 512 --batch 8

    Example:  weft inspect gpt2 --curves --out gpt2.png

    Example:  weft inspect runs/generate-book-1 --health "Once upon a time" --reach 7 --flow
    """
    from weft.tasks.mistakes import refuse_inspection

    _check_out(out)
    changes = options.parse_changes(set_ or [])
    refuse_inspection(what, changes)
    from weft.cli.inspect_cost import COST, CURVES
    from weft.cli.inspect_inside import SHORT_HEALTH, sections_inside
    from weft.tasks.inspection import inspected

    found = inspected(what, length=length, batch=batch, changes=changes)
    inside = sections_inside(words or [], health=health, reach=reach, flow=flow)
    if inside:
        _check_alone(found, curves=curves, changed=bool(set_))
    sections = inside or [*COST, *([CURVES] if curves or out else []), SHORT_HEALTH]
    told = told_by(sections, found)
    if out is not None:
        _draw(Path(out), found.name, told)
    if as_json:
        typer.echo(json.dumps(told))
        return
    columns = max(30, shutil.get_terminal_size().columns)
    for section in sections:
        for line in section.tell(found, told, columns):
            typer.echo(line)
        typer.echo("")
    if out is not None:
        typer.echo(f"Drawn in {out}.")


def _check_alone(found: Inspected, *, curves: bool, changed: bool) -> None:
    """Refuse what does not go together with a look inside."""
    if changed and found.run is not None:
        raise ConfigError(
            "--set with --health, --reach or --flow of a run",
            expected="the run as it is",
            advice="a named size, such as gpt-tiny, can be changed",
        )
    if curves:
        raise ConfigError("--curves with --health, --reach or --flow", expected="one at a time")


def _draw(path: Path, name: str, told: Told) -> None:
    """The curves, or what is inside."""
    if "curves" in told:
        from weft.report.costs import write_curves

        write_curves(path, name, told["curves"])
    else:
        from weft.report.inside_figure import write_inside

        write_inside(told, path)


def told_by(sections: list[InspectSection], found: Inspected) -> Told:
    """What all sections found, by their names."""
    told: Told = {}
    for section in sections:
        if section.doing and sys.stderr.isatty():
            typer.echo(f"{section.doing} …", err=True)
        numbers = section.find(found, told)
        told |= {} if numbers is None else {section.name: numbers}
    return told


def _check_out(out: str | None) -> None:
    """Before anything is measured for it."""
    if out is None:
        return
    from weft.report.figures import check_can_draw

    check_can_draw()
    if Path(out).suffix not in (".png", ".svg"):
        raise ConfigError(f"--out {out}", expected="a file that ends in .png or .svg")
    if Path(out).exists():
        raise DataError(f"{out} is there already", expected="a new file")
    if not Path(out).absolute().parent.is_dir():
        raise DataError(f"there is no folder {Path(out).parent}", expected="one that is there")
