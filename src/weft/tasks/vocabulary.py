"""How large a vocabulary suits a text; apart from the rest of the plan, which needs torch."""

from __future__ import annotations

from typing import Any


def tokenizer_fields(kind: str | None, characters: int) -> dict[str, Any]:
    """The requested tokenizer; by default sub-words, with a vocabulary that grows with the text."""
    if kind not in (None, "bpe", "unigram"):
        return {"kind": kind}
    sizes = ((300_000, 512), (3_000_000, 1024), (30_000_000, 4096))
    return {"kind": kind or "bpe", "vocab_size": next((size for limit, size in sizes if characters < limit), 8192)}


def pair_tokenizer_fields(kind: str | None, characters: int) -> dict[str, Any]:
    """The same for a model that writes one text from another: sub-words of both, of which there may be more."""
    if kind not in (None, "bpe", "unigram"):
        return {"kind": kind}
    sizes = ((300_000, 1024), (3_000_000, 4096), (30_000_000, 6144))
    return {"kind": kind or "bpe", "vocab_size": next((size for limit, size in sizes if characters < limit), 16384)}


def encoder_tokenizer_fields(kind: str | None, characters: int) -> dict[str, Any]:
    """The same for a model that reads: word pieces without capitals, of which there may be more."""
    if kind not in (None, "wordpiece"):
        return tokenizer_fields(kind, characters)
    sizes = ((300_000, 4096), (30_000_000, 16384))
    return {"kind": "wordpiece", "vocab_size": next((size for limit, size in sizes if characters < limit), 30_000)}
