"""Characters: every character of the training text is a token; others are spelled as their UTF-8 bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import tokenizers
from tokenizers import decoders, models

from weft.text.base import Progress, TokenizerConfig, counted, finished
from weft.text.spelling import BYTE_NAMES, code_points
from weft.text.tokenizer import Tokenizer


class CharactersConfig(TokenizerConfig, kind="characters", aliases=("character", "chars", "char")):
    """One token for each character: the smallest vocabulary that reads like text, and the longest sequences."""

    def train(
        self, pieces: Iterable[str], *, progress: Progress | None = None, special: Sequence[str] = ()
    ) -> Tokenizer:
        """Ids 0 … 255 are bytes, then come the characters in the order of Unicode, then the end of text."""
        seen = np.zeros(0x110000, dtype=bool)
        for piece in counted(pieces, progress):
            seen[code_points(piece)] = True
        tokens = [*BYTE_NAMES, *map(chr, np.flatnonzero(seen).tolist())]
        vocabulary = {token: number for number, token in enumerate(tokens)}
        engine = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
        engine.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
        return finished(engine, special)
