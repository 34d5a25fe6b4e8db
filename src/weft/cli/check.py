"""`weft check`: what is in the data, before any training. What it finds is in the `check.py` of each task's folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.cli.runs import NARROW, shown
from weft.errors import ConfigError, DataError
from weft.tasks.names import task_names

if TYPE_CHECKING:
    from rich.console import Console

    from weft.tasks.findings import Findings

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[TASK] DATA…",
        help="Text files or folders; tables: .csv, .tsv, .jsonl; two files of sources and targets; images; or demo",
    ),
]
Validation = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE…", help="Text to hold out instead of the last tenth; or another table, or two files."),
]
Test = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE…", help="The table or the two files that results will be measured on."),
]
TextColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="Where the texts are. Default: found")]
PairColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="Where the second texts are.")]
LabelColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="Where the labels are. Default: found")]
SourceColumn = Annotated[str | None, options.shared("source")]
TargetColumn = Annotated[str | None, options.shared("target")]
TokenizerKind = Annotated[
    str | None, typer.Option(help="How texts become tokens. Default: wordpiece for labelled texts, bpe for pairs")
]


def check(
    data: Words,
    validation: Validation = None,
    test: Test = None,
    text: TextColumn = None,
    pair: PairColumn = None,
    label: LabelColumn = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    tokenizer: TokenizerKind = None,
    as_json: options.OneObject = False,
) -> None:
    """Say what is in texts, a table, pairs or images before training: how much, labels, lengths, copies, leakage.

    Example:  weft check train.csv --test test.csv

    Example:  weft check translate train.en train.de
    """
    from weft.tasks.data_check import CheckRequest, find_check

    task, words = (data[0], data[1:]) if data[0] in task_names() else (None, data)
    if not words:
        what = "text files, a folder, a table, or demo"
        raise ConfigError("no data was given", expected=what, advice=f"weft check {task} demo")
    named = {"text": text, "pair": pair, "label": label, "source": source, "target": target}
    columns = {name: given for name, given in named.items() if given is not None}
    chosen = find_check(task, words, columns)
    with _progress(wanted=not as_json) as progress, _told_once():
        asked = CheckRequest(words, validation or (), test or (), columns, tokenizer, task, progress)
        chosen.check_options(asked)
        found = chosen.check(asked)
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
    else:
        show(found)
    if len(found.problems) > 1:
        raise DataError("\n".join(problem.split("\n")[0] for problem in found.problems[:3]))
    if found.problems:  # what training would refuse
        raise DataError(found.problems[0])


@contextmanager
def _told_once() -> Iterator[None]:
    """What the readers of data would log is among the findings."""
    logs = [logging.getLogger(name) for name in ("weft.data", "weft.tasks")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


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


# -- showing ----------------------------------------------------------------------------------


def show(found: Findings) -> None:
    """Sentences, a row for each count with a column for each part, then what is to be noticed, or that nothing is."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    for sentence in found.sentences:
        _say(sentence, console)
    console.print()
    if found.counts:
        _show_counts(found, console)
        console.print()
    for kind, sentences in (("Note", found.notes), ("Warning", found.warnings)):
        for sentence in sentences:
            _say(f"{kind}: {sentence}{'' if sentence.endswith('?') else '.'}", console)
    if not found.warnings and not found.problems:
        console.print("Nothing speaks against training on it.")


def _say(sentence: str, console: Console) -> None:
    """Cut at spaces, and without those at the ends of lines."""
    from rich.text import Text

    for line in Text(shown(sentence)).wrap(console, console.width):
        line.rstrip()
        console.print(line)


def _show_counts(found: Findings, console: Console) -> None:
    """Parts beside each other, or under each other where there is no room for that."""
    from rich.table import Table
    from rich.text import Text

    if console.width < NARROW:
        for place, name in enumerate(found.parts):
            console.print(f"{name}:")
            for title, cells in found.counts:
                if cells[place]:
                    console.print(f"  {title}: {cells[place]}")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column("", overflow="fold")
    for name in found.parts:
        table.add_column(name, justify="right", overflow="fold")
    for title, cells in found.counts:
        table.add_row(*map(Text, (title, *cells)))
    console.print(table)
