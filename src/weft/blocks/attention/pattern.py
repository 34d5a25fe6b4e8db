"""Sparse attention: softmax over the keys that a pattern lets a query see, at the cost of those keys alone.

A pattern is a rule about places, `sees(query, key)`, and a list of blocks that hold every pair it allows: `local`,
`dilated`, `global` and `strided` have a file each, and `union` joins them. From the two, the tiles are made that
`tiles.py` computes.
"""

from __future__ import annotations

import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.blocks.attention.base import (
    EVERYTHING,
    Allowed,
    AttentionCore,
    Grid,
    Heads,
    Keys,
    Mask,
    Queries,
    Scored,
    Values,
    Weights,
    spread,
)
from weft.blocks.attention.heads import HeadsConfig
from weft.blocks.attention.softmax import SoftmaxAttention, SoftmaxConfig, inverse_temperature, work_of_pairs
from weft.blocks.attention.tiles import Forbidden, Places, Tile, Tiling, attend
from weft.blocks.cache import Cache, RollingCache
from weft.blocks.work import Work
from weft.config import Amount, Share
from weft.errors import ShapeError, UnsupportedError

Block = tuple[Places, Places]  # queries, and the keys that some of them see
MAX_TILED_SHARE = 0.75  # of all pairs: a pattern with more is computed at once, with a mask


class Pattern(ABC):
    """Who sees whom, by their places in the row. Frozen dataclasses: equal patterns have equal tiles.

    period  the rule is the same for a query and a key that are both so many places further on; None: it never is
    """

    period: int | None = 1

    @abstractmethod
    def sees(self, query: Int[Tensor, "*Q"], key: Int[Tensor, "*K"]) -> Bool[Tensor, "*QK"]:
        """Whether a query at this place sees a key at that one; shapes broadcast."""

    @abstractmethod
    def blocks(self, first: int, length: int, causal: bool) -> Iterator[Block]:
        """Blocks that hold all pairs of queries from `first` on with `length` keys; none is in two of them."""

    def reach(self) -> int | None:
        """No query sees a key that lies so many places before it, or more; None: there is no such bound."""
        return None

    def sees_all(self, length: int) -> bool:
        """Whether it forbids nothing in a row of this length."""
        return False

    @property
    def parts(self) -> tuple[Pattern, ...]:
        """The patterns that this one is the union of."""
        return (self,)

    def on(self, grid: Grid) -> Pattern:
        """The same for the places of an image, where it has a meaning of its own there."""
        return self


@dataclass(frozen=True)
class Union(Pattern):
    """Whatever one of its members sees."""

    members: tuple[Pattern, ...]

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return tuple(part for member in self.members for part in member.parts)

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        return functools.reduce(operator.or_, (part.sees(query, key) for part in self.parts))

    def blocks(self, first: int, length: int, causal: bool) -> Iterator[Block]:
        """Of each part; a pair of several parts is in several blocks."""
        for part in self.parts:
            yield from part.blocks(first, length, causal)

    def reach(self) -> int | None:
        far = [part.reach() for part in self.parts]
        return None if None in far else max(reach for reach in far if reach is not None)

    def sees_all(self, length: int) -> bool:
        return any(part.sees_all(length) for part in self.parts)

    def on(self, grid: Grid) -> Union:
        return Union(tuple(member.on(grid) for member in self.members))


@functools.lru_cache(maxsize=64)
def tiles_of(pattern: Pattern, first: int, length: int, causal: bool, device: torch.device) -> tuple[list[Tile], int]:
    """Tiles that hold each pair of the pattern once, and how many pairs they compute."""
    tiles, area = [], 0
    alone = len(pattern.parts) == 1  # the blocks of one part have each query once
    parts = sorted(pattern.parts, key=lambda part: part.period is None)  # those whose blocks are alike come first
    for number, part in enumerate(parts):
        earlier = tuple(parts[:number])
        made: dict[tuple[object, ...], Forbidden | None] = {}
        for asking, answering in part.blocks(first, length, causal):
            query, key = (torch.arange(length)[places] for places in (asking, answering))
            alike = _alike((*earlier, part), asking, answering, len(query), len(key))
            forbidden = made[alike] if alike in made else _forbidden(part, earlier, query, key, causal, device)
            if alike is not None:
                made[alike] = forbidden
            if forbidden is None or not forbidden.everything:
                tiles.append(Tile(_moved(asking, -first), answering, int(key[-1]), forbidden, alone))
                area += len(query) * len(key)
    return tiles, area


def _moved(places: Places, by: int) -> Places:
    return slice(places.start + by, places.stop + by, places.step) if isinstance(places, slice) else places + by


def _forbidden(
    part: Pattern, earlier: tuple[Pattern, ...], query: Tensor, key: Tensor, causal: bool, device: torch.device
) -> Forbidden | None:
    """Which pairs of a block are not part of this pattern, or of an earlier one already; None if all belong to it."""
    asking, answering = query[:, None], key[None, :]
    allowed = part.sees(asking, answering)
    for other in earlier:
        allowed = allowed & ~other.sees(asking, answering)
    if causal:
        allowed = allowed & (answering <= asking)
    return None if allowed.all() else Forbidden(~allowed, device)


def _alike(
    parts: tuple[Pattern, ...], asking: Places, answering: Places, queries: int, keys: int
) -> tuple[object, ...] | None:
    """A key that is equal for blocks with the same allowed pairs; None: no other block has them."""
    periods = [part.period for part in parts]
    if not isinstance(asking, slice) or not isinstance(answering, slice) or None in periods:
        return None
    phase = asking.start % math.lcm(*(period for period in periods if period is not None))
    return asking.start - answering.start, phase, asking.step, answering.step, queries, keys


class PatternAttention(AttentionCore):
    """softargmax(β·q·k)·v over the keys that the pattern lets each query see; places are counted in real tokens.

    learned  (heads, tokens, key width): queries of global tokens that are no part of the row; each attends to all
             of it, and its result is one more key and value for every query

    Padding and caches keep the cost. A mask with `allow` or `bias` is a table of all pairs already, and with one the
    whole table is computed.
    """

    reads_memory = False
    rows = "sums to one"

    def __init__(
        self, pattern: Pattern, *, beta: float | None = None, dropout: float = 0.0, learned: Tensor | None = None
    ) -> None:
        super().__init__()
        self.pattern = pattern
        self.inside = SoftmaxAttention(beta=beta, dropout=dropout)
        self.learned = None if learned is None else nn.Parameter(learned)

    def extra_repr(self) -> str:
        return repr(self.pattern)

    def forward(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Heads:
        mask.check_one_text()
        asking, answering = query.shape[2], key.shape[2]
        pattern = self._pattern(mask, asking, answering)
        found = self._collected(key, mask)
        if found is None and pattern.sees_all(answering):
            return self.inside(query, key, value, mask)
        beta = inverse_temperature(self.inside.beta, query)
        tiles, area = tiles_of(pattern, answering - asking, answering, mask.causal, query.device)
        whole = self._is_whole(area, beta, mask, asking, answering)
        key, value = spread(key, query.shape[1]), spread(value, query.shape[1])
        order = None if mask.keep is None or whole else _real_first(mask.keep)
        if order is not None:
            query, key, value = (_ordered(t, order) for t in (query, key, value))
            found = None if found is None else _ordered(found.mT, order).mT
        more = () if found is None else (found @ key, found @ value)
        if more:
            key, value = torch.cat([key, more[0]], 2), torch.cat([value, more[1]], 2)
        if whole:
            spelled = self._spelled_out(pattern, mask, asking, answering, query.device)
            return self.inside(query, key, value, _with_more(spelled, 0 if found is None else found.shape[2]))
        if found is not None:
            tiles = [
                *(replace(tile, alone=False) for tile in tiles),
                Tile(slice(0, asking), slice(answering, answering + found.shape[2]), -1),
            ]
        dropout = self.inside.dropout if self.training else 0.0
        seed = int(torch.randint(2**62, ())) if dropout else 0
        lengths = None if mask.keep is None else mask.keep.sum(1)
        shortest = 0 if lengths is None or not len(lengths) else int(lengths.min())
        heads = attend(query, key, value, Tiling(tiles, beta, lengths, shortest, dropout, seed))
        return heads if order is None else _ordered(heads, order.argsort(dim=1))

    @staticmethod
    def _is_whole(area: int, beta: float, mask: Mask, asking: int, answering: int) -> bool:
        """Whether the whole table is computed, and not the tiles, which have so many pairs."""
        spelled_out = mask.allow is not None or mask.bias is not None or beta == 0 or math.isinf(beta)
        uneven = mask.keep is not None and asking != answering
        return spelled_out or uneven or area > MAX_TILED_SHARE * asking * answering

    def operations(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Iterator[Work]:
        """Whole, as softmax attention is, or in tiles, which backward computes again."""
        rows, heads, asking, width = query.shape
        answering, values = key.shape[2], value.shape[3]
        pattern = self._pattern(mask, asking, answering)
        learned, choice = 0 if self.learned is None else self.learned.shape[1], not self.teaches_queries
        if learned:
            yield work_of_pairs(rows, heads, learned, answering, (2 * width, values), choice=choice)
        elif pattern.sees_all(answering):
            yield from self.inside.operations(query, key, value, mask)
            return
        _, area = tiles_of(pattern, answering - asking, answering, mask.causal, torch.device("cpu"))
        if self._is_whole(area, inverse_temperature(self.inside.beta, query), mask, asking, answering):
            yield work_of_pairs(rows, heads, asking, answering + learned, (width, values), choice=choice)
        else:
            pairs = 2.0 * rows * heads * (area + asking * learned)
            yield Work(pairs * (width + values), pairs * (3 * width + 2 * values))

    @property
    def teaches_queries(self) -> bool:
        return self.inside.teaches_queries

    def weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Weights:
        asking, answering = query.shape[2], key.shape[2]
        pattern = self._pattern(mask, asking, answering)
        spelled = self._spelled_out(pattern, mask, asking, answering, query.device)
        found = self._collected(key, mask)
        if found is None:
            return self.inside.weights(query, key, spelled)
        key = spread(key, query.shape[1])
        every = self.inside.weights(query, torch.cat([key, found @ key], 2), _with_more(spelled, found.shape[2]))
        return every[..., :answering] + every[..., answering:] @ found

    def allowed(self, mask: Mask, asking: int, answering: int, device: torch.device) -> Allowed | None:
        if self.learned is not None:  # attends to every real token, and every query attends to it
            return super().allowed(mask, asking, answering, device)
        spelled = self._spelled_out(self._pattern(mask, asking, answering), mask, asking, answering, device)
        return spelled.allowed(asking, answering, device)

    def scored(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Scored:
        """Learned tokens are keys too, behind the others."""
        asking, answering = query.shape[2], key.shape[2]
        spelled = self._spelled_out(self._pattern(mask, asking, answering), mask, asking, answering, query.device)
        found = self._collected(key, mask)
        if found is None:
            return self.inside.scored(query, key, spelled)
        key = spread(key, query.shape[1])
        return self.inside.scored(query, torch.cat([key, found @ key], 2), _with_more(spelled, found.shape[2]))

    def _collected(self, key: Keys, mask: Mask) -> Float[Tensor, "B H M S"] | None:
        """How much each learned token takes of each key; None if there are no such tokens."""
        if self.learned is None:
            return None
        parts = {"causal": mask.causal, "allow": mask.allow is not None, "bias": mask.bias is not None}
        for name, given in parts.items():
            if given:
                raise self._has_read_all(f"Mask {name}")
        return self.inside.weights(self.learned.expand(len(key), -1, -1, -1), key, Mask(keep=mask.keep))

    @staticmethod
    def _has_read_all(what: str) -> UnsupportedError:
        given = f"{what} with learned global tokens, which have read every token"
        return UnsupportedError(given, expected="no mask but keep, and no cache; or global tokens by their places")

    def new_cache(self, capacity: int | None = None) -> Cache:
        if self.learned is not None:
            raise self._has_read_all("a cache")
        return RollingCache(capacity, self.pattern.reach())

    def recall(self, query: Queries, key: Tensor | None, value: Tensor | None, mask: Mask, cache: Cache) -> Heads:
        if not isinstance(cache, RollingCache) or key is None or value is None:
            raise UnsupportedError(f"a {type(cache).__name__} was given", expected="this module's own new_cache()")
        asking, fresh = query.shape[2], cache.length == 0
        mask.check(query.shape[0], query.shape[1], asking, cache.length + asking, ignore_keep=True)
        keys, values, keep = cache.extend(key, value, mask.keep)
        whole = replace(mask, keep=keep)
        if fresh:
            return self._then_forget(cache, mask, self(query, keys, values, whole))
        at = cache.positions(query.device)
        if asking == 1 and keep is None and mask.allow is None and mask.bias is None:
            seen = self.pattern.sees(at[-1:], at).nonzero()[:, 0]
            found = self.inside(query, keys[:, :, seen], values[:, :, seen])
        else:
            found = self.inside(query, keys, values, _with_places(self.pattern, whole, at[..., -asking:], at))
        return self._then_forget(cache, mask, found)

    @staticmethod
    def _then_forget(cache: RollingCache, mask: Mask, found: Heads) -> Heads:
        if mask.bias is None and mask.allow is None:  # tables over all tokens need all of them to be there
            cache.forget()
        return found

    def _pattern(self, mask: Mask, asking: int, answering: int) -> Pattern:
        if asking > answering:
            raise UnsupportedError(f"{asking} queries for {answering} keys", expected="a key for each query: a pattern")
        if mask.grid is None:
            return self.pattern
        if mask.grid.places != answering:
            raise ShapeError(f"{answering} tokens", expected=f"{mask.grid.places}, as in {mask.grid}")
        return self.pattern.on(mask.grid)

    @staticmethod
    def _spelled_out(pattern: Pattern, mask: Mask, asking: int, answering: int, device: torch.device) -> Mask:
        """The mask with all that the pattern forbids; the last query is at the position of the last key."""
        at = torch.arange(answering, device=device) if mask.keep is None else (mask.keep.cumsum(1) - 1).clamp(min=0)
        return _with_places(pattern, mask, at[..., -asking:], at)


def _with_places(pattern: Pattern, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    seen = pattern.sees(query[..., :, None], key[..., None, :])
    seen = seen if seen.dim() == 2 else seen[:, None]
    return replace(mask, allow=seen if mask.allow is None else mask.allow & seen)


def _with_more(mask: Mask, more: int) -> Mask:
    """The mask for so many more keys, which every query may see."""
    if not more or mask.allow is None:
        return mask
    keep = None if mask.keep is None else F.pad(mask.keep, (0, more), value=True)
    return replace(mask, allow=F.pad(mask.allow, (0, more), value=True), keep=keep)


def _real_first(keep: Bool[Tensor, "B S"]) -> Int[Tensor, "B S"]:
    """Slots in an order in which the real tokens of each row come first: places are counted from there."""
    return (~keep).to(torch.uint8).argsort(dim=1, stable=True)


def _ordered(x: Float[Tensor, "B H S K"], order: Int[Tensor, "B S"]) -> Float[Tensor, "B H S K"]:
    return x.gather(2, order[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))


def _count(places: Places, length: int) -> int:
    return len(range(*places.indices(length))) if isinstance(places, slice) else len(places)


class PatternConfig(HeadsConfig):
    """The fields of every kind that is softmax over a pattern."""

    beta: Amount | None = None
    dropout: Share = 0.0

    def pattern(self) -> Pattern:
        """Who sees whom."""
        raise UnsupportedError(f"attention kind {self.kind!r} has no pattern of its own")

    def for_memory(self) -> SoftmaxConfig:
        return SoftmaxConfig.like(self)

    @property
    def learned(self) -> int:
        """How many tokens it has that are no part of the row."""
        return 0

    @property
    def writes(self) -> bool:
        return not self.learned

    def leaves_nothing_out(self, length: int) -> bool:
        return not self.learned and self.pattern().sees_all(length)

    @property
    def by_rows(self) -> bool:
        return self.pattern().on(Grid(2, 2)) != self.pattern()

    def seen(self, length: int, width: int, *, causal: bool) -> float:
        pattern = self.pattern()
        if pattern.sees_all(length):
            return super().seen(length, width, causal=causal)
        pairs = sum(
            _count(asking, length) * _count(answering, length)
            for asking, answering in pattern.blocks(0, length, causal)
        )
        return min(float(length), pairs / length) + 2 * self.learned

    @property
    def takes_bias(self) -> bool:
        return not self.learned

    def core(self) -> PatternAttention:
        if self.learned:
            raise UnsupportedError("learned global tokens without maps", expected="a module: config.build(width)")
        return PatternAttention(self.pattern(), beta=self.beta, dropout=self.dropout)

    def core_for(self, width: int) -> PatternAttention:
        if not self.learned:
            return self.core()
        heads, head_width = self.sizes(width)
        learned = torch.randn(heads, self.learned, head_width) / math.sqrt(head_width)
        return PatternAttention(self.pattern(), beta=self.beta, dropout=self.dropout, learned=learned)
