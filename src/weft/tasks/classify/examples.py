"""Examples of what a classifier answers: some typical ones, and those on which it was surest and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.data import Labels
from weft.pages.png import png_uri
from weft.tasks.classify.answers import Answer
from weft.tasks.classify.classifier import Classifier
from weft.tasks.classify.image_classifier import PixelClassifier
from weft.tasks.classify.image_data import ImageData
from weft.tasks.classify.tables import Tables
from weft.tasks.data_facts import evaluation_part
from weft.tasks.examples import ATTENTION_EXAMPLES, few_words
from weft.tasks.validation_inputs import some_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_CANDIDATES = 200  # examples that are looked at, to find a few
TYPICAL_TEXTS, WRONG_TEXTS = 4, 4  # that are shown: typical ones, and the surest mistakes
TYPICAL_IMAGES, WRONG_IMAGES = 12, 6
MAX_TEXT_CHARACTERS = 400  # letters of a text
MAX_PREVIEW_PIXELS, MAX_MODEL_PIXELS = (
    64,
    512,
)  # pixels of an image at most, and of one that is to be looked at by the model again


def collect_answers(run: Run, data: Any) -> dict[str, Any]:
    """Texts with the answer and the truth; `measured_on` says whether they are of the validation or the test part."""
    assert isinstance(data, Tables)
    part, examples = evaluation_part(data)
    places = some_of(len(examples), MAX_CANDIDATES)
    inputs = examples.inputs()
    given = [inputs[n] if len(inputs[n]) > 1 else inputs[n][0] for n in places]
    rows = _compare_with_truth(Classifier(run).answers(given), [examples.labels[n] for n in places], data.labels)
    for row, n in zip(rows, places, strict=True):
        row["text"] = [_short(text) for text in inputs[n]]
    chosen = _chosen(rows, TYPICAL_TEXTS, WRONG_TEXTS)
    inputs_of = [inputs[places[row["place"]]] for row in chosen[:ATTENTION_EXAMPLES]]
    return {"measured_on": part, "examples": chosen, "inside": [list(map(few_words, texts)) for texts in inputs_of]}


def collect_image_answers(run: Run, data: Any) -> dict[str, Any]:
    """The same for images, each small enough for a page."""
    assert isinstance(data, ImageData)
    part, images = evaluation_part(data)
    places = some_of(len(images), MAX_CANDIDATES)
    rows = _compare_with_truth(
        PixelClassifier(run).answers([np.asarray(images.pixels[n]) for n in places]),
        [images.labels[n] for n in places],
        data.labels,
    )
    for row, n in zip(rows, places, strict=True):
        row["name"] = images.names[n]
    rows = _chosen(rows, TYPICAL_IMAGES, WRONG_IMAGES)
    for row in rows:
        row["image"] = _as_png(images.pixels[places[row["place"]]])
    inside = [[_as_png(images.pixels[places[row["place"]]], MAX_MODEL_PIXELS)] for row in rows[:ATTENTION_EXAMPLES]]
    return {"measured_on": part, "examples": rows, "inside": inside}


def _compare_with_truth(answers: Sequence[Answer], truth: Sequence[str], labels: Labels) -> list[dict[str, Any]]:
    """What was answered, how sure, what is true; of a number, there is no right and wrong."""
    rows = []
    for place, (answer, cell) in enumerate(zip(answers, truth, strict=True)):
        right: Any = float(cell) if labels.kind == "regression" else labels.names(cell)
        told = answer.label if isinstance(answer.label, list | float) else [answer.label]
        row: dict[str, Any] = {"place": place, "answer": told, "truth": right, "probability": answer.probability}
        if isinstance(told, list):
            row["right"] = sorted(told) == sorted(right)
        rows.append(row)
    return rows


def _chosen(rows: list[dict[str, Any]], some: int, wrong: int) -> list[dict[str, Any]]:
    """Some typical ones, then the mistakes with the highest confidence."""
    first = [rows[n] for n in some_of(len(rows), some)]
    mistakes = [row for row in rows if row.get("right") is False and row not in first]
    mistakes.sort(key=lambda row: -(row["probability"] or 0.0))
    return [*({**row, "group": "some"} for row in first), *({**row, "group": "mistakes"} for row in mistakes[:wrong])]


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARACTERS else text[:MAX_TEXT_CHARACTERS] + "…"


def _as_png(pixels: NDArray[np.uint8], side: int = MAX_PREVIEW_PIXELS) -> str:
    """(channels, rows, columns), made smaller by leaving out pixels."""
    step = -(-max(pixels.shape[1:]) // side)
    small = np.ascontiguousarray(np.moveaxis(pixels[:, ::step, ::step], 0, -1))
    height, width, channels = small.shape
    return png_uri(small.tobytes(), width, height, channels)
