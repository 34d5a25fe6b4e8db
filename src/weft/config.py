"""Settings: a frozen dataclass that goes to and from a dict, TOML and `--set key=value`, and speaks up.

    class LayerConfig(Config):
        width: Size
        dropout: Share = 0.0

    LayerConfig(widht=8)          # ConfigError: unknown field 'widht' / did you mean 'width'?

A `Choice` is a setting that is picked by its `kind`: `registry` lists what can be picked, and a new entry
puts itself there by being defined.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import tomllib
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from weft.errors import ConfigError, did_you_mean
from weft.registry import Registry
from weft.toml import toml_lines


@dataclass(frozen=True)
class Between:
    """Bounds of a number, both included unless the low one is `open`."""

    low: float
    high: float
    open: bool = False

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high and not (self.open and value == self.low)

    def __str__(self) -> str:
        if self.high < math.inf:
            return f"from {self.low:g} to {self.high:g}"
        return f"above {self.low:g}" if self.open else f"at least {self.low:g}"


# The upper bound of a size keeps a stranger's file from asking for absurd memory.
Size = Annotated[int, Between(1, 2**31)]
Count = Annotated[int, Between(0, 2**62)]
Share = Annotated[float, Between(0, 1)]
Amount = Annotated[float, Between(0, math.inf)]
Positive = Annotated[float, Between(0, math.inf, open=True)]


_HINTS: dict[type, dict[str, Any]] = {}


def _hints(cls: type) -> dict[str, Any]:
    """The fields of a config class with their types, looked up once."""
    if cls not in _HINTS:
        hints = get_type_hints(cls, include_extras=True)
        _HINTS[cls] = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    return _HINTS[cls]


def _default(cls: type, name: str) -> Any:
    field = {f.name: f for f in dataclasses.fields(cls)}[name]
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _unknown(name: str, hints: Mapping[str, Any]) -> ConfigError:
    if name == "kind":
        return ConfigError("'kind' is no field: it says which class", advice="use .from_config({'kind': …, …})")
    return ConfigError(f"unknown field {name!r}", advice=did_you_mean(name, hints))


def _refusing_unknown_fields(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def speaking(self: Any, **given: Any) -> None:
        hints = _hints(type(self))
        for name in given:
            if name not in hints:
                raise _unknown(name, hints)
        for name in hints:
            if name not in given and _default(type(self), name) is MISSING:
                raise ConfigError(f"{type(self).__name__} needs {name!r}")
        init(self, **given)

    return speaking


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Config:
    """Base of all settings. Subclasses are frozen, keyword-only dataclasses and are checked when made."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True, kw_only=True, repr=False)(cls)
        cls.__init__ = _refusing_unknown_fields(cls.__init__)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        for name, hint in _hints(type(self)).items():
            object.__setattr__(self, name, fit(getattr(self, name), hint, name))
        self.check()

    def check(self) -> None:
        """Raise `ConfigError` for values that are right alone and wrong together."""

    def resolve(self) -> Self:
        """The same settings with every open size (`None`) filled in."""
        return self

    def changed(self) -> dict[str, Any]:
        """The fields that are not as they are by default."""
        return {name: value for name, value in self._fields().items() if value != _default(type(self), name)}

    def __repr__(self) -> str:
        shown = [f"{k}={v!r}" for k, v in self.changed().items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _hints(type(self))}

    # -- dict and TOML ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values only: ready for JSON."""
        return {name: _plain(value) for name, value in self._fields().items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; unknown, missing and ill-typed fields are named."""
        if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
            raise ConfigError(f"{cls.__name__} from {data!r}", expected="fields by name")
        return cls(**_fitted(cls, data))

    def to_toml(self) -> str:
        """TOML text. TOML has no word for `None`: it is "none", and left out where it is the default."""
        return "\n".join(toml_lines(_speak_none(self))) + "\n"

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """The inverse of `to_toml`."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not valid TOML: {error}") from None
        return cls.from_dict(data)

    # -- the command line ---------------------------------------------------------------------

    def override(self, changes: Mapping[str, Any]) -> Self:
        """A copy with dotted keys set, as `--set attention.heads=8` gives them (text is parsed)."""
        here: dict[str, Any] = {}
        below: dict[str, dict[str, Any]] = {}
        for key, value in changes.items():
            head, _, rest = key.partition(".")
            if rest:
                below.setdefault(head, {})[rest] = value
            else:
                here[head] = value
        base = self._switch(here)
        hints = _hints(type(base))
        values = base._fields()
        for name in [*here, *below]:
            if name not in hints:
                raise _unknown(name, hints)
        for name, value in here.items():
            values[name] = fit(_parse(value, hints[name]) if isinstance(value, str) else value, hints[name], name)
        for name, deeper in below.items():
            if values[name] is None and "kind" in deeper:
                values[name] = fit(deeper["kind"], hints[name], name)
            if not isinstance(values[name], Config):
                raise ConfigError(f"{name}.{next(iter(deeper))}: {name!r} has no fields of its own")
            values[name] = within(name, functools.partial(values[name].override, deeper))
        return type(base)(**values)

    def _switch(self, here: dict[str, Any]) -> Self:
        """Hook for `Choice`: take `kind` out of `here` and become that kind."""
        return self


class Choice(Config):
    """A setting picked by its kind.

    class Shape(Choice): ...                       # opens the registry
    class Circle(Shape, kind="circle"):            # an entry
        radius: float = 1.0
    Shape.from_config("circle"), Shape.from_config({"kind": "circle", "radius": 2.0})

    A registry may have an entry for `several` kinds, which has them in its field `of`: a list stands for that.
    """

    kind: ClassVar[str]
    registry: ClassVar[Registry]
    several: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str = "", aliases: Sequence[str] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        if Choice in cls.__bases__:
            cls.registry = Registry(cls.__name__.removesuffix("Config").lower())
        if kind:
            cls.kind = kind
            cls.registry[kind] = cls
            cls.registry.aliases.update(dict.fromkeys(aliases, kind))

    @classmethod
    def from_config(cls, what: str | Mapping[str, Any] | Sequence[Any] | Self) -> Self:
        """An entry from its kind, from a dict with its `kind`, from a list of them, or as it is."""
        if isinstance(what, cls):
            return what
        what = cls._several(what)
        if not isinstance(what, (str, Mapping)):
            raise ConfigError(f"{what!r}", expected=f"a kind ({', '.join(cls.registry)}) or a table with its fields")
        fields: dict[str, Any] = {"kind": what} if isinstance(what, str) else dict(what)
        several = cls._several(fields.get("kind"))
        fields |= several if isinstance(several, dict) else {}
        if "kind" not in fields:
            raise ConfigError("no 'kind' given", expected=f"one of {', '.join(cls.registry)}")
        entry: type[Self] = cls.registry.find(fields.pop("kind"))
        if not issubclass(entry, cls):
            raise ConfigError(f"kind {entry.kind!r}", expected=f"kind {cls.kind!r}")
        return entry(**_fitted(entry, fields))

    @classmethod
    def _several(cls, what: Any) -> Any:
        """A list of kinds, or their names with commas, as the table of the entry that stands for it."""
        if not cls.several or not isinstance(what, (str, list, tuple)) or (isinstance(what, str) and "," not in what):
            return what
        return {"kind": cls.several, "of": [w.strip() for w in what.split(",")] if isinstance(what, str) else what}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls.from_config(data)

    def check(self) -> None:
        if not hasattr(type(self), "kind"):
            raise ConfigError(
                f"{type(self).__name__} is a registry", expected=f"one of {', '.join(self.registry)} by .from_config(…)"
            )

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **super().to_dict()}

    def _switch(self, here: dict[str, Any]) -> Self:
        chosen = self._several(here.pop("kind", self.kind))
        if isinstance(chosen, dict):
            chosen, here["of"] = chosen["kind"], chosen["of"]
        entry = self.registry.find(chosen)
        shared = {k: v for k, v in self.changed().items() if k in _hints(entry)}
        return self if entry is type(self) else entry(**shared)


C = TypeVar("C")


def within(name: str, build: Callable[[], C]) -> C:
    """Put the name of the enclosing field before the message of a nested error."""
    try:
        return build()
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Config):
        return value.to_dict()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def fit(value: Any, hint: Any, name: str) -> Any:
    """The value as its type hint wants it (an int for a float, a dict for a config), or an error."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, bounds = get_args(hint)
        value = fit(value, inner, name)
        if not bounds.holds(value):
            raise ConfigError(f"{name} = {value!r}", expected=f"a number {bounds}")
        return value
    if origin in (Union, types.UnionType):
        return _fit_union(value, get_args(hint), name)
    if origin is Literal:
        if not any(value == option and type(value) is type(option) for option in get_args(hint)):
            options = [str(option) for option in get_args(hint)]
            raise ConfigError(f"{name} = {value!r}", expected=f"one of {', '.join(options)}")
        return value
    if origin is tuple:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ConfigError(f"{name} = {value!r}", expected="a list")
        items = get_args(hint)
        items = items[:1] * len(value) if items[-1] is ... else items
        if len(value) != len(items):
            raise ConfigError(f"{name} = {value!r}", expected=f"a list of {len(items)}")
        return tuple(fit(v, item, f"{name}[{i}]") for i, (v, item) in enumerate(zip(value, items, strict=True)))
    if isinstance(hint, type) and issubclass(hint, Choice) and isinstance(value, (str, Mapping, list, tuple)):
        return within(name, lambda: hint.from_config(value))
    if isinstance(hint, type) and issubclass(hint, Config) and isinstance(value, Mapping):
        return within(name, lambda: hint.from_dict(value))
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000:
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ConfigError(f"{name} = {value!r}", expected=_TYPE_WORDS.get(hint, hint.__name__))
    return value


def _fitted(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Values from a file as the fields want them, such as tuples for lists; what is unknown is left to be refused."""
    hints = _hints(cls)
    return {name: fit(value, hints[name], name) if name in hints else value for name, value in data.items()}


_TYPE_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _fit_union(value: Any, options: tuple[Any, ...], name: str) -> Any:
    if type(None) in options and (value is None or (value == "none" and str not in options)):
        return None
    errors = []
    for option in options:
        if option is not type(None):
            try:
                return fit(value, option, name)
            except ConfigError as error:
                errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    expected = [str(error).partition("expected ")[2].split("\n")[0] for error in errors]
    raise ConfigError(f"{name} = {value!r}", expected=" or ".join(word for word in expected if word))


def _parse(text: str, hint: Any) -> Any:
    """Text from the command line as a value that `fit` can judge; lists and tables may be spelled as in TOML."""
    origin = get_origin(hint)
    if text.startswith(("[", "{")):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            pass
    if origin is Annotated:
        return _parse(text, get_args(hint)[0])
    if origin in (Union, types.UnionType):
        return _parse_union(text, get_args(hint))
    if origin is tuple:
        items = get_args(hint)
        if not text.strip():
            return []
        return [
            _parse(item.strip(), items[min(i, len(items) - 1)] if items[-1] is not ... else items[0])
            for i, item in enumerate(text.split(","))
        ]
    if origin is Literal:
        return next((option for option in get_args(hint) if str(option) == text), text)
    if hint is bool:
        return {"true": True, "yes": True, "false": False, "no": False}.get(text.lower(), text)
    if hint in (int, float):
        try:
            return hint(text)
        except ValueError:
            return text
    return text


def _parse_union(text: str, options: tuple[Any, ...]) -> Any:
    """The first reading of the text that one of the options accepts."""
    if type(None) in options and text.lower() == "none":
        return None
    readings = [(_parse(text, option), option) for option in options if option is not type(None)]
    for value, option in readings:
        try:
            fit(value, option, "")
        except ConfigError:
            continue
        return value
    return readings[0][0]


def _speak_none(config: Config) -> dict[str, Any]:
    """`to_dict`, with "none" where `None` is not the default."""
    table = config.to_dict()
    for name, value in config._fields().items():
        if isinstance(value, Config):
            table[name] = _speak_none(value)
        elif value is None and _default(type(config), name) is not None:
            table[name] = "none"
    return table
