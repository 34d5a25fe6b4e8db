"""Attention maps: the weights in use, computed on request from the very inputs of each lookup.

with capture(model, "layers.*.attention") as maps:
    model(tokens)
maps["layers.0.attention"].weights      # (B, H, T, S)
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast

import torch
from torch import Tensor, nn

from weft.blocks.attention import Attention, Lookup, Mask
from weft.blocks.attention.additive import AdditiveAttention
from weft.errors import ConfigError, UnsupportedError, did_you_mean


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """What one lookup was given, and the weights that follow from it."""

    lookup: Lookup
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Mask

    @functools.cached_property
    def weights(self) -> Tensor:
        """(B, H, T, S): how much of each value every query receives."""
        with torch.no_grad():
            return self.lookup.weights(self.query, self.key, self.mask)

    def __repr__(self) -> str:
        rows, heads, asking = self.query.shape[:3]
        return f"AttentionMap({rows} rows, {heads} heads, {asking} x {self.key.shape[2]})"


class _Maps(dict[str, AttentionMap]):
    """Maps by the names of their modules; one that is not there says why."""

    chosen: frozenset[str] = frozenset()

    def __missing__(self, name: str) -> AttentionMap:
        if name not in self.chosen:
            raise ConfigError(f"no attention {name!r} is looked at", advice=did_you_mean(name, self.chosen))
        raise UnsupportedError(
            f"there is no map of {name!r}: it did not run, or it went on from a cache that does not keep every token",
            expected="the whole text in one call, without a cache",
        )


@contextmanager
def capture(model: nn.Module, pattern: str = "*") -> Iterator[dict[str, AttentionMap]]:
    """Collect the attention maps of the modules whose names match, while the block runs.

    The model computes as always, fused kernel included; only the inputs of its lookups are kept. A
    module that runs several times inside the block leaves its last map. Kinds that do not keep every token they read
    (`local`, `linear` …) leave one for the tokens of the first call of a cache, and none for later ones.
    """
    found = {
        name: module for name, module in model.named_modules() if isinstance(module, Attention | AdditiveAttention)
    }
    chosen = {name: module for name, module in found.items() if fnmatchcase(name, pattern)}
    if not chosen:
        raise ConfigError(f"no attention matches {pattern!r}", advice=did_you_mean(pattern, found))
    names = {module: name for name, module in chosen.items()}
    maps = _Maps()
    maps.chosen = frozenset(chosen)
    asking: list[nn.Module] = []  # the attention that runs now: lookups may be shared, attentions are not

    def note(module: nn.Module, _inputs: tuple[Any, ...]) -> None:
        asking[:] = [module]

    def keep(lookup: nn.Module, inputs: tuple[Any, ...]) -> None:
        if not asking or asking[0] not in names:
            return
        query, key, value, mask = inputs
        # a cache writes into its table later on, so its keys are copied now
        maps[names[asking[0]]] = AttentionMap(
            cast(Lookup, lookup), query.detach(), key.detach().clone(), value.detach().clone(), mask
        )

    handles = [module.register_forward_pre_hook(note) for module in found.values()]
    handles += [lookup.register_forward_pre_hook(keep) for lookup in {m.lookup for m in chosen.values()}]
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()
