"""Streamed text: never half a character, never a part of a stop string, and together exactly the text."""

import itertools

import pytest

from weft.generation.text_stream import TextStream, _overlap
from weft.text import TokenizerConfig

TEXT = "Ein Bär 🐻‍❄️ läuft, naïve café. " * 5


@pytest.fixture(params=["characters", "bytes", "words", "bpe"])
def tokenizer(request):
    return TokenizerConfig.from_config(
        {"kind": request.param, **({"vocab_size": 300} if request.param == "bpe" else {})}
    ).train(["the cat sat on the mat. " * 20])


def pieces_of(stream, ids):
    return [stream.push(int(token)) for token in ids] + [stream.finish()]


def test_pieces_are_whole_characters_and_add_up(tokenizer):
    pieces = pieces_of(TextStream(tokenizer), tokenizer.encode(TEXT))
    assert "".join(pieces) == TEXT
    assert not any("\ufffd" in piece for piece in pieces)
    assert sum(bool(piece) for piece in pieces) > 10  # it comes in pieces, not at the end


def test_a_character_cut_off_at_the_end_is_left_out():
    tokenizer = TokenizerConfig.from_config("bytes").train(["abc"])
    assert "".join(pieces_of(TextStream(tokenizer), tokenizer.encode("so 🐻")[:-1])) == "so "


def test_invalid_bytes_show_as_such():
    tokenizer = TokenizerConfig.from_config("bytes").train(["abc"])
    assert "".join(pieces_of(TextStream(tokenizer), [0x61, 0xFF, 0x62])) == "a\ufffdb"


def test_stop_strings_across_token_borders(tokenizer):
    stream = TextStream(tokenizer, stop=["café", "läuft, n"])
    shown = []
    for token in tokenizer.encode(TEXT):
        shown.append(stream.push(int(token)))
        if stream.stopped:
            break
    assert stream.stopped
    assert "".join(shown) + stream.finish() == "Ein Bär 🐻‍❄️ "
    assert stream.push(0) == ""


def test_nothing_of_a_stop_string_is_shown_before_it_is_clear():
    tokenizer = TokenizerConfig.from_config("characters").train(["abEND"])
    stream = TextStream(tokenizer, stop=["END"])
    ids = tokenizer.encode("aENbEN")
    shown = [stream.push(int(token)) for token in ids]
    assert shown == ["a", "", "", "ENb", "", ""]
    assert stream.finish() == "EN"


def test_the_earliest_stop_string_wins():
    tokenizer = TokenizerConfig.from_config("words").train(["one two three"])
    stream = TextStream(tokenizer, stop=["ree", "two"])
    assert "".join(pieces_of(stream, tokenizer.encode("one two three"))) == "one "


def test_a_tokenizer_whose_tokens_depend_on_their_neighbours():
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers import decoders, models, pre_tokenizers

    from weft.text import Tokenizer

    engine = tokenizers.Tokenizer(
        models.WordLevel({"▁the": 0, "▁cat": 1, "s": 2, "<|endoftext|>": 3, "?": 4}, unk_token="?")
    )
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.decoder = decoders.Metaspace()
    tokenizer = Tokenizer(engine)
    assert tokenizer.kind == "other"
    ids = [0, 1, 2, 0, 1, 2] * 5
    assert "".join(pieces_of(TextStream(tokenizer), ids)) == tokenizer.decode(ids)
    after = TextStream(tokenizer, prompt=[0])
    assert after.push(1) == " cat"  # a space, because something stands before it


@pytest.mark.parametrize("text", ["", "a", "ab", "xaba", "abab"])
@pytest.mark.parametrize("word", ["a", "ab", "abab", "ba"])
def test_overlap_by_trying_everything(text, word):
    longest = max(n for n in range(len(word)) if text.endswith(word[:n]) or n == 0)
    assert _overlap(text, word) == longest
    assert list(itertools.islice(word, longest)) == list(text[len(text) - longest :])
