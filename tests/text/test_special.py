"""Special tokens: what they are for, the gap in a text to fill in, and two texts joined into one."""

import json
import time

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import ConfigError, UnsupportedError
from weft.text import END, SpecialTokens, Tokenizer, TokenizerConfig
from weft.text.pairs import kept_lengths

TEXT = "It was the best of times, it was the worst of times;\n\tthe cat sat on the mat. naïve 日本語 \n" * 8
ENCODER = ("[CLS]", "[SEP]", "[MASK]", "[PAD]")
KINDS = list(TokenizerConfig.registry)
EXACT = [kind for kind in KINDS if TokenizerConfig.registry[kind].gives_text_back]
PLAIN = {kind: TokenizerConfig.from_config(kind).train([TEXT]) for kind in KINDS}
SPECIAL = {kind: TokenizerConfig.from_config(kind).train([TEXT], special=ENCODER) for kind in KINDS}
every_kind = pytest.mark.parametrize("kind", KINDS)
exact_kind = pytest.mark.parametrize("kind", EXACT)


# -- reserved by training ---------------------------------------------------------------------


@exact_kind
def test_special_tokens_come_after_the_others(kind):
    plain, special = PLAIN[kind], SPECIAL[kind]
    end = plain.end
    assert special.kind == kind and special.vocab_size == plain.vocab_size + 4
    assert special.special == SpecialTokens(end=end, classify=end + 1, separate=end + 2, mask=end + 3, pad=end + 4)
    assert plain.special == SpecialTokens(end=end)
    for text in (TEXT, "[CLS] [MASK]x", "Ω <pad>"):
        assert special.encode(text).tolist() == plain.encode(text).tolist(), "what a person types is text"
        assert special.decode(special.encode(text)) == text
    assert special.decode([end + 1, end + 3]) == "" and special.token_bytes[end:].tolist() == [0] * 5
    assert special.unseen_share(special.encode("Ω was")) == plain.unseen_share(plain.encode("Ω was"))


# of the vocabularies as they were when each kind was new: token files and runs refer to them
FINGERPRINTS = {
    "bpe": "8e17fb468d39ad51",
    "bytes": "1a6176965a7143f1",
    "characters": "b452eee649e6824c",
    "unigram": "fe51c26260ff996c",
    "words": "bd039665197e4ca9",
}


@exact_kind
def test_without_them_nothing_changes(kind):
    again = TokenizerConfig.from_config(kind).train([TEXT], special=())
    assert again.to_json() == PLAIN[kind].to_json() and again.fingerprint == PLAIN[kind].fingerprint
    added = json.loads(again.to_json())
    assert [token["content"] for token in added["added_tokens"]] == [END] and added["post_processor"] is None
    assert again.fingerprint != SPECIAL[kind].fingerprint
    assert again.fingerprint.startswith(FINGERPRINTS[kind])


@every_kind
def test_they_are_found_again(kind, tmp_path):
    SPECIAL[kind].save(tmp_path / "tokenizer.json")
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert (again.special, again.kind) == (SPECIAL[kind].special, kind)
    assert again.fingerprint == SPECIAL[kind].fingerprint
    assert again.special_names["mask_token"] == "[MASK]" and again.special_names["eos_token"] == again.end_name


@pytest.mark.parametrize("kind", ["bpe", "words"])
def test_vocab_size_counts_them(kind):
    small = TokenizerConfig.from_config({"kind": kind, "vocab_size": 265}).train([TEXT], special=ENCODER)
    assert small.vocab_size == 265 and small.special.pad == 264
    with pytest.raises(ConfigError, match="at least 261"):
        TokenizerConfig.from_config({"kind": kind, "vocab_size": 260}).train([TEXT], special=ENCODER)


@every_kind
@pytest.mark.parametrize("special", ["[CLS]", ["#"], ["[A]", "[A]"], ["[A]", ""]], ids=repr)
def test_names_that_cannot_be(kind, special):
    with pytest.raises(ConfigError, match="special token"):
        TokenizerConfig.from_config(kind).train([TEXT], special=special)


def test_a_name_that_is_text():
    with pytest.raises(ConfigError, match="'the' is text already"):
        TokenizerConfig.from_config("bpe").train([TEXT], special=["the"])
    with pytest.raises(ConfigError, match="is text already"):
        TokenizerConfig.from_config("characters").train([TEXT], special=["<0x41>"])


# -- a stranger's names -----------------------------------------------------------------------


def _engine(*special):
    words = {"<s>": 0, "</s>": 1, "a": 2, "<gap>": 3, "[SEP]": 4, "[MASK]": 5, "<unk>": 6}
    engine = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    engine.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    engine.add_special_tokens(list(special))
    return engine


def test_a_name_alone_is_only_a_word():
    found = Tokenizer(_engine("</s>"), ends=["</s>"]).special
    assert found == SpecialTokens(end=1, unknown=6), "[SEP] and [MASK] are not marked as special"
    found = Tokenizer(_engine("</s>", "[MASK]"), ends=["</s>"]).special
    assert found == SpecialTokens(end=1, unknown=6, mask=5)


def test_files_beside_it_tell(tmp_path):
    (tmp_path / "tokenizer.json").write_text(_engine("<s>", "</s>", "<gap>").to_str())
    named = {"cls_token": "<s>", "sep_token": {"content": "</s>"}, "mask_token": "<gap>", "pad_token": "missing"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(named | {"unk_token": "</s>", "eos_token": None}))
    found = Tokenizer.load(tmp_path / "tokenizer.json")
    assert found.special == SpecialTokens(end=1, unknown=6, classify=0, separate=1, mask=3)
    (tmp_path / "again").mkdir()
    found.save(tmp_path / "again" / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "again" / "tokenizer.json")
    assert again.special == found.special and again.fingerprint == found.fingerprint
    other = Tokenizer(_engine("<s>", "</s>", "<gap>"), ends=["</s>"])
    assert other.fingerprint != found.fingerprint


# -- gaps -------------------------------------------------------------------------------------


@every_kind
def test_a_gap_in_a_text(kind):
    tokenizer = SPECIAL[kind]
    mask = tokenizer.special.mask
    ids = tokenizer.encode_with_mask("the [MASK] sat")
    assert ids.dtype == np.uint32 and (ids == mask).sum() == 1
    assert mask not in tokenizer.encode("the [MASK] sat")
    before = "the" if kind in ("bpe", "unigram", "words", "wordpiece") else "the "
    assert ids.tolist() == [*tokenizer.encode(before), mask, *tokenizer.encode(" sat")]
    assert tokenizer.encode_with_mask("the ___ sat", mask="___").tolist() == ids.tolist()
    assert tokenizer.encode_with_mask("[MASK][MASK]").tolist() == [mask, mask]
    assert tokenizer.encode_with_mask("the cat").tolist() == tokenizer.encode("the cat").tolist()
    assert tokenizer.encode_with_mask("").tolist() == []
    assert tokenizer.special.classify not in tokenizer.encode_with_mask("[CLS] [MASK] [SEP]")


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words"])
@pytest.mark.parametrize("text", ["the cat sat", "the  cat", "times;\ncat", "\t cat.", "cat"])
def test_the_gap_is_where_the_token_was(kind, text):
    """What was masked in training is a token with its space: a question must look the same."""
    tokenizer = TokenizerConfig.from_config(kind).train([TEXT + "cat\ncat\n" * 3], special=ENCODER)
    ids = tokenizer.encode(text).tolist()
    (place,) = [n for n, number in enumerate(ids) if tokenizer.decode([number]).strip() == "cat"]
    ids[place] = tokenizer.special.mask
    assert tokenizer.encode_with_mask(text.replace("cat", "[MASK]")).tolist() == ids


def test_no_gap_can_be_read():
    with pytest.raises(UnsupportedError, match="bpe tokenizer has no mask token"):
        PLAIN["bpe"].encode_with_mask("the [MASK]")
    with pytest.raises(ConfigError, match="mask = ''"):
        SPECIAL["bpe"].encode_with_mask("the [MASK]", mask="")


# -- pairs ------------------------------------------------------------------------------------


@every_kind
def test_one_text_or_two(kind):
    tokenizer = SPECIAL[kind]
    cls, sep = tokenizer.special.classify, tokenizer.special.separate
    a, b = tokenizer.encode("the cat").tolist(), tokenizer.encode("sat on the mat").tolist()
    ids, segments = tokenizer.encode_pair("the cat", "sat on the mat")
    assert ids.tolist() == [cls, *a, sep, *b, sep] and ids.dtype == np.uint32
    assert segments.tolist() == [0] * (len(a) + 2) + [1] * (len(b) + 1)
    ids, segments = tokenizer.encode_pair("the cat")
    assert ids.tolist() == [cls, *a, sep] and not segments.any() and len(segments) == len(ids)
    assert tokenizer.encode_pair("", "")[0].tolist() == [cls, sep, sep]
    assert tokenizer.encode_pair("the cat", max_length=2)[0].tolist() == [cls, sep]
    assert tokenizer.encode_pair("[SEP]")[0].tolist().count(sep) == 1, "nobody types a special token"
    rows = [("the cat", None), ("the", "cat"), ("", None), (TEXT, "mat")]
    for row, (first, second) in zip(tokenizer.encode_pairs(rows, 9), rows, strict=True):
        alone = tokenizer.encode_pair(first, second, 9)
        assert row[0].tolist() == alone[0].tolist() and row[1].tolist() == alone[1].tolist() and len(row[0]) <= 9
    assert tokenizer.encode_pairs([]) == []


@pytest.mark.parametrize(("first", "second", "room"), [("a", None, 1), ("a", "b", 2), ("a", "b", -1)])
def test_no_room_for_the_marks(first, second, room):
    with pytest.raises(ConfigError, match="max_length"):
        SPECIAL["bpe"].encode_pair(first, second, room)


def test_no_marks_to_join_with():
    with pytest.raises(UnsupportedError, match=r"expected one with \[CLS\] and \[SEP\]"):
        PLAIN["words"].encode_pair("a", "b")


def test_a_stranger_who_joins_in_another_way():
    engine = _engine("<s>", "</s>")
    named = {"classify": ["<s>"], "separate": ["</s>"]}
    assert Tokenizer(engine, ends=["</s>"], named=named).encode_pair("a", "a")[0].tolist() == [0, 2, 1, 2, 1]
    engine.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    with pytest.raises(UnsupportedError, match="BERT's way"):
        Tokenizer(engine, ends=["</s>"], named=named).encode_pair("a", "a")
    engine.post_processor = tokenizers.processors.BertProcessing(("</s>", 1), ("<s>", 0))
    assert len(Tokenizer(engine, ends=["</s>"], named=named).encode_pair("a", "a")[0]) == 5


@settings(max_examples=200, deadline=None)
@given(first=st.integers(0, 30), second=st.integers(0, 30), room=st.integers(0, 60))
def test_the_longer_text_is_cut_first(first, second, room):
    one, two = kept_lengths(first, second, room)
    assert one + two == min(first + second, room) and 0 <= one <= first and 0 <= two <= second
    if one < first and two < second:
        assert abs(one - two) <= 1
    elif one < first:
        assert one >= two - 1
    elif two < second:
        assert two >= one - 1


def test_many_pairs_are_quick():
    tokenizer = SPECIAL["wordpiece"]
    rows = [("it was the best of times " * 4, "the cat sat on the mat " * 4)] * 4000
    tokenizer.encode_pairs(rows[:10])
    start = time.perf_counter()
    tokenizer.encode_pairs(rows, 40)
    assert time.perf_counter() - start < 4
