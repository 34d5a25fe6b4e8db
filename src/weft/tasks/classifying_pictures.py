"""Using a classifier of pictures: what it says of them, and how often it is right."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft.data import Labels
from weft.data.pictures import Pictures, read_pictures
from weft.errors import DataError, UnsupportedError
from weft.images.arrays import fit, of_array
from weft.images.decode import decode
from weft.models.pictures import PictureConfig
from weft.tasks.answers import Answer, answers_of, labels_of
from weft.tasks.classify_pictures import reading
from weft.tasks.judging import Judge, Judged
from weft.tasks.picture_data import PictureDataConfig, read_data
from weft.tasks.picture_form import form_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

Given = str | Path | np.ndarray


class PictureClassifier:
    """A run that classifies pictures, opened."""

    def __init__(self, run: Run) -> None:
        config = run.model_config
        if not isinstance(config, PictureConfig) or not config.head.classes:
            raise UnsupportedError(
                f"{run.directory.path} does not classify pictures",
                expected="a run of weft train classify, or a classifier of pictures from Hugging Face",
            )
        self.run, self.head = run, config.head

    @functools.cached_property
    def data(self) -> PictureDataConfig:
        """The form in which it sees pictures."""
        return form_of(self.run)

    @functools.cached_property
    def labels(self) -> Labels:
        """The classes by name."""
        return labels_of(self.head, self.data.separator)

    def answers(self, given: Sequence[Given]) -> list[Answer]:
        """One for each picture in the order given: a path, or an array (rows, columns) or (rows, columns, channels)."""
        if not given:
            return []
        pixels = np.stack([self.decoded(one) for one in given])
        pictures = Pictures(pixels, [""] * len(pixels), [str(place) for place in range(len(pixels))])
        return answers_of(reading(self.data)(self.run.model, pictures, self.run.device), self.labels)

    def decoded(self, given: Given) -> np.ndarray:
        """One picture as (channels, size, size), in the size that the model sees; an array of that form stays so."""
        return decoded(self.data, given)

    def classify(self, given: Any) -> Any:
        """An answer for a path or an array, a list of answers for a list of these."""
        if isinstance(given, str | Path) or (isinstance(given, np.ndarray) and given.ndim in (2, 3)):
            return self.answers([cast(Given, given)])[0]
        return self.answers(list(given))

    def evaluate(self, *data: str) -> dict[str, Any]:
        """All metrics: on the run's own test or held-out pictures, or on others."""
        pictures, measured_on = self._pictures(data)
        values = self.labels.encode(pictures.labels, list(range(1, len(pictures) + 1)), pictures.name)
        judge = Judge(self.labels, 0.0, 1.0, self.run.device, read=reading(self.data))
        metrics = judge.measure(self.run.model, Judged(pictures, values), whole=True)
        loss = metrics.pop("validation_loss") / self.data.deviation**2
        return {"loss": loss, **metrics, "examples": len(pictures), "measured_on": measured_on}

    def _pictures(self, data: Sequence[str]) -> tuple[Pictures, str]:
        if data:
            form = self.data
            columns: dict[str, Any] = {"label": form.label, "text": form.text}
            source = read_pictures(data, size=form.size, channels=form.channels, cut=form.cut, **columns)
            return source.test or source.train, "data"
        if self.run.is_imported:
            raise DataError(
                f"{self.run.directory.path} was not trained here: it has no pictures of its own",
                expected="pictures to measure it on",
                advice=f"weft evaluate {self.run.directory.path} FOLDER",
            )
        found = read_data(self.data)
        return (found.validation, "validation") if found.test is None else (found.test, "test")


def decoded(form: PictureDataConfig, given: Given) -> np.ndarray:
    """One picture as (channels, size, size) in this form; an array that has it already stays as it is."""
    size, channels = cast(int, form.size), form.channels or 1
    if not isinstance(given, np.ndarray):
        if not os.path.exists(given):
            raise DataError(
                f"there is no file {_short(str(given))!r}",
                expected="the path of a picture: this model looks at pictures and reads no text",
            )
        return decode(given, channels=channels, size=size, cut=form.cut)
    if given.dtype == np.uint8 and given.shape == (channels, size, size):
        return given
    return fit(of_array(given[None]), channels=channels, size=size, cut=form.cut)[0]


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"
