"""Which two columns of a table hold a text and what becomes of it: as named, else by names, else the first texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.data.column_names import LABELS, SIDES, plain
from weft.data.columns import profiles_of
from weft.data.tables import Table, head_of
from weft.errors import ConfigError, DataError

_TEXTS_TOO = {plain(name) for pair in SIDES for name in pair}  # `target` is a label in some tables, a text in others
LABELS_ONLY = frozenset(plain(name) for name in LABELS) - _TEXTS_TOO
SIDE = re.compile(r"\.([a-z]{2,3}|source|target)([-_][a-z]{2,4})?")  # a language, or src and tgt
TEXTS = {".txt", ".md", ".rst", ".log", ".tex", ".xml", ".htm", ".py"}  # which are none


@dataclass(frozen=True)
class Sides:
    """The names of the two columns, and in one sentence why these."""

    source: str
    target: str
    reason: str = ""


def find_sides(table: Table, source: str | None = None, target: str | None = None) -> Sides:
    """Choose the columns: those named; of two columns the first is the source, the second the target.

    Of more, those with usual names, else the first two that hold free text.
    """
    named = [name for name in (source, target) if name is not None]
    for name in named:
        table.place(name)
    if source is not None and source == target:
        raise ConfigError(f"{source!r} is named as the source and as the target", expected="a column for each")
    if len(table.columns) < 2:
        given = f"{table.name} has one column, {table.columns[0]!r}"
        raise DataError(given, expected="two: a text and what becomes of it", advice="or two files, line by line")
    why = "you named " + " and ".join(map(repr, named)) if named else ""
    if not named and len(table.columns) > 2:
        source, target = _by_name(table)
        why = f"{source!r} and {target!r} are usual names" if source else ""
    if source is None or target is None:
        free = _free(table, named)
        source = source if source is not None else free.pop(0)
        target = target if target is not None else free.pop(0)
        first = "these are the first two that hold texts" if len(table.columns) > 2 else "the first is the source"
        why = why or first
    return Sides(source, target, f"columns: the source {source!r} and the target {target!r}, because {why}")


def _by_name(table: Table) -> tuple[str, str] | tuple[None, None]:
    known = {plain(name): name for name in reversed(table.columns)}
    for first, second in SIDES:
        if plain(first) in known and plain(second) in known:
            return known[plain(first)], known[plain(second)]
    return None, None


def _free(table: Table, named: list[str]) -> list[str]:
    """The other columns, those with free text first: not ids, not values that repeat."""
    others = [name for name in table.columns if name not in named]
    if len(table.columns) == 2:
        return others
    texts = [p.name for p in profiles_of(table) if p.name in others and p.free_text and not p.repeats]
    return [*texts, *(name for name in others if name not in texts)]


def holds_pairs(table: Table) -> bool:
    """Whether there are two columns of free text, and none that could be a label."""
    profiles = profiles_of(table)
    texts = [p for p in profiles if p.free_text and not p.repeats]
    if len(texts) != 2 or any(plain(p.name) in LABELS_ONLY for p in texts):
        return False
    return not any(p.repeats or p.fractions for p in profiles if p not in texts)


def is_table_of_pairs(path: str) -> bool:
    """The same of the table in a file; one that cannot be read is none."""
    try:
        return holds_pairs(head_of(path))
    except DataError:  # which is told when it is read
        return False


def are_two_sides(paths: Sequence[str]) -> bool:
    """Whether these are two files such as train.en and train.de: the ends of their names say what each is."""
    ends = {Path(path.lower().removesuffix(".gz")).suffix for path in paths}
    return len(paths) == len(ends) == 2 and not ends & TEXTS and all(SIDE.fullmatch(end) for end in ends)
