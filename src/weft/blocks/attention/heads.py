"""Multi-head attention: learned maps around a core, for every kind that weighs values by keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from weft.blocks.attention.base import EVERYTHING, AttentionConfig, AttentionCore, Mask, Stream
from weft.blocks.cache import Cache, JointCache, KeyValueCache, SumCache, positions
from weft.blocks.packed_sequences import PackedSequences
from weft.blocks.roles import ATTENTION_MAPS
from weft.blocks.work import Work
from weft.config import Size
from weft.errors import ConfigError, ShapeError, UnsupportedError

MemoryCache = KeyValueCache | SumCache  # keys and values of a memory, computed once


class Attention(nn.Module):
    """Queries, keys and values by learned maps, a core in every head, and an output map.

    heads        query heads; kv_heads of them (a divisor, default all) have keys and values of their own
    head_width   width of a query and key in one head (default width / heads); value_width likewise
    bias         whether the four maps have biases
    cache        (of forward) what was read before; with a memory, its keys and values, computed once
    qk           a module (query, key, positions) → (query, key), applied per head before the core
    core       how values are weighed; this is what differs between the kinds
    """

    role = ATTENTION_MAPS

    def __init__(
        self,
        width: int,
        *,
        heads: int,
        core: AttentionCore,
        kv_heads: int | None = None,
        head_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        qk: nn.Module | None = None,
    ) -> None:
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        if min(heads, kv_heads) < 1:
            raise ConfigError(f"{heads} heads, {kv_heads} kv_heads", expected="at least one of each")
        if heads % kv_heads:
            raise ConfigError(f"{heads} heads with {kv_heads} kv_heads", expected="kv_heads that divide heads")
        head_width = width_of_head(width, heads, head_width)
        value_width = head_width if value_width is None else value_width
        self.width, self.heads, self.kv_heads = width, heads, kv_heads
        self.query = nn.Linear(width, heads * head_width, bias=bias)
        self.key = nn.Linear(width, kv_heads * head_width, bias=bias)
        self.value = nn.Linear(width, kv_heads * value_width, bias=bias)
        self.output = nn.Linear(heads * value_width, width, bias=bias)
        self.qk = qk
        self.core = core

    def extra_repr(self) -> str:
        return f"width={self.width}, heads={self.heads}, kv_heads={self.kv_heads}"

    def maps_by_head(self) -> dict[Tensor, int]:
        """How many heads the rows (+) or columns (−) of each matrix belong to."""
        asking, answering = self.heads, self.kv_heads
        return {
            self.query.weight: asking,
            self.key.weight: answering,
            self.value.weight: answering,
            self.output.weight: -asking,
        }

    def new_cache(self, capacity: int | None = None) -> Cache:
        return self.core.new_cache(capacity)

    def forward(
        self, x: Stream, memory: Tensor | None = None, *, mask: Mask = EVERYTHING, cache: Cache | None = None
    ) -> Stream:
        self._check(x, memory, mask, cache)
        if memory is not None and isinstance(cache, MemoryCache) and cache.length:  # computed in an earlier call
            return self._ask_again(x, mask, cache)
        if mask.keep is not None:  # values at padding must not reach a product, not even NaN
            padding = ~mask.keep[..., None]
            if memory is None:
                x = x.masked_fill(padding, 0.0)
            else:
                memory = memory.masked_fill(padding, 0.0)
        asked, keys, values = self.project(x, memory)
        query = self._heads(asked, self.heads)
        key, value = self._heads(keys, self.kv_heads), self._heads(values, self.kv_heads)
        if self.qk is not None:
            query, key = self.qk(query, key, None if memory is not None else self._positions(x, mask, cache))
        if cache is not None:
            return self._join(self.core.recall(query, key, value, mask, cache))
        mask.check(x.shape[0], self.heads, query.shape[2], key.shape[2])
        if mask.packed is not None:
            return self._join(self._text_by_text(query, key, value, mask, mask.packed))
        return self._join(self.core(query, key, value, mask))

    def operations(self, x: Tensor, memory: Tensor | None = None, **_: object) -> Iterator[Work]:
        """Maps and core say their own; but no gradient passes an argmax to the maps of queries and keys."""
        if not self.core.teaches_queries:
            asking, answering = x.numel(), (x if memory is None else memory).numel()
            missing = asking * self.query.out_features + answering * self.key.out_features
            yield Work(0.0, -4.0 * missing)

    def _ask_again(self, x: Tensor, mask: Mask, cache: MemoryCache) -> Tensor:
        """The memory's keys and values are in the cache. Neighbouring rows of the stream may share one of its rows,
        as the beams of a search do: their queries are computed together, and nothing is copied."""
        query = self._heads(self.query(x), self.heads)
        query = query if self.qk is None else self.qk(query, query, None)[0]
        rows, readers = query.shape[0], query.shape[0] // cache.rows
        if readers > 1:
            query = query.view(-1, readers, *query.shape[1:]).transpose(1, 2).flatten(2, 3)
        found = self.core.recall(query, None, None, mask, cache)
        if readers > 1:
            split = found.view(*found.shape[:2], readers, -1, found.shape[-1])
            found = split.transpose(1, 2).reshape(rows, self.heads, -1, found.shape[-1])
        return self._join(found)

    def remember(self, memory: Tensor, cache: JointCache, keep: Tensor | None = None) -> None:
        """Put a memory's keys and values at the beginning of a table: later queries attend to them too."""
        self._check_reads_memory()
        if keep is not None:
            memory = memory.masked_fill(~keep[..., None], 0.0)
        key, value = self._heads(self.key(memory), self.kv_heads), self._heads(self.value(memory), self.kv_heads)
        if self.qk is not None:
            key = self.qk(key, key, positions(memory.shape[1], memory.device, keep=keep))[1]
        cache.extend(key, value, keep)
        cache.remembered = cache.length

    @staticmethod
    def _positions(x: Tensor, mask: Mask, cache: Cache | None) -> Tensor:
        if mask.packed is not None:
            return mask.packed.positions(x.device)
        return positions(x.shape[1], x.device, keep=mask.keep, cache=cache)

    def _text_by_text(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, packed: PackedSequences) -> Tensor:
        """A core for each run of texts of equal length, which are the batch there."""
        found = []
        for start, count, length in packed.runs():
            parts = (t[0, :, start : start + count * length] for t in (query, key, value))
            texts = (t.view(t.shape[0], count, length, t.shape[2]).transpose(0, 1) for t in parts)
            found.append(self.core(*texts, mask.in_text(length)).transpose(1, 2).flatten(0, 1))
        return torch.cat(found)[None].transpose(1, 2)

    def project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of the stream, keys and values of the memory or of the stream itself; heads side by side."""
        source = x if memory is None else memory
        return self.query(x), self.key(source), self.value(source)

    @staticmethod
    def _heads(maps: Tensor, heads: int) -> Tensor:
        return maps.view(*maps.shape[:-1], heads, maps.shape[-1] // heads).transpose(1, 2)

    def _join(self, heads: Tensor) -> Tensor:
        return self.output(heads.transpose(1, 2).flatten(2))

    def _check(self, x: Tensor, memory: Tensor | None, mask: Mask, cache: Cache | None) -> None:
        if not isinstance(mask, Mask):
            raise ShapeError(f"mask is a {type(mask).__name__}", expected="a Mask, such as Mask(allow=…)")
        for name, tensor in (("x", x), ("memory", memory)):
            if tensor is not None and (tensor.dim() != 3 or tensor.shape[-1] != self.width):
                raise ShapeError(f"{name} has shape {tuple(tensor.shape)}", expected=f"(B, T, {self.width})")
        if mask.packed is not None and (memory is not None or cache is not None):
            given = f"{mask.packed} with a {'cache' if memory is None else 'memory'}"
            raise UnsupportedError(given, expected="texts that are read once, each by itself")
        if memory is not None:
            self._check_reads_memory()
        source = x if memory is None else memory
        shared = isinstance(cache, MemoryCache) and cache.length and x.shape[0] % source.shape[0] == 0
        if source.shape[0] != x.shape[0] and not shared:
            raise ShapeError(f"memory has {source.shape[0]} rows", expected=f"{x.shape[0]}, as x has")
        if mask.keep is not None and mask.keep.shape != source.shape[:2]:
            given = f"Mask keep has shape {tuple(mask.keep.shape)}"
            raise ShapeError(given, expected=f"{tuple(source.shape[:2])}: a value for each token read in this call")

    def _check_reads_memory(self) -> None:
        if not self.core.reads_memory:
            given = f"a memory for {type(self.core).__name__}, which is self-attention alone"
            raise UnsupportedError(given, expected="none; attention kind softmax reads one")


def width_of_head(width: int, heads: int, head_width: int | None) -> int:
    """As given, or the width divided among the heads, if they divide it."""
    if head_width is not None:
        return head_width
    if width % heads:
        raise ConfigError(
            f"width {width} with {heads} heads", expected="heads that divide the width", advice="or set head_width"
        )
    return width // heads


class HeadsConfig(AttentionConfig):
    """The fields of every kind that is `Attention` around a core of its own."""

    heads: Size | None = None
    kv_heads: Size | None = None
    head_width: Size | None = None
    value_width: Size | None = None
    bias: bool = True

    usual_head_width: ClassVar[int] = 64  # of GPT-2, BERT, T5 and ViT

    def build(self, width: int, *, qk: nn.Module | None = None) -> Attention:
        return Attention(
            width,
            heads=self.heads_for(width),
            kv_heads=self.kv_heads,
            head_width=self.head_width,
            value_width=self.value_width,
            bias=self.bias,
            qk=qk,
            core=self.core_for(width),
        )

    def core_for(self, width: int) -> AttentionCore:
        """The core in a stream of this width; one with parameters of its own needs the width."""
        return self.core()

    def sizes(self, width: int) -> tuple[int, int]:
        heads = self.heads_for(width)
        return heads, width_of_head(width, heads, self.head_width)

    def heads_for(self, width: int) -> int:
        """`heads`, or the fewest that divide the width into heads of at most the usual 64."""
        if self.heads is not None:
            return self.heads
        return next(h for h in range(1, width + 1) if width % h == 0 and width // h <= self.usual_head_width)
