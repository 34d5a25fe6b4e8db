"""What every attention kind shares: the mask (which query may attend to which key), and how a kind is chosen and
called.

Letters: B batch, T query positions, S key positions, D width, H heads, G key/value heads,
K width of a query or key, W width of a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from weft.blocks.cache import Cache, KeyValueCache
from weft.blocks.packed_sequences import PackedSequences
from weft.blocks.roles import ATTENTION_SCORES
from weft.blocks.work import Work, counted
from weft.config import Choice
from weft.errors import ShapeError, UnsupportedError

Stream = Float[Tensor, "B T D"]
Queries = Float[Tensor, "B H T K"]
Keys = Float[Tensor, "B G S K"]
Values = Float[Tensor, "B G S W"]
Heads = Float[Tensor, "B H T W"]
Weights = Float[Tensor, "B H T S"]
Allowed = Bool[Tensor, "*lead T S"]
Rows = Literal["sums to one", "one-hot", "nothing"]  # what a row of weights promises, if it may look at anything


@dataclass(frozen=True)
class Grid:
    """The tokens are the places of an image, row by row. It forbids nothing; kinds of attention may ignore it."""

    rows: int
    columns: int

    @property
    def places(self) -> int:
        """How many tokens that makes."""
        return self.rows * self.columns


@dataclass(frozen=True, eq=False)
class Mask:
    """Which query may attend to which key. All parts are optional, and a pair must be allowed by each that is given.

    causal  position t sees the positions up to its own; with fewer queries than keys the *last* query
            is at the last key (bottom-right), as it must when keys come from a cache
    keep    (B, S) bool: True = a real token of this call, may be attended to; False = padding, whose
            values are never used, be they NaN
    allow   (T, S) or (B or 1, H or 1, T, S) bool: any pattern
    bias    (T, S) or (B or 1, H or 1, T, S) float: added to the scaled scores; −∞ forbids
    bias_forbids  whether the bias holds any −∞; None: looked up, which costs a pass over the bias
    packed  the row is several texts, and each sees itself alone; `allow` and `bias` then speak of
            positions in a text, (longest, longest), and are cut to each one's length
    grid    the tokens are places of an image, for kinds that are local in two directions; forbids nothing
    """

    causal: bool = False
    keep: Tensor | None = None
    allow: Tensor | None = None
    bias: Tensor | None = None
    bias_forbids: bool | None = None
    packed: PackedSequences | None = None
    grid: Grid | None = None

    def __repr__(self) -> str:
        parts = {"keep": self.keep, "allow": self.allow, "bias": self.bias}
        shown = [f"{name}={tuple(t.shape)}" for name, t in parts.items() if t is not None]
        shown += [] if self.packed is None else [repr(self.packed)]
        shown += [] if self.grid is None else [repr(self.grid)]
        return f"Mask({', '.join(['causal'] * self.causal + shown)})"

    def __post_init__(self) -> None:
        for name, part, ranks in (
            ("keep", self.keep, (2,)),
            ("allow", self.allow, (2, 4)),
            ("bias", self.bias, (2, 4)),
        ):
            if part is None:
                continue
            if part.dim() not in ranks:
                shapes = "(B, S)" if name == "keep" else "(T, S) or (B, H, T, S)"
                raise ShapeError(f"Mask {name} has shape {tuple(part.shape)}", expected=shapes)
            if name == "bias" and not part.is_floating_point():
                raise ShapeError(f"Mask bias has type {part.dtype}", expected="floating point, added to the scores")
            if name != "bias" and part.dtype != torch.bool:
                raise ShapeError(f"Mask {name} has type {part.dtype}", expected="bool, True where attending is allowed")
        if self.packed is not None and self.keep is not None:
            raise ShapeError("Mask with keep and packed", expected="one of them: a packed row has no padding")
        if self.bias is not None and self.bias_forbids is None:
            object.__setattr__(self, "bias_forbids", bool((self.bias == -torch.inf).any()))

    @property
    def is_everything(self) -> bool:
        return not self.causal and self._only_causal

    @property
    def is_causal_only(self) -> bool:
        return self.causal and self._only_causal

    @property
    def _only_causal(self) -> bool:
        return self.keep is None and self.allow is None and self.bias is None and self.packed is None

    def check(self, batch: int, heads: int, asking: int, answering: int, *, ignore_keep: bool = False) -> None:
        """Raise `ShapeError` unless every part fits scores of shape (batch, heads, asking, answering)."""
        if not ignore_keep and self.keep is not None and tuple(self.keep.shape) != (batch, answering):
            raise ShapeError(f"Mask keep has shape {tuple(self.keep.shape)}", expected=f"{(batch, answering)} (B, S)")
        scores = (batch, heads, asking, answering)
        if self.packed is not None:
            if (batch, asking, answering) != (1, self.packed.total, self.packed.total):
                given = f"{batch} rows of {answering} tokens"
                raise ShapeError(given, expected=f"one of {self.packed.total}, as in {self.packed}")
            scores = (batch, heads, self.packed.longest, self.packed.longest)
        for name, part in (("allow", self.allow), ("bias", self.bias)):
            if part is None:
                continue
            lead_fits = all(n in (1, m) for n, m in zip(part.shape[:-2], scores, strict=False))
            if tuple(part.shape[-2:]) != scores[2:] or not lead_fits:
                given = f"Mask {name} has shape {tuple(part.shape)}"
                raise ShapeError(given, expected=f"{scores[2:]} (T, S) or one that broadcasts to {scores} (B, H, T, S)")

    def allowed(self, asking: int, answering: int, device: torch.device) -> Allowed | None:
        """All forbidden pairs as one bool tensor that broadcasts to the scores; None if there are none."""
        self.check_one_text()
        parts: list[Tensor] = []
        if self.causal:
            square = torch.ones(asking, answering, dtype=torch.bool, device=device)
            parts.append(square.tril(answering - asking))
        if self.keep is not None:
            parts.append(self.keep[:, None, None, :])
        if self.allow is not None:
            parts.append(self.allow)
        if self.bias is not None and self.bias_forbids:
            parts.append(self.bias != -torch.inf)
        if not parts:
            return None
        together = parts[0]
        for part in parts[1:]:
            together = together & part
        return together.expand(*together.shape[:-2], asking, answering)

    def check_one_text(self) -> None:
        """Raise `UnsupportedError` for several texts in a row: the caller of a core has to split them."""
        if self.packed is not None:
            raise UnsupportedError(f"{self.packed} for a kind that cannot cut them", expected="one text in each row")

    def in_text(self, length: int) -> Mask:
        """The mask inside each text of this length of a packed row."""
        cut = (slice(length), slice(length))
        allow = None if self.allow is None else self.allow[..., *cut]
        bias = None if self.bias is None else self.bias[..., *cut]
        return replace(self, allow=allow, bias=bias, packed=None)


EVERYTHING = Mask()
CAUSAL = Mask(causal=True)


class Scored(NamedTuple):
    """What a softmax is taken of: scores, scaled and with their bias, and which of them count (None: all)."""

    scores: Weights
    allowed: Allowed | None


class AttentionCore(nn.Module):
    """Attention without its maps: queries look values up by keys. One subclass per way of weighing.

    `forward` may use the fastest kernel; `weights` computes, from the same inputs, the weights that it uses, for
    looking inside. The conformance suite tests that both agree.

    reads_memory     whether queries may come from another stream than keys and values (cross-attention)
    reads_elsewhere  whether they always do
    rows             what a row of its weights promises; entropy and shares are shown where it sums to one
    unit             what a column of its scores is

    `operations` and `rows` hold for the class that defines them: a subclass defines them again.
    """

    role = ATTENTION_SCORES
    reads_memory: ClassVar[bool] = True
    reads_elsewhere: ClassVar[bool] = False
    rows: ClassVar[Rows] = "nothing"
    unit: ClassVar[Literal["token", "summary", "channel"]] = "token"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "operations" not in cls.__dict__:
            cls.operations = AttentionCore.operations  # type: ignore[method-assign]
        if "rows" not in cls.__dict__:
            cls.rows = AttentionCore.rows

    def forward(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Heads:
        raise UnsupportedError(f"{type(self).__name__} does not define forward()")

    def operations(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Iterator[Work]:
        """What a call costs; counted on the meta device for a kind that does not define it."""
        yield counted(self, query, key, value, mask)

    @property
    def teaches_queries(self) -> bool:
        """Whether queries and keys get a gradient: an argmax gives them none."""
        return True

    def new_cache(self, capacity: int | None = None) -> Cache:
        """What this kind remembers of earlier calls; by default all keys and values."""
        return KeyValueCache(capacity)

    def recall(
        self, query: Queries, key: Tensor | None, value: Tensor | None, mask: Mask, cache: Cache
    ) -> Float[Tensor, "B H T W"]:
        """Take new keys and values (None: there are none) into the cache, and look up in all it holds.

        `mask.keep` covers the new tokens alone, `mask.allow` and `mask.bias` all tokens.
        """
        if not isinstance(cache, KeyValueCache):
            raise UnsupportedError(f"a {type(cache).__name__} was given", expected="this module's own new_cache()")
        answering = cache.length + (0 if key is None else key.shape[2])
        mask.check(query.shape[0], query.shape[1], query.shape[2], answering, ignore_keep=True)
        if key is not None and value is not None:
            cache.extend(key, value, mask.keep)
        return self(query, cache.key, cache.value, replace(mask, keep=cache.keep))

    def weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Weights:
        raise UnsupportedError(f"{type(self).__name__} has no table of attention weights to show")

    def table(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Float[Tensor, "B H I J"]:
        """What is drawn: the weights; where channels look at each other, those of the channels."""
        return self.weights(query, key, mask)

    def allowed(self, mask: Mask, asking: int, answering: int, device: torch.device) -> Allowed | None:
        """Which query may attend to which key, by the mask and by the kind's own rule; None: every pair is allowed."""
        return mask.allowed(asking, answering, device)

    def scored(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Scored:
        """The scores whose softmax is in use, for looking inside; a kind that takes none leaves it out."""
        raise UnsupportedError(f"{type(self).__name__} gives no scores that a softmax is taken of")


@runtime_checkable
class Mixer(Protocol):
    """A token mixer, the part of a layer where attention is: a map from a stream to a stream.

    With `memory`, queries come from the stream and keys and values from the memory (cross-attention). With `cache`, the
    tokens of earlier calls are included. A kind raises `UnsupportedError` for arguments that it does not support.
    """

    def __call__(
        self, x: Tensor, memory: Tensor | None = None, *, mask: Mask = EVERYTHING, cache: Cache | None = None
    ) -> Tensor: ...

    def new_cache(self, capacity: int | None = None) -> Cache: ...


class AttentionConfig(Choice):
    """Which attention, by its kind: `AttentionConfig.registry` lists them, `.build(width)` makes the module.

    A list of kinds alternates through the depth: a model calls `for_layer` before it builds one.

    description   what the kind does, in a sentence without a full stop
    cost          what grows with the number of tokens N, in words; K is the width of a head
    small_fields  fields with which a row of a dozen tokens shows what the kind leaves out
    """

    several = "alternating"
    description: ClassVar[str] = "It has no description"
    cost: ClassVar[str] = "it does not say"
    small_fields: ClassVar[Mapping[str, Any]] = {}

    @property
    def members(self) -> tuple[AttentionConfig, ...]:
        """The kinds that it is made of; most are one."""
        return (self,)

    @property
    def turns(self) -> int:
        """The period of the kinds through the depth: how many layers come before the first kind repeats."""
        return 1

    @property
    def writes(self) -> bool:
        """Whether it supports a causal mask, as a model that writes needs."""
        return True

    @property
    def takes_bias(self) -> bool:
        """Whether it has scores, to which positions such as ALiBi and relative ones could be added."""
        return True

    @property
    def by_rows(self) -> bool:
        """Whether it uses the rows and columns of an image, so that every token must have a place there."""
        return False

    def seen(self, length: int, width: int, *, causal: bool) -> float:
        """The average number of keys that a query is compared with in a stream of this width: the cost."""
        return length / (2 if causal else 1)

    def leaves_nothing_out(self, length: int) -> bool:
        """Whether it is a sparse kind that still sees all of a row of this length."""
        return False

    def for_memory(self) -> AttentionConfig:
        """The settings for cross-attention, where positions in this stream have no meaning."""
        return self

    def for_layer(self, number: int) -> AttentionConfig:
        """The settings in the layer of this number, from 0: a kind may differ in every second one."""
        return self

    def build(self, width: int, *, qk: nn.Module | None = None) -> nn.Module:
        """The module for a stream of this width; `qk` acts on queries and keys (rotary, q/k norm)."""
        raise UnsupportedError(f"attention kind {self.kind!r} cannot be built on its own")

    def sizes(self, width: int) -> tuple[int, int]:
        """Heads and head width for a stream of this width: what positions inside attention need to know."""
        raise UnsupportedError(f"attention kind {self.kind!r} has no heads")

    def core(self) -> AttentionCore:
        """The kind without its maps, as `weft.attention` uses it."""
        raise UnsupportedError(f"attention kind {self.kind!r} does not exist without its learned maps")

    def core_for_keys(self, key_width: int) -> AttentionCore:
        """The same for keys of this width, which a kind may need to know."""
        return self.core()


def spread(kv: Float[Tensor, "B G *rest"], heads: int) -> Float[Tensor, "B H *rest"]:
    """Each key/value head once for every query head that reads it."""
    groups = kv.shape[1]
    return kv if groups == heads else kv.repeat_interleave(heads // groups, dim=1)
