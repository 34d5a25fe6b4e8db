"""Unigram on the user's own text: whole words, any text back, and the same pieces in every process."""

import hashlib
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from real_data import DATA, needs_data
from weft.data.subword_regularisation import SubwordRegularisation
from weft.errors import ConfigError
from weft.tasks.vocabulary import encoder_tokenizer_fields, pair_tokenizer_fields, tokenizer_fields
from weft.text import END, Tokenizer, TokenizerConfig
from weft.text.spelling import BYTE_NAMES
from weft.text.unigram import HOLE, MARK

TEXT = (
    "The cats sat and sat on the mats, and the bats sat on the cats; naïve 日本語 café — and 42 owls.\n"
    "Sitting, catting, batting: the cat that sat was sitting and the bat that sat was batting.\n"
) * 6
SENTINELS = [f"<extra_id_{number}>" for number in range(5)]


def learned(text, size=8192, **more):
    return TokenizerConfig.from_config({"kind": "unigram", "vocab_size": size}).train([text], **more)


TRAINED = learned(TEXT, 360)


def names(tokenizer, ids):
    return [tokenizer.decode([number]) for number in ids]


def test_bytes_come_first_then_pieces_from_the_most_probable_on():
    model = json.loads(TRAINED.to_json())["model"]
    assert [token for token, _ in model["vocab"][:256]] == list(BYTE_NAMES)
    scores = [score for _, score in model["vocab"][256:]]
    assert scores == sorted(scores, reverse=True) and max(scores) < 0 and len(scores) > 50
    assert TRAINED.end == TRAINED.vocab_size - 1 and TRAINED.end_name == END
    assert TRAINED.special.unknown is None, "there are the bytes"


def test_frequent_words_are_one_token():
    """Also those that are part of no other word, which the engine alone would spell."""
    assert names(TRAINED, TRAINED.encode("The cats and the bats")) == ["The", " cats", " and", " the", " bats"]
    assert names(TRAINED, TRAINED.encode("and and")) != ["and", " and"], "seen only with its space"
    lonely = learned("to be xyz , or not xyz , to xyz ,\n" * 9)
    assert {" xyz", " ,"} <= set(names(lonely, range(lonely.vocab_size)))


def test_the_most_probable_way_to_cut_a_word_counts():
    """Against all ways to cut it, one by one."""
    model = json.loads(TRAINED.to_json())["model"]["vocab"]
    scores = dict(model[256:])

    def best(word):
        ways = [(0.0, [])]
        ways += (
            [
                (scores[word[:cut]] + rest, [word[:cut], *pieces])
                for cut in range(1, len(word) + 1)
                if word[:cut] in scores
                for rest, pieces in [best(word[cut:])]
            ]
            if word
            else []
        )
        return max((way for way in ways if sum(map(len, way[1])) == len(word)), default=(-1e9, []))

    for word in ("sitting", " battings", "catmats", " thatcat", "bananas"[1:3], " sassitta"):
        found = names(TRAINED, TRAINED.encode(word))
        score, _ = best(word)
        assert sum(scores[piece] for piece in found) == pytest.approx(score), word
        assert "".join(found) == word
    assert best("tat")[0] < 0


@settings(max_examples=150, deadline=None)
@given(
    text=st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
        st.lists(
            st.sampled_from(
                [*TEXT.split(), " ", "  ", "\n", "\t", "<0x41>", "\0", "▁", "Ω", "👩‍👧", MARK, HOLE, *SENTINELS]
            ),
            max_size=20,
        ).map("".join),
    )
)
def test_any_text_comes_back(text):
    for tokenizer in (TRAINED, TINY, NOTHING):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text and tokenizer.byte_length(ids) == len(text.encode())
        assert "".join(names(tokenizer, ids)) == text or "\ufffd" in "".join(names(tokenizer, ids))


TINY = learned("a▁b <0x41> <0x41> \0\0 ▁▁ a b\n" * 4, special=SENTINELS)
NOTHING = learned("")


def test_names_of_bytes_and_lines_are_text():
    for text in ("<0x41>", "<0x41><0xFF>", "▁x▁", "a\ufdd0b\ufdd1"):
        assert TINY.decode(TINY.encode(text)) == text
    assert TINY.token_bytes[TINY.encode("▁")[0]] == 3


def test_what_is_spelled():
    ids = TRAINED.encode(" the Ω")
    assert names(TRAINED, ids[:2]) == [" the", " "] and TRAINED.unseen_share(ids) == pytest.approx(2 / 4)
    assert TRAINED.unseen_share(TRAINED.encode(TEXT)) == 0 == TRAINED.unseen_share([])
    assert learned(TEXT + "Ω").unseen_share(learned(TEXT + "Ω").encode("Ω")) == 1, "a character seen once is left out"
    assert learned(TEXT + "ΩΩ").unseen_share(learned(TEXT + "ΩΩ").encode("Ω")) == 0


@pytest.mark.parametrize("text", ["", "a", "ab", "aa", "\0\0\0", " \n" * 10, MARK * 4 + HOLE * 4, "日" * 9, "x" * 5000])
@pytest.mark.parametrize("size", [257, 258, 260, 300, 8192])
def test_less_text_than_vocabulary(text, size):
    tokenizer = learned(text, size)
    assert tokenizer.vocab_size <= size and tokenizer.kind == "unigram"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_vocab_size_counts_everything():
    for size in (280, 300):
        full = learned(TEXT, size, special=SENTINELS)
        assert full.vocab_size == size and full.sentinels == list(range(size - 5, size))
    with pytest.raises(ConfigError, match="at least 262"):
        learned(TEXT, 261, special=SENTINELS)


def test_more_letters_than_room():
    letters = np.random.default_rng(0).integers(0x4E00, 0x9000, 20_000)
    tokenizer = learned("".join(map(chr, letters)), 456)
    assert 256 + 100 <= tokenizer.vocab_size <= 456
    assert 0 < tokenizer.unseen_share(tokenizer.encode("".join(map(chr, letters[:100])))) < 1


def test_of_a_huge_text_a_part_is_read(monkeypatch):
    """Letters of the part that is left out still have their tokens, and the vocabulary its size."""
    pieces = ["".join(chr(0x4E00 + (7 * place) % 83) for place in range(first, first + 50)) for first in range(60)]
    rare = ["ΩΩ ΨΨ ΦΦ"]
    whole = TokenizerConfig.from_config({"kind": "unigram", "vocab_size": 457}).train([*pieces, *rare])
    monkeypatch.setattr("weft.text.unigram.ENOUGH", 100)
    part = TokenizerConfig.from_config({"kind": "unigram", "vocab_size": 457}).train([*pieces, *rare])
    assert part.fingerprint != whole.fingerprint and part.vocab_size <= 457
    assert part.unseen_share(part.encode("ΩΨΦ")) == 0


def test_sentinels():
    special = learned(TEXT, special=["<pad>", *reversed(SENTINELS)])
    assert special.sentinels == [special.vocab_size - 1 - number for number in range(5)]
    assert special.special.pad == special.end + 1
    assert not set(special.sentinels) & set(special.encode("a <extra_id_0> b").tolist())
    again = Tokenizer.from_json(special.to_json())
    assert again.sentinels == special.sentinels and again.kind == "unigram"
    assert special.decode(special.sentinels) == "" and TRAINED.sentinels == []
    gap = learned(TEXT, special=[name for name in SENTINELS if name != "<extra_id_2>"])
    assert len(gap.sentinels) == 2, "as far as they go"


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"type": "NFC"}},
        {"pre_tokenizer": None},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"decoder": None},
        {"model": {"byte_fallback": False}},
        {"model": {"vocab": [["<unk>", 0.0], ["a", -1.0]]}},
    ],
)
def test_other_rules_are_another_kind(change):
    spec = json.loads(TRAINED.to_json())
    spec |= {part: spec[part] | new if part == "model" else new for part, new in change.items()}
    if "vocab" in change.get("model", {}):
        spec["added_tokens"][0]["id"] = 2
    assert Tokenizer.from_json(json.dumps(spec)).kind == "other"


def test_other_processes_learn_the_same():
    """The engine counts in another order each time, and with another number of threads."""
    program = (
        "import hashlib\n"
        "from pydoc_data.topics import topics\n"
        "from weft.text import TokenizerConfig\n"
        f"for text, size in ((''.join(topics.values())[:50_000], 900), ({TEXT!r}, 360)):\n"
        "    made = TokenizerConfig.from_config({'kind': 'unigram', 'vocab_size': size}).train([text])\n"
        "    print(hashlib.sha256(made.to_json().encode()).hexdigest())"
    )
    found = set()
    for seed, threads in (("0", "1"), ("1", "2"), ("2", "3")):
        around = os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads}
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=around)
        found.add(ran.stdout)
    assert len(found) == 1 and found.pop().split()[1] == hashlib.sha256(TRAINED.to_json().encode()).hexdigest()


def test_words_can_be_spelled_otherwise():
    table = SubwordRegularisation.of(TRAINED)
    (whole,) = TRAINED.encode(" cats").tolist()
    pairs = range(table.begins[whole], table.begins[whole + 1])
    spelled = {TRAINED.decode([table.first[n], table.second[n]]) for n in pairs}
    assert spelled == {" cats"} and len(table.first) >= 3


def test_the_plan_gives_it_a_size_that_suits_the_text():
    for fields in (tokenizer_fields, pair_tokenizer_fields, encoder_tokenizer_fields):
        small, large = (fields("unigram", characters) for characters in (10_000, 10**9))
        assert small["kind"] == large["kind"] == "unigram" and small["vocab_size"] < large["vocab_size"]
    assert tokenizer_fields(None, 10_000) == {"kind": "bpe", "vocab_size": 512}


@pytest.mark.slow
@needs_data("wikitext2", "tinyshakespeare")
def test_five_megabytes_in_time():
    parts = [DATA / "wikitext2" / "valid.txt", DATA / "wikitext2" / "test.txt", DATA / "tinyshakespeare" / "input.txt"]
    text = "".join(part.read_text(encoding="utf-8") for part in parts)
    text = (text + text[: 5_000_000 - len(text)]) if len(text) < 5_000_000 else text[:5_000_000]
    start = time.process_time()
    tokenizer = learned(text)
    assert time.process_time() - start < 40, "seconds on all cores together"
    spelled = TokenizerConfig.from_config("bpe").train([text])
    assert len(tokenizer.encode(text)) < 1.03 * len(spelled.encode(text)), "about as short as BPE"
