"""Words as they stand between spaces: the vocabulary of a model from elsewhere that knows nothing smaller."""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers
from tokenizers import models, pre_tokenizers

from weft.text.tokenizer import Tokenizer


def word_level(words: Sequence[str], *, end: str, unknown: str) -> Tokenizer:
    """A tokenizer with these words as its tokens, in this order; other words are `unknown`.

    Text comes back with single spaces. `end` and `unknown` are special: they stand for no text.
    """
    vocabulary = {word: number for number, word in enumerate(words)}
    engine = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    engine.add_special_tokens([end, unknown])
    return Tokenizer(engine, ends=(end,))
