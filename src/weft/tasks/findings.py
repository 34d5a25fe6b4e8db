"""What `weft check` finds in data: facts for programs, and for people sentences, and rows with a cell for each part.

The facts of a part are plain values by name. Rows are made from those of all parts, so every kind of data that has a
fact of the same name shows it in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PARTS = ("train", "validation", "test")
MAX_LISTED = 12  # classes that have a row of their own, and columns that are named
MAX_LABEL_CHARACTERS = 30  # characters of a label that are shown
LENGTH_TITLES = {"half": "median", "most": "95% have at most", "longest": "longest"}
NUMBER_TITLES = {"lowest": "lowest", "quarter": "25% have at most", "half": "median"}
NUMBER_TITLES |= {"three_quarters": "75% have at most", "highest": "highest"}

Facts = dict[str, Any]
Row = tuple[str, list[str]]


@dataclass
class Findings:
    """What was found.

    parts      the facts of each part that there is, by its name
    facts      those of all parts together
    sentences  shown before the counts
    counts     titles, and a cell for each part
    warnings   what will probably spoil the result
    problems   what training refuses
    """

    parts: dict[str, Facts]
    facts: Facts
    sentences: list[str]
    counts: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        told = {"notes": self.notes, "warnings": self.warnings, "problems": self.problems}
        return {**self.facts, **dict.fromkeys(PARTS), **self.parts, **told}


# -- sentences --------------------------------------------------------------------------------


def named_parts(names: Mapping[str, str]) -> list[str]:
    """Which files each part is."""
    return [f"{part.capitalize()}: {name}" for part, name in names.items()]


def as_sentence(text: str) -> str:
    """With a large first letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


# -- rows -------------------------------------------------------------------------------------


def share(number: int, of: int) -> str:
    """A count, and how much of the whole it is."""
    return f"{number:,} ({number / of:.1%})" if number and of else f"{number:,}"


def count_rows(
    parts: Sequence[Facts], titles: Mapping[str, str], of: str | None = None, *, if_any: bool = False
) -> list[Row]:
    """A row for each fact that has a title, with its share of the fact `of`; `if_any`: not where all are 0."""
    return [
        (title, [share(part[name], part[of] if of else 0) for part in parts])
        for name, title in titles.items()
        if not if_any or any(part[name] for part in parts)
    ]


def length_rows(
    what: str, lengths: Iterable[Mapping[str, int]], titles: Mapping[str, str] = LENGTH_TITLES
) -> list[Row]:
    """Quantiles of lengths."""
    lengths = list(lengths)
    return [(f"{what}, {title}", [f"{part[name]:,}" for part in lengths]) for name, title in titles.items()]


def balance_rows(parts: Sequence[Facts], of: str, name: str = "balance") -> list[Row]:
    """The commonest classes, quoted so that a terminal obeys nothing in them, and the others together."""
    total: dict[str, int] = {}
    for part in parts:
        for label, count in part[name].items():
            total[label] = total.get(label, 0) + count
    listed = sorted(total, key=lambda label: (-total[label], label))
    if len(listed) > MAX_LISTED + 1:
        listed = listed[:MAX_LISTED]
    rows: list[Row] = []
    for label in listed:
        title = repr(label if len(label) <= MAX_LABEL_CHARACTERS else label[: MAX_LABEL_CHARACTERS - 1] + "…")
        rows.append((title, [share(part[name].get(label, 0), part[of]) if part[name] else "" for part in parts]))
    if len(listed) < len(total):
        rest = [sum(n for label, n in part[name].items() if label not in listed) for part in parts]
        rows.append((f"{len(total) - len(listed)} other classes", [f"{n:,}" for n in rest]))
    return rows


def number_rows(parts: Sequence[Facts], what: str, name: str = "numbers") -> list[Row]:
    """Quantiles of numbers, where any part has some."""
    if not any(part[name] for part in parts):
        return []
    return [
        (f"{what}, {title}", [f"{part[name][quantile]:g}" if part[name] else "" for part in parts])
        for quantile, title in NUMBER_TITLES.items()
    ]


def cut_rows(parts: Sequence[Facts], of: str) -> list[Row]:
    """How many texts are longer than some lengths; counted, or for very many of them estimated."""

    def cell(part: Facts, length: int) -> str:
        cut, counted = part["cut"][length], part["counted"]
        return share(cut, counted) if counted == part[of] else f"about {cut / counted:.1%}"

    return [(f"cut at {length} tokens", [cell(part, length) for part in parts]) for length in parts[0]["cut"]]


def leakage_rows(parts: Sequence[Facts], of: str, titles: Mapping[str, str]) -> list[Row]:
    """The share of each part that is also in the parts before it; `titles`: what is counted, before "in train"."""
    return [
        (
            f"{title} in {other}",
            [share(part["leakage"][other][name], part[of]) if other in part["leakage"] else "" for part in parts],
        )
        for other in PARTS
        if any(other in part["leakage"] for part in parts)
        for name, title in titles.items()
    ]
