"""What tables of labelled texts are like before anything learns from them, and what will spoil the result.

Every part is read as training reads it, so that what training would refuse is told here, and all of it at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from weft.data.columns import Columns, find_columns
from weft.data.examples import Examples, read_examples
from weft.data.labels import Labels
from weft.data.table_check import KnownTexts, Overlap, PartCheck, length_quantiles, part_warnings
from weft.data.tables import Table
from weft.errors import DataError, did_you_mean
from weft.tasks.classify.tables import joined, open_tables
from weft.tasks.sources import DEMO
from weft.tasks.token_lengths import Progress, learned, sampled, scheme, token_lengths

LENGTHS = (128, 256, 512)  # tokens at which texts may be cut
LITTLE = 100  # examples
FEW = 10  # examples of a class
MUCH_CUT = 0.05
NUMBERS = {"lowest": 0.0, "quarter": 0.25, "half": 0.5, "three_quarters": 0.75, "highest": 1.0}


@dataclass
class TableStatistics:
    """What was found in the tables of one part."""

    files: list[str]
    rows: int
    broken: int  # rows that could not be read
    without_text: int
    without_label: int
    labelled: bool
    content: PartCheck
    numbers: dict[str, float] | None = None  # quantiles of the labels, if these are numbers
    tokens: dict[str, int] = field(default_factory=dict)  # quantiles of the length, special tokens counted
    cut: dict[int, int] = field(default_factory=dict)  # how many texts are longer than so many tokens
    counted: int = 0  # texts whose tokens were counted
    leakage: dict[str, Overlap] = field(default_factory=dict)  # how much of it stands in the parts before it

    @property
    def name(self) -> str:
        return ", ".join(self.files)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = asdict(self)
        found |= found.pop("content")
        return found | {"cut": {str(length): count for length, count in self.cut.items()}}


@dataclass
class LabelledCheck:
    """The findings; parts are `train`, `validation` and `test`, as far as they are there."""

    columns: Columns
    unused: list[str]
    labels: Labels | None  # None if there are none, or if training would refuse them
    no_label: str  # why no column was taken as the label
    tokenizer: str
    vocab_size: int
    one_in: int  # tokens were learned from one training text in so many
    parts: dict[str, TableStatistics]
    notes: list[str]
    warnings: list[str]
    problems: list[str]  # what training would refuse

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        kind = None if self.labels is None else self.labels.kind
        classes = [] if self.labels is None else list(self.labels.classes)
        return {
            "columns": asdict(self.columns) | {"unused": self.unused},
            "labels": {"kind": kind, "classes": classes, "missing": self.no_label},
            "tokenizer": {"kind": self.tokenizer, "vocab_size": self.vocab_size, "one_in": self.one_in},
            **dict.fromkeys(("validation", "test")),
            **{name: part.to_dict() for name, part in self.parts.items()},
            "notes": self.notes,
            "warnings": self.warnings,
            "problems": self.problems,
        }


def check_labelled(
    train: Sequence[str],
    validation: Sequence[str] = (),
    test: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    tokenizer: str | None = None,
    labelled: bool | None = None,
    progress: Progress | None = None,
) -> LabelledCheck:
    """Read tables, and others beside them, and count; one that cannot be read at all is a `DataError`.

    `columns` are those that the user named: `text`, `pair`, `label`. With `labelled` there must be a label, with
    False none is looked for; None: one is used if there is one.
    """
    kind = scheme(tokenizer)  # refused before anything is read
    tables = _open(train, validation, test)
    chosen, no_label = _columns(tables["train"][0], columns or {}, labelled)
    examples, notes = _read(tables, chosen)
    labels, problems = _labels(examples, chosen.label)
    known = {name: KnownTexts(part, labels) for name, part in examples.items()}
    parts = {name: _part(tables[name], known[name], labels) for name in tables}
    for name, others in (("validation", ["train"]), ("test", ["train", "validation"])):
        if name in parts:
            parts[name].leakage = {other: known[name].known_in(known[other]) for other in others if other in parts}
    cutter = learned(kind, examples["train"])
    inputs = {name: sampled(part)[0] for name, part in examples.items()}
    for name, lengths in token_lengths(inputs, cutter, progress).items():
        parts[name].tokens, parts[name].counted = length_quantiles(lengths), len(lengths)
        parts[name].cut = {length: int((lengths > length).sum()) for length in LENGTHS}
    used = (chosen.text, chosen.pair, chosen.label)
    return LabelledCheck(
        columns=chosen,
        unused=[name for name in tables["train"][0].columns if name not in used],
        labels=labels,
        no_label=no_label,
        tokenizer=kind,
        vocab_size=cutter.vocab_size,
        one_in=sampled(examples["train"])[1],
        parts=parts,
        notes=notes,
        warnings=list(_warnings(parts, labels)),
        problems=problems,
    )


# -- reading ----------------------------------------------------------------------------------


def _open(train: Sequence[str], validation: Sequence[str], test: Sequence[str]) -> dict[str, list[Table]]:
    """The tables by part; the embedded one brings a test set of its own."""
    if list(train) == [DEMO]:
        test = test or train
    given: tuple[tuple[str, Sequence[str], Literal["train", "test"]], ...]
    given = (("train", train, "train"), ("validation", validation, "train"), ("test", test, "test"))
    return {name: open_tables(paths, part) for name, paths, part in given if paths}


def _columns(table: Table, named: Mapping[str, str], labelled: bool | None) -> tuple[Columns, str]:
    """The columns of the training table, and why none of them is a label if none is."""
    text, pair, label = (named.get(name) for name in ("text", "pair", "label"))
    if labelled is False:
        return find_columns(table, text, pair, labelled=False), "filling in needs none"
    try:
        return find_columns(table, text, pair, label), ""
    except DataError as error:
        if labelled or label is not None:
            raise
        return find_columns(table, text, pair, labelled=False), str(error).split("\n")[0]


def _read(tables: Mapping[str, Sequence[Table]], chosen: Columns) -> tuple[dict[str, Examples], list[str]]:
    """The examples of each part, and what was noticed on the way."""
    examples, notes = {}, []
    for name, several in tables.items():
        parts = []
        labelled = name == "train" or all(chosen.label in table.columns for table in several)
        columns = chosen if labelled else replace(chosen, label=None)
        for table in several:
            _check_columns(table, columns, tables["train"][0].name)
            parts.append(read_examples(table, columns))
            notes += [*table.notes, *parts[-1].notes]
        left_out = {what: sum(getattr(part, what) for part in parts) for what in ("without_text", "without_label")}
        examples[name] = replace(joined(parts), **left_out)
        if not labelled and chosen.label is not None:
            notes.append(f"{examples[name].name} has no column {chosen.label!r}: nothing can be measured on it")
    return examples, notes


def _check_columns(table: Table, columns: Columns, train: str) -> None:
    for name in (columns.text, columns.pair, columns.label):
        if name is not None and name not in table.columns:
            given = f"{table.name} has no column {name!r}, which {train} has"
            raise DataError(given, advice=did_you_mean(name, table.columns))


def _labels(examples: Mapping[str, Examples], name: str | None) -> tuple[Labels | None, list[str]]:
    """What the labels mean, and what training would refuse about them."""
    cells = examples["train"].labels
    if cells is None or name is None:
        return None, []
    try:
        labels = Labels.of(cells, name=name)
    except DataError as error:
        return None, [str(error)]
    problems = []
    for part in examples.values():
        try:
            labels.encode(part.labels or [], part.lines, part.name)
        except DataError as error:
            problems.append(str(error))
    return labels, problems


def _part(tables: Sequence[Table], known: KnownTexts, labels: Labels | None) -> TableStatistics:
    examples = known.examples
    return TableStatistics(
        files=[table.name for table in tables],
        rows=sum(len(table) + table.skipped for table in tables),
        broken=sum(table.skipped for table in tables),
        without_text=examples.without_text,
        without_label=examples.without_label,
        labelled=examples.labels is not None,
        content=known.check(),
        numbers=_numbers(labels, examples),
    )


def _numbers(labels: Labels | None, examples: Examples) -> dict[str, float] | None:
    """Quantiles of labels that are numbers; what is none of them is a problem already."""
    if labels is None or labels.kind != "number" or not examples.labels:
        return None
    try:
        values = labels.encode(examples.labels)
    except DataError:
        return None
    return {name: float(np.quantile(values, share)) for name, share in NUMBERS.items()}


# -- doubts -----------------------------------------------------------------------------------


def _warnings(parts: Mapping[str, TableStatistics], labels: Labels | None) -> Iterator[str]:
    """What will probably spoil the result."""
    train = parts["train"]
    if labels is not None:
        yield from labels.warnings
        rare = {label: n for label, n in zip(labels.classes, labels.counts, strict=True) if 2 <= n < FEW}
        if rare:
            word = "a class has" if len(rare) == 1 else f"{len(rare)} classes have"
            yield f"{word} fewer than {FEW} examples: {_some([f'{label!r} ({n})' for label, n in rare.items()])}"
    if train.content.examples < LITTLE:
        yield f"only {train.content.examples} examples to learn from: some hundreds are a start, thousands are better"
    for name, part in parts.items():
        yield from part_warnings(part.name, part.content)
        for other, overlap in part.leakage.items():
            yield from overlap.warning(part.name, part.content.examples, parts[other].name)
        if labels is not None and name != "train" and part.labelled:
            missing = [repr(label) for label in labels.classes if label not in part.content.balance]
            if missing:
                yield f"{part.name} has no example of {_some(missing)}: how well it was learned stays unknown"
    longest = LENGTHS[-1]
    if train.cut[longest] > MUCH_CUT * train.counted:
        share = train.cut[longest] / train.counted
        yield f"{share:.0%} of the texts are longer than {longest} tokens: what stands beyond may not be read"


def _some(words: list[str]) -> str:
    return ", ".join(words[:5]) + (", …" if len(words) > 5 else "")
