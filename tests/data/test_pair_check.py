"""What is doubtful in pairs of texts: counted as a plain loop would, and said only when there is much of it."""

import pytest

from weft.data import Pairs
from weft.data.pair_check import KnownPairs, PairFacts

FEW = [("a dog", "ein Hund"), ("A  dog", "ein Hund"), ("a dog", "eine Dogge"), ("Berlin", "Berlin"), ("b", "c" * 10)]


def known(*pairs):
    return KnownPairs(Pairs.of(pairs))


def test_counts():
    assert known(*FEW).facts() == PairFacts(pairs=5, duplicates=1, several_targets=1, copied=1, uneven=1)
    assert known(("b", "c" * 9), ("c " * 9, "d ")).facts().uneven == 0, "nine times is allowed"
    assert known(("apple", "Apple")).facts().copied == 0, "writing it with a capital is something to learn"


def test_overlap_of_sources_and_of_whole_pairs():
    test = known(("a DOG", "ein hund"), ("a dog", "la chienne"), ("new", "neu"))
    overlap = test.known_in(known(*FEW))
    assert (overlap.sources, overlap.pairs) == (2, 1)
    told = overlap.warning("test.tsv", 3, "train.tsv")
    assert told == [
        "2 of 3 sources in test.tsv also stand in train.tsv (1 with the same target): "
        "results on it look better than they are"
    ]
    assert overlap.warning("test.tsv", 1000, "train.tsv") == []


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (PairFacts(100, 0, 50, 0, 0), []),
        (PairFacts(100, 1, 0, 10, 1), []),
        (PairFacts(100, 2, 0, 0, 0), ["2 of 100 pairs in a.tsv stand there before"]),
        (PairFacts(100, 0, 0, 11, 0), ["the same in 11 of 100 pairs"]),
        (PairFacts(100, 0, 0, 0, 2), ["more than 9 times as long as the other in 2 of 100 pairs"]),
        (PairFacts(100, 2, 0, 11, 2), ["stand there before", "learn to copy", "do they belong together?"]),
    ],
)
def test_only_much_of_it_is_a_warning(facts, words):
    told = list(facts.warnings("a.tsv"))
    assert len(told) == len(words) and all(word in line for word, line in zip(words, told, strict=True))
