"""How far back learning reaches: the gradient of what is read last, over the distance to what was read before.

In a recurrent network the gradient passes through one map for every token on its way, and shrinks or grows with each
(Hochreiter 1991; Bengio, Simard and Frasconi 1994; Pascanu, Mikolov and Bengio 2013). Attention looks at every token
directly: one step, however far away it is.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

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
