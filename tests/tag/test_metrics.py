"""Scores of tags are those of seqeval: stored values always, seqeval itself where it is installed."""

import json
import warnings

import pytest

from tag.random_tags import REFERENCE, make_case, score_by_seqeval
from weft.errors import ShapeError
from weft.tasks.tag.metrics import EntityScore, entity_scores, scores_by_type, tag_scores, word_accuracy
from weft.tasks.tag.schemes import find_entities, write_iob2

STORED = json.loads(REFERENCE.read_text())


def check(true, predicted, wanted):
    score, types = entity_scores(true, predicted)
    found = tag_scores(true, predicted, plain=False)
    for name in ("precision", "recall", "f1", "accuracy"):
        assert found[name] == pytest.approx(wanted[name], abs=1e-12), name
    assert (score.precision, score.recall, score.f1) == (found["precision"], found["recall"], found["f1"])
    assert types.keys() == wanted["types"].keys()
    for name, values in wanted["types"].items():
        own = types[name]
        assert [own.precision, own.recall, own.f1, own.true] == pytest.approx(values, abs=1e-12), name


@pytest.mark.parametrize("number", range(len(STORED)))
def test_stored_values_of_seqeval(number):
    stored = STORED[number]
    assert make_case(number) == (stored["scheme"], stored["true"], stored["predicted"])
    check(stored["true"], stored["predicted"], stored)


def test_the_stored_values_tell_the_sides_apart():
    apart = [item for item in STORED if abs(item["precision"] - item["recall"]) > 0.05]
    assert len(apart) > 20 and len({item["scheme"] for item in apart}) == 5
    for item in apart:
        swapped = tag_scores(item["predicted"], item["true"], plain=False)
        assert swapped["precision"] == pytest.approx(item["recall"], abs=1e-12)
        assert swapped["precision"] != pytest.approx(item["precision"], abs=1e-3)


def test_hundreds_of_random_sequences_against_seqeval_itself():
    pytest.importorskip("seqeval", reason="seqeval is compared with where it is installed")
    with warnings.catch_warnings(action="ignore"):
        for number in range(1000, 1600):
            _, true, predicted = make_case(number)
            check(true, predicted, score_by_seqeval(true, predicted))


def test_the_same_entities_in_iob2_score_the_same():
    for item in STORED:
        sides = (item["true"], item["predicted"])
        true, predicted = ([write_iob2(find_entities(t), len(t)) for t in side] for side in sides)
        check(true, predicted, item | {"accuracy": word_accuracy(true, predicted)})


def test_by_hand():
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-PER"]]
    told = [["B-PER", "I-PER", "O", "B-ORG"], ["B-PER", "B-PER"]]
    score, types = entity_scores(true, told)
    assert score == EntityScore(right=2, predicted=4, true=3)
    assert (score.precision, score.recall) == (0.5, 2 / 3) and score.f1 == pytest.approx(4 / 7)
    assert types == {"LOC": EntityScore(0, 0, 1), "ORG": EntityScore(0, 1, 0), "PER": EntityScore(2, 3, 2)}
    assert word_accuracy(true, told) == 4 / 6
    assert scores_by_type(true, told, plain=False)["PER"] == {
        "precision": 2 / 3,
        "recall": 1.0,
        "f1": 0.8,
        "entities": 2,
    }
    assert list(tag_scores(true, told, plain=False)) == ["f1", "precision", "recall", "accuracy"]


def test_plain_tags_count_by_word():
    sklearn = pytest.importorskip("sklearn.metrics", reason="an extra")
    true = [["NOUN", "VERB", "."], ["DET", "NOUN", "VERB", "NOUN"]]
    told = [["NOUN", "NOUN", "."], ["DET", "NOUN", "X", "VERB"]]
    flat = [[tag for tags in side for tag in tags] for side in (true, told)]
    found = tag_scores(true, told, plain=True)
    assert list(found) == ["accuracy", "macro_f1"] and found["accuracy"] == 4 / 7
    assert found["macro_f1"] == pytest.approx(sklearn.f1_score(*flat, average="macro", zero_division=0))
    each = scores_by_type(true, told, plain=True)
    names = sorted(each)
    wanted = sklearn.precision_recall_fscore_support(*flat, labels=names, zero_division=0)
    for n, name in enumerate(names):
        assert list(each[name].values()) == pytest.approx([float(part[n]) for part in wanted]), name
    assert list(each["NOUN"]) == ["precision", "recall", "f1", "words"]


@pytest.mark.parametrize(
    ("true", "told"), [([["O"]], [["O", "O"]]), ([["O"]], []), ([], []), ([[]], [[]]), ([["O"], []], [[], ["O"]])]
)
def test_sides_of_other_lengths_are_refused(true, told):
    for score in (entity_scores, word_accuracy):
        with pytest.raises(ShapeError, match="the same lengths"):
            score(true, told)
