"""`weft check`: what is in the data, before any training."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.cli.train import TASKS
from weft.errors import ConfigError, DataError, UnsupportedError

if TYPE_CHECKING:
    from rich.console import Console

    from weft.tasks.labelled_check import LabelledCheck
    from weft.tasks.pair_check import PairCheck
    from weft.tasks.picture_check import PictureCheck
    from weft.tasks.text_check import TextCheck

    Parts = tuple[Sequence[str], Sequence[str], Sequence[str]]
    Named = dict[str, str]
    Tell = Callable[[int, int], None] | None
    AnyCheck = LabelledCheck | PairCheck | PictureCheck
    Found = tuple[AnyCheck, Callable[[Console], None]]

CHECKED = ("generate", "fill", "classify", "translate")
SIDE = re.compile(r"\.([a-z]{2,3}|source|target)([-_][a-z]{2,4})?")  # a language, or src and tgt
TEXTS = {".txt", ".md", ".rst", ".log", ".tex", ".xml", ".htm", ".py"}  # which are none
COLUMNS = {  # that name one, by kind of data
    "table": ("text", "pair", "label"),
    "pairs": ("source", "target"),
    "pictures": ("text", "label"),
}
THINGS = {"table": "labelled texts", "pairs": "pairs to translate", "pictures": "pictures"}

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[TASK] DATA…",
        help="Text files or folders; tables: .csv, .tsv, .jsonl; two files of sources and targets; pictures; or demo",
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
    source: options.SourceColumn = None,
    target: options.TargetColumn = None,
    tokenizer: TokenizerKind = None,
    as_json: options.OneObject = False,
) -> None:
    """Say what is in texts, a table, pairs or pictures before training: how much, labels, lengths, copies, leakage.

    Example:  weft check train.csv --test test.csv

    Example:  weft check translate train.en train.de
    """
    task, words = (data[0], data[1:]) if data[0] in TASKS else (None, data)
    if task not in (None, *CHECKED):
        raise UnsupportedError(f"the task {task!r} does not exist yet", expected=f"one of {', '.join(CHECKED)}")
    if not words:
        what = "text files, a folder, a table, or demo"
        raise ConfigError("no data was given", expected=what, advice=f"weft check {task} demo")
    named = {"text": text, "pair": pair, "label": label, "source": source, "target": target}
    columns = {name: given for name, given in named.items() if given is not None}
    kind = _kind(words, task, columns)
    if kind == "text":
        _refuse(columns | {"tokenizer": tokenizer, "test": test})
        _check_text(words, validation or (), as_json=as_json)
        return
    if task == "fill" and label is not None:
        raise ConfigError(f"--label {label!r} with fill", expected="classify, which learns labels")
    for name in columns:
        if name not in COLUMNS[kind]:
            raise ConfigError(f"--{name} with {THINGS[kind]}", expected=" and ".join(f"--{n}" for n in COLUMNS[kind]))
    parts = (words, validation or (), test or ())
    with _progress(wanted=not as_json) as progress, _told_once():
        if kind == "pictures":
            _refuse_tokenizer(tokenizer)
            found, show = _check_pictures(parts, columns, progress)
        elif kind == "pairs":
            found, show = _check_pairs(parts, columns, tokenizer, progress)
        else:
            found, show = _check_labelled(parts, columns, tokenizer, progress, task)
    _show_table(found, show, as_json=as_json)


def _kind(words: Sequence[str], task: str | None, named: Collection[str]) -> str:
    """`text`, `table`, `pairs` or `pictures`: by the task, by a column that was named, or by the files."""
    from weft.data.table_files import is_table
    from weft.tasks.sources import are_pictures

    if task in (None, "classify") and are_pictures(words):
        return "pictures"
    if task in ("generate", "classify", "translate"):
        return {"generate": "text", "classify": "table", "translate": "pairs"}[task]
    if list(words) == ["demo"]:
        return "text"
    for kind, columns in COLUMNS.items():
        if set(columns) & set(named) and (kind == "table" or task is None):
            return kind
    if all(is_table(Path(word)) for word in words):
        return "pairs" if task is None and _holds_pairs(words[0]) else "table"
    return "pairs" if task is None and _are_two_sides(words) else "text"


def _holds_pairs(path: str) -> bool:
    from weft.data.sides import holds_pairs
    from weft.data.tables import head_of

    try:
        return holds_pairs(head_of(path))
    except DataError:  # which is told when it is read
        return False


def _are_two_sides(words: Sequence[str]) -> bool:
    """Whether these are two files such as train.en and train.de: the ends of their names say what each is."""
    ends = {Path(word.lower().removesuffix(".gz")).suffix for word in words}
    return len(words) == len(ends) == 2 and not ends & TEXTS and all(SIDE.fullmatch(end) for end in ends)


def _refuse(given_options: dict[str, object]) -> None:
    """Options that mean nothing for a text."""
    for name, given in given_options.items():
        if given:
            raise ConfigError(f"--{name} with a text", expected="a table: a .csv, .tsv or .jsonl file")


# -- tables and pairs -------------------------------------------------------------------------


def _check_labelled(parts: Parts, columns: Named, tokenizer: str | None, progress: Tell, task: str | None) -> Found:
    from weft.cli.check_table import show
    from weft.tasks.labelled_check import check_labelled

    found = check_labelled(*parts, columns=columns, tokenizer=tokenizer, task=task, progress=progress)
    return found, lambda console: show(found, console)


def _check_pairs(parts: Parts, columns: Named, tokenizer: str | None, progress: Tell) -> Found:
    from weft.cli.check_pairs import show
    from weft.tasks.pair_check import check_pairs

    found = check_pairs(*parts, columns=columns, tokenizer=tokenizer, progress=progress)
    return found, lambda console: show(found, console)


def _check_pictures(parts: Parts, columns: Named, progress: Tell) -> Found:
    from weft.cli.check_pictures import show
    from weft.tasks.picture_check import check_pictures

    found = check_pictures(*parts, columns=columns, progress=progress)
    return found, lambda console: show(found, console)


def _refuse_tokenizer(given: str | None) -> None:
    if given is not None:
        raise ConfigError(f"--tokenizer {given} with pictures", expected="none: they are no text")


def _show_table(found: AnyCheck, show: Callable[[Console], None], *, as_json: bool) -> None:
    """The findings; what training would refuse is the error at the end."""
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
    else:
        show(_console())
    if len(found.problems) > 1:
        raise DataError("\n".join(problem.split("\n")[0] for problem in found.problems[:3]))
    if found.problems:
        raise DataError(found.problems[0])


@contextmanager
def _told_once() -> Iterator[None]:
    """What the readers of tables would log is among the findings."""
    log = logging.getLogger("weft.data")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


# -- texts ------------------------------------------------------------------------------------


def _check_text(data: Sequence[str], validation: Sequence[str], *, as_json: bool) -> None:
    from weft.tasks.text_check import check_text

    with _progress(wanted=not as_json) as progress:
        found = check_text(tuple(data), tuple(validation), progress=progress)
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
        return
    console = _console()
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


# -- showing ----------------------------------------------------------------------------------


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


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
