"""What the schemes have in common: a config that reads text once and gives a tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import tokenizers

from weft.config import Choice
from weft.errors import UnsupportedError
from weft.text.cutting import short_pieces
from weft.text.spelling import END, utf8
from weft.text.tokenizer import Tokenizer

Progress = Callable[[int], None]
"""Told, now and then, how many characters have been read."""


class TokenizerConfig(Choice):
    """How text becomes tokens: `TokenizerConfig.menu` lists the schemes."""

    def train(self, pieces: Iterable[str], *, progress: Progress | None = None) -> Tokenizer:
        """Read the text once and make the vocabulary; the same text gives the same one."""
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


def finished(engine: tokenizers.Tokenizer) -> Tokenizer:
    """Add the token that ends a text, after all the others, as in GPT-2."""
    engine.add_special_tokens([tokenizers.AddedToken(END, special=True, normalized=False)])
    return Tokenizer(engine)
