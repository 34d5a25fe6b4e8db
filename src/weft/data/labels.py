"""What a label column means: one class per row, several, or a number; and the classes as ids in a fixed order."""

from __future__ import annotations

import json
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.tables import is_number
from weft.errors import ConfigError, DataError, did_you_mean

log = logging.getLogger(__name__)

KINDS = ("single", "multilabel", "regression")
SEPARATORS = ("|", ";")
MANY_FRACTIONS = 10  # different numbers with a point; above, they measure something
MANY_INTEGERS = 20  # likewise without; ids of classes that begin with 0 and leave no gap may be more
PER_CLASS = 5  # rows for each such id on average


@dataclass(frozen=True)
class Labels:
    """The kind of the labels and the classes in order; numbers have none."""

    kind: str
    classes: tuple[str, ...] = ()
    separator: str = ""  # between several labels in a cell; "[" for JSON lists
    counts: tuple[int, ...] = ()  # how often each class occurs where it was learned
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, cells: Sequence[str], kind: str | None = None, *, name: str = "label") -> Labels:
        """Learn the labels of a training set from its cells, none of them empty; `name` is the column's."""
        if kind is not None and kind not in KINDS:
            raise ConfigError(f"kind = {kind!r}", advice=did_you_mean(kind, KINDS))
        counted = Counter(cells)  # what follows looks at different cells only: they are few
        if not counted:
            raise DataError(f"there are no labels in {name!r}", expected="one in every row")
        separator = _separator(counted) if kind in (None, "multilabel") else ""
        if kind == "multilabel" and not separator:
            separator = SEPARATORS[0]
        kind = kind or ("multilabel" if separator else "regression" if _is_measure(counted) else "single")
        if kind == "regression":
            return _of_numbers(counted, name)
        occurs: Counter[str] = Counter()
        for cell, count in counted.items():
            for label in set(_parts(cell, separator)):
                occurs[label] += count
        classes = _ordered(occurs)
        _refuse_useless(classes, len(cells), kind, name)
        counts = tuple(occurs[label] for label in classes)
        warnings = tuple(_doubts(counted, classes, counts, separator, name))
        for warning in warnings:
            log.warning("%s", warning)
        return cls(kind, classes, separator if kind == "multilabel" else "", counts, warnings)

    def __repr__(self) -> str:
        if self.kind == "regression":
            return "Labels(regression)"
        shown = ", ".join(self.classes[:6]) + (", …" if len(self.classes) > 6 else "")
        return f"Labels({self.kind}, {len(self.classes)} classes: {shown})"

    def encode(self, cells: Sequence[str], lines: Sequence[int] | None = None, where: str = "the data") -> NDArray[Any]:
        """Ids (N,), for several labels 0 and 1 (N, classes), numbers (N,); a label that was never seen is an error."""
        if self.kind == "regression":
            return self._numbers(cells, lines, where)
        ids = {label: place for place, label in enumerate(self.classes)}
        unseen: dict[str, int] = {}
        rows = []
        for place, cell in enumerate(cells):
            parts = _parts(cell, self.separator)
            rows.append([ids.get(part, -1) for part in parts])
            for part in parts:
                if part not in ids:
                    unseen.setdefault(part, lines[place] if lines is not None else place + 1)
        if unseen:
            raise self._unseen(unseen, where)
        if self.kind == "single":
            return np.array([row[0] for row in rows], dtype=np.int64)
        matrix = np.zeros((len(rows), len(self.classes)), dtype=np.float32)
        for place, row in enumerate(rows):
            matrix[place, row] = 1
        return matrix

    def decode(self, values: NDArray[Any]) -> list[Any]:
        """Ids or rows of 0 and 1 as the words they stand for; numbers as they are."""
        if self.kind == "regression":
            return [float(value) for value in values]
        if self.kind == "single":
            return [self.classes[int(value)] for value in values]
        return [[self.classes[place] for place in np.flatnonzero(row)] for row in np.asarray(values) > 0.5]

    def names(self, cell: str) -> list[str]:
        """The classes that a cell names, each once, in order; none for a number."""
        return [] if self.kind == "regression" else list(_ordered(set(_parts(cell, self.separator))))

    def meaning(self, cell: str) -> str:
        """The same text for cells that mean the same: several labels in one order, numbers by their value."""
        if self.kind == "regression":
            return str(float(cell)) if _is_finite(cell) else cell
        return "\x1f".join(self.names(cell))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a run's files."""
        classes, counts = list(self.classes), list(self.counts)
        return {"kind": self.kind, "classes": classes, "separator": self.separator, "counts": counts}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Labels:
        """What `to_dict` wrote."""
        return cls(plain["kind"], tuple(plain["classes"]), plain["separator"], tuple(plain["counts"]))

    def _numbers(self, cells: Sequence[str], lines: Sequence[int] | None, where: str) -> NDArray[np.float64]:
        for place, cell in enumerate(cells):
            if not _is_finite(cell):
                line = lines[place] if lines is not None else place + 1
                raise DataError(f"{cell!r} in line {line} of {where} is no number", expected="numbers as labels")
        return np.array([float(cell) for cell in cells], dtype=np.float64)

    def _unseen(self, unseen: dict[str, int], where: str) -> DataError:
        shown = ", ".join(f"{label!r} (line {line})" for label, line in list(unseen.items())[:3])
        more = f" and {len(unseen) - 3} more" if len(unseen) > 3 else ""
        word = "a label" if len(unseen) == 1 else f"{len(unseen)} labels"
        known = ", ".join(map(repr, self.classes[:8])) + (", …" if len(self.classes) > 8 else "")
        meant = {_likeness(label): label for label in self.classes}
        alike = next((label for label in unseen if _likeness(label) in meant), None)
        advice = "" if alike is None else f"is {alike!r} the same as {meant[_likeness(alike)]!r}? then write it so"
        given = f"{where} has {word} that the training data has not: {shown}{more}"
        return DataError(given, expected=known, advice=advice)


# -- cells ------------------------------------------------------------------------------------


def _parts(cell: str, separator: str) -> list[str]:
    """The labels in a cell."""
    if not separator:
        return [cell]
    if separator == "[":
        found = _json_list(cell)
        return [cell] if found is None else found
    return [part.strip() for part in cell.split(separator) if part.strip()]


def _json_list(cell: str) -> list[str] | None:
    """The words of a JSON list, or None if the cell is something else."""
    if not cell.startswith("["):
        return None
    try:
        found = json.loads(cell, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or any(isinstance(item, list | dict) for item in found):
        return None
    return [item.strip() if isinstance(item, str) else json.dumps(item) for item in found]


def _separator(counted: Counter[str]) -> str:
    """What stands between several labels: its parts come again in other cells, and are no more than the cells."""
    if all(_json_list(cell) is not None for cell in counted):
        return "["
    for separator in SEPARATORS:
        joined = [cell for cell in counted if len(_parts(cell, separator)) > 1]
        if not joined:
            continue
        cells_with = Counter(part for cell in counted for part in set(_parts(cell, separator)))
        if len(cells_with) <= len(counted) and max(cells_with.values()) > 1:
            return separator
    return ""


def _is_finite(cell: str) -> bool:
    return is_number(cell) and math.isfinite(float(cell))


def _is_measure(counted: Counter[str]) -> bool:
    """Whether labels are numbers of which there are many: a measure, and no names of classes."""
    if not all(_is_finite(cell) for cell in counted):
        return False
    values, rows = {float(cell) for cell in counted}, counted.total()
    if any(not value.is_integer() for value in values):
        return len(values) > MANY_FRACTIONS or (len(values) > rows / 2 and len(values) > 2)
    written_as_ids = not any("." in cell for cell in counted) and values == set(range(len(values)))
    if written_as_ids and rows >= PER_CLASS * len(values):
        return False
    return len(values) > MANY_INTEGERS or (len(values) > MANY_FRACTIONS and len(values) > rows / 2)


def _ordered(labels: Iterable[str]) -> tuple[str, ...]:
    """Sorted; numbers by size."""
    labels = list(labels)
    if all(_is_finite(label) for label in labels):
        return tuple(sorted(labels, key=lambda label: (float(label), label)))
    return tuple(sorted(labels))


# -- doubts -----------------------------------------------------------------------------------


def _of_numbers(counted: Counter[str], name: str) -> Labels:
    wrong = next((cell for cell in counted if not _is_finite(cell)), None)
    if wrong is not None:
        raise DataError(f"{wrong!r} in {name!r} is no number", expected="numbers as labels")
    if len({float(cell) for cell in counted}) < 2:
        raise DataError(f"every row has the same number in {name!r}: {next(iter(counted))}", expected="multilabel")
    return Labels("regression")


def _refuse_useless(classes: tuple[str, ...], rows: int, kind: str, name: str) -> None:
    if not classes or (len(classes) == 1 and kind == "single"):
        shown = f"every row has the label {classes[0]!r}" if classes else "no row has a label"
        raise DataError(f"{shown} in {name!r}: there is nothing to learn", expected="at least two classes")
    if kind == "single" and len(classes) > max(20, rows / 2):
        given = f"{name!r} has {len(classes)} different values in {rows} rows: that is no label"
        raise DataError(given, expected="values that repeat", advice="name another column with --label")


def _likeness(label: str) -> Any:
    """Labels with the same likeness were probably meant to be one: case, spaces, 1 and 1.0."""
    return float(label) if _is_finite(label) else "".join(label.casefold().replace("_", " ").split())


def _doubts(
    counted: Counter[str], classes: tuple[str, ...], counts: tuple[int, ...], separator: str, name: str
) -> Iterable[str]:
    alike = defaultdict(list)
    for label in classes:
        alike[_likeness(label)].append(label)
    for group in alike.values():
        if len(group) > 1:
            yield f"the labels {', '.join(map(repr, group))} in {name!r} are taken as different: is it the same one?"
    rare = [label for label, count in zip(classes, counts, strict=True) if count < 2]
    if rare:
        shown = ", ".join(map(repr, rare[:5])) + (", …" if len(rare) > 5 else "")
        word = "one class has" if len(rare) == 1 else f"{len(rare)} classes have"
        yield f"{word} fewer than 2 examples in {name!r}: {shown}; what is not in both parts cannot be judged"
    empty = sum(count for cell, count in counted.items() if not _parts(cell, separator))
    if empty:
        yield f"rows with an empty list of labels in {name!r}: {empty}"
