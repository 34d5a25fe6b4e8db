"""Tables of image files: a column of paths, seen from the table's folder, and a column of labels."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from weft.data.columns import find_columns
from weft.data.examples import read_examples
from weft.data.image_parts import Found, FoundParts
from weft.data.tables import Table, head_of, read_table
from weft.errors import DataError
from weft.images.formats import has_image_name

SAMPLE = 100  # rows by which the columns are judged
MOST = 0.9  # the share of them that must be called like images
WORDY = 3  # words in a cell on average that make a text of it


def find_table(path: Path, label: str | None = None, text: str | None = None) -> FoundParts:
    """The images that a table names; `text` and `label` are the columns of the paths and the classes."""
    table = read_table(path)
    column = text or path_column(table, path.parent)
    if column is None:
        given = f"no column of {path} holds the names of images"
        raise DataError(
            given, advice=f"name it with --text; the columns are {', '.join(map(repr, table.columns[:12]))}"
        )
    columns = find_columns(table, column, None, label)
    examples = read_examples(table, columns)
    assert examples.labels is not None
    files = [_file(path.parent, cell) for cell in examples.texts]
    why = columns.reason.replace("the text", "the paths", 1)
    found = Found(str(path), examples.labels, [str(file) for file in files], files=files, lines=examples.lines)
    return FoundParts({"train": found}, why, (*table.notes, *examples.notes))


def path_column(table: Table, folder: Path) -> str | None:
    """The column whose cells are images that are there; else one whose cells are called so."""
    rows = [row.cells for row in itertools.islice(table.rows(), SAMPLE)]
    named: list[tuple[int, str]] = []
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in rows if row[place].strip()]
        if cells and sum(map(has_image_name, map(str.strip, cells))) >= MOST * len(cells):
            named.append((sum(os.path.isfile(_file(folder, cell)) for cell in cells), column))
    return max(named, key=lambda item: item[0])[1] if named else None


def names_images(path: Path, text: str | None = None) -> bool:
    """Whether a table is one of images: its paths lead to files, or there is nothing else in it to read."""
    try:
        table = head_of(path, SAMPLE)
        column = path_column(table, path.parent)
    except DataError:  # which is told when it is read
        return False
    if column is None or text not in (None, column):
        return False
    cells = [cell for cell in table.column(column) if cell.strip()]
    if any(os.path.isfile(_file(path.parent, cell)) for cell in cells):
        return True
    return not any(_wordy(table.column(other)) for other in table.columns if other != column)


def _wordy(cells: list[str]) -> bool:
    return sum(len(cell.split()) for cell in cells) >= WORDY * max(1, len(cells))


def _file(folder: Path, cell: str) -> Path:
    """A path in a cell, also as Windows writes it."""
    path = folder / cell.strip()
    if "\\" in cell and not os.path.exists(path):
        return folder / cell.strip().replace("\\", "/")
    return path
