"""What blocks cost that compute otherwise with numbers than without, and what comes out of them: multiplications and
additions of their own products of matrices, for inputs of given shapes.

torch's recurrent blocks have a rule here; those of `weft.blocks` say it themselves (`operations`). Either tells what
the block's own products cost, forward and backward, not those of blocks inside it that are asked too. Backward, a
product has two: one for the gradient of each of its factors, if anybody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import Any

import torch
from torch import Tensor, nn

from weft.blocks.attention.base import EVERYTHING, AttentionCore, Mask
from weft.blocks.attentive import AttentiveGRU
from weft.blocks.work import SaysOperations, Work


@singledispatch
def work_of(block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    """What a call of this block costs, as it says, or by the rule below. Of others, products are counted as they are
    made (`flops.py`)."""
    if isinstance(block, SaysOperations):
        yield from block.operations(*args, **kwargs)


def says_operations(block: nn.Module) -> bool:
    """Whether somebody says what this block costs, without the blocks inside it."""
    return isinstance(block, SaysOperations) or work_of.dispatch(type(block)) is not work_of.dispatch(object)


# -- recurrence -------------------------------------------------------------------------------


@work_of.register(nn.RNNBase)
def _recurrence(block: nn.RNNBase, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Work]:
    """Each gate is a map of the input and one of the state; the first state has no gradient unless it was given."""
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


# -- what comes out, without computing it -----------------------------------------------------


@singledispatch
def shape_of(block: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """What a block gives, without numbers; a block that is not known here is run."""
    return NotImplemented


@shape_of.register
def _received(
    block: AttentionCore, query: Tensor, key: Tensor, value: Tensor, mask: Mask = EVERYTHING, **kwargs: Any
) -> Tensor:
    return _empty(query, *query.shape[:3], value.shape[3], gradient=has_gradient(block, (query, key, value)))


@shape_of.register(nn.RNNBase)
def _states(block: nn.RNNBase, x: Tensor, first: Any = None) -> Any:
    directions = 2 if block.bidirectional else 1
    gradient = has_gradient(block, (x, first))
    last = _empty(x, directions * block.num_layers, x.shape[0], block.hidden_size, gradient=gradient)
    out = _empty(x, *x.shape[:2], directions * block.hidden_size, gradient=gradient)
    return out, (last, last) if isinstance(block, nn.LSTM) else last


@shape_of.register
def _looked(block: AttentiveGRU, x: Tensor, state: Tensor, memory: Any) -> tuple[Tensor, Tensor]:
    block.input(x)
    values: Tensor = memory.values
    gradient = has_gradient(block, (x, state, memory.keys))
    query = _empty(x, *x.shape[:2], memory.keys.shape[2], gradient=gradient)
    looks = _empty(x, *x.shape[:2], values.shape[1], gradient=gradient)
    return _empty(x, *x.shape, gradient=gradient), block.attention(query, memory.keys, values, weights=looks)


def _empty(like: Tensor, *shape: int, gradient: bool) -> Tensor:
    return torch.empty(shape, device=like.device, dtype=like.dtype, requires_grad=gradient and torch.is_grad_enabled())


def has_gradient(block: nn.Module, given: Iterable[Any]) -> bool:
    """Whether anybody asks how a result of this block would change: something in it learns, or in what it is given."""
    asks = any(p.requires_grad for p in block.parameters())
    return asks or any(isinstance(one, Tensor) and one.requires_grad for one in given)
