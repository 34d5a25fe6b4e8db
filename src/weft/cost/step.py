"""What one training step computes, family by family: the loss of a batch, for walking through it without numbers.

It is what the objectives compute, on tensors that somebody else makes: ones that have shapes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.blocks import Unpadded
from weft.errors import UnsupportedError
from weft.models import (
    BagOfWordsConfig,
    BERTConfig,
    LanguageConfig,
    ModelConfig,
    PairModelConfig,
    PictureConfig,
    PictureModel,
    RecurrentConfig,
    SkipGramConfig,
    TextRow,
    Word2VecConfig,
)
from weft.models.bert import ClassesConfig, MaskedConfig, QuestionsConfig
from weft.models.rnn import NextConfig

Maker = Callable[[tuple[int, ...], int], Tensor]
"""A tensor of this shape: whole numbers below the second, or normal ones if that is 0."""

HIDDEN = 0.15  # of the tokens, which a model that fills in is asked for
SMOOTHING = 0.1  # of what a model that translates is asked for


@singledispatch
def step_loss(config: ModelConfig, model: nn.Module, make: Maker, batch: int, length: int) -> Tensor:
    """The loss of `batch` texts of `length` tokens, or pictures of so many rows; all as long as each other."""
    raise UnsupportedError(f"a {config.kind} does not learn in steps: it counts")


@step_loss.register
def _writes(config: LanguageConfig, model: nn.Module, make: Maker, batch: int, length: int) -> Tensor:
    return _asked(model(make((batch, length), config.vocab_size)).flatten(0, 1), make)


@step_loss.register
def _recurs(config: RecurrentConfig, model: nn.Module, make: Maker, batch: int, length: int) -> Tensor:
    if isinstance(config.head, NextConfig):
        return _writes(config, model, make, batch, length)
    return _asked(cast(Any, model).text_logits(_row(make, config.vocab_size, batch, length)), make)


@step_loss.register
def _reads(config: BERTConfig, model: nn.Module, make: Maker, batch: int, length: int) -> Tensor:
    head, bert = config.head, cast(Any, model)
    row = _row(make, config.vocab_size, batch, length, segments=config.segments if head.pairs else 0)
    states = row.states(model)
    total = states.new_zeros(())
    if isinstance(head, MaskedConfig):
        hidden = max(1, round(HIDDEN * batch * length))
        total = total + _asked(bert.masked_logits(states[0][make((hidden,), batch * length)]), make)
    if isinstance(head, QuestionsConfig):
        for question in head.questions:
            total = total + _asked(bert.pair_logits(states, question, unpadded=row.unpadded), make)
    if isinstance(head, ClassesConfig):
        return _asked(bert.class_logits(states, unpadded=row.unpadded), make)
    return (
        total
        + (states.sum() if head.kind == "none" else 0.0)
        + (bert.pooled(states).sum() if head.kind == "pooled" else 0.0)
    )


@step_loss.register
def _translates(config: PairModelConfig, model: nn.Module, make: Maker, batch: int, length: int) -> Tensor:
    source = make((batch, length), getattr(config, "source_vocab_size", None) or config.vocab_size)
    logits = model(source, make((batch, length), config.vocab_size)).flatten(0, 1)
    return _asked(logits, make, SMOOTHING)


@step_loss.register
def _looks(config: PictureConfig, model: nn.Module, make: Maker, batch: int, length: int) -> Tensor:
    assert isinstance(model, PictureModel)
    states = model(make((batch, config.channels, length, length), 0))
    return _asked(model.class_logits(states), make) if config.head.classes else states.sum()


@step_loss.register
def _counts_words(config: BagOfWordsConfig, model: nn.Module, make: Maker, batch: int, length: int) -> Tensor:
    segments = 2 if config.pairs else 0
    return _asked(cast(Any, model).text_logits(_row(make, config.vocab_size, batch, length, segments=segments)), make)


@step_loss.register
def _guesses(config: Word2VecConfig, model: nn.Module, make: Maker, batch: int, length: int) -> Tensor:
    """Each word from those around it, window + 1 of them on average; skip-gram from each of them alone."""
    around = config.window + 1
    examples, context = batch * length, around
    if isinstance(config, SkipGramConfig):
        examples, context = examples * around, 1
    words = make((examples, context), config.vocab_size)
    keep = torch.ones_like(words, dtype=torch.bool)
    if not config.negative:
        return _asked(model(words, keep), make)
    return -F.logsigmoid(model(words, keep, make((examples, 1 + config.negative), config.vocab_size))).sum()


def _row(make: Maker, vocab_size: int, batch: int, length: int, *, segments: int = 0) -> TextRow:
    """Texts one after the other, as a model that reads gets them."""
    told = make((1, batch * length), segments) if segments else None
    return TextRow(make((1, batch * length), vocab_size), told, Unpadded((length,) * batch))


def _asked(logits: Tensor, make: Maker, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy; the one number of a regression is compared with another."""
    if logits.shape[-1] == 1:
        return F.mse_loss(logits[:, 0], make((len(logits),), 0), reduction="sum")
    return F.cross_entropy(logits, make((len(logits),), logits.shape[-1]), reduction="sum", label_smoothing=smoothing)
