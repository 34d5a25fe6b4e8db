"""What the schemes have in common: a config that reads text once and gives a tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np
import tokenizers
from numpy.typing import NDArray

from weft.config import Choice
from weft.errors import ConfigError, UnsupportedError
from weft.text.cutting import short_pieces
from weft.text.special import add_special, join_like_bert
from weft.text.spelling import END, code_points, utf8
from weft.text.tokenizer import Tokenizer

Progress = Callable[[int], None]
"""Told, now and then, how many characters have been read."""


class TokenizerConfig(Choice):
    """How text becomes tokens: `TokenizerConfig.registry` lists the schemes."""

    gives_text_back: ClassVar[bool] = True
    """Whether `decode(encode(text)) == text` for every text. A model that writes needs that."""

    def train(
        self, pieces: Iterable[str], *, progress: Progress | None = None, special: Sequence[str] = ()
    ) -> Tokenizer:
        """Read the text once and make the vocabulary; the same text gives the same one.

        `special` are tokens to reserve after all the others, as an encoder needs them: `[CLS]`, `[SEP]`, `[MASK]`, …
        """
        raise UnsupportedError(f"the scheme {self.kind!r} cannot be trained")


def counted(pieces: Iterable[str], progress: Progress | None) -> Iterator[str]:
    """The pieces as they come, with a word to `progress` after each."""
    done = 0
    for piece in pieces:
        yield piece
        done += len(piece)
        if progress is not None:
            progress(done)


def for_the_engine(pieces: Iterable[str], progress: Progress | None) -> Iterator[str]:
    """Pieces of a size that the engine counts quickly: a text without any space would be one giant word."""
    for piece in counted(pieces, progress):
        utf8(piece)
        yield from short_pieces(piece, 2048)


def character_counts(texts: Sequence[str]) -> NDArray[np.int64]:
    """How often each character of Unicode occurs: (0x110000,)."""
    counts = np.zeros(0x110000, dtype=np.int64)
    for start in range(0, len(texts), 512):
        counts += np.bincount(code_points("".join(texts[start : start + 512])), minlength=len(counts))
    return counts


def finished(engine: tokenizers.Tokenizer, special: Sequence[str] = ()) -> Tokenizer:
    """Add the token that ends a text, after all the others, as in GPT-2, and then the `special` ones."""
    add_special(engine, [END, *special])
    if special:
        join_like_bert(engine)
    return Tokenizer(engine)


def room_besides(special: Sequence[str], vocab_size: int) -> int:
    """How many tokens there may be besides the end of text and the special ones; the bytes must find room."""
    room = vocab_size - 1 - len(special)
    if room < 256:
        raise ConfigError(
            f"vocab_size = {vocab_size} with {len(special)} special tokens",
            expected=f"at least {257 + len(special)}: the bytes, the end of text and these",
        )
    return room
