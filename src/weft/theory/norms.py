"""Claims about norms and residuals: what they depend on, how long what they give is, what they do to gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from weft.blocks import (
    Attention,
    FeedForward,
    LayerNorm,
    PostNorm,
    PreNorm,
    Residual,
    SoftmaxAttention,
    TransformerLayer,
)
from weft.blocks.residual import Branch
from weft.theory.claim import Chart, Evidence, claim, evidence, table, value
from weft.theory.counting import derivatives
from weft.theory.prediction import AtLeast, AtMost, Near


@claim(
    "T21",
    "What layer norm and batch norm depend on",
    says="""Of an input of shape [B, D], an output of layer norm depends on its own input and on others of its row; one
    of batch norm on its own input and on others of its column.""",
    document="003",
    where="question 3 (a)",
)
def depends() -> Evidence:
    """Derivatives of one output to all inputs."""
    rows, columns = 5, 6
    batch = nn.BatchNorm1d(columns)
    found = {
        "layer norm": _depends(LayerNorm(columns), rows, columns),
        "batch norm in training": _depends(batch, rows, columns),
        "batch norm in use": _depends(batch.eval(), rows, columns),
    }
    return evidence(
        value("layer norm", found["layer norm"], document="own row"),
        value("batch norm in training", found["batch norm in training"], document="own column"),
        value("batch norm in use", found["batch norm in use"], right="itself"),
        says="""Layer norm: its own row, so a text's result does not depend on its neighbours in the batch. Batch norm:
        its own column, in training mode; in use it has fixed statistics, and depends on its own input alone.""",
        brief=2,
    )


def _depends(norm: nn.Module, rows: int, columns: int) -> str:
    """Which inputs have a derivative, of the output in the middle."""

    def one(x: Tensor) -> Tensor:
        result: Tensor = norm(x)[2, 3]
        return result

    touched = derivatives(one, torch.randn(rows, columns)) != 0
    patterns = {}
    for name, place in (("itself", (2, 3)), ("own row", (2, slice(None))), ("own column", (slice(None), 3))):
        patterns[name] = torch.zeros(rows, columns, dtype=torch.bool)
        patterns[name][place] = True
    return next((name for name, pattern in patterns.items() if torch.equal(pattern, touched)), "more")


@claim(
    "T22",
    "The length of what layer norm gives",
    says="With scale γ, bias β and ε = 0, the output of layer norm satisfies ‖y − β1‖ = γ√d.",
    document="003",
    where="question 3 (b)",
)
def length() -> Evidence:
    """With ε = 0, with the default ε, with a negative γ and with a γ for each channel."""
    width, gamma, beta = 64, 1.7, 0.4
    x = torch.randn(width)

    def norm_of(scale: float | Tensor, eps: float) -> float:
        norm = LayerNorm(width, eps=eps)
        with torch.no_grad():
            norm.weight.copy_(torch.as_tensor(scale))
            norm.bias.fill_(beta)  # type: ignore[union-attr]
        return float((norm(x) - beta).detach().norm())

    predicted, usual = gamma * math.sqrt(width), LayerNorm(width).eps
    off = 1 - norm_of(gamma, usual) / predicted
    variance = float(x.var(correction=0))
    return evidence(
        value("‖y − β1‖, ε = 0, γ = 1.7, d = 64", norm_of(gamma, 0.0), document=Near(predicted, 1e-9)),
        value("with ε = 1e-5, relative to γ√d less by", off, right=Near(usual / (2 * variance), share=0.01)),
        value("with γ = −1.7", norm_of(-gamma, 0.0), right=Near(predicted, 1e-9)),
        value(
            "γ from 0 to 2 by channels: off from mean(γ)·√d by",
            abs(norm_of(torch.linspace(0, 2, width), 0.0) - math.sqrt(width)),
            right=AtLeast(0.1),
        ),
        says=f"""|γ|√d for ε = 0 and one γ for all channels: the length of a vector is not negative, and with a γ for
        each channel there is no such formula. With the default ε it is less by ε/2σ², about {off:.0e} here.""",
        brief=2,
    )


# -- over depth -------------------------------------------------------------------------------


class _Alone(Residual):
    """norm(branch(x)): no way around the branch."""

    def forward(self, x: Tensor, branch: Branch) -> Tensor:
        return self.norm(branch(x))


DEPTHS = (1, 2, 4, 8, 16, 32)
VARIANTS: dict[str, tuple[type[Residual], bool, float]] = {  # residual, norm, how large the maps are
    "neither, small maps": (_Alone, False, 0.5),
    "residual, small maps": (PreNorm, False, 0.5),
    "residual, large maps": (PreNorm, False, 1.0),
    "pre-norm, large maps": (PreNorm, True, 1.0),
    "post-norm, large maps": (PostNorm, True, 1.0),
}


@claim(
    "T40",
    "Residuals against vanishing, norms against exploding",
    says="""The skip connection fixes the problem of vanishing gradients; a layer norm after it addresses exploding
    gradients, because it controls the output by standardization.""",
    document="004",
    where="section 3, step 7",
    seconds=1.5,
)
def over_depth() -> Evidence:
    """The gradient of the last layer's output to the first layer's input, over the depth, with and without each."""
    found = {name: [_gradient(depth, *parts) for depth in DEPTHS] for name, parts in VARIANTS.items()}
    last = {name: norms[-1] for name, norms in found.items()}
    plain, kept, wild, pre, post = last.values()
    lines: dict[str, list[tuple[float, float]]] = {
        name: list(zip(map(float, DEPTHS), norms, strict=True)) for name, norms in found.items()
    }
    return evidence(
        value("32 layers, small maps, no residual", plain, document=AtMost(1e-9)),
        value("the same with residuals", kept, document=AtLeast(0.1)),
        value("32 layers, large maps, residuals, no norm", wild, document=AtLeast(1e3)),
        value("the same with a norm after each (post-norm)", post, document=AtMost(100)),
        value("the same with a norm before each (pre-norm)", pre, document=AtMost(100)),
        says="""Gradient norms of whole layers, 1 is the identity's. Without residuals and with maps that shrink, 32
        layers leave nothing of a gradient; residuals keep it. With maps that stretch, residuals alone make it grow with
        every layer; a norm keeps it in bounds, be it before the branch or after the sum.""",
        brief=4,
        show=[
            table(
                "Norm of the gradient",
                ("", *(f"{depth} layers" for depth in DEPTHS)),
                [(n, *v) for n, v in found.items()],
            ),
            Chart("The gradient through many layers", "layers", "norm", lines, True, True),
        ],
    )


def _gradient(depth: int, residual: type[Residual], normed: bool, gain: float) -> float:
    """‖∂y/∂x‖ over √(entries), estimated from one random direction of the output."""
    width, tokens = 16, 6
    torch.manual_seed(3)

    def norm() -> nn.Module:
        return LayerNorm(width) if normed else nn.Identity()

    layers = [
        TransformerLayer(
            attention=Attention(width, heads=2, core=SoftmaxAttention()),
            attention_residual=residual(norm()),
            feed_forward=FeedForward(width, 4 * width, activation="relu"),
            feed_forward_residual=residual(norm()),
        )
        for _ in range(depth)
    ]
    for layer in layers:
        for p in layer.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=gain / math.sqrt(p.shape[1]))
    x = torch.randn(4, tokens, width, requires_grad=True)
    y: Tensor = x
    for layer in layers:
        y = layer(y)
    (gradient,) = torch.autograd.grad((y * torch.randn_like(y)).sum(), x)
    return float(gradient.square().mean().sqrt())
