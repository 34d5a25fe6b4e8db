"""Bytes: 256 ids, one for each byte of the UTF-8 text. Nothing to learn, nothing unseen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from weft.text.base import Progress, TokenizerConfig, finished
from weft.text.spelling import BYTE_CHARACTERS
from weft.text.tokenizer import Tokenizer


class BytesConfig(TokenizerConfig, kind="bytes", aliases=("byte",)):
    """One token for each byte: any text in any script, the same vocabulary for all of them."""

    def train(
        self, pieces: Iterable[str] = (), *, progress: Progress | None = None, special: Sequence[str] = ()
    ) -> Tokenizer:
        """The id of a byte is its value; the text is not read."""
        vocabulary = {character: value for value, character in enumerate(BYTE_CHARACTERS)}
        engine = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        engine.decoder = decoders.ByteLevel()
        return finished(engine, special)
