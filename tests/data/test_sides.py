"""Which columns are source and target, and which tables are pairs at all."""

import json

import pytest

from weft.data import Table, find_sides, read_table
from weft.data.sides import holds_pairs
from weft.data.tables import head_of
from weft.errors import ConfigError, DataError

ENGLISH = ["a man rides off", "two dogs run", "the house is red", "nobody is here"]
GERMAN = ["ein Mann reitet los", "zwei Hunde rennen", "das Haus ist rot", "niemand ist da"]

CHOSEN = {
    "two columns, the first is the source": ({"en": ENGLISH, "de": GERMAN}, ("en", "de")),
    "also if the names say otherwise": ({"target": ENGLISH, "source": GERMAN}, ("target", "source")),
    "also if one holds numbers": ({"digits": range(4), "words": ENGLISH}, ("digits", "words")),
    "usual names among others": (
        {"id": range(4), "note": GERMAN, "source": ENGLISH, "Target": GERMAN},
        ("source", "Target"),
    ),
    "ids are no texts": ({"id": range(4), "en": ENGLISH, "de": GERMAN}, ("en", "de")),
    "nor is what repeats": ({"topic": "abab", "en": ENGLISH, "de": GERMAN}, ("en", "de")),
    "the first two of three languages": ({"en": ENGLISH, "de": GERMAN, "fr": ENGLISH[::-1]}, ("en", "de")),
    "whatever there is": ({"a": range(4), "b": range(4), "c": range(4)}, ("a", "b")),
}


@pytest.mark.parametrize("what", CHOSEN)
def test_chosen_columns(what):
    columns, wanted = CHOSEN[what]
    found = find_sides(Table.of_columns(columns))
    assert (found.source, found.target) == wanted
    assert f"the source {wanted[0]!r} and the target {wanted[1]!r}, because" in found.reason
    assert "\n" not in found.reason


def test_named_columns_win():
    table = Table.of_columns({"id": range(4), "en": ENGLISH, "de": GERMAN, "fr": ENGLISH[::-1]})
    found = find_sides(table, "fr", "en")
    assert (found.source, found.target) == ("fr", "en") and "you named 'fr' and 'en'" in found.reason
    assert find_sides(table, target="en").source == "de", "what is taken is not taken twice"
    assert find_sides(table, source="en").target == "de"
    two = Table.of_columns({"en": ENGLISH, "de": GERMAN})
    assert find_sides(two, source="de").target == "en"
    assert find_sides(two, target="en").source == "de"


def test_typos_and_contradictions():
    table = Table.of_columns({"english": ENGLISH, "german": GERMAN})
    with pytest.raises(ConfigError, match=r"(?s)no column 'englsh'.*did you mean 'english'"):
        find_sides(table, source="englsh")
    with pytest.raises(ConfigError, match="as the source and as the target"):
        find_sides(table, "german", "german")
    with pytest.raises(DataError, match="has one column, 'english'"):
        find_sides(Table.of_columns({"english": ENGLISH}))


LABELS = [f"{n}.5" for n in range(4)]
PAIRS = {
    "two texts": ({"en": ENGLISH, "de": GERMAN}, True),
    "source and target": ({"source": ENGLISH, "target": GERMAN}, True),
    "questions and answers": ({"question": ENGLISH, "answer": GERMAN}, True),
    "beside ids": ({"id": range(4), "en": ENGLISH, "de": GERMAN}, True),
    "beside one language": ({"lang": ["de"] * 4, "en": ENGLISH, "de": GERMAN}, True),
    "a target that repeats": ({"text": ENGLISH, "target": "0110"}, False),
    "a label that repeats": ({"a": ENGLISH, "b": GERMAN, "c": "xyxy"}, False),
    "a label by its name": ({"text": ENGLISH, "label": "abcd"}, False),
    "a number to learn": ({"a": ENGLISH, "b": GERMAN, "c": LABELS}, False),
    "a text and a number": ({"a": ENGLISH, "b": LABELS}, False),
    "one text": ({"id": range(4), "text": ENGLISH}, False),
    "three texts": ({"en": ENGLISH, "de": GERMAN, "fr": ENGLISH[::-1]}, False),
}


@pytest.mark.parametrize("what", PAIRS)
def test_tables_that_hold_pairs(what):
    columns, answer = PAIRS[what]
    assert holds_pairs(Table.of_columns(columns)) is answer


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "bare.tsv"])
def test_the_head_of_a_table_is_its_beginning(name, tmp_path):
    rows = [(f"a man rides number {n} home", f"ein Mann reitet {n} nach Hause") for n in range(200)]
    path = tmp_path / name
    if name == "a.jsonl":
        lines = [json.dumps({"en": a, "de": b}) for a, b in rows]
    else:
        mark = "," if name == "a.csv" else "\t"
        lines = [mark.join(row) for row in ([] if name == "bare.tsv" else [("en", "de")]) + rows]
    lines[50] = "{" if name == "a.jsonl" else "one cell alone"
    path.write_text("\n".join(lines) + "\n")
    head, whole = head_of(path, rows=101), read_table(path)
    assert head.columns == whole.columns
    assert list(head.rows()) == list(whole.rows())[: len(head)]
    assert len(head) in (99, 100) and len(whole) == 199 and holds_pairs(head)
