"""Examples to pretrain an encoder with, made from raw text: sample number → ids, what is hidden, and pairs.

Everything is a pure function of (seed, sample number): nothing is stored, a run resumes anywhere, and another
epoch hides other tokens of the same text. How pairs are made stands in `pair_making.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.keyed_draws import KeyedDraws
from weft.data.labelled_pairs import LabelledPairs
from weft.data.marks import Marks
from weft.data.masking import Masking
from weft.data.order import hash_numbers, in_order
from weft.data.pair_making import InversionPairs, Parts, StretchPairs, TablePairs, ramp, words_reordered
from weft.data.sentences import Sentences
from weft.data.stretches import pack
from weft.errors import ConfigError, DataError, did_you_mean

MASKED, NEXT, ORDER, INVERSION, ENTAILMENT = (
    "masked",
    "next-sentence",
    "sentence-order",
    "inversion",
    "entailment",
)
TASKS = (MASKED, NEXT, ORDER, INVERSION, ENTAILMENT)
SHORTEST = 8  # tokens: three marks and something on both sides


def check_tasks(tasks: Sequence[str], known: Sequence[str] = TASKS) -> None:
    """Refuse what is no task, or nothing at all."""
    for task in tasks:
        if task not in known:
            raise ConfigError(f"unknown task {task!r}", advice=did_you_mean(task, known))
    if not tasks or len(set(tasks)) != len(tasks):
        raise ConfigError(f"tasks = {', '.join(tasks) or 'none'}", expected="at least one, and each once")


@dataclass(frozen=True, eq=False)
class PretrainingRow:
    """Some samples one after the other, the shortest first.

    numbers     the sample number of each text
    tokens      as the model reads them, with what is hidden hidden
    segments    0 for the first text of a pair and its marks, 1 for the second
    lengths     tokens of each text
    places      where tokens are hidden; `targets` are what they were
    questions   for each kind of pair: which texts are one, and their labels
    """

    numbers: NDArray[np.int64]
    tokens: NDArray[np.int64]
    segments: NDArray[np.int64]
    lengths: NDArray[np.int64]
    places: NDArray[np.int64]
    targets: NDArray[np.int64]
    questions: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]

    def __repr__(self) -> str:
        return f"PretrainingRow({len(self.numbers)} texts, {len(self.tokens)} tokens, {len(self.places)} hidden)"


class PretrainingSamples:
    """Samples for any set of tasks.

    Without a pair task a sample is `[CLS] A [SEP]`: consecutive sentences of a document, as many as fit. With pair
    tasks it is `[CLS] A [SEP] B [SEP]`, and sample n is of the pair task n mod their number. Entailment reads a
    table; if it is the only pair task and tokens are to be hidden, every second sample is a stretch of the text.
    In all of them tokens are hidden if "masked" is one of the tasks; in an inversion only in A, because the words
    of B stand in no order that could tell what is missing.
    """

    def __init__(
        self,
        sentences: Sentences,
        marks: Marks,
        length: int,
        *,
        tasks: Sequence[str] = (MASKED,),
        seed: int = 0,
        masking: Masking | None = None,
        pairs: LabelledPairs | None = None,
    ) -> None:
        check_tasks(tasks)
        if length < SHORTEST:
            raise ConfigError(f"length = {length}", expected=f"at least {SHORTEST} tokens")
        if ENTAILMENT in tasks and pairs is None:
            raise DataError("entailment is learned from labelled pairs, and there are none", advice="--pairs FILE")
        self.length, self.seed, self.tasks, self.marks = length, seed, tuple(tasks), marks
        self.masking = (masking or Masking()) if MASKED in tasks else None
        self.kinds = _kinds(tasks)
        self.chance = KeyedDraws(seed)
        paired = [kind for kind in self.kinds if kind in (NEXT, ORDER, INVERSION)]
        room = length - (2 if self.kinds == (MASKED,) else 3)
        self.stretches = pack(sentences, room, pairs=bool(paired))
        if not len(self.stretches) and self.kinds != (ENTAILMENT,):
            raise DataError(
                "no document has two sentences: there are no pairs in this text",
                expected="documents of several sentences, with blank lines between documents only",
            )
        self._ids, self._words = sentences.ids, sentences.words
        self._text = StretchPairs(self.stretches, room, self.chance)
        self._inversion = InversionPairs(sentences, self.stretches, self.chance) if INVERSION in paired else None
        if NEXT in paired:
            self._text.check_others()
        self._table = None
        if pairs is not None and ENTAILMENT in tasks:
            self._table = TablePairs(pairs, room, offset=len(self._ids))
            self._ids = np.concatenate([self._ids, pairs.ids])
            self._words = np.concatenate([self._words, pairs.words])

    def __repr__(self) -> str:
        return f"PretrainingSamples({', '.join(self.tasks)}; length={self.length}, per_epoch={self.per_epoch})"

    @property
    def per_epoch(self) -> int:
        """Samples in which every stretch of the text comes once, beside a table every stretch and row at least once."""
        if self._table is None:
            return len(self.stretches)
        text = len(self.stretches) if self.kinds != (ENTAILMENT,) else 0
        return len(self.kinds) * max(text, len(self._table))

    def batch(self, samples: NDArray[np.integer]) -> PretrainingRow:
        """The samples with these numbers, counted through all epochs, the shortest first."""
        numbers = np.asarray(samples, dtype=np.int64).ravel()
        kinds = numbers % len(self.kinds)
        parts = Parts.empty(len(numbers))
        for place, kind in enumerate(self.kinds):
            here = np.flatnonzero(kinds == place)
            if len(here):
                parts.put(here, self._make(kind, numbers[here]))
        parts = parts.without_last_blank(self._ids, self.marks.edges.blank)
        order = np.argsort(parts.lengths, kind="stable")
        return self._row(numbers[order], kinds[order], parts.take(order))

    def _make(self, kind: str, numbers: NDArray[np.int64]) -> Parts:
        turns = numbers // len(self.kinds) if self._table is not None else numbers
        if kind == ENTAILMENT:
            assert self._table is not None
            return self._table.pairs(in_order(turns, len(self._table), hash_numbers(self.seed, 1)))
        stretches = in_order(turns, len(self.stretches), self.seed)
        if kind == INVERSION:
            assert self._inversion is not None
            return self._inversion.pairs(numbers, stretches)
        if kind == NEXT:
            return self._text.next_sentence(numbers, stretches)
        return self._text.sentence_order(numbers, stretches) if kind == ORDER else self._text.alone(stretches)

    def _row(self, numbers: NDArray[np.int64], kinds: NDArray[np.int64], parts: Parts) -> PretrainingRow:
        """Lay the parts out with their marks, then hide."""
        marks, lengths = self.marks, parts.lengths
        ends = np.cumsum(lengths)
        starts, middle = ends - lengths, ends - lengths + 1 + parts.first_length
        tokens, segments = np.zeros((2, int(lengths.sum())), dtype=np.int64)
        words, text = np.zeros((2, len(tokens)), dtype=bool)
        tokens[starts], tokens[middle], tokens[ends - 1] = marks.classify, marks.separate, marks.separate
        sizes = parts.first_length, np.maximum(parts.second_length, 0)
        sources = ramp(parts.first, sizes[0]), ramp(parts.second, sizes[1])
        moved = words_reordered(sources[1], sizes[1], parts.reordered, self._ids, self._words, self.chance, numbers)
        for source, size, mark in ((sources[0], sizes[0], starts), (moved, sizes[1], middle)):
            there, edge = ramp(mark + 1, size), mark[size > 0] + 1
            tokens[there], words[there], text[there] = self._ids[source], self._words[source], True
            tokens[edge], words[edge] = marks.edges.bare[tokens[edge]], True
        segments[ramp(middle + 1, parts.second_length + 1)] = 1
        where = np.repeat(np.arange(len(numbers)), lengths)
        places = targets = np.empty(0, dtype=np.int64)
        if self.masking is not None:
            text &= ~(parts.reordered[where] & (segments == 1))
            places, targets = self.masking.hide(tokens, words, where, text, numbers, self.chance, marks)
        questions = {}
        for place, kind in enumerate(self.kinds):
            here = np.flatnonzero(kinds == place)
            if kind != MASKED and len(here):
                questions[kind] = (here, parts.labels[here])
        return PretrainingRow(numbers, tokens, segments, lengths, places, targets, questions)


def _kinds(tasks: Sequence[str]) -> tuple[str, ...]:
    """What samples are by turns: the pair tasks in their usual order, or stretches of text."""
    pairs = tuple(task for task in TASKS if task in tasks and task != MASKED)
    if MASKED in tasks and pairs in ((), (ENTAILMENT,)):
        return (MASKED, *pairs)
    return pairs
