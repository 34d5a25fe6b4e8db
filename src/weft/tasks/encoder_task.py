"""A task that puts a head on a model that reads texts, and trains both on examples: what such tasks share.

A task of this kind says what its data are, what its head answers, the loss of a batch and the metrics. Vocabulary,
size, learning rate, number of readings and how often it is measured follow from the data and from how the family
learns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.data import ByLength
from weft.models import Budget, ModelConfig, SizePreset, Sizing, preset, sizing_of
from weft.tasks import planning
from weft.tasks.experiment import NO_ORIGIN, Experiment, Origin
from weft.tasks.preparation import ENCODER_TOKENS, learned_tokenizer
from weft.tasks.request import Request
from weft.tasks.start import Start
from weft.tasks.task import Task
from weft.tasks.vocabulary import encoder_tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import AdamWConfig
from weft.training.freezing import freeze

TARGET_STEPS = 1500  # that few examples are worth, in at most MAX_EPOCHS epochs
MIN_EPOCHS, MAX_EPOCHS = 4.0, 30.0  # when the user says nothing
MAX_MINUTES = 10.0  # and not longer than this
DEFAULT_BATCH = 32


class SplitData(Protocol):
    """The data of a run, split; `config` has the fields of DataConfig, completed by what was found."""

    @property
    def config(self) -> Any: ...
    @property
    def test(self) -> Any: ...
    @property
    def warnings(self) -> Sequence[str]: ...
    def facts(self) -> dict[str, Any]: ...


class EncoderTask(Task):
    """`capabilities[0]` is what its models can do: it decides their sizes and how they learn.

    longest    tokens of a text that are read, unless the user says otherwise
    finished   settings of the objective for a model that was trained long before: it knows enough words, and is not
               shown texts that are changed
    """

    tokenizer = "wordpiece"
    longest: ClassVar[int] = 256
    finished: ClassVar[Mapping[str, Any]] = {"word_dropout": 0.0}

    @abstractmethod
    def experiment(self, config: Any, data: Any, tokenizer: Tokenizer, origin: Origin) -> EncoderExperiment:
        """What is trained."""

    @abstractmethod
    def read_data(self, config: Any) -> SplitData: ...

    @abstractmethod
    def check_same(self, recorded: Any, found: Any) -> None:
        """Refuse data that are not those a run began with, by their settings."""

    @abstractmethod
    def texts(self, data: Any) -> list[str]:
        """What a tokenizer learns from."""

    @abstractmethod
    def head(self, data: Any) -> dict[str, Any]:
        """The settings of the model's head."""

    def tokenizer_fields(self, kind: str | None, characters: int) -> dict[str, Any]:
        """The settings of a tokenizer for so many characters, of the requested kind."""
        return encoder_tokenizer_fields(kind, characters)

    def size_fields(self, sizing: Sizing, data: Any) -> Mapping[str, Any]:
        """Settings of the model that these data need besides its size."""
        return {}

    # -- planning -----------------------------------------------------------------------------

    def plan(self, origin: Origin) -> EncoderExperiment:
        request, start, report = origin.asked, origin.start, origin.report
        data = self.read_data(request.data_config(self.data))
        for text in data.warnings if origin.ranks.is_first else ():
            report({"event": "warning", "text": text})
        tokenizer_config = None
        if start is None:
            fields = self.tokenizer_fields(request.tokenizer, data.config.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.from_config(fields))
            texts = self.texts(data)
            tokenizer = learned_tokenizer(tokenizer_config, texts, sum(map(len, texts)), report, ENCODER_TOKENS)
        else:
            tokenizer = start.tokenizer
        report({"event": "phase", "name": "planning"})
        return self._planned(origin, data, tokenizer, tokenizer_config)

    def reopen(self, config: Any, origin: Origin) -> EncoderExperiment:
        assert origin.run is not None
        data = self.read_data(config.data)
        self.check_same(config.data, data.config)
        return self.experiment(config, data, Tokenizer.load(origin.run.tokenizer_file), origin)

    def _planned(
        self, origin: Origin, data: SplitData, tokenizer: Tokenizer, tokenizer_config: TokenizerConfig | None
    ) -> EncoderExperiment:
        """The model, what the user set on top, then the number of steps."""
        request, start, ranks = origin.asked, origin.start, origin.ranks
        model = request.apply("model", self._model(request, tokenizer, start, data))
        if start is not None:
            start.build(model)  # refuses settings that its weights do not fit
        minutes = request.minutes if request.steps or request.epochs or request.minutes else MAX_MINUTES
        training = planning.first_training(request, DEFAULT_BATCH, ranks, minutes, self._learning(model, start))
        freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
        config = self.settings(
            model=model,
            tokenizer=tokenizer_config,
            data=data.config.override({"length": read_length(model, data.config.length or self.longest)}),
            training=training,
            start=request.start,
            **self._objective(request, model, start),
        )
        made = self.experiment(config, data, tokenizer, origin)
        pieces = planning.Pieces(made.per_epoch, made.seconds_per_step, made.seconds_at_end, made.epochs)
        training = planning.with_steps(training, request, pieces, ranks)
        if not training.evaluate_every:
            each = max(1, made.per_epoch // training.batch)
            training = training.override({"evaluate_every": max(1, min(each, training.steps // 4))})
        return replace(made, config=config.override({"training": training}))

    def _model(self, request: Request, tokenizer: Tokenizer, start: Start | None, data: SplitData) -> ModelConfig:
        """With a head for these data. Few examples are learned by the smallest model, however much time there is."""
        head = {"head": self.head(data)}
        if start is not None:
            fields = {} if is_finished(start.model) else {"dropout": self._size(start.model.kind).model["dropout"]}
            return start.model.override(fields | head)
        family, fields = preset(request.model or self.family)
        model = ModelConfig.from_config({"kind": family, **fields, "vocab_size": tokenizer.vocab_size})
        if fields:
            return model.override(head)
        longest = {} if model.context is None else {"max_length": data.config.length or self.longest}
        own = self.size_fields(self._sizing(family), data)
        return model.override({**self._size(family).model, **own, **longest, **head})

    def _learning(self, model: ModelConfig, start: Start | None) -> dict[str, Any]:
        """As the family learns few examples best; a finished model is fine-tuned with small steps."""
        if start is None or not is_finished(start.model):
            return dict(self._sizing(model.kind).training)
        rate = 0.04 / getattr(model, "width", 768)  # 5e-5 for BERT's width, as its authors advise
        return {"optimizer": AdamWConfig(learning_rate=rate), "warmup": 0.1, "decay": 0.9}

    def _objective(self, request: Request, model: ModelConfig, start: Start | None) -> dict[str, Any]:
        if self.objective is None:
            return {}
        finished = start is not None and is_finished(start.model)
        usual = self.finished if finished else self._sizing(model.kind).objective
        return {"objective": request.apply("objective", self.objective().override(usual))}

    def _sizing(self, family: str) -> Sizing:
        return sizing_of(family, self.capabilities[0])

    def _size(self, family: str) -> SizePreset:
        return self._sizing(family).choose(Budget(0.0))


@dataclass
class EncoderExperiment(Experiment):
    """Examples as tokens, read in batches of similar length."""

    config: Any
    data: Any
    tokenizer: Tokenizer
    origin: Origin = NO_ORIGIN

    @property
    @abstractmethod
    def lengths(self) -> NDArray[np.integer]:
        """Tokens of each sample that is learned from."""

    @property
    def per_epoch(self) -> int:
        return len(self.lengths)

    @property
    def length(self) -> int:
        """Tokens of a text that are read."""
        return read_length(self.config.model, self.config.data.length)

    @property
    def epochs(self) -> float:
        """Readings of the examples that are worth it; a finished model needs few."""
        if self.config.start is not None and is_finished(self.config.model):
            return MIN_EPOCHS
        return min(MAX_EPOCHS, max(MIN_EPOCHS, TARGET_STEPS * self.config.training.batch / self.per_epoch))

    @property
    def most(self) -> int:
        return round(self.epochs * self.per_epoch / self.config.training.batch)

    @cached_property
    def order(self) -> ByLength:
        """Which samples are in which batch."""
        return ByLength(self.lengths, self.config.training.batch, self.config.training.seed)

    @property
    def has_test(self) -> bool:
        return self.data.test is not None

    def dropping_words(self) -> dict[str, Any]:
        """How words are hidden while it learns: the share, the token that replaces them, tokens that never are."""
        special = self.tokenizer.special
        hidden = special.mask if special.mask is not None else special.unknown
        return {
            "word_dropout": self.config.objective.word_dropout if hidden is not None else 0.0,
            "hidden": hidden or 0,
            "whole": [token for token in (special.classify, special.separate, special.pad) if token is not None],
        }

    def text_facts(self) -> dict[str, Any]:
        """What every plan for texts says, for texts of the mean length."""
        training = self.config.training
        mean = max(1, round(float(self.lengths.mean())))
        return self.common_facts(mean, training.steps * training.batch / self.per_epoch)


def is_finished(model: ModelConfig) -> bool:
    """Whether a model that training begins with was trained long before; ours have only read a little."""
    return not getattr(model, "zero_outputs", False)


def read_length(model: ModelConfig, wanted: int) -> int:
    """Tokens of a text that are read: as many as are wanted and as the model can."""
    return min(wanted, model.context or wanted)
