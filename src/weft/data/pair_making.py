"""How the two texts of a pair are found: true ones, and false ones that nothing but their content gives away.

next-sentence   0: B is what follows A in the document. 1: B is from another document. Both kinds of B begin where
                the second half of some pair would begin, hold whole sentences as long as they fit, and of several
                false ones the one is taken whose length is nearest to that of the true one.
sentence-order  0: A, then what follows it. 1: the two swapped. The same sentences, so the topic says nothing.
inversion       1: B has the words of A in another order. 0: B has the words of another sentence, of as many tokens if
                there is one, also in another order. So B reads badly in both, is as long in both, and only
                comparing the two tells. Words are moved whole, with all their tokens.
entailment      the rows of a table, with the labels that it has.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from weft.data.keyed_draws import KeyedDraws, below
from weft.data.labelled_pairs import LabelledPairs
from weft.data.sentences import Sentences
from weft.data.stretches import Stretches
from weft.errors import DataError

Places = NDArray[np.int64]
Flags = NDArray[np.bool_]
TRIES = 16  # false partners of which the best is taken
FEWEST_WORDS = 4  # in a sentence that is put in another order
_TEXT, _KEY = np.uint64(40), np.uint64(24)


@dataclass(frozen=True, eq=False)
class Parts:
    """For each sample, which tokens its two texts are: begin and length; a `second_length` of −1 is no second text."""

    first: Places
    first_length: Places
    second: Places
    second_length: Places
    labels: Places
    reordered: Flags  # the words of the second are to be put in another order

    @classmethod
    def empty(cls, count: int) -> Parts:
        first, first_length, second, second_length, labels = np.zeros((5, count), dtype=np.int64)
        return cls(first, first_length, second, second_length, labels, np.zeros(count, dtype=bool))

    @classmethod
    def of(cls, first: tuple[Places, Places], second: tuple[Places, Places], labels: Places) -> Parts:
        return cls(*first, *second, labels, np.zeros(len(labels), dtype=bool))

    @property
    def lengths(self) -> Places:
        """Tokens of each sample with its marks."""
        return self.first_length + self.second_length + 3

    def take(self, order: Places) -> Parts:
        return Parts(*(getattr(self, field.name)[order] for field in fields(self)))

    def put(self, here: Places, parts: Parts) -> None:
        """Write parts into these places."""
        for field in fields(self):
            getattr(self, field.name)[here] = getattr(parts, field.name)

    def without_last_blank(self, ids: NDArray[np.integer], blank: Flags) -> Parts:
        """Without the space at the end of a text, which tells whether it ended a document."""
        if not blank.any():
            return self
        first, second = (
            size - ((size > 1) & blank[ids[begin + np.maximum(size, 1) - 1]])
            for begin, size in ((self.first, self.first_length), (self.second, self.second_length))
        )
        return replace(self, first_length=first, second_length=second)


def ramp(begins: Places, sizes: Places) -> Places:
    """The ranges [begin, begin + size) one after the other."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(begins - (ends - sizes), sizes)


def words_reordered(
    source: Places,
    sizes: Places,
    which: Flags,
    ids: NDArray[np.integer],
    words: Flags,
    chance: KeyedDraws,
    numbers: Places,
) -> Places:
    """The texts that lie one after the other in `source`, some of them (`which`) with their words in another order."""
    if not which.any():
        return source
    text = np.repeat(np.arange(len(sizes)), sizes)
    moved = np.flatnonzero(which[text])
    old, text = source[moved], text[moved]
    begins = words[old]
    begins[0] = True
    begins[1:] |= np.diff(text) > 0
    start = np.flatnonzero(begins)
    length, owner = np.diff(np.append(start, len(old))), text[start]
    place = np.arange(len(start)) - np.searchsorted(owner, owner)
    drawn = KeyedDraws.at(chance.of(numbers, "reorder")[owner], place)
    order = np.argsort((owner.astype(np.uint64) << _TEXT) | (drawn >> _KEY), kind="stable")
    new = old[ramp(start[order], length[order])]
    differ = np.bincount(text, weights=ids[new] != ids[old], minlength=len(sizes))
    for unlucky in np.flatnonzero(which & (sizes > 0) & (differ == 0)):  # the order came out as it was
        low, high = np.searchsorted(text, [unlucky, unlucky + 1])
        new[low:high] = np.roll(new[low:high], -length[order[np.searchsorted(owner, unlucky)]])
    result = source.copy()
    result[moved] = new
    return result


class StretchPairs:
    """Pairs of stretches of the text."""

    def __init__(self, stretches: Stretches, room: int, chance: KeyedDraws) -> None:
        self.stretches, self.room, self.chance = stretches, room, chance
        first, end = stretches.of_document()
        count, total = end - first, len(stretches)
        large = 2 * count > total  # too little is left outside this document: then far away in it counts as well
        far = np.maximum(1, count // 4)
        self._low = np.where(large, np.arange(total) - far, first)
        self._size = np.where(large, 2 * far + 1, count)

    def check_others(self) -> None:
        """Whether there is something that a false partner can be taken from."""
        if (self._size >= len(self.stretches)).any():
            raise DataError(
                f"next-sentence: all {len(self.stretches)} stretches of this text are near each other",
                expected="several documents, with blank lines between them, or one of many pages",
                advice="sentence-order needs no other document",
            )

    def alone(self, chosen: Places) -> Parts:
        """A whole stretch, and no second text."""
        s = self.stretches
        begin = s.units[s.first[chosen]]
        nothing = np.full(len(chosen), -1)
        return Parts.of(
            (begin, s.units[s.end[chosen]] - begin), (begin, nothing), np.zeros(len(chosen), dtype=np.int64)
        )

    def next_sentence(self, numbers: Places, chosen: Places) -> Parts:
        """What follows, or a part of another document."""
        parts = self._true(numbers, chosen)
        labels = (self.chance.of(numbers, "next") & np.uint64(1)).astype(np.int64)
        false = np.flatnonzero(labels)
        if len(false):
            begin, length = self._others(numbers[false], chosen[false], parts.take(false))
            parts.second[false], parts.second_length[false] = begin, length
        return replace(parts, labels=labels)

    def sentence_order(self, numbers: Places, chosen: Places) -> Parts:
        """What follows, or the two swapped."""
        parts = self._true(numbers, chosen)
        labels = (self.chance.of(numbers, "order") & np.uint64(1)).astype(np.int64)
        swapped = labels == 1
        first, second = (
            (np.where(swapped, there, here), np.where(swapped, there_length, here_length))
            for here, here_length, there, there_length in (
                (parts.first, parts.first_length, parts.second, parts.second_length),
                (parts.second, parts.second_length, parts.first, parts.first_length),
            )
        )
        return Parts.of(first, second, labels)

    def _true(self, numbers: Places, chosen: Places) -> Parts:
        """A stretch cut in two at the end of one of its sentences."""
        s = self.stretches
        middle = self._middle(chosen, self.chance.of(numbers, "split"))
        begin, cut, end = s.units[s.first[chosen]], s.units[middle], s.units[s.end[chosen]]
        return Parts.of((begin, cut - begin), (cut, end - cut), np.zeros(len(chosen), dtype=np.int64))

    def _middle(self, chosen: Places, drawn: NDArray[np.uint64]) -> Places:
        """The unit with which the second part of these stretches begins."""
        s = self.stretches
        return s.first[chosen] + 1 + below(drawn, s.end[chosen] - s.first[chosen] - 1)

    def _others(self, numbers: Places, chosen: Places, true: Parts) -> tuple[Places, Places]:
        """For each sample a part from elsewhere that could have been a second text; its begin and length."""
        s, total = self.stretches, len(self.stretches)
        turn = np.arange(TRIES)[None]
        drawn = KeyedDraws.at(self.chance.of(numbers, "other")[:, None], turn)
        low, size = self._low[chosen][:, None], self._size[chosen][:, None]
        others = (low + size + below(drawn, total - size)) % total
        unit = self._middle(others, KeyedDraws.at(drawn, turn))
        begin, room = s.units[unit], (self.room - true.first_length)[:, None]
        end = np.searchsorted(s.units, begin + room, "right") - 1
        end = np.minimum(end, s.documents[s.document[others] + 1])
        fits = end > unit
        length = np.where(fits, s.units[np.maximum(end, unit)] - begin, room)
        best = np.argmin(np.abs(length - true.second_length[:, None]) + ~fits * (1 << 30), axis=1)[:, None]
        return np.take_along_axis(begin, best, 1)[:, 0], np.take_along_axis(length, best, 1)[:, 0]


class InversionPairs:
    """Sentences with their words in another order, and others that are none."""

    def __init__(self, sentences: Sentences, stretches: Stretches, chance: KeyedDraws) -> None:
        self.stretches, self.chance = stretches, chance
        units, words = stretches.units, sentences.words
        table = KeyedDraws.at(
            chance.of(np.arange(int(sentences.ids.max()) + 1), "content"), np.zeros(1, dtype=np.int64)
        )
        self._content = np.add.reduceat(table[sentences.ids], units[:-1])  # the same for every order of the tokens
        heads = sentences.ids[words]  # the first token of each word
        word = np.concatenate([[0], np.cumsum(words)])[units]
        counts = np.diff(word)
        at = np.minimum(word[:-1], len(heads) - 1)
        varied = np.maximum.reduceat(heads, at) > np.minimum.reduceat(heads, at)
        self._usable = np.flatnonzero((counts >= FEWEST_WORDS) & varied)
        if len(np.unique(self._content[self._usable])) < 2:
            raise DataError(
                "inversion: there are no two different sentences to tell apart",
                expected=f"several sentences of at least {FEWEST_WORDS} words",
            )
        lengths = np.diff(units)[self._usable]
        self._by_length = self._usable[np.argsort(lengths, kind="stable")]
        self._lengths = np.sort(lengths)

    def pairs(self, numbers: Places, chosen: Places) -> Parts:
        """A sentence of each stretch, and words in another order: its own (1) or those of another (0)."""
        s = self.stretches
        low, high = (np.searchsorted(self._usable, edge[chosen]) for edge in (s.first, s.end))
        drawn = self.chance.of(numbers, "sentence")
        place = low + below(drawn, np.maximum(high - low, 1))
        one = self._usable[place % len(self._usable)]  # the next one, if the stretch has none
        labels = (self.chance.of(numbers, "inversion") & np.uint64(1)).astype(np.int64)
        other = np.where(labels == 1, one, self._others(numbers, one))
        first, second = ((s.units[unit], s.units[unit + 1] - s.units[unit]) for unit in (one, other))
        return Parts(*first, *second, labels, np.ones(len(labels), dtype=bool))

    def _others(self, numbers: Places, one: Places) -> Places:
        """For each sentence one with other words: as long if there is one, else of the nearest length."""
        length = self.stretches.units[one + 1] - self.stretches.units[one]
        low, high = np.searchsorted(self._lengths, length), np.searchsorted(self._lengths, length, "right")
        turn = np.arange(TRIES)[None]
        drawn = KeyedDraws.at(self.chance.of(numbers, "another")[:, None], turn)
        alike = low[:, None] + below(drawn, (high - low)[:, None])
        near = np.clip(np.concatenate([high[:, None] + turn, low[:, None] - 1 - turn], 1), 0, len(self._lengths) - 1)
        ranks = np.concatenate([alike, near], 1)
        found = self._by_length[ranks]
        differs = self._content[found] != self._content[one][:, None]
        best = np.argmin(np.abs(self._lengths[ranks] - length[:, None]) + ~differs * (1 << 30), axis=1)[:, None]
        result = np.take_along_axis(found, best, 1)[:, 0]
        for lost in np.flatnonzero(~np.take_along_axis(differs, best, 1)[:, 0]):  # a text full of the same sentence
            others = self._by_length[self._content[self._by_length] != self._content[one[lost]]]
            gap = np.abs(np.diff(self.stretches.units)[others] - length[lost])
            result[lost] = others[np.argmin(gap)]
        return result


class TablePairs:
    """Rows of a table; their tokens stand `offset` further on, behind those of the text."""

    def __init__(self, pairs: LabelledPairs, room: int, offset: int) -> None:
        begin, sizes = pairs.parts[:-1] + offset, np.diff(pairs.parts)
        first, second = sizes[0::2], sizes[1::2]
        short = np.minimum(np.minimum(first, second), room // 2)
        fits, longer = first + second <= room, first > second
        kept = np.where(fits, first, np.where(longer, room - short, short))
        self._parts = Parts.of((begin[0::2], kept), (begin[1::2], np.where(fits, second, room - kept)), pairs.labels)

    def __len__(self) -> int:
        return len(self._parts.labels)

    def pairs(self, rows: Places) -> Parts:
        """These rows, cut to fit: the longer text first."""
        return self._parts.take(rows)
