"""Operations: how many multiplications and additions a block makes for inputs of given shapes.

They are those of products of matrices, which are nearly all of it; what works on each number alone (norms, activations,
softmax) is not counted. Backward, a product has two: one for the gradient of each of its factors that needs one.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

from weft.errors import UnsupportedError


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


@runtime_checkable
class SaysOperations(Protocol):
    """A block that yields the cost of a call, without the blocks inside it that do so themselves."""

    def operations(self, *args: Any, **kwargs: Any) -> Iterator[Work]: ...


def counted(block: nn.Module, *args: Any) -> Work:
    """What a call costs, counted: the block is run once, forward and backward, on tensors that have no numbers.

    Raises `UnsupportedError`, with the block's name, where it cannot run so, or makes no product of matrices. Blocks
    that are alike, such as the layers of a model, are counted once.
    """
    try:
        alike = _alike((block, *args))
    except TypeError:  # it holds something that cannot be hashed
        return _counted(block, *args)
    if alike not in _COUNTED:
        _COUNTED[alike] = _counted(block, *args)
    return _COUNTED[alike]


_COUNTED: dict[Hashable, Work] = {}
# of every module: tensors, hooks and modules inside
_MODULE_ATTRIBUTES = {*vars(nn.Module()), "forward"} - {"training"}


def _alike(value: Any) -> Hashable:
    """A key that is equal for values with which a block computes in the same way."""
    if value is None or isinstance(value, bool | int | float | str | torch.dtype):
        return type(value), value
    if isinstance(value, Tensor):
        return tuple(value.shape), value.dtype, value.requires_grad
    if isinstance(value, tuple):
        return tuple(_alike(one) for one in value)
    if isinstance(value, nn.Module):
        tensors = (*value.named_parameters(recurse=False), *value.named_buffers(recurse=False))
        fields = [(name, one) for name, one in vars(value).items() if name not in _MODULE_ATTRIBUTES]
        return type(value), *(_alike(part) for part in (*fields, *tensors, *value.named_children()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), *(_alike(getattr(value, field.name)) for field in dataclasses.fields(value))
    raise TypeError(type(value).__name__)


def _counted(block: nn.Module, *args: Any) -> Work:
    from torch.utils.flop_counter import FlopCounterMode  # takes a moment to load, and few need it

    name = type(block).__name__
    say = f"{name}.operations, which yields them"
    counter = FlopCounterMode(display=False, custom_mapping=_LEFT_OUT)
    try:
        mode, plain = FakeTensorMode(allow_non_fake_inputs=True), _plain(block)
        with mode:
            weights = {key: _blank(tensor) for key, tensor in (*plain.named_parameters(), *plain.named_buffers())}
            given = [_blank(one) for one in args]
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):  # of the fused kernels, none is counted
            with counter:
                found = torch.func.functional_call(plain, weights, tuple(given))
            forward, backward = counter.get_total_flops(), 0
            if found.requires_grad:
                with counter:
                    found.sum().backward()
                backward = counter.get_total_flops()
    except UnsupportedError:
        raise
    except Exception as error:  # a block may do anything that needs numbers
        why = str(error).strip().splitlines() or [""]
        raise UnsupportedError(
            f"{name} does not define its operations, and they cannot be counted without numbers: "
            f"{type(error).__name__}: {why[0]}",
            expected=say,
        ) from error
    if not forward:
        raise UnsupportedError(
            f"{name} does not define its operations, and makes no product of matrices that could be counted",
            expected=say,
        )
    return Work(float(forward), float(backward))


def _plain(block: nn.Module) -> nn.Module:
    """A copy without hooks, which computes by its own `forward`; its tensors are not copied."""
    kept: dict[int, Any] = {id(tensor): tensor for tensor in (*block.parameters(), *block.buffers())}
    plain = copy.deepcopy(block, kept)
    for module in plain.modules():
        module.__dict__.pop("forward", None)
        module._forward_pre_hooks.clear()
        module._forward_hooks.clear()
    return plain


def _blank(value: Any) -> Any:
    """The tensor, or the tensors of a mask, with nothing but their shapes."""
    if isinstance(value, Tensor):
        return torch.empty(value.shape, dtype=value.dtype).requires_grad_(value.requires_grad)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        tensors = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **{n: _blank(t) for n, t in tensors.items() if isinstance(t, Tensor)})
    return value


def _by_vector(first: Any, *_rest: Any, **_named: Any) -> int:
    return 2 * math.prod(first)


def _added_by_vector(_start: Any, first: Any, *_rest: Any, **_named: Any) -> int:
    return 2 * math.prod(first)


def _fused(query: Any, key: Any, value: Any, *_rest: Any, **_named: Any) -> int:
    return int(2 * math.prod(query[:3]) * key[2] * (query[3] + value[3]))


def _fused_back(_gradient: Any, query: Any, key: Any, value: Any, *_rest: Any, **_named: Any) -> int:
    """The scores are computed again."""
    return int(2 * math.prod(query[:3]) * key[2] * (3 * query[3] + 2 * value[3]))


_LEFT_OUT = {  # by torch's counter: products with a vector, and attention fused for a processor
    name: rule
    for name, rule in (
        (torch.ops.aten.mv, _by_vector),
        (torch.ops.aten.dot, _by_vector),
        (torch.ops.aten.addmv, _added_by_vector),
        (getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None), _fused),
        (getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None), _fused_back),
    )
    if name is not None
}
