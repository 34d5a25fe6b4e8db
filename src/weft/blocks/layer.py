"""The one layer of every family, and a stack of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from torch import Tensor, nn

from weft.blocks.attention.base import EVERYTHING, Mask, Mixer, Stream
from weft.blocks.attention.heads import Attention
from weft.blocks.cache import Cache, DecoderCache, JointCache
from weft.blocks.residual import PreNorm, Residual
from weft.blocks.roles import CROSS_MAPS, by_name
from weft.blocks.sight import Looks, Sight
from weft.errors import ConfigError, ShapeError, UnsupportedError


class TransformerLayer(nn.Module):
    """Self-attention, cross-attention if there is a memory, then feed-forward; each inside its own residual.

    All parts are modules: any attention kind, any feed-forward part, `PreNorm` or `PostNorm`. With
    `cross_attention` (and its residual) it is a decoder layer that reads a memory.
    """

    roles = by_name(cross_attention=CROSS_MAPS)

    def __init__(
        self,
        *,
        attention: nn.Module,
        attention_residual: Residual,
        feed_forward: nn.Module,
        feed_forward_residual: Residual,
        cross_attention: nn.Module | None = None,
        cross_residual: Residual | None = None,
    ) -> None:
        super().__init__()
        if (cross_attention is None) != (cross_residual is None):
            raise ConfigError("one of cross_attention and cross_residual", expected="both or neither")
        self.attention = attention
        self.attention_residual = attention_residual
        self.cross_attention = cross_attention
        self.cross_residual = cross_residual
        self.feed_forward = feed_forward
        self.feed_forward_residual = feed_forward_residual

    def forward(
        self,
        x: Stream,
        *,
        mask: Mask = EVERYTHING,
        memory: Tensor | None = None,
        memory_mask: Mask = EVERYTHING,
        cache: Cache | None = None,
    ) -> Stream:
        self.check(x, memory)
        cross = self.cross_attention
        own, remembered = (cache.own, cache.memory) if isinstance(cache, DecoderCache) else (cache, None)
        x = self.attention_residual(x, lambda h: self.attention(h, mask=mask, cache=own))
        if cross is not None and self.cross_residual is not None:
            x = self.cross_residual(x, lambda h: cross(h, memory, mask=memory_mask, cache=remembered))
        return self.feed_forward_residual(x, self.feed_forward)

    def check(self, x: Stream, memory: Tensor | None) -> None:
        """Refuse a stream of another width, and a memory where none is read or none where one is."""
        width = getattr(self.attention, "width", x.shape[-1])
        if x.shape[-1] != width:
            raise ShapeError(f"x has shape {tuple(x.shape)}", expected=f"(B, T, {width})")
        cross = self.cross_attention
        if (cross is None) != (memory is None):
            given = "no memory was given" if memory is None else "a memory was given"
            raise ShapeError(f"{given} to a layer {'with' if cross is not None else 'without'} cross-attention")

    def sees(self) -> tuple[Sight, ...]:
        """Its own stream, then the memory if it reads one."""
        return (Looks(), Looks("cross_attention", at="memory")) if self.cross_attention is not None else (Looks(),)

    def new_cache(self, capacity: int | None = None) -> Cache:
        """An empty cache; with cross-attention it also keeps the memory's keys and values."""
        own = cast(Mixer, self.attention).new_cache(capacity)
        cross = self.cross_attention
        return own if cross is None else DecoderCache(own, cast(Mixer, cross).new_cache())


class ParallelLayer(TransformerLayer):
    """x + attention(norm(x)) + feed_forward(norm(x)): both read the same stream, as in GPT-J (Wang & Komatsuzaki 2021),
    GPT-NeoX (Black et al. 2022) and PaLM (Chowdhery et al. 2022).

    Each branch has the norm of its residual, which is a `PreNorm`; GPT-J and PaLM have one norm for both: give the
    same module to both residuals.
    """

    def __init__(
        self,
        *,
        attention: nn.Module,
        attention_residual: Residual,
        feed_forward: nn.Module,
        feed_forward_residual: Residual,
    ) -> None:
        if not isinstance(attention_residual, PreNorm) or not isinstance(feed_forward_residual, PreNorm):
            raise ConfigError("a parallel layer whose norm is not before its branches", expected="PreNorm for both")
        super().__init__(
            attention=attention,
            attention_residual=attention_residual,
            feed_forward=feed_forward,
            feed_forward_residual=feed_forward_residual,
        )

    def forward(
        self,
        x: Stream,
        *,
        mask: Mask = EVERYTHING,
        memory: Tensor | None = None,
        memory_mask: Mask = EVERYTHING,
        cache: Cache | None = None,
    ) -> Stream:
        self.check(x, memory)
        attended = self.attention_residual(x, lambda h: self.attention(h, mask=mask, cache=cache))
        return attended + cast(PreNorm, self.feed_forward_residual).branch(x, self.feed_forward)


class JointLayer(TransformerLayer):
    """Attention to the memory and the sequence in one core, then feed-forward: the keys of the memory come first."""

    def forward(
        self,
        x: Stream,
        *,
        mask: Mask = EVERYTHING,
        memory: Tensor | None = None,
        memory_mask: Mask = EVERYTHING,
        cache: Cache | None = None,
    ) -> Stream:
        attention = cast(Attention, self.attention)
        table = self.new_cache() if cache is None else cache
        if not isinstance(table, JointCache):
            raise UnsupportedError(f"a {type(table).__name__} was given", expected="this layer's own new_cache()")
        if table.length == 0:
            if memory is None:
                raise ShapeError("no memory was given to a layer that reads one")
            attention.remember(memory, table, memory_mask.keep)
        x = self.attention_residual(x, lambda h: attention(h, mask=mask, cache=table))
        return self.feed_forward_residual(x, self.feed_forward)

    def sees(self) -> tuple[Sight, ...]:
        """The memory and its own stream, in one table."""
        return (Looks(at="both"),)

    def new_cache(self, capacity: int | None = None) -> JointCache:
        """An empty table for the memory and what is written."""
        return JointCache(capacity)


class Layers(nn.ModuleList):
    """Layers one after the other; parameters are named `layers.3.attention.query.weight` in a model."""

    def new_caches(self, capacity: int | None = None) -> list[Cache]:
        """One empty cache for each layer; the caller keeps them."""
        return [cast(TransformerLayer, layer).new_cache(capacity) for layer in self]

    def forward(
        self,
        x: Stream,
        *,
        mask: Mask = EVERYTHING,
        memory: Tensor | Sequence[Tensor] | None = None,
        memory_mask: Mask = EVERYTHING,
        caches: Sequence[Cache] | None = None,
    ) -> Stream:
        """The last layer's output. `memory` is one for all layers, or a list with one for each."""
        streams = self.outputs(x, mask=mask, memory=memory, memory_mask=memory_mask, caches=caches)
        for stream in streams:
            x = stream
        return x

    def outputs(
        self,
        x: Stream,
        *,
        mask: Mask = EVERYTHING,
        memory: Tensor | Sequence[Tensor] | None = None,
        memory_mask: Mask = EVERYTHING,
        caches: Sequence[Cache] | None = None,
    ) -> Iterator[Tensor]:
        """Every layer's output in turn: a decoder can read the encoder layer by layer."""
        memories = [memory] * len(self) if memory is None or isinstance(memory, Tensor) else list(memory)
        for name, given in (("caches", caches), ("memories", memories)):
            if given is not None and len(given) != len(self):
                raise ShapeError(f"{len(given)} {name} for {len(self)} layers", expected="one for each")
        if mask.keep is not None and mask.keep.shape == x.shape[:2]:
            x = x.masked_fill(~mask.keep[..., None], 0.0)  # padding may hold any value, which gradients would use
        for i, layer in enumerate(self):
            cache = None if caches is None else caches[i]
            x = layer(x, mask=mask, memory=memories[i], memory_mask=memory_mask, cache=cache)
            yield x
