"""Hiding tokens (Devlin et al. 2019): of those that are chosen, 80 % become [MASK], 10 % another token, 10 % stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.keyed_draws import KeyedDraws, below, unit
from weft.data.marks import Marks

MASKED, REPLACED = 0.8, 0.1
_ROW, _KEY = np.uint64(40), np.uint64(24)  # a sort key is the number of the text, and 40 bits of chance


@dataclass(frozen=True)
class Masking:
    """How much is hidden. `whole_words`: a word with all its tokens or not at all."""

    share: float = 0.15
    whole_words: bool = False

    def hide(
        self,
        tokens: NDArray[np.int64],
        words: NDArray[np.bool_],
        texts: NDArray[np.int64],
        open_: NDArray[np.bool_],
        numbers: NDArray[np.int64],
        chance: KeyedDraws,
        marks: Marks,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Hide tokens in place, and return where and what they were.

        words      which tokens begin a word
        texts      to which text each token belongs, counted from 0, in order
        open_      which tokens may be hidden
        numbers    the sample number of each text: what is hidden depends on it, and on the place in the text
        """
        candidates = np.flatnonzero(open_ & marks.ordinary[tokens])
        text = texts[candidates]
        place = candidates - np.searchsorted(texts, np.arange(len(numbers)))[text]
        wanted = self._wanted(np.bincount(text, minlength=len(numbers)), chance.of(numbers, "share"))
        drawn = KeyedDraws.at(chance.of(numbers, "hide")[text], place)
        if self.whole_words:
            begins = words[candidates]
            begins[1:] |= (np.diff(candidates) > 1) | (np.diff(text) > 0)
            begins[:1] = True
            chosen = _whole_words(begins, text, drawn, wanted)
        else:
            chosen = first_by_chance(text, drawn, wanted)
        places = candidates[chosen]
        targets = tokens[places]
        drawn = chance.of(numbers, "become")[text[chosen]]
        turn, other = unit(KeyedDraws.at(drawn, 2 * place[chosen])), KeyedDraws.at(drawn, 2 * place[chosen] + 1)
        ordinary = np.flatnonzero(marks.ordinary)
        replaced = np.where(turn < MASKED + REPLACED, ordinary[below(other, len(ordinary))], targets)
        tokens[places] = np.where(turn < MASKED, marks.mask, replaced)
        return places, targets

    def _wanted(self, counts: NDArray[np.int64], drawn: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many tokens of each text: its share on average, and at least one."""
        return np.maximum(1, np.floor(self.share * counts + unit(drawn))).astype(np.int64)


def first_by_chance(text: NDArray[np.int64], drawn: NDArray[np.uint64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """As many candidates of each text as wanted, those with the lowest draws, in the order of the row."""
    order = np.argsort((text.astype(np.uint64) << _ROW) | (drawn >> _KEY), kind="stable")
    rank = np.arange(len(text)) - np.searchsorted(text, text)  # sorting has not moved the texts themselves
    return np.sort(order[rank < wanted[text]])


def _whole_words(
    begins: NDArray[np.bool_], text: NDArray[np.int64], drawn: NDArray[np.uint64], wanted: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Likewise words, as long as they come nearer to what is wanted; the first in any case."""
    start = np.flatnonzero(begins)
    length = np.diff(np.append(start, len(text)))
    text, drawn = text[start], drawn[start]
    order = np.argsort((text.astype(np.uint64) << _ROW) | (drawn >> _KEY), kind="stable")
    sorted_length = length[order]
    before = np.cumsum(sorted_length) - sorted_length
    first = np.searchsorted(text, text)
    before -= before[first]
    chosen = np.zeros(len(start), dtype=bool)
    chosen[order] = (2 * before + sorted_length <= 2 * wanted[text]) | (np.arange(len(start)) == first)
    return np.flatnonzero(np.repeat(chosen, length))
