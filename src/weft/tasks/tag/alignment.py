"""Words as subwords: each word is tokenised by itself, and its first subword answers for it (Devlin et al. 2019).

A sentence is read as `[CLS] subwords [SEP]`. One that is longer than the model can read is cut between words into
windows that overlap; each word is answered in one window, the one where it is farther from the cut. Which windows
there are depends on the sentence alone, and not on those beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.errors import ConfigError, DataError
from weft.models import PackedTexts
from weft.objectives.token_classification import TaggedRow
from weft.text import Tokenizer

WINDOW_OVERLAP = 0.25  # of a window that the next one reads again
IGNORED = -100  # the label of tokens and words that are not learned, as torch's cross-entropy has it
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WordWindow:
    """A stretch of a sentence as a model reads it.

    ids       its subwords, with [CLS] and [SEP]
    firsts    the places in `ids` of the first subword of each word that is answered here
    start     the number of the first of these words in its sentence
    """

    sentence: int
    ids: Ids
    firsts: Ids
    start: int

    def __repr__(self) -> str:
        return f"WordWindow(sentence {self.sentence}, words {self.start} to {self.start + len(self.firsts) - 1})"


@dataclass(frozen=True, eq=False)
class EncodedWords:
    """Sentences as windows, in order. `cut` words were longer than a window alone and are read up to there.

    rows      words in each sentence
    """

    windows: list[WordWindow]
    rows: list[int]
    cut: int = 0

    def __repr__(self) -> str:
        return f"EncodedWords({len(self.rows)} sentences, {len(self.windows)} windows, {sum(self.rows)} words)"

    @property
    def lengths(self) -> Ids:
        """Tokens of each window."""
        return np.array([len(window.ids) for window in self.windows], dtype=np.int64)

    def row(self, numbers: Sequence[int] | NDArray[np.integer]) -> tuple[PackedTexts, Tensor]:
        """These windows one after the other, and the slots of the words that are answered in them."""
        chosen = [self.windows[number] for number in numbers]
        row = PackedTexts.of([window.ids for window in chosen])
        starts = row.packed.starts(torch.device("cpu")).tolist()
        places = [window.firsts + start for window, start in zip(chosen, starts, strict=True)]
        return row, torch.from_numpy(np.concatenate(places))

    def tagged_row(self, numbers: Sequence[int] | NDArray[np.integer], labels: Sequence[Ids]) -> TaggedRow:
        """The same with labels: `labels` has an id for each word of each sentence; `IGNORED` ones are left out."""
        row, places = self.row(numbers)
        wanted = torch.from_numpy(np.concatenate([self._labels_of(self.windows[number], labels) for number in numbers]))
        known = wanted != IGNORED
        return TaggedRow(row, places[known], wanted[known])

    @staticmethod
    def _labels_of(window: WordWindow, labels: Sequence[Ids]) -> Ids:
        return labels[window.sentence][window.start : window.start + len(window.firsts)]

    def token_labels(self, number: int, labels: Sequence[Ids]) -> Ids:
        """A label for each token of a window, `IGNORED` but at first subwords: as other programs want them."""
        window = self.windows[number]
        found = np.full(len(window.ids), IGNORED, dtype=np.int64)
        found[window.firsts] = self._labels_of(window, labels)
        return found

    def padded(self, numbers: Sequence[int], fill: int = 0) -> tuple[Tensor, Tensor]:
        """The windows as rows of one length, and which of the tokens are real."""
        longest = max(len(self.windows[number].ids) for number in numbers)
        ids = np.full((len(numbers), longest), fill, dtype=np.int64)
        for place, number in enumerate(numbers):
            ids[place, : len(self.windows[number].ids)] = self.windows[number].ids
        keep = np.arange(longest) < self.lengths[list(numbers)][:, None]
        return torch.from_numpy(ids), torch.from_numpy(keep)

    def unpacked(self, answers: Mapping[int, NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """What was found for the words of each window, by its number, as one array for each sentence."""
        found: list[list[NDArray[np.float64]]] = [[] for _ in self.rows]
        for number, window in enumerate(self.windows):
            found[window.sentence].append(answers[number])
        return [np.concatenate(parts) for parts in found]


def encode_labels(tags: Sequence[Sequence[str]], labels: Sequence[str]) -> list[Ids]:
    """The ids of tags; one that the labels do not have is `IGNORED` (`TaggedSentences.unknown_tags` counts them)."""
    ids = {label: number for number, label in enumerate(labels)}
    return [np.array([ids.get(tag, IGNORED) for tag in row], dtype=np.int64) for row in tags]


def encode_words(
    tokenizer: Tokenizer, sentences: Sequence[Sequence[str]], max_length: int, *, overlap: float = WINDOW_OVERLAP
) -> EncodedWords:
    """Sentences, given as words, in windows of at most `max_length` tokens."""
    classify, separate = tokenizer.special.classify, tokenizer.special.separate
    if classify is None or separate is None:
        raise DataError(f"this {tokenizer.kind} tokenizer cannot mark a text", expected="one with [CLS] and [SEP]")
    room = max_length - 2
    if room < 1 or not 0 <= overlap < 1:
        given = f"max_length = {max_length}, overlap = {overlap}"
        raise ConfigError(given, expected="at least 3 tokens, and an overlap from 0 to less than 1")
    if not all(sentences):
        empty = next(number for number, words in enumerate(sentences) if not words)
        raise DataError(f"sentence {empty + 1} of {len(sentences)} has no words", expected="at least one in each")
    spelled = _spell(tokenizer, sorted({word for words in sentences for word in words}))
    windows: list[WordWindow] = []
    cut = 0
    for sentence, words in enumerate(sentences):
        parts = [spelled[word][:room] for word in words]
        cut += sum(len(spelled[word]) > room for word in words)
        ends = np.cumsum([len(part) for part in parts])
        for (first, stop), (start, after) in zip(*cut_windows(ends, room, int(overlap * room)), strict=True):
            inner = np.concatenate([[classify], *parts[first:stop], [separate]]).astype(np.int64)
            before = ends[first] - len(parts[first])
            firsts = 1 + np.array([ends[n] - len(parts[n]) - before for n in range(start, after)], dtype=np.int64)
            windows.append(WordWindow(sentence, inner, firsts, start))
    return EncodedWords(windows, [len(words) for words in sentences], cut)


Ranges = list[tuple[int, int]]


def cut_windows(ends: NDArray[np.integer], room: int, overlap: int) -> tuple[Ranges, Ranges]:
    """Which words each window reads, and which of them it answers; `ends` are where the words end, in tokens.

    A window takes as many words as fit. The next one begins so that it reads up to `overlap` tokens again, and the
    words that both read are shared between them, half and half.
    """
    begins = np.concatenate([[0], ends[:-1]])
    read: Ranges = []
    first = 0
    while True:
        stop = int(np.searchsorted(ends, begins[first] + room, side="right"))
        read.append((first, stop))
        if stop == len(ends):
            break
        first = int(np.searchsorted(begins, max(ends[stop - 1] - overlap, ends[stop] - room)))  # with the next word
    borders = [0, *((here[1] + following[0]) // 2 for here, following in pairwise(read)), len(ends)]
    return read, list(pairwise(borders))


def _spell(tokenizer: Tokenizer, words: Sequence[str]) -> dict[str, Ids]:
    """The subwords of each word, as they are after a space. A word of which the tokenizer drops everything, such as a
    control character, is the unknown token."""
    unknown = tokenizer.special.unknown
    found: dict[str, Ids] = {}
    for word, ids in zip(words, tokenizer.encode_batch([f" {word}" for word in words]), strict=True):
        if not len(ids) and unknown is None:
            raise DataError(f"the word {word!r} has no tokens", expected="a tokenizer that knows it, or has [UNK]")
        found[word] = ids.astype(np.int64) if len(ids) else np.array([unknown], dtype=np.int64)
    return found
