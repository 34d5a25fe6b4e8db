"""`weft classify`: what a run says of texts or images."""

from __future__ import annotations

import csv
import functools
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from weft.cli import options
from weft.cli.streams import groups, lines_from, open_run, output_to
from weft.errors import ConfigError, DataError

if TYPE_CHECKING:
    from weft.cli.classify_images import Looking
    from weft.tasks import Run
    from weft.tasks.classify.answers import Answer
    from weft.tasks.classify.classifier import Classifier

AT_ONCE = 512  # texts that are read together
DELIMITERS = {".csv": ",", ".tsv": "\t"}


def classify(
    run: options.RunOrFolder,
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts; for a run that compares two, one after the other. Or images and folders. - is stdin"
        ),
    ] = None,
    input_: Annotated[
        str | None,
        typer.Option("--input", help="A table (.csv .tsv .jsonl), or a text (path) on each line; - is stdin"),
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="A file: .csv, .tsv or .jsonl with all columns, else lines. Default: stdout")
    ] = None,
    column: Annotated[
        str | None, typer.Option("--text", help="The column of the text or image. Default: as learned")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="The column of the second text. Default: as learned")] = None,
    threads: options.Threads = None,
    as_json: options.ObjectEach = False,
) -> None:
    """Say what texts or images are, with probabilities.

    Example:  weft classify runs/classify-reviews-1 "I liked every minute of it"

    Example:  weft classify runs/classify-flowers-1 tulip.jpg more/ --output answers.csv
    """
    from weft.tasks.classify.classifier import Classifier
    from weft.tasks.sources import are_tables

    with ExitStack() as files:
        from_table = input_ is not None and are_tables([input_])
        if from_table and text:
            raise ConfigError("texts and --input", expected="one of them")
        lines = None if from_table else lines_from(text, input_, files)
        opened = open_run(run, threads)
        looking = _looking(opened)
        if looking is not None:
            labels = looking.classifier.labels
            rows, title = looking.of_paths(lines or ()), ["path"]
            if from_table:
                rows, title = looking.of_table(str(input_), column)
        else:
            classifier = Classifier(opened)
            labels = classifier.labels
            rows, title = _from_lines(classifier, lines or iter(())), ["text", *["pair"] * bool(classifier.is_paired)]
            if from_table:
                rows, title = _from_table(classifier, str(input_), column, pair)
        if text and text != ["-"] and output is None and not as_json:
            _show(list(rows))
        else:
            form, said = _form(output, as_json=as_json), "predicted" if from_table else "label"
            words = functools.partial(_label, separator=labels.separator or "|")
            _write(rows, title, output_to(output, files), form, (said, words))
        if looking is not None:
            looking.finish()


def _looking(run: Run) -> Looking | None:
    """For a run that looks at images; None for one that reads."""
    from weft.models import EncodesImages

    if EncodesImages not in run.model_config.provides:
        return None
    from weft.cli.classify_images import Looking
    from weft.tasks.classify.image_classifier import PixelClassifier

    return Looking(PixelClassifier(run))


Rows = Iterator[tuple[list[str], "Answer"]]


def _from_lines(classifier: Classifier, lines: Iterator[str]) -> Rows:
    """Texts, or pairs of two lines that follow each other or stand on one with a tab between them."""
    if classifier.is_paired:
        lines = _both_parts(lines)
    for group in groups(lines, AT_ONCE):
        inputs: list[Any] = group
        if classifier.is_paired:
            if len(group) % 2:
                given = "one text" if len(group) == 1 else f"{len(group)} texts"
                raise ConfigError(f"{given} for a run that compares two", expected="two for each answer")
            inputs = list(zip(group[::2], group[1::2], strict=True))
        for given, answer in zip(inputs, classifier.answers(inputs), strict=True):
            yield [given] if isinstance(given, str) else list(given), answer


def _both_parts(lines: Iterator[str]) -> Iterator[str]:
    """Two texts on a line with a tab between them, or one on each line; the first line says which."""
    tabbed = None
    for number, line in enumerate(lines, 1):
        parts = line.split("\t", 1)
        tabbed = len(parts) == 2 if tabbed is None else tabbed
        if tabbed != (len(parts) == 2):
            raise DataError(
                f"line {number} has {'no' if tabbed else 'a'} tab, unlike the first",
                expected="two texts on every line with a tab between them, or one on each",
            )
        yield from parts


def _from_table(classifier: Classifier, path: str, text: str | None, pair: str | None) -> tuple[Rows, list[str]]:
    """All cells of each row as they are, and what is said of it."""
    from weft.data import read_table

    table = read_table(path)
    columns = classifier.columns_of(table, text, pair)
    places = [table.place(name) for name in (columns.text, columns.pair) if name is not None]

    def rows() -> Rows:
        for group in groups(iter(table.rows()), AT_ONCE):
            inputs: list[Any] = [tuple(row.cells[place] for place in places) for row in group]
            answers = classifier.answers([given[0] if len(given) == 1 else given for given in inputs])
            for row, answer in zip(group, answers, strict=True):
                yield list(row.cells), answer

    return rows(), list(table.columns)


def _form(path: str | None, *, as_json: bool) -> str:
    if as_json or (path is not None and Path(path).suffix in (".jsonl", ".json")):
        return "json"
    return "lines" if path is None else DELIMITERS.get(Path(path).suffix, "lines")


def _label(answer: Answer, separator: str = "|") -> str:
    """A class, a number, or several labels as the table has them."""
    if isinstance(answer.label, float):
        return f"{answer.label:.6g}"
    if isinstance(answer.label, str):
        return answer.label
    return json.dumps(answer.label, ensure_ascii=False) if separator == "[" else separator.join(answer.label)


def _write(rows: Rows, title: list[str], file: TextIO, form: str, naming: tuple[str, Callable[[Answer], str]]) -> None:
    """One line for each text, in order, as soon as it is known; `naming`: the answer's name in JSON, and its words."""
    said, words = naming
    added = [_free(name, title) for name in ("predicted", "probability")]
    first = list(itertools.islice(rows, 1))  # what cannot be classified is told before anything is written
    if form in DELIMITERS.values():
        file.write(_line([*title, *added], form))
    for cells, answer in itertools.chain(first, rows):
        chance = "" if answer.probability is None else f"{answer.probability:.6f}"
        if form == "json":
            told = {_free(said if name == "label" else name, title): value for name, value in answer.to_dict().items()}
            file.write(json.dumps(dict(zip(title, cells, strict=True)) | told, ensure_ascii=False) + "\n")
        elif form == "lines":
            file.write("\t".join(part for part in (words(answer), chance) if part) + "\n")
        else:
            file.write(_line([*cells, words(answer), chance], form))
    file.flush()


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _line(cells: list[str], delimiter: str) -> str:
    if delimiter == "\t":  # which has no quoting
        return "\t".join(re.sub(r"[\t\r\n]+", " ", cell) for cell in cells) + "\n"
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _show(rows: list[tuple[list[str], Answer]]) -> None:
    """On the terminal: one text with all its classes, several with a line each."""
    if len(rows) == 1 and rows[0][1].probabilities:
        answer = rows[0][1]
        width = max(map(len, answer.probabilities))
        for name, chance in answer.probabilities.items():
            mark = "  ✓" if answer.probability is None and chance > 0.5 else ""
            typer.echo(f"{name:{width}}  {chance:7.2%}{mark}")
        return
    width = max((len(_label(answer)) for _, answer in rows), default=0)
    for cells, answer in rows:
        told = "" if answer.probability is None else f"{answer.probability:7.2%}  "
        typer.echo(f"{_label(answer):{width}}  {told}{'  |  '.join(' '.join(cell.split())[:70] for cell in cells)}")
