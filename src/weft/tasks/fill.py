"""Pretraining on raw text: words are hidden and pairs of sentences asked about (a bert), or spans are (a t5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch

from weft.checkpoints import RunDirectory
from weft.data.marks import Marks
from weft.data.pretraining import ENTAILMENT, PretrainingSamples
from weft.data.spans import SpanMarks
from weft.errors import ConfigError, DataError
from weft.models import BERTConfig, ModelConfig, T5Config, preset
from weft.objectives import ObjectiveConfig, PretrainingBatch, pretraining_loss
from weft.tasks import fill_spans, planning
from weft.tasks.fill_spans import SPAN_TOKENS, SpanPretraining
from weft.tasks.fill_texts import FillConfig, FillDataConfig, FillTexts, read_fill_source, read_texts
from weft.tasks.fill_training import USUAL, FillTraining
from weft.tasks.job import Report
from weft.tasks.overlap import overlap_warnings
from weft.tasks.preparation import ENCODER_TOKENS, learned_from
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.sizes import rung_for, sizes_of
from weft.tasks.sources import check_unchanged
from weft.tasks.start import GENTLE, LENGTH, Start
from weft.tasks.task import Task
from weft.tasks.vocabulary import encoder_tokenizer_fields, pair_tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import Ranks
from weft.training.freezing import freeze

MINUTES = 5.0  # when the user says nothing
LEARNING = {"optimizer.learning_rate": 0.015, "optimizer.embedding_rate": 0.002}  # the table of tokens is also the head
SPANS_TOKENIZER = "unigram"  # of a t5, as in the paper


class Fill(Task):
    """Hide words of a text and learn to fill them in; ask about pairs of sentences."""

    name = "fill"
    family = "bert"
    families = ("bert", "t5")
    tokenizer = "wordpiece"
    settings = FillConfig
    data = FillDataConfig
    objective = ObjectiveConfig

    def check(self, request: Request) -> None:
        if request.start is not None:
            super().check(request)
            _objective(request, None)  # what it begins from is not known yet
            return
        family, _ = preset(request.model or self.family)
        if family == "t5":
            request = replace(request, tokenizer=request.tokenizer or SPANS_TOKENIZER)
        super().check(request)
        _objective(request, family)
        if family == "t5":
            tokenizer = request.apply("tokenizer", TokenizerConfig.pick(cast("str", request.tokenizer)))
            if not tokenizer.gives_text_back:
                raise ConfigError(
                    f"the tokenizer {tokenizer.kind!r} is not for a t5, which writes: it does not give text back",
                    expected="unigram, bpe, characters, words or bytes",
                )

    def check_start(self, run: Run) -> None:
        if isinstance(run.model_config, T5Config):
            SpanMarks.of(run.tokenizer)  # refuses one without sentinels
        else:
            run.check_reads()

    def prepare(self, request: Request, start: Start | None, ranks: Ranks, report: Report) -> FillTraining:
        family = preset(request.model or self.family)[0] if start is None else start.model.kind
        objective = _objective(request, family)
        config = request.data_config(self.data)
        source = read_fill_source(config)
        for text in overlap_warnings(source) if ranks.is_first else ():
            report({"event": "warning", "text": text})
        tokenizer_config = None
        if start is None:
            fields = _tokenizer_fields(family, request.tokenizer, source.train.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.pick(fields))
            special = SPAN_TOKENS if family == "t5" else ENCODER_TOKENS
            tokenizer = learned_from(tokenizer_config, source, report, special)
        else:
            tokenizer = start.tokenizer
        texts = read_texts(source, config, tokenizer, report)
        report({"event": "phase", "name": "planning"})
        return _plan(request, texts, tokenizer_config, objective, start, ranks)

    def reopen(self, config: FillConfig, run: RunDirectory, report: Report) -> FillTraining:
        source = read_fill_source(config.data)
        if config.data.fingerprint.partition("|")[2] != source.config.fingerprint.partition("|")[2]:
            raise DataError(
                f"the pairs in {config.data.pairs} have changed since this run began",
                advice="put the old table back, or train a new run",
            )
        check_unchanged(config.data, source.config)
        return training_of(config, read_texts(source, config.data, Tokenizer.load(run.tokenizer_file), report))


TASK = Fill()


def _objective(request: Request, family: str | None) -> ObjectiveConfig:
    """What is learned: by the family, with what the user set on top."""
    objective = request.apply("objective", ObjectiveConfig.usual(family or TASK.family))
    if family is not None:
        objective.check_family(family)
    asked, given = ENTAILMENT in objective.tasks, request.data_config(TASK.data).pairs
    if asked != bool(given):
        raise ConfigError(
            f"--pairs {given} and nothing to ask about them" if given else "entailment without labelled pairs",
            expected="both --pairs TABLE and entailment in objective.tasks, or neither",
            advice="--pairs nli.csv --set objective.tasks=masked,entailment",
        )
    return objective


def _tokenizer_fields(family: str, kind: str | None, characters: int) -> dict[str, Any]:
    if family == "t5":
        return pair_tokenizer_fields(kind or SPANS_TOKENIZER, characters)
    return encoder_tokenizer_fields(kind, characters)


# -- training ---------------------------------------------------------------------------------


def training_of(config: FillConfig, texts: FillTexts) -> FillTraining:
    """By the family of the model."""
    return (SpanPretraining if isinstance(config.model, T5Config) else Pretraining)(config, texts)


@dataclass
class Pretraining(FillTraining):
    """Stretches of sentences with hidden tokens, and pairs with questions about them."""

    @property
    def loss(self) -> Callable[..., Any]:
        return pretraining_loss

    def made_from(self, part: str, seed: int) -> PretrainingSamples:
        objective = self.config.objective
        return PretrainingSamples(
            self.texts.parts[part],
            Marks.of(self.tokenizer),
            self.length,
            tasks=objective.tasks,
            seed=seed,
            masking=objective.masking,
            pairs=self.texts.pairs.get(part),
        )

    def batch(self, samples: PretrainingSamples, numbers: np.ndarray) -> PretrainingBatch:
        return PretrainingBatch.of(samples.batch(numbers), self.config.objective, self.usual)

    @cached_property
    def usual(self) -> float:
        return float(self.learned.batch(np.arange(min(USUAL, self.learned.per_epoch))).lengths.mean())


def _model(request: Request, texts: FillTexts, sizes: dict[str, Any]) -> ModelConfig:
    """A new model, of the named size or else of these sizes."""
    family, fields = preset(request.model or TASK.family)
    needs: dict[str, Any] = {"vocab_size": texts.tokenizer.vocab_size}
    if family == "t5":
        needs["start"] = texts.tokenizer.special.pad  # as in the paper
    model = ModelConfig.pick({"kind": family, **fields, **needs})
    return model.override({} if fields else sizes)


def _plan(
    request: Request,
    texts: FillTexts,
    tokenizer_config: TokenizerConfig | None,
    objective: ObjectiveConfig,
    start: Start | None,
    ranks: Ranks,
) -> FillTraining:
    """Sizes by the ladder or by where it starts, what the user set on top, then the number of steps by measuring."""
    minutes = request.minutes if request.steps or request.epochs or request.minutes else MINUTES
    speed = ranks.agree(planning.machine_speed(), torch.device(request.device))
    rung = rung_for(speed * 60 * (minutes or MINUTES))
    data = cast("FillDataConfig", texts.source.config)
    if start is None:
        model = _model(request, texts, sizes_of(rung))
    else:
        model = start.model
        data = data.override({"length": data.length or LENGTH})
    if isinstance(model, BERTConfig):
        classes = len(texts.pairs["train"].classes) if texts.pairs else 2
        model = model.override({"head": objective.head(classes)})
    model = request.apply("model", model)
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    planned = GENTLE if start is not None else fill_spans.LEARNING if isinstance(model, T5Config) else LEARNING
    training = planning.first_training(request, 1, ranks, minutes, planned)
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    config = FillConfig(
        model=model,
        tokenizer=tokenizer_config,
        data=data,
        training=training,
        start=request.start,
        objective=objective,
    )
    made = training_of(config, texts)
    batch = max(1, round(rung.batch * rung.length / made.usual))
    training = planning.first_training(request, batch, ranks, minutes, planned)
    made = training_of(config.override({"training": training}), texts)
    pieces = planning.Pieces(made.learned.per_epoch, made.seconds_per_step, made.seconds_at_end)
    made = training_of(config.override({"training": planning.with_steps(training, request, pieces, ranks)}), texts)
    assert made.judged  # refuses text about which nothing can be asked, before training and not in its first evaluation
    return made
