"""Checking tables: the counts are those of a plain count, and what training would refuse is told with the rest."""

import json
import random

import pytest

from weft.data import Labels, Table, compare_tables, read_examples
from weft.data.columns import Columns
from weft.errors import ConfigError, DataError
from weft.tasks import token_lengths
from weft.tasks.classify import check
from weft.tasks.classify.tables import TableConfig, read_tables
from weft.tasks.data_check import CheckRequest
from weft.tasks.preparation import ENCODER_TOKENS
from weft.tasks.vocabulary import encoder_tokenizer_fields
from weft.text import TokenizerConfig

WORDS = ["good", "bad", "film", "the", "a", "of", "was", "is", "plot", "actor", "slow", "fast", "fun", "dull", "very"]


def check_labelled(train, validation=(), test=(), labelled=None, **asked):
    return check.check_labelled(CheckRequest(train, validation, test, **asked), labelled)


def sentences(count, seed=0, words=8):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=words)) + f" {seed}-{n}" for n in range(count)]


def write(path, header, rows, separator=","):
    lines = [header, *(separator.join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def two_classes(path, count=200, seed=0, **changes):
    rows = [(text, "positive" if n % 4 else "negative") for n, text in enumerate(sentences(count, seed))]
    for place, row in changes.get("replace", {}).items():
        rows[place] = row
    return write(path, "text,label", rows)


def test_a_clean_table_with_two_classes(tmp_path):
    found = check_labelled([two_classes(tmp_path / "train.csv")], test=[two_classes(tmp_path / "test.csv", 40, seed=1)])
    train, test = found.parts["train"], found.parts["test"]
    assert [found.facts["columns"][name] for name in ("text", "pair", "label")] == ["text", None, "label"]
    assert found.facts["labels"] == {"kind": "single", "classes": ["negative", "positive"], "missing": ""}
    assert (train["rows"], train["examples"], train["broken"]) == (200, 200, 0)
    assert train["balance"] == {"positive": 150, "negative": 50}
    assert train["words"]["longest"] == 9
    assert test["leakage"]["train"]["examples"] == 0 and "validation" not in test["leakage"]
    assert found.notes == found.warnings == found.problems == found.facts["columns"]["unused"] == []


def test_leakage_is_counted_in_every_direction(tmp_path):
    texts = sentences(200)
    train = two_classes(tmp_path / "train.csv")
    dev_rows = {0: (texts[1].upper(), "positive"), 1: (texts[0], "positive")}  # the same label, and another one
    dev = two_classes(tmp_path / "dev.csv", 40, seed=1, replace=dev_rows)
    own = sentences(40, seed=1)
    test_rows = {0: ("  ".join(texts[2].split(" ")), "positive"), 1: (own[5], "positive"), 2: (own[6], "positive")}
    test = two_classes(tmp_path / "test.csv", 40, seed=2, replace=test_rows)
    found = check_labelled([train], [dev], [test])
    leaks = {(name, other): part for name in found.parts for other, part in found.parts[name]["leakage"].items()}
    assert {key: (part["examples"], part["same_label"], part["other_label"]) for key, part in leaks.items()} == {
        ("validation", "train"): (2, 1, 1),
        ("test", "train"): (1, 1, 0),
        ("test", "validation"): (2, 2, 0),
    }
    assert sum("look better than they are" in warning for warning in found.warnings) == 3
    assert any(f"5.0% of {dev} also stand in {train}" in warning for warning in found.warnings)


def test_tokens_are_those_that_a_model_reads(tmp_path):
    rows = [(" ".join(["film"] * n), "was the", "ab"[n % 2]) for n in range(1, 301)]
    path = write(tmp_path / "pairs.csv", "sentence1,sentence2,label", rows)
    found = check_labelled([path], tokenizer="words")
    config = TokenizerConfig.from_config("words")
    tokenizer = config.train([part for row in rows for part in row[:2]], special=("[PAD]", "[CLS]", "[SEP]", "[MASK]"))
    assert found.facts["tokenizer"]["vocab_size"] == tokenizer.vocab_size
    lengths = [len(ids) for ids, _ in tokenizer.encode_pairs([row[:2] for row in rows])]
    train = found.parts["train"]
    assert (train["tokens"]["shortest"], train["tokens"]["longest"]) == (min(lengths), max(lengths))
    assert train["cut"] == {limit: sum(length > limit for length in lengths) for limit in (128, 256, 512)}
    assert 0 < train["cut"][256] < train["cut"][128] and train["cut"][512] == 0
    alone = check_labelled([path], columns={"text": "sentence1"}, tokenizer="words").parts["train"]
    assert alone["tokens"]["longest"] == train["tokens"]["longest"] - 1 - len(tokenizer.encode("was the"))


def test_texts_that_are_mostly_cut_are_a_warning(tmp_path):
    rows = [("film " * (600 if n < 40 else 5) + str(n), "ab"[n % 2]) for n in range(200)]
    found = check_labelled([write(tmp_path / "a.csv", "text,label", rows)])
    assert found.parts["train"]["cut"] == {128: 40, 256: 40, 512: 40}
    assert any("20% of the texts are longer than 512 tokens" in warning for warning in found.warnings)


def test_very_many_texts_are_sampled(tmp_path, monkeypatch):
    path = two_classes(tmp_path / "a.csv", 400)
    whole = check_labelled([path])
    monkeypatch.setattr(token_lengths, "MAX_SAMPLE_CHARACTERS", 5000)
    some = check_labelled([path], test=[path])
    assert whole.facts["tokenizer"]["one_in"] == 1 and whole.parts["train"]["counted"] == 400
    assert (one_in := some.facts["tokenizer"]["one_in"]) > 2
    assert some.parts["test"]["counted"] == some.parts["train"]["counted"] == -(-400 // one_in)
    assert some.parts["train"]["tokens"]["half"] == pytest.approx(whole.parts["train"]["tokens"]["half"], abs=2)


def test_several_labels_are_compared_by_meaning(tmp_path):
    texts = sentences(120)
    rows = [(text, ("a|b", "b|a", "c", "b")[n % 4]) for n, text in enumerate(texts)]
    train = write(tmp_path / "a.csv", "text,tags", [*rows, (texts[0], "b|a"), (texts[3], "a|b")])
    test = write(tmp_path / "b.csv", "text,tags", [(texts[1], "a|b"), (texts[2], "a|c"), ("new", "c|b")])
    found = check_labelled([train], test=[test])
    content = found.parts["train"]
    assert found.facts["labels"]["kind"] == "multilabel" and "separated by '|'" in found.sentences[3]
    assert content["balance"] == {"b": 92, "a": 62, "c": 30}
    assert (content["duplicates"], content["contradictions"]) == (1, 1)
    overlap = found.parts["test"]["leakage"]["train"]
    assert (overlap["examples"], overlap["same_label"], overlap["other_label"]) == (2, 1, 1)


def test_without_labels_the_comparison_takes_cells_as_they_are():
    table = Table.of_columns({"text": ["x", "x", "y"], "label": ["a|b", "b|a", "a"]})
    examples = read_examples(table, Columns("text", None, "label"))
    assert compare_tables(examples).train.contradictions == 1
    meant = compare_tables(examples, labels=Labels("multilabel", ("a", "b"), "|"))
    assert (meant.train.contradictions, meant.train.duplicates, meant.train.balance) == (0, 1, {"a": 3, "b": 2})


def test_numbers_have_quantiles_and_no_classes(tmp_path):
    rows = [(text, f"{n / 100:.2f}") for n, text in enumerate(sentences(201))]
    rows.append((rows[0][0], "0.0"))  # 0.00 and 0.0 are the same number: a duplicate, no contradiction
    found = check_labelled([write(tmp_path / "a.csv", "text,score", rows)])
    train = found.parts["train"]
    assert found.facts["labels"]["kind"] == "regression" and train["balance"] == {}
    assert (train["duplicates"], train["contradictions"]) == (1, 0)
    assert train["numbers"]["lowest"] == 0 and train["numbers"]["highest"] == 2
    assert train["numbers"]["half"] == pytest.approx(1, abs=0.02)
    assert found.warnings == []
    words = write(tmp_path / "b.csv", "text,score", [("one more", "high"), ("two", "0.3")])
    bad = check_labelled([str(tmp_path / "a.csv")], test=[words])
    assert "'high' in line 2" in bad.problems[0] and bad.parts["test"]["numbers"] is None


def test_one_class_is_a_problem_and_the_rest_is_still_told(tmp_path):
    rows = [(text, "same") for text in sentences(150)]
    found = check_labelled([write(tmp_path / "a.csv", "text,label", rows)])
    assert found.facts["labels"]["kind"] is None
    assert "every row has the label 'same' in 'label'" in found.problems[0]
    assert found.parts["train"]["balance"] == {"same": 150} and found.parts["train"]["tokens"]["longest"] > 9


def test_labels_that_were_never_learned_are_a_problem_of_each_part(tmp_path):
    train = two_classes(tmp_path / "train.csv")
    dev = two_classes(tmp_path / "dev.csv", 20, seed=1, replace={3: ("dull", "Positive")})
    test = two_classes(tmp_path / "test.csv", 20, seed=2, replace={3: ("dull", "neutral")})
    found = check_labelled([train], [dev], [test])
    assert len(found.problems) == 2
    assert "'Positive' (line 5)" in found.problems[0] and "is 'Positive' the same as 'positive'?" in found.problems[0]
    assert "'neutral' (line 5)" in found.problems[1] and "the same" not in found.problems[1]


def test_doubtful_labels_are_warnings(tmp_path):
    rows = [(text, "Spam" if n % 2 else "spam") for n, text in enumerate(sentences(200))]
    rows += [("x y", "rare"), *((f"z {n}", "few") for n in range(5))]
    train = write(tmp_path / "a.csv", "text,label", rows)
    test = write(tmp_path / "b.csv", "text,label", [("new", "spam"), ("newer", "few")])
    told = check_labelled([train], test=[test]).warnings
    assert any("'Spam', 'spam'" in warning for warning in told)
    assert any("fewer than 2 examples" in warning and "'rare'" in warning for warning in told)
    assert any("a class has fewer than 10 examples: 'few' (5)" in warning for warning in told)
    assert any("has no example of 'Spam', 'rare'" in warning for warning in told)
    assert any("'Spam' is 100 times as frequent as 'rare'" in warning for warning in told)


def test_rows_left_out_are_counted_with_their_lines(tmp_path):
    rows = [(text, "ab"[n % 2]) for n, text in enumerate(sentences(300))]
    rows[4], rows[10], rows[12], rows[20] = ("  ", "a"), ("fine", ""), ("", "b"), ("too", "many", "cells")
    path = write(tmp_path / "a.csv", "text,label", rows)
    found = check_labelled([path, path])  # two tables are one part
    train = found.parts["train"]
    assert (train["rows"], train["broken"], train["without_text"], train["without_label"]) == (600, 2, 4, 2)
    assert train["examples"] == 592 == sum(train["balance"].values())
    notes = "\n".join(found.notes)
    assert "lines 6, 14" in notes and "line 12" in notes and "line 22 has 3 cells where 2 belong" in notes


def test_a_table_without_labels(tmp_path):
    path = write(tmp_path / "a.csv", "id,text", enumerate(sentences(150)))
    found = check_labelled([path])
    assert found.facts["columns"]["label"] is None and "no values repeat" in found.facts["labels"]["missing"]
    assert found.facts["columns"]["unused"] == ["id"] and found.facts["labels"]["kind"] is None
    assert not found.parts["train"]["labelled"]
    assert found.parts["train"]["contradictions"] == 0 and found.warnings == found.problems == []
    with pytest.raises(DataError, match="looks like a label"):
        check_labelled([path], labelled=True)
    labelled = two_classes(tmp_path / "b.csv")
    assert check_labelled([labelled], labelled=False).facts["columns"]["unused"] == ["label"]


def test_a_test_table_without_labels_is_still_compared(tmp_path):
    train = two_classes(tmp_path / "train.csv")
    test = write(tmp_path / "test.csv", "text", [(text,) for text in [*sentences(3), *sentences(7, seed=5)]])
    found = check_labelled([train], test=[test])
    overlap = found.parts["test"]["leakage"]["train"]
    assert (overlap["examples"], overlap["same_label"], overlap["other_label"]) == (3, None, None)
    assert any("has no column 'label': nothing can be measured on it" in note for note in found.notes)
    assert any(warning.startswith(f"30.0% of {test} also stand in {train}:") for warning in found.warnings)
    assert found.problems == []


def test_columns_that_are_not_there(tmp_path):
    train = two_classes(tmp_path / "train.csv")
    other = write(tmp_path / "test.csv", "texts,label", [("one", "positive"), ("two", "negative")])
    with pytest.raises(DataError, match=r"(?s)test.csv has no column 'text', which .*did you mean 'texts'"):
        check_labelled([train], test=[other])
    with pytest.raises(ConfigError, match=r"(?s)no column 'lable'.*did you mean 'label'"):
        check_labelled([train], columns={"label": "lable"})
    with pytest.raises(ConfigError, match="wordpiece"):
        check_labelled([str(tmp_path / "none.csv")], tokenizer="wordpeice")


def test_the_findings_as_json(tmp_path):
    train, test = two_classes(tmp_path / "train.csv"), two_classes(tmp_path / "test.csv", 20, seed=1)
    found = json.loads(json.dumps(check_labelled([train], test=[test]).to_dict()))
    assert found["validation"] is None
    assert found["columns"]["label"] == "label" and "usual name" in found["columns"]["reason"]
    assert found["labels"] == {"kind": "single", "classes": ["negative", "positive"], "missing": ""}
    assert found["tokenizer"]["kind"] == "wordpiece" and found["tokenizer"]["vocab_size"] > 20
    assert found["test"]["leakage"]["train"] == {"examples": 0, "same_label": 0, "other_label": 0}
    assert found["train"]["balance"] == {"positive": 150, "negative": 50}
    assert found["train"]["cut"] == {"128": 0, "256": 0, "512": 0}


@pytest.mark.parametrize("kind", [None, "bpe"])
def test_the_vocabulary_is_the_one_that_training_learns(tmp_path, kind):
    train, dev = two_classes(tmp_path / "train.csv"), two_classes(tmp_path / "dev.csv", 40, seed=1)
    tables = read_tables(TableConfig(train=(train,), validation=(dev,)))
    config = TokenizerConfig.from_config(encoder_tokenizer_fields(kind, tables.config.characters))
    learned = config.train([part for parts in tables.train.inputs() for part in parts], special=ENCODER_TOKENS)
    found = check_labelled([train], [dev], tokenizer=kind)
    assert (found.facts["tokenizer"]["kind"], found.facts["tokenizer"]["vocab_size"]) == (
        learned.kind,
        learned.vocab_size,
    )
    lengths = [len(ids) for ids, _ in learned.encode_pairs([(text, None) for text in tables.validation.texts])]
    assert found.parts["validation"]["tokens"]["longest"] == max(lengths)
