"""What a set of labelled images is like before anything learns from it; read as training reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from weft.data.augmentation import mirrors_well
from weft.data.column_check import (
    KnownTexts,
    contradiction_warning,
    count_labels,
    find_leakage,
    imbalance_warning,
    meanings,
    rare_warning,
)
from weft.tasks.classify.image_data import ImageDataConfig, read_data
from weft.tasks.data_check import CheckRequest
from weft.tasks.data_facts import parts_of
from weft.tasks.findings import Facts, Findings, as_sentence, balance_rows, count_rows, leakage_rows, named_parts

RECOMMENDED_IMAGES_PER_CLASS = 20  # images of a class
KIND_TITLES = {"single": "one for each image", "multilabel": "any number for an image"}


def check_images(asked: CheckRequest) -> Findings:
    """Decode all images and count; what training would refuse is a `DataError`.

    The columns are those of a table of paths: `text` and `label`.
    """
    config = ImageDataConfig(train=tuple(asked.train), validation=tuple(asked.validation), test=tuple(asked.test))
    data = read_data(config.override(dict(asked.columns)), asked.progress or (lambda *_: None))
    labels, images = data.labels, parts_of(data)
    known = {name: KnownTexts(part.keys(), meanings(part.labels, labels)) for name, part in images.items()}
    leakage = find_leakage(known)
    parts: dict[str, Facts] = {}
    for name, part in images.items():
        balance = count_labels(part.labels, labels)
        parts[name] = {
            "name": part.name,
            "images": len(part),
            "classes": balance | {label: 0 for label in labels.classes if label not in balance},
            "duplicates": known[name].repeated,
            "contradictions": known[name].contradictions,
            "leakage": {other: asdict(overlap) for other, overlap in leakage[name].items()},
        }
    values: Any = data.values(data.train)
    facts: Facts = {
        "reason": data.why,
        "kind": labels.kind,
        "size": data.config.size,
        "channels": data.config.channels,
        "mirrors": labels.kind == "single" and mirrors_well(data.train.pixels, values),
        "pixel_mean": data.config.pixel_mean,
        "pixel_deviation": data.config.pixel_deviation,
    }
    rows = list(parts.values())
    return Findings(
        parts=parts,
        facts=facts,
        sentences=list(_sentences({name: part.name for name, part in images.items()}, facts, len(labels.classes))),
        counts=[
            *count_rows(rows, {"images": "images"}),
            *count_rows(rows, {"duplicates": "equal to an earlier one"}, "images"),
            *count_rows(rows, {"contradictions": "equal, with other labels"}, if_any=True),
            *balance_rows(rows, "images", "classes"),
            *leakage_rows(rows, "images", {"examples": "also"}),
        ],
        warnings=[*data.warnings, *_warnings(parts["train"])],
    )


def _sentences(names: dict[str, str], facts: Facts, classes: int) -> Iterator[str]:
    """Which files, how the classes were recognised, and the form that images are brought into."""
    yield from named_parts(names)
    yield as_sentence(facts["reason"])
    kind = facts["kind"]
    yield "Labels: numbers." if kind == "regression" else f"Labels: {classes} classes, {KIND_TITLES[kind]}."
    colours = "grey" if facts["channels"] == 1 else "coloured"
    yield f"Looked at as {facts['size']} × {facts['size']} pixels, {colours}."
    if kind == "single":
        can, some = ("can", "half of them") if facts["mirrors"] else ("cannot", "none")
        yield f"Left and right {can} be exchanged: training mirrors {some}."


def _warnings(train: Facts) -> Iterator[str]:
    yield from rare_warning(train["classes"], RECOMMENDED_IMAGES_PER_CLASS, "images to learn from")
    yield from imbalance_warning({label: count for label, count in train["classes"].items() if count}, train["name"])
    if train["duplicates"]:
        yield f"{train['duplicates']:,} of the images to learn from equal an earlier one"
    yield from contradiction_warning(train["contradictions"], train["name"], "image")
