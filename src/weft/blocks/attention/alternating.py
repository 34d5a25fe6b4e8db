"""Several kinds that alternate through the depth: `attention = ["softmax", "local"]`.

GPT-3 has dense and banded layers in turn (Brown et al. 2020): the banded ones are cheap, and in the dense ones every
position still sees every other.
"""

from __future__ import annotations

from typing import ClassVar, Never

from weft.blocks.attention.base import AttentionConfig
from weft.blocks.attention.heads import HeadsConfig
from weft.blocks.attention.local import LocalConfig
from weft.blocks.attention.softmax import SoftmaxConfig
from weft.config import Amount, Share
from weft.errors import ConfigError, UnsupportedError


class AlternatingConfig(HeadsConfig, kind="alternating"):
    """The kinds in `of`, each in its turn; fields of all kinds are given once, here."""

    description = 'Several kinds that alternate through the depth: `attention = ["softmax", "local"]`'
    cost = "in each layer that of its kind"
    small_fields: ClassVar = {"of": (SoftmaxConfig(), LocalConfig(window=4))}

    of: tuple[AttentionConfig, ...] = (SoftmaxConfig(), LocalConfig())
    beta: Amount | None = None
    dropout: Share = 0.0

    def check(self) -> None:
        super().check()
        if not self.of:
            raise ConfigError("no kinds to alternate", expected="at least one, such as softmax, local")
        for member in self.of:
            if isinstance(member, AlternatingConfig):
                raise ConfigError("alternating kinds inside alternating kinds", expected="one list of all")
            own = [name for name in member.changed() if name in HeadsConfig.__dataclass_fields__]
            if own:
                given = f"{', '.join(own)} of one kind among several"
                raise ConfigError(given, expected="them once for all, beside `of`: positions are made for one width")

    @property
    def members(self) -> tuple[AttentionConfig, ...]:
        return self.of

    @property
    def turns(self) -> int:
        return len(self.of)

    @property
    def writes(self) -> bool:
        return all(member.writes for member in self.of)

    @property
    def takes_bias(self) -> bool:
        return all(member.takes_bias for member in self.of)

    def seen(self, length: int, width: int, *, causal: bool) -> float:
        layers = [self.for_layer(number) for number in range(len(self.of))]
        return sum(layer.seen(length, width, causal=causal) for layer in layers) / len(layers)

    def for_layer(self, number: int) -> AttentionConfig:
        turn, place = divmod(number, len(self.of))
        chosen = self.of[place]
        shared = {name: value for name, value in self.changed().items() if name != "of" and hasattr(chosen, name)}
        layer = chosen.override(shared).for_layer(turn)
        seed = getattr(chosen, "seed", None)
        return layer if seed is None else layer.override({"seed": seed + number})  # another seed for each layer

    def build(self, width: int, *, qk: object = None) -> Never:
        kinds = ", ".join(member.kind for member in self.of)
        raise UnsupportedError(f"one module of the kinds {kinds}", expected="a layer's: for_layer(number).build(width)")
