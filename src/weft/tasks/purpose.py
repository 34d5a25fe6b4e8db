"""What a model is for, told by what it has on top."""

from __future__ import annotations

from weft.analysis.capturing import attentions
from weft.errors import UnsupportedError
from weft.models import LanguageConfig, ModelConfig, PairModelConfig, Word2VecConfig, layout_for
from weft.models.bert import MaskedConfig
from weft.models.classes import Classes
from weft.models.pictures import PictureConfig

FIRST_USE = {  # what to try first with a run of each task
    "generate": 'weft generate {path} "Once upon a time"',
    "fill": 'weft fill {path} "The [MASK] of the day"',
    "classify": 'weft classify {path} "a text of yours"',
    "translate": 'weft translate {path} "a text of yours"',
    "look": "weft classify {path} picture.png",
    "begin": "weft train classify FOLDER --from {path}",
    "embed": "weft similar {path} WORD",
    "read": 'weft embed {path} "a text of yours"',
}


def first_use(task: str, path: object) -> str:
    """The command to try first with a run."""
    return FIRST_USE[task].format(path=path)


def use_of(task: str, config: ModelConfig) -> str:
    """What a run of a task is used for: one that learned about pairs alone does not fill in; some look at pictures, and
    without classes they are a place to begin from."""
    if isinstance(config, PictureConfig):
        return "look" if config.head.classes else "begin"
    return "read" if task == "fill" and purpose(config) == "read" else task


def purpose(config: ModelConfig) -> str:
    """The task that a model can do as it is; `read` is a trunk alone: vectors, and a place to begin from."""
    if isinstance(config, Word2VecConfig):
        return "embed"
    if isinstance(config, PairModelConfig):
        return "translate"
    head = getattr(config, "head", None)
    if isinstance(head, Classes):
        return "classify" if head.classes else "read"
    if isinstance(config, LanguageConfig):
        return "generate"
    return "fill" if isinstance(head, MaskedConfig) else "read"


def manner(config: ModelConfig) -> str:
    """What a model does with its input, to say why it does not do something else."""
    if isinstance(config, PictureConfig):
        return "looks at pictures"
    if isinstance(config, Word2VecConfig):
        return "has a vector for each word, and reads no text"
    if purpose(config) == "translate":
        return "writes one text from another"
    return "goes on with a text" if purpose(config) == "generate" else "reads text and does not write"


def can_be_exported(config: ModelConfig) -> bool:
    """Whether Hugging Face has a class for such a model."""
    try:
        layout_for(config)
    except UnsupportedError:
        return False
    return True


def has_attention(config: ModelConfig) -> bool:
    """Whether a model with these settings looks at anything; those that count or have word vectors do not."""
    return config.learned_in_steps and bool(attentions(config.skeleton()))
