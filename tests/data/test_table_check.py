"""Leaks, duplicates and contradictions are found, counted and said; clean data is left in peace."""

import json

import pytest

from weft.data import Columns, Table, compare_tables, read_examples, stratified_split
from weft.errors import DataError


def examples(*rows, pairs=False, name="train.csv"):
    columns = dict(zip(["text", "label", "pair"], zip(*rows, strict=True), strict=False))
    return read_examples(Table.of_columns(columns, name=name), Columns("text", "pair" if pairs else None, "label"))


TRAIN = [
    ("One text here", "a"),
    ("another text", "b"),
    ("Another  TEXT", "b"),
    ("third", "a"),
    ("third", "b"),
    ("4", "a"),
]


def test_counts_by_hand():
    test = examples(("one text  here", "a"), ("third", "c"), ("new words", "b"), ("ANOTHER TEXT", "a"), name="test.csv")
    found = compare_tables(examples(*TRAIN), test)
    assert (found.train.examples, found.train.duplicates, found.train.contradictions) == (6, 1, 1)
    assert found.train.balance == {"a": 3, "b": 3}
    assert found.train.words == {"shortest": 1, "quarter": 1, "half": 2, "three_quarters": 2, "most": 3, "longest": 3}
    assert (found.known, found.known_same_label, found.known_other_label) == (0.75, 0.25, 0.5)
    assert (found.test.examples, found.test.duplicates, found.test.contradictions) == (4, 0, 0)
    assert any(
        "75.0% of test.csv also stand in train.csv (1 with the same label, 2 with another)" in w for w in found.warnings
    )
    assert any("1 of 6 examples in train.csv stand there before" in w for w in found.warnings)
    assert any("1 text stands in train.csv with several labels" in w for w in found.warnings)
    assert json.loads(json.dumps(found.to_dict()))["known"] == 0.75


def test_clean_data_has_no_warnings():
    train = examples(*((f"text {n}", "ab"[n % 2]) for n in range(50)))
    test = examples(*((f"other {n}", "ab"[n % 2]) for n in range(50)), name="test.csv")
    found = compare_tables(train, test)
    assert found.warnings == () and found.known == 0
    alone = compare_tables(train)
    assert alone.test is None and alone.known is None and alone.warnings == ()


def test_pairs_are_compared_as_pairs():
    train = examples(("a", "x", "b"), ("b", "y", "c"), pairs=True)
    swapped = examples(("b", "x", "a"), ("a", "y", "c"), pairs=True, name="test.csv")
    assert compare_tables(train, swapped).known == 0
    assert compare_tables(train, train).known_same_label == 1
    with pytest.raises(DataError, match="both with pairs"):
        compare_tables(train, examples(("a", "x")))


def test_imbalance_and_measures():
    found = compare_tables(examples(*((f"text {n}", "b" if n else "a") for n in range(50))))
    assert any("'b' is 49 times as frequent as 'a'" in w for w in found.warnings)
    assert compare_tables(examples(*((f"text {n}", f"{n}.5") for n in range(90)))).train.balance == {}


def test_a_split_by_keys_has_no_leak():
    rows = [(("Some Text %d" if n % 3 else "some  text %d") % (n % 40), "ab"[n % 2]) for n in range(200)]
    whole = examples(*rows)
    train, validation = stratified_split(whole.labels, 0.2, 0, groups=whole.keys())
    assert compare_tables(whole.part(train), whole.part(validation)).known == 0
    train, validation = stratified_split(whole.labels, 0.2, 0)
    assert compare_tables(whole.part(train), whole.part(validation)).known > 0.9
