"""The key/value table: the tokens of earlier calls, owned by the caller.

    caches = model.new_caches()
    model(prompt, caches=caches); model(next_token, caches=caches)

Rows of a batch may be ragged: `keep` marks padding, on whichever side. Padding takes a slot of the
table and is never seen; a token's position is the number of real tokens before it in its row, so that
left-padded, right-padded and packed texts are the same computation.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from weft.errors import ShapeError, UnsupportedError


@runtime_checkable
class Cache(Protocol):
    """The interface of every kind of cache, whatever it stores."""

    @property
    def start(self) -> int | Int[Tensor, "B 1"]:
        """The position of the next token, in every row or in each."""
        ...

    def positions(self, device: torch.device) -> Int[Tensor, "*rows S"]:
        """The positions of the cached tokens: (S,) for all rows alike, or (B, S)."""
        ...

    def rewind(self, tokens: int | Int[Tensor, "B"]) -> None:
        """Forget all but the first `tokens` real tokens of each row."""
        ...

    def select(self, rows: Int[Tensor, "R"]) -> None:
        """Keep these rows in this order; one may be taken several times (beam search)."""
        ...


class KeyValueCache:
    """Keys and values in preallocated tables that double when full, so a step copies only itself.

    `capacity` preallocates that many slots at the first call. Outside `torch.no_grad()` the tables are
    concatenated instead: autograd may need the old ones intact.
    """

    FIRST_CAPACITY = 64

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity or 0
        self.length = 0
        self._key: Tensor | None = None
        self._value: Tensor | None = None
        self._keep: Tensor | None = None  # None as long as every slot is real in every row
        self._shared = False  # whether autograd may hold the tables, so that they must not be written into

    def __repr__(self) -> str:
        ragged = "" if self._keep is None else ", ragged"
        return f"KeyValueCache({self.length} of {self.capacity} slots{ragged})"

    @property
    def key(self) -> Float[Tensor, "B G S K"] | None:
        return None if self._key is None else self._key[:, :, : self.length]

    @property
    def value(self) -> Float[Tensor, "B G S W"] | None:
        return None if self._value is None else self._value[:, :, : self.length]

    @property
    def rows(self) -> int:
        """How many texts are side by side in it."""
        return 0 if self._key is None else self._key.shape[0]

    @property
    def tables(self) -> tuple[Float[Tensor, "B G C K"], Float[Tensor, "B G C W"]]:
        """The whole tables with room for more; only the first `length` slots are filled."""
        assert self._key is not None and self._value is not None
        return self._key, self._value

    @property
    def keep(self) -> Bool[Tensor, "B S"] | None:
        return None if self._keep is None else self._keep[:, : self.length]

    @property
    def start(self) -> int | Int[Tensor, "B 1"]:
        keep = self.keep
        return self.length if keep is None else keep.sum(1, keepdim=True)

    def positions(self, device: torch.device) -> Int[Tensor, "*rows S"]:
        return positions(self.length, device, keep=self.keep)

    def extend(
        self, key: Float[Tensor, "B G N K"], value: Float[Tensor, "B G N W"], keep: Bool[Tensor, "B N"] | None = None
    ) -> tuple[Float[Tensor, "B G S K"], Float[Tensor, "B G S W"], Bool[Tensor, "B S"] | None]:
        """Append new tokens; returns all keys, values and (where ragged) which of them are real."""
        if self._key is not None and self._key.shape[0] != key.shape[0]:
            raise ShapeError(f"{key.shape[0]} rows for a cache of {self._key.shape[0]}", expected="the same batch")
        if self._key is not None and self._key.shape[1::2] != key.shape[1::2]:
            raise ShapeError("keys of another shape than the cache holds", expected="a cache of this module's own")
        if self._key is not None and self._key.is_inference() and not torch.is_inference_mode_enabled():
            self._shared = True
        end = self.length + key.shape[2]
        self._store_keep(keep, key.shape[0], end, key.device)
        if torch.is_grad_enabled():
            self._key = key if self.key is None else torch.cat([self.key, key], 2)
            self._value = value if self.value is None else torch.cat([self.value, value], 2)
            self.capacity, self._shared = end, True
        else:
            self._reserve(end, key, value)
            assert self._key is not None and self._value is not None
            self._key[:, :, self.length : end] = key
            self._value[:, :, self.length : end] = value
        self.length = end
        assert self.key is not None and self.value is not None
        return self.key, self.value, self.keep

    def rewind(self, tokens: int | Int[Tensor, "B"]) -> None:
        if isinstance(tokens, int) and tokens < 0:
            raise ShapeError(f"rewind to {tokens} tokens", expected="0 or more")
        if self._key is None:
            return
        if self._keep is None and isinstance(tokens, int):
            self.length = min(self.length, tokens)
            return
        if self._keep is None:
            self._keep = torch.ones(self._key.shape[0], self.length, dtype=torch.bool, device=self._key.device)
        limit = tokens if isinstance(tokens, int) else tokens[:, None]
        kept = self._keep[:, : self.length]
        kept = kept & (kept.cumsum(1) <= limit)
        used = kept.any(0).nonzero()
        self.length = int(used[-1]) + 1 if len(used) else 0
        self._keep = kept[:, : self.length].contiguous()

    def select(self, rows: Int[Tensor, "R"]) -> None:
        if self._key is None or self._value is None:
            return
        before = self._key.shape[0]
        if len(rows) == before and torch.equal(rows, torch.arange(before, dtype=rows.dtype, device=rows.device)):
            return
        self._key, self._value = (_rows_of(table, rows, self.length) for table in (self._key, self._value))
        self._shared = torch.is_grad_enabled()
        if self._keep is not None:
            self._keep = self._keep[:, : self.length].index_select(0, rows)

    def _store_keep(self, keep: Tensor | None, batch: int, end: int, device: torch.device) -> None:
        if keep is None and self._keep is None:
            return
        past = torch.ones(batch, self.length, dtype=torch.bool, device=device) if self.keep is None else self.keep
        new = torch.ones(batch, end - self.length, dtype=torch.bool, device=device) if keep is None else keep
        self._keep = torch.cat([past, new], 1)  # one byte a token: not worth a table of its own

    def _reserve(self, slots: int, key: Tensor, value: Tensor) -> None:
        if self._key is not None and slots <= self._key.shape[2] and not self._shared:
            return
        self.capacity = max(slots, self.capacity if self._key is None else 2 * self.capacity, self.FIRST_CAPACITY)
        old_key, old_value = self.key, self.value
        self._key = key.new_empty(*key.shape[:2], self.capacity, key.shape[3])
        self._value = value.new_empty(*value.shape[:2], self.capacity, value.shape[3])
        if old_key is not None and old_value is not None:
            self._key[:, :, : self.length] = old_key
            self._value[:, :, : self.length] = old_value
        self._shared = False


class JointCache(KeyValueCache):
    """A table that begins with a memory (`remembered` slots); positions count from the first token after it."""

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__(capacity)
        self.remembered = 0

    def __repr__(self) -> str:
        return f"JointCache({self.length} of {self.capacity} slots, {self.remembered} of them a memory)"

    @property
    def _written(self) -> Bool[Tensor, "B S"] | None:
        return None if self.keep is None else self.keep[:, self.remembered :]

    @property
    def start(self) -> int | Int[Tensor, "B 1"]:
        written = self._written
        return self.length - self.remembered if written is None else written.sum(1, keepdim=True)

    def positions(self, device: torch.device) -> Int[Tensor, "*rows S"]:
        return positions(self.length - self.remembered, device, keep=self._written)

    def rewind(self, tokens: int | Int[Tensor, "B"]) -> None:
        """Forget tokens written; the memory stays."""
        if self.keep is None:
            super().rewind(tokens + self.remembered)
        else:
            super().rewind(tokens + self.keep[:, : self.remembered].sum(1))


class RollingCache(KeyValueCache):
    """A table that forgets tokens which no later token can see: those `reach` or more places back (None: it keeps all).

    It forgets many at a time, so that a step moves only itself; the tables are then new ones, as a caller may hold
    the old.
    """

    SPARE = 32  # tokens that are kept beyond the reach, so that a few can be taken back

    def __init__(self, capacity: int | None = None, reach: int | None = None) -> None:
        self.reach = reach
        super().__init__(capacity if reach is None or capacity is None else min(capacity, self._most(reach)))
        self.forgotten: int | Int[Tensor, "B 1"] = 0  # real tokens that are no longer there, in all rows or in each

    def _most(self, reach: int) -> int:
        """How many tokens it holds before it forgets."""
        return 2 * (reach + self.SPARE)

    def __repr__(self) -> str:
        return f"RollingCache({self.length} of {self.capacity} slots, reach={self.reach})"

    @property
    def start(self) -> int | Int[Tensor, "B 1"]:
        return super().start + self.forgotten

    def positions(self, device: torch.device) -> Int[Tensor, "*rows S"]:
        return super().positions(device) + self.forgotten

    def rewind(self, tokens: int | Int[Tensor, "B"]) -> None:
        forgotten = torch.as_tensor(self.forgotten)
        left = torch.as_tensor(tokens).reshape(-1, 1) - forgotten
        if self.reach is not None and ((forgotten > 0) & (left < self.reach - 1)).any():
            given = f"rewinding to {tokens} tokens, when those before are forgotten that the next one sees"
            raise UnsupportedError(given, expected=f"a few tokens at a time: {self.SPARE} are kept for that")
        super().rewind(int(left) if left.numel() == 1 else left[:, 0])

    def select(self, rows: Int[Tensor, "R"]) -> None:
        super().select(rows)
        if isinstance(self.forgotten, Tensor):
            self.forgotten = self.forgotten.index_select(0, rows)

    def forget(self) -> None:
        """Drop what no later token can see, if there is much of it."""
        if self.reach is None or self.length < self._most(self.reach):
            return
        assert self._key is not None and self._value is not None
        if self._keep is None:
            dropped = self.length - self.reach - self.SPARE
            self.forgotten = self.forgotten + dropped
        else:
            left = self._keep.flip(1).cumsum(1).flip(1)  # real tokens from each slot on
            dropped = int((left > self.reach + self.SPARE).all(0).sum())
            self.forgotten = self.forgotten + self._keep[:, :dropped].sum(1, keepdim=True)
            self._keep = self._keep[:, dropped:]
        if dropped:
            self._key, self._value = (self._moved(table, dropped) for table in (self._key, self._value))
            self.length, self.capacity = self.length - dropped, self._key.shape[2]

    def _moved(self, table: Float[Tensor, "B G C K"], dropped: int) -> Float[Tensor, "B G R K"]:
        """A table that begins with what is left, with room for more."""
        left = table[:, :, dropped : self.length]
        if torch.is_grad_enabled():
            return left
        assert self.reach is not None
        room = max(self._most(self.reach), left.shape[2] + self.SPARE)  # ragged rows may have kept more
        moved = table.new_empty(*table.shape[:2], room, table.shape[3])
        moved[:, :, : left.shape[2]] = left
        return moved


class SumCache:
    """What kernel attention remembers: sums over all tokens read, of the same size however many they are."""

    def __init__(self) -> None:
        self.sums: tuple[Tensor, ...] | None = None
        self.length = 0  # slots read, padding included
        self._count: int | Int[Tensor, "B 1"] = 0  # real tokens, in all rows or in each

    def __repr__(self) -> str:
        return f"SumCache({self.length} tokens)"

    @property
    def rows(self) -> int:
        """How many texts are side by side in it."""
        return 0 if self.sums is None else len(self.sums[0])

    @property
    def start(self) -> int | Int[Tensor, "B 1"]:
        return self._count

    def positions(self, device: torch.device) -> Int[Tensor, "*rows S"]:
        raise UnsupportedError(
            "the positions of the tokens in a sum", expected="positions without a bias on the scores"
        )

    def add(self, sums: tuple[Tensor, ...], tokens: int, keep: Bool[Tensor, "B N"] | None = None) -> None:
        """The sums with so many more tokens in them."""
        if self.sums is not None and len(self.sums[0]) != len(sums[0]):
            raise ShapeError(f"{len(sums[0])} rows for a cache of {self.rows}", expected="the same batch")
        self.sums, self.length = sums, self.length + tokens
        self._count = self._count + (tokens if keep is None else keep.sum(1, keepdim=True))

    def rewind(self, tokens: int | Int[Tensor, "B"]) -> None:
        limit = torch.as_tensor(tokens)
        if (limit < 0).any():
            raise ShapeError(f"rewind to {tokens} tokens", expected="0 or more")
        if not limit.any():
            self.sums, self.length, self._count = None, 0, 0
        elif (limit.reshape(-1, 1) < torch.as_tensor(self._count)).any():
            raise UnsupportedError("rewinding a sum", expected="all of it or nothing: terms cannot be taken out again")

    def select(self, rows: Int[Tensor, "R"]) -> None:
        if self.sums is not None:
            self.sums = tuple(table.index_select(0, rows) for table in self.sums)
        if isinstance(self._count, Tensor):
            self._count = self._count.index_select(0, rows)


def _rows_of(table: Float[Tensor, "B G C K"], rows: Int[Tensor, "R"], used: int) -> Float[Tensor, "R G C K"]:
    """A table of these rows in fresh memory, as a caller may hold the old one.

    Only the slots in use are moved, the others are room to grow. Where most are in use, whole rows are faster.
    """
    if 2 * used > table.shape[2] or torch.is_grad_enabled():
        return table.index_select(0, rows)
    moved = table.new_empty(len(rows), *table.shape[1:])
    torch.index_select(table[:, :, :used], 0, rows, out=moved[:, :, :used])
    return moved


class DecoderCache:
    """The cache of a layer that also reads a memory: its own tokens, and the memory's keys and values."""

    def __init__(self, own: Cache, memory: Cache) -> None:
        self.own, self.memory = own, memory

    def __repr__(self) -> str:
        return f"DecoderCache({self.own!r}, memory={self.memory!r})"

    @property
    def start(self) -> int | Int[Tensor, "B 1"]:
        return self.own.start

    def positions(self, device: torch.device) -> Int[Tensor, "*rows S"]:
        return self.own.positions(device)

    def rewind(self, tokens: int | Int[Tensor, "B"]) -> None:
        """Forget tokens written; the memory that was read stays."""
        self.own.rewind(tokens)

    def select(self, rows: Int[Tensor, "R"]) -> None:
        self.own.select(rows)
        self.memory.select(rows)


def positions(
    count: int, device: torch.device, *, keep: Bool[Tensor, "B T"] | None = None, cache: Cache | None = None
) -> Int[Tensor, "T"] | Int[Tensor, "B T"]:
    """The positions of the next `count` tokens: how many real tokens of their row come before each."""
    start = 0 if cache is None else cache.start
    if keep is None:
        return start + torch.arange(count, device=device)
    return start + (keep.cumsum(1) - 1).clamp(min=0)


def all_positions(
    count: int, device: torch.device, *, keep: Bool[Tensor, "B T"] | None = None, cache: Cache | None = None
) -> tuple[Int[Tensor, "*rows T"], Int[Tensor, "*rows S"]]:
    """Positions of the next `count` tokens, and of all tokens in the table once those are in it."""
    new = positions(count, device, keep=keep, cache=cache)
    if cache is None:
        return new, new
    past = cache.positions(device)
    if past.dim() < new.dim():
        past = past.expand(new.shape[0], -1)
    return new, torch.cat([past, new], -1)
