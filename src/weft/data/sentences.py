"""The sentences of a corpus as tokens: one row of ids, and where in it sentences and documents begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError
from weft.text import Corpus, Tokenizer
from weft.text.sentences import joint, read_documents
from weft.text.word_edges import WordEdges

AT_ONCE = 1 << 20  # characters that are tokenised at once, on all cores
Progress = Callable[[int, int], None]
"""Told how many characters of how many are done."""


@dataclass(frozen=True, eq=False)
class Sentences:
    """A corpus for models that read sentences.

    ids          all tokens, one after the other
    words        which of them begin a word
    sentences    where in `ids` each sentence begins, and at the end how many tokens there are
    documents    the first sentence of each document, and at the end how many sentences there are
    """

    ids: NDArray[np.uint32]
    words: NDArray[np.bool_]
    sentences: NDArray[np.int64]
    documents: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Sentences({self.document_count} documents, {len(self)} sentences, {len(self.ids)} tokens)"

    def __len__(self) -> int:
        return len(self.sentences) - 1

    @property
    def document_count(self) -> int:
        return len(self.documents) - 1

    def tokens(self, sentence: int) -> NDArray[np.uint32]:
        """The ids of one sentence."""
        return self.ids[self.sentences[sentence] : self.sentences[sentence + 1]]


def tokenise_sentences(corpus: Corpus, tokenizer: Tokenizer, *, progress: Progress | None = None) -> Sentences:
    """Find documents and sentences in a corpus and tokenise them; everything is kept in memory.

    A sentence keeps the space between it and its neighbour where tokens have a place for it: in front of its first
    word (`bpe`, `unigram`, `words`), or as a token at the end of the one before (`characters`, `bytes`).
    """
    total = corpus.characters
    ids: list[NDArray[np.uint32]] = []
    documents: list[int] = []
    done, begins = 0, False
    for group in _groups(corpus, tokenizer.kind):
        encoded = tokenizer.encode_batch([text for text, _ in group])
        for part, (_, first) in zip(encoded, group, strict=True):
            begins = begins or first
            if len(part):
                if begins:
                    documents.append(len(ids))
                    begins = False
                ids.append(part)
        done += sum(len(text) for text, _ in group)
        if progress is not None:
            progress(min(done, total), total)
    if not ids:
        raise DataError(f"no sentence in {corpus!r} has tokens", expected="text to learn from")
    if progress is not None:
        progress(total, total)
    row = np.concatenate(ids)
    starts = np.concatenate([[0], np.cumsum([len(part) for part in ids])]).astype(np.int64)
    words = WordEdges.of(tokenizer).begins(row, starts)
    return Sentences(row, words, starts, np.array([*documents, len(ids)], dtype=np.int64))


def _groups(corpus: Corpus, kind: str) -> Iterator[list[tuple[str, bool]]]:
    """Sentences, each with whether it is the first of a document, about a million characters at a time."""
    group: list[tuple[str, bool]] = []
    size = 0
    for document in read_documents(corpus.marked_pieces()):
        for place, text in enumerate(_spaced(document, kind)):
            group.append((text, place == 0))
            size += len(text)
            if size >= AT_ONCE:
                yield group
                group, size = [], 0
    if group:
        yield group


def _spaced(document: list[str], kind: str) -> list[str]:
    """The sentences with the space between them where tokens of this kind have it."""
    if kind in ("bpe", "unigram", "words"):
        return [document[0], *(joint(a, b) + b for a, b in pairwise(document))]
    if kind in ("characters", "bytes"):
        return [*(a + joint(a, b) for a, b in pairwise(document)), document[-1]]
    return document
