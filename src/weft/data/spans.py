"""Span corruption (Raffel et al. 2020, section 3.3): a text with gaps of a few tokens, and what stood in them.

    stretch   we went down to the river and saw a boat
    source    we went <extra_id_0> river and <extra_id_1> end
    target    <extra_id_0> down to the <extra_id_1> saw a boat <extra_id_2> end

Each gap has a sentinel of its own, in order; one more sentinel says that there are no more gaps. How many tokens are
hidden in how many spans follows from the length alone; where they are is a pure function of (seed, sample number):
nothing is stored, a run resumes anywhere, and another epoch hides other spans of the same text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.data.keyed_draws import Drawn, KeyedDraws
from weft.data.masking import first_by_chance
from weft.data.order import in_order
from weft.data.pair_making import ramp
from weft.data.sentences import Sentences
from weft.data.stretches import pack
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.text import Tokenizer
from weft.text.word_edges import WordEdges

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
SHORTEST = 2  # tokens: one to hide and one to tell it from


@dataclass(frozen=True, eq=False)
class SpanMarks:
    """What making spans has to know of a tokenizer.

    sentinels    the ids that stand for gaps, in their order; in T5 they count down
    end          the id that ends a source and a target
    edges        where white space is; None: nothing is cut off the ends of a stretch
    """

    sentinels: Ids
    end: int
    edges: WordEdges | None = None

    def __repr__(self) -> str:
        return f"SpanMarks({len(self.sentinels)} sentinels, end={self.end})"

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> SpanMarks:
        sentinels = np.array(tokenizer.sentinels, dtype=np.int64)
        if not len(sentinels):
            raise UnsupportedError(
                f"this {tokenizer.kind} tokenizer has no sentinels to mark gaps with",
                expected="one with <extra_id_0>, <extra_id_1>, …",
            )
        edges = WordEdges.of(tokenizer)
        if np.array_equal(tokenizer.encode("a"), tokenizer.encode(" a")):  # it writes the space before a text itself
            edges = replace(edges, bare=np.arange(tokenizer.vocab_size, dtype=np.uint32))
        return cls(sentinels, tokenizer.end, edges)


@dataclass(frozen=True)
class Spans:
    """How much is hidden.

    share       of the tokens that are hidden
    span        tokens of a span, on average
    anywhere    True: spans are anywhere behind the first token; False: the last token is always hidden, as in T5's
                own code, so that a stretch with one span (up to 30 tokens) loses the same end in every epoch
    """

    share: float = 0.15
    span: float = 3.0
    anywhere: bool = True

    def counts(self, lengths: NDArray[np.integer]) -> tuple[Ids, Ids]:
        """How many tokens are hidden in stretches of these lengths, and in how many spans.

        At least one token is hidden and one is kept; of a single token, none is hidden. Spans never touch, so there
        are no more of them than tokens that are kept. Halves are rounded as T5's code does it: in float32, to even.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        hidden = np.rint(sizes.astype(np.float32) * np.float32(self.share)).astype(np.int64)
        hidden = np.maximum(0, np.minimum(np.maximum(1, hidden), sizes - 1))
        spans = np.rint(hidden.astype(np.float32) / np.float32(self.span)).astype(np.int64)
        return hidden, np.minimum(np.maximum(1, spans), np.minimum(hidden, sizes - hidden))

    def lengths(self, lengths: NDArray[np.integer]) -> tuple[Ids, Ids]:
        """How many tokens source and target have for stretches of these lengths, with sentinels and end."""
        hidden, spans = self.counts(lengths)
        return lengths - hidden + spans + 1, hidden + spans + 2

    def check_sentinels(self, lengths: NDArray[np.integer], sentinels: int) -> None:
        """Refuse stretches that have more spans than there are sentinels.

        Fewer and longer spans would do too, but they are another task than the one asked for, and nobody would see it.
        """
        needed = self.counts(lengths)[1] + 1
        if len(needed) and needed.max() > sentinels:
            longest = int(np.asarray(lengths)[needed.argmax()])
            raise ConfigError(
                f"{int(needed.max()) - 1} spans in {longest} tokens, and {sentinels} sentinels",
                expected=f"{int(needed.max())} sentinels: one for each span and a last one",
                advice="choose shorter stretches, longer spans, a smaller share, or more sentinels",
            )

    def places(self, lengths: Ids, numbers: Ids, chance: KeyedDraws) -> tuple[Ids, Flags]:
        """Where tokens are hidden in stretches that lie one after the other, and which of these begin a span.

        The tokens that are kept are cut into as many parts as the hidden ones, every way to cut them alike, and the
        parts come by turns, a kept one first. So span g lies behind a kept token, and if that is number k of the
        kept ones and a hidden token of the span is number h of the hidden ones, its place is k + h + 1.
        """
        hidden, spans = self.counts(lengths)
        kept, forced = lengths - hidden, int(not self.anywhere)
        kept_first, hidden_first = np.cumsum(kept) - kept, np.cumsum(hidden) - hidden
        some = spans > 0
        before = _picked(kept_first, kept - forced, spans - forced, chance.of(numbers, "gaps"))
        if forced:
            before = np.sort(np.concatenate([before, (kept_first + kept - 1)[some]]))
        begins = np.zeros(int(hidden.sum()), dtype=bool)
        begins[hidden_first[some]] = True
        begins[_picked(hidden_first + 1, hidden - 1, spans - 1, chance.of(numbers, "spans"))] = True
        return np.arange(len(begins)) + before[np.cumsum(begins) - 1] + 1, begins


def _picked(first: Ids, counts: Ids, wanted: Ids, drawn: Drawn) -> Ids:
    """Of the numbers [first, first + count) of each text as many as wanted, by chance, in order."""
    sizes = np.maximum(0, counts)
    text, place = np.repeat(np.arange(len(sizes)), sizes), ramp(np.zeros_like(sizes), sizes)
    chosen = first_by_chance(text, KeyedDraws.at(drawn[text], place), wanted)
    return first[text[chosen]] + place[chosen]


# -- samples ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SpanRow:
    """Some samples one after the other, the shortest first.

    numbers    the sample number of each
    source     stretches with a sentinel for each span, and `end`; `source_lengths`, with the end
    target     each sentinel with what it stands for, the last sentinel, and `end`; `target_lengths` likewise
    """

    numbers: Ids
    source: Ids
    source_lengths: Ids
    target: Ids
    target_lengths: Ids

    def __repr__(self) -> str:
        return f"SpanRow({len(self.numbers)} texts, {len(self.source)} → {len(self.target)} tokens)"

    def pairs(self) -> Iterator[tuple[Ids, Ids]]:
        """Source and target of one sample after the other."""
        a = b = 0
        for source, target in zip(self.source_lengths.tolist(), self.target_lengths.tolist(), strict=True):
            yield self.source[a : a + source], self.target[b : b + target]
            a, b = a + source, b + target

    @classmethod
    def of(cls, tokens: Ids, lengths: Ids, numbers: Ids, chance: KeyedDraws, marks: SpanMarks, spans: Spans) -> SpanRow:
        """Hide spans of stretches that lie one after the other in `tokens`."""
        spans.check_sentinels(lengths, len(marks.sentinels))
        places, begins = spans.places(lengths, numbers, chance)
        count, (source_lengths, target_lengths) = spans.counts(lengths)[1], spans.lengths(lengths)
        sentinels = marks.sentinels[ramp(np.zeros_like(count), count)]
        row, keep = tokens.astype(np.int64), np.ones(len(tokens), dtype=bool)
        row[places[begins]] = sentinels
        keep[places[~begins]] = False
        ends = np.cumsum(source_lengths)
        source, inside = np.full(int(source_lengths.sum()), marks.end), np.ones(int(source_lengths.sum()), dtype=bool)
        inside[ends - 1] = False
        source[inside] = row[keep]
        ends = np.cumsum(target_lengths)
        target = np.full(int(target_lengths.sum()), marks.end)
        text = np.repeat(np.arange(len(lengths)), lengths)[places]
        there = np.arange(len(places)) + np.cumsum(begins) + 2 * text  # each text before it has two marks at its end
        target[there] = tokens[places]
        target[there[begins] - 1] = sentinels
        target[ends - 2] = marks.sentinels[count]
        return cls(numbers, source, source_lengths, target, target_lengths)


def corrupted(
    tokens: NDArray[np.integer], marks: SpanMarks, spans: Spans | None = None, *, seed: int = 0, number: int = 0
) -> tuple[Ids, Ids]:
    """Source and target of one stretch, as the sample with this number."""
    row = np.asarray(tokens, dtype=np.int64)
    made = SpanRow.of(row, np.array([len(row)]), np.array([number]), KeyedDraws(seed), marks, spans or Spans())
    return made.source, made.target


def written_in(target: NDArray[np.integer], marks: SpanMarks) -> dict[int, list[int]]:
    """What a target says of each sentinel in it; of one that a model wrote twice, the first counts.

    Nothing is read before the first sentinel or behind an end.
    """
    sentinels = set(marks.sentinels.tolist())
    gaps: dict[int, list[int]] = {}
    gap: list[int] = []
    for token in _up_to(marks.end, target):
        if token in sentinels:
            gap = []
            gaps.setdefault(token, gap)
        else:
            gap.append(token)
    return gaps


def restored(source: NDArray[np.integer], target: NDArray[np.integer], marks: SpanMarks) -> Ids:
    """The stretch from which a source and a target were made; a gap of which the target says nothing stays empty."""
    sentinels, gaps = set(marks.sentinels.tolist()), written_in(target, marks)
    found: list[int] = []
    for token in _up_to(marks.end, source):
        found += gaps.get(token, []) if token in sentinels else [token]
    return np.array(found, dtype=np.int64)


def _up_to(end: int, tokens: NDArray[np.integer]) -> list[int]:
    """What stands before the first end, or everything."""
    row: list[int] = np.asarray(tokens).tolist()
    return row[: row.index(end)] if end in row else row


@dataclass(frozen=True, eq=False)
class SpanSamples:
    """Samples of span corruption: stretches of consecutive sentences of one document, of up to `length` tokens.

    To judge a model, make them with a seed that is the same for all runs, and take the numbers of the first epoch: the
    same spans are hidden in every evaluation. A stretch of a single token is left out: nothing in it can be hidden.
    """

    sentences: Sentences
    marks: SpanMarks
    length: int
    spans: Spans = Spans()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.length < SHORTEST:
            raise ConfigError(f"length = {self.length}", expected=f"at least {SHORTEST} tokens")
        if not self.per_epoch:
            raise DataError("every document is a single token: nothing can be hidden", expected="longer texts")
        self.spans.check_sentinels(self._stretches[1], len(self.marks.sentinels))

    def __repr__(self) -> str:
        return f"SpanSamples(length={self.length}, per_epoch={self.per_epoch})"

    @property
    def per_epoch(self) -> int:
        """Samples in which every stretch of the text comes once."""
        return len(self._stretches[0])

    @cached_property
    def _stretches(self) -> tuple[Ids, Ids]:
        """Where each stretch begins, and its length; without the white space that joins it to its neighbours."""
        found = pack(self.sentences, self.length, pairs=False)
        begins, ends = found.units[found.first], found.units[found.end]
        if self.marks.edges is not None:
            blank = self.marks.edges.blank[self.sentences.ids]
            begins = begins + ((ends - begins > 1) & blank[begins])
            ends = ends - ((ends - begins > 1) & blank[ends - 1])
        enough = ends - begins >= SHORTEST
        return begins[enough], (ends - begins)[enough]

    def _chosen(self, samples: NDArray[np.integer]) -> tuple[Ids, Ids]:
        """Sample numbers in a flat row, and which stretch each of them is."""
        numbers = np.asarray(samples, dtype=np.int64).ravel()
        return numbers, in_order(numbers, self.per_epoch, self.seed)

    def lengths(self, samples: NDArray[np.integer]) -> tuple[Ids, Ids]:
        """How many tokens source and target of these samples have, without making them."""
        return self.spans.lengths(self._stretches[1][self._chosen(samples)[1]])

    def batch(self, samples: NDArray[np.integer]) -> SpanRow:
        """The samples with these numbers, counted through all epochs, the shortest first."""
        numbers, stretches = self._chosen(samples)
        begins, sizes = (part[stretches] for part in self._stretches)
        order = np.argsort(sizes, kind="stable")
        numbers, begins, sizes = numbers[order], begins[order], sizes[order]
        tokens = self.sentences.ids[ramp(begins, sizes)].astype(np.int64)
        if self.marks.edges is not None:
            starts = np.cumsum(sizes) - sizes
            tokens[starts] = self.marks.edges.bare[tokens[starts]]
        return SpanRow.of(tokens, sizes, numbers, KeyedDraws(self.seed), self.marks, self.spans)
