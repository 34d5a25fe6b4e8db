"""One long text out of many documents: pieces, places, fingerprints, and cuts that no tokenizer notices."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import ConfigError, DataError
from weft.text import Corpus, Document, TokenizerConfig
from weft.text.cutting import cut_point, short_pieces

PROSE = "The quick brown fox, it's said,\njumps over 12 lazy dogs.\n\n   Indented “text”, tabs\tand  gaps.\n" * 40


def test_what_one_pass_tells(tmp_path):
    (tmp_path / "a.txt").write_bytes("naïve\r\n".encode())
    (tmp_path / "b.txt").write_bytes(b"text")
    corpus = Corpus.of_files(tmp_path)
    assert (corpus.characters, corpus.bytes) == (10, 11)
    assert list(corpus.pieces()) == ["naïve\n", "text"]
    assert list(corpus.marked_pieces()) == [("naïve\n", True), ("text", True)]
    assert "2 documents" in repr(corpus) and "a.txt" in repr(corpus)
    assert corpus.fingerprint == Corpus.of_text("naïve\n", "text").fingerprint, "content decides, not names"


def test_one_document_has_no_end_to_mark():
    assert list(Corpus.of_text("abc").marked_pieces()) == [("abc", False)]


def test_fingerprints_differ():
    texts = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", "d"), ("abd",), ("c", "ab")]
    assert len({Corpus.of_text(*text).fingerprint for text in texts}) == len(texts)
    assert Corpus.of_text("a\r\nb").fingerprint == Corpus.of_text("a\nb").fingerprint


@pytest.mark.parametrize("blank", ["", " ", " \n\t\r\n \u3000"])
def test_text_with_nothing_in_it(blank, tmp_path):
    with pytest.raises(DataError, match=r"there is no(thing but spaces| text) in .*\nexpected text to learn from"):
        _ = Corpus.of_text(blank).characters
    (tmp_path / "mark.txt").write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(DataError, match=r"no text in .*mark\.txt"):
        _ = Corpus.of_files(tmp_path / "mark.txt").fingerprint
    with pytest.raises(DataError, match="no documents"):
        Corpus([])
    with pytest.raises(DataError, match="surrogate"):
        _ = Corpus.of_text("\ud800").bytes


@settings(max_examples=80, deadline=None)
@given(
    texts=st.lists(st.text("ab \n", max_size=30), min_size=1, max_size=4),
    places=st.tuples(st.integers(0, 90), st.integers(0, 90)),
    size=st.integers(1, 12),
)
def test_pieces_are_the_text_from_any_place_to_any_place(texts, places, size):
    corpus, whole = Corpus.of_text(*texts), "".join(texts)
    start, stop = sorted(places)
    assert "".join(corpus.pieces(size=size)) == whole
    assert "".join(corpus.pieces(start, stop, size)) == whole[start:stop]
    assert all(0 < len(piece) <= size + 1 for piece in corpus.pieces(start, stop, size))
    ends = [end for end in itertools.accumulate(map(len, texts)) if start < end <= stop]
    marked = list(corpus.marked_pieces(start, stop, size))
    seen = [start + n for n, (_, ended) in zip(np.cumsum([len(p) for p, _ in marked]), marked, strict=True) if ended]
    assert seen == (sorted(set(ends)) if len(texts) > 1 else []), "a piece never spans two documents"


def test_a_split():
    texts = ["abcde", "fghij", "klmno"]
    train, held_out = Corpus.of_text(*texts).split(0.4)
    assert list(train.marked_pieces()) == [("abcde", True), ("fghi", False)]
    assert list(held_out.marked_pieces()) == [("j", True), ("klmno", True)]
    assert (train.characters, held_out.characters) == (9, 6)
    assert train.fingerprint != held_out.fingerprint
    again, rest = held_out.split(0.5)
    assert list(again.pieces()) == ["j", "kl"] and list(rest.pieces()) == ["mno"]
    assert list(held_out.pieces(2, 4)) == ["lm"] and list(train.pieces(8, 99)) == ["i"]
    assert "characters 0 to 9" in repr(train)


def test_a_split_at_the_border_of_documents():
    train, held_out = Corpus.of_text("abcde", "fghij").split(0.5)
    assert list(train.marked_pieces()) == [("abcde", True)]
    assert list(held_out.marked_pieces()) == [("fghij", True)]


def test_a_split_of_nothing_or_too_little():
    whole, nothing = Corpus.of_text("abc").split(0.0)
    assert whole.characters == 3 and nothing.characters == 0
    assert whole.fingerprint == Corpus.of_text("abc").fingerprint
    with pytest.raises(DataError, match="only 1 characters"):
        Corpus.of_text("a").split(0.1)
    for wrong in (1.0, -0.1, float("nan")):
        with pytest.raises(ConfigError, match="share"):
            Corpus.of_text("abc").split(wrong)


def test_the_split_of_nanogpt():
    train, _ = Corpus.of_text("x" * 1_115_394).split(0.1)
    assert train.characters == int(1_115_394 * 0.9) == 1_003_854


# -- cuts -------------------------------------------------------------------------------------


def test_where_to_cut():
    def cut(text, high):
        return text[: cut_point(text, 0, high)]

    assert cut("some words\nnext line", 15) == "some words\n"
    assert cut("some words\n\nnext", 13) == "some words", "spaces stay together, with what follows them"
    assert cut("some words\n next", 14) == "some words"
    assert cut("abcdefghijklmnop", 7) == "abcdefg"
    assert cut("one two three four", 12) == "one two"
    assert list(short_pieces("one two three", 6)) == ["one", " two", " three"]


@pytest.mark.parametrize("kind", ["bpe", "words"])
@pytest.mark.parametrize("size", [40, 64, 150, 1000])
def test_cuts_change_no_id(kind, size):
    tokenizer = TokenizerConfig.from_config({"kind": kind, "vocab_size": 400}).train([PROSE])
    pieces = list(Corpus.of_text(PROSE).pieces(size=size))
    assert len(pieces) > len(PROSE) // size
    assert np.concatenate(tokenizer.encode_batch(pieces)).tolist() == tokenizer.encode(PROSE).tolist()


@pytest.mark.parametrize("kind", ["bpe", "words"])
@settings(max_examples=60, deadline=None)
@given(text=st.text("ab'1 \n\t.\u00a0\x1cé", min_size=30, max_size=200))
def test_hypothesis_finds_no_cut_that_changes_an_id(kind, text):
    tokenizer = SMALL[kind]
    pieces = list(short_pieces(text, 24))
    places = np.cumsum([len(piece) for piece in pieces])[:-1]
    anywhere = [place for place in places if not _at_a_gap(text, place)]
    if not anywhere:  # else there was no good place
        assert np.concatenate(tokenizer.encode_batch(pieces)).tolist() == tokenizer.encode(text).tolist()


def _at_a_gap(text, place):
    before_a_gap = text[place] in " \n" and not text[place - 1].isspace()
    after_a_line = text[place - 1] == "\n" and not text[place].isspace() and not text[place - 2].isspace()
    return before_a_gap or after_a_line


SMALL = {
    kind: TokenizerConfig.from_config({"kind": kind, "vocab_size": 400}).train([PROSE]) for kind in ("bpe", "words")
}


def test_a_long_text_is_never_held_as_a_whole(tmp_path):
    path = tmp_path / "long.txt"
    with path.open("w") as file:
        for _ in range(20):
            file.write("all work and no play, " * 50_000)  # 22 MB on one line
    corpus = Corpus.of_files(path)
    tracemalloc.start()
    characters = sum(map(len, corpus.pieces(size=1 << 16)))
    assert corpus.characters == characters == 22_000_000
    assert "".join(corpus.pieces(21_999_990)) == "d no play, "[1:]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12e6


def test_pieces_are_lazy():
    class Endless(Document):
        def read(self):
            while True:
                yield "word " * 1000

    corpus = Corpus([Endless(name="endless")])
    assert len(list(itertools.islice(corpus.pieces(size=1000), 50))) == 50
