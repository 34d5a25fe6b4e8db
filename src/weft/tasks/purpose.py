"""What a model is for, told by what it has on top."""

from __future__ import annotations

from weft.models import BERTConfig, ModelConfig
from weft.models.bert import ClassesConfig, MaskedConfig


def purpose(config: ModelConfig) -> str:
    """The task that a model can do as it is; `read` is a trunk alone: vectors of text, and a place to begin from."""
    if not isinstance(config, BERTConfig):
        return "generate"
    if isinstance(config.head, ClassesConfig):
        return "classify"
    return "fill" if isinstance(config.head, MaskedConfig) else "read"
