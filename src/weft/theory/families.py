"""Claims about the families: their sizes, their parts, and what their feed-forward part does."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from weft.blocks import FeedForward
from weft.models import ModelConfig, ViTConfig, preset
from weft.theory.claim import Evidence, claim, evidence, table, value
from weft.theory.counting import derivatives, largest, learned
from weft.theory.prediction import ZERO, AtLeast, AtMost, Near

PAPER = {"transformer-base": 65, "transformer-big": 213, "vit-b": 86, "vit-l": 307, "vit-h": 632}  # millions


def _skeleton(name: str) -> Any:
    """A named size without numbers."""
    family, fields = preset(name)
    return ModelConfig.registry[family](**fields).skeleton()


@claim(
    "T27",
    "Sizes of the Transformer and of ViT",
    says="""ViT has 86 M, 307 M and 632 M parameters in its base, large and huge variant; the Transformer has 65 M and
    213 M, base and big.""",
    document="001",
    where="1.5 (b) 3",
    seconds=0.5,
)
def sizes() -> Evidence:
    """Counted on the presets: within four percent is taken as agreeing, since papers round and leave out parts."""
    counted = {name: learned(_skeleton(name)) / 1e6 for name in PAPER}
    return evidence(
        *(
            value(name, round(millions, 1), document=Near(float(PAPER[name]), share=0.04), unit="M")
            for name, millions in counted.items()
        ),
        says="""Counted on the presets: 63.1 and 214.2 M with a shared vocabulary of 37 000, and 86.6, 304.3 and 632.0 M
        with 1 000 classes. What the papers print is within four percent of that.""",
        brief=5,
        show=[
            table(
                "Millions of parameters",
                ("preset", "counted", "printed"),
                [(n, round(c, 1), PAPER[n]) for n, c in counted.items()],
            )
        ],
    )


@claim(
    "T28",
    "“ViT has no convolution”",
    says="""The ViT architecture has no convolution layer: it uses a linear projection of flattened patches.""",
    document="001",
    where="1.5 (a)",
)
def patches() -> Evidence:
    """The layers of vit-b, and its patch projection beside a map of cut-out patches."""
    convolutions = [m for m in _skeleton("vit-b").modules() if isinstance(m, nn.Conv2d)]
    model = ViTConfig(image_size=12, patch=4, width=16, depth=1, stem=()).build()
    pixels = torch.randn(2, 3, 12, 12)
    cut = nn.functional.unfold(pixels, kernel_size=4, stride=4).mT  # each patch as a row
    mapped = nn.functional.linear(cut, model.patches.weight.flatten(1), model.patches.bias)
    apart = largest(model.patches(pixels).flatten(2).mT - mapped)
    only = convolutions[0]
    return evidence(
        value("convolutions in vit-b", len(convolutions), document=0, right=1),
        value("its stride − its kernel", only.stride[0] - only.kernel_size[0], right=0),
        value("convolution − linear map of cut-out patches", apart, right=ZERO),
        says="""Cutting an image into patches and mapping each by one matrix is a convolution whose stride is its
        kernel: both give the same numbers, and ViT is written with Conv2d. It has one convolution, in which windows do
        not overlap.""",
    )


@claim(
    "T37",
    "The feed-forward part and its neighbours",
    says="""The feed-forward network helps to capture local patterns and dependencies between close elements of the
    input sequence.""",
    document="001",
    where="1.4 (d), purpose 2",
)
def alone() -> Evidence:
    """The derivative of each position's output to each position's input."""
    length, width = 5, 8
    part = FeedForward(width, 4 * width, activation="relu")
    x = torch.randn(1, length, width)
    jacobian = derivatives(part, x)[0, :, :, 0].abs().amax((1, 3))  # from, to
    between = jacobian.masked_fill(torch.eye(length, dtype=torch.bool), 0.0)
    return evidence(
        value("largest derivative to another position", float(between.max()), document=AtLeast(1e-6), right=0.0),
        value("least derivative to its own position", float(jacobian.diagonal().min()), right=AtLeast(1e-3)),
        says="""It acts on each position alone: the derivative to any other position is exactly 0. What elements have to
        do with each other is attention's part. (The same document says, rightly, that it is applied to each position
        separately.)""",
        brief=2,
        show=[
            table(
                "Largest derivative",
                ("of \\ to", *map(str, range(length))),
                [(str(n), *row) for n, row in enumerate(jacobian.tolist())],
            )
        ],
    )


@claim(
    "T38",
    "“ViT uses smaller feed-forward networks”",
    says="ViT uses smaller feed-forward networks than the original Transformer: images already contain rich features.",
    document="001",
    where="1.5 (b) 5",
    seconds=0.5,
)
def hidden() -> Evidence:
    """The hidden width in the presets."""
    found = {}
    for name in PAPER:
        model = _skeleton(name)
        layers = model.layers if hasattr(model, "layers") else model.encoder.layers
        found[name] = int(layers[0].feed_forward.up.weight.shape[0])
    base, big = found["transformer-base"], found["transformer-big"]
    return evidence(
        value("hidden width of ViT-B (Transformer base: 2,048)", found["vit-b"], document=AtMost(base - 1), right=3072),
        value("hidden width of ViT-L (Transformer big: 4,096)", found["vit-l"], document=AtMost(big - 1), right=4096),
        value("hidden width of ViT-H", found["vit-h"], document=AtMost(big - 1), right=5120),
        value("hidden width of the Transformer, base", base, right=2048),
        says="""They are larger: 3072 in ViT-B against 2048 in the base Transformer, 4096 in ViT-L as in the big one,
        and 5120 in ViT-H. In both, they are four times the width.""",
        show=[table("Hidden width", ("preset", "feed-forward part"), list(found.items()))],
    )
