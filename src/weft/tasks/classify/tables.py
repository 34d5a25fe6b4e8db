"""Tables of labelled texts as the data of a run: read, split, and recorded so that a resume can check them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from weft.data import (
    Columns,
    Examples,
    Labels,
    Table,
    compare_tables,
    demo_table,
    find_columns,
    read_examples,
    read_table,
    stratified_split,
)
from weft.errors import ConfigError, DataError
from weft.tasks.data_facts import label_facts, parts_of, quarters
from weft.tasks.sources import DEMO, DataConfig

MIN_EXAMPLES = 4  # examples


class TableConfig(DataConfig):
    """Which tables, which columns of them, and how they are split.

    `text`, `pair` and `label` are names of columns (None: found out); `kind` says what the labels are, which is
    recognised from them otherwise. `length` is how many tokens of a text are read. Found in the data:
    what separates several labels, and mean and deviation of numbers.
    """

    found: ClassVar[tuple[str, ...]] = (*DataConfig.found, "rows", "separator", "mean", "deviation")
    columns: ClassVar[tuple[str, ...]] = ("text", "pair", "label")

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    kind: Literal["single", "multilabel", "regression"] | None = None
    rows: int = 0
    separator: str = ""
    mean: float = 0.0
    deviation: float = 1.0


@dataclass(frozen=True)
class Tables:
    """The labelled texts of a run, split; `why` says how the columns were found."""

    config: TableConfig
    labels: Labels
    train: Examples
    validation: Examples
    test: Examples | None
    why: str
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """In numbers, for a report."""
        parts = parts_of(self)
        sides = {"words of a text": self.train.texts}
        if self.train.pairs is not None:
            sides["words of the second"] = self.train.pairs
        return {
            "parts": {name: {"examples": len(part), "characters": part.characters} for name, part in parts.items()},
            **label_facts(parts, self.labels),
            "lengths": {name: quarters(len(text.split()) for text in texts) for name, texts in sides.items()},
        }


def open_tables(paths: Sequence[str], part: Literal["train", "test"] = "train") -> list[Table]:
    """The tables at these paths, or the embedded one."""
    if list(paths) == [DEMO]:
        return [demo_table(part)]
    return [read_table(path) for path in paths]


def read_tables(config: TableConfig) -> Tables:
    """Read the tables, find their columns, split off the validation part."""
    tables = open_tables(config.train)
    columns = find_columns(tables[0], config.text, config.pair, config.label)
    everything = joined([read_examples(table, columns) for table in tables])
    if len(everything) < MIN_EXAMPLES:
        raise DataError(
            f"{len(everything)} examples in {everything.name}", expected=f"at least {MIN_EXAMPLES} to learn from"
        )
    assert everything.labels is not None and columns.label is not None
    labels = Labels.of(everything.labels, config.kind, name=columns.label)
    values = labels.encode(everything.labels, everything.lines, everything.name)
    if config.validation:
        train, validation = everything, _read(config.validation, columns)
    elif config.validation_share > 0:
        learn, judge = stratified_split(values, config.validation_share, seed=0, groups=everything.keys())
        train, validation = everything.part(learn), everything.part(judge)
        values = values[learn]
    else:
        raise ConfigError("data.validation_share = 0", expected="more than 0, or other examples with --validation")
    test = _read(config.test, columns) if config.test else None
    if list(config.train) == [DEMO] and test is None:
        test = joined([read_examples(table, columns) for table in open_tables(config.train, "test")])
    for part in (validation, *([test] if test is not None else [])):
        assert part.labels is not None
        labels.encode(part.labels, part.lines, part.name)  # names labels that were never learned
    found: dict[str, object] = {
        "text": columns.text,
        "pair": columns.pair,
        "label": columns.label,
        "kind": labels.kind,
        "separator": labels.separator,
        "rows": len(train),
        "characters": train.characters,
        "bytes": sum(len(part.encode("utf-8", "surrogatepass")) for parts in train.inputs() for part in parts),
        "fingerprint": ";".join(_fingerprint(part) for part in (everything, validation, test) if part is not None),
    }
    if labels.kind == "regression":
        found |= {"mean": float(np.mean(values)), "deviation": float(np.std(values)) or 1.0}
    notes = [note for table in tables for note in table.notes]
    notes += [
        *everything.notes,
        *labels.warnings,
        *_leaks(train, None if not config.validation else validation, test, labels),
    ]
    return Tables(config.override(found), labels, train, validation, test, columns.reason, tuple(notes))


def _read(paths: Sequence[str], columns: Columns) -> Examples:
    return joined([read_examples(table, columns) for table in open_tables(paths)])


def joined(parts: Sequence[Examples]) -> Examples:
    """Examples of several tables as one list."""
    if len(parts) == 1:
        return parts[0]
    paired, labelled = parts[0].pairs is not None, parts[0].labels is not None
    return Examples(
        ", ".join(part.name for part in parts),
        [text for part in parts for text in part.texts],
        [pair for part in parts for pair in part.pairs or ()] if paired else None,
        [label for part in parts for label in part.labels or ()] if labelled else None,
        [line for part in parts for line in part.lines],
        tuple(note for part in parts for note in part.notes),
    )


def _leaks(train: Examples, validation: Examples | None, test: Examples | None, labels: Labels) -> Iterator[str]:
    """What a comparison of the parts warns of; each part is spoken of once."""
    told: list[str] = []
    for other in (validation, test):
        told += compare_tables(train, other, labels).warnings
    yield from dict.fromkeys(told)


def _fingerprint(examples: Examples) -> str:
    digest = hashlib.sha256()
    for parts, label in zip(examples.inputs(), examples.labels or (), strict=True):
        digest.update("\x1f".join((*parts, label)).encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()[:16]


def check_same(recorded: TableConfig, found: TableConfig) -> None:
    """Refuse to resume a run whose examples have changed."""
    if recorded.fingerprint == found.fingerprint:
        return
    before, now = recorded.fingerprint.split(";"), found.fingerprint.split(";")
    parts = (recorded.train, recorded.validation or recorded.train, recorded.test or recorded.train)
    changed = next((n for n, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), 2)
    counts = f": {recorded.rows} rows to learn from then, {found.rows} now" if changed == 0 else ""
    raise DataError(
        f"the examples in {', '.join(parts[changed])} have changed since this run began{counts}",
        advice="put the old table back, or train a new run",
    )
