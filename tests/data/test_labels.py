"""What labels mean, the order of the classes, and every doubt said aloud."""

import json
import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data import Columns, Labels, Table, read_examples
from weft.errors import ConfigError, DataError

KINDS = {
    "words": (["b", "a", "b"], "single", ("a", "b")),
    "numbers as classes": (["10", "9", "10", "1"] * 5, "single", ("1", "9", "10")),
    "floats as classes": (["1.0", "0.0"] * 9, "single", ("0.0", "1.0")),
    "few fractions": (["0.5", "0.0", "1.0"] * 9, "single", ("0.0", "0.5", "1.0")),
    "ids of many classes": ([str(n % 77) for n in range(770)], "single", tuple(map(str, range(77)))),
    "many fractions": ([f"{n / 10:.1f}" for n in range(10, 51)] * 10, "regression", ()),
    "a few measures": (["3.92", "3.84", "0.5", "1.25"], "regression", ()),
    "many integers": ([str(3 * n) for n in range(40)] * 3, "regression", ()),
    "measures without a gap": ([f"{n}.0" for n in range(51)] * 60, "regression", ()),
    "bars": (["a", "b", "a|b"], "multilabel", ("a", "b")),
    "semicolons": (["x; y", "y;z", "x"], "multilabel", ("x", "y", "z")),
    "lists": (['["a"]', "[]", '["b", "a"]', "[1]"], "multilabel", ("1", "a", "b")),
    "a bar in the name": (["sci|fi", "rock|pop"] * 3, "single", ("rock|pop", "sci|fi")),
    "bars in names alike": (["new|york", "new|jersey"] * 3, "single", ("new|jersey", "new|york")),
    "not quite numbers": (["1", "2", "nan", "1_0"], "single", ("1", "1_0", "2", "nan")),
}


@pytest.mark.parametrize("what", KINDS)
def test_kinds(what):
    cells, kind, classes = KINDS[what]
    found = Labels.of(cells)
    assert (found.kind, found.classes) == (kind, classes)
    assert Labels.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert kind in repr(found)


def test_the_user_says_the_kind():
    cells = ["1", "2", "3", "2"]
    assert Labels.of(cells).kind == "single"
    assert Labels.of(cells, "regression").encode(["2.5"]).tolist() == [2.5]
    assert Labels.of(["a|b", "a"], "single").classes == ("a", "a|b")
    assert Labels.of(["a", "b"], "multilabel").encode(["a|b"]).tolist() == [[1, 1]]
    with pytest.raises(ConfigError, match="did you mean 'single'"):
        Labels.of(cells, "singel")
    with pytest.raises(DataError, match="'x' in 'label' is no number"):
        Labels.of(["1", "x"], "regression")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["a", "b", "c d", "é", "7"]), min_size=2, max_size=30), st.randoms())
def test_the_order_does_not_depend_on_the_rows(cells, rng):
    cells = [*cells, "a", "b"]
    mixed = list(cells)
    rng.shuffle(mixed)
    one, two = Labels.of(cells), Labels.of(mixed)
    assert one == two and list(one.classes) == sorted(set(cells))
    assert one.decode(one.encode(cells)) == cells
    assert sum(one.counts) == len(cells)
    assert one.counts == tuple(cells.count(label) for label in one.classes)


def test_several_labels_as_rows_of_0_and_1():
    labels = Labels.of(['["b"]', "[]", '["a", "b"]'])
    rows = labels.encode(['["a"]', "[]", '["b", "a"]'])
    assert rows.dtype == np.float32 and rows.tolist() == [[1, 0], [0, 0], [1, 1]]
    assert labels.decode(rows) == [["a"], [], ["a", "b"]]
    assert labels.counts == (1, 2)
    assert any("an empty list of labels in 'label': 1" in warning for warning in labels.warnings)


# -- refusals ---------------------------------------------------------------------------------


def test_useless_labels():
    with pytest.raises(DataError, match="every row has the label 'x'"):
        Labels.of(["x"] * 10)
    with pytest.raises(DataError, match="no labels in 'stars'"):
        Labels.of([], name="stars")
    with pytest.raises(DataError, match="100 different values in 100 rows"):
        Labels.of([f"name {n}" for n in range(100)])
    with pytest.raises(DataError, match="same number"):
        Labels.of(["2.0", "2"], "regression")
    with pytest.raises(DataError, match="no row has a label"):
        Labels.of(["[]", "[]"])
    Labels.of([f"name {n % 50}" for n in range(100)])  # many, but they repeat


def test_unseen_labels_are_named_with_their_lines():
    labels = Labels.of(["good", "bad"] * 3)
    with pytest.raises(
        DataError, match=r"test.csv has a label that the training data has not: 'ugly' \(line 17\)"
    ) as error:
        labels.encode(["good", "ugly", "ugly"], [16, 17, 18], "test.csv")
    assert "'bad', 'good'" in str(error.value)
    with pytest.raises(DataError, match=r"5 labels .* and 2 more"):
        labels.encode(list("vwxyz"))
    with pytest.raises(DataError, match="'many' in line 2 of the data is no number"):
        Labels("regression").encode(["1", "many"])


def test_doubts_are_said_aloud(caplog):
    with caplog.at_level(logging.WARNING):
        labels = Labels.of(
            ["Good", "good", "very good", "verygood", "bad", "bad", "1", "1.0"] * 2 + ["odd"], name="mood"
        )
    assert len(labels.classes) == 8, "it warns, it does not decide"
    for words in ("'Good', 'good'", "'very good', 'verygood'", "'1', '1.0'", "fewer than 2 examples in 'mood': 'odd'"):
        assert any(words in warning for warning in labels.warnings), words
        assert words in caplog.text
    assert Labels.of(["a", "b"] * 2).warnings == ()


# -- examples ---------------------------------------------------------------------------------

COLUMNS = Columns("text", None, "label")


def rows(count, **changes):
    columns = {"text": [f"text {n}" for n in range(count)], "pair": ["p"] * count, "label": ["x", "y"] * (count // 2)}
    for place, (name, cell) in enumerate(changes.items(), 3):
        columns[name.rstrip("0123456789")][place] = cell
    return Table.of_columns(columns, name="t.csv")


def test_examples_keep_what_stands_there():
    found = read_examples(rows(4), Columns("text", "pair", "label"))
    assert found.inputs() == [(f"text {n}", "p") for n in range(4)]
    assert found.labels == ["x", "y", "x", "y"] and found.lines == [1, 2, 3, 4] and found.notes == ()
    part = found.part(np.array([3, 0]))
    assert part.texts == ["text 3", "text 0"] and part.labels == ["y", "x"] and part.lines == [4, 1]
    assert read_examples(rows(4), Columns("text")).labels is None
    assert "4 pairs" in repr(found)


def test_empty_cells_are_left_out_and_counted():
    found = read_examples(rows(200, text=" ", label="  "), COLUMNS)
    assert len(found) == 198 and 4 not in found.lines and 5 not in found.lines
    assert any("t.csv without a text, left out: 1 (line 4)" in note for note in found.notes)
    assert any("1 of 200 rows of t.csv have no 'label': line 5" in note for note in found.notes)
    assert len(read_examples(rows(200, pair=""), Columns("text", "pair", "label"))) == 199
    with pytest.raises(DataError, match=r"1 of 20 rows .* have no 'label': line 4"):
        read_examples(rows(20, label=""), COLUMNS)
    with pytest.raises(DataError, match=r"no row of .* has a text"):
        read_examples(Table.of_columns({"text": ["", " "], "label": "ab"}), COLUMNS)


def test_spaces_around_labels_are_dropped_and_said():
    found = read_examples(rows(20, label=" y"), COLUMNS)
    assert set(found.labels) == {"x", "y"}
    assert "spaces around them" in found.notes[0] and "' y'" in found.notes[0]
