"""Field tables: the settings of another program's file ⇄ the fields of our config, total and reversible.

    FieldTable(
        Field("n_embd", "width"),
        Field("activation_function", "feed_forward.activation", words={"gelu_new": "gelu-tanh"}, default="gelu_new"),
        Fixed("position.kind", "learned"),
        Only("add_cross_attention", False, why="a GPT has no encoder to attend to"),
        TrainingOnly("feed_forward.dropout"),
    )
    config = TABLE.read(their_settings, GPTConfig);   their_settings = TABLE.write(config)

A field of ours is named by its path: "width", "attention.heads", "position.kind". Total: a field that no row claims and
that is not what reading gives refuses the model, by its name; so does one whose row has no word for its value.
Reversible: writing is the same table backwards, apart from what a row lists as lost (`losses`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Literal, TypeVar

from weft.config import Choice, Config
from weft.errors import UnsupportedError
from weft.models.hugging_face_config import FIRST_ALLOWED, HuggingFaceConfig

ConfigT = TypeVar("ConfigT", bound=Config)
REQUIRED: Any = object()
How = Literal["size", "sizes", "side", "number", "token", "flag"]  # methods of HuggingFaceConfig


class FieldRow:
    """One row: which settings of theirs and which fields of ours it speaks for."""

    theirs: str | tuple[str, ...]
    ours: str | tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        theirs = getattr(self, "theirs", ())
        return (theirs,) if isinstance(theirs, str) else theirs

    @property
    def paths(self) -> tuple[str, ...]:
        ours = getattr(self, "ours", ())
        return (ours,) if isinstance(ours, str) else ours

    def read(self, theirs: HuggingFaceConfig, found: Mapping[str, Any]) -> Mapping[str, Any]:
        """Our fields by their paths; `found` is what the rows above gave. Refuses what we cannot compute."""
        return {}

    def write(self, config: Any) -> Mapping[str, Any]:
        """Their settings for a config against which there are no reasons."""
        return {}

    def reasons(self, config: Any) -> Iterator[str]:
        """Why the row has no word for what the config says."""
        return iter(())

    def losses(self, config: Any) -> Iterator[str]:
        """What is left out, and may be: it changes nothing that the model computes."""
        return iter(())


@dataclass(frozen=True)
class Field(FieldRow):
    """One setting of theirs is one field of ours.

    how      what theirs must be: a method of `HuggingFaceConfig`
    words    their word → our value, where they are called differently; the first word for a value is the one written
    default  what it is there when the file says nothing, in their words: a value, or computed from their other settings
    resolve  what our `None` stands for, computed from our config
    alike    several settings of theirs must all be the same; else the first that is there is read, and all are written
    """

    theirs: str | tuple[str, ...]
    ours: str
    how: How = "size"
    words: Mapping[Any, Any] | None = None
    default: Any = REQUIRED
    resolve: Callable[[Any], Any] | None = None
    alike: bool = False

    def read(self, theirs: HuggingFaceConfig, found: Mapping[str, Any]) -> Mapping[str, Any]:
        said = [key for key in self.keys if theirs.values.get(key) is not None]
        values = [self._value(theirs, key) for key in (self.keys if self.alike else (said or self.keys)[:1])]
        if any(value != values[0] for value in values):
            given = ", ".join(f"{key} = {value}" for key, value in zip(self.keys, values, strict=True))
            raise UnsupportedError(
                f"{theirs.where}: {given}", expected=f"equal ones: {self.ours} is one number in Weft"
            )
        return {self.ours: values[0]}

    def _value(self, theirs: HuggingFaceConfig, key: str) -> Any:
        default = self.default(theirs) if callable(self.default) else self.default
        if default is None and theirs.values.get(key) is None:
            return None
        if self.words is not None and self.how != "flag":
            return theirs.word(key, self.words, None if default is REQUIRED else default)
        value = getattr(theirs, self.how)(key, None if default is REQUIRED else default)
        return value if self.words is None else self.words[value]

    def write(self, config: Any) -> Mapping[str, Any]:
        value = at(config, self.ours)
        if value is None and self.resolve is not None:
            value = self.resolve(config)
        if self.words is not None:
            value = next(word for word, ours in self.words.items() if same(ours, value))
        return dict.fromkeys(self.keys, list(value) if isinstance(value, tuple) else value)

    def reasons(self, config: Any) -> Iterator[str]:
        value = at(config, self.ours)
        if self.words is not None and not any(same(value, ours) for ours in self.words.values()):
            known = " or ".join(dict.fromkeys(shown(ours) for ours in self.words.values()))
            yield f"{self.ours} is {known} there, not {shown(value)}"


class Fixed(FieldRow):
    """A field of ours that can be said in one way only: as the first of `values`, or as another that means the same.

    A value may be computed from the config. `unless`: nothing in the config reads the field, so it is listed as a loss.
    """

    def __init__(self, ours: str, *values: Any, why: str = "", unless: Callable[[Any], bool] | None = None) -> None:
        self.ours: str = ours
        self.values, self.why, self.unless = values, why, unless

    def read(self, theirs: HuggingFaceConfig, found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {self.ours: self.values[0]}

    def holds(self, config: Any) -> bool:
        given = at(config, self.ours)
        return given is MISSING or any(
            same(given, value(config) if callable(value) else value) for value in self.values
        )

    def reasons(self, config: Any) -> Iterator[str]:
        if not self.holds(config) and not (self.unless and self.unless(config)):
            yield self.why or self._why(at(config, self.ours))

    def losses(self, config: Any) -> Iterator[str]:
        if not self.holds(config) and self.unless and self.unless(config):
            yield f"{self.ours} = {shown(at(config, self.ours))} (nothing here reads it; {self._why(MISSING)})"

    def _why(self, given: Any) -> str:
        name, value = self.ours.removesuffix(".kind"), self.values[0]
        told = f", not {shown(given)}" if isinstance(value, str) and given is not MISSING else ""
        return f"{name} is {shown(value)} there{told}"


class Only(FieldRow):
    """A setting of theirs that must be one of `allowed`, as everything else would change what is computed.

    absent   what it is there when the file says nothing; else the first of the allowed
    written  whether it is written: as the first of the allowed, or as computed from our config
    """

    def __init__(
        self,
        theirs: str,
        *allowed: Any,
        why: str,
        absent: Any = FIRST_ALLOWED,
        written: bool | Callable[[Any], Any] = False,
    ) -> None:
        self.theirs: str = theirs
        self.allowed, self.why, self.absent, self.written = allowed, why, absent, written

    def read(self, theirs: HuggingFaceConfig, found: Mapping[str, Any]) -> Mapping[str, Any]:
        allowed = [value(theirs) if callable(value) else value for value in self.allowed]
        theirs.must_be(self.theirs, *allowed, why=self.why, absent=self.absent)
        return {}

    def write(self, config: Any) -> Mapping[str, Any]:
        if not self.written:
            return {}
        return {self.theirs: self.written(config) if callable(self.written) else self.allowed[0]}


@dataclass(frozen=True)
class Together(FieldRow):
    """Settings of theirs and fields of ours that only make sense together: a pair of functions, each other's inverse.

    `take` gives our fields by path, `give` their settings, `against` the reasons why there are none.
    """

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    take: Callable[[HuggingFaceConfig], Mapping[str, Any]]
    give: Callable[[Any], Mapping[str, Any]]
    against: Callable[[Any], Iterator[str]] | None = None

    def read(self, theirs: HuggingFaceConfig, found: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.take(theirs)

    def write(self, config: Any) -> Mapping[str, Any]:
        return self.give(config)

    def reasons(self, config: Any) -> Iterator[str]:
        return iter(()) if self.against is None else self.against(config)


@dataclass(frozen=True)
class TrainingOnly(FieldRow):
    """A share of our dropout that they have no setting for: it is 0 there, or that of our field `like`. A loss."""

    ours: str
    like: str = ""

    def read(self, theirs: HuggingFaceConfig, found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {self.ours: found[self.like] if self.like else 0.0}

    def losses(self, config: Any) -> Iterator[str]:
        value, there = at(config, self.ours), at(config, self.like) if self.like else 0.0
        if value is not MISSING and value != there:
            told = f"; there it is {self.like}'s {shown(there)}" if self.like else ""
            yield f"{self.ours} = {shown(value)} (used in training only{told})"


@dataclass(frozen=True)
class StartOnly(FieldRow):
    """A field of ours that only sets how weights are initialised."""

    ours: str
    value: Any

    def read(self, theirs: HuggingFaceConfig, found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {self.ours: self.value}


@dataclass(frozen=True)
class ByTensors(FieldRow):
    """A field of ours that follows from the tensors: from which there are, or from the order of their numbers."""

    ours: str
    value: Any
    why: str

    def read(self, theirs: HuggingFaceConfig, found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {self.ours: self.value}


class Unread(FieldRow):
    """Settings of theirs that change nothing that we compute. `written`: the values that are written nevertheless."""

    def __init__(self, *theirs: str, written: Any = MISSING) -> None:
        self.theirs, self.written = theirs, written

    def write(self, config: Any) -> Mapping[str, Any]:
        return {} if self.written is MISSING else dict.fromkeys(self.keys, self.written)


@dataclass(frozen=True)
class Relation(FieldRow):
    """Something that must hold between several fields of ours, which other rows claim."""

    holds: Callable[[Any], bool]
    why: str

    def reasons(self, config: Any) -> Iterator[str]:
        if not self.holds(config):
            yield self.why


class FieldTable:
    """The rows of one converter, in the order in which settings are written and reasons are listed."""

    def __init__(self, *rows: FieldRow) -> None:
        self.rows = rows
        self.claimed = _once(path for row in rows for path in row.paths)
        self.known = _once(key for row in rows for key in row.keys)

    def __repr__(self) -> str:
        return f"FieldTable({len(self.rows)} rows)"

    def read(self, theirs: HuggingFaceConfig, family: type[ConfigT]) -> ConfigT:
        """Our config of the model that their settings describe."""
        found: dict[str, Any] = {}
        for row in self.rows:
            found.update(row.read(theirs, found))
        return family.from_dict(_nested(found) | ({"kind": family.kind} if issubclass(family, Choice) else {}))

    def write(self, config: Any) -> dict[str, Any]:
        """Their settings for a config against which there are no reasons."""
        return {key: value for row in self.rows for key, value in row.write(config).items()}

    def reasons(self, config: Config) -> list[str]:
        """Every field that is in the way: no word for its value, or no row for the field."""
        wrong = self._wrong_kinds(config)
        found = [
            reason
            for row in self.rows
            if row.paths[:1] in [(f"{part}.kind",) for part in wrong] or not _any_under(row.paths, wrong)
            for reason in row.reasons(config)
        ]
        for path, value in flat(config).items():
            if path in self.claimed or _any_under((path,), wrong) or same(value, self._unsaid(config, path)):
                continue
            found.append(f"{path} = {shown(value)} has no word there")
        return list(dict.fromkeys(found))

    def losses(self, config: Config) -> list[str]:
        """What is left out, and may be."""
        return [loss for row in self.rows for loss in row.losses(config)]

    def _wrong_kinds(self, config: Config) -> list[str]:
        """Parts whose kind the table has no word for; their fields are not checked any further."""
        kinds = [row for row in self.rows if isinstance(row, Fixed) and row.ours.endswith(".kind")]
        return [row.ours.removesuffix(".kind") for row in kinds if not row.holds(config)]

    def _unsaid(self, config: Config, path: str) -> Any:
        """What reading gives for a field that no row claims: the default of its part, or of the whole part."""
        parent, _, name = path.rpartition(".")
        if parent and not any(claimed.startswith(parent + ".") for claimed in self.claimed):
            return at(self._unsaid(config, parent), name)
        return default_of(type(at(config, parent)), name)


def at(config: Any, path: str) -> Any:
    """The value of a field; `MISSING` if there is no such field, as in a part of another kind."""
    for name in path.split(".") if path else ():
        config = getattr(config, name, MISSING)
    return config


def flat(config: Config, before: str = "") -> dict[str, Any]:
    """All fields of a config and of its parts, by their paths."""
    found: dict[str, Any] = {}
    for entry in dataclasses.fields(config):  # type: ignore[arg-type]
        value, path = getattr(config, entry.name), before + entry.name
        if isinstance(value, Config):
            found |= {f"{path}.kind": value.kind} if isinstance(value, Choice) else {}
            found |= flat(value, path + ".")
        else:
            found[path] = value
    return found


def default_of(cls: type[Any], name: str) -> Any:
    """The default of a field of a config class; `MISSING` if there is none."""
    entry = {entry.name: entry for entry in dataclasses.fields(cls)}.get(name)
    if entry is None:  # the kind of a part, which has other fields in the table
        return MISSING
    return entry.default if entry.default_factory is MISSING else entry.default_factory()


def same(value: object, other: object) -> bool:
    """Equal and of the same type, unlike 1 and true."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def shown(value: object) -> str:
    """A value of ours as it is shown in messages."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """{"attention.heads": 4} as {"attention": {"heads": 4}}."""
    found: dict[str, Any] = {}
    for path, value in values.items():
        *parts, name = path.split(".")
        place = found
        for part in parts:
            place = place.setdefault(part, {})
        place[name] = value
    return found


def _once(names: Iterator[str]) -> frozenset[str]:
    found: set[str] = set()
    for name in names:
        if name in found:
            raise ValueError(f"two rows of a field table speak for {name!r}")
        found.add(name)
    return frozenset(found)


def _any_under(paths: tuple[str, ...], parts: list[str]) -> bool:
    return any(path.startswith(part + ".") for path in paths for part in parts)
