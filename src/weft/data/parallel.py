"""Pairs of texts, a source and its target: from two files whose lines belong together, or from a table."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.data.examples import input_key, named_lines
from weft.data.sides import Sides
from weft.data.table_files import LONGEST
from weft.data.tables import NAMED, Table
from weft.errors import DataError
from weft.text.files import Document, find_documents

log = logging.getLogger(__name__)

LARGEST = 1 << 31  # characters of one side: pairs are kept in memory
TOGETHER = "line n of one belongs to line n of the other"


@dataclass(frozen=True)
class Pairs:
    """Texts and what becomes of them, as they stand in the files; lists of one length."""

    name: str
    sources: list[str]
    targets: list[str]
    lines: list[int]
    notes: tuple[str, ...] = ()
    without_text: int = 0  # pairs that were left out, because a side is empty
    broken: int = 0  # rows that could not be read

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]], name: str = "pairs") -> Pairs:
        """Pairs that are already there."""
        return cls(name, [one for one, _ in pairs], [two for _, two in pairs], list(range(1, len(pairs) + 1)))

    @classmethod
    def joined(cls, parts: Sequence[Pairs]) -> Pairs:
        """The pairs of several files as one list."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            ", ".join(part.name for part in parts),
            [text for part in parts for text in part.sources],
            [text for part in parts for text in part.targets],
            [line for part in parts for line in part.lines],
            tuple(note for part in parts for note in part.notes),
            sum(part.without_text for part in parts),
            sum(part.broken for part in parts),
        )

    def __len__(self) -> int:
        return len(self.sources)

    def __repr__(self) -> str:
        return f"Pairs({self.name!r}, {len(self)} pairs)"

    @property
    def characters(self) -> int:
        """Of both sides together."""
        return sum(map(len, self.sources)) + sum(map(len, self.targets))

    def keys(self) -> list[bytes]:
        """A short hash of each source, the same for those that differ in nothing but case and spaces."""
        return [input_key((text,)) for text in self.sources]

    def pair_keys(self) -> list[bytes]:
        """The same of source and target together."""
        return [input_key(pair) for pair in zip(self.sources, self.targets, strict=True)]

    def part(self, places: NDArray[np.integer] | Sequence[int]) -> Pairs:
        """The pairs at these places, in this order."""
        sources, targets = ([texts[place] for place in places] for texts in (self.sources, self.targets))
        return Pairs(self.name, sources, targets, [self.lines[place] for place in places])


class _Collected:
    """Pairs as they come, those with an empty side counted and left out."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.targets: list[str] = []
        self.lines: list[int] = []
        self.empty = 0
        self.first_empty: list[int] = []

    def add(self, line: int, source: str, target: str) -> None:
        if source and target and not source.isspace() and not target.isspace():
            self.sources.append(source)
            self.targets.append(target)
            self.lines.append(line)
            return
        self.empty += 1
        if len(self.first_empty) <= NAMED:  # one more than is named: then it goes on
            self.first_empty.append(line)

    def pairs(self, name: str, what: str, notes: Sequence[str] = (), broken: int = 0) -> Pairs:
        """All of them; `what` is what a pair is called in these files."""
        if not self.sources:
            raise DataError(f"no {what} of {name} has text on both sides", expected="at least one pair of texts")
        found = list(notes)
        if self.empty:
            places = named_lines(self.first_empty)
            found.append(f"{what}s of {name} without a text on both sides, left out: {self.empty:,} ({places})")
            log.warning("%s", found[-1])
        return Pairs(name, self.sources, self.targets, self.lines, tuple(found), self.empty, broken)


# -- from a table -----------------------------------------------------------------------------


def read_pairs(table: Table, sides: Sides) -> Pairs:
    """The pairs in two columns of a table; rows with an empty side are left out and counted."""
    source, target = table.place(sides.source), table.place(sides.target)
    found = _Collected()
    for line, row in table.rows():
        found.add(line, row[source], row[target])
    return found.pairs(table.name, "row", table.notes, table.skipped)


# -- from two files ---------------------------------------------------------------------------


def read_parallel(source: str | Path, target: str | Path) -> Pairs:
    """The pairs in two text files, plain or gzip: line n of one belongs to line n of the other.

    Lines with an empty side are left out and counted. Different numbers of lines are an error, for nobody knows then
    what belongs together; blank lines at the end do not count.
    """
    paths = [Path(source), Path(target)]
    for path in paths:
        if os.path.isdir(path):
            raise DataError(f"{path} is a folder", expected=f"a text file for each side: {TOGETHER}")
        find_documents([path])  # missing, empty, binary
    if paths[0].samefile(paths[1]):
        raise DataError(f"{paths[0]} and {paths[1]} are the same file", expected="the sources, then their targets")
    found, counts, unmatched = _Collected(), [0, 0], False
    for line, sides in enumerate(itertools.zip_longest(*map(_lines, paths)), 1):
        counts = [line if text is not None else count for text, count in zip(sides, counts, strict=True)]
        one, two = sides
        if one is None or two is None:
            unmatched = unmatched or bool((one or two or "").strip())
        if not unmatched:
            found.add(line, one or "", two or "")
    if unmatched:
        given = f"{paths[0]} has {counts[0]:,} lines and {paths[1]} has {counts[1]:,}"
        raise DataError(given, expected=f"as many in both: {TOGETHER}")
    return found.pairs(f"{paths[0]} and {paths[1]}", "line")


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file without their ends: newlines, also after a return; in very old files returns alone.

    Nothing else ends a line, whatever Unicode calls it: the other file would not have it.
    """
    end, rest, count, size = "", "", 0, 0
    for piece in Document.of_file(path).read(translate=False):
        size += len(piece)
        if size > LARGEST:
            raise DataError(f"{path} has more than {LARGEST:,} characters", expected="less: pairs are kept in memory")
        end = end or next((mark for mark in ("\n", "\r") if mark in piece), "")
        *full, rest = (rest + piece).split(end) if end else (rest + piece,)
        count += len(full)
        yield from (line.rstrip("\r") for line in full)
        if len(rest) > LONGEST:
            given = f"line {count + 1} of {path} is longer than {LONGEST:,} characters"
            raise DataError(given, expected="one text on each line")
    if rest:
        yield rest.rstrip("\r")
