"""Using a classifier of images: what it says of them, and how often it is right."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft.data import Labels
from weft.data.images import Images, read_images
from weft.errors import DataError, UnsupportedError
from weft.images.arrays import fit, of_array
from weft.images.decode import decode
from weft.models import ClassifiesImages
from weft.models.images import ImageConfig
from weft.tasks.classify.answers import Answer, answers_of, labels_of
from weft.tasks.classify.evaluator import EvaluationSplit, Evaluator
from weft.tasks.classify.image_data import ImageDataConfig, images_read_as, read_data
from weft.tasks.classify.image_form import form_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

Given = str | Path | np.ndarray


class PixelClassifier:
    """A run that classifies images, opened."""

    def __init__(self, run: Run) -> None:
        config = run.model_config
        if ClassifiesImages not in config.provides:
            raise UnsupportedError(
                f"{run.directory.path} does not classify images",
                expected="a run of weft train classify, or a classifier of images from Hugging Face",
            )
        self.run, self.head = run, cast(ImageConfig, config).head

    @functools.cached_property
    def data(self) -> ImageDataConfig:
        """The form in which it sees images."""
        return form_of(self.run)

    @functools.cached_property
    def labels(self) -> Labels:
        """The classes by name."""
        return labels_of(self.head, self.data.separator)

    def answers(self, given: Sequence[Given]) -> list[Answer]:
        """One for each image in the order given: a path, or an array (rows, columns) or (rows, columns, channels)."""
        if not given:
            return []
        pixels = np.stack([self.decoded(one) for one in given])
        images = Images(pixels, [""] * len(pixels), [str(place) for place in range(len(pixels))])
        return answers_of(images_read_as(self.data)(self.run.model, images, self.run.device), self.labels)

    def decoded(self, given: Given) -> np.ndarray:
        """One image as (channels, size, size), in the size that the model sees; an array of that form stays so."""
        return decoded(self.data, given)

    def classify(self, given: Any) -> Any:
        """An answer for a path or an array, a list of answers for a list of these."""
        if isinstance(given, str | Path) or (isinstance(given, np.ndarray) and given.ndim in (2, 3)):
            return self.answers([cast(Given, given)])[0]
        return self.answers(list(given))

    def evaluate(self, *data: str) -> dict[str, Any]:
        """All metrics: on the run's own test or validation images, or on others."""
        images, measured_on = self._images(data)
        values = self.labels.encode(images.labels, list(range(1, len(images) + 1)), images.name)
        judge = Evaluator(self.labels, 0.0, 1.0, self.run.device, read=images_read_as(self.data))
        metrics = judge.measure(self.run.model, EvaluationSplit(images, values), whole=True)
        loss = metrics.pop("validation_loss") / self.data.deviation**2
        return {"loss": loss, **metrics, "examples": len(images), "measured_on": measured_on}

    def _images(self, data: Sequence[str]) -> tuple[Images, str]:
        if data:
            form = self.data
            columns: dict[str, Any] = {"label": form.label, "text": form.text}
            source = read_images(data, size=form.size, channels=form.channels, cut=form.cut, **columns)
            return source.test or source.train, "data"
        if self.run.is_imported:
            raise DataError(
                f"{self.run.directory.path} was not trained here: it has no images of its own",
                expected="images to measure it on",
                advice=f"weft evaluate {self.run.directory.path} FOLDER",
            )
        found = read_data(self.data)
        return (found.validation, "validation") if found.test is None else (found.test, "test")


def decoded(form: ImageDataConfig, given: Given) -> np.ndarray:
    """One image as (channels, size, size) in this form; an array that has it already stays as it is."""
    size, channels = cast(int, form.size), form.channels or 1
    if not isinstance(given, np.ndarray):
        if not os.path.exists(given):
            raise DataError(
                f"there is no file {_short(str(given))!r}",
                expected="the path of an image: this model looks at images and reads no text",
            )
        return decode(given, channels=channels, size=size, cut=form.cut)
    if given.dtype == np.uint8 and given.shape == (channels, size, size):
        return given
    return fit(of_array(given[None]), channels=channels, size=size, cut=form.cut)[0]


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"
