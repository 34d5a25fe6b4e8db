"""The union of several patterns: a query sees what it would see in any of them, in one softmax.

`local` with `global` is Longformer's attention (Beltagy et al. 2020); with a few random keys it would be BigBird's.
"""

from __future__ import annotations

from dataclasses import fields
from typing import ClassVar

from weft.blocks.attention.base import AttentionConfig
from weft.blocks.attention.global_tokens import GlobalConfig
from weft.blocks.attention.local import LocalConfig
from weft.blocks.attention.pattern import Pattern, PatternConfig, Union
from weft.errors import ConfigError


class UnionConfig(PatternConfig, kind="union"):
    """What any of the kinds in `of` sees; heads and temperature are the union's own fields."""

    description = "The union of several patterns: a query sees what it would see in any of them, in one softmax"
    cost = "the pairs of all its kinds, each pair once"
    small_fields: ClassVar = {"of": (LocalConfig(window=4), GlobalConfig(tokens=2))}

    of: tuple[AttentionConfig, ...] = (LocalConfig(), GlobalConfig())

    def check(self) -> None:
        super().check()
        if not self.of:
            raise ConfigError("a union of no kinds", expected="at least one, such as local, global")
        for member in self.of:
            if not isinstance(member, PatternConfig):
                raise ConfigError(f"kind {member.kind!r} in a union", expected="kinds that are patterns of places")
            own = [name for name in member.changed() if name in {field.name for field in fields(PatternConfig)}]
            if own:
                given = f"{', '.join(own)} of a kind in a union"
                raise ConfigError(given, expected="them as the union's own: all kinds in it share one softmax")

    @property
    def members(self) -> tuple[AttentionConfig, ...]:
        return self.of

    @property
    def learned(self) -> int:
        return sum(member.learned for member in self.of if isinstance(member, PatternConfig))

    def pattern(self) -> Pattern:
        return Union(tuple(member.pattern() for member in self.of if isinstance(member, PatternConfig)))
