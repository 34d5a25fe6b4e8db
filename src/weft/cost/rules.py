"""How many multiplications and additions each block costs for inputs of given shapes: the products of matrices, which
are nearly all of it. What works on each number alone (norms, activations, softmax) is not counted, nor are lookups.

A rule tells of a block what its own products cost, forward and backward, and not those of blocks inside it, which have
rules of their own. Backward, a product has two: one for the slope of each of its factors, if anybody asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, cast

import torch
from torch import Tensor, nn

from weft.blocks.attention.additive import AdditiveLookup
from weft.blocks.attention.base import EVERYTHING, Lookup, Mask
from weft.blocks.attention.channel import ChannelLookup
from weft.blocks.attention.hard import HardLookup
from weft.blocks.attention.heads import Attention
from weft.blocks.attention.hierarchy import HierarchyLookup
from weft.blocks.attention.kernel import CHUNK, GROUP, KernelLookup
from weft.blocks.attention.pattern import WORTH_CUTTING, PatternLookup, tiles_of
from weft.blocks.attention.random_features import RandomFeatureLookup
from weft.blocks.attention.softmax import SoftmaxLookup, inverse_temperature
from weft.blocks.attention.window import WindowLookup
from weft.blocks.attentive import AttentiveGRU
from weft.models import BagOfWords
from weft.models.word2vec import Word2Vec


@dataclass(frozen=True)
class Work:
    """Operations of one call of a block.

    part     where they belong, if not to the block's own part
    unseen   those forward for pairs that a causal mask forbids: a fast kernel leaves them out
    """

    forward: float
    backward: float
    part: str = ""
    unseen: float = 0.0


@singledispatch
def work_of(block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    """What a call of this block costs; nothing by default."""
    yield from ()


@work_of.register
def _map(block: nn.Linear, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    x = args[0]
    forward = 2.0 * x.numel() * block.out_features
    yield Work(forward, forward * (x.requires_grad + block.weight.requires_grad))


@work_of.register(nn.Conv1d)
@work_of.register(nn.Conv2d)
def _convolution(block: nn.Conv1d | nn.Conv2d, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    x = args[0]
    padding = cast(tuple[int, ...], block.padding)
    sides = zip(x.shape[2:], padding, block.dilation, block.kernel_size, block.stride, strict=True)
    places = math.prod((size + 2 * pad - far * (kernel - 1) - 1) // step + 1 for size, pad, far, kernel, step in sides)
    forward = 2.0 * x.shape[0] * places * block.weight.numel()
    yield Work(forward, forward * (x.requires_grad + block.weight.requires_grad))


# -- attention --------------------------------------------------------------------------------


@work_of.register
def _softmax(block: SoftmaxLookup, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    query, key, value = args[:3]
    yield _table(query, key, value, _mask(args, kwargs))


def _table(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Work:
    """Scores of all pairs, and values weighed by them."""
    rows, heads, asking, width = query.shape
    answering = key.shape[2]
    forward = 2.0 * rows * heads * asking * answering * (width + value.shape[3])
    unseen = (asking - 1) / (2 * answering) if mask.causal and asking > 1 else 0.0
    return Work(forward, 2 * forward, unseen=forward * unseen)


@work_of.register
def _hard(block: HardLookup, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    query, key, value = args[:3]
    if block.learning != "argmax":
        yield _table(query, key, value, EVERYTHING)
    else:
        yield Work(2.0 * query.numel() * key.shape[2], 0.0)  # a choice has no slope


@work_of.register
def _attention(block: Attention, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    """Its maps and its lookup tell their own; but through a plain choice no slope reaches queries and keys."""
    if isinstance(block.lookup, HardLookup) and block.lookup.learning == "argmax":
        memory = args[1] if len(args) > 1 else kwargs.get("memory")
        asking, answering = args[0].numel(), (args[0] if memory is None else memory).numel()
        missing = asking * block.query.out_features + answering * block.key.out_features
        yield Work(0.0, -4.0 * missing)


@work_of.register
def _channel(block: ChannelLookup, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    query, _, value = args[:3]
    forward = 2.0 * query.numel() * (query.shape[3] + value.shape[3])
    yield Work(forward, 2 * forward)


@work_of.register
def _hierarchy(block: HierarchyLookup, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    query, key, value = args[:3]
    rows, heads, asking, width = query.shape
    pairs = rows * heads * block.summaries.shape[1]
    collect = key.shape[2] * (2 * width + value.shape[3])
    forward = 2.0 * pairs * (collect + asking * (width + value.shape[3]))
    yield Work(forward, 2 * forward)


@work_of.register
def _kernel(block: KernelLookup, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    query, key, value = args[:3]
    rows, heads, asking, width = query.shape
    groups, answering = key.shape[1:3]
    features, values = width, value.shape[3] + 1
    if isinstance(block, RandomFeatureLookup):
        features = len(block.directions)
        drawn = 2.0 * (query.numel() + key.numel()) * features
        yield Work(drawn, drawn)  # directions do not learn
    if not _mask(args, kwargs).causal:
        forward = 2.0 * rows * features * values * (groups * answering + heads * asking)
        yield Work(forward, 2 * forward)
        return
    forward = 0.0
    for start in range(0, asking, GROUP):
        size = min(GROUP, asking - start)
        chunk = min(CHUNK, size)
        slots = rows * -(-size // chunk) * chunk
        forward += 2.0 * slots * (heads * chunk * (features + values) + (heads + groups) * features * values)
    yield Work(forward, 2 * forward)


@work_of.register
def _pattern(block: PatternLookup, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    """Whole, as softmax attention is, or in tiles, which backward computes again."""
    query, key, value = args[:3]
    mask = _mask(args, kwargs)
    rows, heads, asking, width = query.shape
    answering, values = key.shape[2], value.shape[3]
    learned = 0 if block.learned is None else block.learned.shape[1]
    pattern = block.pattern if mask.grid is None else block.pattern.on(mask.grid)
    if learned:
        forward = 2.0 * rows * heads * learned * answering * (2 * width + values)
        yield Work(forward, 2 * forward)
    elif pattern.sees_all(answering):
        yield _table(query, key, value, mask)
        return
    beta = inverse_temperature(block.inside.beta, query)
    _, area = tiles_of(pattern, answering - asking, answering, mask.causal, torch.device("cpu"))
    whole = mask.allow is not None or mask.bias is not None or beta == 0 or math.isinf(beta)
    if whole or area > WORTH_CUTTING * asking * answering:
        forward = 2.0 * rows * heads * asking * (answering + learned) * (width + values)
        yield Work(forward, 2 * forward)
    else:
        pairs = 2.0 * rows * heads * (area + asking * learned)
        yield Work(pairs * (width + values), pairs * (3 * width + 2 * values))


def _mask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mask:
    return cast(Mask, kwargs.get("mask", args[3] if len(args) > 3 else EVERYTHING))


# -- recurrence -------------------------------------------------------------------------------


@work_of.register(nn.RNNBase)
def _recurrence(block: nn.RNNBase, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    """Each gate is a map of the input and one of the state; the first state has no slope unless it was given."""
    x = args[0]
    tokens, begun = x.numel() / x.shape[-1], len(args) > 1 and args[1] is not None
    later = 1.0 if begun else 1 - 1 / x.shape[1]
    for name, weight in block.named_parameters():
        if name.startswith("weight_ih"):
            forward = 2.0 * tokens * weight.numel()
            yield Work(
                forward, forward * (weight.requires_grad + (x.requires_grad or not name.startswith("weight_ih_l0")))
            )
        elif name.startswith("weight_hh"):
            forward = 2.0 * tokens * weight.numel()
            yield Work(forward, forward * (weight.requires_grad + later))


@work_of.register
def _attentive(block: AttentiveGRU, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    """Step by step: maps of the state, a small network for each pair, and what the memory adds to the gates."""
    x, _, memory = args
    steps, answering = 2.0 * x.shape[0] * x.shape[1], memory.keys.shape[1]
    compared = block.attention.query.weight.shape[0]
    state, query = block.state.weight, block.attention.query.weight
    gates = steps * state.numel()
    yield Work(gates, (1 + state.requires_grad) * gates)
    asked = steps * query.numel()
    yield Work(asked, (1 + query.requires_grad) * asked, "attention maps")
    scored = steps * answering * compared
    learned = block.attention.lookup.score.requires_grad  # the small network's last map, which is one vector
    yield Work(scored, learned * scored, "attention scores")
    mixed = steps * answering * memory.gates.shape[2]
    yield Work(mixed, (1 + memory.gates.requires_grad) * mixed, "attention scores")


@work_of.register
def _additive(block: AdditiveLookup, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    query, key, value = args[:3]
    pairs = 2.0 * query.shape[0] * query.shape[2] * key.shape[2]
    yield Work(pairs * value.shape[3], (1 + value.requires_grad) * pairs * value.shape[3])
    if kwargs.get("weights") is None:
        yield Work(pairs * key.shape[3], pairs * key.shape[3])


# -- families that are one block --------------------------------------------------------------


@work_of.register
def _word_vectors(block: Word2Vec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    context, words = args[0], args[2] if len(args) > 2 else None
    compared = block.output.weight.shape[0] if words is None else words.shape[1]
    forward = 2.0 * context.shape[0] * compared * block.output.weight.shape[1]
    yield Work(forward, 2 * forward, "head")


# -- what comes out, without computing it -----------------------------------------------------


@singledispatch
def shape_of(block: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """What a block gives, without numbers; a block that is not known here is run."""
    return NotImplemented


@shape_of.register
def _received(
    block: Lookup, query: Tensor, key: Tensor, value: Tensor, mask: Mask = EVERYTHING, **kwargs: Any
) -> Tensor:
    return _empty(query, *query.shape[:3], value.shape[3], slope=has_slope(block, (query, key, value)))


@shape_of.register
def _windows(block: WindowLookup, *args: Any, **kwargs: Any) -> Tensor:
    """The windows are softmax attention each, which tells what it costs."""
    return WindowLookup.forward(block, *args, **kwargs)


@shape_of.register(nn.RNNBase)
def _states(block: nn.RNNBase, x: Tensor, first: Any = None) -> Any:
    directions = 2 if block.bidirectional else 1
    slope = has_slope(block, (x, first))
    last = _empty(x, directions * block.num_layers, x.shape[0], block.hidden_size, slope=slope)
    out = _empty(x, *x.shape[:2], directions * block.hidden_size, slope=slope)
    return out, (last, last) if isinstance(block, nn.LSTM) else last


@shape_of.register
def _looked(block: AttentiveGRU, x: Tensor, state: Tensor, memory: Any) -> tuple[Tensor, Tensor]:
    block.input(x)
    values: Tensor = memory.values
    slope = has_slope(block, (x, state, memory.keys))
    query = _empty(x, *x.shape[:2], memory.keys.shape[2], slope=slope)
    looks = _empty(x, *x.shape[:2], values.shape[1], slope=slope)
    return _empty(x, *x.shape, slope=slope), block.attention(query, memory.keys, values, weights=looks)


@shape_of.register
def _bag(block: BagOfWords, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
    return block.classes[0].bias.expand(len(tokens), -1)  # type: ignore[operator]


def _empty(like: Tensor, *shape: int, slope: bool) -> Tensor:
    return torch.empty(shape, device=like.device, dtype=like.dtype, requires_grad=slope and torch.is_grad_enabled())


def has_slope(block: nn.Module, given: Iterable[Any]) -> bool:
    """Whether anybody asks how a result of this block would change: something in it learns, or in what it is given."""
    asks = any(p.requires_grad for p in block.parameters())
    return asks or any(isinstance(one, Tensor) and one.requires_grad for one in given)
