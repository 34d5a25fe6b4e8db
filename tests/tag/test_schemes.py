"""Schemes of tags: recognised, converted, and what breaks their rules is counted."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tag.random_tags import LETTERS, draw_entities, make_case, replace_tags, write_tags
from weft.errors import DataError
from weft.tasks.tag.schemes import Entity, find_entities, find_scheme, ill_formed, split_tag, write_iob2

NAMED = {"iob1", "iob2", "bioes", "bilou"}


@pytest.mark.parametrize("scheme", LETTERS)
@pytest.mark.parametrize("seed", range(20))
def test_every_scheme_says_the_same_entities(scheme, seed):
    rng = random.Random(seed)
    lengths = [rng.randint(1, 15) for _ in range(40)]
    found = [draw_entities(rng, n, 0.6) for n in lengths]
    tags = [write_tags(each, n, scheme) for each, n in zip(found, lengths, strict=True)]
    assert find_scheme(tags) == ("iob2" if scheme == "bare" else scheme)
    assert not any(ill_formed(row, find_scheme(tags)) for row in tags)
    if scheme == "bare":
        found = [[("_", first, last) for _, first, last in each] for each in found]
    assert [find_entities(row) for row in tags] == found
    iob2 = [write_iob2(find_entities(row), len(row)) for row in tags]
    assert iob2 == [
        write_tags(each, n, "bare" if scheme == "bare" else "iob2") for each, n in zip(found, lengths, strict=True)
    ]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10_000))
def test_converting_loses_no_entity_however_ill_formed(number):
    _, true, predicted = make_case(number)
    for tags in (*true, *predicted):
        found = find_entities(tags)
        assert find_entities(write_iob2(found, len(tags))) == found
        assert all(a.last < b.first for a, b in pairwise(found))
        assert not ill_formed(write_iob2(found, len(tags)), "iob2")
        marked = sum(split_tag(tag)[0] != "O" for tag in tags)
        assert sum(entity.last - entity.first + 1 for entity in found) == marked


ILL = [
    ("iob2", "O I-A", [1]),
    ("iob2", "B-A I-B", [1]),
    ("iob2", "B-A I-A I-A O", []),
    ("iob2", "I-A I-A I-A", [0]),
    ("iob1", "O B-A", [1]),
    ("iob1", "I-A B-A I-A B-B", [3]),
    ("iob1", "I-A I-B", []),
    ("bioes", "B-A O", [1]),
    ("bioes", "B-A", [1]),
    ("bioes", "B-A I-A", [2]),
    ("bioes", "I-A E-A", [0]),
    ("bioes", "S-A E-A", [1]),
    ("bioes", "B-A E-B", [1]),
    ("bioes", "B-A I-A E-A S-A B-A E-A O", []),
    ("bilou", "B-A L-A U-B O", []),
    ("bilou", "B-A U-A", [1]),
    ("plain", "NN VB", []),
    ("none", "O O", []),
]


@pytest.mark.parametrize(("scheme", "tags", "places"), ILL)
def test_what_breaks_the_rules(scheme, tags, places):
    assert ill_formed(tags.split(), scheme) == places


@pytest.mark.parametrize("scheme", sorted(NAMED))
def test_a_few_mistakes_do_not_change_the_scheme(scheme):
    rng = random.Random(5)
    tags = [write_tags(draw_entities(rng, 12, 0.6), 12, scheme) for _ in range(200)]
    wrong = [replace_tags(rng, row, scheme, 0.02) for row in tags]
    assert find_scheme(wrong) == scheme
    assert 5 < sum(len(ill_formed(row, scheme)) for row in wrong) < 150


def test_other_kinds_of_tags():
    assert find_scheme([["O", "O"], ["O"]]) == "none"
    assert find_scheme([["NN", "VB", "O"]]) == "plain"
    assert find_scheme([["N", "V", "S", "I", "-LRB-"]]) == "plain"
    assert find_scheme([["O", "B", "I"]]) == "iob2"
    assert find_scheme([["B", "M", "E", "S", "O"]]) == "bioes"
    assert find_scheme([["B-A", "M-A", "E-A", "O"]]) == "bioes"
    assert find_scheme([["O", "I-A", "I-A"]]) == "iob1"
    assert find_scheme([["O", "U-A"]]) == "bilou"
    assert find_scheme([["S", "B", "N"]]) == "plain"  # one letter each, and no O: parts of speech


REFUSED = {
    "two kinds": (["B-PER", "NN", "O"], "tags of two kinds: 'B-PER' marks an entity, 'NN' does not"),
    "a zero for O": (["B-PER", "0"], "two kinds"),
    "letters of two schemes": (["B-A", "E-A", "L-A", "O"], "begin with B, E, L"),
    "ends only": (["I-A", "E-A", "O"], "begin with E, I"),
    "the letter at the end": (["PER-B", "PER-I", "O"], "written as 'PER-B', 'PER-I'"),
    "underscores": (["B_PER", "I_PER", "O"], "written as 'B_PER'"),
    "small letters": (["b-per", "i-per", "o"], "written as 'b-per'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_scheme_is_refused(what):
    tags, words = REFUSED[what]
    with pytest.raises(DataError, match=words) as caught:
        find_scheme([tags], "file.txt")
    assert "file.txt" in str(caught.value) and "expected" in str(caught.value)


def test_entities_of_ill_formed_tags_by_hand():
    assert find_entities(["O", "I-A", "I-A", "I-B", "B-B", "O"]) == [
        Entity("A", 1, 2),
        Entity("B", 3, 3),
        Entity("B", 4, 4),
    ]
    assert find_entities([]) == []
    assert split_tag("B-A-B") == ("B", "A-B") and split_tag("U-X") == ("S", "X") and split_tag("I") == ("I", "_")
