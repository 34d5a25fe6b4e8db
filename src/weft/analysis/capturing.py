"""Attention maps: the weights in use, computed on request from the very inputs of each core.

with capture(model, "layers.*.attention") as maps:
    model(tokens)
maps["layers.0.attention"].weights      # (B, H, T, S)
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from weft.blocks.attention import EVERYTHING, AttentionCore, Mask
from weft.blocks.attention.base import spread
from weft.errors import ConfigError, UnsupportedError, did_you_mean
from weft.models.base import Model
from weft.models.sites import AttentionSite, Place, attentions


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """What one attention looked up, and the weights that follow from it.

    In a row of several texts (`mask.packed`) the texts stand one after the other here too. `site`: where the
    attention stands in its model, as far as that is known.
    """

    core: AttentionCore
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Mask
    site: AttentionSite | None = None

    @property
    def over(self) -> Literal["tokens", "channels"]:
        """What the rows and columns of the weights are."""
        return "channels" if self.core.unit == "channel" else "tokens"

    @functools.cached_property
    def weights(self) -> Tensor:
        """(B, H, T, S): how much of each value every query receives.

        Of texts in one row each sees itself alone: all else is 0. Channels have a table of their own, (B, H, I, J): how
        much channel i of a head receives of channel j; of several texts in a row, one table for each.
        """
        with torch.no_grad():
            tables = [part._table() for part in self.texts()]
        if self.mask.packed is None or self.over == "channels":
            return torch.cat(tables) if len(tables) > 1 else tables[0]
        rows, total = [row for table in tables for row in table], self.mask.packed.total
        whole = self.query.new_zeros(1, self.query.shape[1], total, total)
        for row, start in zip(rows, self.mask.packed.starts(torch.device("cpu")).tolist(), strict=True):
            length = row.shape[-1]
            whole[0, :, start : start + length, start : start + length] = row
        return whole

    @property
    def received(self) -> Tensor:
        """(B, H, T, W): what every query receives by these weights, which the output map then joins."""
        if self.mask.packed is not None and self.over == "channels":
            texts = [part.received.transpose(1, 2).flatten(0, 1) for part in self.texts()]
            return torch.cat(texts)[None].transpose(1, 2)
        value = spread(self.value, self.query.shape[1])
        if self.over == "tokens":
            return self.weights @ value
        if self.mask.keep is not None:
            value = value.masked_fill(~self.mask.keep[:, None, :, None], 0.0)
        return value @ self.weights.transpose(2, 3)

    def texts(self) -> list[AttentionMap]:
        """The cores that were made: one; in a row of several texts, one for each run of texts of equal length."""
        packed = self.mask.packed
        if packed is None:
            return [self]
        found = []
        for start, count, length in packed.runs():
            parts = (t[0, :, start : start + count * length] for t in (self.query, self.key, self.value))
            query, key, value = (t.view(len(t), count, length, t.shape[2]).transpose(0, 1) for t in parts)
            found.append(AttentionMap(self.core, query, key, value, self.mask.in_text(length), self.site))
        return found

    def _table(self) -> Tensor:
        return self.core.table(self.query, self.key, self.mask)

    def __repr__(self) -> str:
        rows, heads, asking, width = self.query.shape
        table = f"{asking} x {self.key.shape[2]}" if self.over == "tokens" else f"{width} x {width} channels"
        return f"AttentionMap({rows} rows, {heads} heads, {table})"


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


def sites_of(model: nn.Module) -> dict[str, AttentionSite]:
    """Where each attention stands: a model says it, or nobody knows; of other modules they are counted in order."""
    if isinstance(model, Model):
        try:
            return {site.name: site for site in model.attention_sites()}
        except UnsupportedError:  # the weights can be seen all the same
            return {}
    named = enumerate(attentions(model), 1)
    return {name: AttentionSite(name, Place("", number), "text", "text") for number, name in named}


def site_of(name: str, found: AttentionMap) -> AttentionSite:
    """Where the attention of a map stands, or an error if nobody said it."""
    if found.site is None:
        raise ConfigError(f"the model of {name} does not say where it stands", expected="its attention_sites()")
    return found.site


@contextmanager
def capture(model: nn.Module, pattern: str = "*") -> Iterator[dict[str, AttentionMap]]:
    """Collect the attention maps of the modules whose names match, while the block runs.

    The model computes as always, fused kernel included; only the inputs of its cores are kept. A
    module that runs several times inside the block leaves its last map. Kinds that do not keep every token they read
    (`local`, `linear` …) leave one for the tokens of the first call of a cache, and none for later ones.
    """
    found = attentions(model)
    chosen = {name: module for name, module in found.items() if fnmatchcase(name, pattern)}
    if not chosen:
        raise ConfigError(f"no attention matches {pattern!r}", advice=did_you_mean(pattern, found))
    names, sites = {module: name for name, module in chosen.items()}, sites_of(model)
    maps = _Maps()
    maps.chosen = frozenset(chosen)
    asking: list[nn.Module] = []  # the attention that runs now: cores may be shared, attentions are not
    calls: list[AttentionMap] = []  # several if its row is several texts

    def begin(module: nn.Module, _inputs: tuple[Any, ...]) -> None:
        asking[:] = [module]
        calls.clear()

    def keep(core: nn.Module, inputs: tuple[Any, ...]) -> None:
        if not asking or asking[0] not in names:
            return
        query, key, value, mask = inputs
        # a cache writes into its table later on, so its keys are copied now
        calls.append(
            AttentionMap(cast(AttentionCore, core), query.detach(), key.detach().clone(), value.detach().clone(), mask)
        )

    def end(module: nn.Module, _inputs: tuple[Any, ...], options: dict[str, Any], _output: Any) -> None:
        if calls and asking == [module]:
            together = _together(calls, options.get("mask", EVERYTHING))
            maps[names[module]] = replace(together, site=sites.get(names[module]))
        asking.clear()

    handles = [module.register_forward_pre_hook(begin) for module in found.values()]
    handles += [module.register_forward_hook(end, with_kwargs=True) for module in found.values()]
    cores = {cast(nn.Module, module.core) for module in chosen.values()}
    handles += [core.register_forward_pre_hook(keep) for core in cores]
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()


def _together(calls: list[AttentionMap], mask: Mask) -> AttentionMap:
    """The one core of a call, or those for the texts of a row, put together as they stand there."""
    if mask.packed is None:
        return calls[-1]
    parts = ([getattr(call, name) for call in calls] for name in ("query", "key", "value"))
    query, key, value = (torch.cat([t.transpose(0, 1).flatten(1, 2) for t in part], dim=1)[None] for part in parts)
    return AttentionMap(calls[0].core, query, key, value, mask)
