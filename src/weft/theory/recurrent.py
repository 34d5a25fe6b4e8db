"""Claims about recurrence: gradients through time, what reading costs, and what must wait for what."""

from __future__ import annotations

import itertools
import time

import torch
from torch import Tensor, nn

from weft.analysis import gradient_by_distance
from weft.blocks import Attention, Mask, SoftmaxAttention
from weft.blocks.recurrent import Kind, RecurrentLayer, StateCache
from weft.theory.claim import Chart, Evidence, claim, evidence, table, value
from weft.theory.counting import multiplications
from weft.theory.prediction import AtLeast, AtMost, Near

WIDTH, FAR = 32, 100


class _Reader(nn.Module):
    """One causal attention layer with its residual, as it stands in a Transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads=4, core=SoftmaxAttention())

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.attention(x, mask=Mask(causal=True))
        return y


def _recurrent(kind: Kind, gain: float = 1.0) -> nn.Module:
    """As models begin, with the map of the state made longer or shorter."""
    layer = RecurrentLayer(kind, WIDTH, WIDTH)
    with torch.no_grad():
        layer.kernel.weight_hh_l0.mul_(gain)  # type: ignore[operator]
    return layer


@claim(
    "T29",
    "Gradients through time",
    says="""RNNs suffer from vanishing or exploding gradients on long sequences. Between two positions lie O(n) steps in
    an RNN and O(1) in attention, and an RNN cannot be computed in parallel over time (001, 002).""",
    document="001, 002",
    where="1.4 (b); slide “Backpropagation through time”",
    seconds=1.5,
)
def through_time() -> Evidence:
    """The gradient of the last output to inputs before it; steps that wait for each other; seconds over the length."""
    layers = {
        "rnn, map of the state × 0.5": _recurrent("rnn", 0.5),
        "rnn, map of the state × 2": _recurrent("rnn", 2.0),
        "rnn": _recurrent("rnn"),
        "lstm": _recurrent("lstm"),
        "attention": _Reader(WIDTH),
    }
    x = 0.01 * torch.randn(8, 2 * FAR, WIDTH)
    norms = {name: gradient_by_distance(layer, x) for name, layer in layers.items()}
    shown = (0, 1, 2, 5, 10, 20, 50, 100, 150)
    far = {name: float(line[FAR]) for name, line in norms.items()}
    path = {name: _path(layers[name], x[:1, :FAR]) for name in ("rnn", "attention")}
    seconds = {name: [_milliseconds(layers[name], n) for n in (64, 256, 1024)] for name in ("rnn", "lstm", "attention")}
    lines = {name: [(float(d), max(float(line[d]), 1e-30)) for d in range(0, 160, 5)] for name, line in norms.items()}
    near = float(norms["attention"][FAR] / norms["attention"][1])
    return evidence(
        value(
            "rnn whose state shrinks: gradient to 100 tokens before",
            far["rnn, map of the state × 0.5"],
            document=AtMost(1e-20),
        ),
        value("rnn whose state grows: the same", far["rnn, map of the state × 2"], document=AtLeast(1e3)),
        value("attention: gradient 100 tokens before over that one before", near, document=AtLeast(0.2)),
        value("steps from the first input to the last output, rnn", path["rnn"], document=FAR),
        value("the same, attention", path["attention"], document=1),
        says="""Through each token the gradient passes the map of the state once, so over 100 tokens it dies when that
        map shrinks and explodes when it stretches; an LSTM begins by keeping what it has, and forgets slowly. Attention
        looks at each token directly, one step however far away. The steps of an RNN wait for each other, those of
        attention do not.""",
        brief=3,
        show=[
            table(
                "Norm of the gradient, so many tokens before",
                ("layer", *map(str, shown)),
                [(n, *(float(line[d]) for d in shown)) for n, line in norms.items()],
            ),
            table(
                "Milliseconds forward and backward on one thread of this computer, one row",
                ("layer", "64 tokens", "256", "1,024"),
                [(n, *s) for n, s in seconds.items()],
            ),
            Chart("The gradient of the last output", "tokens before", "norm", lines, log_up=True),
        ],
    )


def _path(layer: nn.Module, x: Tensor) -> int:
    """How many results lie between the first input and the last output, each of which waits for the one before it."""
    x = x.clone().requires_grad_()
    if not isinstance(layer, RecurrentLayer):  # with all tokens between them taken out, it is seen nevertheless
        (direct,) = torch.autograd.grad(layer(torch.cat([x[:, :1], x[:, -1:]], 1))[0, -1].sum(), x)
        return 1 if bool(direct[0, 0].any()) else x.shape[1]
    cache, states = StateCache(), []
    for place in range(x.shape[1]):
        layer(x[:, place : place + 1], cache=cache)
        assert cache.state is not None
        states.append(cache.state[0])
    waiting = 1
    for earlier, later in itertools.pairwise(states):
        (gradient,) = torch.autograd.grad(later.sum(), earlier, retain_graph=True)
        waiting += bool(gradient.any())
    return waiting


def _milliseconds(layer: nn.Module, length: int) -> float:
    x = torch.randn(1, length, WIDTH, requires_grad=True)
    spent = []
    for _ in range(3):
        start = time.perf_counter()
        layer(x).sum().backward()
        spent.append(time.perf_counter() - start)
    return round(1000 * sorted(spent)[1], 2)


@claim(
    "T30",
    "Attention is cheaper when n < d",
    says="""Self-attention layers are faster than recurrent layers in most cases, namely when the sequence length n is
    smaller than the width d.""",
    document="001",
    where="1.4 (b), importance 1",
)
def cheaper() -> Evidence:
    """Multiplications of whole layers, and of the scores alone."""
    length, width = 64, 512
    spent = {kind: _of_recurrent(kind, length, width) for kind in ("rnn", "gru", "lstm")}
    attention = _of_attention(length, width)
    sizes = [(n, d) for d in (64, 512) for n in (1, 16, 64, 256, 1024)]
    rows = [
        (n, d, sum(_of_attention(n, d).values()), _of_recurrent("rnn", n, d), _of_recurrent("lstm", n, d))
        for n, d in sizes
    ]
    scores, step = attention["pairs"] / 2, spent["rnn"] / 2
    return evidence(
        value(
            "attention, n = 64, d = 512: multiplications",
            sum(attention.values()),
            document=AtMost(spent["rnn"]),
            right=4 * length * width**2 + 2 * length**2 * width,
        ),
        value("plain RNN", spent["rnn"], right=2 * length * width**2),
        value("LSTM", spent["lstm"], right=8 * length * width**2),
        value("scores alone over the RNN's map of the state", scores / step, document=Near(length / width, share=1e-9)),
        value("attention over a plain RNN, least of ten sizes", min(a / r for _, _, a, r, _ in rows), right=AtLeast(2)),
        says=f"""True of the scores alone: n²d against nd². But attention has four maps of its own, so with these it
        never costs less than a plain RNN, at least twice as much: {sum(attention.values()) / 1e6:.0f} M against
        {spent["rnn"] / 1e6:.0f} M for n = 64, d = 512. It costs less than an LSTM ({spent["lstm"] / 1e6:.0f} M) there.
        That it is faster to train has another reason: its steps do not wait for each other.""",
        brief=3,
        show=[table("Multiplications of a layer", ("n", "d", "attention", "rnn", "lstm"), rows)],
    )


def _of_attention(length: int, width: int) -> dict[str, int]:
    with torch.device("meta"):
        module, x = Attention(width, heads=8, core=SoftmaxAttention()), torch.empty(1, length, width)
    return multiplications(lambda: module(x))


def _of_recurrent(kind: Kind, length: int, width: int) -> int:
    """Every weight of its two maps is used once for each token."""
    with torch.device("meta"):
        layer = RecurrentLayer(kind, width, width)
    return length * sum(p.numel() for p in layer.parameters() if p.dim() == 2)
