"""Other spellings: the same text in other tokens, now and then, and never the marks."""

import numpy as np
import pytest

from fixtures.texts import make_text
from weft.data.keyed_draws import KeyedDraws
from weft.data.subword_regularisation import SubwordRegularisation
from weft.tasks.encoded import Spelling, encoded
from weft.text import TokenizerConfig

TEXTS = [line for line in make_text(6000).splitlines() if line.strip()][:60]
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")


def made(kind, vocab_size=400):
    fields = {} if kind in ("characters", "bytes") else {"vocab_size": vocab_size}
    return TokenizerConfig.from_config({"kind": kind, **fields}).train(TEXTS, special=SPECIAL)


def flat(tokenizer, texts=TEXTS):
    ids = [tokenizer.encode(line).astype(np.int64) for line in texts]
    return np.concatenate(ids), np.repeat(np.arange(len(ids)), [len(part) for part in ids])


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "words"])
def test_the_text_is_the_same_in_more_tokens(kind):
    tokenizer = made(kind)
    ids, where = flat(tokenizer)
    tables = SubwordRegularisation.of(tokenizer)
    new, old = tables.respelled(ids, where, np.arange(len(TEXTS)), 0.5, KeyedDraws(0))
    assert len(new) >= {"wordpiece": 1.05, "bpe": 1.05, "words": 1}[kind] * len(ids)  # few words are two others
    for n in range(len(TEXTS)):
        assert tokenizer.decode(new[where[old] == n]) == tokenizer.decode(ids[where == n])
    assert (np.diff(old) >= 0).all() and set(old) == set(range(len(ids)))
    same, _ = tables.respelled(ids, where, np.arange(len(TEXTS)), 0.0, KeyedDraws(0))
    assert np.array_equal(same, ids)


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_single_letters_have_one_spelling(kind):
    tokenizer = made(kind)
    ids, where = flat(tokenizer)
    new, _ = SubwordRegularisation.of(tokenizer).respelled(ids, where, np.arange(len(TEXTS)), 1.0, KeyedDraws(0))
    assert np.array_equal(new, ids)


def test_marks_are_never_spelled():
    tokenizer = made("bpe")
    special = tokenizer.special
    marks = np.array([special.classify, special.separate, special.mask, special.pad, special.end])
    new, _ = SubwordRegularisation.of(tokenizer).respelled(
        marks, np.zeros(5, np.int64), np.arange(1), 1.0, KeyedDraws(0)
    )
    assert np.array_equal(new, marks)


def test_a_share_of_what_can_be_spelled_otherwise():
    tokenizer = made("wordpiece")
    ids, where = flat(tokenizer)
    tables = SubwordRegularisation.of(tokenizer)
    able = (tables.begins[ids + 1] > tables.begins[ids]).sum()
    split = []
    for seed in range(20):
        _, old = tables.respelled(ids, where, np.arange(len(TEXTS)), 0.3, KeyedDraws(seed))
        split.append((np.bincount(old) > 1).sum())
    assert np.mean(split) / able == pytest.approx(0.3, abs=0.02)


def test_it_is_a_function_of_seed_sample_and_place():
    """Alone or in a batch, now or later: the same; another sample number or seed: another spelling."""
    tokenizer = made("wordpiece")
    ids, where = flat(tokenizer)
    tables = SubwordRegularisation.of(tokenizer)
    numbers = np.arange(len(TEXTS)) + 10**9
    together, old = tables.respelled(ids, where, numbers, 0.5, KeyedDraws(3))
    for n in (0, 7, 59):
        alone, _ = tables.respelled(
            ids[where == n], np.zeros((where == n).sum(), np.int64), numbers[n : n + 1], 0.5, KeyedDraws(3)
        )
        assert np.array_equal(alone, together[where[old] == n])
    for other in (
        tables.respelled(ids, where, numbers + 1, 0.5, KeyedDraws(3)),
        tables.respelled(ids, where, numbers, 0.5, KeyedDraws(4)),
    ):
        assert not np.array_equal(other[0], together)


@pytest.mark.parametrize("paired", [False, True])
def test_rows_of_varied_texts_keep_their_marks_segments_and_length(paired):
    tokenizer = made("wordpiece")
    inputs = [(one, two) if paired else (one,) for one, two in zip(TEXTS[::2], TEXTS[1::2], strict=True)]
    texts = encoded(tokenizer, inputs, 64)
    longest = int(np.quantile(texts.lengths, 0.8)) + 3
    places = np.arange(len(inputs))
    row, order = texts.varied(
        places, places, Spelling(SubwordRegularisation.of(tokenizer), KeyedDraws(0), 0.2, longest)
    )
    lengths = np.array(row.packed.lengths)
    assert sorted(order) == list(places) and (np.diff(lengths) >= 0).all()
    parts = np.split(row.tokens[0].numpy(), np.cumsum(lengths)[:-1])
    grown = 0
    for place, part in zip(order, parts, strict=True):
        before = texts.ids[place]
        assert (
            part[0] == before[0]
            and part[-1] == before[-1]
            and (part == before[-1]).sum() == (before == before[-1]).sum()
        )
        assert len(part) <= max(longest, len(before))
        grown += len(part) > len(before)
        assert tokenizer.decode(part) == tokenizer.decode(before)
    assert grown > 5 and (lengths == texts.lengths[order]).any()
    assert (row.segments is not None) == paired
    if paired:
        told = np.split(row.segments[0].numpy(), np.cumsum(lengths)[:-1])
        for part, segments in zip(parts, told, strict=True):
            first = int(np.flatnonzero(part == tokenizer.special.separate)[0])
            assert not segments[: first + 1].any() and segments[first + 1 :].all()
