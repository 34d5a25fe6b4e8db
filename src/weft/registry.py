"""What can be picked by a word."""

from __future__ import annotations

from typing import ClassVar

from weft.errors import ConfigError, did_you_mean


class Registry(dict[str, type]):
    """The kinds of a choice; other spellings are understood, unknown ones are answered with a suggestion."""

    all: ClassVar[list[Registry]] = []  # of everything that can be registered

    def __init__(self, what: str) -> None:
        super().__init__()
        Registry.all.append(self)
        self.what = what
        self.aliases: dict[str, str] = {}

    def __missing__(self, kind: str) -> type:
        if kind in self.aliases:
            return self[self.aliases[kind]]
        raise ConfigError(f"unknown {self.what} kind {kind!r}", advice=did_you_mean(str(kind), [*self, *self.aliases]))

    def find(self, kind: object) -> type:
        """The class of a kind that came from a file and may be anything."""
        return self[kind] if isinstance(kind, str) else self.__missing__(str(kind))
