"""Rows of a table as examples to learn from: text, perhaps its partner, and label; what is empty is left out."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft.data.columns import Columns
from weft.data.tables import NAMED, TOLERATED, Table
from weft.errors import DataError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Examples:
    """Texts, their partners and labels, as they stand in a table; lists of one length."""

    name: str
    texts: list[str]
    pairs: list[str] | None
    labels: list[str] | None  # cells without spaces around them; `Labels` gives them a meaning
    lines: list[int]
    notes: tuple[str, ...] = field(default=())
    without_text: int = 0  # rows that were left out
    without_label: int = 0

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        kind = "pairs" if self.pairs is not None else "texts"
        return f"Examples({self.name!r}, {len(self)} {kind}{'' if self.labels is not None else ', no labels'})"

    def inputs(self) -> list[tuple[str, ...]]:
        """What a model reads, one tuple for each example: (text,) or (text, partner)."""
        if self.pairs is None:
            return [(text,) for text in self.texts]
        return list(zip(self.texts, self.pairs, strict=True))

    @property
    def characters(self) -> int:
        """Of all texts, with their partners."""
        return sum(len(part) for parts in self.inputs() for part in parts)

    def keys(self) -> list[bytes]:
        """A short hash of each input, the same for texts that differ in nothing but case and spaces."""
        return [input_key(parts) for parts in self.inputs()]

    def part(self, places: NDArray[np.integer] | Sequence[int]) -> Examples:
        """The examples at these places, in this order."""

        def chosen(cells: list[str] | None) -> list[str] | None:
            return None if cells is None else [cells[place] for place in places]

        texts, lines = [self.texts[place] for place in places], [self.lines[place] for place in places]
        return Examples(self.name, texts, chosen(self.pairs), chosen(self.labels), lines)


def input_key(parts: Sequence[str]) -> bytes:
    """A short hash, the same for texts that differ in nothing but case and spaces."""
    joined = "\x1f".join(" ".join(part.casefold().split()) for part in parts)
    return hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def read_examples(table: Table, columns: Columns) -> Examples:
    """The examples in a table. Rows with an empty text or label are left out and counted.

    More than one in a hundred empty labels is an error: then the column is not what it seems.
    """
    text = table.place(columns.text)
    pair = None if columns.pair is None else table.place(columns.pair)
    label = None if columns.label is None else table.place(columns.label)
    texts, partners, cells, lines = [], [], [], []
    padded: set[str] = set()  # labels with spaces around them
    unlabelled: list[int] = []
    textless: list[int] = []
    for line, row in table.rows():
        cell = "" if label is None else row[label].strip()
        if not row[text].strip() or (pair is not None and not row[pair].strip()):
            textless.append(line)
        elif label is not None and not cell:
            unlabelled.append(line)
        else:
            texts.append(row[text])
            partners.append("" if pair is None else row[pair])
            cells.append(cell)
            lines.append(line)
            if label is not None and len(cell) < len(row[label]) and len(padded) < NAMED:
                padded.add(row[label])
    notes = []
    if padded:
        shown = ", ".join(map(repr, sorted(padded)))
        notes.append(f"labels of {table.name} have spaces around them, which are dropped: {shown}")
    if textless:
        notes.append(f"rows of {table.name} without a text, left out: {len(textless)} ({named_lines(textless)})")
    if unlabelled:
        where = f"{columns.label!r}: {named_lines(unlabelled)}"
        given = f"{len(unlabelled)} of {len(table)} rows of {table.name} have no {where}"
        if len(unlabelled) > TOLERATED * len(table):
            raise DataError(
                given, expected=f"at most {TOLERATED:.0%}", advice="fill them in, remove them, or name another column"
            )
        notes.append(f"{given}; they are left out")
    if not texts:
        raise DataError(f"no row of {table.name} has a text in {columns.text!r}", expected="at least one")
    for note in notes:
        log.warning("%s", note)
    return Examples(
        table.name,
        texts,
        None if pair is None else partners,
        None if label is None else cells,
        lines,
        tuple(notes),
        without_text=len(textless),
        without_label=len(unlabelled),
    )


def named_lines(lines: Sequence[int]) -> str:
    """`lines 3, 7, 9, …`: the first few of them."""
    word = "line " if len(lines) == 1 else "lines "
    return word + ", ".join(map(str, lines[:NAMED])) + (", …" if len(lines) > NAMED else "")
