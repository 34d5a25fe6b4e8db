"""The words of a run of word vectors: which there are, how often each occurs, and which tokens of a text they are.

A tokenizer keeps the space before a word, and all marks; here a word is a word, wherever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.checkpoints.files import write_text
from weft.data import TokenFile
from weft.errors import DataError, did_you_mean
from weft.models.word2vec.examples import DOCUMENT_BORDER, Words
from weft.text import Tokenizer

if TYPE_CHECKING:
    from weft.tasks.run import Run

WORDS_FILE = "words.tsv"
WORD = re.compile(r"\w+")
TARGET_VALIDATION_TOKENS, MAX_VALIDATION_REPEATS = 20_000, 100  # tokens to measure on, and readings for it at most
NO_WORD = -2  # a mark, space, or a piece of a word that is spelled


@dataclass(frozen=True, eq=False)
class WordList:
    """Words in the order of their rows, the most frequent first."""

    words: tuple[str, ...]
    counts: NDArray[np.int64]
    lowercase: bool = False

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    def row(self, word: str) -> int:
        """The row of a word; one that is not known is an error that names a near one."""
        asked = word.strip()
        for spelled in (asked, asked.lower()) if self.lowercase else (asked,):
            if spelled in self.rows:
                return self.rows[spelled]
        raise DataError(f"the word {asked!r} is not known here", advice=self._near(asked))

    def _near(self, word: str) -> str:
        for other in (word.lower(), word.capitalize(), word.upper()):
            if other in self.rows:
                return f"did you mean {other!r}?"
        near = [
            known for known in self.words if abs(len(known) - len(word)) <= 3 and known[:1].lower() == word[:1].lower()
        ]
        hint = did_you_mean(word, near or self.words[:50_000])
        return hint if hint.startswith("did you") else f"{len(self):,} words are known, each seen a few times"

    # -- from a text --------------------------------------------------------------------------

    @classmethod
    def of(cls, tokenizer: Tokenizer, tokens: TokenFile, *, lowercase: bool) -> WordList:
        """The words of a text: tokens that differ by the space before them (or by capitals) are one word."""
        counts = np.zeros(tokenizer.vocab_size, dtype=np.int64)
        for start in range(0, len(tokens), 1 << 24):
            counts += np.bincount(tokens.ids[start : start + (1 << 24)], minlength=len(counts))
        found: dict[str, int] = {}
        for number, word in _words_of(tokenizer, lowercase):
            if counts[number]:
                found[word] = found.get(word, 0) + int(counts[number])
        order = sorted(found, key=lambda word: -found[word])
        return cls(tuple(order), np.array([found[word] for word in order], dtype=np.int64), lowercase)

    def token_rows(self, tokenizer: Tokenizer) -> Words:
        """The row of each token, `DOCUMENT_BORDER` for the end of a text, `NO_WORD` for what is no word."""
        table = np.full(tokenizer.vocab_size, NO_WORD, dtype=np.int32)
        for number, word in _words_of(tokenizer, self.lowercase):
            table[number] = self.rows.get(word, NO_WORD)
        table[tokenizer.end] = DOCUMENT_BORDER
        return table

    # -- files --------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """A line for each word: the word, a tab, how often it occurs."""
        lines = (f"{word}\t{count}\n" for word, count in zip(self.words, self.counts.tolist(), strict=True))
        write_text(folder / WORDS_FILE, "".join(lines))

    @classmethod
    def load(cls, folder: Path, *, lowercase: bool = False) -> WordList:
        path = folder / WORDS_FILE
        try:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            pairs = [line.rsplit("\t", 1) for line in lines]
            counts = np.array([int(count) for _, count in pairs], dtype=np.int64)
        except FileNotFoundError:
            raise DataError(f"{path} is not there", expected="the words of the run") from None
        except (OSError, ValueError, OverflowError):
            raise DataError(f"{path} is damaged", expected="a word, a tab and a count on each line") from None
        if counts.size and counts.min() < 0:
            raise DataError(f"{path} is damaged", expected="counts of 0 or more")
        return cls(tuple(word for word, _ in pairs), counts, lowercase)


def _words_of(tokenizer: Tokenizer, lowercase: bool) -> Iterable[tuple[int, str]]:
    """Tokens that are words, as they are written without the space before them; single bytes also spell."""
    lengths = tokenizer.token_bytes
    for number in range(tokenizer.vocab_size):
        if lengths[number] > 1 and number != tokenizer.end:
            word = tokenizer.decode([number]).removeprefix(" ")
            if WORD.fullmatch(word):
                yield number, word.lower() if lowercase else word


def words_of(run: Run) -> WordList:
    """The words of a run of word vectors; `DataError` if their number is not that of the model."""
    data = None if run.is_imported else run.config.data
    found = WordList.load(run.directory.path, lowercase=getattr(data, "lowercase", False))
    size = getattr(run.model_config, "vocab_size", 0)
    if len(found) != size:
        raise DataError(f"{run.directory.path / WORDS_FILE} has {len(found)} words, the model {size}")
    return found


class Blocks:
    """A text in blocks of `length` tokens, each as the rows of its words; after the last comes the first again."""

    def __init__(self, tokens: TokenFile, table: Words, length: int) -> None:
        self.tokens, self.table, self.length = tokens, table, length
        self.count = max(1, -(-len(tokens) // length))

    def __call__(self, number: int) -> Words:
        start = number % self.count * self.length
        rows = self.table[self.tokens.ids[start : start + self.length]]
        found: Words = rows[rows != NO_WORD]
        return found


def measured_numbers(blocks: Blocks) -> Sequence[int]:
    """The blocks to measure on: a short text is read several times, with other draws each time."""
    readings = max(1, min(MAX_VALIDATION_REPEATS, TARGET_VALIDATION_TOKENS // max(1, len(blocks.tokens))))
    return range(blocks.count * readings)
