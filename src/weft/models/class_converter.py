"""Classes in the format of Hugging Face, the same for texts and for images: `id2label`, `problem_type`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weft.errors import DataError, UnsupportedError
from weft.models.classes import Classes
from weft.models.hugging_face_config import HuggingFaceConfig

PROBLEMS = {
    "single_label_classification": "single",
    "multi_label_classification": "multilabel",
    "regression": "regression",
}
CLASS_SETTINGS = ("num_labels", "id2label", "label2id", "problem_type")
CLASS_FIELDS = ("head.classes", "head.labels", "head.multilabel")
PROBLEM_OF = {ours: theirs for theirs, ours in PROBLEMS.items()}


def read_classes(theirs: HuggingFaceConfig, *, twins: bool = False) -> dict[str, Any]:
    """How many classes there are, what they are called, and whether several hold at once: fields of `Classes`.

    `twins`: classes of the same name get their number added, as models of ImageNet need it; else they are refused.
    """
    names = theirs.table("id2label")
    classes = theirs.size("num_labels", len(names) or 2)
    labels = [name for i in range(len(names)) if isinstance(name := names.get(str(i)), str)]
    if names and not len(labels) == len(names) == classes:
        raise DataError(f"{theirs.where}: id2label", expected=f"a name for each of {classes} classes, counted from 0")
    kind = theirs.word("problem_type", PROBLEMS, PROBLEM_OF["regression" if classes == 1 else "single"])
    if kind == "regression" and classes != 1:
        raise UnsupportedError(f"{theirs.where}: regression of {classes} numbers", expected="one number")
    if kind == "single" and classes == 1:
        raise UnsupportedError(f"{theirs.where}: a choice between {classes} class", expected="two, or a regression")
    nameless = labels == [f"LABEL_{i}" for i in range(len(names))]
    told = () if nameless else distinct(labels) if twins else tuple(labels)
    return {"classes": classes, "labels": told, "multilabel": kind == "multilabel"}


def class_settings(head: Classes) -> dict[str, Any]:
    """Their settings for our classes."""
    labels = head.labels or [f"LABEL_{i}" for i in range(head.classes)]
    return {
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
        "problem_type": PROBLEM_OF[
            "multilabel" if head.multilabel else "regression" if head.classes == 1 else "single"
        ],
    }


def against_classes(head: Classes) -> Iterator[str]:
    """Why their settings cannot represent these classes."""
    if head.multilabel and not head.classes:
        yield "head.multilabel is off there, where there are no classes"


def distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """Names of which none occurs twice: ImageNet has two cranes, and the second becomes "crane (517)"."""
    found: dict[str, int] = {}
    for number, label in enumerate(labels):
        told = label
        while told in found:
            told = f"{told} ({number})"
        found[told] = number
    return tuple(found)
