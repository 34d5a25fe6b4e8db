"""Schemes beside each other: tokens as people read them, and numbers against counting by hand."""

import numpy as np
import pytest

from fixtures.texts import make_text
from weft.errors import ConfigError, DataError
from weft.text import Corpus, TokenizerConfig, demo, schemes
from weft.text.demo import demo_text
from weft.text.readable import readable, shown_token
from weft.text.schemes import SCHEMES, excerpts, is_path, learn_scheme, measure, open_tokenizers, relative

BOOK = make_text(4000)
HARD = "The naïve cat 🎉 sat\non e\u0301 mat\n\n   \nZebra 日本"


@pytest.fixture(scope="module")
def learned():
    return {kind: learn_scheme(kind, [BOOK], 400) for kind in SCHEMES}


def test_there_are_as_many_as_in_the_registry():
    assert sorted(SCHEMES) == sorted(TokenizerConfig.registry)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b" cat\n\t", "␣cat⏎⇥"),
        ("é🎉".encode(), "é🎉"),
        (b"\xf0\x9f", "<F0><9F>"),
        (b"a\xc3", "a<C3>"),
        ("e\u0301".encode(), "e\u0301"),
        ("\u0301".encode(), "◌\u0301"),
        (" \u0301".encode(), "␣◌\u0301"),
        ("\u200d\ufe0f\x1b\x00".encode(), "<U+200D><U+FE0F><U+001B><U+0000>"),
        ("\u202e".encode(), "<U+202E>"),
        (b"", ""),
    ],
)
def test_bytes_can_be_read(data, shown):
    assert readable(data) == shown


def test_tokens_can_be_read(learned):
    def shown(kind, words):
        return [shown_token(learned[kind], number) for number in learned[kind].encode(words)]

    assert shown("characters", "a Zï") == ["a", "␣", "<5A>", "<C3>", "<AF>"]  # bytes, also where they are a letter
    assert shown("bytes", "a ï") == ["a", "␣", "<C3>", "<AF>"]
    assert shown("words", "The cat zap") == ["The", "␣cat", "␣", "z", "a", "p"]
    assert shown("wordpiece", "Cats 🎉")[-1] == "[UNK]" and shown("wordpiece", "Catsand")[1].startswith("##")
    assert "".join(shown("bpe", "The cat")) == "The␣cat"


@pytest.mark.parametrize("kind", SCHEMES)
def test_numbers_against_counting_by_hand(learned, kind):
    tokenizer = learned[kind]
    found = measure(kind, tokenizer, [Corpus.of_text(HARD), Corpus.of_text("ran")])
    ids = [tokenizer.encode(part) for part in (HARD, "ran")]
    assert found.tokens == sum(map(len, ids))
    assert (found.characters, found.bytes) == (len(HARD) + 3, len(HARD.encode()) + 3)
    lines = [line for line in [*HARD.split("\n"), "ran"] if line.strip()]
    lengths = [len(tokenizer.encode(line)) for line in lines]
    assert found.lengths == tuple(lengths)
    assert found.mean_length == np.mean(lengths) and found.longest == max(lengths)
    assert found.pairs == sum(n**2 for n in lengths)
    assert found.characters_per_token == found.characters / found.tokens
    assert found.bytes_per_token == found.bytes / found.tokens
    assert found.gives_back == (kind != "wordpiece")
    assert found.embedding_bytes(16) == tokenizer.vocab_size * 16 * 4


def test_what_is_unseen_is_a_share_of_the_text(learned):
    """Most of the bytes are of characters or words that nobody has seen; a long word is one `[UNK]` all the same."""
    words = "The " + "🎉" * 4  # 4 bytes and 16
    shares = {kind: measure(kind, learned[kind], [Corpus.of_text(words)]).unseen for kind in SCHEMES}
    assert shares["bytes"] == shares["bpe"] == 0
    assert shares["characters"] == shares["unigram"] == 16 / 20
    assert shares["words"] == 17 / 20  # the space belongs to the word
    assert shares["wordpiece"] == 16 / 20
    found = measure("", learned["wordpiece"], [Corpus.of_text(words)])
    assert (found.unseen_tokens, found.tokens) == (1 / 2, 2)


@pytest.mark.parametrize("kind", SCHEMES)
def test_pieces_do_not_change_the_numbers(learned, kind, monkeypatch):
    whole = measure(kind, learned[kind], [Corpus.of_text(BOOK)])
    real = Corpus.pieces
    monkeypatch.setattr(Corpus, "pieces", lambda self, start=0, stop=None, size=64: real(self, start, stop, size))
    assert measure(kind, learned[kind], [Corpus.of_text(BOOK)]) == whole


def test_only_the_beginning_is_read(learned):
    found = measure("", learned["bytes"], [Corpus.of_text("one two"), Corpus.of_text("three"), Corpus.of_text("x")], 9)
    assert (found.characters, found.lengths) == (9, (7, 2))


def test_nothing_at_all(learned):
    found = measure("", learned["bpe"], [Corpus.of_text("")])
    assert (found.tokens, found.lengths, found.unseen, found.longest, found.mean_length) == (0, (), 0.0, 0, 0.0)
    assert found.characters_per_token is None and found.gives_back
    row = found.to_dict(8, [found])
    assert row["attention_cost"] is None and row["bytes_per_token"] is None


def test_costs_are_relative_to_the_cheapest(learned):
    found = [measure(kind, learned[kind], [Corpus.of_text("The cat sat")]) for kind in ("bytes", "words")]
    assert found[0].lengths == (11,) and found[1].lengths == (3,)
    rows = [one.to_dict(8, found) for one in found]
    assert [row["attention_cost"] for row in rows] == [121 / 9, 1.0]
    assert [row["feed_forward_cost"] for row in rows] == [11 / 3, 1.0]
    assert relative(1, [0, 1]) is None


def test_excerpts_end_with_a_word():
    texts = [Corpus.of_text("one two three four"), Corpus.of_text("five six")]
    assert list(excerpts(texts, 10)) == ["one two", "fiv"]  # a word that does not fit at all is cut
    assert list(excerpts(texts, 100)) == ["one two three four", "five six"]
    assert list(excerpts(texts, 0)) == []
    assert list(excerpts([Corpus.of_text("x" * 50)], 10)) == ["x" * 10]
    assert list(excerpts([Corpus.of_text("one two")], 7)) == ["one two"]


def test_which_words_are_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bpe").mkdir()
    (tmp_path / "run").mkdir()
    assert not is_path("bpe") and not is_path("chars") and not is_path("bpee")
    assert is_path("run") and is_path("runs/missing") and is_path("tokenizer.json")


def test_tokenizers_on_the_disk(tmp_path, learned):
    for name in ("run", "both"):
        (tmp_path / name).mkdir()
        learned["bpe"].save(tmp_path / name / "tokenizer.json")
    learned["words"].save(tmp_path / "both" / schemes.SOURCE_FILE)
    path = str(tmp_path / "run")
    assert {name: found.kind for name, found in open_tokenizers(path).items()} == {path: "bpe"}
    assert [found.kind for found in open_tokenizers(f"{path}/tokenizer.json").values()] == ["bpe"]
    assert [found.kind for found in open_tokenizers(str(tmp_path / "both")).values()] == ["words", "bpe"]
    with pytest.raises(DataError, match=r"does not exist[\s\S]*did you mean 'run'"):
        open_tokenizers(str(tmp_path / "rum"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no tokenizer"):
        open_tokenizers(str(tmp_path / "empty"))


def test_vocabularies_as_large_as_asked_for(learned):
    assert all(learned[kind].vocab_size <= 400 for kind in ("words", "bpe", "wordpiece", "unigram"))
    assert learn_scheme("bpe", [BOOK], 300).vocab_size == 300
    with pytest.raises(ConfigError, match="at least 257"):
        learn_scheme("bpe", [BOOK], 100)


def test_a_part_of_the_demo_text_is_its_beginning():
    part = demo_text(50_000)
    assert 40_000 < len(part) <= 50_000
    assert demo_text(200_000).startswith(part.rstrip("\n") + "\n\n")
    assert len(demo_text(10 * demo.LENGTH)) <= demo.LENGTH
