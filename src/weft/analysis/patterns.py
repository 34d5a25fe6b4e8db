"""Who sees whom: the pattern of an attention kind, found by trying it.

One token is changed a little, and what is different afterwards has seen it. Nothing is told about a kind here: what is
drawn is what its module does, and a kind without a table of weights (channel, hierarchy) has a pattern too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool

from weft.blocks.attention import CAUSAL, EVERYTHING, AttentionConfig
from weft.errors import ConfigError, UnsupportedError

Seen = Bool[np.ndarray, "T S"]

HEAD_WIDTH = 16
STEP = 1e-5  # how far a token is moved: so little that hard attention keeps its choice
ROUNDING = 1e-13  # what float64 may differ by; a weight of 1e-8 still moves a result further
AT_ONCE = 32  # copies of the row, each with another token changed
ROUNDS = 4  # layers that are looked at for each kind that takes turns


@dataclass(frozen=True, eq=False)
class LayerPattern:
    """What one layer of an attention kind sees; a string says why there is nothing to see.

    asked      the kind that was asked for
    config     what stands in this layer, which differs where kinds or windows take turns
    layers     the numbers, from 1, of those that are like it; empty: all are
    encoder    (T, S) bool: whether the token of this row sees the token of that column
    decoder    the same where nobody may look ahead
    by_chance  whether other tokens and weights would give another pattern
    """

    asked: AttentionConfig
    config: AttentionConfig
    layers: tuple[int, ...]
    encoder: Seen | str
    decoder: Seen | str
    by_chance: bool


def pattern_of(config: AttentionConfig, length: int, causal: bool = False, *, seed: int = 0) -> Seen:
    """Row t, column s: whether the result at t changes with the token at s, for random tokens and weights.

    Raises what the kind itself raises: `UnsupportedError` where it cannot be causal, or is no module on its own.
    """
    if length < 1:
        raise ConfigError(f"length = {length}", expected="at least 1")
    width, mask = HEAD_WIDTH * (getattr(config, "heads", None) or 1), CAUSAL if causal else EVERYTHING
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        module = config.build(width).double().eval()
        tokens, step = torch.randn(2, length, width, dtype=torch.float64)
        before, changed = module(tokens[None], mask=mask), []
        for first in range(0, length, AT_ONCE):
            places = torch.arange(first, min(first + AT_ONCE, length))
            copies = tokens.repeat(len(places), 1, 1)
            copies[torch.arange(len(places)), places] += STEP * step[places]
            changed.append((module(copies, mask=mask) - before).abs().amax(-1) > ROUNDING)
    return torch.cat(changed).T.numpy()


def patterns_of(config: AttentionConfig, length: int, *, seed: int = 0) -> list[LayerPattern]:
    """One for each pattern that its layers have: most kinds have the same in all of them."""
    found: dict[tuple[bytes, bytes], tuple[AttentionConfig, _Sides]] = {}
    layers: dict[tuple[bytes, bytes], tuple[int, ...]] = {}
    for number in range(ROUNDS * config.turns):
        here = config.for_layer(number)
        sides = _sides(here, length, seed)
        found.setdefault(_known(sides), (here, sides))
        layers[_known(sides)] = (*layers.get(_known(sides), ()), number + 1)
    return [
        LayerPattern(
            asked=config,
            config=here,
            layers=layers[known] if len(found) > 1 else (),
            encoder=sides[0],
            decoder=sides[1],
            by_chance=known != _known(_sides(here, length, seed + 1)),
        )
        for known, (here, sides) in found.items()
    ]


def small(kind: str, changes: Mapping[str, Any] | None = None) -> AttentionConfig:
    """A kind with fields for a short row, and then these; names with commas between them take turns."""
    changes = dict(changes or {})
    if "," in kind:
        kind, changes = AttentionConfig.several, {"of": kind} | changes
    config = AttentionConfig.from_config(kind)
    changes = _small_members(changes)
    try:
        return config.override({**config.small_fields, **changes})
    except ConfigError:  # they need not go together: places of global tokens stand instead of their number
        return config.override(changes)


def _small_members(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The kinds that a kind is made of are small ones too where they are given by name."""
    members = fields.get("of")
    if isinstance(members, str) and not members.startswith(("[", "{")):
        members = tuple(name.strip() for name in members.split(","))
    if not isinstance(members, tuple):
        return dict(fields)
    return {**fields, "of": tuple(small(name) if isinstance(name, str) else name for name in members)}


_Sides = tuple[Seen | str, Seen | str]


def _sides(config: AttentionConfig, length: int, seed: int) -> _Sides:
    """As an encoder and as a decoder; in words where the kind refuses."""

    def tried(causal: bool) -> Seen | str:
        try:
            return pattern_of(config, length, causal, seed=seed)
        except UnsupportedError as error:
            return str(error).splitlines()[0]

    return tried(False), tried(True)


def _known(sides: _Sides) -> tuple[bytes, bytes]:
    """What two layers have in common that see the same."""
    encoder, decoder = (side.encode() if isinstance(side, str) else side.tobytes() for side in sides)
    return encoder, decoder
