"""Runs that classify, opened: what they say of texts or of images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weft.errors import DataError
from weft.tasks.classify.answers import Answer
from weft.tasks.classify.classifier import Classifier, Input
from weft.tasks.classify.image_classifier import Given, PixelClassifier
from weft.tasks.embed.text_encoder import EmbedsTexts
from weft.tasks.run import Run


class TextClassifier(EmbedsTexts):
    """A model that says what a text is, or a pair of texts."""

    def describe_model(self) -> str:
        return f"{self.model_config.kind}, {_classes(self)}"

    def classify(self, texts: Input | Sequence[Input]) -> Answer | list[Answer]:
        """What the run says of a text, or of each in a list; pairs are tuples of two texts.

        An `Answer` has `.label`, `.probability` and `.probabilities`.
        """
        one = isinstance(texts, str | tuple)
        given: list[Input] = [texts] if one else _several(texts)  # type: ignore[list-item]
        for text in given:
            if not all(isinstance(part, str) for part in ([text] if not isinstance(text, tuple) else text)):
                raise _refusal(text)
        answers = Classifier(self).answers(given)
        return answers[0] if one else answers


class ImageClassifier(Run):
    """A model that says what an image shows."""

    def describe_model(self) -> str:
        return f"{self.model_config.kind}, {_classes(self)}"

    def classify(self, images: Given | Sequence[Given]) -> Answer | list[Answer]:
        """What the run says of an image, or of each in a list: a path, or an array (rows, columns) or (rows, columns,
        channels). An `Answer` has `.label`, `.probability` and `.probabilities`."""
        classifier = PixelClassifier(self)
        several = not (isinstance(images, str | Path) or (isinstance(images, np.ndarray) and images.ndim in (2, 3)))
        for image in _several(images) if several else [images]:
            if not isinstance(image, str | Path | np.ndarray):
                raise DataError(
                    f"a {type(image).__name__} to classify",
                    expected="the path of an image, an array of its pixels, or a list of these",
                    advice="a tensor becomes an array by .numpy()",
                )
        found: Answer | list[Answer] = classifier.classify(images)
        return found


def _several(given: object) -> list[Input]:
    if isinstance(given, bytes | dict) or not hasattr(given, "__iter__"):
        raise _refusal(given)
    return list(given)


def _refusal(given: object) -> DataError:
    return DataError(
        f"a {type(given).__name__} to classify",
        expected="a text, a tuple of two texts, or a list of these; of images, paths or arrays",
        advice="numbers become text by str(…)",
    )


def _classes(run: Run) -> str:
    """How many classes its head has; "a number" for a regression."""
    head = getattr(run.model_config, "head", None)
    classes = getattr(head, "classes", 0)
    names = getattr(head, "labels", ())
    if classes == 1 and not names:
        return "a number"
    return f"{classes:,} classes" if classes else "no classes"
