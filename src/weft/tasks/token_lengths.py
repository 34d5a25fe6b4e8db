"""How long labelled texts are in tokens, by a tokenizer learned from them as training would learn it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.data.examples import Examples
from weft.tasks.vocabulary import encoder_tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.text.special import CLASSIFY, MASK, PAD, SEPARATE

SAMPLE = 20_000_000  # characters that are looked at; of more, rows from everywhere
BATCH = 2048  # texts that are cut into tokens at once
Inputs = Sequence[tuple[str, ...]]
Progress = Callable[[int, int], None]
"""Told how many texts of how many are cut into tokens."""


def scheme(kind: str | None) -> str:
    """The scheme that is meant; one that does not exist is refused."""
    return TokenizerConfig.from_config(encoder_tokenizer_fields(kind, characters=0)).kind


def sampled(examples: Examples) -> tuple[Inputs, int]:
    """All inputs, or of very many one in so many."""
    inputs = examples.inputs()
    one_in = max(-(-sum(len(part) for parts in inputs for part in parts) // SAMPLE), 1)
    return inputs[::one_in], one_in


def learned(kind: str, train: Examples) -> Tokenizer:
    """A tokenizer made from training texts, with a vocabulary of the size that training would give it."""
    config = TokenizerConfig.from_config(encoder_tokenizer_fields(kind, train.characters))
    return config.train(
        (part for parts in sampled(train)[0] for part in parts), special=(PAD, CLASSIFY, SEPARATE, MASK)
    )


def token_lengths(
    parts: Mapping[str, Inputs], tokenizer: Tokenizer, progress: Progress | None = None
) -> dict[str, NDArray[np.int64]]:
    """Tokens of each input, as a model reads it: `[CLS] text [SEP]`, and with a partner `[CLS] a [SEP] b [SEP]`."""
    total, done = sum(map(len, parts.values())), 0
    found = {}
    for name, inputs in parts.items():
        lengths = np.zeros(len(inputs), dtype=np.int64)
        for start in range(0, len(inputs), BATCH):
            batch = inputs[start : start + BATCH]
            encoded = iter(tokenizer.encode_batch([text for texts in batch for text in texts]))
            lengths[start : start + BATCH] = [1 + sum(len(next(encoded)) + 1 for _ in texts) for texts in batch]
            done += len(batch)
            if progress is not None:
                progress(done, total)
        found[name] = lengths
    return found
