"""Words: the most frequent words and marks are tokens; the rest is spelled as UTF-8 bytes.

A word keeps the space before it, so that joining the tokens gives the text back. Words seen only once are left
out, so that a model meets spelled words while it trains, and not for the first time in somebody's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import tokenizers
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

from weft.config import Size
from weft.errors import ConfigError
from weft.text.base import Progress, TokenizerConfig, finished, for_the_engine, room_besides
from weft.text.recognise import WORD_PATTERN
from weft.text.spelling import BYTE_CHARACTERS
from weft.text.tokenizer import Tokenizer

LONGEST_WORD = 100  # bytes; longer ones are rulers and encoded blobs, not words


def _splitter() -> pre_tokenizers.PreTokenizer:
    """Text to words, written with the byte alphabet of GPT-2."""
    words = pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="isolated")
    return pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


class WordsConfig(TokenizerConfig, kind="words", aliases=("word",)):
    """One token for each frequent word; `vocab_size` counts everything, with the 256 bytes and the end of text."""

    vocab_size: Size = 20000
    min_count: Size = 2

    def check(self) -> None:
        if self.vocab_size < 257:
            raise ConfigError(f"vocab_size = {self.vocab_size}", expected="at least 257: the bytes and the end of text")

    def train(
        self, pieces: Iterable[str], *, progress: Progress | None = None, special: Sequence[str] = ()
    ) -> Tokenizer:
        """Ids 0 … 255 are bytes, then come words from the most frequent on, then the end of text."""
        counter = tokenizers.Tokenizer(models.WordLevel())
        counter.pre_tokenizer = _splitter()
        trainer = trainers.WordLevelTrainer(vocab_size=2**31, min_frequency=self.min_count, show_progress=False)
        counter.train_from_iterator(for_the_engine(pieces, progress), trainer)
        ranks = counter.get_vocab()
        words = [word for word in sorted(ranks, key=ranks.__getitem__) if 1 < len(word) <= LONGEST_WORD]
        return _with_words(words[: room_besides(special, self.vocab_size) - 256], special)


def _with_words(words: Sequence[str], special: Sequence[str]) -> Tokenizer:
    """A tokenizer for these words, which are written with the byte alphabet."""
    vocabulary = {token: number for number, token in enumerate([*BYTE_CHARACTERS, *words])}
    engine = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    engine.pre_tokenizer = _splitter()
    engine.decoder = decoders.ByteLevel()
    return finished(engine, special)


def tokenizer_of_words(words: Iterable[str]) -> Tokenizer:
    """A tokenizer that knows exactly these words, each with and without a space before it."""
    spelled = dict.fromkeys(
        "".join(BYTE_CHARACTERS[value] for value in (space + word).encode())
        for word in words
        for space in (" ", "")
        if re.fullmatch(r"\w+", word)
    )
    return _with_words([word for word in spelled if 1 < len(word) <= LONGEST_WORD], ())
