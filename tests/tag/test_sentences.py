"""Files with tagged words: CoNLL and JSON as people have them, columns, schemes, splits, and what is refused."""

import gzip
import json
import time

import numpy as np
import pytest

from weft.errors import ConfigError, DataError
from weft.tasks.tag.sentences import join_sentences, read_tagged, split_sentences

CONLL = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
German JJ B-NP B-MISC
call NN I-NP O
. . O O

Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER

"""
WORDS = [["EU", "rejects", "German", "call", "."], ["Peter", "Blackburn"]]
TAGS = [["B-ORG", "O", "B-MISC", "O", "O"], ["B-PER", "I-PER"]]


def written(tmp_path, content, name="data.txt"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


FORMS = {
    "as it is": CONLL.encode(),
    "tabs": CONLL.replace(" ", "\t").encode(),
    "several spaces": CONLL.replace(" ", "   ").encode(),
    "tabs and spaces": CONLL.replace("NNP B", "NNP\tB").encode(),
    "BOM": b"\xef\xbb\xbf" + CONLL.encode(),
    "CRLF": CONLL.replace("\n", "\r\n").encode(),
    "old Mac": CONLL.replace("\n", "\r").encode(),
    "UTF-16": CONLL.encode("utf-16"),
    "UTF-16BE": b"\xfe\xff" + CONLL.encode("utf-16-be"),
    "no final newline": CONLL.rstrip().encode(),
    "gzip": gzip.compress(CONLL.encode()),
    "space at the ends": CONLL.replace("\n", " \n").encode(),
    "blank lines with spaces": CONLL.replace("\n\n", "\n \t\n\n\n").encode(),
    "comments": ("# a comment\n" + CONLL.replace("EU", "# sent_id = 3 of many\nEU")).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_files_as_people_have_them(form, tmp_path):
    found = read_tagged(written(tmp_path, FORMS[form]))
    assert (found.words, found.tags, found.scheme, found.ill_formed) == (WORDS, TAGS, "iob2", 0)
    assert found.columns == ("column 1 of 4", "column 4 of 4")
    assert bool(found.notes) == (form == "tabs and spaces")
    if form in ("as it is", "BOM", "CRLF", "UTF-16", "gzip"):
        assert found.lines == [3, 9]
    assert repr(found) == f"TaggedSentences({found.name!r}, 2 sentences, 7 words, iob2)"


def test_old_western_letters_are_read_and_told(tmp_path):
    found = read_tagged(written(tmp_path, "Müller B-PER\nläuft O\n".encode("latin-1")))
    assert found.words == [["Müller", "läuft"]] and "Windows-1252" in found.notes[0]


def test_words_may_hold_spaces_between_tabs(tmp_path):
    found = read_tagged(written(tmp_path, "10 000\tO\nNew York\tB-LOC\n\xa0\tO\n"))
    assert found.words == [["10 000", "New York", "\xa0"]] and found.tags == [["O", "B-LOC", "O"]]


def test_the_word_number_sign_is_no_comment(tmp_path):
    path = written(tmp_path, "# about this\n# O\nworld O\n#1 B-X\n# comment of several words\n# nothing\nend O\n")
    found = read_tagged(path)
    assert found.words == [["#", "world", "#1", "end"]] and found.tags == [["O", "O", "B-X", "O"]]
    assert "read as comments, not words: 1" in found.notes[0]  # "# nothing" could be a word with the tag "nothing"


def test_columns_by_number_and_by_name(tmp_path):
    path = written(tmp_path, CONLL)
    assert read_tagged(path, label="2").tags[1] == ["NNP", "NNP"]
    assert read_tagged(path, label="-3").scheme == "plain"
    assert read_tagged(path, label="3").tags[0] == ["B-NP", "B-VP", "B-NP", "I-NP", "O"]
    headed = written(tmp_path, "word\tpos\tner\nAda\tNN\tB-PER\nleft\tVB\tO\n", "headed.tsv")
    found = read_tagged(headed)
    assert found.words == [["Ada", "left"]] and found.columns == ("word", "ner") and found.lines == [2]
    assert read_tagged(headed, label="pos").tags == [["NN", "VB"]]
    with pytest.raises(ConfigError, match=r"no column 'nre'\nexpected a number from 1 to 3, or a name: word, pos, ner"):
        read_tagged(headed, label="nre")
    with pytest.raises(ConfigError, match="no column '7'"):
        read_tagged(path, text="7")
    with pytest.raises(ConfigError, match=r"no column 'ner'\n.*\n.*no line with names"):
        read_tagged(path, label="ner")
    with pytest.raises(ConfigError, match="the same column 4"):
        read_tagged(path, text="4")


CONLL_U = """# sent_id = 1
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
2.1\tgone\t_\tVERB\t_\t_\t_\t_\t_\t_
3\tal\tal\tADP\tX\t_\t1\tcase\t_\t_

1\tSí\tsí\tINTJ\t_\t_\t0\troot\t_\t_
"""


def test_conll_u_is_recognised(tmp_path):
    found = read_tagged(written(tmp_path, CONLL_U, "es.conllu"))
    assert found.words == [["Vamos", "nos", "al"], ["Sí"]] and found.scheme == "plain"
    assert found.tags == [["VERB", "PRON", "ADP"], ["INTJ"]] and found.columns == ("FORM", "UPOS")
    assert "read as CoNLL-U" in found.notes[0] and found.lines == [4, 9]
    assert read_tagged(written(tmp_path, CONLL_U, "es.conllu"), text="LEMMA").words[1] == ["sí"]


def test_a_column_of_numbers_needs_a_name(tmp_path):
    path = written(tmp_path, "1\tSchartau\tB-PER\tO\n2\tsagte\tO\tO\n\n1\tJa\tO\tO\n")
    with pytest.raises(DataError, match=r"first column .* counts the words\nexpected --text .*\n.*1 \| Schartau"):
        read_tagged(path)
    found = read_tagged(path, text="2", label="3")
    assert found.words == [["Schartau", "sagte"], ["Ja"]] and found.tags == [["B-PER", "O"], ["O"]]


# -- JSON -------------------------------------------------------------------------------------

NAMES = [("tokens", "tags"), ("words", "labels"), ("tokens", "ner_tags"), ("words", "ner"), ("tokens", "pos_tags")]


@pytest.mark.parametrize(("words", "tags"), NAMES)
@pytest.mark.parametrize("form", ["lines", "array"])
def test_json_by_its_usual_names(words, tags, form, tmp_path):
    objects = [{"id": n, words: a, tags: b} for n, (a, b) in enumerate(zip(WORDS, TAGS, strict=True))]
    text = json.dumps(objects) if form == "array" else "\n\n".join(map(json.dumps, objects))
    found = read_tagged(written(tmp_path, text, "data.json" if form == "array" else "data.jsonl"))
    assert (found.words, found.tags, found.columns) == (WORDS, TAGS, (words, tags))
    if form == "lines":
        assert found.lines == [1, 3]


def test_json_with_several_kinds_of_tags_says_which(tmp_path):
    line = json.dumps(
        {"tokens": ["Ada", "left", 1815], "pos_tags": ["NN", "VB", "CD"], "ner_tags": ["B-PER", "O", "O"]}
    )
    path = written(tmp_path, line, "data.jsonl")
    found = read_tagged(path)
    assert found.tags == [["B-PER", "O", "O"]] and found.words == [["Ada", "left", "1815"]]
    assert "tags in 'ner_tags', which are read, and in 'pos_tags'" in found.notes[0]
    assert read_tagged(path, label="pos_tags").tags == [["NN", "VB", "CD"]]
    with pytest.raises(ConfigError, match="did you mean 'pos_tags'"):
        read_tagged(path, label="pos_tag")


JSON_REFUSED = {
    "words without tags": ({"tokens": ["a", "b"]}, "have 'tokens', and no tags"),
    "no words": ({"tags": ["O"], "sentence": "a"}, "and no words"),
    "numbers": ({"tokens": ["a", "b"], "ner_tags": [0, 3]}, "are numbers: 0, 3\nexpected their names"),
    "a text": ({"tokens": "a b", "tags": "O O"}, "line 1 has no list of words in 'tokens'"),
    "other lengths": ({"tokens": ["a", "b"], "tags": ["O"]}, "line 1 has 2 words and 1 tags"),
    "an empty word": ({"tokens": ["a", ""], "tags": ["O", "O"]}, "line 1 has an empty word"),
    "null": ({"tokens": ["a"], "tags": [None]}, "line 1 has no list of words in 'tags'"),
    "spans": ({"text": "Ada left", "entities": [[0, 3, "PER"]]}, "line 1 has no list of words in 'text'"),
    "nothing": ({"tokens": [], "tags": []}, "has no words"),
}


@pytest.mark.parametrize("what", JSON_REFUSED)
def test_json_that_is_refused(what, tmp_path):
    data, words = JSON_REFUSED[what]
    with pytest.raises(DataError, match=words):
        read_tagged(written(tmp_path, json.dumps(data), "data.jsonl"))


# -- what the tags mean -----------------------------------------------------------------------


def test_schemes_become_one_and_ill_formed_tags_are_counted(tmp_path):
    iob1 = "U.N. I-ORG\nofficial O\nEkeus I-PER\nRolf B-PER\nheads O\n\nBaghdad I-LOC\n"
    found = read_tagged(written(tmp_path, iob1))
    assert found.scheme == "iob1" and found.ill_formed == 0 and not found.notes
    assert found.tags == [["B-ORG", "O", "B-PER", "B-PER", "O"], ["B-LOC"]]
    bioes = "a B-X\nb I-X\nc E-X\nd S-Y\n\n" * 3 + "e I-X\nf O\n"
    found = read_tagged(written(tmp_path, bioes))
    assert found.tags[0] == ["B-X", "I-X", "I-X", "B-Y"] and found.tags[3] == ["B-X", "O"]
    assert found.scheme == "bioes" and found.ill_formed == 2  # an entity that does not begin, and one that does not end
    assert "2 tags of" in found.notes[0] and "break the rules of BIOES, in the sentences at line 16" in found.notes[0]
    found = read_tagged(written(tmp_path, "a B-X\nb I-X\n\nc I-X\n"))
    assert (found.scheme, found.ill_formed) == ("iob2", 1) and found.tags == [["B-X", "I-X"], ["B-X"]]
    assert "1 tag of" in found.notes[0] and "breaks the rules of IOB2" in found.notes[0]


def test_labels_have_both_letters_of_every_type(tmp_path):
    found = read_tagged(written(tmp_path, CONLL))
    assert found.labels() == ("O", "B-MISC", "I-MISC", "B-ORG", "I-ORG", "B-PER", "I-PER")
    assert dict(found.kinds()) == {"MISC": 1, "ORG": 1, "PER": 1}
    plain = read_tagged(written(tmp_path, CONLL), label="2")
    assert plain.labels() == (".", "JJ", "NN", "NNP", "VBZ") and plain.kinds()["NNP"] == 3
    assert plain.entities() == [[], []] and next(iter(plain.kinds())) == "NNP"
    assert found.unknown_tags(["O", "B-PER", "I-PER"]) == {"B-ORG": 1, "B-MISC": 1}
    bare = read_tagged(written(tmp_path, "a B\nb I\nc O\n"))
    assert bare.labels() == ("O", "B", "I") and bare.tags == [["B", "I", "O"]]


def test_o_alone_is_read_and_marks_nothing(tmp_path):
    found = read_tagged(written(tmp_path, "a O\nb O\n"))
    assert found.scheme == "none" and not found.kinds() and found.labels() == ("O",)


REFUSED = {
    "empty": (b"", "is empty"),
    "blank": (b"\n \n\n", "nothing but blank lines"),
    "one column": (b"EU\nrejects\n", "has one column: words without tags"),
    "commas": (b"EU,B-ORG\nrejects,O\n", "commas do not separate columns"),
    "comments only": (b"# a\n# b c\n", "has no words"),
    "free text": ("\n".join(f"word{n} lemma{n}" for n in range(40)).encode(), "40 different tags for 40 words"),
    "ragged": (b"a O\nb\nc O\n\nd O\n", "1 of 2 sentences of .*: line 2 has 1 column where 2 belong"),
    "a word too many": (b"a O\n\nNew York B-LOC\n", "line 3 has 3 columns where 2 belong"),
    "no word": (b"a\tO\n\tO\n", "line 2 has no word"),
    "one tag": (b"a _\nb _\n", "every word of .* has the tag '_'"),
    "binary": (b"a O\n\0\0\n", "binary file"),
    "damaged": (b"na\xc3\xafve O\ncaf\xc3\xa9 O\n\xff B-X\n", "not valid UTF-8"),
    "damaged gzip": (gzip.compress(CONLL.encode())[:-9], "damaged gzip"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_tagged_words_is_refused(what, tmp_path):
    content, words = REFUSED[what]
    with pytest.raises(DataError, match=words):
        read_tagged(written(tmp_path, content))


def test_missing_files_and_folders(tmp_path):
    written(tmp_path, CONLL, "train.conll")
    with pytest.raises(DataError, match=r"does not exist\ndid you mean .*train.conll"):
        read_tagged(tmp_path / "train.conl")
    with pytest.raises(DataError, match="is a folder"):
        read_tagged(tmp_path)


def test_a_few_broken_sentences_are_left_out_and_told(tmp_path):
    path = written(tmp_path, "a B-X\nb O\n\n" * 150 + "c\nd O\n\n")
    found = read_tagged(path)
    assert len(found) == 150 and found.left_out == 1
    assert "1 of 151 sentences" in found.notes[0] and "line 451 has 1 column" in found.notes[0]


def test_one_sentence(tmp_path):
    found = read_tagged(written(tmp_path, "Ada B-PER"))
    assert len(found) == 1
    with pytest.raises(DataError, match="at least two to divide"):
        split_sentences(found, 0.1, 0)


def test_a_hundred_thousand_sentences_are_read_quickly(tmp_path):
    path = written(tmp_path, "".join(f"Ada{n} B-PER\nsaw O\nthe O\nsea{n} O\n\n" for n in range(100_000)))
    start = time.perf_counter()
    found = read_tagged(path)
    assert len(found) == 100_000 and found.word_count == 400_000
    train, validation = split_sentences(found, 0.1, 0)
    assert time.perf_counter() - start < 60  # a few seconds on a quiet machine
    assert len(train) + len(validation) == 100_000 and abs(len(validation) - 10_000) < 10


# -- parts ------------------------------------------------------------------------------------


def data(tmp_path, plain=False):
    rng = np.random.default_rng(0)
    blocks = []
    for n in range(400):
        kind = ["PER", "LOC", "ORG"][rng.choice(3, p=[0.8, 0.15, 0.05])]
        tags = (kind, "V") if plain else (f"B-{kind}", "O")
        blocks.append(f"Name{n % 350} {tags[0]}\nleft {tags[1]}\n")
    return read_tagged(written(tmp_path, "\n".join(blocks)))


@pytest.mark.parametrize("plain", [False, True])
def test_a_fair_split_without_leaks(plain, tmp_path):
    found = data(tmp_path, plain)
    train, validation = split_sentences(found, 0.2, seed=3)
    assert len(train) + len(validation) == 400 and 70 < len(validation) < 90
    assert not set(train.as_examples().keys()) & set(validation.as_examples().keys())
    for kind in ("PER", "LOC", "ORG"):
        assert abs(validation.kinds()[kind] - 0.2 * found.kinds()[kind]) < 0.05 * found.kinds()[kind] + 2, kind
    again = split_sentences(found, 0.2, seed=3)
    assert again[1].lines == validation.lines != split_sentences(found, 0.2, seed=4)[1].lines
    assert validation.scheme == found.scheme and validation.words == [
        found.words[found.lines.index(n)] for n in validation.lines
    ]


def test_several_files_are_one(tmp_path):
    iob1 = read_tagged(written(tmp_path, "U.N. I-ORG\nEkeus I-PER\n", "a.txt"))
    iob2 = read_tagged(written(tmp_path, "Ada B-PER\nleft I-X\n", "b.txt"))
    none = read_tagged(written(tmp_path, "a O\n", "c.txt"))
    found = join_sentences([iob1, iob2, none])
    assert len(found) == 3 and found.scheme == "iob2" and found.ill_formed == 1
    assert join_sentences([iob1, none]).scheme == "iob1" and join_sentences([none, none]).scheme == "none"
    assert join_sentences([iob1]) is iob1
    plain = read_tagged(written(tmp_path, "a NN\nb VB\n", "d.txt"))
    with pytest.raises(DataError, match=r"plain tags, .* marks entities"):
        join_sentences([iob1, plain])
