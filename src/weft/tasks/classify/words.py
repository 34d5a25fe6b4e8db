"""What is said about learning to classify, texts or images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.tasks.words import Plan, Use, Words, class_table, describe_columns, scores


class ClassifyWords(Words):
    """Of a model that classifies texts."""

    does = "classifies texts"
    uses: ClassVar[Mapping[str, Use]] = {
        "ClassifiesText": Use(
            "classify",
            'weft classify {path} "a text of yours"',
            "A model that sorts texts",
            "text-classification",
            "weft evaluate {path} FILE.csv",
        )
    }
    unit, read, speed = "nats per example", "examples read", "texts"
    matter = ("accuracy", "micro_f1", "macro_f1", "exact_match", "spearman", "pearson", "calibration_error")
    learned = ("examples", "are")

    def data(self, plan: Plan) -> str:
        return (
            f"{describe_columns(plan)}\n"
            f"Learning {_labels(plan)} from {plan['examples']:,} examples ({plan['tokenizer']}, vocabulary "
            f"{plan['vocab_size']:,}){_weighted(plan)}; {plan['validation_examples']:,} examples are for validation"
            f"{_tested(plan)}."
        )

    def result(self, best: float, metrics: dict[str, Any]) -> str:
        return f"{scores(metrics)} on {'the test' if metrics['measured_on'] == 'test' else 'the validation'} examples"

    def measured(self, metrics: dict[str, Any]) -> Iterator[str]:
        yield f"{scores(metrics)} on {metrics['examples']:,} examples ({metrics['measured_on']})"
        yield from class_table(metrics)


class ImageWords(ClassifyWords):
    """Of a model that classifies images; one without classes is a place to begin from."""

    does = "classifies images"
    uses: ClassVar[Mapping[str, Use]] = {
        "ClassifiesImages": Use(
            "look",
            "weft classify {path} image.png",
            "A classifier of images",
            "image-classification",
            "weft evaluate {path} FOLDER",
        ),
        "EncodesImages": Use(
            "begin",
            "weft train classify FOLDER --from {path}",
            "A model of images, without classes,",
            "image-feature-extraction",
            trained=False,
        ),
    }

    def data(self, plan: Plan) -> str:
        colours = "grey" if plan["channels"] == 1 else "coloured"
        mirrored = ", mirrored or not" if plan["mirrored"] else ""
        return (
            f"{describe_columns(plan)}\n"
            f"Learning {_labels(plan)} from {plan['examples']:,} {colours} images{mirrored}{_weighted(plan)}; "
            f"{plan['validation_examples']:,} images are for validation{_tested(plan)}."
        )

    def reading(self, plan: Plan) -> str:
        return f"looking at {plan['size']} × {plan['size']} pixels"

    def batch(self, plan: Plan) -> str:
        return f"{plan['batch']} images"


def _labels(plan: Plan) -> str:
    kinds = {
        "single": f"{plan['classes']} classes",
        "multilabel": f"{plan['classes']} labels, any number of them at once",
        "regression": "a number",
    }
    return kinds[plan["labels"]]


def _weighted(plan: Plan) -> str:
    return ", rare classes weigh more" if plan["weighted"] else ""


def _tested(plan: Plan) -> str:
    return f", {plan['test_examples']:,} are for the test at the end" if "test_examples" in plan else ""
