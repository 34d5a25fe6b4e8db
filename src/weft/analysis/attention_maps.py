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
from typing import Any

import torch
from torch import Tensor, nn

from weft.blocks.attention import Attention, Lookup, Mask
from weft.errors import ConfigError, did_you_mean


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


@contextmanager
def capture(model: nn.Module, pattern: str = "*") -> Iterator[dict[str, AttentionMap]]:
    """Collect the attention maps of the modules whose names match, while the block runs.

    The model computes as always, fused kernel included; only the inputs of its lookups are kept. A
    module that runs several times inside the block leaves its last map.
    """
    found = {name: module for name, module in model.named_modules() if isinstance(module, Attention)}
    chosen = {name: module for name, module in found.items() if fnmatchcase(name, pattern)}
    if not chosen:
        raise ConfigError(f"no attention matches {pattern!r}", advice=did_you_mean(pattern, found))
    maps: dict[str, AttentionMap] = {}

    def keep(name: str, lookup: Lookup, inputs: tuple[Any, ...]) -> None:
        query, key, value, mask = inputs
        # a cache writes into its table later on, so its keys are copied now
        maps[name] = AttentionMap(lookup, query.detach(), key.detach().clone(), value.detach().clone(), mask)

    handles = [
        module.lookup.register_forward_pre_hook(lambda lookup, inputs, name=name: keep(name, lookup, inputs))
        for name, module in chosen.items()
    ]
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()
