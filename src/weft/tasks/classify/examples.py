"""Examples of what a classifier answers: some that stand for all, and those of which it was surest and wrong."""

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
from weft.tasks.examples import INSIDE, few_words
from weft.tasks.validation_inputs import some_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

ASKED = 200  # examples that are looked at, to find a few
SOME, WRONG = 4, 4  # that are shown: some of all, and the surest mistakes
SOME_IMAGES, WRONG_IMAGES = 12, 6
LONGEST = 400  # letters of a text
SIDE, WHOLE = 64, 512  # pixels of an image at most, and of one that is to be looked at by the model again


def answers_shown(run: Run, data: Any) -> dict[str, Any]:
    """Texts with the answer and the truth; `measured_on` says whether they were held out or are of the test."""
    assert isinstance(data, Tables)
    part, examples = evaluation_part(data)
    places = some_of(len(examples), ASKED)
    inputs = examples.inputs()
    given = [inputs[n] if len(inputs[n]) > 1 else inputs[n][0] for n in places]
    rows = _judged(Classifier(run).answers(given), [examples.labels[n] for n in places], data.labels)
    for row, n in zip(rows, places, strict=True):
        row["text"] = [_short(text) for text in inputs[n]]
    chosen = _chosen(rows, SOME, WRONG)
    inputs_of = [inputs[places[row["place"]]] for row in chosen[:INSIDE]]
    return {"measured_on": part, "examples": chosen, "inside": [list(map(few_words, texts)) for texts in inputs_of]}


def images_shown(run: Run, data: Any) -> dict[str, Any]:
    """The same for images, each small enough for a page."""
    assert isinstance(data, ImageData)
    part, images = evaluation_part(data)
    places = some_of(len(images), ASKED)
    rows = _judged(
        PixelClassifier(run).answers([np.asarray(images.pixels[n]) for n in places]),
        [images.labels[n] for n in places],
        data.labels,
    )
    for row, n in zip(rows, places, strict=True):
        row["name"] = images.names[n]
    rows = _chosen(rows, SOME_IMAGES, WRONG_IMAGES)
    for row in rows:
        row["image"] = _as_png(images.pixels[places[row["place"]]])
    inside = [[_as_png(images.pixels[places[row["place"]]], WHOLE)] for row in rows[:INSIDE]]
    return {"measured_on": part, "examples": rows, "inside": inside}


def _judged(answers: Sequence[Answer], truth: Sequence[str], labels: Labels) -> list[dict[str, Any]]:
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
    """Some that stand for all, then the mistakes of which it was surest."""
    first = [rows[n] for n in some_of(len(rows), some)]
    mistakes = [row for row in rows if row.get("right") is False and row not in first]
    mistakes.sort(key=lambda row: -(row["probability"] or 0.0))
    return [*({**row, "group": "some"} for row in first), *({**row, "group": "mistakes"} for row in mistakes[:wrong])]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _as_png(pixels: NDArray[np.uint8], side: int = SIDE) -> str:
    """(channels, rows, columns), made smaller by leaving out pixels."""
    step = -(-max(pixels.shape[1:]) // side)
    small = np.ascontiguousarray(np.moveaxis(pixels[:, ::step, ::step], 0, -1))
    height, width, channels = small.shape
    return png_uri(small.tobytes(), width, height, channels)
