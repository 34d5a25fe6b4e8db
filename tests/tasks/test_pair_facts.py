"""What is doubtful in pairs of texts: counted as a plain loop would, and said only when there is much of it."""

import pytest

from weft.data import Pairs
from weft.tasks.translate.pair_data import known_pairs, pair_facts, pair_warnings

FEW = [("a dog", "ein Hund"), ("A  dog", "ein Hund"), ("a dog", "eine Dogge"), ("Berlin", "Berlin"), ("b", "c" * 10)]
NAMES = ("pairs", "duplicates", "several_targets", "copied", "uneven")


def known(*pairs):
    return known_pairs(Pairs.of(pairs))


def facts(*pairs):
    return pair_facts(Pairs.of(pairs), known(*pairs))


def test_counts():
    assert facts(*FEW) == dict(zip(NAMES, (5, 1, 1, 1, 1), strict=True))
    assert facts(("b", "c" * 9), ("c " * 9, "d "))["uneven"] == 0, "nine times is allowed"
    assert facts(("apple", "Apple"))["copied"] == 0, "writing it with a capital is something to learn"


def test_overlap_of_sources_and_of_whole_pairs():
    test = known(("a DOG", "ein hund"), ("a dog", "la chienne"), ("new", "neu"))
    overlap = test.known_in(known(*FEW))
    assert (overlap.examples, overlap.same_label, overlap.other_label) == (2, 1, 1)
    told = overlap.warning("the sources in test.tsv", 3, "train.tsv", "target")
    assert list(told) == [
        "66.7% of the sources in test.tsv also stand in train.tsv (1 with the same target, 1 with another): "
        "results on it look better than they are"
    ]
    assert list(overlap.warning("test.tsv", 1000, "train.tsv")) == []


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((100, 0, 50, 0, 0), []),
        ((100, 1, 0, 10, 1), []),
        ((100, 2, 0, 0, 0), ["2 of 100 pairs in a.tsv stand there before"]),
        ((100, 0, 0, 11, 0), ["the same in 11 of 100 pairs"]),
        ((100, 0, 0, 0, 2), ["more than 9 times as long as the other in 2 of 100 pairs"]),
        ((100, 2, 0, 11, 2), ["stand there before", "learn to copy", "do they belong together?"]),
    ],
)
def test_only_much_of_it_is_a_warning(numbers, words):
    told = list(pair_warnings(dict(zip(NAMES, numbers, strict=True)), "a.tsv"))
    assert len(told) == len(words) and all(word in line for word, line in zip(words, told, strict=True))
