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
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.tasks.names import task_names

if TYPE_CHECKING:
    from rich.console import Console

    from weft.tasks.classify.check import LabelledCheck
    from weft.tasks.classify.image_check import ImageCheck
    from weft.tasks.data_check import DataCheck, Findings
    from weft.tasks.generate.check import TextCheck
    from weft.tasks.translate.check import PairCheck

    Parts = tuple[Sequence[str], Sequence[str], Sequence[str]]
    Named = dict[str, str]
    Tell = Callable[[int, int], None] | None
    AnyCheck = LabelledCheck | PairCheck | ImageCheck | Findings
    Found = tuple[AnyCheck, Callable[[Console], None]]

CHECKED = ("generate", "fill", "classify", "translate")
SIDE = re.compile(r"\.([a-z]{2,3}|source|target)([-_][a-z]{2,4})?")  # a language, or src and tgt
TEXTS = {".txt", ".md", ".rst", ".log", ".tex", ".xml", ".htm", ".py"}  # which are none
COLUMNS = {  # that name one, by kind of data
    "table": ("text", "pair", "label"),
    "pairs": ("source", "target"),
    "images": ("text", "label"),
}
THINGS = {"table": "labelled texts", "pairs": "pairs to translate", "images": "images"}

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
    from weft.tasks.data_check import own_check

    task, words = (data[0], data[1:]) if data[0] in task_names() else (None, data)
    if not words:
        what = "text files, a folder, a table, or demo"
        raise ConfigError("no data was given", expected=what, advice=f"weft check {task} demo")
    named = {"text": text, "pair": pair, "label": label, "source": source, "target": target}
    columns = {name: given for name, given in named.items() if given is not None}
    parts = (words, validation or (), test or ())
    own = own_check(task, words, columns)
    if own is not None:
        _check_own(own, parts, columns, tokenizer, as_json=as_json)
        return
    if task not in (None, *CHECKED):
        raise UnsupportedError(f"the task {task!r} does not exist yet", expected=f"one of {', '.join(CHECKED)}")
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
    with _progress(wanted=not as_json) as progress, _told_once():
        if kind == "images":
            _refuse_tokenizer(tokenizer)
            found, show = _check_images(parts, columns, progress)
        elif kind == "pairs":
            found, show = _check_pairs(parts, columns, tokenizer, progress)
        else:
            found, show = _check_labelled(parts, columns, tokenizer, progress, task)
    _show_table(found, show, as_json=as_json)


def _kind(words: Sequence[str], task: str | None, named: Collection[str]) -> str:
    """`text`, `table`, `pairs` or `images`: by the task, by a column that was named, or by the files."""
    from weft.data.table_files import is_table
    from weft.tasks.sources import are_images

    if task in (None, "classify") and are_images(words):
        return "images"
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


def _check_own(own: DataCheck, parts: Parts, columns: Named, tokenizer: str | None, *, as_json: bool) -> None:
    """As the task itself looks at data of its kind."""
    from weft.cli.check_table import present, remarks

    for name in columns:
        if name not in own.columns:
            raise ConfigError(f"--{name} with {own.things}", expected=" and ".join(f"--{n}" for n in own.columns))
    if tokenizer is not None:
        raise ConfigError(f"--tokenizer {tokenizer} with {own.things}", expected="none: words are counted")
    with _told_once():
        found = own.check(parts, columns)

    def show(console: Console) -> None:
        present(found.sentences(), found.part_names, found.counts(), console)
        remarks(found, console)

    _show_table(found, show, as_json=as_json)


# -- tables and pairs -------------------------------------------------------------------------


def _check_labelled(parts: Parts, columns: Named, tokenizer: str | None, progress: Tell, task: str | None) -> Found:
    from weft.cli.check_table import show
    from weft.tasks.classify.check import check_labelled

    labelled = {"classify": True, "fill": False}.get(task or "")
    found = check_labelled(*parts, columns=columns, tokenizer=tokenizer, labelled=labelled, progress=progress)
    return found, lambda console: show(found, console)


def _check_pairs(parts: Parts, columns: Named, tokenizer: str | None, progress: Tell) -> Found:
    from weft.cli.check_pairs import show
    from weft.tasks.translate.check import check_pairs

    found = check_pairs(*parts, columns=columns, tokenizer=tokenizer, progress=progress)
    return found, lambda console: show(found, console)


def _check_images(parts: Parts, columns: Named, progress: Tell) -> Found:
    from weft.cli.check_images import show
    from weft.tasks.classify.image_check import check_images

    found = check_images(*parts, columns=columns, progress=progress)
    return found, lambda console: show(found, console)


def _refuse_tokenizer(given: str | None) -> None:
    if given is not None:
        raise ConfigError(f"--tokenizer {given} with images", expected="none: they are no text")


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
    logs = [logging.getLogger(name) for name in ("weft.data", "weft.tasks")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


# -- texts ------------------------------------------------------------------------------------


def _check_text(data: Sequence[str], validation: Sequence[str], *, as_json: bool) -> None:
    from weft.tasks.generate.check import check_text

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
    from weft.tasks.generate.overlap import LONG

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
