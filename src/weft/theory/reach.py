"""Claims about what can be seen and what can be learned: receptive fields, gradients through argmax."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from weft.blocks import Attention, HardAttention, SoftmaxAttention
from weft.theory.claim import Evidence, claim, evidence, table, value
from weft.theory.counting import largest
from weft.theory.prediction import AtLeast, AtMost


@claim(
    "T18",
    "Receptive field of argmax heads",
    says="""If softmax is taken for argmax, a node at layer n has a receptive field of 2ⁿ with one head, 3ⁿ with two,
    and (k + 1)ⁿ with k heads, because of the residual connection.""",
    document="003",
    where="question 2 (a)",
    seconds=0.3,
)
def receptive_field() -> Evidence:
    """Heads that look at chosen places, and heads that look anywhere; what has a gradient was seen."""
    rows, values = [], []
    for heads in (1, 2, 3):
        for layers in (1, 2, 3):
            bound = (heads + 1) ** layers
            reached = _seen(_chosen(heads, layers, 64), 64)
            drawn = max(_seen(_drawn(heads, layers, 64), 64) for _ in range(5))
            rows.append((heads, layers, bound, reached, drawn))
            if layers == 3:
                values.append(value(f"{heads} heads, 3 layers".replace("1 heads", "1 head"), reached, document=bound))
    return evidence(
        *values,
        value(
            "random heads: most of seen / (k + 1)ⁿ",
            max(drawn / bound for _, _, bound, _, drawn in rows),
            document=AtMost(1),
        ),
        says="""An upper bound, and one that is reached: layer l's heads look 1, 2, … k times (k + 1)^l places back, as
        digits of a number. Heads that look anywhere see fewer, because some look at the same place.""",
        brief=3,
        show=[
            table(
                "Inputs that the last position sees",
                ("heads", "layers", "(k + 1)ⁿ", "chosen heads", "random heads"),
                rows,
            )
        ],
    )


def _argmax(length: int, heads: int) -> Attention:
    """Heads that choose by the position, of which the stream has a channel for each, and read the last channel."""
    sizes: dict[str, Any] = {"heads": heads, "head_width": length, "value_width": 1}
    module = Attention(length + 1, bias=False, core=HardAttention(learning="argmax"), **sizes)
    with torch.no_grad():
        module.key.weight.copy_(torch.eye(length, length + 1).repeat(heads, 1))
        module.value.weight.zero_()
        module.value.weight[:, -1] = 1.0
        module.output.weight.zero_()
        module.output.weight[-1] = torch.rand(heads) + 0.5
    return module


def _chosen(heads: int, layers: int, length: int) -> list[Attention]:
    """In layer l, head j looks j·(heads + 1)^l places back."""
    built = []
    for layer in range(layers):
        module = _argmax(length, heads)
        with torch.no_grad():
            for head in range(heads):
                back = (head + 1) * (heads + 1) ** layer
                rows = slice(head * length, (head + 1) * length)
                module.query.weight[rows] = torch.eye(length, length + 1).roll(-back, 0)
        built.append(module)
    return built


def _drawn(heads: int, layers: int, length: int) -> list[Attention]:
    built = []
    for _ in range(layers):
        module = _argmax(length, heads)
        torch.nn.init.normal_(module.query.weight)
        built.append(module)
    return built


def _seen(layers: list[Attention], length: int) -> int:
    """How many inputs have a gradient to the last position's content, through layers and their residuals."""
    content = torch.randn(length, requires_grad=True)
    x = torch.cat([torch.eye(length), content[:, None]], 1)[None]
    for layer in layers:
        x = x + layer(x)
    (gradient,) = torch.autograd.grad(x[0, -1, -1], content)
    return int((gradient != 0).sum())


@claim(
    "T23",
    "Argmax passes no gradient",
    says="""Softmax lets gradients flow to W_k, W_v and W_q. With argmax there will generally be no gradient to W_k and
    W_q for keys that are not selected.""",
    document="004",
    where="section 1.2",
)
def argmax() -> Evidence:
    """Gradients to queries, to the chosen keys, to the others and to the values."""
    hard, soft = (_gradients(core) for core in (HardAttention(learning="argmax"), SoftmaxAttention()))
    rows = [(name, hard[name], soft[name]) for name in hard]
    return evidence(
        value("gradient to the selected keys", hard["selected keys"], document=AtLeast(1e-9), right=0.0),
        value("gradient to the other keys", hard["other keys"], document=0.0),
        value("gradient to W_q and W_k", max(hard["W_q"], hard["W_k"]), right=0.0),
        value("gradient to W_v", hard["W_v"], right=AtLeast(1e-3)),
        value(
            "softmax: least gradient to W_q, W_k, W_v",
            min(soft[w] for w in ("W_q", "W_k", "W_v")),
            document=AtLeast(1e-3),
        ),
        says="""Exactly zero for queries and keys, and for the selected key too: which key is the best does not change
        with a small step, so nothing about the choice is learned. Only the values learn.""",
        brief=2,
        show=[table("Largest gradient", ("to", "argmax", "softmax"), rows)],
    )


def _gradients(core: HardAttention | SoftmaxAttention) -> dict[str, float]:
    """The largest entry for each part of one module."""
    width, length = 8, 9
    torch.manual_seed(2)
    module = Attention(width, heads=1, core=core)
    x, wanted = torch.randn(1, length, width), torch.randn(1, length, width)
    keys: list[Tensor] = []

    def keep(_: nn.Module, __: object, found: Tensor) -> None:
        found.retain_grad()
        keys.append(found)

    module.key.register_forward_hook(keep)
    (module(x) - wanted).square().sum().backward()
    query, key = module.query(x)[0], keys[0][0]
    chosen = (query @ key.T).argmax(-1).unique()
    gradient = torch.zeros_like(key) if keys[0].grad is None else keys[0].grad[0]
    others = torch.ones(length, dtype=torch.bool)
    others[chosen] = False
    maps = {"W_q": module.query, "W_k": module.key, "W_v": module.value}
    found = {name: 0.0 if m.weight.grad is None else largest(m.weight.grad) for name, m in maps.items()}
    return {"selected keys": largest(gradient[chosen]), "other keys": largest(gradient[others])} | found
