"""Pairs of texts as the data of a run: read, split, and recorded so that a resume can check them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from weft.data.column_check import (
    KnownTexts,
    copied_warning,
    count_copied,
    count_uneven,
    duplicate_warning,
    uneven_warning,
)
from weft.data.parallel import Pairs, read_pairs, read_parallel
from weft.data.sides import Sides, find_sides
from weft.data.split import grouped_split
from weft.data.table_files import is_table
from weft.data.tables import Table, read_table
from weft.errors import ConfigError, DataError, did_you_mean
from weft.tasks.data_facts import parts_of, quarters
from weft.tasks.sources import DEMO, DataConfig
from weft.text.files import find_documents

MIN_PAIRS = 4  # pairs
MAX_VALIDATION_PAIRS = 1000  # pairs: enough to evaluate, whatever the size of the training part
EXPECTED_FILES = "two text files, the sources and line by line their targets; or tables"
HEADERLESS_COLUMNS = ("column 1", "column 2")  # of a table without a header


class PairConfig(DataConfig):
    """Which tables or parallel files, which columns, and how they are split.

    `source` and `target` are names of columns (None: found out, or two files that have none). `length` is how many
    tokens of a text are read. `vocabularies`: one for both sides, or one for each. At most `validation` of the pairs,
    and not more than a thousand, are for validation.
    """

    found: ClassVar[tuple[str, ...]] = (*DataConfig.found, "rows", "reason")
    columns: ClassVar[tuple[str, ...]] = ("source", "target")

    source: str | None = None
    target: str | None = None
    vocabularies: Literal["joint", "separate"] = "joint"
    rows: int = 0
    reason: str = ""


@dataclass(frozen=True)
class PairData:
    """The pairs of a run, split; `why` says which columns or files are the two sides."""

    config: PairConfig
    train: Pairs
    validation: Pairs
    test: Pairs | None
    why: str
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """In numbers, for a report."""
        sides = {"words of a source": self.train.sources, "words of a target": self.train.targets}
        return {
            "parts": {name: {"pairs": len(part)} for name, part in parts_of(self).items()},
            "lengths": {name: quarters(len(text.split()) for text in texts) for name, texts in sides.items()},
        }


# -- opening ----------------------------------------------------------------------------------


def open_pairs(
    paths: Sequence[str], sides: Sides | None = None, part: Literal["train", "test"] = "train", *, like: str = ""
) -> tuple[Pairs, Sides | None]:
    """The pairs at these paths and the columns they are in (None: files without columns); or the embedded ones.

    `sides` are the columns of the table `like`, which these must have too.
    """
    if list(paths) == [DEMO]:
        from weft.data.number_names import demo_pairs

        return Pairs.of(demo_pairs(part), f"{DEMO} ({part})"), None
    if not _are_tables(paths):
        source, target = paths
        return read_parallel(source, target), None
    tables = [read_table(path) for path in paths]
    sides = sides or find_sides(tables[0])
    return _joined(tables, sides, like or tables[0].name), sides


def _open_train(config: PairConfig) -> tuple[Pairs, Sides | None]:
    """The same for the pairs to learn from, whose columns the user may have named."""
    named = {f"--{name}": value for name in config.columns if (value := getattr(config, name)) is not None}
    if list(config.train) == [DEMO] or not _are_tables(config.train):
        for option, value in named.items():
            raise ConfigError(f"{option} {value} without a table", expected="columns of a .csv, .tsv or .jsonl file")
        return open_pairs(config.train)
    tables = [read_table(path) for path in config.train]
    sides = find_sides(tables[0], config.source, config.target)
    return _joined(tables, sides, tables[0].name), sides


def _joined(tables: Sequence[Table], sides: Sides, like: str) -> Pairs:
    return Pairs.joined([read_pairs(table, _same_sides(table, sides, like)) for table in tables])


def _are_tables(paths: Sequence[str]) -> bool:
    """Whether these are tables, or else two text files; anything else is refused."""
    for path in paths:
        if os.path.isdir(path):
            raise DataError(f"{path} is a folder", expected=EXPECTED_FILES)
        find_documents([path])  # missing, empty, binary
    tables = [path for path in paths if is_table(Path(path))]
    if len(tables) == len(paths):
        return True
    texts = [path for path in paths if path not in tables]
    if tables:
        given = f"{texts[0]} is a text and {tables[0]} is a table"
        raise DataError(given, expected=EXPECTED_FILES, advice="both sides in tables, or both in text files")
    if len(texts) != 2:
        shown = f"{texts[0]} alone" if len(texts) == 1 else f"{len(texts)} text files, {texts[0]} and others"
        raise DataError(shown, expected=EXPECTED_FILES)
    return False


def _same_sides(table: Table, sides: Sides, like: str) -> Sides:
    """The same columns in another table; where one has no header, the two columns in their order."""
    wanted = (sides.source, sides.target)
    if set(wanted) <= set(table.columns):
        return sides
    if len(table.columns) == 2 and HEADERLESS_COLUMNS in (wanted, table.columns):
        return Sides(*table.columns)
    missing = next(name for name in wanted if name not in table.columns)
    given = f"{table.name} has no column {missing!r}, which {like} has"
    raise DataError(given, advice=did_you_mean(missing, table.columns))


# -- reading ----------------------------------------------------------------------------------


def open_parts(config: PairConfig) -> tuple[dict[str, Pairs], Sides | None, str]:
    """The pairs by part (`train`, perhaps `validation` and `test`), their columns, and why these; nothing is split."""
    train, sides = _open_train(config)
    parts = {"train": train}
    tested = config.test or (config.train if list(config.train) == [DEMO] else ())
    if config.validation:
        parts["validation"] = open_pairs(config.validation, sides, like=config.train[0])[0]
    if tested:
        parts["test"] = open_pairs(tested, sides, "test", like=config.train[0])[0]
    return parts, sides, config.reason or (sides.reason if sides else _files(config.train))


def read_pair_data(config: PairConfig) -> PairData:
    """Read the pairs, find their columns, split off the validation part."""
    parts, sides, why = open_parts(config)
    everything, test = parts["train"], parts.get("test")
    if len(everything) < MIN_PAIRS:
        raise DataError(f"{len(everything)} pairs in {everything.name}", expected=f"at least {MIN_PAIRS} to learn from")
    if "validation" in parts:
        train, validation = everything, parts["validation"]
    elif config.validation_share > 0:
        train, validation = split_pairs(everything, config.validation_share)
    else:
        raise ConfigError("data.validation_share = 0", expected="more than 0, or other pairs with --validation")
    found: dict[str, object] = {
        "source": sides.source if sides else None,
        "target": sides.target if sides else None,
        "rows": len(train),
        "characters": train.characters,
        "bytes": sum(len(text.encode("utf-8", "surrogatepass")) for text in (*train.sources, *train.targets)),
        "fingerprint": ";".join(_fingerprint(part) for part in (everything, validation, test) if part is not None),
        "reason": why,
    }
    notes = [note for part in parts.values() for note in part.notes]
    warnings = dict.fromkeys([*notes, *_warnings(train, parts.get("validation"), test)])
    return PairData(config.override(found), train, validation, test, why, tuple(warnings))


def _files(paths: Sequence[str]) -> str:
    if list(paths) == [DEMO]:
        return "the embedded names of numbers, English to French"
    return f"the source is {paths[0]}, the target {paths[1]}, line by line"


def split_pairs(pairs: Pairs, share: float) -> tuple[Pairs, Pairs]:
    """A training and a validation part; pairs with the same source are never in both."""
    most = max(1, min(MAX_VALIDATION_PAIRS, int(share * len(pairs))))
    learn, judge = grouped_split(pairs.keys(), most, seed=0)
    return pairs.part(learn), pairs.part(judge)


def known_pairs(pairs: Pairs) -> KnownTexts:
    """The keys of sources, with those of whole pairs beside them."""
    return KnownTexts(pairs.keys(), pairs.pair_keys())


def pair_facts(pairs: Pairs, known: KnownTexts) -> dict[str, int]:
    """Numbers of pairs; `several_targets` are different sources that have several."""
    return {
        "pairs": len(pairs),
        "duplicates": known.duplicates,
        "several_targets": known.contradictions,
        "copied": count_copied(pairs.sources, pairs.targets),
        "uneven": count_uneven(pairs.sources, pairs.targets),
    }


def pair_warnings(facts: Mapping[str, int], name: str) -> Iterator[str]:
    """What is doubtful in one part by itself."""
    count = facts["pairs"]
    yield from duplicate_warning(facts["duplicates"], count, name, "pairs")
    yield from copied_warning(facts["copied"], count, name)
    yield from uneven_warning(facts["uneven"], count, name)


def _warnings(train: Pairs, *others: Pairs | None) -> Iterator[str]:
    """What will probably spoil the result."""
    learned = known_pairs(train)
    yield from pair_warnings(pair_facts(train, learned), train.name)
    for part in others:
        if part is not None:
            known = known_pairs(part)
            yield from pair_warnings(pair_facts(part, known), part.name)
            yield from known.known_in(learned).warning(f"the sources in {part.name}", len(part), train.name, "target")


def _fingerprint(pairs: Pairs) -> str:
    digest = hashlib.sha256()
    for both in zip(pairs.sources, pairs.targets, strict=True):
        digest.update("\x1f".join(both).encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()[:16]


def check_same(recorded: PairConfig, found: PairConfig) -> None:
    """Refuse to resume a run whose pairs have changed."""
    if recorded.fingerprint == found.fingerprint:
        return
    before, now = recorded.fingerprint.split(";"), found.fingerprint.split(";")
    parts = (recorded.train, recorded.validation or recorded.train, recorded.test or recorded.train)
    changed = next((n for n, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), 2)
    counts = f": {recorded.rows} pairs to learn from then, {found.rows} now" if changed == 0 else ""
    raise DataError(
        f"the pairs in {' and '.join(parts[changed])} have changed since this run began{counts}",
        advice="put the old files back, or train a new run",
    )
