"""Training a model that says what a text is: a class, several, or a number; for one text or a pair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from weft.checkpoints import RunDirectory
from weft.data import Examples
from weft.data.keyed_draws import KeyedDraws
from weft.data.subword_regularisation import SubwordRegularisation
from weft.errors import ConfigError
from weft.generation import Weights
from weft.models import ClassifiesImages, ClassifiesText, Sizing, named
from weft.models.capabilities import Capability
from weft.objectives import Classification, ClassifyConfig, LabelledRow
from weft.tasks.classify import evaluator
from weft.tasks.classify.answers import as_used
from weft.tasks.classify.classifier import Classifier
from weft.tasks.classify.classifiers import TextClassifier
from weft.tasks.classify.examples import collect_answers
from weft.tasks.classify.tables import TableConfig, Tables, check_same, read_tables
from weft.tasks.classify.words import ClassifyWords
from weft.tasks.encoded import Spelling, encoded
from weft.tasks.encoder_task import EncoderExperiment, EncoderTask
from weft.tasks.experiment import Origin
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sources import DEMO, are_images
from weft.tasks.validation_inputs import ValidationInputs, some_of
from weft.tasks.words import Words
from weft.text import Tokenizer
from weft.training import Ranks


class ClassifyRunConfig(RunConfig):
    """All settings of a run that learns to classify."""

    data: TableConfig
    objective: ClassifyConfig = ClassifyConfig()


class Classify(EncoderTask):
    """Learn from labelled texts what a text is."""

    name = "classify"
    capabilities: ClassVar[tuple[Capability, ...]] = (ClassifiesText,)
    settings = ClassifyRunConfig
    data = TableConfig
    objective = ClassifyConfig
    finished: ClassVar[Mapping[str, Any]] = {"word_dropout": 0.0, "respelling": 0.0}
    words: ClassVar[Words] = ClassifyWords()
    turn = 4
    evaluated_by_text = True
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

    def experiment(self, config: ClassifyRunConfig, data: Tables, tokenizer: Tokenizer, origin: Origin) -> Labelled:
        return Labelled(config, data, tokenizer, origin)

    def read_data(self, config: TableConfig) -> Tables:
        return read_tables(config)

    def check_same(self, recorded: TableConfig, found: TableConfig) -> None:
        check_same(recorded, found)

    def texts(self, data: Tables) -> list[str]:
        return [part for parts in data.train.inputs() for part in parts]

    def head(self, data: Tables) -> dict[str, Any]:
        """A score for each of these labels."""
        labels = data.labels
        names = tuple(labels.classes)
        return {
            "kind": "classes",
            "classes": max(1, len(names)),
            "labels": names,
            "multilabel": labels.kind == "multilabel",
        }

    def size_fields(self, sizing: Sizing, data: Tables) -> Mapping[str, Any]:
        return {} if data.config.pair is None else sizing.pairs

    def as_used(self, model: nn.Module, run: Run) -> nn.Module:
        assert isinstance(run.config.data, TableConfig)
        return as_used(model, run.directory.path, run.config.data)

    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        return Classifier(run).evaluate(*data)

    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        return {} if data() is None else {"kind": "answers", **collect_answers(run, data())}


TASK = Classify()


@dataclass
class Labelled(EncoderExperiment):
    """Labelled texts as tokens."""

    task_name = TASK.name
    concludes = True
    config: ClassifyRunConfig
    data: Tables

    @property
    def lengths(self) -> NDArray[np.integer]:
        return self.parts["train"].inputs.lengths

    @cached_property
    def parts(self) -> dict[str, evaluator.EvaluationSplit]:
        """Train, validation and test, as tokens and values."""
        given = {"train": self.data.train, "validation": self.data.validation, "test": self.data.test}
        return {name: self._encode_split(part) for name, part in given.items() if part is not None}

    def _encode_split(self, examples: Examples) -> evaluator.EvaluationSplit:
        assert examples.labels is not None
        return evaluator.EvaluationSplit(
            encoded(self.tokenizer, examples.inputs(), self.length),
            self.data.labels.encode(examples.labels, examples.lines, examples.name),
        )

    @cached_property
    def judge(self) -> evaluator.Evaluator:
        data = self.config.data
        return evaluator.Evaluator(
            self.data.labels, data.mean, data.deviation, torch.device(self.config.training.device)
        )

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

    def validation_inputs(self) -> ValidationInputs:
        texts, labels = self.parts["validation"].inputs, torch.from_numpy(self._targets("validation"))
        rows = [LabelledRow(texts.row([n]), labels[n : n + 1]) for n in some_of(len(texts.ids))]
        return ValidationInputs(self.loss, rows)

    def _targets(self, part: str) -> np.ndarray:
        """Labels as the loss wants them: numbers by their deviation from the mean."""
        values, data = self.parts[part].values, self.config.data
        if self.data.labels.kind == "regression":
            return ((values - data.mean) / data.deviation).astype(np.float32)
        return values

    def loss(self, model: nn.Module, batch: LabelledRow) -> tuple[Any, ...]:
        return self.classification(model, batch)

    @cached_property
    def classification(self) -> Classification:
        return Classification(
            self.data.labels.kind,  # type: ignore[arg-type]
            weights=self.weights,
            smoothing=self.config.objective.smoothing,
            **self.dropping_words(),
        )

    @cached_property
    def weights(self) -> list[float] | None:
        """One for each class, where they are wanted."""
        return evaluator.weights_for(self.config.objective.weights, self.parts["train"].values, self.data.labels)

    @property
    def evaluation_tokens(self) -> int:
        """The validation examples are read once for the temperature and once to measure."""
        return 2 * sum(int(part.inputs.lengths.sum()) for name, part in self.parts.items() if name != "train")

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
        labels = self.data.labels
        return {
            "columns": self.data.why,
            "labels": labels.kind,
            "classes": len(labels.classes),
            "weighted": self.weights is not None,
            "examples": len(self.data.train),
            **{f"{name}_examples": len(part.values) for name, part in self.parts.items() if name != "train"},
            "cut": self.parts["train"].inputs.cut,
            **self.text_facts(),
        }
