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
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.blocks import TransformerLayer
from weft.blocks.attention.base import EVERYTHING, Mask
from weft.blocks.attention.heads import Attention
from weft.blocks.attention.softmax import SoftmaxLookup, inverse_temperature
from weft.errors import ConfigError, did_you_mean

log = logging.getLogger(__name__)
Weights = Literal["float32", "bf16", "int8"]
WORTH = 30_000_000  # parameters; below that, reading them takes less time than everything around it
STEPS = 127


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
            if has_loops and type(module.attention.lookup) is SoftmaxLookup:
                module.attention.lookup = OneQueryLookup(module.attention.lookup)
    for module in list(quick.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, _pack(child, weights, has_loops))
    return quick


@functools.cache
def kernels() -> Any:
    """The compiled loops; numba takes a second to load, so only who needs them waits."""
    from weft.generation import kernels as loops

    loops.use_threads()
    return loops


def is_worth_packing(model: nn.Module) -> bool:
    """Whether loops of our own save more time than they take to load."""
    return sum(p.numel() for p in model.parameters()) >= WORTH and _on_processor(model)


def _on_processor(model: nn.Module) -> bool:
    return all(p.device.type == "cpu" and p.dtype == torch.float32 for p in model.parameters())


def _pack(map_: nn.Linear, weights: Weights, has_loops: bool) -> nn.Module:
    form: PackedMap = {"float32": Float32Map, "bf16": BFloat16Map, "int8": Int8Map}[weights](map_)
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
        self.output, self.qk, self.lookup = plain.output, plain.qk, plain.lookup

    def project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        assert memory is None, "only self-attention is joined"
        query, key, value = self.joined(x).split(self.sizes, -1)
        return query, key, value


class OneQueryLookup(SoftmaxLookup):
    """Softmax attention that takes a loop of our own when there is one query a row and all keys are seen."""

    def __init__(self, plain: SoftmaxLookup) -> None:
        super().__init__(beta=plain.beta, dropout=0.0)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = EVERYTHING) -> Tensor:
        beta = inverse_temperature(self.beta, query)
        seen = mask.is_everything or mask.is_causal_only
        if query.shape[2] != 1 or not seen or beta == 0 or math.isinf(beta):
            return super().forward(query, key, value, mask)
        keys, values = _whole_table(key), _whole_table(value)
        if keys is None or values is None:
            return super().forward(query, key, value, mask)
        out = torch.empty(query.shape[0], query.shape[1], value.shape[3])
        asked = query.detach()[:, :, 0].contiguous().numpy()
        kernels().attend(asked, keys.numpy(), values.numpy(), key.shape[2], beta, out.numpy())
        return out[:, :, None]


def _whole_table(part: Tensor) -> Tensor | None:
    """The table (B, G, capacity, K) whose first slots `part` (B, G, S, K) shows, so that the loop gets plain memory."""
    batch, groups, _, width = part.shape
    slots = part.stride(1) // width
    if part.stride() != (groups * slots * width, slots * width, width, 1):
        return None
    needed = (part.storage_offset() + batch * groups * slots * width) * part.element_size()
    if part.untyped_storage().nbytes() < needed:
        return None
    return part.detach().as_strided((batch, groups, slots, width), part.stride())


class PackedMap(nn.Module):
    """x·Wᵀ + bias with the matrix in a form of its own; many rows at once go through torch."""

    loop_rows = 16  # with more rows than this, arithmetic counts and torch's product is faster

    def __init__(self, map_: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = map_.in_features, map_.out_features
        self.bias = None if map_.bias is None else map_.bias.detach()
        self.added = (torch.zeros(self.out_features) if self.bias is None else self.bias).cpu().numpy()
        self.store(map_.weight.detach())

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}"

    def store(self, weight: Tensor) -> None:
        """Keep the matrix (outputs, inputs)."""
        raise NotImplementedError

    def matrix(self) -> Tensor:
        """The matrix in float32, as the loop sees it."""
        raise NotImplementedError

    def loop(self, x: Any, out: Any) -> None:
        """Fill out (M, outputs) from x (M, inputs), both numpy."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        rows = x.numel() // self.in_features
        if rows > self.loop_rows:
            return F.linear(x, self.matrix(), self.bias)
        out = torch.empty(*x.shape[:-1], self.out_features)
        flat = x.detach().contiguous().view(rows, self.in_features)
        self.loop(flat.numpy(), out.view(rows, self.out_features).numpy())
        return out


class Float32Map(PackedMap):
    """The matrix as it is."""

    loop_rows = 8

    def store(self, weight: Tensor) -> None:
        self.weight, self.table = weight, weight.cpu().numpy()

    def matrix(self) -> Tensor:
        return self.weight

    def loop(self, x: Any, out: Any) -> None:
        kernels().times_float32(self.table, self.added, x, out)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.numel() // self.in_features
        if not self.loop_rows < rows <= 64:
            return super().forward(x)
        # with a few dozen rows, the product is faster the other way round: the large matrix first
        product = torch.mm(self.weight, x.reshape(rows, self.in_features).t()).t()
        product = product if self.bias is None else product + self.bias
        return product.reshape(*x.shape[:-1], self.out_features)


class BFloat16Map(PackedMap):
    """Half the bytes: the upper half of every float32, rounded to nearest."""

    def store(self, weight: Tensor) -> None:
        self.halves = weight.bfloat16()
        self.table = self.halves.view(torch.int16).cpu().numpy()

    def matrix(self) -> Tensor:
        return self.halves.float()

    def loop(self, x: Any, out: Any) -> None:
        kernels().times_bfloat16(self.table, self.added, x, out)


class Int8Map(PackedMap):
    """A quarter of the bytes: whole numbers, and one scale for each row."""

    def store(self, weight: Tensor) -> None:
        self.scale = weight.abs().amax(1).clamp(min=1e-30) / STEPS
        self.whole = (weight / self.scale[:, None]).round_().to(torch.int8)
        self.table, self.scales = self.whole.cpu().numpy(), self.scale.cpu().numpy()

    def matrix(self) -> Tensor:
        return self.whole.float().mul_(self.scale[:, None])

    def loop(self, x: Any, out: Any) -> None:
        kernels().times_int8(self.table, self.scales, self.added, x, out)
