"""How well models learn small images in equal minutes, and how that depends on how many images there are.

    python benchmarks/learning_images.py models DATA [MINUTES]    every family, and ViT with other attention
    python benchmarks/learning_images.py sizes DATA [STEPS]       ViT and ConvNeXt on 1, 3, 10, 30 and 100 percent
    python benchmarks/learning_images.py draw LINES.jsonl OUT.png      an image of what `sizes` printed

One JSON line for each run: test accuracy, seconds, parameters, epochs. DATA is a folder of idx files such as
Fashion-MNIST's. `models` gives each the same minutes, so nothing else should run on the machine meanwhile; `sizes`
gives each the same steps, on one thread, with models of about the same number of parameters.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.images import read_images

PLAIN = ["model.stem=", "model.patch=4", "model.pool=class", "model.width=64", "model.depth=2"]
MODELS: dict[str, tuple[str, list[str]]] = {
    "vit": ("vit", []),
    "vit, no stem": ("vit", PLAIN),
    "vit, windows": ("vit", ["model.attention.kind=window", "model.attention.window=2"]),
    "vit, summaries": ("vit", ["model.attention.kind=hierarchy"]),
    "davit": ("davit", []),
    "convnext": ("convnext", []),
    "resnet": ("resnet", []),
}
SIZED = {
    "vit": ["model.patch=8", "model.stem=32,64,128", "model.width=96", "model.depth=2", "model.attention.heads=3"],
    "convnext": ["model.patch=2", "model.widths=24,48,96", "model.depths=2,2,2"],
}
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)


def train(model: str, data: str, limit: list[str], changes: list[str]) -> dict[str, Any]:
    """What a run that is thrown away reached."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["train", "classify", data, "--model", model, *limit, "--out", f"{folder}/run"]
        words += ["--json", *(word for change in changes for word in ("--set", change))]
        result = subprocess.run([sys.executable, "-m", "weft", *words], capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    plan, done = (next(e for e in events if e["event"] == name) for name in ("plan", "done"))
    told = {"accuracy": done["accuracy"], "seconds": round(done["seconds"]), "steps": done["steps"]}
    epochs = done["steps"] * plan["batch"] / plan["examples"]
    return told | {"parameters": plan["parameters"], "images": plan["examples"], "epochs": round(epochs, 1)}


def part_of(data: str, share: float, folder: Path) -> str:
    """A share of the images to learn from, of every class alike, and the whole test, as one file."""
    source = read_images([data])
    assert source.test is not None
    labels = np.array(source.train.labels)
    random = np.random.default_rng(0)
    classes = [random.permutation(np.flatnonzero(labels == name)) for name in np.unique(labels)]
    chosen = np.concatenate([places[: round(share * len(places))] for places in classes])
    path = folder / f"part-{share:g}.npz"
    np.savez(
        path,
        x_train=source.train.pixels[np.sort(chosen)],
        y_train=labels[np.sort(chosen)],
        x_test=source.test.pixels,
        y_test=np.array(source.test.labels),
    )
    return str(path)


def draw(lines: Path, out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for model, name in (("vit", "ViT (with a stem)"), ("convnext", "ConvNeXt")):
        points = [(row["images"], row["accuracy"]) for row in rows if row["name"].endswith(f"/{model}")]
        axes.semilogx(*zip(*points, strict=True), marker="o", label=name)
        axes.set_xticks([count for count, _ in points], [f"{count:,}" for count, _ in points])
    axes.minorticks_off()
    axes.set_xlabel("images to learn from")
    axes.set_ylabel("test accuracy")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(out, dpi=110)


def main() -> None:
    what, data = sys.argv[1:3]
    if what == "draw":
        draw(Path(data), Path(sys.argv[3]))
        return
    if what == "models":
        limit = ["--minutes", sys.argv[3] if len(sys.argv) > 3 else "3"]
        for name, (model, changes) in MODELS.items():
            print(json.dumps({"name": f"models/{name}"} | train(model, data, limit, changes)), flush=True)
        return
    limit = ["--threads", "1", "--steps", sys.argv[3] if len(sys.argv) > 3 else "1500"]
    with tempfile.TemporaryDirectory() as folder:
        for share in SHARES:
            part = part_of(data, share, Path(folder))
            for model, changes in SIZED.items():
                print(json.dumps({"name": f"sizes/{share:g}/{model}"} | train(model, part, limit, changes)), flush=True)


if __name__ == "__main__":
    main()
