"""What a set of labelled texts is like, and whether the part to judge by was already seen in the part to learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from weft.data.examples import Examples
from weft.data.labels import Labels
from weft.errors import DataError

QUANTILES = {"shortest": 0.0, "quarter": 0.25, "half": 0.5, "three_quarters": 0.75, "most": 0.95, "longest": 1.0}
LEAK = 0.01  # a share of known test texts that is worth a warning
MANY_LABELS = 50  # more different labels are not listed, unless they are known to be classes
IMBALANCE = 10


@dataclass(frozen=True)
class PartCheck:
    """One part of the data; all but lengths are numbers of examples."""

    examples: int
    duplicates: int  # beyond the first with the same text and label
    contradictions: int  # different texts that stand there with several labels
    balance: dict[str, int]  # the commonest labels first; empty if there are too many to be classes
    words: dict[str, int]  # quantiles of the length, both texts of a pair together


@dataclass(frozen=True)
class Overlap:
    """How many examples of a part also stand in another one; labels are None if one of the two has none."""

    examples: int
    same_label: int | None
    other_label: int | None

    def warning(self, name: str, count: int, other: str) -> list[str]:
        """A sentence if these are too many of the `count` examples in `name`, else none."""
        if self.examples <= LEAK * count:
            return []
        told = f"{self.examples / count:.1%} of {name} also stand in {other}"
        if self.same_label is not None:
            told += f" ({self.same_label} with the same label, {self.other_label} with another)"
        return [f"{told}: results on it look better than they are"]


class KnownTexts:
    """The texts of one part as hashes, each with the labels that it has there.

    Texts count as the same if they differ in nothing but case and spaces; cells, if they mean the same labels.
    """

    def __init__(self, examples: Examples, labels: Labels | None = None) -> None:
        self.examples, self._labels, self._keys = examples, labels, examples.keys()
        cells = examples.labels
        self._cells = cells if cells is None or labels is None else [labels.meaning(cell) for cell in cells]
        self.found: dict[bytes, set[str]] = {}
        for key, cell in zip(self._keys, self._cells or [""] * len(examples), strict=True):
            self.found.setdefault(key, set()).add(cell)

    def check(self) -> PartCheck:
        """Duplicates, contradictions, balance and lengths."""
        examples = self.examples
        balance = self._balance()
        return PartCheck(
            examples=len(examples),
            duplicates=len(examples) - sum(map(len, self.found.values())),
            contradictions=sum(len(labels) > 1 for labels in self.found.values()),
            balance=dict(sorted(balance.items(), key=lambda item: (-item[1], item[0]))),
            words=length_quantiles([sum(len(part.split()) for part in parts) for parts in examples.inputs()]),
        )

    def _balance(self) -> Counter[str]:
        cells = Counter(self.examples.labels or ())
        if self._labels is None:
            return cells if len(cells) <= MANY_LABELS else Counter()
        balance: Counter[str] = Counter()
        for cell, count in cells.items():
            balance.update(dict.fromkeys(self._labels.names(cell), count))
        return balance

    def known_in(self, other: KnownTexts) -> Overlap:
        """How much of this part stands in the other one."""
        if self._cells is None or other._cells is None:
            return Overlap(sum(key in other.found for key in self._keys), None, None)
        same = differ = 0
        for key, cell in zip(self._keys, self._cells, strict=True):
            labels = other.found.get(key)
            if labels is not None:
                same += cell in labels
                differ += cell not in labels
        return Overlap(same + differ, same, differ)


@dataclass(frozen=True)
class TableCheck:
    """The findings on a training set, and on a test set beside it if there is one; shares are of the test set."""

    train: PartCheck
    test: PartCheck | None = None
    known: float | None = None  # texts (pairs) that stand in the training set
    known_same_label: float | None = None
    known_other_label: float | None = None
    warnings: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "warnings": list(self.warnings)}


def compare_tables(train: Examples, test: Examples | None = None, labels: Labels | None = None) -> TableCheck:
    """Duplicates, contradictions, balance and lengths of each, and how much of the test set is in the training set.

    Texts count as the same if they differ in nothing but case and spaces; only hashes of them are kept. With
    `labels`, cells are compared and counted by what they mean: `a|b` is `b|a`.
    """
    if test is not None and (train.pairs is None) != (test.pairs is None):
        raise DataError(f"{train!r} and {test!r}", expected="both with pairs or both without")
    learned = KnownTexts(train, labels)
    found = learned.check()
    if test is None:
        return TableCheck(found, warnings=tuple(part_warnings(train.name, found)))
    judged = KnownTexts(test, labels)
    overlap, beside, count = judged.known_in(learned), judged.check(), max(len(test), 1)
    warnings = [*part_warnings(train.name, found), *part_warnings(test.name, beside)]
    warnings += overlap.warning(test.name, count, train.name)
    same, other = (None if number is None else number / count for number in (overlap.same_label, overlap.other_label))
    return TableCheck(found, beside, overlap.examples / count, same, other, tuple(warnings))


def length_quantiles(lengths: ArrayLike) -> dict[str, int]:
    """`QUANTILES` of lengths, each one a length that occurs; 0 if there are none."""
    array = np.asarray(lengths)
    if not array.size:
        return dict.fromkeys(QUANTILES, 0)
    values = np.quantile(array, list(QUANTILES.values()), method="higher")
    return {name: int(value) for name, value in zip(QUANTILES, values, strict=True)}


def part_warnings(name: str, part: PartCheck) -> Iterator[str]:
    """What is doubtful in one part by itself."""
    if part.duplicates > LEAK * part.examples:
        yield f"{part.duplicates} of {part.examples} examples in {name} stand there before"
    if part.contradictions:
        word = "text stands" if part.contradictions == 1 else "texts stand"
        yield f"{part.contradictions} {word} in {name} with several labels"
    counts = list(part.balance.values())
    if len(counts) > 1 and counts[0] > IMBALANCE * counts[-1]:
        first, *_, last = part.balance
        yield f"{first!r} is {counts[0] / counts[-1]:.0f} times as frequent as {last!r} in {name}: look at macro F1"
