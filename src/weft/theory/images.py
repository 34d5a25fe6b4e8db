"""The claim about images and data, which trains models."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from weft.theory.claim import Chart, Evidence, claim, evidence, table, value
from weft.theory.prediction import AtLeast

COUNTS = (50, 150, 500, 1400)  # images to learn from
STEPS = 200
MODELS: dict[str, dict[str, Any]] = {  # of about the same number of parameters
    "vit": {"stem": (), "patch": 2, "width": 48, "depth": 2, "attention.heads": 3},
    "convnext": {"patch": 1, "widths": (24, 48), "depths": (1, 2)},
}
TRAINING: dict[str, Any] = {"training.batch": 32, "objective.augment.mixup": 0}


@claim(
    "T33",
    "Weak inductive bias needs more data",
    says="""Transformers generalise ConvNets and are more flexible. Their weak inductive bias implies that they need
    more training data to make learned patterns visible.""",
    document="004",
    where="section 6",
    seconds=150,
    on_request=True,
    needs=("sklearn",),  # whose digits it learns from
)
def data_hunger() -> Evidence:
    """A plain ViT and a ConvNeXt of equal size on more and more digits, the same number of steps each."""
    from weft.data.image_demo import demo_images

    learn, judge = demo_images("train"), demo_images("test")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in MODELS}
    parameters = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in COUNTS:
            part = _part(learn, judge, count, Path(folder))
            for name in MODELS:
                accuracy, parameters[name] = _trained(name, part, Path(folder) / f"{name}-{count}")
                found[name].append((count, accuracy))
    gaps = [b - a for (_, a), (_, b) in zip(found["vit"], found["convnext"], strict=True)]
    rows = [
        (int(count), a, b, gap) for (count, a), (_, b), gap in zip(found["vit"], found["convnext"], gaps, strict=True)
    ]
    return evidence(
        value("from 50 images: ConvNeXt's accuracy less ViT's", gaps[0], document=AtLeast(0.02)),
        value("how much smaller the gap is from 1,400 images", gaps[0] - gaps[-1], document=AtLeast(0.02)),
        value("ViT from 1,400 images: accuracy", found["vit"][-1][1], right=AtLeast(0.85)),
        says=f"""A ViT without a stem has to find out that neighbouring pixels belong together; a convolution is built
        of it. So it is behind as long as images are few, and catches up as they become more. One run each, {STEPS}
        steps, {parameters["vit"] / 1e3:.0f} and {parameters["convnext"] / 1e3:.0f} thousand parameters. A stem of small
        convolutions takes most of that hunger away (`weft train classify demo --model vit`).""",
        brief=2,
        show=[
            table("Test accuracy on handwritten digits", ("images", "vit", "convnext", "gap"), rows),
            Chart("Accuracy over the number of images", "images to learn from", "accuracy", found, log_across=True),
        ],
    )


def _part(learn: Any, judge: Any, count: int, folder: Path) -> Path:
    """So many images to learn from, of every class alike, and the whole test, as one file."""
    labels = np.array(learn.labels)
    chance = np.random.default_rng(0)
    classes = [chance.permutation(np.flatnonzero(labels == name)) for name in np.unique(labels)]
    chosen = np.sort(np.concatenate([places[: count // len(classes)] for places in classes]))
    path = folder / f"digits-{count}.npz"
    arrays = {"x_train": learn.pixels[chosen], "y_train": labels[chosen]}
    np.savez(path, **arrays, x_test=judge.pixels, y_test=np.array(judge.labels))
    return path


def _trained(model: str, data: Path, out: Path) -> tuple[float, int]:
    """Test accuracy and the number of parameters."""
    from weft.tasks import train

    settings = {f"model.{name}": value for name, value in MODELS[model].items()} | TRAINING
    run = train(data, task="classify", model=model, steps=STEPS, out=str(out), threads=1, set=settings)
    parameters = sum(p.numel() for p in run.model.parameters())
    return float(run.evaluate(str(data))["accuracy"]), parameters
