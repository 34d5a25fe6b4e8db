"""`weft fill`: what may stand in the gaps of a text."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.cli.streams import groups, lines_from, open_run, output_to

if TYPE_CHECKING:
    from weft.tasks.fill.results import Filled

AT_ONCE = 64


def fill(
    run: options.RunOrFolder,
    text: Annotated[list[str] | None, typer.Argument(help="Texts with gaps, written [MASK]; - is stdin.")] = None,
    top: Annotated[int, typer.Option(help="Candidates for each gap.")] = 5,
    mask: Annotated[str, typer.Option(help="How a gap is written.")] = "[MASK]",
    input_: options.Lines = None,
    output: Annotated[str | None, typer.Option(help="A file for the filled texts, a line each.")] = None,
    threads: options.Threads = None,
    as_json: options.ObjectEach = False,
) -> None:
    """Say what may stand in the gaps of a text, with probabilities.

    Example:  weft fill runs/fill-book-1 "The [MASK] of the house"
    """
    from weft.tasks.fill.filler import Filler

    with ExitStack() as files:
        lines = lines_from(text, input_, files)
        filler = Filler(open_run(run, threads))
        file = output_to(output, files)
        typed = bool(text) and text != ["-"]
        for group in groups(lines, AT_ONCE):
            for found in filler.fill(group, top=top, mask=mask, strict=typed):  # a file may have lines without gaps
                if as_json:
                    file.write(json.dumps(found.to_dict(), ensure_ascii=False) + "\n")
                elif typed and output is None:
                    _show(found)
                else:
                    file.write(found.best.replace("\n", "\\n") + "\n")
            file.flush() if file is not sys.stdout else None


def _show(found: Filled) -> None:
    """The best text, then the candidates of each gap."""
    typer.echo(found.best)
    for number, candidates in enumerate(found.gaps, 1):
        if len(found.gaps) > 1:
            typer.echo(f"gap {number}:")
        for candidate in candidates:
            typer.echo(f"  {candidate.probability:7.2%}  {candidate.text.strip() or repr(candidate.text)}")
