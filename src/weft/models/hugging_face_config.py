"""The settings of a downloaded config.json, each one checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from weft.errors import DataError, UnsupportedError

T = TypeVar("T")
FIRST_ALLOWED = object()  # marks that no default was given


class HuggingFaceConfig:
    """The settings of a downloaded config.json: plain values, each one checked when it is read."""

    def __init__(self, values: Mapping[str, Any], where: str = "config.json") -> None:
        self.values, self.where = values, where

    def __repr__(self) -> str:
        return f"HuggingFaceConfig({self.where!r})"

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number; without a default it must be there."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            raise DataError(f"{self.where}: {key} = {short(value)}", expected="a number")
        return float(value)

    def size(self, key: str, default: int | None = None) -> int:
        """A whole number above zero; without a default it must be there."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 2**31:
            raise DataError(f"{self.where}: {key} = {short(value)}", expected=f"a whole number from 1 to {2**31}")
        return value

    def sizes(self, key: str, default: None = None) -> tuple[int, ...]:
        """Several such numbers in a list, which must be there."""
        value = self._value(key, None)
        if not isinstance(value, list | tuple):
            raise DataError(f"{self.where}: {key} = {short(value)}", expected="a list of whole numbers")
        return tuple(HuggingFaceConfig({key: item}, self.where).size(key) for item in value)

    def side(self, key: str, default: int | None = None) -> int:
        """Rows and columns of a square: one such number, or twice the same."""
        value = self._value(key, default)
        if not isinstance(value, list | tuple):
            return self.size(key, default)
        sides = self.sizes(key)
        if len(sides) != 2 or sides[0] != sides[1]:
            raise UnsupportedError(f"{self.where}: {key} = {short(value)}", expected="as many rows as columns")
        return sides[0]

    def token(self, key: str, default: int | None = None) -> int:
        """The id of a token; without a default it must be there."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 2**31:
            raise DataError(f"{self.where}: {key} = {short(value)}", expected="the id of a token")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise DataError(f"{self.where}: {key} = {short(value)}", expected="true or false")
        return value

    def word(self, key: str, options: Mapping[str, T], default: str | None = None) -> T:
        """The option named by a word."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise DataError(f"{self.where}: {key} = {short(value)}", expected="text")
        if value not in options:
            raise UnsupportedError(f"{self.where}: {key} = {short(value)}", expected=f"one of {', '.join(options)}")
        return options[value]

    def table(self, key: str) -> Mapping[str, Any]:
        """A table of settings, empty if there is none."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise DataError(f"{self.where}: {key} = {short(value)}", expected="a table")
        return value or {}

    def architecture(self, options: Mapping[str, T], absent: T) -> T:
        """The option for the first class that the file names; `absent` where it names none."""
        given = self.values.get("architectures")
        names = given if isinstance(given, list) else [given]
        if given is None or not names:
            return absent
        return HuggingFaceConfig({"architectures": names[0]}, self.where).word("architectures", options)

    def must_be(self, key: str, *allowed: object, why: str, absent: object = FIRST_ALLOWED) -> None:
        """Refuse a value that is not allowed; a setting that is missing is `absent`, or else the first allowed
        value."""
        value = self.values.get(key, allowed[0] if absent is FIRST_ALLOWED else absent)
        if not any(value == option and type(value) is type(option) for option in allowed):
            raise UnsupportedError(f"{self.where}: {key} = {short(value)}: {why}")

    def _value(self, key: str, default: object) -> Any:
        value = self.values.get(key)
        value = default if value is None else value
        if value is None:
            raise DataError(f"{self.where} does not say {key}", expected="the settings of a whole model")
        return value


def short(value: object) -> str:
    """A value from a file, shortened for a message."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
