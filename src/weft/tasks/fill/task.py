"""Pretraining on raw text: words are hidden and pairs of sentences asked about (a bert), or spans are (a t5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from weft.data.marks import Marks
from weft.data.pretraining import ENTAILMENT, MASKED, PretrainingSamples
from weft.data.spans import SpanMarks
from weft.errors import ConfigError, DataError
from weft.generation import Weights
from weft.models import Budget, FillsMasks, FillsSpans, ModelConfig, learns, preset, sizing_of
from weft.objectives import ObjectiveConfig, PretrainingBatch, pretraining_loss
from weft.tasks import planning
from weft.tasks.embed.text_encoder import TextEncoder
from weft.tasks.examples import inside
from weft.tasks.experiment import NO_ORIGIN, Origin
from weft.tasks.fill.examples import collect_gaps
from weft.tasks.fill.filler import refusal
from weft.tasks.fill.mask_filler import MaskFiller
from weft.tasks.fill.spans import SPAN_TOKENS, SpanPretraining
from weft.tasks.fill.texts import FillConfig, FillDataConfig, FillTexts, read_fill_source, read_texts
from weft.tasks.fill.training import LENGTH_SAMPLES, FillTraining
from weft.tasks.fill.words import FillWords
from weft.tasks.generate.overlap import overlap_warnings
from weft.tasks.preparation import ENCODER_TOKENS, train_tokenizer
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.sources import Source, are_tables, check_unchanged
from weft.tasks.start import DEFAULT_WINDOW_TOKENS, FINE_TUNING_RATES
from weft.tasks.task import Task
from weft.tasks.vocabulary import encoder_tokenizer_fields, pair_tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import ALONE, TrainingConfig
from weft.training.freezing import freeze

DEFAULT_MINUTES = 5.0  # when the user says nothing
SPANS_TOKENIZER = "unigram"  # as in the paper


class Fill(Task):
    """Hide words of a text and learn to fill them in; ask about pairs of sentences."""

    name = "fill"
    capabilities = (FillsMasks, FillsSpans)
    tokenizer = "wordpiece"
    settings = FillConfig
    data = FillDataConfig
    objective = ObjectiveConfig
    words = FillWords()
    opens = MaskFiller

    def check(self, request: Request) -> None:
        if request.start is not None:
            super().check(request)
            _objective(request, None)  # what it begins from is not known yet
            return
        family, _ = preset(request.model or self.family)
        if learns(family, FillsSpans):
            request = replace(request, tokenizer=request.tokenizer or SPANS_TOKENIZER)
        super().check(request)
        _objective(request, family)
        if learns(family, FillsSpans):
            tokenizer = request.apply("tokenizer", TokenizerConfig.from_config(cast("str", request.tokenizer)))
            if not tokenizer.gives_text_back:
                raise ConfigError(
                    f"the tokenizer {tokenizer.kind!r} is not for a {family}, which writes: it does not give text back",
                    expected="unigram, bpe, characters, words or bytes",
                )

    def check_start(self, run: Run) -> None:
        if FillsSpans in run.model_config.provides:
            SpanMarks.of(run.tokenizer)  # refuses one without sentinels
        else:
            run.check_reads()

    def plan(self, origin: Origin) -> FillTraining:
        request, start, report = origin.asked, origin.start, origin.report
        family = preset(request.model or self.family)[0] if start is None else start.model.kind
        objective = _objective(request, family)
        config = request.data_config(self.data)
        source = read_fill_source(config)
        for text in overlap_warnings(source) if origin.ranks.is_first else ():
            report({"event": "warning", "text": text})
        tokenizer_config = None
        if start is None:
            fields = _tokenizer_fields(family, request.tokenizer, source.train.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.from_config(fields))
            special = SPAN_TOKENS if learns(family, FillsSpans) else ENCODER_TOKENS
            tokenizer = train_tokenizer(tokenizer_config, source, report, special)
        else:
            tokenizer = start.tokenizer
        texts = read_texts(source, config, tokenizer, report)
        report({"event": "phase", "name": "planning"})
        return _plan(origin, texts, tokenizer_config, objective)

    def reopen(self, config: FillConfig, origin: Origin) -> FillTraining:
        assert origin.run is not None
        source = read_fill_source(config.data)
        if config.data.fingerprint.partition("|")[2] != source.config.fingerprint.partition("|")[2]:
            raise DataError(
                f"the pairs in {config.data.pairs} have changed since this run began",
                advice="put the old table back, or train a new run",
            )
        check_unchanged(config.data, source.config)
        tokenizer = Tokenizer.load(origin.run.tokenizer_file)
        return training_of(config, read_texts(source, config.data, tokenizer, origin.report), origin)

    def read_data(self, config: FillDataConfig) -> Source:
        return read_fill_source(config)

    def opens_as(self, config: ModelConfig) -> type[Run]:
        """A model that only reads, without a head for what is missing, gives vectors."""
        return MaskFiller if {FillsMasks, FillsSpans} & config.provides else TextEncoder

    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        return evaluate_fill(run, *data)

    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        if not {FillsMasks, FillsSpans} & run.model_config.provides:
            return {}
        found = collect_gaps(run, data())
        return {"kind": "gaps", "examples": found, "inside": inside(found, "best")}


TASK = Fill()


def _objective(request: Request, family: str | None) -> ObjectiveConfig:
    """What is learned: by the family, with what the user set on top."""
    spans = learns(family, FillsSpans)
    objective = request.apply("objective", ObjectiveConfig.usual(spans=spans))
    if family is not None:
        objective.check_family(family, spans=spans)
    asked, given = ENTAILMENT in objective.tasks, request.data_config(TASK.data).pairs
    if asked != bool(given):
        raise ConfigError(
            f"--pairs {given} and nothing to ask about them" if given else "entailment without labelled pairs",
            expected="both --pairs TABLE and entailment in objective.tasks, or neither",
            advice="--pairs nli.csv --set objective.tasks=masked,entailment",
        )
    return objective


def _tokenizer_fields(family: str, kind: str | None, characters: int) -> dict[str, Any]:
    if learns(family, FillsSpans):
        return pair_tokenizer_fields(kind or SPANS_TOKENIZER, characters)
    return encoder_tokenizer_fields(kind, characters)


# -- training ---------------------------------------------------------------------------------


def training_of(config: FillConfig, texts: FillTexts, origin: Origin = NO_ORIGIN) -> FillTraining:
    """By what the model can do."""
    return (SpanPretraining if FillsSpans in config.model.provides else Pretraining)(config, texts, origin)


@dataclass
class Pretraining(FillTraining):
    """Stretches of sentences with hidden tokens, and pairs with questions about them."""

    def loss(self, model: nn.Module, batch: Any) -> tuple[Any, ...]:
        return pretraining_loss(model, batch)

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
        return float(self.learned.batch(np.arange(min(LENGTH_SAMPLES, self.learned.per_epoch))).lengths.mean())


def _model(request: Request, texts: FillTexts, sizes: Mapping[str, Any]) -> ModelConfig:
    """A new model, of the named size or else of these sizes."""
    family, fields = preset(request.model or TASK.family)
    needs: dict[str, Any] = {"vocab_size": texts.tokenizer.vocab_size}
    if learns(family, FillsSpans):
        needs["start"] = texts.tokenizer.special.pad  # as in the paper
    model = ModelConfig.from_config({"kind": family, **fields, **needs})
    return model.override({} if fields else sizes)


def _plan(
    origin: Origin, texts: FillTexts, tokenizer_config: TokenizerConfig | None, objective: ObjectiveConfig
) -> FillTraining:
    """Sizes by the ladder or by where it starts, what the user set on top, then the number of steps by measuring."""
    request, start, ranks = origin.asked, origin.start, origin.ranks
    minutes = request.minutes if request.steps or request.epochs or request.minutes else DEFAULT_MINUTES
    speed = ranks.agree(planning.machine_speed(), torch.device(request.device))
    family = preset(request.model or TASK.family)[0] if start is None else str(start.model.kind)
    sizing = sizing_of(family, TASK.capability(family))
    size = sizing.choose(Budget(speed * 60 * (minutes or DEFAULT_MINUTES)))
    data = cast("FillDataConfig", texts.source.config)
    if start is None:
        model = _model(request, texts, size.model)
    else:
        model = start.model
        data = data.override({"length": data.length or DEFAULT_WINDOW_TOKENS})
    if learns(family, FillsMasks):
        classes = len(texts.pairs["train"].classes) if texts.pairs else 2
        model = model.override({"head": objective.head(classes)})
    model = request.apply("model", model)
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    planned = FINE_TUNING_RATES if start is not None else sizing.training
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
    made = training_of(config, texts, origin)
    batch = max(1, round(size.batch * size.length / made.usual))
    training = planning.first_training(request, batch, ranks, minutes, planned)
    made = replace(made, config=config.override({"training": training}))
    pieces = planning.Pieces(made.per_epoch, made.seconds_per_step, made.seconds_at_end)
    training = planning.with_steps(training, request, pieces, ranks)
    made = replace(made, config=config.override({"training": training}))
    assert (
        made.evaluation_samples
    )  # refuses text from which no sample can be made before training, not in its first evaluation
    return made


# -- a run of it ------------------------------------------------------------------------------


def evaluate_fill(run: Run, *data: str) -> dict[str, Any]:
    """Loss, and how often each task is right: on the run's test text if it has one, its validation text, or other text.

    A run that only learned about pairs is measured too. Other text has no labelled pairs: entailment is left out.
    """
    config = None if run.is_imported else run.config
    if config is None and FillsMasks not in run.model_config.provides:
        raise refusal(run)
    if config is None and not data:
        raise DataError(
            f"{run.directory.path} was not trained here: it has no text of its own",
            expected="text to measure it on",
            advice=f"weft evaluate {run.directory.path} book.txt",
        )
    assert config is None or isinstance(config, FillConfig)
    if config is None or data:
        config = FillConfig(
            model=run.model_config,
            tokenizer=None,
            data=_other_data(data, None if config is None else config.data),
            training=TrainingConfig(steps=1, batch=1, device=str(run.device)),
            objective=ObjectiveConfig() if config is None else _without_entailment(config.objective),
        )
    texts = read_texts(read_fill_source(config.data), config.data, run.tokenizer, lambda _: None)
    part = "test" if "test" in texts.parts else "validation"
    metrics = training_of(config, texts).measure(run.model, part, ALONE)
    told = {name.removeprefix("validation_"): value for name, value in metrics.items()}
    return {**told, "tokens": len(texts.parts[part].ids), "measured_on": "data" if data else part}


def _without_entailment(objective: ObjectiveConfig) -> ObjectiveConfig:
    """What can be asked about a text without labelled pairs."""
    tasks = tuple(task for task in objective.tasks if task != ENTAILMENT)
    if not tasks:
        raise DataError("entailment is measured on labelled pairs", expected="no other text: the run has its own")
    return objective.override({"tasks": tasks} | ({} if set(tasks) - {MASKED} else {"pair_weight": None}))


def _other_data(paths: tuple[str, ...], known: FillDataConfig | None) -> FillDataConfig:
    """Other text, read as the run read its own."""
    length, column = (None, None) if known is None else (known.length, known.text)
    return FillDataConfig(train=paths, validation=paths, length=length, text=column if are_tables(paths) else None)
