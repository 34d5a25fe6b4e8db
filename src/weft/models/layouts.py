"""How other programs write models down: their settings ⇄ our config, their tensors ⇄ ours.

A layout is one small class beside its family (`gpt_layouts.py`); being defined puts it into `Layout.menu`
under the name that Hugging Face calls `model_type`. What a layout cannot say exactly, it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from weft.errors import DataError, UnsupportedError, did_you_mean
from weft.models.base import ModelConfig
from weft.weights import WeightTable

T = TypeVar("T")
OTHER = "it is of another family"
CAUSAL = "AutoModelForCausalLM"  # opens models that write
TEXT_TO_TEXT = "AutoModelForSeq2SeqLM"  # opens models that read one text and write another


class Foreign:
    """The settings of a stranger's config.json: plain values, each one checked when it is asked for."""

    def __init__(self, values: Mapping[str, Any], where: str = "config.json") -> None:
        self.values, self.where = values, where

    def __repr__(self) -> str:
        return f"Foreign({self.where!r})"

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number; without a default it must be there."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            raise DataError(f"{self.where}: {key} = {_short(value)}", expected="a number")
        return float(value)

    def size(self, key: str, default: int | None = None) -> int:
        """A whole number above zero; without a default it must be there."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 2**31:
            raise DataError(f"{self.where}: {key} = {_short(value)}", expected=f"a whole number from 1 to {2**31}")
        return value

    def sizes(self, key: str) -> tuple[int, ...]:
        """Several such numbers in a list."""
        value = self._value(key, None)
        if not isinstance(value, list | tuple):
            raise DataError(f"{self.where}: {key} = {_short(value)}", expected="a list of whole numbers")
        return tuple(Foreign({key: item}, self.where).size(key) for item in value)

    def side(self, key: str, default: int | None = None) -> int:
        """Rows and columns of a square: one such number, or twice the same."""
        value = self._value(key, default)
        if not isinstance(value, list | tuple):
            return self.size(key, default)
        sides = self.sizes(key)
        if len(sides) != 2 or sides[0] != sides[1]:
            raise UnsupportedError(f"{self.where}: {key} = {_short(value)}", expected="as many rows as columns")
        return sides[0]

    def token(self, key: str, default: int | None = None) -> int:
        """The id of a token; without a default it must be there."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 2**31:
            raise DataError(f"{self.where}: {key} = {_short(value)}", expected="the id of a token")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise DataError(f"{self.where}: {key} = {_short(value)}", expected="true or false")
        return value

    def word(self, key: str, options: Mapping[str, T], default: str | None = None) -> T:
        """What the options say for the word that stands there."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise DataError(f"{self.where}: {key} = {_short(value)}", expected="text")
        if value not in options:
            raise UnsupportedError(f"{self.where}: {key} = {_short(value)}", expected=f"one of {', '.join(options)}")
        return options[value]

    def table(self, key: str) -> Mapping[str, Any]:
        """A table of settings, empty if there is none."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise DataError(f"{self.where}: {key} = {_short(value)}", expected="a table")
        return value or {}

    def must_be(self, key: str, *allowed: object, why: str) -> None:
        """Refuse a setting that we could not honour; absent is the first of the allowed."""
        value = self.values.get(key, allowed[0])
        if not any(value == option and type(value) is type(option) for option in allowed):
            raise UnsupportedError(f"{self.where}: {key} = {_short(value)}: {why}")

    def _value(self, key: str, default: object) -> Any:
        value = self.values.get(key)
        value = default if value is None else value
        if value is None:
            raise DataError(f"{self.where} does not say {key}", expected="the settings of a whole model")
        return value


class Layout:
    """One foreign way to write a model down.

    name          what their config.json calls it (`model_type`)
    architecture  their class, which reads it (the usual one, if a head decides: `architecture_of`)
    prefix        what stands before the tensors of the model without its head
    """

    name: ClassVar[str]
    architecture: ClassVar[str]
    prefix: ClassVar[str]
    menu: ClassVar[dict[str, Layout]] = {}
    nameless: ClassVar[list[Layout]] = []  # of files that have no `model_type`, and say in another way what they are

    def __init_subclass__(cls, name: str = "", architecture: str = "", prefix: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            cls.name, cls.architecture, cls.prefix = name, architecture, prefix
            Layout.menu[name] = cls()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def is_meant(self, theirs: Foreign) -> bool:
        """Whether settings without a `model_type` are of this layout."""
        return False

    def read_config(self, theirs: Foreign) -> ModelConfig:
        """Our config of the model that their settings describe; refuses what we cannot compute."""
        raise UnsupportedError(f"models of the kind {self.name!r} cannot be read")

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> ModelConfig:
        """The config, where only the names of the tensors tell which heads there are; they cost a look at the file."""
        return config

    def architecture_of(self, config: ModelConfig) -> str:
        """Their class for this config."""
        return self.architecture

    def auto_class(self, config: ModelConfig) -> str:
        """Which of transformers' `Auto…` classes opens it whole."""
        return CAUSAL

    def why_not(self, config: ModelConfig) -> str:
        """Why this layout cannot say what the config says; empty if it can."""
        return OTHER

    def advice(self, config: ModelConfig) -> str:
        """What to do about a model of its family that it cannot say."""
        return ""

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        """Their settings for a config that the layout can say."""
        return {}

    def losses(self, config: ModelConfig) -> list[str]:
        """What is left out although it can be said here: it changes training alone, no result."""
        return []

    def table(self, config: ModelConfig, *, prefix: str) -> WeightTable:
        """Their tensors and ours."""
        return WeightTable()

    def write_config(self, config: ModelConfig) -> dict[str, Any]:
        """Their config.json; `UnsupportedError` with the reason if the layout has no word for something."""
        if reason := self.why_not(config):
            raise UnsupportedError(f"the layout {self.name!r} cannot say this model: {reason}")
        about = {"architectures": [self.architecture_of(config)], "model_type": self.name, "dtype": "float32"}
        return about | self.settings(config)

    def table_for(self, config: ModelConfig, names: Iterable[str]) -> WeightTable:
        """The table for a file with these tensors: of the whole model, or of the model without its head."""
        whole = any(name.startswith(self.prefix) for name in names)
        return self.table(config, prefix=self.prefix if whole else "")


def layout_of(theirs: Foreign) -> Layout:
    """The layout that their `model_type` names, or that knows the `architecture` of timm's.

    What asks for code of its own, or is packed, is refused.
    """
    theirs.must_be("auto_map", None, {}, why="it asks for code of its own to be run, and Weft runs no such code")
    theirs.must_be("quantization_config", None, {}, why="its weights are packed into few bits, which is not read")
    name = theirs.values.get("model_type")
    if name is None and "architecture" in theirs.values:
        return _by_architecture(theirs)
    if not isinstance(name, str) or name not in Layout.menu:
        raise UnsupportedError(
            f"{theirs.where}: model_type = {_short(name)}",
            expected=f"one of {', '.join(Layout.menu)}",
            advice=hint if "did you" in (hint := did_you_mean(str(name)[:60], Layout.menu)) else "",
        )
    return Layout.menu[name]


def is_foreign(values: object) -> bool:
    """Whether the contents of a config.json are settings from elsewhere, and not those of a run."""
    return isinstance(values, dict) and "format" not in values and ("model_type" in values or "architecture" in values)


def _by_architecture(theirs: Foreign) -> Layout:
    """The layout that knows what timm calls an architecture."""
    found = next((layout for layout in Layout.nameless if layout.is_meant(theirs)), None)
    if found is None:
        families = ", ".join(layout.architecture for layout in Layout.nameless)
        raise UnsupportedError(
            f"{theirs.where}: architecture = {_short(theirs.values['architecture'])}",
            expected=f"one that Weft can read from timm: {families}",
        )
    return found


def layout_for(config: ModelConfig) -> Layout:
    """The first layout that can say this model; if none can, the error says why for each."""
    reasons = {name: layout.why_not(config) for name, layout in Layout.menu.items()}
    for name, reason in reasons.items():
        if not reason:
            return Layout.menu[name]
    near = {name: reason for name, reason in reasons.items() if reason != OTHER}
    raise UnsupportedError(
        "no layout of Hugging Face can say this model",
        expected="; ".join(f"{name}: {reason}" for name, reason in near.items())
        or f"a family that it has a class for, not {config.kind}: {', '.join(Layout.menu)}",
        advice=next((advice for name in near if (advice := Layout.menu[name].advice(config))), ""),
    )


def _short(value: object) -> str:
    """A stranger's value on one line of bearable length."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
