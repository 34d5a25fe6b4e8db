"""How good predicted tags are: entities found as a whole, by conlleval's rules, or words if tags are plain.

Precision, recall and F1 of entities are those of seqeval in its usual (not strict) mode: an entity counts if type,
first and last word are right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.objectives.metrics import macro_f1
from weft.tasks.tag.schemes import find_entities

Tags = Sequence[Sequence[str]]


@dataclass(frozen=True)
class EntityScore:
    """How many entities there are (`true`), how many were found (`predicted`), and how many of both (`right`)."""

    right: int
    predicted: int
    true: int

    @property
    def precision(self) -> float:
        """The share of the predicted entities that are right; 0 if there are none."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of the true entities that were found; 0 if there are none."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.right / (self.predicted + self.true) if self.right else 0.0

    def to_dict(self) -> dict[str, float | int]:
        """For programs."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, "entities": self.true}


def entity_scores(true: Tags, predicted: Tags) -> tuple[EntityScore, dict[str, EntityScore]]:
    """Over all entities (micro average), and of each type that occurs on either side, by name."""
    _check(true, predicted)
    counts: dict[str, Counter[str]] = {"right": Counter(), "predicted": Counter(), "true": Counter()}
    for wanted, told in zip(true, predicted, strict=True):
        one, two = set(find_entities(wanted)), set(find_entities(told))
        counts["true"].update(entity.type for entity in one)
        counts["predicted"].update(entity.type for entity in two)
        counts["right"].update(entity.type for entity in one & two)
    types = sorted({*counts["true"], *counts["predicted"]})
    whole = EntityScore(**{name: found.total() for name, found in counts.items()})
    return whole, {type_: EntityScore(**{name: found[type_] for name, found in counts.items()}) for type_ in types}


def word_accuracy(true: Tags, predicted: Tags) -> float:
    """The share of words whose tag is right."""
    words = _check(true, predicted)
    right = sum(a == b for one, two in zip(true, predicted, strict=True) for a, b in zip(one, two, strict=True))
    return right / words


def tag_scores(true: Tags, predicted: Tags, *, plain: bool) -> dict[str, float]:
    """What is measured at every evaluation: of entities `f1`, `precision`, `recall` and `accuracy` of words; of plain
    tags `accuracy` and `macro_f1`. The first one decides which weights are best."""
    accuracy = word_accuracy(true, predicted)
    if plain:
        one, two = (np.array([tag for tags in side for tag in tags]) for side in (true, predicted))
        return {"accuracy": accuracy, "macro_f1": macro_f1(one, two)}
    score, _ = entity_scores(true, predicted)
    return {"f1": score.f1, "precision": score.precision, "recall": score.recall, "accuracy": accuracy}


def scores_by_type(true: Tags, predicted: Tags, *, plain: bool) -> dict[str, dict[str, float | int]]:
    """The same for each type of entity, or for each plain tag."""
    if plain:
        counts = {name: EntityScore(*found) for name, found in sorted(_by_tag(true, predicted).items())}
        return {name: _of_words(score) for name, score in counts.items()}
    return {name: score.to_dict() for name, score in entity_scores(true, predicted)[1].items()}


def _by_tag(true: Tags, predicted: Tags) -> Mapping[str, tuple[int, int, int]]:
    _check(true, predicted)
    pairs = [pair for both in zip(true, predicted, strict=True) for pair in zip(*both, strict=True)]
    right = Counter(one for one, two in pairs if one == two)
    told, wanted = Counter(two for _, two in pairs), Counter(one for one, _ in pairs)
    return {tag: (right[tag], told[tag], wanted[tag]) for tag in {*told, *wanted}}


def _of_words(score: EntityScore) -> dict[str, Any]:
    found = score.to_dict()
    return found | {"words": found.pop("entities")}


def _check(true: Tags, predicted: Tags) -> int:
    """How many words there are; both sides must have the same."""
    one, two = ([len(tags) for tags in side] for side in (true, predicted))
    if one != two or not sum(one):
        given = f"tags of {len(one)} sentences with {sum(one)} words, predictions of {len(two)} with {sum(two)}"
        raise ShapeError(given, expected="the same lengths, and at least one word")
    return sum(one)
