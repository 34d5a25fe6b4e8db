"""What tagged sentences are like: counts, duplicates, leaks, rare types, unknown words, and what training refuses."""

import json

from weft.data.column_check import known_examples, rare_labels
from weft.tasks.tag.check import check_part, check_tagged, unknown_word_share
from weft.tasks.tag.demo import demo_sentences
from weft.tasks.tag.sentences import TaggedSentences, read_tagged


def made(*rows, scheme="iob2", name="data", **fields):
    """`made("Ada/B-PER left/O", …)`."""
    pairs = [[pair.rsplit("/", 1) for pair in row.split()] for row in rows]
    words, tags = ([[pair[n] for pair in row] for row in pairs] for n in (0, 1))
    return TaggedSentences(name, words, tags, list(range(1, len(rows) + 1)), scheme, **fields)


TRAIN = made(
    "Ada/B-PER Lovelace/I-PER left/O London/B-LOC",
    "Ada/B-PER left/O",
    "ada/B-PER LEFT/O",
    "Bo/B-PER left/O",
    "Bo/O left/O",
    "it/O rained/O",
    name="train.txt",
)


def test_one_part_by_itself():
    found = check_part(TRAIN, known_examples(TRAIN.as_examples()))
    assert (found["sentences"], found["word_count"], found["entities"]) == (6, 14, 5)
    assert found["kinds"] == {"PER": 4, "LOC": 1} and found["scheme"].startswith("IOB2")
    assert found["words"]["longest"] == 4 and found["words"]["half"] == 2 and found["longest_line"] == 1
    assert (found["duplicates"], found["contradictions"]) == (1, 1)
    alone = check_tagged({"train": TRAIN}).parts["train"]
    assert alone["unknown_words"] is None and alone["leakage"] == {}
    assert rare_labels(TRAIN.kinds(), 5) == {"PER": 4, "LOC": 1} and rare_labels(TRAIN.kinds(), 4) == {"LOC": 1}


def test_parts_beside_each_other():
    validation = made("Ada/B-PER left/O", "Bo/B-LOC left/O", "Eve/B-ORG came/O", name="validation.txt")
    found = check_tagged({"train": TRAIN, "validation": validation})
    part = found.parts["validation"]
    assert part["unknown_words"] == unknown_word_share(validation, TRAIN) == 2 / 6
    assert part["new_tags"] == {"B-ORG": 1}
    assert part["leakage"]["train"] == {"examples": 2, "same_label": 1, "other_label": 1}
    said = "\n".join(found.warnings)
    for words in (
        "train.txt has 6 sentences: little to learn from",
        "train.txt has fewer than 5 examples of PER (4), LOC (1)",
        "1 sentence stands in train.txt with different tags",
        "66.7% of validation also stand in train (1 with the same label, 1 with another)",
        "33% of the words of validation do not occur in train",
        "1 words of validation have tags that train does not have: B-ORG",
    ):
        assert words in said, words
    assert found.problems == [] and tuple(found.facts["labels"]) == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    told = json.loads(json.dumps(found.to_dict()))
    assert told["test"] is None and told["validation"]["leakage"]["train"]["examples"] == 2


def test_what_training_refuses():
    none = made("a/O b/O", scheme="none", name="o.txt")
    plain = made("a/NN b/VB", scheme="plain", name="pos.txt")
    assert check_tagged({"train": none}).problems == ["o.txt marks no entity: every word has the tag O"]
    assert check_tagged({"train": plain, "test": TRAIN}).problems == ["train.txt has entities, pos.txt has plain tags"]
    assert check_tagged({"train": TRAIN, "test": none}).problems == []


def test_ill_formed_tags_and_endless_sentences_are_told(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a B-X\nb I-X\n\nc I-X\n\n" + "d O\n" * 201)
    found = check_tagged({"train": read_tagged(path)})
    assert found.parts["train"]["ill_formed"] == 1 and "break" in found.notes[0]
    assert any("1 tags of" in line and "ill-formed" in line for line in found.warnings)
    assert any("at line 6 of" in line and "has 201 words" in line for line in found.warnings)


def test_good_data_has_no_warnings():
    parts = {part: demo_sentences(part) for part in ("train", "validation", "test")}
    found = check_tagged(parts)
    assert found.warnings == [] and found.problems == [] and found.notes == []
    assert list(found.parts["test"]["leakage"]) == ["train", "validation"]
