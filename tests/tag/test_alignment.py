"""Words as subwords: first subwords carry labels, windows answer every word once, packed = padded = alone."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.weights import move_weights
from weft.errors import ConfigError, DataError
from weft.models import BERTConfig
from weft.tasks.tag.alignment import IGNORED, cut_windows, encode_labels, encode_words
from weft.tasks.tag.demo import demo_sentences
from weft.tasks.tag.tagger import tag_logits
from weft.text import TokenizerConfig
from weft.text.special import BERT_NAMES

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
KINDS = ("wordpiece", "bpe", "unigram", "words", "characters", "bytes")


def tokenizer(kind="wordpiece"):
    texts = [" ".join(words) for words in demo_sentences("train").words[:400]]
    sizes = {} if kind in ("characters", "bytes", "words") else {"vocab_size": 500}
    return TokenizerConfig.from_config({"kind": kind, **sizes}).train(texts, special=BERT_NAMES)


def model(vocab_size, max_length=24):
    torch.manual_seed(1)
    head = {"kind": "tokens", "labels": LABELS}
    made = (
        BERTConfig(vocab_size=vocab_size, width=16, depth=2, max_length=max_length, head=head).build().double().eval()
    )
    move_weights(made)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_is_the_subwords_of_its_words(kind):
    cutter = tokenizer(kind)
    words = ["Unbelievable", "Woorley", "Ærø", ",", "…", "x" * 7]
    encoded = encode_words(cutter, [words], 200)
    (window,) = encoded.windows
    assert window.ids[0] == cutter.special.classify and window.ids[-1] == cutter.special.separate
    assert window.ids[1:-1].tolist() == [n for word in words for n in cutter.encode(f" {word}").tolist()]
    stops = [*window.firsts[1:], len(window.ids) - 1]
    for word, first, stop in zip(words, window.firsts, stops, strict=True):
        assert window.ids[first:stop].tolist() == cutter.encode(f" {word}").tolist()
    assert encoded.rows == [6] and window.start == 0 and encoded.cut == 0
    labels = encode_labels([["O", "B-PER", "I-PER", "O", "B-ORG", "O"]], LABELS)
    assert labels[0].tolist() == [0, 1, 2, 0, IGNORED, 0]
    told = encoded.token_labels(0, labels)
    assert (told != IGNORED).sum() == 5 and told[window.firsts[1]] == 1 and told[0] == told[-1] == IGNORED
    assert all(told[place] == IGNORED for place in range(len(told)) if place not in window.firsts)


def test_wordpiece_reads_a_sentence_as_bert_does():
    cutter, words = tokenizer(), demo_sentences("test").words[:50]
    for each in words:
        (window,) = encode_words(cutter, [each], 200).windows
        assert window.ids.tolist() == cutter.encode_pair(" ".join(each))[0].tolist()


def test_a_word_without_tokens_is_unknown():
    cutter = tokenizer()
    (window,) = encode_words(cutter, [["a", "\u200b", "\x07", "b"]], 20).windows
    assert len(window.firsts) == 4 and window.ids[2] == window.ids[3] == cutter.special.unknown


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(9, 30), st.integers(0, 8))
def test_windows_answer_every_word_once_and_overlap(lengths, room, overlap):
    ends = np.cumsum(lengths)
    read, answered = cut_windows(ends, room, overlap)
    assert [n for start, stop in answered for n in range(start, stop)] == list(range(len(lengths)))
    for (first, stop), (start, after) in zip(read, answered, strict=True):
        assert first <= start < after <= stop and sum(lengths[first:stop]) <= room
    for (first, stop), (following, further) in pairwise(read):
        assert first < following <= stop < further
        assert sum(lengths[following:stop]) <= overlap
        fits = sum(lengths[following - 1 : stop + 1]) <= room and sum(lengths[following - 1 : stop]) <= overlap
        assert not fits, "the next window begins as early as it may"
    assert len(read) == 1 or sum(lengths) > room


def long_sentences():
    words = [word for row in demo_sentences("train").words[:12] for word in row]
    return [words[:30], words[:3], words, [words[5]], words[40:75]]


def test_batched_is_alone_and_packed_is_padded():
    cutter = tokenizer()
    made, sentences = model(cutter.vocab_size), long_sentences()
    encoded = encode_words(cutter, sentences, 24)
    assert len(encoded.windows) > 12 and max(encoded.lengths) <= 24
    batched = tag_logits(made, encoded)
    assert [len(rows) for rows in batched] == [len(words) for words in sentences]
    for words, rows in zip(sentences, batched, strict=True):
        assert np.abs(tag_logits(made, encode_words(cutter, [words], 24))[0] - rows).max() < 1e-10
    numbers = list(range(len(encoded.windows)))
    tokens, keep = encoded.padded(numbers, fill=7)
    with torch.inference_mode():
        padded = made(tokens, None, keep).numpy()
    found = {n: padded[n, encoded.windows[n].firsts] for n in numbers}
    for one, other in zip(batched, encoded.unpacked(found), strict=True):
        assert np.abs(one - other).max() < 1e-10 and one.std() > 0.05
    shorter = tag_logits(made, encode_words(cutter, sentences, 12))
    assert np.abs(shorter[2] - batched[2]).max() > 1e-3  # a negative control: less context, other answers


def test_overlap_gives_words_at_a_cut_what_stands_around_them():
    cutter, words = tokenizer(), long_sentences()[2]
    for encoded, least in ((encode_words(cutter, [words], 24), 1), (encode_words(cutter, [words], 24, overlap=0), 0)):
        for before, after in zip(encoded.windows, encoded.windows[1:], strict=False):
            assert (after.firsts[0] > 1) == bool(least)  # it reads words that the window before answers
            last = len(cutter.encode(f" {words[after.start - 1]}"))
            assert (before.firsts[-1] + last < len(before.ids) - 1) == bool(least)


def test_rows_with_labels():
    cutter, sentences = tokenizer(), long_sentences()
    encoded = encode_words(cutter, sentences, 24)
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 5, len(words)) for words in sentences]
    labels[1][:] = IGNORED
    row = encoded.tagged_row(list(range(len(encoded.windows))), labels)
    wanted = [label for row in labels for label in row.tolist() if label != IGNORED]
    assert row.labels.tolist() == wanted  # windows in order: every word once, those without a label left out
    some = encoded.tagged_row([3, 0], labels)
    assert some.row.packed.lengths == (len(encoded.windows[3].ids), len(encoded.windows[0].ids))
    flat = np.concatenate([encoded.token_labels(n, labels) for n in (3, 0)])
    assert some.places.tolist() == np.flatnonzero(flat != IGNORED).tolist()
    assert some.labels.tolist() == flat[flat != IGNORED].tolist()
    assert repr(encoded).startswith("EncodedWords(5 sentences, ") and repr(encoded.windows[0]).startswith("WordWindow(")


def test_a_word_longer_than_a_window_is_cut_and_counted():
    cutter = tokenizer("characters")
    encoded = encode_words(cutter, [["a", "b" * 50, "c"]], 10)
    assert encoded.cut == 1 and max(encoded.lengths) <= 10
    assert sum(len(window.firsts) for window in encoded.windows) == 3


def test_what_cannot_be_read_is_refused():
    cutter = tokenizer()
    with pytest.raises(DataError, match="sentence 2 of 2 has no words"):
        encode_words(cutter, [["a"], []], 20)
    with pytest.raises(ConfigError, match="at least 3 tokens"):
        encode_words(cutter, [["a"]], 2)
    with pytest.raises(DataError, match=r"one with \[CLS\] and \[SEP\]"):
        encode_words(TokenizerConfig.from_config("bytes").train(["a"]), [["a"]], 20)
