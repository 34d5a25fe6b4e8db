"""Texts as a model that reads gets them: tokens with their marks, in rows without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.keyed_draws import KeyedDraws
from weft.data.subword_regularisation import SubwordRegularisation
from weft.models import PackedTexts
from weft.text import Tokenizer

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EncodedTexts:
    """Texts as a model reads them, `[CLS] a [SEP] b [SEP]`; `cut` is the share that was too long."""

    ids: list[Ids]
    segments: list[Ids] | None
    cut: float = 0.0

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)

    def row(self, places: Sequence[int] | NDArray[np.integer]) -> PackedTexts:
        """These texts, one after the other."""
        told = None if self.segments is None else [self.segments[place] for place in places]
        return PackedTexts.of([self.ids[place] for place in places], told)

    def varied(self, places: Ids, numbers: Ids, spelling: Spelling) -> tuple[PackedTexts, Ids]:
        """These texts with some words spelled otherwise, the shortest first, and in which order they are now.

        `numbers` are those of the samples. A text that would become too long stays as it is.
        """
        ids, texts = _flat([self.ids[place] for place in places])
        new, old = spelling.tables.respelled(ids, texts, numbers, spelling.share, spelling.chance)
        lengths = np.bincount(texts[old], minlength=len(places))
        parts = np.split(new, np.cumsum(lengths)[:-1])
        from_where = np.split(old - np.searchsorted(texts, texts[old]), np.cumsum(lengths)[:-1])
        for n in np.flatnonzero(lengths > spelling.longest):
            parts[n] = self.ids[places[n]]
            from_where[n] = np.arange(len(parts[n]))
        order = np.argsort([len(part) for part in parts], kind="stable")
        told = None
        if self.segments is not None:
            told = [self.segments[places[n]][from_where[n]] for n in order]
        return PackedTexts.of([parts[n] for n in order], told), order


def _flat(texts: Sequence[Ids]) -> tuple[Ids, Ids]:
    """All tokens one after the other, and to which text each belongs."""
    return np.concatenate(texts), np.repeat(np.arange(len(texts)), [len(text) for text in texts])


@dataclass(frozen=True, eq=False)
class Spelling:
    """How words are spelled otherwise while a model learns: which share of the tokens, and up to which length."""

    tables: SubwordRegularisation
    chance: KeyedDraws
    share: float
    longest: int


def encoded(tokenizer: Tokenizer, inputs: Sequence[tuple[str, ...]], length: int) -> EncodedTexts:
    """Texts or pairs as tokens, cut to `length`."""
    pairs = [(parts[0], parts[1] if len(parts) > 1 else None) for parts in inputs]
    found = tokenizer.encode_pairs(pairs)
    cut = sum(len(ids) > length for ids, _ in found) / max(1, len(found))
    if cut:
        found = tokenizer.encode_pairs(pairs, length)
    ids = [ids.astype(np.int64) for ids, _ in found]
    segments = [told.astype(np.int64) for _, told in found] if any(len(parts) > 1 for parts in inputs) else None
    return EncodedTexts(ids, segments, cut)
