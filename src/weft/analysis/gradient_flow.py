"""How far learning reaches: through time, from what is read last to what was read before, and through depth.

In a recurrent network the gradient passes through one map for every token on its way, and shrinks or grows with each
(Hochreiter 1991; Bengio, Simard and Frasconi 1994; Pascanu, Mikolov and Bengio 2013). Attention looks at every token
directly: one step, however far away it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from weft.errors import UnsupportedError
from weft.models.sites import Place

Read = Callable[[Float[Tensor, "B T D"]], Float[Tensor, "B T D"]]


def gradient_by_distance(read: Read, x: Float[Tensor, "B T D"], *, seed: int = 0) -> Float[Tensor, "T"]:
    """How much the last output changes with the input so many places before it: entry 0 is its own input.

    ‖∂y_T/∂x_{T−d}‖ in the Frobenius norm over √width, so that the identity gives 1. It is estimated from one random
    direction of the output for each row: the mean of the squares over rows, and its root.
    """
    x = x.detach().requires_grad_()
    last = read(x)[:, -1]
    chance = torch.Generator(device="cpu").manual_seed(seed)
    direction = torch.randn(last.shape, generator=chance, dtype=last.dtype).to(last.device)
    (gradient,) = torch.autograd.grad((last * direction).sum(), x)
    return (gradient.square().sum(-1) / last.shape[-1]).mean(0).sqrt().flip(0)


def gradient_of_loss_by_distance(
    model: nn.Module, tokens: Int[Tensor, "B T1"], *, table: str = "tokens"
) -> Float[Tensor, "T"]:
    """The same for a language model: the gradient of the loss of the last token to the vector of each token that was
    read, relative to the largest. `table` is the name of the module that gives the vectors."""
    vectors: list[Tensor] = []

    def keep(_: nn.Module, __: object, output: Tensor) -> Tensor:
        vectors.append(output.detach().requires_grad_())
        return vectors[-1]

    hook = model.get_submodule(table).register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = model(tokens[:, :-1])[:, -1]
            loss = nn.functional.cross_entropy(logits, tokens[:, -1], reduction="sum")
            (gradient,) = torch.autograd.grad(loss, vectors[0])
    finally:
        hook.remove()
    norms = gradient.square().sum(-1).mean(0).sqrt().flip(0)
    return norms / norms.max()


# -- through depth ----------------------------------------------------------------------------


@dataclass(frozen=True)
class DepthFlow:
    """How the gradient of a loss passes through the layers of a model, from the last to the first.

    layers   where each stands
    stream   ‖∂loss/∂x‖ for the stream x before each layer, and after the last
    groups   the norm of the gradient to the parameters of each part of each layer, by the part's name; 0: it has none
    """

    layers: tuple[Place, ...]
    stream: tuple[float, ...]
    groups: Mapping[str, tuple[float, ...]]

    @property
    def first_to_last(self) -> float:
        """How many times as large the gradient is at the first layer as after the last: 1 passes all of it."""
        return self.stream[0] / self.stream[-1] if self.stream[-1] else math.nan

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        layers = [{"part": place.part, "layer": place.number} for place in self.layers]
        groups = {name: list(norms) for name, norms in self.groups.items()}
        return {"layers": layers, "stream": list(self.stream), "groups": groups, "first_to_last": self.first_to_last}


def gradient_through_depth(model: nn.Module, loss: Callable[[nn.Module], Tensor]) -> list[DepthFlow]:
    """Of each stack of layers (an encoder and a decoder have one each), for the loss that `loss(model)` computes.

    Where the norm stands decides what it looks like: pre-norm leaves the stream alone, and the gradient passes
    unchanged beside every branch; post-norm divides it in every layer (Xiong et al. 2020, "On Layer Normalization in
    the Transformer Architecture"). No gradient is left in the model.
    """
    stacks = layers_of(model)
    streams: dict[nn.Module, list[Tensor]] = {}

    def before(module: nn.Module, given: tuple[Any, ...]) -> None:
        streams.setdefault(module, []).append(_watched(given[0]))

    def after(module: nn.Module, _: Any, output: Any) -> None:
        streams[module].append(_watched(output[0] if isinstance(output, tuple) else output))

    layers = [layer for stack in stacks for _, layer in stack]
    handles = [layer.register_forward_pre_hook(before) for layer in layers]
    handles += [layer.register_forward_hook(after) for layer in layers]
    params = [p for p in model.parameters() if p.requires_grad]
    try:
        with torch.enable_grad():
            value = loss(model)
            wanted = [t for layer in layers for t in streams[layer]]
            found = torch.autograd.grad(value, [*wanted, *params], allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    pairs = zip([*wanted, *params], found, strict=True)
    norms = {id(t): 0.0 if gradient is None else float(gradient.double().norm()) for t, gradient in pairs}
    ours = {layer: [norms[id(t)] for t in kept] for layer, kept in streams.items()}
    return [_flow(stack, ours, norms) for stack in stacks]


def layers_of(model: nn.Module) -> list[list[tuple[str, nn.Module]]]:
    """The stacks of a model with the names of their layers."""
    found: dict[str, list[tuple[str, nn.Module]]] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and name.split(".")[-1] == "layers":
            stack = found.setdefault(name.split(".")[0], [])
            stack += [(f"{name}.{number}", layer) for number, layer in enumerate(module)]
    if not found:
        raise UnsupportedError(f"a {type(model).__name__} has no stack of layers", expected="one with layers")
    return list(found.values())


def _watched(stream: Any) -> Tensor:
    if not isinstance(stream, Tensor):
        raise UnsupportedError("a stream of packed texts", expected="one text without padding")
    return stream if stream.requires_grad else stream.requires_grad_()


def _flow(
    stack: list[tuple[str, nn.Module]], streams: Mapping[nn.Module, list[float]], norms: Mapping[int, float]
) -> DepthFlow:
    groups: dict[str, list[float]] = {}
    for number, (_, layer) in enumerate(stack):
        for name, p in layer.named_parameters():
            norms_of = groups.setdefault(_group(name), [0.0] * len(stack))
            norms_of[number] = math.hypot(norms_of[number], norms.get(id(p), 0.0))
    # each call left two: before and after; the gradient of all texts together has all of them in it
    stream = [math.hypot(*streams[layer][0::2]) for _, layer in stack]
    stream.append(math.hypot(*streams[stack[-1][1]][1::2]))
    places = tuple(_place(name) for name, _ in stack)
    return DepthFlow(places, tuple(stream), {name: tuple(values) for name, values in groups.items()})


def _place(name: str) -> Place:
    """Of a layer "encoder.layers.2" or "layers.2"; one of several stages is counted in its own."""
    *before, _, number = name.split(".")
    return Place(before[0] if len(before) == 1 else "", int(number) + 1)


def _group(name: str) -> str:
    """To which part of a layer a parameter belongs."""
    if "norm" in name or "positions" in name:
        return "norms and positions"
    words = name.split(".")
    return next((word for word in words if word in ("attention", "cross_attention", "feed_forward")), words[0])
