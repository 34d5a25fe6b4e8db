"""A text in which every token stands once, so that its id tells where it came from."""

from __future__ import annotations

import numpy as np

from weft.data import Marks, Sentences
from weft.text.word_edges import WordEdges

FIRST = 10  # ids below are marks
CLS, SEP, MASK = 0, 1, 2


def marks(size: int) -> Marks:
    edges = WordEdges(
        inside=np.zeros(size, dtype=bool),
        open=np.ones(size, dtype=bool),
        blank=np.zeros(size, dtype=bool),
        bare=np.arange(size, dtype=np.uint32),
    )
    return Marks(CLS, SEP, MASK, np.arange(size) >= FIRST, edges)


def numbered(documents: int = 30, seed: int = 0, sentences=(2, 12), tokens=(3, 25)) -> Sentences:
    """Token i of the text has the id FIRST + i; a word is one to three tokens."""
    rng = np.random.default_rng(seed)
    per_document = rng.integers(*sentences, size=documents)
    lengths = rng.integers(*tokens, size=per_document.sum())
    starts = np.concatenate([[0], np.cumsum(lengths)])
    words = rng.random(starts[-1]) < 0.6
    words[starts[:-1]] = True
    ids = (FIRST + np.arange(starts[-1])).astype(np.uint32)
    return Sentences(ids, words, starts, np.concatenate([[0], np.cumsum(per_document)]))


def texts(row):
    """Each text of a row: sample number, first text, second text (or None), hidden put back."""
    whole = row.tokens.copy()
    whole[row.places] = row.targets
    at = 0
    for number, length in zip(row.numbers.tolist(), row.lengths.tolist(), strict=True):
        ids, segments = whole[at : at + length], row.segments[at : at + length]
        at += length
        assert ids[0] == CLS and ids[-1] == SEP and segments[0] == 0
        assert (np.diff(segments) >= 0).all()
        marks = np.flatnonzero(ids == SEP).tolist()
        if segments[-1] == 0:
            assert len(marks) == 1
            yield number, ids[1:-1], None
        else:
            cut = marks[0]
            assert marks == [cut, length - 1] and not segments[: cut + 1].any() and segments[cut + 1 :].all()
            yield number, ids[1:cut], ids[cut + 1 : -1]


def labels(row, question):
    places, answers = row.questions[question]
    return dict(zip(row.numbers[places].tolist(), answers.tolist(), strict=True))
