"""Kernel attention: weights are products of features, φ(q)·φ(k), so keys and values are summed before the queries.

    Σₖ φ(q)·φ(k) v / Σₖ φ(q)·φ(k)  =  φ(q)·(Σₖ φ(k) vᵀ) / φ(q)·(Σₖ φ(k))

(Katharopoulos et al. 2020, "Transformers are RNNs".) The two sums are all that is remembered of a text, however long:
time and memory grow with the length, and the next token costs the same at any place. Without the future, the row is cut
into chunks: inside a chunk pairs are computed, and what came before is one sum for each chunk.

A kind says what φ is. Features may be so large or small that only their logarithm is representable: `scale` is that
part of it, one number for each key, and sums are kept relative to the largest so far, which never looks ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from weft.blocks.attention.base import EVERYTHING, AttentionCore, Heads, Keys, Mask, Queries, Values, Weights, spread
from weft.blocks.attention.heads import HeadsConfig
from weft.blocks.attention.softmax import softargmax, unrounded, wide, work_of_pairs
from weft.blocks.cache import Cache, SumCache
from weft.blocks.work import Work
from weft.errors import UnsupportedError

POSITIONS_PER_CHUNK = 128  # in which the scores of all pairs are computed
POSITIONS_PER_GROUP = 4096  # whose features are in memory at once
Features = Float[Tensor, "B H T F"]
Scales = Float[Tensor, "B H T"]


@dataclass(frozen=True, eq=False)
class KernelState:
    """What is remembered of the keys read so far: Σ φ(k) [v, 1] · exp(−top), and top, the largest scale of them."""

    table: Float[Tensor, "B G F W"]
    top: Float[Tensor, "B G"]

    def for_heads(self, heads: int) -> KernelState:
        """Each group's once for every query head that reads it."""
        return KernelState(spread(self.table, heads), spread(self.top, heads))


class Known(NamedTuple):
    """Keys: their features, their values with a 1 behind each, and their scales (None: 0)."""

    features: Features
    table: Float[Tensor, "B G S W"]
    scale: Scales | None


class KernelAttention(AttentionCore):
    """φ(q)·φ(k) as weights, divided by their sum. Subclasses say what `features` are.

    Causal or not, with padding, with a cache of constant size. With `allow` the table of all pairs is computed; a bias
    is refused, because there are no scores to add it to.
    """

    rows = "sums to one"

    def features(self, x: Queries | Keys) -> tuple[Features, Scales | None]:
        """φ(x)·exp(−scale), at least 0, and the scale (None: 0)."""
        raise UnsupportedError(f"{type(self).__name__} does not say what its features are")

    def feature_count(self, key_width: int) -> int:
        """How many features a query or key of this width has."""
        return key_width

    def operations(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Iterator[Work]:
        """Without what the features themselves cost."""
        rows, heads, asking, width = query.shape
        groups, answering = key.shape[1:3]
        features, values = self.feature_count(width), value.shape[3] + 1
        if self._needs_pairs(query, key, mask):
            yield work_of_pairs(rows, heads, asking, answering, (features, value.shape[3]))
            return
        summed = answering - asking if mask.causal else answering  # before the first query
        forward = 2.0 * rows * features * values * (groups * summed + heads * asking * (not mask.causal))
        for start in range(0, asking if mask.causal else 0, POSITIONS_PER_GROUP):
            size = min(POSITIONS_PER_GROUP, asking - start)
            chunk = min(POSITIONS_PER_CHUNK, size)
            slots = rows * -(-size // chunk) * chunk
            forward += 2.0 * slots * (heads * chunk * (features + values) + (heads + groups) * features * values)
        yield Work(forward, 2 * forward)

    @staticmethod
    def _needs_pairs(query: Queries, key: Keys, mask: Mask) -> bool:
        return mask.allow is not None or (mask.causal and query.shape[2] > key.shape[2])

    def forward(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Heads:
        self._check(mask)
        if self._needs_pairs(query, key, mask):
            return self.weights(query, key, mask) @ spread(value, query.shape[1])
        return self._attend(query, key, value, mask, None)[0]

    def weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Weights:
        self._check(mask)
        (asked, _), (found, scale) = self.features(wide(query)), self.features(wide(key))
        scores = (asked @ spread(found, query.shape[1]).mT).log()
        if scale is not None:
            scores = scores + spread(scale, query.shape[1])[:, :, None]
        return softargmax(scores, 1.0, mask.allowed(query.shape[2], key.shape[2], query.device)).to(query.dtype)

    def new_cache(self, capacity: int | None = None) -> Cache:
        return SumCache()

    def recall(self, query: Queries, key: Tensor | None, value: Tensor | None, mask: Mask, cache: Cache) -> Heads:
        self._check(mask)
        if not isinstance(cache, SumCache):
            raise UnsupportedError(f"a {type(cache).__name__} was given", expected="this module's own new_cache()")
        if mask.allow is not None:
            raise UnsupportedError(
                "Mask allow with a cache: what was read is one sum", expected="causal and keep alone"
            )
        before = None if cache.sums is None else KernelState(*cache.sums)
        if key is None or value is None:
            assert before is not None
            asked, _ = self.features(wide(query))
            return _divided(asked @ before.for_heads(query.shape[1]).table).to(query.dtype)
        found, sums = self._attend(query, key, value, mask, before)
        cache.add((sums.table, sums.top), key.shape[2], mask.keep)
        return found

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, before: KernelState | None
    ) -> tuple[Heads, KernelState]:
        """What each query receives, and the sums with these keys in them."""
        with unrounded(query.device):  # sums over a whole text need all their digits
            return self._attend_widely(query, key, value, mask, before)

    def _attend_widely(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, before: KernelState | None
    ) -> tuple[Heads, KernelState]:
        asking, answering = query.shape[2], key.shape[2]
        if not asking or not answering:
            return self._attend_nothing(query, key, value, before)
        past = answering - asking if mask.causal and before is None else 0
        first = past if mask.causal else answering  # so many keys are summed before the first query
        keep = torch.ones_like(key[:, 0, :, 0], dtype=torch.bool) if mask.keep is None else mask.keep
        parts = [
            (t.narrow(n, 0, first), t.narrow(n, first, answering - first)) for t, n in ((key, 2), (value, 2), (keep, 1))
        ]
        for known in self._known(*(part[0] for part in parts), is_padded=mask.keep is not None):
            before = _added(before, known)
        asked = (self.features(wide(part))[0] for part in _groups(query))
        found = []
        if not mask.causal:
            assert before is not None
            table = before.for_heads(query.shape[1]).table
            found = [_divided(part @ table) for part in asked]
        else:
            rest = self._known(*(part[1] for part in parts), is_padded=mask.keep is not None)
            for part, known in zip(asked, rest, strict=True):
                received, before = _causal(part, known, before)
                found.append(_divided(received))
        assert before is not None
        joined = torch.cat([part.transpose(1, 2) for part in found], 1)  # as the output map reads them: heads inside
        return joined.transpose(1, 2).to(query.dtype), before

    def _attend_nothing(
        self, query: Tensor, key: Tensor, value: Tensor, before: KernelState | None
    ) -> tuple[Heads, KernelState]:
        """The result without queries, or without keys."""
        if before is None:
            features, rows = self.features(wide(key))[0], key.shape[:2]
            table = features.new_zeros(*rows, features.shape[3], value.shape[3] + 1)
            before = KernelState(table, table.new_full(rows, -torch.inf))
        return query.new_zeros(*query.shape[:3], value.shape[3]), before

    def _known(self, key: Tensor, value: Tensor, keep: Tensor, *, is_padded: bool) -> Iterator[Known]:
        """Keys with their features and values, a group at a time: of larger tables, the system would take the memory
        back after every step."""
        for keys, values, real in zip(
            torch.split(key, POSITIONS_PER_GROUP, 2),
            torch.split(value, POSITIONS_PER_GROUP, 2),
            torch.split(keep, POSITIONS_PER_GROUP, 1),
            strict=True,
        ):
            if not keys.shape[2]:
                continue
            features, scale = self.features(wide(keys))
            if is_padded:
                features = features.masked_fill(~real[:, None, :, None], 0.0)
                scale = None if scale is None else scale.masked_fill(~real[:, None], -torch.inf)
            ones = torch.ones_like(values[..., :1], dtype=features.dtype)  # sums of weights are one more channel
            yield Known(features, torch.cat([wide(values), ones], -1), scale)

    def _check(self, mask: Mask) -> None:
        mask.check_one_text()
        if mask.bias is not None:
            given = f"Mask bias with {type(self).__name__}: its weights are products of features, not of scores"
            raise UnsupportedError(given, expected="positions that turn queries and keys, or add to the stream: rotary")


def _groups(heads: Float[Tensor, "B H T K"]) -> list[Float[Tensor, "B H N K"]]:
    """Cut along the row. The heads of a position lie side by side in memory; so do then those of the gradient."""
    return [part.transpose(1, 2) for part in torch.split(heads.transpose(1, 2), POSITIONS_PER_GROUP, 1)]


def _divided(sums: Float[Tensor, "B H T W"]) -> Float[Tensor, "B H T V"]:
    """Sums of weighted values by the sum of the weights, which is the last channel; 0 where nothing was seen."""
    values, total = sums[..., :-1], sums[..., -1:]
    return values / total.masked_fill(total == 0, 1.0)


def _added(before: KernelState | None, keys: Known) -> KernelState:
    """The sums with more keys in them."""
    known, table, scale = keys
    if scale is None:
        more = known.mT @ table
        old = before.table if before is not None else None
        return KernelState(more if old is None else old + more, more.new_zeros(more.shape[:2]))
    top = scale.amax(-1) if before is None else torch.maximum(before.top, scale.amax(-1))
    finite = top.masked_fill(top == -torch.inf, 0.0)
    more = (known * (scale - finite[..., None]).exp()[..., None]).mT @ table
    if before is not None:
        more = more + before.table * (before.top - finite).exp()[..., None, None]
    return KernelState(more, top)


def _causal(asked: Features, keys: Known, before: KernelState | None) -> tuple[Float[Tensor, "B H T W"], KernelState]:
    """Each query over the keys up to its own place, and the sums after all of them."""
    known, table, scale = keys
    heads, length = asked.shape[1], asked.shape[2]
    chunk = min(POSITIONS_PER_CHUNK, length)
    filling = -length % chunk  # the last chunk is filled up with keys that weigh nothing
    asked, known, table = (_chunks(F.pad(t, (0, 0, 0, filling)), chunk) for t in (asked, known, table))
    here = asked @ spread(known, heads).mT
    if scale is None:
        sums = known.mT @ table
        start = torch.zeros_like(sums[:, :, :1]) if before is None else before.table[:, :, None]
        states = torch.cat([start, sums], 2).cumsum(2)
        past = asked @ spread(states[:, :, :-1], heads)
        top = states.new_zeros(states.shape[:2])
    else:
        tops = _tops(_chunks(F.pad(scale, (0, filling), value=-torch.inf), chunk), before)
        here = here * spread(tops.inside, heads)
        states = _faded(known.mT @ (table * tops.at_end[..., None]), tops.fade, before)
        past = asked @ spread(states[:, :, :-1], heads) * spread(tops.past, heads)[..., None]
        top = tops.last
    found = here.tril() @ spread(table, heads) + past
    return found.flatten(2, 3)[:, :, :length], KernelState(states[:, :, -1], top)


def _chunks(x: Float[Tensor, "B H T *rest"], chunk: int) -> Float[Tensor, "B H N C *rest"]:
    return x.reshape(*x.shape[:2], -1, chunk, *x.shape[3:])


class _Tops(NamedTuple):
    """Factors, at most 1, that make sums relative to the largest scale which the asking position has seen.

    inside  (…, chunks, chunk, chunk) of a key for a query of its chunk
    past    (…, chunks, chunk) of all that came before the chunk for a query in it
    at_end  (…, chunks, chunk) of a key in the sum of its chunk
    fade    (…, chunks) of all that came before the chunk in the sum after it
    last    the largest scale of all
    """

    inside: Tensor
    past: Tensor
    at_end: Tensor
    fade: Tensor
    last: Tensor


def _tops(scale: Float[Tensor, "B G N C"], before: KernelState | None) -> _Tops:
    nothing = scale.new_full(scale.shape[:2], -torch.inf)
    start = nothing if before is None else before.top
    running = torch.cummax(torch.cat([start[..., None], scale.flatten(2)], 2), 2).values
    ends = running[:, :, :: scale.shape[3]]  # before the first chunk, and after each
    finite = running.masked_fill(running == -torch.inf, 0.0)
    own, after = _chunks(finite[:, :, 1:], scale.shape[3]), finite[:, :, scale.shape[3] :: scale.shape[3]]
    return _Tops(
        inside=(scale[..., None, :] - own[..., None]).clamp(max=0).exp(),  # those after the query are not used
        past=(ends[:, :, :-1, None] - own).exp(),
        at_end=(scale - after[..., None]).exp(),
        fade=(ends[:, :, :-1] - after).exp(),
        last=running[:, :, -1],
    )


def _faded(
    sums: Float[Tensor, "B G N F W"], fade: Float[Tensor, "B G N"], before: KernelState | None
) -> Float[Tensor, "B G M F W"]:
    """The state before the first chunk and after each: earlier sums shrink as larger scales arrive."""
    states = [torch.zeros_like(sums[:, :, 0]) if before is None else before.table]
    for number in range(sums.shape[2]):
        states.append(torch.addcmul(sums[:, :, number], states[-1], fade[:, :, number, None, None]))
    return torch.stack(states, 2)


class KernelConfig(HeadsConfig):
    """The fields of every kind whose weights are products of features."""

    def feature_count(self, width: int) -> int:
        """How many features a query or key has in each head of a stream of this width."""
        return self.sizes(width)[1]

    def seen(self, length: int, width: int, *, causal: bool) -> float:
        # reading a sum costs as much as reading `feature_count` keys
        return float(self.feature_count(width) + min(POSITIONS_PER_CHUNK, length) * causal)

    @property
    def takes_bias(self) -> bool:
        return False
