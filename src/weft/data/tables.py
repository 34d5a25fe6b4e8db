"""Tables as people have them (.csv, .tsv, .jsonl): columns by name, rows as a stream, and every row knows its line.

A file is looked through once when it is opened, so that what is wrong with it is said at the beginning; nothing
of it is kept. Broken rows are skipped, counted and named; more than one in a hundred of them is an error.
"""

from __future__ import annotations

import itertools
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weft.data.column_names import USUAL, plain
from weft.data.table_files import SAMPLE, Format, Record, find_format, foreign_encoding, read_records
from weft.errors import ConfigError, DataError, did_you_mean
from weft.text.files import find_documents

log = logging.getLogger(__name__)

TOLERATED = 0.01  # the share of broken rows that is skipped; above, the file is refused
NAMED = 3  # broken rows that are named


class TableRow(NamedTuple):
    """The cells of one row in the order of the columns, and the line of the file where it begins."""

    line: int
    cells: tuple[str, ...]


class Table:
    """Named columns and a way to go through the rows, again and again."""

    def __init__(  # each is a fact about the file
        self,
        name: str,
        columns: Sequence[str],
        rows: Callable[[], Iterator[TableRow]],
        count: int,
        *,
        skipped: int = 0,
        notes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.skipped = skipped
        self.notes = tuple(notes)
        self._rows = rows
        self._count = count

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]], name: str = "table") -> Table:
        """A table from lists that are already there, all of one length (also from a data frame)."""
        lists = {str(title): [_text(value) for value in columns[title]] for title in columns}
        lengths = {title: len(cells) for title, cells in lists.items()}
        if not lists or len(set(lengths.values())) != 1:
            raise DataError(f"columns of the lengths {lengths}", expected="at least one column, all of one length")
        rows = [TableRow(number, cells) for number, cells in enumerate(zip(*lists.values(), strict=True), 1)]
        if not rows:
            raise DataError(f"there are no rows in {name}", expected="at least one")
        return cls(name, list(lists), lambda: iter(rows), len(rows))

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {self._count} rows, columns: {', '.join(self.columns)})"

    def rows(self) -> Iterator[TableRow]:
        """All good rows in order; a file is read again, as a stream."""
        return self._rows()

    def place(self, column: str) -> int:
        """Where a column stands in a row."""
        if column not in self.columns:
            given = f"{self.name} has no column {column!r}"
            raise ConfigError(given, advice=did_you_mean(column, self.columns))
        return self.columns.index(column)

    def column(self, name: str) -> list[str]:
        """All cells of one column."""
        place = self.place(name)
        return [row.cells[place] for row in self.rows()]


def _text(value: Any) -> str:
    """A value of a list as the text of a cell: None and not-a-number are empty, lists are JSON."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(map(str, value)) if isinstance(value, set | frozenset) else list(map(str, value))
        return json.dumps(items, ensure_ascii=False)
    return str(value)


def read_table(path: str | Path, *, header: bool | None = None) -> Table:
    """Open a .csv (commas or semicolons, quotes), .tsv or tabbed .txt (no quotes), or .jsonl file, plain or gzip.

    Whether the first row is a header is found out from its content unless `header` says it.
    """
    path = Path(path)
    encoding, form = _opened(path)
    notes = []
    if encoding:
        shown = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}[encoding]
        notes.append(f"{path} is not UTF-8; it is read as {shown} (Western European)")
    if form.kind in ("lines", "array"):
        table = _scan(path, encoding, form, _names_in_objects(path, encoding, form), start=0)
    else:
        columns, headed = _columns(path, _sample(path, encoding, form), header)
        if not headed:
            shown = f"{path} has no header: its columns are called {', '.join(columns)}"
            short = f"{path} has no header: {len(columns)} columns, called column 1 and so on"
            notes.append(shown if len(shown) < 200 else short)
        table = _scan(path, encoding, form, columns, start=int(headed))
    table.notes = (*notes, *table.notes)
    for note in table.notes:
        log.warning("%s", note)
    return table


def head_of(path: str | Path, rows: int = 1000) -> Table:
    """The first good rows of a file, to judge by; nothing is said about the others."""
    path = Path(path)
    encoding, form = _opened(path)
    records = [record for record in itertools.islice(read_records(path, encoding, form), rows) if record.cells]
    if form.kind in ("lines", "array"):
        columns, headed = tuple(dict.fromkeys(name for record in records for name in record.cells or ())), False
    else:
        columns, headed = _columns(path, _sample(path, encoding, form), None)
    found = [_good_or_bad(record, columns) for record in records[int(headed) :]]
    kept = [row for row in found if isinstance(row, TableRow)]
    return Table(str(path), columns, lambda: iter(kept), len(kept))


def _opened(path: Path) -> tuple[str, Format]:
    """The encoding and the format of a file; what is no table is refused."""
    if path.is_dir():
        raise DataError(f"{path} is a folder", expected="one table: a .csv, .tsv or .jsonl file")
    find_documents([path])  # missing, empty, binary: told in the same words as for texts
    encoding = foreign_encoding(path)
    return encoding, find_format(path, encoding)


# -- the header -------------------------------------------------------------------------------


def _sample(path: Path, encoding: str, form: Format) -> list[list[str]]:
    records = itertools.islice(read_records(path, encoding, form), SAMPLE)
    sample = [record.cells for record in records if isinstance(record.cells, list)]
    if not sample:
        raise DataError(f"no row of {path} can be read", expected="a table with a header and rows")
    return sample


def _columns(path: Path, sample: list[list[str]], header: bool | None) -> tuple[tuple[str, ...], bool]:
    """The names of the columns, and whether the first row gave them."""
    if _is_header(sample[0], sample[1:]) if header is None else header:
        return _checked_header(path, sample[0]), True
    width = Counter(map(len, sample)).most_common(1)[0][0]
    return tuple(f"column {place}" for place in range(1, width + 1)), False


def is_number(text: str) -> bool:
    """Whether a cell is a number as people write it."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python would read over


def _is_header(first: list[str], rest: list[list[str]]) -> bool:
    """Whether the first row names the columns: it is not made of the same stuff as the rows below."""
    below = [[row[place] for row in rest if len(row) == len(first)] for place in range(len(first))]
    cells = [cell.strip() for cell in first]
    recurs = [cell in {value.strip() for value in values} for cell, values in zip(cells, below, strict=True)]
    if any(plain(cell) in USUAL and not again for cell, again in zip(cells, recurs, strict=True)):
        return True
    if cells == [str(place) for place in range(len(cells))]:  # what pandas writes when there were no names
        return not all(is_number(value) for values in below for value in values)
    if any(is_number(cell) or len(cell) > 60 or cell.endswith((".", "!")) for cell in cells):
        return False
    if any(again and cell for cell, again in zip(cells, recurs, strict=True)):
        return False
    wordy = [sum(len(value.split()) for value in values) >= 3 * max(len(values), 1) for values in below]
    return not any(long and len(cell.split()) >= 3 for cell, long in zip(cells, wordy, strict=True))


def _checked_header(path: Path, cells: list[str]) -> tuple[str, ...]:
    names = [cell.strip() or f"column {place}" for place, cell in enumerate(cells, 1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        given = f"{path} has several columns named {', '.join(map(repr, twice))}"
        raise DataError(given, expected="a different name for every column", advice="rename them in the first line")
    return tuple(names)


def _names_in_objects(path: Path, encoding: str, form: Format) -> tuple[str, ...]:
    """Every name that occurs in a JSON object, in the order of their first occurrence."""
    names: dict[str, None] = {}
    for record in read_records(path, encoding, form):
        names.update(dict.fromkeys(record.cells or ()))
        if len(names) > 1000:
            raise DataError(f"the objects in {path} have more than 1000 names", expected="the same few in every object")
    if not names:
        raise DataError(f"no line of {path} is a JSON object", expected='lines like {"text": "…", "label": "…"}')
    return tuple(names)


# -- the rows ---------------------------------------------------------------------------------


def _good_or_bad(record: Record, columns: tuple[str, ...]) -> TableRow | str:
    """The row that a record is, or what is wrong with it."""
    cells = record.cells
    if cells is None:
        return record.problem
    if isinstance(cells, dict):
        return TableRow(record.line, tuple(cells.get(name, "") for name in columns))
    if len(cells) != len(columns):
        count = f"{len(cells)} cell{'s' if len(cells) != 1 else ''}"
        return f"has {count} where {len(columns)} belong"
    return TableRow(record.line, tuple(cells))


def _scan(path: Path, encoding: str, form: Format, columns: tuple[str, ...], start: int) -> Table:
    """Look at every row once: count, and judge whether the broken ones can be tolerated."""

    def results() -> Iterator[tuple[Record, TableRow | str]]:
        readable = read_records(path, encoding, form)
        skip = start
        for record in readable:
            if skip and record.cells is not None:  # the header
                skip -= 1
                continue
            yield record, _good_or_bad(record, columns)

    def rows() -> Iterator[TableRow]:
        return (result for _, result in results() if isinstance(result, TableRow))

    good = bad = lines = bad_lines = 0
    named: list[str] = []
    for record, result in results():
        lines += record.span
        if isinstance(result, TableRow):
            good += 1
            continue
        bad += 1
        bad_lines += record.span  # a quote that is never closed takes all the lines after it
        if len(named) < NAMED:
            named.append(f"line {record.line} {result}")
    if not good and not bad:
        raise DataError(f"{path} has a header and no rows", expected="at least one row below it")
    shown = "; ".join(named) + ("; …" if bad > len(named) else "")
    if bad_lines > TOLERATED * lines:
        given = f"{bad_lines} of {lines} rows of {path} are broken: {shown}"
        raise DataError(given, expected=f"at most {TOLERATED:.0%}", advice=_repair(form))
    notes = [f"{bad} of {good + bad} rows of {path} are skipped: {shown}"] if bad else []
    return Table(str(path), columns, rows, good, skipped=bad, notes=notes)


def _repair(form: Format) -> str:
    if form.kind == "csv":
        return 'cells that hold the separator, quotes or newlines are written in quotes, and a quote inside as ""'
    if form.kind == "tabs":
        return "every row needs as many tabs as the header; quotes have no meaning in it"
    return 'every line is one object like {"text": "…", "label": "…"}'
