"""Training that begins with the weights of another model: a run, an imported one, or a Hugging Face folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.blocks.roles import weight_roles
from weft.errors import ConfigError, WeightsError
from weft.models import CausalLM, EncodesImages, ModelConfig, TokenVectorTable, WordVectorTable, default_for
from weft.models.base import Model
from weft.tasks.classify.image_data import ImageDataConfig
from weft.tasks.classify.image_form import form_of, preprocessing_of
from weft.tasks.embed.word_list import WordList, words_of
from weft.text import Tokenizer, tokenizer_of_words
from weft.training import AdamWConfig

if TYPE_CHECKING:
    from weft.tasks.run import Run

DEFAULT_WINDOW_TOKENS = (
    256  # tokens in a training window, unless the user says otherwise: the context of an imported model may be huge
)
FINE_TUNING_RATES = {
    "optimizer": AdamWConfig(learning_rate=3e-4),
    "warmup": 0.1,
}  # of a finished model, which is fine-tuned


@dataclass(frozen=True)
class Start:
    """A model to begin with."""

    path: str
    model: ModelConfig
    weights: dict[str, Tensor]
    own_tokenizer: Tokenizer | None = None  # None: it reads no text
    source_tokenizer: Tokenizer | None = None  # of what it reads, if that is another
    images: ImageDataConfig | None = None  # the form in which it knows them; None: it reads text, or nobody says

    @property
    def tokenizer(self) -> Tokenizer:
        """Of a model for texts, which is what a task for texts starts from."""
        assert self.own_tokenizer is not None
        return self.own_tokenizer

    def build(self, config: ModelConfig) -> Model:
        """A model with these weights; its settings may differ (dropout, attention kind) as far as they fit.

        What belongs to a task or an attention kind is exchanged: what only the new model has begins fresh, what only
        the old one had is left out.
        """
        shapes = config.shapes()
        weights = {name: tensor.clone() for name, tensor in self.weights.items()}
        kept = {name for name, t in weights.items() if tuple(t.shape) == shapes.get(name)}
        head = getattr(config, "head", None)
        if head != getattr(self.model, "head", None) or getattr(head, "classes", 0) == 1:
            # the same sizes, other classes; or numbers, which are learned by a deviation and mean of their own
            kept -= _select_weights(config, "labels")
        exchanged = _select_weights(config, "exchanged", "labels") | _select_weights(self.model, "exchanged", "labels")
        weights = {name: t for name, t in weights.items() if name in kept or name not in exchanged}
        missing = [name for name in shapes if name in exchanged and name not in kept]
        if missing:
            fresh = {name: p.detach() for name, p in config.build().named_parameters()}
            weights |= {name: fresh[name] for name in missing}
        try:
            return config.with_weights(weights)
        except WeightsError as error:
            raise WeightsError(
                f"the weights of {self.path} do not fit the settings: {error}",
                advice="leave the sizes of the model as they are",
            ) from None


def _select_weights(config: ModelConfig, *where: str) -> set[str]:
    """The weights in these places: "exchanged" and "labels" are those of a task or an attention kind."""
    return {name for name, role in weight_roles(config.skeleton()).items() if role.stands in where}


@dataclass(frozen=True)
class WordStart(Start):
    """Word vectors to begin with: of other vectors, by name; of a model that writes, its table of tokens."""

    words: WordList | None = None
    table: Tensor | None = None  # the vectors by which words are read

    @property
    def vectors(self) -> Tensor:
        assert self.table is not None
        return self.table

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The run's own; vectors from elsewhere come without, and their words make one."""
        return self.own_tokenizer or tokenizer_of_words(self.list.words)

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def sizes(self) -> dict[str, int]:
        """Fields of a model with such a table: the width, and heads that divide it into even parts."""
        heads = next(heads for heads in (8, 6, 5, 4, 3, 2, 1) if self.width % (2 * heads) == 0 or heads == 1)
        return {"width": self.width, "attention.heads": heads}

    @property
    def list(self) -> WordList:
        assert self.words is not None
        return self.words

    def fill(self, model: Model, words: WordList) -> None:
        """Both vectors of each word that is known there too."""
        places = [(row, self.list.rows[word]) for row, word in enumerate(words.words) if word in self.list.rows]
        if not places:
            raise ConfigError(f"--from {self.path}: none of its words occurs in the text", expected="common words")
        here, there = torch.tensor(places).T
        with torch.no_grad():
            for name, p in model.named_parameters():
                p[here] = self.weights[name][there]

    def build(self, config: ModelConfig) -> Model:
        """A fresh model, but tokens that are words begin with their vectors."""
        model = config.build()
        width = getattr(config, "width", "no")
        if TokenVectorTable not in config.provides or width != self.width:
            raise ConfigError(
                f"--from {self.path}: vectors of width {self.width} for a {config.kind} of width {width}",
                expected=f"a {default_for(CausalLM)} of width {self.width}",
            )
        table = cast(TokenVectorTable, model).token_vectors
        rows: NDArray[np.int32] = self.list.token_rows(self.tokenizer)
        known = np.flatnonzero(rows >= 0)
        with torch.no_grad():
            table[torch.from_numpy(known)] = self.vectors[torch.from_numpy(rows[known])]
        return model


def read_start(path: str, check: Callable[[Run], None] | None = None) -> Start:
    """Open a run or a Hugging Face folder to begin from; `check` refuses one that cannot be used."""
    from weft.tasks.run import load

    if not Path(path).is_dir():
        raise ConfigError(f"--from {path}: there is no such folder", expected="a run or a Hugging Face folder")
    run = load(path)
    if check is not None:
        check(run)
    weights = {name: p.detach() for name, p in run.model.named_parameters()}
    if WordVectorTable in run.model_config.provides:
        own = run.tokenizer if run.has_tokenizer else None
        table = cast(WordVectorTable, run.model).word_vectors.detach()
        return WordStart(path, run.model_config, weights, own, words=words_of(run), table=table)
    if EncodesImages in run.model_config.provides:
        form = None if preprocessing_of(run) is None else form_of(run)
        return Start(path, run.model_config, weights, images=form)
    source = None if run.source_tokenizer is run.tokenizer else run.source_tokenizer
    return Start(path, run.model_config, weights, run.tokenizer, source)
