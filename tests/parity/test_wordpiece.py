"""BERT's tokenizer: the ids of the published vocabulary, text for text, pair for pair."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from real_data import DATA, data_marks, needs_data
from weft.text import Tokenizer, TokenizerConfig
from weft.text.hugging_face import read_folder
from weft.text.special import BERT_NAMES

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()

FOLDER = DATA / "bert-tokenizer"
published = needs_data("bert-tokenizer")
PUBLISHED = data_marks("bert-tokenizer")

PROSE = "The naïve café's 12 cats, “quoted” — and Ωmega 日本語 don't; [MASK] <b>x</b> e\u0301 İstanbul ß ﬁne.\n" * 4
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
prose = st.lists(st.sampled_from([*PROSE.split(), "unaffable", "[SEP]", "##ing", "\t", "\u200b", "\x00"]), max_size=25)
text = st.one_of(anything, prose.map(" ".join))


def ids_of(theirs, texts):
    return theirs(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("published", marks=PUBLISHED),
        pytest.param("published, cased", marks=PUBLISHED),
        "ours",
        "ours, cased",
    ],
)
def both(request, tmp_path_factory):
    """Ours, and theirs made from the same list of tokens."""
    folder = tmp_path_factory.mktemp("vocabulary")
    lowercase = "cased" not in request.param
    if request.param.startswith("published"):
        content = (FOLDER / "vocab.txt").read_bytes()
        (folder / "vocab.txt").write_bytes(content)
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase}))
        ours = read_folder(folder)
    else:
        ours = TokenizerConfig.from_config({"kind": "wordpiece", "vocab_size": 150, "lowercase": lowercase}).train(
            [PROSE]
        )
        content = "".join(f"{token}\n" for token in sorted(ours._vocabulary, key=ours._vocabulary.__getitem__)).encode()
        (folder / "vocab.txt").write_bytes(content)
    vocabulary = {line: number for number, line in enumerate(content.decode().removesuffix("\n").split("\n"))}
    return ours, transformers.BertTokenizer(vocab=vocabulary, do_lower_case=lowercase)


@published
def test_the_questions_of_squad():
    ours = read_folder(FOLDER)
    questions = json.loads((FOLDER / "question_tokens.json").read_text(encoding="utf-8"))
    theirs = json.loads((FOLDER / "tokenized_questions.json").read_text(encoding="utf-8"))
    found = ours.encode_batch([question["original"] for question in questions])
    assert len(found) == len(theirs) == 10_570
    assert [row.tolist() for row in found] == theirs
    names = {number: token for token, number in ours._vocabulary.items()}
    assert [[names[n] for n in row.tolist()] for row in found] == [question["wordpiece"] for question in questions]
    cased = Tokenizer.from_json(ours.to_json().replace('"lowercase": true', '"lowercase": false'))
    different = cased.encode_batch([question["original"] for question in questions])
    assert sum(row.tolist() != true for row, true in zip(different, theirs, strict=True)) > 9000, "the test can fail"


@published
def test_its_special_tokens():
    special = read_folder(FOLDER).special
    assert (special.pad, special.unknown, special.classify, special.separate, special.mask) == (0, 100, 101, 102, 103)
    assert special.end == 102


def test_no_text_is_read_otherwise(both):
    ours, theirs = both

    @settings(max_examples=150, deadline=None)
    @given(st.lists(text, min_size=1, max_size=4))
    def same(texts):
        assert [row.tolist() for row in ours.encode_batch(texts)] == ids_of(theirs, texts)

    same()
    for line in [PROSE, "", " ", "x" * 101, "x" * 100, *BERT_NAMES]:
        assert [ours.encode(line).tolist()] == ids_of(theirs, [line])
        assert ours.decode(ours.encode(line)) == theirs.decode(ids_of(theirs, [line])[0], skip_special_tokens=True)


@published
def test_the_tokenizer_written_in_python_agrees():
    from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

    ours, theirs = read_folder(FOLDER), BertTokenizerLegacy(str(FOLDER / "vocab.txt"))
    letters = (
        "abcdefgehijklmnopqrstuvwxyzABCÉÜÅéüåñçøßΩωд日本語한국0123456789 .,;:!?'\"()-_/\\#$%&*+<=>@^`{|}~\t\n“”—…€"
    )

    @settings(max_examples=200, deadline=None)
    @given(st.one_of(st.text(letters, max_size=60), prose.map(" ".join)))
    def same(line):
        for name in BERT_NAMES:
            line = line.replace(name, "")  # theirs reads special tokens out of what a person typed
        assert ours.encode(line).tolist() == theirs.encode(line, add_special_tokens=False)

    same()


def test_pairs_are_joined_and_cut_as_theirs(both):
    ours, theirs = both
    words = st.lists(st.sampled_from(PROSE.split()), max_size=14).map(" ".join)

    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.tuples(words, words), min_size=1, max_size=4), st.integers(3, 40) | st.none())
    def same(pairs, room):
        cut = {} if room is None else {"truncation": "longest_first", "max_length": room}
        firsts, seconds = [a for a, _ in pairs], [b for _, b in pairs]
        true = theirs(firsts, seconds, split_special_tokens=True, **cut)
        found = ours.encode_pairs(pairs, room)
        assert [ids.tolist() for ids, _ in found] == true["input_ids"]
        assert [segments.tolist() for _, segments in found] == true["token_type_ids"]
        true = theirs(firsts, split_special_tokens=True, **cut)
        found = ours.encode_pairs([(first, None) for first in firsts], room)
        assert [ids.tolist() for ids, _ in found] == true["input_ids"]
        assert [segments.tolist() for _, segments in found] == true["token_type_ids"]

    same()


def test_a_gap_is_read_as_theirs(both):
    ours, theirs = both
    gaps = ["The [MASK] cats, and [MASK].", "[MASK]", "[MASK][MASK] x[MASK]y", "café [MASK]\n日[MASK]"]
    for line in [*gaps, PROSE]:
        assert ours.encode_with_mask(line).tolist() == theirs(line, add_special_tokens=False)["input_ids"]
        assert (ours.encode_with_mask(line) == theirs.mask_token_id).any()


def test_hugging_face_opens_what_we_write(both, tmp_path):
    ours, theirs = both
    ours.save(tmp_path / "tokenizer.json")
    opened = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    pair = opened(PROSE, "second text", split_special_tokens=True, return_token_type_ids=True)
    assert pair["input_ids"] == theirs(PROSE, "second text", split_special_tokens=True)["input_ids"]
    assert pair["token_type_ids"] == ours.encode_pair(PROSE, "second text")[1].tolist()


def test_we_open_what_hugging_face_writes(both, tmp_path):
    ours, theirs = both
    theirs.save_pretrained(tmp_path)
    again = read_folder(tmp_path)
    assert again.kind == "wordpiece" and again.special == ours.special
    assert np.array_equal(again.encode(PROSE), ours.encode(PROSE))
    ids, segments = again.encode_pair(PROSE, "x", 30)
    assert ids.tolist() == ours.encode_pair(PROSE, "x", 30)[0].tolist() and len(segments) == 30


@pytest.mark.parametrize("lowercase", [True, False])
def test_two_files_that_disagree_about_capitals(lowercase, tmp_path):
    ours = TokenizerConfig.from_config({"kind": "wordpiece", "vocab_size": 150, "lowercase": False}).train([PROSE])
    theirs = transformers.BertTokenizer(vocab=dict(ours._vocabulary), do_lower_case=not lowercase)
    theirs.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"do_lower_case": lowercase}))
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    again = read_folder(tmp_path)
    assert [again.encode(PROSE).tolist()] == ids_of(theirs, [PROSE])
    assert again.special == ours.special
    assert again.encode(PROSE).tolist() != Tokenizer.load(tmp_path / "tokenizer.json").encode(PROSE).tolist()


def test_a_gap_of_roberta_takes_the_space_before_it(tmp_path):
    ours = TokenizerConfig.from_config({"kind": "bpe", "vocab_size": 300}).train(
        [PROSE], special=["<s>", "</s>", "<mask>"]
    )
    spec = json.loads(ours.to_json())
    (mask,) = [token for token in spec["added_tokens"] if token["content"] == "<mask>"]
    mask["lstrip"] = True
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    for line in ("The <mask> cats", "cats \n <mask>,<mask> x", "<mask>"):
        assert again.encode_with_mask(line, "<mask>").tolist() == theirs(line, add_special_tokens=False)["input_ids"]
