"""What a set of labelled texts is like, and whether the part to judge by was already seen in the part to learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from weft.data.examples import Examples
from weft.errors import DataError

QUANTILES = {"shortest": 0.0, "quarter": 0.25, "half": 0.5, "three_quarters": 0.75, "most": 0.95, "longest": 1.0}
LEAK = 0.01  # a share of known test texts that is worth a warning
MANY_LABELS = 50  # more different labels are not listed
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


def compare_tables(train: Examples, test: Examples | None = None) -> TableCheck:
    """Duplicates, contradictions, balance and lengths of each, and how much of the test set is in the training set.

    Texts count as the same if they differ in nothing but case and spaces; only hashes of them are kept.
    """
    if test is not None and (train.pairs is None) != (test.pairs is None):
        raise DataError(f"{train!r} and {test!r}", expected="both with pairs or both without")
    labels = _labels_by_text(train)
    learned = _check(train, labels)
    if test is None:
        return TableCheck(learned, warnings=tuple(_part_warnings(train.name, learned)))
    judged = _check(test, _labels_by_text(test))
    same = other = 0
    for key, label in _keys(test):
        if key in labels:
            agrees = label in labels[key]
            same += agrees
            other += not agrees
    count = max(len(test), 1)
    warnings = [*_part_warnings(train.name, learned), *_part_warnings(test.name, judged)]
    if same + other > LEAK * count:
        warnings.append(
            f"{(same + other) / count:.1%} of {test.name} also stand in {train.name}"
            f" ({same} with the same label, {other} with another): results on it look better than they are"
        )
    return TableCheck(learned, judged, (same + other) / count, same / count, other / count, tuple(warnings))


def _keys(examples: Examples) -> Iterator[tuple[bytes, str]]:
    """The key and the label of each example."""
    return zip(examples.keys(), examples.labels or [""] * len(examples), strict=True)


def _labels_by_text(examples: Examples) -> dict[bytes, set[str]]:
    labels: dict[bytes, set[str]] = {}
    for key, label in _keys(examples):
        labels.setdefault(key, set()).add(label)
    return labels


def _check(examples: Examples, labels: dict[bytes, set[str]]) -> PartCheck:
    different = sum(map(len, labels.values()))
    lengths = np.array([sum(len(part.split()) for part in parts) for parts in examples.inputs()])
    values = (
        np.quantile(lengths, list(QUANTILES.values()), method="higher") if len(lengths) else np.zeros(len(QUANTILES))
    )
    balance = Counter(examples.labels or ())
    return PartCheck(
        examples=len(examples),
        duplicates=len(examples) - different,
        contradictions=sum(len(found) > 1 for found in labels.values()),
        balance=dict(sorted(balance.items(), key=lambda item: (-item[1], item[0])))
        if len(balance) <= MANY_LABELS
        else {},
        words={name: int(value) for name, value in zip(QUANTILES, values, strict=True)},
    )


def _part_warnings(name: str, part: PartCheck) -> Iterator[str]:
    if part.duplicates > LEAK * part.examples:
        yield f"{part.duplicates} of {part.examples} examples in {name} stand there before"
    if part.contradictions:
        word = "text stands" if part.contradictions == 1 else "texts stand"
        yield f"{part.contradictions} {word} in {name} with several labels"
    counts = list(part.balance.values())
    if len(counts) > 1 and counts[0] > IMBALANCE * counts[-1]:
        first, *_, last = part.balance
        yield f"{first!r} is {counts[0] / counts[-1]:.0f} times as frequent as {last!r} in {name}: look at macro F1"
