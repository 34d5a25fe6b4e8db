"""Every scheme on the registry is held to the same list: exact round trips, sizes in bytes, the fast road, files."""

import json
import time

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import ConfigError, DataError
from weft.text import END, Tokenizer, TokenizerConfig

TEXT = (
    "It was the best of times, it was the worst of times;\n\tit wasn't 1859, it's 2026 — naïve café “quotes”.\n\n"
    "  Two  spaces, a tab\tand 日本語のテキスト。\n"
) * 8
ODD = [
    "",
    " ",
    "     ",
    "\n\n\n",
    "a\r\nb\rc",
    "\0",
    "a\0b",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 a\u0308\u0323",
    "\ufeffmark",
    "\x1c\x85\u2028\u00a0x",
    "Ωμέγα \U0010ffff \uffff",
    END,
    f"a{END}b {END}",
    "<0x41><0xFF>",
    "Ġhello ▁there ##ing",
    "zzzzqqqq unseen-words_everywhere @@@@",
    "x" * 5000,
]
KINDS = list(TokenizerConfig.registry)
TRAINED = {kind: TokenizerConfig.from_config(kind).train([TEXT]) for kind in KINDS}
EXACT = [kind for kind in KINDS if TokenizerConfig.registry[kind].gives_text_back]
every_kind = pytest.mark.parametrize("kind", KINDS)
exact_kind = pytest.mark.parametrize("kind", EXACT)


def test_the_registry():
    assert KINDS == ["bpe", "bytes", "characters", "unigram", "wordpiece", "words"]
    assert set(KINDS) - set(EXACT) == {"wordpiece"}
    with pytest.raises(ConfigError, match="did you mean 'characters'"):
        TokenizerConfig.from_config("charcters")


@exact_kind
@pytest.mark.parametrize("text", [TEXT, *ODD], ids=range(1 + len(ODD)))
def test_any_text_comes_back(kind, text):
    tokenizer = TRAINED[kind]
    ids = tokenizer.encode(text)
    assert ids.dtype == np.uint32 and ids.ndim == 1
    assert tokenizer.end not in ids and (ids < tokenizer.vocab_size).all()
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode_bytes(ids) == text.encode()
    assert tokenizer.byte_length(ids) == len(text.encode()) == tokenizer.token_bytes[ids].sum()


@exact_kind
@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_hypothesis_finds_no_text_that_does_not_come_back(kind, text):
    assert TRAINED[kind].decode(TRAINED[kind].encode(text)) == text


@pytest.mark.parametrize("kind", ["characters", "bytes"])
@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_the_fast_road_gives_what_the_engine_gives(kind, text):
    tokenizer = TRAINED[kind]
    assert tokenizer._look_up is not None
    assert tokenizer.encode(text).tolist() == tokenizer._engine.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_the_fast_road_gives_what_the_engine_gives_for_odd_text(kind):
    tokenizer = TRAINED[kind]
    for text in [TEXT, *ODD]:
        assert tokenizer.encode(text).tolist() == tokenizer._engine.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_the_fast_road_is_fast(kind):
    text = TEXT * 5000  # about 7 MB; the engine needs seconds
    TRAINED[kind].encode("a")
    best = min(_seconds(lambda: TRAINED[kind].encode(text)) for _ in range(3))
    assert len(text) / best > 10e6, f"{len(text) / best / 1e6:.0f} million characters a second"


def _seconds(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


@every_kind
def test_a_batch_is_its_rows(kind):
    tokenizer = TRAINED[kind]
    for row, text in zip(tokenizer.encode_batch(ODD), ODD, strict=True):
        assert row.dtype == np.uint32
        assert row.tolist() == tokenizer.encode(text).tolist()


@every_kind
def test_half_a_character(kind):
    for act in (
        lambda: TRAINED[kind].encode("ab\ud800"),
        lambda: TRAINED[kind].encode_batch(["fine", "ab\ud800"]),
    ):
        with pytest.raises(DataError, match=r"character 2 .* surrogate"):
            act()
    if kind != "bytes":
        with pytest.raises(DataError, match="surrogate"):
            TokenizerConfig.from_config(kind).train(["ab\ud800"])


@exact_kind
def test_ids_out_of_range_and_the_end(kind):
    tokenizer = TRAINED[kind]
    assert tokenizer.decode([tokenizer.end]) == "" and tokenizer.token_bytes[tokenizer.end] == 0
    assert tokenizer.decode([]) == "" and tokenizer.byte_length([]) == 0
    assert tokenizer.end == tokenizer.vocab_size - 1
    for wrong in ([tokenizer.vocab_size], [-1], [0, 10**9]):
        with pytest.raises(DataError, match="expected ids from 0 to"):
            tokenizer.decode(wrong)


@exact_kind
def test_a_character_cut_in_two(kind):
    tokenizer = TRAINED[kind]
    ids = tokenizer.encode("𝄞𝄞")  # not in the training text: four bytes each, at most
    cut = tokenizer.decode_bytes(ids[:-1])
    assert "𝄞𝄞".encode().startswith(cut) and len(cut) < 8
    assert tokenizer.decode(ids[:-1]).startswith("𝄞") and tokenizer.decode(ids[:-1]).endswith("\ufffd")


@every_kind
def test_training_is_deterministic_and_tells_how_far_it_is(kind):
    told = []
    again = TokenizerConfig.from_config(kind).train(iter([TEXT]), progress=told.append)
    assert again.to_json() == TRAINED[kind].to_json()
    assert again.fingerprint == TRAINED[kind].fingerprint
    assert told in ([len(TEXT)], [])
    assert bool(told) == (kind != "bytes")
    assert len({TRAINED[k].fingerprint for k in KINDS}) == len(KINDS)


# -- what is particular -----------------------------------------------------------------------


def test_characters():
    tokenizer = TRAINED["characters"]
    assert tokenizer.vocab_size == 256 + len(set(TEXT)) + 1
    assert len(tokenizer.encode(TEXT)) == len(TEXT)
    assert tokenizer.unseen_share(tokenizer.encode(TEXT)) == 0
    ids = tokenizer.encode("was Ω")  # Ω is two bytes
    assert len(ids) == 6 and tokenizer.unseen_share(ids) == pytest.approx(2 / 6)


def test_bytes():
    tokenizer = TRAINED["bytes"]
    assert tokenizer.vocab_size == 257 and tokenizer.end == 256
    assert tokenizer.encode("é!").tolist() == list("é!".encode())
    assert tokenizer.unseen_share([1, 2, 3]) == 0


def test_words():
    tokenizer = TRAINED["words"]
    assert tokenizer.unseen_share(tokenizer.encode(TEXT)) == 0
    known = tokenizer.encode("It was the best, naïve times;")
    assert [tokenizer.decode([number]) for number in known] == [
        "It",
        " was",
        " the",
        " best",
        ",",
        " naïve",
        " times",
        ";",
    ]
    ids = tokenizer.encode(" was was bad, é")  # " bad" is four bytes, " é" three; the comma is a word of its own
    assert [tokenizer.decode_bytes([number]) for number in ids[2:]] == [bytes([b]) for b in " bad, é".encode()]
    assert tokenizer.unseen_share(ids) == pytest.approx(7 / 10)


@settings(max_examples=100, deadline=None)
@given(text=st.text("wast he,.\n\tqé", max_size=40))
def test_unseen_words_are_counted_exactly(text):
    tokenizer = TRAINED["words"]
    words = tokenizer._engine.pre_tokenizer.pre_tokenize_str(text)
    spelled = sum(len(word) for word, _ in words if len(word) > 1 and word not in tokenizer._vocabulary)
    ids = tokenizer.encode(text)
    assert tokenizer.unseen_share(ids) == pytest.approx(spelled / max(len(ids), 1))


def test_words_are_the_most_frequent_ones():
    text = "aa aa aa bb bb bb cc cc dd"
    tokens = TokenizerConfig.from_config({"kind": "words", "vocab_size": 259}).train([text])
    assert [tokens.decode([n]) for n in range(256, 258)] == [" bb", " aa"]
    assert TokenizerConfig.from_config("words").train([text]).vocab_size == 256 + 3 + 1  # " dd" and "aa" were seen once
    assert TokenizerConfig.from_config({"kind": "words", "min_count": 1}).train([text]).vocab_size == 256 + 5 + 1


def test_bpe_shrinks_and_grows():
    small = TokenizerConfig.from_config("bpe").train(["ab"])
    assert small.vocab_size == 257
    some = TokenizerConfig.from_config({"kind": "bpe", "vocab_size": 300}).train([TEXT])
    assert some.vocab_size == 300 and some.kind == "bpe"
    assert len(some.encode(TEXT)) < 0.7 * len(TEXT.encode())
    assert some.unseen_share(some.encode("unseen Ω")) == 0


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words"])
def test_a_vocabulary_that_cannot_hold_the_bytes(kind):
    with pytest.raises(ConfigError, match="at least 257"):
        TokenizerConfig.from_config({"kind": kind, "vocab_size": 256})


@exact_kind
def test_no_text_at_all(kind):
    tokenizer = TokenizerConfig.from_config(kind).train([])
    assert tokenizer.vocab_size == 257 and tokenizer.decode(tokenizer.encode("Ω!")) == "Ω!"


@pytest.mark.parametrize("kind", ["bpe", "words"])
def test_text_without_a_single_space_is_no_giant_word(kind):
    letters = np.random.default_rng(0).choice(list("ACGT"), 200_000)
    tokenizer = TokenizerConfig.from_config({"kind": kind, "vocab_size": 500}).train(["".join(letters)])
    assert tokenizer.token_bytes.max() <= 100
    assert tokenizer.kind == kind and tokenizer.vocab_size <= 500


# -- files ------------------------------------------------------------------------------------


@every_kind
def test_files(kind, tmp_path):
    tokenizer = TRAINED[kind]
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert (again.kind, again.vocab_size, again.end) == (kind, tokenizer.vocab_size, tokenizer.end)
    assert again.fingerprint == tokenizer.fingerprint and again.to_json() == tokenizer.to_json()
    assert Tokenizer.from_json(tokenizer.to_json()).encode(TEXT).tolist() == tokenizer.encode(TEXT).tolist()
    assert repr(again) == f"Tokenizer({kind}, vocab_size={again.vocab_size})"


@exact_kind
def test_hugging_face_opens_them(kind, tmp_path):
    from transformers import PreTrainedTokenizerFast

    tokenizer = TRAINED[kind]
    tokenizer.save(tmp_path / "tokenizer.json")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert len(theirs) == tokenizer.vocab_size
    assert theirs.convert_tokens_to_ids(END) == tokenizer.end
    for text in [TEXT, *ODD]:
        ids = tokenizer.encode(text).tolist()
        assert theirs(text, add_special_tokens=False, split_special_tokens=True)["input_ids"] == ids
        assert theirs.decode(ids, clean_up_tokenization_spaces=False) == text


def test_foreign_tokenizers_are_other():
    engine = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "he": 1, "##llo": 2}, unk_token="[UNK]"))
    engine.decoder = tokenizers.decoders.WordPiece()
    with pytest.raises(DataError, match=r"no <\|endoftext\|>"):
        Tokenizer(engine)
    engine.add_special_tokens([END])
    other = Tokenizer.from_json(engine.to_str())
    assert other.kind == "other"
    assert other.encode("hello").tolist() == [1, 2] and other.decode([1, 2, other.end]) == "hello"


def test_another_token_may_end_a_text(tmp_path):
    engine = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0, "</s>": 1, "a": 2, END: 3}, unk_token="a"))
    ours, theirs = Tokenizer(engine), Tokenizer(engine, ends=["<end>", 77, "</s>", END])
    assert (ours.end, ours.end_name, theirs.end, theirs.end_name) == (3, END, 1, "</s>")
    assert Tokenizer(engine, ends=[0, END]).end_name == "<s>"
    assert ours.fingerprint != theirs.fingerprint  # it stands between the texts of a corpus
    ours.save(tmp_path / "tokenizer.json")
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    theirs.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again.end == 1 and again.fingerprint == theirs.fingerprint
    with pytest.raises(DataError, match="the vocabulary has no <end>"):
        Tokenizer(engine, ends=["<end>"])


def test_bytes_of_a_foreign_byte_level_vocabulary_are_counted():
    spec = json.loads(TRAINED["bpe"].to_json())
    spec["normalizer"] = {"type": "NFC"}
    other = Tokenizer.from_json(json.dumps(spec))
    assert other.kind == "other" and other.byte_length(other.encode(" naïve cafés")) == len(" naïve cafés".encode())


def test_a_change_of_rule_is_no_longer_our_kind():
    spec = json.loads(TRAINED["characters"].to_json())
    spec["normalizer"] = {"type": "Lowercase"}
    lower = Tokenizer.from_json(json.dumps(spec))
    assert lower.kind == "other" and lower.decode(lower.encode("IT")) == "it"
    assert lower.fingerprint != TRAINED["characters"].fingerprint


def _broken():
    good = json.loads(TRAINED["bpe"].to_json())

    def changed(**changes):
        return json.dumps({**good, **changes})

    model = good["model"]
    yield "not JSON", b"\x89PNG\r\n"
    yield "empty", b""
    yield "half", TRAINED["bpe"].to_json()[:500]
    yield "a list", "[]"
    yield "a number", "404"
    yield "no model", "{}"
    yield "deep", "[" * 100_000
    yield "not UTF-8", b'{"model": "\xff"}'
    yield "unknown model", changed(model={**model, "type": "Magic"})
    yield "merge of nothing", changed(model={**model, "merges": [["qq", "zz"]]})
    yield "negative id", changed(model={**model, "vocab": {**model["vocab"], "!": -1}})
    yield "huge id", changed(model={**model, "vocab": {**model["vocab"], "!": 4_000_000_000}})
    yield "same id", changed(model={**model, "vocab": {**model["vocab"], "!": 1}})
    yield "half character", changed(model={**model, "vocab": {**model["vocab"], "\ud800": 9999}})
    yield "bad regex", changed(pre_tokenizer={"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"})
    yield "no end", changed(added_tokens=[])
    yield "empty vocabulary", changed(model={**model, "vocab": {}, "merges": []}, added_tokens=[])


@pytest.mark.parametrize(("what", "content"), list(_broken()), ids=[what for what, _ in _broken()])
def test_broken_files_are_refused_by_name(what, content, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=r"tokenizer\.json") as caught:
        Tokenizer.load(path)
    assert str(path) in str(caught.value) and len(str(caught.value).splitlines()) <= 3


def test_a_missing_or_absurd_file(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"tokenizer\.json cannot be read"):
        Tokenizer.load(tmp_path / "tokenizer.json")
    with pytest.raises(DataError, match="cannot be read"):
        Tokenizer.load(tmp_path)
    TRAINED["bytes"].save(tmp_path / "tokenizer.json")
    monkeypatch.setattr("weft.text.small_files.LARGEST_FILE", 100)
    with pytest.raises(DataError, match="expected a tokenizer of at most"):
        Tokenizer.load(tmp_path / "tokenizer.json")


def test_a_strangers_padding_is_not_obeyed():
    spec = json.loads(TRAINED["bpe"].to_json())
    spec["padding"] = {
        "strategy": {"Fixed": 10**12},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "!",
    }
    spec["truncation"] = {"max_length": 1, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    tokenizer = Tokenizer.from_json(json.dumps(spec))
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert tokenizer.fingerprint == TRAINED["bpe"].fingerprint
