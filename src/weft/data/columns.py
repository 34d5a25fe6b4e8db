"""Which columns hold the text, its partner and the label: as named, else by usual names, else by content."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.data.column_names import LABELS, PAIRS, TEXTS, plain
from weft.data.tables import Table, is_number
from weft.errors import ConfigError, DataError

DISTINCT = 5000  # different values of a column that are remembered


@dataclass(frozen=True)
class Columns:
    """The names of the columns that matter, and in one sentence why these."""

    text: str
    pair: str | None = None
    label: str | None = None
    reason: str = ""


@dataclass
class Profile:
    """What a column is like."""

    name: str
    filled: int = 0
    words: int = 0
    characters: int = 0
    numbers: int = 0
    fractions: int = 0
    values: set[int] = field(default_factory=set)  # hashes; no more than DISTINCT of them

    def add(self, cell: str) -> None:
        cell = cell.strip()
        if not cell:
            return
        self.filled += 1
        self.characters += len(cell)
        self.words += cell.count(" ") + 1
        if is_number(cell):
            self.numbers += 1
            self.fractions += "." in cell
        if len(self.values) < DISTINCT:
            self.values.add(hash(cell))

    @property
    def numeric(self) -> bool:
        return self.filled > 0 and self.numbers == self.filled

    @property
    def length(self) -> float:
        return self.characters / max(self.filled, 1)

    @property
    def repeats(self) -> bool:
        """Few values that come again and again."""
        return 2 <= len(self.values) <= min(max(self.filled // 2, 2), 1000) and self.length <= 60

    @property
    def free_text(self) -> bool:
        return self.filled > 0 and not self.numeric and len(self.values) > 1


def find_columns(
    table: Table, text: str | None = None, pair: str | None = None, label: str | None = None, *, labelled: bool = True
) -> Columns:
    """Choose the columns; `labelled=False` for texts that are to be judged, not learned from."""
    named = [name for name in (text, pair, label) if name is not None]
    for name in named:
        table.place(name)
    if len(set(named)) < len(named):
        raise ConfigError(f"the columns named are {', '.join(map(repr, named))}", expected="a different one for each")
    if pair is not None and text is None:
        raise ConfigError(f"pair = {pair!r} without a text", advice="name both columns of the pair")
    free = [name for name in table.columns if name not in named]
    why = ["you named " + " and ".join(map(repr, named))] if named else []
    profiles: list[Profile] = []
    if labelled and label is None:
        label = _by_name(free, LABELS) if not _only_texts(free, text) else None
        if label is not None:
            why.append(f"{label!r} is a usual name of a label{_others(free, label)}")
        else:
            profiles = profiles_of(table)
            label = _label_by_content(table, [p for p in profiles if p.name in free])
            why.append(
                f"{label!r} repeats a few values" if _of(profiles, label).repeats else f"{label!r} holds numbers"
            )
        free = [name for name in free if name != label]
    if text is None:
        text, pair, because = _texts_by_name(free)
        if text is None:
            profiles = profiles or profiles_of(table)
            text, pair, because = _texts_by_content(table, [p for p in profiles if p.name in free])
        why.append(because)
    return Columns(text, pair, label if labelled else None, _sentence(text, pair, label if labelled else None, why))


def _sentence(text: str, pair: str | None, label: str | None, why: list[str]) -> str:
    learned = f" and the label {label!r}" if label else ""
    texts = f"the pair {text!r}, {pair!r}" if pair else f"the text {text!r}"
    return f"columns: {texts}{learned}, because {'; '.join(why)}"


def _by_name(columns: list[str], usual: tuple[str, ...]) -> str | None:
    known = {plain(name): name for name in reversed(columns)}
    return next((known[plain(name)] for name in usual if plain(name) in known), None)


def _others(columns: list[str], chosen: str) -> str:
    """Further columns with the name of a label: the user may have meant one of them."""
    wanted = {plain(name) for name in LABELS}
    others = [name for name in columns if name != chosen and plain(name) in wanted]
    return f" (so is {', '.join(map(repr, others))})" if others else ""


def _only_texts(columns: list[str], text: str | None) -> bool:
    """Whether taking a label by its name would leave nothing to read."""
    return text is None and len(columns) == 1


def _texts_by_name(columns: list[str]) -> tuple[str | None, str | None, str]:
    known = {plain(name): name for name in reversed(columns)}
    for first, second in PAIRS:
        if plain(first) in known and plain(second) in known:
            one, two = known[plain(first)], known[plain(second)]
            return one, two, f"{one!r} and {two!r} are usual names of a pair of texts"
    found = _by_name(columns, TEXTS)
    return found, None, f"{found!r} is a usual name of a text"


# -- by content -------------------------------------------------------------------------------


def profiles_of(table: Table) -> list[Profile]:
    """What each column is like, in order."""
    profiles = [Profile(name) for name in table.columns]
    for row in table.rows():
        for profile, cell in zip(profiles, row.cells, strict=True):
            profile.add(cell)
    return profiles


def _of(profiles: list[Profile], name: str) -> Profile:
    return next(profile for profile in profiles if profile.name == name)


def _label_by_content(table: Table, profiles: list[Profile]) -> str:
    """The column with the fewest values that repeat; else one of fractional numbers. Never the longest texts."""
    if len(table.columns) == 1:
        raise DataError(f"{table.name} has one column, {table.columns[0]!r}", expected="texts and their labels")
    longest = max((p for p in profiles if p.free_text), key=lambda p: p.length, default=None)
    candidates = [p for p in profiles if p.repeats and p is not longest]
    if candidates:
        return min(reversed(candidates), key=lambda p: len(p.values)).name
    numeric = [p for p in profiles if p.numeric and p.fractions and len(p.values) > 1]
    if numeric:
        return numeric[-1].name
    single = next((p.name for p in profiles if p.filled and len(p.values) == 1), None)
    why = f"; {single!r} holds one value only" if single else ""
    given = f"no column of {table.name} looks like a label: no values repeat{why}"
    raise DataError(given, advice=f"name it with --label; the columns are {_list(table)}")


def _texts_by_content(table: Table, profiles: list[Profile]) -> tuple[str, str | None, str]:
    texts = sorted((p for p in profiles if p.free_text), key=lambda p: -p.length)
    if not texts:
        given = f"no column of {table.name} looks like text"
        raise DataError(given, advice=f"name it with --text; the columns are {_list(table)}")
    alike = [p for p in texts[:2] if p.length >= 0.5 * texts[0].length and (not p.repeats or len(p.values) > 100)]
    if len(alike) == 2:
        one, two = sorted(alike, key=lambda p: table.columns.index(p.name))
        return one.name, two.name, f"{one.name!r} and {two.name!r} hold texts of similar length"
    return texts[0].name, None, f"{texts[0].name!r} holds the longest texts"


def _list(table: Table) -> str:
    shown = ", ".join(map(repr, table.columns[:12]))
    return shown + (", …" if len(table.columns) > 12 else "")
