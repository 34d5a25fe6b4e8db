"""What columns of texts and labels are like: duplicates, contradictions, leaks, lengths, balance; and what is doubtful.

Columns are lists of one length. Texts are compared by keys, hashes that are the same for texts that differ in nothing
but case and spaces (`input_key`); only these are kept. A function whose name ends in `warning` yields a sentence if
there is too much of something, else nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from weft.data.examples import Examples
from weft.data.labels import Labels
from weft.errors import DataError

QUANTILES = {"shortest": 0.0, "quarter": 0.25, "half": 0.5, "three_quarters": 0.75, "most": 0.95, "longest": 1.0}
NUMBERS = {"lowest": 0.0, "quarter": 0.25, "half": 0.5, "three_quarters": 0.75, "highest": 1.0}
LEAK = 0.01  # a share of known test texts, or of duplicates, that is worth a warning
MANY_LABELS = 50  # more different labels are not listed, unless they are known to be classes
IMBALANCE = 10
COPIED = 0.1  # a share of targets that are their source
UNEVEN = 9  # times as many characters on one side: probably they do not belong together
MUCH_UNEVEN = 0.01


# -- the same text more than once -------------------------------------------------------------


@dataclass(frozen=True)
class Overlap:
    """How many examples of a part also stand in another one; labels are None if one of the two has none."""

    examples: int
    same_label: int | None
    other_label: int | None

    def warning(self, name: str, count: int, other: str, label: str = "label") -> Iterator[str]:
        """Of the `count` examples in `name`; `label` is what stands beside a text."""
        if self.examples > LEAK * count:
            told = f"{self.examples / count:.1%} of {name} also stand in {other}"
            if self.same_label is not None:
                told += f" ({self.same_label:,} with the same {label}, {self.other_label:,} with another)"
            yield f"{told}: results on it look better than they are"


class KnownTexts:
    """The keys of the texts of one part, and what stands beside each of them: a label, or the key of a target."""

    def __init__(self, keys: Sequence[bytes], beside: Sequence[Hashable] | None = None) -> None:
        self.keys, self.beside = keys, beside
        self._texts, self._rows = set(keys), set(self._pairs())

    def _pairs(self) -> Iterable[tuple[bytes, Hashable]]:
        return zip(self.keys, repeat(None) if self.beside is None else self.beside, strict=False)

    @property
    def duplicates(self) -> int:
        """How many there are beyond the first with the same text and the same beside it."""
        return len(self.keys) - len(self._rows)

    @property
    def repeated(self) -> int:
        """How many there are beyond the first with the same text, whatever stands beside it."""
        return len(self.keys) - len(self._texts)

    @property
    def contradictions(self) -> int:
        """How many different texts have several labels."""
        return sum(count > 1 for count in Counter(key for key, _ in self._rows).values())

    def known_in(self, other: KnownTexts) -> Overlap:
        """How much of this part stands in the other one."""
        found = sum(key in other._texts for key in self.keys)
        if self.beside is None or other.beside is None:
            return Overlap(found, None, None)
        same = sum(row in other._rows for row in self._pairs())
        return Overlap(found, same, found - same)


def known_examples(examples: Examples, labels: Labels | None = None) -> KnownTexts:
    """With `labels`, cells are compared by what they mean."""
    cells = examples.labels
    return KnownTexts(examples.keys(), cells if cells is None or labels is None else meanings(cells, labels))


def meanings(cells: Sequence[str], labels: Labels) -> list[str]:
    """The same for cells that name the same labels: `a|b` is `b|a`."""
    meaning = {cell: labels.meaning(cell) for cell in set(cells)}
    return [meaning[cell] for cell in cells]


def find_leakage(parts: Mapping[str, KnownTexts]) -> dict[str, dict[str, Overlap]]:
    """Of each part, how much of it stands in the parts before it."""
    return {
        name: {other: part.known_in(parts[other]) for other in list(parts)[:place]}
        for place, (name, part) in enumerate(parts.items())
    }


def duplicate_warning(duplicates: int, count: int, name: str, what: str = "examples") -> Iterator[str]:
    """Of the `count` examples in `name`."""
    if duplicates > LEAK * count:
        yield f"{duplicates:,} of {count:,} {what} in {name} stand there before"


def contradiction_warning(count: int, name: str, what: str = "text", beside: str = "several labels") -> Iterator[str]:
    """However few there are."""
    if count:
        yield f"{count:,} {f'{what} stands' if count == 1 else f'{what}s stand'} in {name} with {beside}"


# -- two texts beside each other --------------------------------------------------------------


def count_copied(sources: Sequence[str], targets: Sequence[str]) -> int:
    """Targets that are their source, letter by letter."""
    return sum(one.split() == two.split() for one, two in zip(sources, targets, strict=True))


def count_uneven(sources: Sequence[str], targets: Sequence[str]) -> int:
    """Pairs with one side more than `UNEVEN` times as long as the other."""
    lengths = ((len(one), len(two)) for one, two in zip(sources, targets, strict=True))
    return sum(max(both) > UNEVEN * min(both) for both in lengths)


def copied_warning(copied: int, count: int, name: str) -> Iterator[str]:
    """Of the `count` pairs in `name`."""
    if copied > COPIED * count:
        told = f"source and target are the same in {copied:,} of {count:,} pairs in {name}"
        yield f"{told}: a model will learn to copy"


def uneven_warning(uneven: int, count: int, name: str) -> Iterator[str]:
    """Of the `count` pairs in `name`."""
    if uneven > MUCH_UNEVEN * count:
        told = f"one side is more than {UNEVEN} times as long as the other in {uneven:,} of {count:,} pairs in {name}"
        yield f"{told}: do they belong together?"


# -- labels -----------------------------------------------------------------------------------


def count_labels(cells: Iterable[str], labels: Labels | None = None) -> dict[str, int]:
    """How often each label occurs, the commonest first; none if there are too many to be classes."""
    counted = Counter(cells)
    if labels is None and len(counted) > MANY_LABELS:
        return {}
    found: Counter[str] = Counter()
    for cell, count in counted.items():
        found.update(dict.fromkeys([cell] if labels is None else labels.names(cell), count))
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def imbalance_warning(balance: Mapping[str, int], name: str) -> Iterator[str]:
    """Of labels, the commonest first."""
    counts = list(balance.values())
    if len(counts) > 1 and counts[0] > IMBALANCE * counts[-1]:
        first, *_, last = balance
        yield f"{first!r} is {counts[0] / counts[-1]:.0f} times as frequent as {last!r} in {name}: look at macro F1"


def rare_labels(balance: Mapping[str, int], fewer_than: int) -> dict[str, int]:
    """Those that occur less often than this."""
    return {label: count for label, count in balance.items() if count < fewer_than}


def rare_warning(balance: Mapping[str, int], fewer_than: int, what: str = "examples") -> Iterator[str]:
    """Of classes with fewer than so many examples."""
    rare = rare_labels(balance, fewer_than)
    if rare:
        word = "a class has" if len(rare) == 1 else f"{len(rare)} classes have"
        yield f"{word} fewer than {fewer_than} {what}: {first_few(f'{label!r} ({n})' for label, n in rare.items())}"


def first_few(words: Iterable[str], most: int = 5) -> str:
    """The first of many words."""
    words = list(words)
    return ", ".join(words[:most]) + (", …" if len(words) > most else "")


# -- lengths and numbers ----------------------------------------------------------------------


def length_quantiles(lengths: ArrayLike) -> dict[str, int]:
    """`QUANTILES` of lengths, each one a length that occurs; 0 if there are none."""
    array = np.asarray(lengths)
    if not array.size:
        return dict.fromkeys(QUANTILES, 0)
    values = np.quantile(array, list(QUANTILES.values()), method="higher")
    return {name: int(value) for name, value in zip(QUANTILES, values, strict=True)}


def number_quantiles(numbers: ArrayLike) -> dict[str, float]:
    """`NUMBERS` of labels that are numbers."""
    values = np.quantile(np.asarray(numbers), list(NUMBERS.values()))
    return {name: float(value) for name, value in zip(NUMBERS, values, strict=True)}


# -- labelled texts ---------------------------------------------------------------------------


@dataclass(frozen=True)
class PartCheck:
    """One part of the data; all but lengths are numbers of examples."""

    examples: int
    duplicates: int  # beyond the first with the same text and label
    contradictions: int  # different texts that stand there with several labels
    balance: dict[str, int]  # the commonest labels first; empty if there are too many to be classes
    words: dict[str, int]  # quantiles of the length, both texts of a pair together

    @classmethod
    def of(cls, examples: Examples, known: KnownTexts, labels: Labels | None = None) -> PartCheck:
        """Count everything."""
        return cls(
            examples=len(examples),
            duplicates=known.duplicates,
            contradictions=known.contradictions,
            balance=count_labels(examples.labels or (), labels),
            words=length_quantiles([sum(len(part.split()) for part in parts) for parts in examples.inputs()]),
        )

    def warnings(self, name: str) -> Iterator[str]:
        """What is doubtful in this part by itself."""
        yield from duplicate_warning(self.duplicates, self.examples, name)
        yield from contradiction_warning(self.contradictions, name)
        yield from imbalance_warning(self.balance, name)


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
    learned = known_examples(train, labels)
    found = PartCheck.of(train, learned, labels)
    if test is None:
        return TableCheck(found, warnings=tuple(found.warnings(train.name)))
    judged = known_examples(test, labels)
    overlap, beside, count = judged.known_in(learned), PartCheck.of(test, judged, labels), max(len(test), 1)
    warnings = [*found.warnings(train.name), *beside.warnings(test.name)]
    warnings += overlap.warning(test.name, count, train.name)
    same, other = (None if number is None else number / count for number in (overlap.same_label, overlap.other_label))
    return TableCheck(found, beside, overlap.examples / count, same, other, tuple(warnings))
