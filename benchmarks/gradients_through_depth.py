"""How much of the gradient of a loss arrives at the first of many layers: pre- and post-norm, with residual or without.

python benchmarks/gradients_through_depth.py [--out docs/explanation/gradients-through-depth.png]

Fresh weights of our own layers, 4, 16 and 64 of them. Prints a JSON line for each; no run, no training, seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.analysis import gradient_through_depth
from weft.blocks import Attention, FeedForward, LayerNorm, Layers, PostNorm, PreNorm, SoftmaxAttention, TransformerLayer
from weft.blocks.residual import Branch, Residual

WIDTH, HEADS, LENGTH, CLASSES, ROWS = 64, 4, 32, 32, 4
DEPTHS, SEEDS = (4, 16, 64), 3


class PreAlone(Residual):
    """branch(norm(x)): pre-norm without its residual."""

    def forward(self, x: Tensor, branch: Branch) -> Tensor:
        return self.dropout(branch(self.norm(x)))


class PostAlone(Residual):
    """norm(branch(x)): post-norm without its residual."""

    def forward(self, x: Tensor, branch: Branch) -> Tensor:
        return self.norm(self.dropout(branch(x)))


KINDS: dict[str, type[Residual]] = {
    "pre-norm": PreNorm,
    "post-norm": PostNorm,
    "pre-norm, no residual": PreAlone,
    "post-norm, no residual": PostAlone,
}


class Stack(nn.Module):
    """Layers between random vectors and random classes; a last norm where the stream is not normed."""

    def __init__(self, kind: type[Residual], depth: int) -> None:
        super().__init__()
        self.layers = Layers(self._layer(kind) for _ in range(depth))
        self.norm = LayerNorm(WIDTH) if issubclass(kind, PreNorm | PreAlone) else nn.Identity()
        self.head = nn.Linear(WIDTH, CLASSES)
        for p in self.layers.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    @staticmethod
    def _layer(kind: type[Residual]) -> TransformerLayer:
        return TransformerLayer(
            attention=Attention(WIDTH, heads=HEADS, core=SoftmaxAttention()),
            attention_residual=kind(LayerNorm(WIDTH)),
            feed_forward=FeedForward(WIDTH, 4 * WIDTH),
            feed_forward_residual=kind(LayerNorm(WIDTH)),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(x)))


def measured(kind: str, depth: int) -> dict[str, object]:
    """The gradient at the stream before each layer, relative to after the last; that to the first feed-forward part,
    relative to the last one; and how alike the positions are at the end (mean cosine). Medians over seeds."""
    streams, maps, alike = [], [], []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        model = Stack(KINDS[kind], depth).double()
        x, classes = torch.randn(ROWS, LENGTH, WIDTH, dtype=torch.float64), torch.randint(CLASSES, (ROWS * LENGTH,))
        (flow,) = gradient_through_depth(model, lambda m, x=x, c=classes: F.cross_entropy(m(x).flatten(0, 1), c))
        streams.append([norm / flow.stream[-1] for norm in flow.stream])
        with torch.no_grad():
            states = F.normalize(model.layers(x), dim=-1)
            alike.append(float((states @ states.mT).mean()))
        maps.append(flow.groups["feed_forward"][0] / flow.groups["feed_forward"][-1])
    relative = [statistics.median(values) for values in zip(*streams, strict=True)]
    told = {"first": relative[0], "feed_forward": statistics.median(maps), "alike": statistics.median(alike)}
    return {"name": f"depth/{kind}/{depth}", **told, "stream": relative}


def draw(found: list[dict[str, object]], path: str) -> None:
    """A curve for each, over the layers, on a logarithmic scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained", dpi=110)
    axes = figure.subplots(1, len(DEPTHS), sharey=True)
    for panel, depth in zip(axes, DEPTHS, strict=True):
        for kind, style in zip(KINDS, ("-", "--", ":", "-."), strict=True):
            stream = next(row["stream"] for row in found if row["name"] == f"depth/{kind}/{depth}")
            panel.plot(range(depth + 1), [max(value, 1e-20) for value in stream], style, label=kind)  # type: ignore[union-attr]
        panel.set(title=f"{depth} layers", xlabel="before layer", yscale="log")
    axes[0].set_ylabel("gradient, relative to the last")
    axes[0].legend(fontsize="small")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", help="an image: .png or .svg")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    found = [measured(kind, depth) for kind in KINDS for depth in DEPTHS]
    for row in found:
        print(json.dumps({name: row[name] for name in row if name != "stream"}))
    if out:
        draw(found, out)


if __name__ == "__main__":
    main()
