"""Training a model that says what a text is: a class, several, or a number; for one text or a pair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from weft.checkpoints import RunDirectory
from weft.data import ByLength, Examples
from weft.data.keyed_draws import KeyedDraws
from weft.data.subword_regularisation import SubwordRegularisation
from weft.errors import ConfigError
from weft.generation import Weights
from weft.models import (
    Budget,
    ClassifiesImages,
    ClassifiesText,
    ModelConfig,
    SizePreset,
    Sizing,
    named,
    preset,
    sizing_of,
)
from weft.models.capabilities import Capability
from weft.objectives import Classification, ClassifyConfig, LabelledRow
from weft.tasks import planning
from weft.tasks.classify import evaluator
from weft.tasks.classify.answers import as_used
from weft.tasks.classify.classifier import Classifier
from weft.tasks.classify.classifiers import TextClassifier
from weft.tasks.classify.examples import answers_shown
from weft.tasks.classify.tables import TableConfig, Tables, check_same, read_tables
from weft.tasks.classify.words import ClassifyWords
from weft.tasks.encoded import Spelling, encoded
from weft.tasks.experiment import NO_ORIGIN, Experiment, Origin
from weft.tasks.held_out import HeldOut, some_of
from weft.tasks.preparation import ENCODER_TOKENS, learned_tokenizer
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sources import DEMO, are_images
from weft.tasks.start import Start
from weft.tasks.task import Task
from weft.tasks.vocabulary import encoder_tokenizer_fields
from weft.tasks.words import Words
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
    capabilities: ClassVar[tuple[Capability, ...]] = (ClassifiesText,)
    tokenizer = "wordpiece"
    settings = ClassifyRunConfig
    data = TableConfig
    objective = ClassifyConfig
    words: ClassVar[Words] = ClassifyWords()
    turn = 4
    judged_by_text = True
    opens = TextClassifier

    def recognises(self, paths: Sequence[str], columns: Collection[str]) -> bool:
        """Any table; one that cannot be read is refused with a reason when it is."""
        return True

    def claims(self, request: Request) -> bool:
        return list(request.data) != [DEMO] and not are_images(request.data, request.text)

    def check(self, request: Request) -> None:
        if are_images(request.data, request.text):
            raise ConfigError(
                f"{request.data[0]} holds images, and --model {request.model or self.family} reads texts",
                expected=named(ClassifiesImages),
            )
        super().check(request)

    def check_start(self, run: Run) -> None:
        if run.model_config.kind not in self.families:
            run.check_reads()

    def plan(self, origin: Origin) -> Labelled:
        request, start, report = origin.asked, origin.start, origin.report
        tables = read_tables(request.data_config(self.data))
        for text in tables.warnings if origin.ranks.is_first else ():
            report({"event": "warning", "text": text})
        tokenizer_config = None
        if start is None:
            fields = encoder_tokenizer_fields(request.tokenizer, tables.config.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.from_config(fields))
            pieces = [part for parts in tables.train.inputs() for part in parts]
            tokenizer = learned_tokenizer(tokenizer_config, pieces, sum(map(len, pieces)), report, ENCODER_TOKENS)
        else:
            tokenizer = start.tokenizer
        report({"event": "phase", "name": "planning"})
        return _plan(origin, tables, tokenizer, tokenizer_config)

    def reopen(self, config: ClassifyRunConfig, origin: Origin) -> Labelled:
        assert origin.run is not None
        tables = read_tables(config.data)
        check_same(config.data, tables.config)
        return Labelled(config, tables, Tokenizer.load(origin.run.tokenizer_file), origin)

    def read_data(self, config: TableConfig) -> Tables:
        return read_tables(config)

    def as_used(self, model: nn.Module, run: Run) -> nn.Module:
        assert isinstance(run.config.data, TableConfig)
        return as_used(model, run.directory.path, run.config.data)

    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        return Classifier(run).evaluate(*data)

    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        return {} if data() is None else {"kind": "answers", **answers_shown(run, data())}


TASK = Classify()


@dataclass
class Labelled(Experiment):
    """Labelled texts as tokens, read in batches of similar length."""

    task_name = TASK.name
    concludes = True
    config: ClassifyRunConfig
    tables: Tables
    tokenizer: Tokenizer
    origin: Origin = NO_ORIGIN

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
    def parts(self) -> dict[str, evaluator.EvaluationSplit]:
        """Train, validation and test, as tokens and values."""
        given = {"train": self.tables.train, "validation": self.tables.validation, "test": self.tables.test}
        return {name: self._judged(part) for name, part in given.items() if part is not None}

    def _judged(self, examples: Examples) -> evaluator.EvaluationSplit:
        assert examples.labels is not None
        return evaluator.EvaluationSplit(
            encoded(self.tokenizer, examples.inputs(), self.length),
            self.tables.labels.encode(examples.labels, examples.lines, examples.name),
        )

    @cached_property
    def judge(self) -> evaluator.Evaluator:
        data = self.config.data
        return evaluator.Evaluator(
            self.tables.labels, data.mean, data.deviation, torch.device(self.config.training.device)
        )

    @cached_property
    def order(self) -> ByLength:
        training = self.config.training
        return ByLength(self.parts["train"].inputs.lengths, training.batch, training.seed)

    @cached_property
    def spelling(self) -> Spelling:
        share, chance = self.config.objective.respelling, KeyedDraws(self.config.training.seed)
        return Spelling(SubwordRegularisation.of(self.tokenizer), chance, share, self.length)

    @cached_property
    def targets(self) -> np.ndarray:
        return self._targets("train")

    def samples(self, numbers: np.ndarray) -> LabelledRow:
        places = self.order[numbers]
        row, now = self.parts["train"].inputs.varied(places, numbers, self.spelling)
        return LabelledRow(row, torch.from_numpy(self.targets[places[now]]))

    @property
    def per_epoch(self) -> int:
        return len(self.tables.train)

    def held_out(self) -> HeldOut:
        texts, labels = self.parts["validation"].inputs, torch.from_numpy(self._targets("validation"))
        rows = [LabelledRow(texts.row([n]), labels[n : n + 1]) for n in some_of(len(texts.ids))]
        return HeldOut(self.loss, rows)

    def _targets(self, part: str) -> np.ndarray:
        """Labels as the loss wants them: numbers by their deviation from the mean."""
        values, data = self.parts[part].values, self.config.data
        if self.tables.labels.kind == "number":
            return ((values - data.mean) / data.deviation).astype(np.float32)
        return values

    def loss(self, model: nn.Module, batch: LabelledRow) -> tuple[Any, ...]:
        return self.classification(model, batch)

    @cached_property
    def classification(self) -> Classification:
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
        return evaluator.weights_for(self.config.objective.weights, self.parts["train"].values, self.tables.labels)

    @property
    def judged_tokens(self) -> int:
        """What is judged is read once for the temperature and once to measure."""
        return 2 * sum(int(part.inputs.lengths.sum()) for name, part in self.parts.items() if name != "train")

    @property
    def most(self) -> int:
        return round(self.epochs * self.per_epoch / self.config.training.batch)

    @property
    def has_test(self) -> bool:
        return self.tables.test is not None

    def measure(self, model: nn.Module, part: str, ranks: Ranks) -> dict[str, Any]:
        return self.judge.measure(model, self.parts[part], whole=part == "test")

    def conclude(self, model: nn.Module, run: RunDirectory) -> dict[str, Any]:
        return self.judge.conclude(model, self.parts["validation"], run.model_file)

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


def _plan(origin: Origin, tables: Tables, tokenizer: Tokenizer, tokenizer_config: TokenizerConfig | None) -> Labelled:
    """The model, what the user set on top, then the number of steps."""
    request, start, ranks = origin.asked, origin.start, origin.ranks
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
    labelled = Labelled(config, tables, tokenizer, origin)
    rows = len(tables.train)
    pieces = planning.Pieces(rows, labelled.seconds_per_step, labelled.seconds_at_end, labelled.epochs)
    training = planning.with_steps(training, request, pieces, ranks)
    if not training.evaluate_every:
        each = max(1, rows // training.batch)
        training = training.override({"evaluate_every": max(1, min(each, training.steps // 4))})
    return replace(labelled, config=config.override({"training": training}))


def _is_finished(start: Start | None) -> bool:
    """Whether training begins with a model that was trained long before; ours have only read a little."""
    return start is not None and not getattr(start.model, "zero_outputs", False)


def _learning(model: ModelConfig, start: Start | None) -> dict[str, Any]:
    """As the family learns a small table best; a finished model is only bent."""
    if not _is_finished(start):
        return dict(_sizing(model.kind).training)
    rate = 0.04 / getattr(model, "width", 768)  # 5e-5 for BERT's width, as its authors advise
    return {"optimizer": AdamWConfig(learning_rate=rate), "warmup": 0.1, "decay": 0.9}


def _objective(model: ModelConfig, start: Start | None) -> ClassifyConfig:
    """A finished model is not shown words that are hidden or spelled otherwise: it knows enough of them."""
    if _is_finished(start):
        return ClassifyConfig(respelling=0.0, word_dropout=0.0)
    return ClassifyConfig().override(_sizing(model.kind).objective)


def _model(request: Request, tokenizer: Tokenizer, start: Start | None, tables: Tables) -> ModelConfig:
    """With a head for these labels."""
    head = {"head": _head(tables)}
    if start is not None:
        fields = {} if _is_finished(start) else {"dropout": _size(start.model.kind).model["dropout"]}
        return start.model.override(fields | head)
    family, fields = preset(request.model or TASK.family)
    model = ModelConfig.from_config({"kind": family, **fields, "vocab_size": tokenizer.vocab_size})
    if fields:
        return model.override(head)
    longest = {} if model.context is None else {"max_length": tables.config.length or LONGEST}
    paired = {} if tables.config.pair is None else _sizing(family).pairs
    return model.override({**_size(family).model, **paired, **longest, **head})


def _sizing(family: str) -> Sizing:
    return sizing_of(family, ClassifiesText)


def _size(family: str) -> SizePreset:
    """A small table is learned by the smallest model, however much time there is."""
    return _sizing(family).choose(Budget(0.0))


def _length(model: ModelConfig, wanted: int | None) -> int:
    """Tokens of a text that are read: as many as are wanted and as it can."""
    length = wanted or LONGEST
    return min(length, model.context or length)


def _head(tables: Tables) -> dict[str, Any]:
    """A score for each of these labels."""
    labels = tables.labels
    names = tuple(labels.classes)
    return {"kind": "classes", "classes": max(1, len(names)), "labels": names, "several": labels.kind == "several"}
