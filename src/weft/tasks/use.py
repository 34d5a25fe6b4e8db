"""What can be said of a model by its settings alone: what it does, whether it attends, whether it can be taken away."""

from __future__ import annotations

from weft.errors import UnsupportedError
from weft.models import ModelConfig, converter_for
from weft.models.capabilities import DOES
from weft.models.sites import attentions


def what_it_does(config: ModelConfig) -> str:
    """To say why it does not do something else: "continues a text"."""
    return DOES[config.mostly]


def can_be_exported(config: ModelConfig) -> bool:
    """Whether Hugging Face has a class for such a model."""
    try:
        converter_for(config)
    except UnsupportedError:
        return False
    return True


def has_attention(config: ModelConfig) -> bool:
    """Whether a model with these settings looks at anything; those that count or have word vectors do not."""
    return config.learned_in_steps and bool(attentions(config.skeleton()))
