"""Training a model that says what a text is: a class, several, or a number; for one text or a pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from weft.checkpoints import RunDirectory
from weft.data import ByLength, Examples
from weft.data.chance import Chance
from weft.data.respelling import Respelling
from weft.errors import ConfigError
from weft.models import ModelConfig, preset
from weft.objectives import Classification, ClassifyConfig, LabelledRow
from weft.tasks import judging, planning
from weft.tasks.encoded import Spelling, encoded
from weft.tasks.held_out import HeldOut, some_of
from weft.tasks.job import Job, Report
from weft.tasks.preparation import ENCODER_TOKENS, learned_tokenizer
from weft.tasks.readers import READERS
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sources import are_pictures
from weft.tasks.start import Start
from weft.tasks.tables import TableConfig, Tables, check_same, read_tables
from weft.tasks.task import Prepared, Task
from weft.tasks.vocabulary import encoder_tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import AdamWConfig, Ranks
from weft.training.freezing import freeze

STEPS = 1500  # that a small table is worth, if it is not read more than MOST times for it
FEWEST, MOST = 4.0, 30.0  # readings of a table when the user says nothing
MINUTES = 10.0  # and not longer than this
LONGEST = 256  # tokens of a text that are read, unless the user says otherwise
BATCH = 32


class ClassifyRunConfig(RunConfig):
    """All settings of a run that learns to classify."""

    data: TableConfig
    objective: ClassifyConfig = ClassifyConfig()


class Classify(Task):
    """Learn from labelled texts what a text is."""

    name = "classify"
    family = "bert"
    families = tuple(READERS)
    tokenizer = "wordpiece"
    settings = ClassifyRunConfig
    data = TableConfig
    objective = ClassifyConfig
    on_top: ClassVar[Mapping[str, Any]] = {"head": {"kind": "classes"}}

    def check(self, request: Request) -> None:
        if are_pictures(request.data, request.text):
            raise ConfigError(
                f"{request.data[0]} holds pictures, and --model {request.model or self.family} reads texts",
                expected="vit, davit, convnext or resnet",
            )
        super().check(request)

    def check_start(self, run: Run) -> None:
        if run.model_config.kind not in self.families:
            run.check_reads()

    def prepare(self, request: Request, start: Start | None, ranks: Ranks, report: Report) -> Labelled:
        tables = read_tables(request.data_config(self.data))
        for text in tables.warnings if ranks.is_first else ():
            report({"event": "warning", "text": text})
        tokenizer_config = None
        if start is None:
            fields = encoder_tokenizer_fields(request.tokenizer, tables.config.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.pick(fields))
            pieces = [part for parts in tables.train.inputs() for part in parts]
            tokenizer = learned_tokenizer(tokenizer_config, pieces, sum(map(len, pieces)), report, ENCODER_TOKENS)
        else:
            tokenizer = start.tokenizer
        report({"event": "phase", "name": "planning"})
        return _plan(request, tables, tokenizer, tokenizer_config, start, ranks)

    def reopen(self, config: ClassifyRunConfig, run: RunDirectory, report: Report) -> Labelled:
        tables = read_tables(config.data)
        check_same(config.data, tables.config)
        return Labelled(config, tables, Tokenizer.load(run.tokenizer_file))


TASK = Classify()


@dataclass
class Labelled(Prepared):
    """Labelled texts as tokens, read in batches of similar length."""

    config: ClassifyRunConfig
    tables: Tables
    tokenizer: Tokenizer

    @property
    def length(self) -> int:
        """Tokens of a text that are read."""
        return _length(self.config.model, self.config.data.length)

    @property
    def epochs(self) -> float:
        """Readings of the table that are worth it."""
        if self.config.start is not None and not getattr(self.config.model, "zero_outputs", False):
            # a finished model is soon bent
            return FEWEST
        return min(MOST, max(FEWEST, STEPS * self.config.training.batch / len(self.tables.train)))

    @cached_property
    def parts(self) -> dict[str, judging.Judged]:
        """Train, validation and test, as tokens and values."""
        given = {"train": self.tables.train, "validation": self.tables.validation, "test": self.tables.test}
        return {name: self._judged(part) for name, part in given.items() if part is not None}

    def _judged(self, examples: Examples) -> judging.Judged:
        assert examples.labels is not None
        return judging.Judged(
            encoded(self.tokenizer, examples.inputs(), self.length),
            self.tables.labels.encode(examples.labels, examples.lines, examples.name),
        )

    @cached_property
    def judge(self) -> judging.Judge:
        data = self.config.data
        return judging.Judge(self.tables.labels, data.mean, data.deviation, torch.device(self.config.training.device))

    def samples(self) -> Callable[[np.ndarray], LabelledRow]:
        texts, labels, training = self.parts["train"].inputs, self._targets(), self.config.training
        order = ByLength(texts.lengths, training.batch, training.seed)
        share = self.config.objective.respelling
        spelling = Spelling(Respelling.of(self.tokenizer), Chance(training.seed), share, self.length)

        def batch(numbers: np.ndarray) -> LabelledRow:
            row, now = texts.varied(order[numbers], numbers, spelling)
            return LabelledRow(row, torch.from_numpy(labels[order[numbers][now]]))

        return batch

    def held_out(self) -> HeldOut:
        texts, labels = self.parts["validation"].inputs, torch.from_numpy(self._targets("validation"))
        rows = [LabelledRow(texts.row([n]), labels[n : n + 1]) for n in some_of(len(texts.ids))]
        return HeldOut(self.loss, rows)

    def _targets(self, part: str = "train") -> np.ndarray:
        """Labels as the loss wants them: numbers by their deviation from the mean."""
        values, data = self.parts[part].values, self.config.data
        if self.tables.labels.kind == "number":
            return ((values - data.mean) / data.deviation).astype(np.float32)
        return values

    @cached_property
    def loss(self) -> Classification:
        objective, special = self.config.objective, self.tokenizer.special
        kept = [token for token in (special.classify, special.separate, special.pad) if token is not None]
        hidden = special.mask if special.mask is not None else special.unknown
        return Classification(
            self.tables.labels.kind,  # type: ignore[arg-type]
            weights=self.weights,
            smoothing=objective.smoothing,
            word_dropout=objective.word_dropout if hidden is not None else 0.0,
            hidden=hidden or 0,
            whole=kept,
        )

    @cached_property
    def weights(self) -> list[float] | None:
        """One for each class, where they are wanted."""
        return judging.weights_for(self.config.objective.weights, self.parts["train"].values, self.tables.labels)

    @property
    def judged_tokens(self) -> int:
        """What is judged is read once for the temperature and once to measure."""
        return 2 * sum(int(part.inputs.lengths.sum()) for name, part in self.parts.items() if name != "train")

    def job(self, sample: str | None = None) -> Job:
        judge = self.judge

        def conclude(model: nn.Module, run: RunDirectory) -> dict[str, Any]:
            return judge.conclude(model, self.parts["validation"], run.model_file)

        def measure(model: nn.Module, part: str, _: Ranks) -> dict[str, Any]:
            return judge.measure(model, self.parts[part], whole=part == "test")

        return Job(
            task=TASK.name,
            config=self.config,
            tokenizer=self.tokenizer,
            samples=self.samples(),
            loss=self.loss,
            measure=measure,
            per_epoch=len(self.tables.train),
            most=round(self.epochs * len(self.tables.train) / self.config.training.batch),
            seconds_per_step=self.seconds_per_step,
            seconds_at_end=self.seconds_at_end,
            has_test=self.tables.test is not None,
            conclude=conclude,
        )

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        told = []
        if plan["examples"] < 100:
            told.append(f"{plan['examples']} examples are very little to learn from")
        if plan["cut"] > 0.01:
            more = f"; --set data.length={2 * plan['length']} reads more"
            most = self.config.model.context
            can_read_more = self.config.start is None or most is None or plan["length"] < most
            text = f"{plan['cut']:.0%} of the texts have more than {plan['length']} tokens and are cut"
            told.append(text + (more if can_read_more else ""))
        return told

    def describe(self) -> dict[str, Any]:
        training, labels, rows = self.config.training, self.tables.labels, len(self.tables.train)
        texts = self.parts["train"].inputs
        return {
            "columns": self.tables.why,
            "labels": labels.kind,
            "classes": len(labels.classes),
            "weighted": self.weights is not None,
            "examples": rows,
            **{f"{name}_examples": len(part.values) for name, part in self.parts.items() if name != "train"},
            "cut": texts.cut,
            **self.common_facts(max(1, round(float(texts.lengths.mean()))), training.steps * training.batch / rows),
        }


def _plan(
    request: Request,
    tables: Tables,
    tokenizer: Tokenizer,
    tokenizer_config: TokenizerConfig | None,
    start: Start | None,
    ranks: Ranks,
) -> Labelled:
    """The model, what the user set on top, then the number of steps."""
    model = request.apply("model", _model(request, tokenizer, start, tables))
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    minutes = request.minutes if request.steps or request.epochs or request.minutes else MINUTES
    training = planning.first_training(request, BATCH, ranks, minutes, _learning(model, start))
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    config = ClassifyRunConfig(
        model=model,
        tokenizer=tokenizer_config,
        data=tables.config.override({"length": _length(model, tables.config.length)}),
        training=training,
        start=request.start,
        objective=request.apply("objective", _objective(model, start)),
    )
    labelled = Labelled(config, tables, tokenizer)
    rows = len(tables.train)
    pieces = planning.Pieces(rows, labelled.seconds_per_step, labelled.seconds_at_end, labelled.epochs)
    training = planning.with_steps(training, request, pieces, ranks)
    if not training.evaluate_every:
        each = max(1, rows // training.batch)
        training = training.override({"evaluate_every": max(1, min(each, training.steps // 4))})
    return Labelled(config.override({"training": training}), tables, tokenizer)


def _is_finished(start: Start | None) -> bool:
    """Whether training begins with a model that was trained long before; ours have only read a little."""
    return start is not None and not getattr(start.model, "zero_outputs", False)


def _learning(model: ModelConfig, start: Start | None) -> dict[str, Any]:
    """As the family learns a small table best; a finished model is only bent."""
    if not _is_finished(start):
        return dict(READERS[model.kind].learning)
    rate = 0.04 / getattr(model, "width", 768)  # 5e-5 for BERT's width, as its authors advise
    return {"optimizer": AdamWConfig(learning_rate=rate), "warmup": 0.1, "decay": 0.9}


def _objective(model: ModelConfig, start: Start | None) -> ClassifyConfig:
    """A finished model is not shown words that are hidden or spelled otherwise: it knows enough of them."""
    if _is_finished(start):
        return ClassifyConfig(respelling=0.0, word_dropout=0.0)
    return ClassifyConfig().override(READERS[model.kind].objective)


def _model(request: Request, tokenizer: Tokenizer, start: Start | None, tables: Tables) -> ModelConfig:
    """With a head for these labels."""
    head = {"head": _head(tables)}
    if start is not None:
        fields = {} if _is_finished(start) else {"dropout": READERS[start.model.kind].sizes["dropout"]}
        return start.model.override(fields | head)
    family, fields = preset(request.model or TASK.family)
    model = ModelConfig.pick({"kind": family, **fields, "vocab_size": tokenizer.vocab_size})
    if fields:
        return model.override(head)
    longest = {} if model.context is None else {"max_length": tables.config.length or LONGEST}
    paired = {} if tables.config.pair is None else READERS[family].paired
    return model.override({**READERS[family].sizes, **paired, **longest, **head})


def _length(model: ModelConfig, wanted: int | None) -> int:
    """Tokens of a text that are read: as many as are wanted and as it can."""
    length = wanted or LONGEST
    return min(length, model.context or length)


def _head(tables: Tables) -> dict[str, Any]:
    """A score for each of these labels."""
    labels = tables.labels
    names = tuple(labels.classes)
    return {"kind": "classes", "classes": max(1, len(names)), "labels": names, "several": labels.kind == "several"}
