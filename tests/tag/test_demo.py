"""The embedded sentences: the same everywhere, parts apart, and not to be solved by looking words up."""

import hashlib
from itertools import pairwise

import pytest

from weft.errors import ConfigError, DataError
from weft.tasks.tag.baseline import MostFrequentTag
from weft.tasks.tag.check import unknown_word_share
from weft.tasks.tag.demo import SIZES, demo_sentences
from weft.tasks.tag.metrics import tag_scores
from weft.tasks.tag.schemes import ill_formed
from weft.tasks.tag.split_words import split_words

PARTS = {part: demo_sentences(part) for part in SIZES}
SHA = "3507d9ebb89abdb0"


def test_they_are_the_same_on_every_machine():
    told = "\n".join(
        f"{w} {t}"
        for p in PARTS.values()
        for pair in zip(p.words, p.tags, strict=True)
        for w, t in zip(*pair, strict=True)
    )
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == SHA


def test_parts_are_apart_and_well_formed():
    keys = {part: set(found.as_examples().keys()) for part, found in PARTS.items()}
    assert not keys["train"] & keys["test"] and not keys["train"] & keys["validation"]
    assert not keys["validation"] & keys["test"]
    for part, found in PARTS.items():
        assert len(found) == len(keys[part]) == SIZES[part]
        assert not any(ill_formed(tags, "iob2") for tags in found.tags)
        assert set(found.kinds()) == {"PER", "LOC", "ORG", "DATE"} and min(found.kinds().values()) > 80
        assert found.labels() == PARTS["train"].labels()


def names(part):
    found = PARTS[part]
    pairs = [(w, t) for pair in zip(found.words, found.tags, strict=True) for w, t in zip(*pair, strict=True)]
    return {word for word, tag in pairs if tag[2:] == "LOC" and word not in ("Port", "Lower")}


def test_half_of_the_names_are_new():
    for part in ("validation", "test"):
        assert 0.3 < len(names(part) - names("train")) / len(names(part)) < 0.7
        assert 0.03 < unknown_word_share(PARTS[part], PARTS["train"]) < 0.15


def test_words_are_as_plain_text_is_cut():
    for words in PARTS["test"].words:
        assert [word.text for word in split_words(" ".join(words).replace(" 's", "'s"))] == words
        assert not any(a in ("a", "A") and b[0] in "aeiou" for a, b in pairwise(words))


def test_looking_words_up_is_not_enough():
    train = PARTS["train"]
    baseline = MostFrequentTag(train.words, train.tags)
    for part in ("validation", "test"):
        found = tag_scores(PARTS[part].tags, baseline.predict(PARTS[part].words), plain=False)
        assert 0.1 < found["f1"] < 0.4 and 0.7 < found["accuracy"] < 0.9
    known = tag_scores(train.tags, baseline.predict(train.words), plain=False)
    assert known["f1"] < 0.5  # not even on what it has seen


def test_the_most_frequent_tag():
    baseline = MostFrequentTag([["a", "b", "a", "c"], ["a"]], [["X", "Y", "Z", "Y"], ["Z"]])
    assert baseline.predict([["a", "b", "new"], []]) == [["Z", "Y", "Y"], []]
    assert repr(baseline) == "MostFrequentTag(3 words, else 'Y')"
    assert MostFrequentTag([["a", "a"]], [["B", "A"]]).predict([["a"]]) == [["A"]]  # a tie: by the alphabet
    with pytest.raises(DataError, match="no words"):
        MostFrequentTag([], [])


def test_an_unknown_part_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'train'"):
        demo_sentences("trian")
