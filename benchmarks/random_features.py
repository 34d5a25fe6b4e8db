"""How near random features come to softmax attention: the error of the output over the number of features.

    python benchmarks/random_features.py [IMAGE.png]

64 queries and keys of width 32, drawn from normal distributions so that scores differ by about 0.1, 0.5, 1 or 2 between
keys; for each, the root mean square of the output's error relative to the output, the median of 30 draws. One JSON line
for each size of the scores, with the errors and the exponent between the first and the last number of features.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import torch

from weft.blocks.attention import RandomFeatureAttention, SoftmaxAttention

FEATURES = (16, 64, 256, 1024, 4096)
SPREADS = (0.1, 0.5, 1.0, 2.0)  # of the scores β·q·k
WIDTH, DRAWS = 32, 30


def errors(spread: float) -> list[float]:
    chance = torch.Generator().manual_seed(0)
    size = math.sqrt(spread)  # β = 1/√K, and q·k of normal vectors has deviation √K
    query, key = (size * torch.randn(1, 1, 64, WIDTH, generator=chance, dtype=torch.float64) for _ in range(2))
    value = torch.randn(1, 1, 64, WIDTH, generator=chance, dtype=torch.float64)
    exact = SoftmaxAttention()(query, key, value)
    found = []
    for count in FEATURES:
        gaps = []
        for seed in range(DRAWS):
            estimate = RandomFeatureAttention(count=count, width=WIDTH, seed=seed).double()(query, key, value)
            gaps.append(((estimate - exact).square().mean() / exact.square().mean()).sqrt())
        found.append(torch.stack(gaps).median().item())
    return found


def draw(lines: dict[float, list[float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for spread, found in lines.items():
        axes.loglog(FEATURES, found, marker="o", label=f"scores differ by {spread:g}")
    start = lines[SPREADS[0]][0]
    axes.loglog(FEATURES, [start * (count / FEATURES[0]) ** -0.5 for count in FEATURES], "k:", label="1/√features")
    axes.set_xlabel("features")
    axes.set_ylabel("error of the output, relative")
    axes.set_xticks(FEATURES, [str(count) for count in FEATURES])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=110)


def main() -> None:
    lines = {}
    for spread in SPREADS:
        lines[spread] = errors(spread)
        exponent = math.log(lines[spread][-1] / lines[spread][0]) / math.log(FEATURES[-1] / FEATURES[0])
        shown = {str(count): round(error, 4) for count, error in zip(FEATURES, lines[spread], strict=True)}
        print(json.dumps({"name": f"random-features/{spread:g}", "exponent": round(exponent, 3)} | shown), flush=True)
    if len(sys.argv) > 1:
        draw(lines, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
