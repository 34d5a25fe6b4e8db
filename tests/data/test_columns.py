"""Which columns are meant: as named, by usual names, by content; and always why."""

import pytest

from weft.data import Table, find_columns
from weft.errors import ConfigError, DataError

TEXTS = ["a film that moves", "dull from start to end", "what a waste of time", "a joy for everyone"]
MORE = ["an image that touches", "boring all the way", "time well spent on it", "everyone will like it"]


def table(**columns):
    return Table.of_columns({name.replace("__", " "): cells for name, cells in columns.items()})


USUAL = {
    ("text", None, "label"): {"text": TEXTS, "label": "abab"},
    ("Review", None, "Sentiment"): {"id": range(4), "Review": TEXTS, "Sentiment": "abab"},
    ("sentence1", "sentence2", "label"): {"label": "0101", "sentence1": TEXTS, "sentence2": MORE},
    ("#1 String", "#2 String", "Quality"): {
        "Quality": "1010",
        "#1 ID": range(4),
        "#2 ID": range(4),
        "#1 String": TEXTS,
        "#2 String": MORE,
    },
    ("sentence_A", "sentence_B", "entailment_judgment"): {
        "pair_ID": range(4),
        "sentence_A": TEXTS,
        "sentence_B": MORE,
        "relatedness_score": [1.5, 2.5, 3.5, 4.5],
        "entailment_judgment": "NENE",
    },
    ("premise", "hypothesis", "gold_label"): {"gold_label": "abab", "premise": TEXTS, "hypothesis": MORE},
    ("question", "sentence", "label"): {"question": TEXTS, "sentence": MORE, "label": "0101"},
    ("text", None, "target"): {"keyword": "abcd", "text": TEXTS, "target": "0110"},
}


@pytest.mark.parametrize("wanted", USUAL)
def test_usual_names(wanted):
    found = find_columns(Table.of_columns(USUAL[wanted]))
    assert (found.text, found.pair, found.label) == wanted
    assert all(repr(name) in found.reason for name in wanted if name)
    assert "usual name" in found.reason and "\n" not in found.reason


BY_CONTENT = {
    ("c", None, "a"): {"a": "0101", "b": range(4), "c": TEXTS},
    ("a", None, "b"): {"a": TEXTS, "b": ["spam", "ham", "spam", "ham"]},
    ("a", "b", "c"): {"a": TEXTS, "b": MORE, "c": "xyxy"},
    ("a", "b", "c "): {"a": ["car", "gem", "boy"], "b": ["auto", "jewel", "lad"], "c ": [3.92, 3.84, 3.76]},
    ("f", None, "p"): {"p": "0404", "i": range(4), "q": ["NO_QUERY"] * 4, "user": "abcd", "f": TEXTS},
    ("e", None, "k "): {"k ": "xyzxyzxy", "e": TEXTS[:2] * 4},  # texts may repeat too
    ("d", None, "k"): {"k": [str(place % 8) for place in range(64)], "d": [f"some words {n}" for n in range(64)]},
}


@pytest.mark.parametrize("wanted", BY_CONTENT)
def test_by_content(wanted):
    found = find_columns(Table.of_columns(BY_CONTENT[wanted]))
    assert (found.text, found.pair, found.label) == wanted
    assert "usual name" not in found.reason


def test_named_columns_win():
    whole = Table.of_columns({"text": TEXTS, "title": MORE, "label": "abab", "stars": "1212"})
    found = find_columns(whole, text="title", label="stars")
    assert (found.text, found.pair, found.label) == ("title", None, "stars")
    assert "you named 'title' and 'stars'" in found.reason
    found = find_columns(whole, text="text", pair="title")
    assert (found.text, found.pair, found.label) == ("text", "title", "label")
    found = find_columns(whole, label="text")
    assert (found.text, found.label) == ("title", "text"), "what is taken is not taken twice"


def test_another_label_is_mentioned():
    names = {"text": TEXTS, "label": "abab", "stars": "1212"}
    assert "so is 'stars'" in find_columns(Table.of_columns(names)).reason


def test_texts_to_be_judged_need_no_label():
    found = find_columns(Table.of_columns({"review": TEXTS}), labelled=False)
    assert (found.text, found.label) == ("review", None)
    assert find_columns(Table.of_columns({"x": TEXTS, "n": range(4)}), labelled=False).text == "x"


def test_typos_and_contradictions():
    whole = Table.of_columns({"review": TEXTS, "stars": "1212"})
    with pytest.raises(ConfigError, match="did you mean 'review'"):
        find_columns(whole, text="reveiw")
    with pytest.raises(ConfigError, match="known: review, stars"):
        find_columns(whole, label="zzz")
    with pytest.raises(ConfigError, match="different"):
        find_columns(whole, text="review", label="review")
    with pytest.raises(ConfigError, match="without a text"):
        find_columns(whole, pair="review")


def test_nothing_fits():
    with pytest.raises(DataError, match="looks like a label") as error:
        find_columns(Table.of_columns({"a": TEXTS, "b": MORE}))
    assert "--label" in str(error.value) and "'a', 'b'" in str(error.value)
    with pytest.raises(DataError, match="'b' holds one value only"):
        find_columns(Table.of_columns({"a": TEXTS, "b": ["x"] * 4}))
    with pytest.raises(DataError, match="looks like text"):
        find_columns(Table.of_columns({"a": "1212", "b": range(4)}))
    with pytest.raises(DataError, match="one column, 'label'"):
        find_columns(Table.of_columns({"label": TEXTS}))
