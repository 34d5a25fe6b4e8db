"""`weft check`: what is in the data, before any training."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from weft.tasks.text_check import TextCheck


def check(
    data: Annotated[list[str], typer.Argument(metavar="DATA…", help="Text files or folders; or demo")],
    validation: Annotated[list[str] | None, typer.Option(help="Text to hold out instead of the last tenth.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what is in a text before training on it: how much, repeated lines, leakage, tokens.

    Example:  weft check book.txt
    """
    from rich.console import Console

    from weft.tasks.text_check import check_text

    with _progress(wanted=not as_json) as progress:
        found = check_text(tuple(data), tuple(validation or ()), progress=progress)
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
        return
    console = Console(highlight=False, markup=False, emoji=False)
    for line in describe(found):
        console.print(line)
    console.print()
    for warning in found.warnings:
        console.print(f"Warning: {warning}.")
    if not found.warnings:
        console.print("Nothing speaks against training on it.")


def describe(found: TextCheck) -> Iterator[str]:
    """The findings as sentences, a line each."""
    from weft.cli.runs import shown
    from weft.tasks.overlap import LONG

    names = ", ".join(map(shown, found.files[:3])) + (" …" if len(found.files) > 3 else "")
    total = found.train.bytes + found.validation.bytes
    yield f"{_count(len(found.files), 'file')}: {names}"
    yield f"{found.characters:,} characters, {total:,} bytes, {_count(found.lines, 'line')}; all of it is valid text."
    yield (
        f"Held out: {found.validation.characters:,} characters ({found.held_out:.1%}), "
        f"{_count(found.validation.lines, 'line')}; the rest is learned from."
    )
    about = "" if found.one_in == 1 else f" (estimated from one line in {found.one_in})"
    yield (
        f"Repeated: {found.repeated:.1%} of the lines to learn from repeat an earlier one; "
        f"{found.repeated_long:.1%} of those of {LONG} characters or more{about}."
    )
    if found.leaked is None:
        yield f"Leakage: no held-out line has {LONG} characters, so there is nothing to compare."
    else:
        yield (
            f"Leakage: of {_count(found.compared, 'held-out line')} of {LONG} characters or more, "
            f"{found.leaked:.1%} also stand in the part to learn from{about}."
        )
    counts = (
        f"{'' if kind in found.exact else 'about '}{_rounded(n, exact=kind in found.exact):,} as {kind}"
        for kind, n in found.tokens.items()
    )
    yield f"Tokens to learn from: {', '.join(counts)}."


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _rounded(number: int, *, exact: bool) -> int:
    """An estimate has two digits."""
    return number if exact else round(number, 2 - len(str(number)))


@contextmanager
def _progress(*, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr that goes away; only in a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
