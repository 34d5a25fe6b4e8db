"""A model made ready for decoding: maps joined, and kept in float32, bf16 or int8 where loops can read them fast.

    quick = packed(model, "int8")        # a copy that shares what it can; `model` and its names stay as they are

Decoding multiplies a few vectors by every matrix of the model, so its speed is the speed of reading them: half the
bytes, twice the tokens. int8 rounds each row of a matrix to 127 steps of its largest entry. The loops are in
`kernels.py`; without numba the same numbers are used at torch's own speed.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.blocks import TransformerLayer
from weft.blocks.attention.base import Mask
from weft.blocks.attention.heads import Attention
from weft.blocks.attention.softmax import SoftmaxAttention, inverse_temperature
from weft.blocks.cache import Cache, KeyValueCache
from weft.errors import ConfigError, did_you_mean

log = logging.getLogger(__name__)
Weights = Literal["float32", "bf16", "int8"]
MIN_PARAMETERS = 30_000_000  # parameters; below that, reading them takes less time than everything around it
QUANTISATION_STEPS = 127


def packed(model: nn.Module, weights: Weights = "float32") -> nn.Module:
    """A copy of the model for use without gradients, with its maps in the given form.

    On another device than the processor, bf16 is a plain cast, and int8 has the rounded numbers in float32.
    """
    if weights not in get_args(Weights):
        raise ConfigError(f"weights {weights!r}", advice=did_you_mean(str(weights), get_args(Weights)))
    quick = copy.deepcopy(model, {id(p): p for p in [*model.parameters(), *model.buffers()]}).eval()
    has_loops = importlib.util.find_spec("numba") is not None and _on_processor(quick)
    if not has_loops and weights != "float32":
        log.warning("%s weights without their fast loops: pip install 'weft[fast]' for the speed", weights)
    for module in quick.modules():
        if isinstance(module, TransformerLayer) and type(module.attention) is Attention:
            module.attention = JoinedAttention(module.attention)
            if has_loops and type(module.attention.core) is SoftmaxAttention:
                module.attention.core = OneQueryAttention(module.attention.core)
    arena = Arena()
    for module in list(quick.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, _pack(child, weights, has_loops, arena))
            elif type(child) is nn.Dropout:
                setattr(module, name, nn.Identity())
    return quick


@functools.cache
def kernels() -> Any:
    """The compiled loops; numba takes a second to load, so only who needs them waits."""
    from weft.generation import kernels as loops

    loops.use_threads()
    return loops


def is_worth_packing(model: nn.Module) -> bool:
    """Whether loops of our own save more time than they take to load."""
    return sum(p.numel() for p in model.parameters()) >= MIN_PARAMETERS and _on_processor(model)


def _on_processor(model: nn.Module) -> bool:
    return all(p.device.type == "cpu" and p.dtype == torch.float32 for p in model.parameters())


def _pack(map_: nn.Linear, weights: Weights, has_loops: bool, arena: Arena) -> nn.Module:
    forms: dict[str, Callable[[nn.Linear, Arena], PackedMap]]
    forms = {"float32": Float32Map, "bf16": BFloat16Map, "int8": Int8Map}
    form = forms[weights](map_, arena)
    if has_loops:
        return form
    plain = nn.Linear(map_.in_features, map_.out_features, bias=False, device="meta")
    plain.weight, plain.bias = nn.Parameter(form.matrix(), requires_grad=False), map_.bias
    return plain


class JoinedAttention(Attention):
    """Attention over its own stream whose query, key and value maps are one product."""

    def __init__(self, plain: Attention) -> None:
        nn.Module.__init__(self)
        self.width, self.heads, self.kv_heads = plain.width, plain.heads, plain.kv_heads
        maps = [plain.query, plain.key, plain.value]
        self.sizes = [map_.out_features for map_ in maps]
        self.joined = nn.Linear(plain.width, sum(self.sizes), bias=False, device="meta")
        self.joined.weight = nn.Parameter(torch.cat([map_.weight.detach() for map_ in maps]), requires_grad=False)
        if plain.query.bias is not None:
            biases = torch.cat([map_.bias.detach() for map_ in maps])
            self.joined.bias = nn.Parameter(biases, requires_grad=False)
        self.output, self.qk, self.core = plain.output, plain.qk, plain.core

    def project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        assert memory is None, "only self-attention is joined"
        query, key, value = self.joined(x).split(self.sizes, -1)
        return query, key, value


class OneQueryAttention(SoftmaxAttention):
    """Softmax attention that takes a loop of our own when one query a row sees all that the cache holds."""

    def __init__(self, plain: SoftmaxAttention) -> None:
        super().__init__(beta=plain.beta, dropout=0.0)

    def recall(self, query: Tensor, key: Tensor | None, value: Tensor | None, mask: Mask, cache: Cache) -> Tensor:
        beta = inverse_temperature(self.beta, query)
        plain = query.shape[2] == 1 and mask.is_causal_only and 0 < beta < math.inf
        if not plain or key is None or value is None or type(cache) is not KeyValueCache:
            return super().recall(query, key, value, mask, cache)
        cache.extend(key, value)
        if cache.keep is not None or torch.is_grad_enabled():  # ragged rows, or tables that autograd may hold
            return self(query, cache.key, cache.value, replace(mask, keep=cache.keep))
        keys, values = cache.tables
        out = torch.empty(query.shape[0], query.shape[1], values.shape[3])
        asked = query[:, :, 0].contiguous().numpy()
        kernels().attend(asked, keys.numpy(), values.numpy(), cache.length, beta, out.numpy())
        return out[:, :, None]


class Arena:
    """Memory in large blocks, which the system backs by huge pages: fewer addresses to look up while reading."""

    BLOCK = 64 << 20

    def __init__(self) -> None:
        self.block = np.empty(0, dtype=np.uint8)

    def keep(self, tensor: Tensor) -> NDArray[Any]:
        """A copy of the tensor in the arena, as numpy sees it."""
        given = tensor.cpu().numpy()
        if given.nbytes > self.block.nbytes:
            self.block = np.empty(max(self.BLOCK, given.nbytes), dtype=np.uint8)
        room, self.block = self.block[: given.nbytes], self.block[-(-given.nbytes // 64) * 64 :]
        copy = room.view(given.dtype).reshape(given.shape)
        copy[...] = given
        return copy


class PackedMap(nn.Module, ABC):
    """x·Wᵀ + bias with the matrix in a form of its own; many rows at once go through torch.

    table   (N, D) the matrix as the loops read it
    scales  (N) what each of its rows is multiplied by
    """

    LOOPED = 16  # with more rows than this, arithmetic counts and torch's product is faster
    MIN_KERNEL_OUTPUTS = 6  # outputs that the loop for several rows needs

    def __init__(self, map_: nn.Linear, arena: Arena) -> None:
        super().__init__()
        self.in_features, self.out_features = map_.in_features, map_.out_features
        self.bias = None if map_.bias is None else map_.bias.detach()
        self.added = (torch.zeros(self.out_features) if self.bias is None else self.bias).cpu().numpy()
        self.scales = np.ones(self.out_features, dtype=np.float32)
        self.table = self.store(map_.weight.detach(), arena)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}"

    @abstractmethod
    def store(self, weight: Tensor, arena: Arena) -> NDArray[Any]:
        """The table for a matrix (outputs, inputs)."""

    @abstractmethod
    def matrix(self) -> Tensor:
        """The matrix in float32, as the loops see it."""

    def forward(self, x: Tensor) -> Tensor:
        rows = x.numel() // self.in_features
        if rows > self.LOOPED or (rows > 1 and self.out_features < self.MIN_KERNEL_OUTPUTS):
            return self.product(x, rows)
        out = torch.empty(*x.shape[:-1], self.out_features)
        flat, filled = (x.detach() if x.requires_grad else x).contiguous(), out.view(rows, self.out_features).numpy()
        if rows == 1:
            loop, given, filled = kernels().times_one, flat.view(self.in_features).numpy(), filled[0]
        else:
            loop, given = kernels().times_some, flat.view(rows, self.in_features).numpy()
        loop(self.table, self.scales, self.added, given, filled)
        return out

    def product(self, x: Tensor, rows: int) -> Tensor:
        """By torch, for many rows."""
        return F.linear(x, self.matrix(), self.bias)


class Float32Map(PackedMap):
    """The matrix as it is. It moves into the arena, and the model's own parameter with it: memory is used once."""

    def __init__(self, map_: nn.Linear, arena: Arena) -> None:
        super().__init__(map_, arena)
        if map_.weight.device.type == "cpu":
            map_.weight.data = self.weight

    def store(self, weight: Tensor, arena: Arena) -> NDArray[Any]:
        if weight.device.type != "cpu":
            self.weight = weight
            return weight.cpu().numpy()
        table = arena.keep(weight)
        self.weight = torch.from_numpy(table)
        return table

    def matrix(self) -> Tensor:
        return self.weight

    def product(self, x: Tensor, rows: int) -> Tensor:
        if rows > 64:
            return super().product(x, rows)
        # with a few dozen rows, the product is faster the other way round: the large matrix first
        turned = torch.mm(self.weight, x.reshape(rows, self.in_features).t()).t()
        turned = turned if self.bias is None else turned + self.bias
        return turned.reshape(*x.shape[:-1], self.out_features)


class BFloat16Map(PackedMap):
    """Half the bytes: the upper half of every float32, rounded to nearest."""

    def store(self, weight: Tensor, arena: Arena) -> NDArray[Any]:
        self.device = weight.device
        return arena.keep(weight.contiguous().bfloat16().view(torch.int16))

    def matrix(self) -> Tensor:
        return torch.from_numpy(self.table).view(torch.bfloat16).float().to(self.device)


class Int8Map(PackedMap):
    """A quarter of the bytes: whole numbers, and one scale for each row."""

    def store(self, weight: Tensor, arena: Arena) -> NDArray[Any]:
        scale = weight.abs().amax(1).clamp(min=1e-30) / QUANTISATION_STEPS
        self.scales, self.device = scale.cpu().numpy(), weight.device
        return arena.keep((weight / scale[:, None]).round_().to(torch.int8))

    def matrix(self) -> Tensor:
        whole = torch.from_numpy(self.table).float().mul_(torch.from_numpy(self.scales)[:, None])
        return whole.to(self.device)
