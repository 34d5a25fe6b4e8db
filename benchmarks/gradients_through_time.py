"""How far back a gradient reaches in recurrent layers and in attention, and what reading costs, over the length.

    python benchmarks/gradients_through_time.py [--image IMAGE.png] [RUN…]

One JSON line for each kind of layer as it starts (width 64, 256 tokens): the norm of the gradient of the last output to
the input so many tokens before, 1 is that of the identity. With runs of language models, a line for each: the gradient
of the loss of a token to the vector of each token before it, relative to the largest, on the held-out text. Last, the
milliseconds of a layer forward and backward at several lengths, all kinds taking turns.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median

import torch
from side_by_side import seconds
from torch import Tensor, nn

import weft
from weft.analysis import gradient_by_distance, gradient_of_loss_by_distance
from weft.blocks import AttentionConfig, Mask
from weft.blocks.recurrent import RecurrentLayer

WIDTH, LENGTH, ROWS = 64, 256, 16
SHOWN = (0, 1, 2, 5, 10, 20, 50, 100, 200)  # distances
LENGTHS = (64, 128, 256, 512, 1024, 2048)
PLAIN, OTHER = 256, 16  # tokens that a trained model reads; rows of them


class Attention(nn.Module):
    """One causal layer with its residual, as it stands in a Transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = AttentionConfig.from_config({"kind": "softmax", "heads": 4}).build(width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attention(x, mask=Mask(causal=True))


def recurrent(kind: str, width: int, gain: float = 1.0) -> nn.Module:
    """As models begin, with the map of the state made longer or shorter."""
    layer = RecurrentLayer(kind, width, width)  # type: ignore[arg-type]
    with torch.no_grad():
        for name, p in layer.kernel.named_parameters():
            if name.startswith("weight_hh"):
                p.mul_(gain)
    return layer


def layers(width: int) -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {
        "rnn": recurrent("rnn", width),
        "rnn, map of the state × 0.5": recurrent("rnn", width, 0.5),
        "rnn, map of the state × 2": recurrent("rnn", width, 2.0),
        "gru": recurrent("gru", width),
        "lstm": recurrent("lstm", width),
        "attention": Attention(width),
    }


def at_the_start() -> dict[str, Tensor]:
    found = {}
    for name, layer in layers(WIDTH).items():
        x = 0.1 * torch.randn(ROWS, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1))
        found[name] = gradient_by_distance(layer, x)
        tell(f"gradient/start/{name}", found[name])
    return found


def of_runs(paths: list[str]) -> dict[str, Tensor]:
    found = {}
    for path in paths:
        run = weft.load(path)
        length = min(PLAIN, run.context)
        ids = run.validation_tokens().ids
        starts = [place * (len(ids) - length - 1) // OTHER for place in range(OTHER)]
        tokens = torch.stack([torch.tensor(ids[start : start + length + 1].astype("int64")) for start in starts])
        name = f"{Path(path).name} (trained)"
        found[name] = gradient_of_loss_by_distance(run.model, tokens)
        tell(f"gradient/trained/{Path(path).name}", found[name])
    return found


def tell(name: str, norms: Tensor) -> None:
    shown = {str(place): float(f"{norms[place]:.3g}") for place in SHOWN if place < len(norms)}
    print(json.dumps({"name": name} | shown), flush=True)


def over_lengths() -> None:
    kinds = {name: layer for name, layer in layers(WIDTH).items() if "×" not in name}
    rounds: dict[tuple[str, int], list[float]] = {(name, n): [] for name in kinds for n in LENGTHS}
    for _ in range(5):
        for (name, length), spent in rounds.items():
            x = torch.randn(1, length, WIDTH, requires_grad=True)
            spent.append(seconds(lambda: kinds[name](x).sum().backward(), 3))  # noqa: B023
    for name in kinds:
        shown = {str(n): round(1000 * median(rounds[name, n]), 2) for n in LENGTHS}
        print(json.dumps({"name": f"milliseconds/{name}"} | shown), flush=True)


def draw(left: dict[str, Tensor], right: dict[str, Tensor], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parts = [(title, lines) for title, lines in (("as they start", left), ("trained", right)) if lines]
    figure, axes = plt.subplots(1, len(parts), figsize=(6.2 * len(parts), 4), layout="constrained", squeeze=False)
    for axis, (title, lines) in zip(axes[0], parts, strict=True):
        for name, norms in lines.items():
            axis.semilogy(norms.clamp(min=1e-12), label=name.removesuffix(" (trained)"))
        axis.set(title=title, xlabel="tokens before", ylabel="norm of the gradient", ylim=(1e-10, 1e6))
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("runs", nargs="*")
    words.add_argument("--image")
    told = words.parse_args()
    start, trained = at_the_start(), of_runs(told.runs)
    over_lengths()
    if told.image:
        draw(start, trained, told.image)


if __name__ == "__main__":
    main()
