"""Claims about the maps of attention: how many numbers they learn, and of which shape."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from weft.blocks import Attention, SoftmaxAttention
from weft.theory.claim import Evidence, claim, evidence, table, value

WIDTH, LENGTH = 512, 10


def _attention(**sizes: Any) -> Attention:
    """With shapes alone: nothing is drawn."""
    with torch.device("meta"):
        return Attention(WIDTH, core=SoftmaxAttention(), **sizes)


def _maps(attention: Attention) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    return attention.query, attention.key, attention.value


@claim(
    "T1",
    "Parameters of self-attention",
    says="""Queries, keys and values of N inputs of width D need 3D² weights and 3 biases, and there are N² attention
    weights. A fully connected network from all DN inputs to all DN outputs has D²N² weights and N² biases.""",
    document="000",
    where="problem 12.1, equations 5 to 7",
)
def parameters() -> Evidence:
    """Counted on a module, and on the weights of one core."""
    attention = _attention(heads=1)
    maps = _maps(attention)
    x = torch.randn(1, 1, LENGTH, WIDTH)
    pairs = SoftmaxAttention().weights(x, x).numel()
    with torch.device("meta"):
        connected = nn.Linear(WIDTH * LENGTH, WIDTH * LENGTH)
    return evidence(
        value("biases of the three maps", sum(m.bias.numel() for m in maps), document=3, right=3 * WIDTH),
        value("their weights", sum(m.weight.numel() for m in maps), document=3 * WIDTH**2),
        value("attention weights", pairs, document=LENGTH**2),
        value("fully connected: weights", connected.weight.numel(), document=WIDTH**2 * LENGTH**2),
        value("fully connected: biases", connected.bias.numel(), document=LENGTH**2, right=WIDTH * LENGTH),
        says=f"""3D² weights and 3D biases, one for each output of each map: a bias is a vector of width D, not one
        number. A fully connected map has a bias for each of its DN outputs, not N². Here D = {WIDTH}, N = {LENGTH}.""",
    )


@claim(
    "T4",
    "Heads of width D/H",
    says="""With heads of width D/H a head costs (D/H)² instead of D², and all heads together have H·(D/H)² = D²/H
    parameters.""",
    document="000",
    where="problem 12.5",
)
def heads() -> Evidence:
    """The same width in 1 to 16 heads."""
    counted = {}
    for count in (1, 2, 4, 8, 16):
        maps = _maps(_attention(heads=count))
        counted[count] = (sum(m.weight.numel() for m in maps), maps[0].weight.numel() // count)
    count = 8
    every, own = counted[count]
    rows = [
        (count, every, 3 * WIDTH**2 // count, own, (WIDTH // count) ** 2) for count, (every, own) in counted.items()
    ]
    heads_of = ("heads", "weights of the three maps", "the document's", "of one head's query map", "the document's")
    return evidence(
        value(
            f"weights of the three maps, {count} heads",
            every,
            document=3 * count * (WIDTH // count) ** 2,
            right=3 * WIDTH**2,
        ),
        value("of one head's query map", own, document=(WIDTH // count) ** 2, right=WIDTH * WIDTH // count),
        value("different totals for 1 to 16 heads", len({every for every, _ in counted.values()}), document=1),
        says="""The maps cost 3D² for every number of heads: each head reads all D channels, so its map is D × D/H,
        and H of them are D² again. (D/H)² would be a head that reads its own channels only. That the total does not
        depend on H is right, and it is D² for each map, not D²/H.""",
        show=[table(f"Width {WIDTH}", heads_of, rows)],
    )


@claim(
    "T26",
    "Shapes of the four maps",
    says="""Q = XW(q) with W(q) and W(k) of dimensionality N × D_k, W(v) of N × D_v; the output map of all heads is
    HD_v × D.""",
    document="002",
    where="slide “Network parameters”; “Multi-head attention”",
)
def shapes() -> Evidence:
    """Of one head, as they multiply rows of X from the right."""
    count, key_width, value_width = 8, 64, 32
    attention = _attention(heads=count, head_width=key_width, value_width=value_width)

    def shape(map_: nn.Linear, parts: int) -> str:
        outputs, inputs = map_.weight.shape
        return f"{inputs} × {outputs // parts}"

    keys, values = f"{LENGTH} × {key_width}", f"{LENGTH} × {value_width}"
    return evidence(
        value("W_q of a head", shape(attention.query, count), document=keys, right=f"{WIDTH} × {key_width}"),
        value("W_k of a head", shape(attention.key, count), document=keys, right=f"{WIDTH} × {key_width}"),
        value("W_v of a head", shape(attention.value, count), document=values, right=f"{WIDTH} × {value_width}"),
        value("W_o", shape(attention.output, 1), document=f"{count * value_width} × {WIDTH}"),
        says=f"""X is N × D, so what multiplies it from the right has D rows: W_q and W_k are D × D_k, W_v is D × D_v.
        N × D_k is the shape of Q itself. A map of N rows would fit texts of one length only. The output map,
        (heads·D_v) × D, is right. Here N = {LENGTH}, D = {WIDTH}, D_k = {key_width}, D_v = {value_width}, {count}
        heads.""",
    )
