"""Training a model that says what an image shows: a class, several, or a number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from weft.checkpoints import RunDirectory
from weft.cost import cost_of
from weft.data.augmentation import Augmentation, mirrors_well, partners, strength_for
from weft.data.order import in_order
from weft.errors import ConfigError
from weft.generation import Weights
from weft.models import Budget, ClassifiesImages, ModelConfig, Sizing, preset, sizing_of
from weft.models.images import ImageConfig, ImageHead
from weft.objectives.images import ImageBatch, ImageClassification, ImageObjectiveConfig
from weft.tasks import planning
from weft.tasks.classify import evaluator
from weft.tasks.classify.answers import as_used
from weft.tasks.classify.classifiers import ImageClassifier
from weft.tasks.classify.examples import collect_image_answers
from weft.tasks.classify.image_classifier import PixelClassifier
from weft.tasks.classify.image_data import (
    ImageData,
    ImageDataConfig,
    as_input,
    check_same,
    images_read_as,
    read_data,
)
from weft.tasks.classify.image_form import FORM_FIELDS
from weft.tasks.classify.words import ImageWords
from weft.tasks.environment import memory_in_use
from weft.tasks.experiment import NO_ORIGIN, Experiment, Origin
from weft.tasks.recording import Report
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sources import are_images
from weft.tasks.start import Start
from weft.tasks.task import Task
from weft.tasks.validation_inputs import ValidationInputs, some_of
from weft.training import AdamWConfig, Ranks
from weft.training.freezing import freeze
from weft.training.step_cost import learning_of

DEFAULT_MINUTES = 5.0  # when the user says nothing
DEFAULT_BATCH = 64
MIN_PLANNED_EPOCHS = 6  # epochs for which there should be time at least
TARGET_STEPS = 2400  # that a small set of images is worth, in at most MAX_EPOCHS epochs
MIN_EPOCHS, MAX_EPOCHS = 30.0, 150.0  # when there is time for them
EVALUATIONS_PER_RUN = 20  # in a run, the last few of which are averaged
AVERAGED_EVALUATIONS = 3


class ImageRunConfig(RunConfig):
    """All settings of a run that learns to classify images."""

    data: ImageDataConfig
    objective: ImageObjectiveConfig = ImageObjectiveConfig()


class ClassifyImages(Task):
    """Learn from labelled images what an image shows."""

    name = "classify"
    capabilities = (ClassifiesImages,)
    tokenizer = None
    settings = ImageRunConfig
    data = ImageDataConfig
    objective = ImageObjectiveConfig
    words = ImageWords()
    turn = 0
    opens = ImageClassifier

    def recognises(self, paths: Sequence[str], columns: Collection[str]) -> bool:
        return are_images(paths)

    def claims(self, request: Request) -> bool:
        return are_images(request.data, request.text)

    def check_start(self, run: Run) -> None:
        run.check_looks()

    def plan(self, origin: Origin) -> LabelledImages:
        data = read_data(_form_of(origin.asked, origin.start), _decoding(origin.report))
        for text in data.warnings if origin.ranks.is_first else ():
            origin.report({"event": "warning", "text": text})
        origin.report({"event": "phase", "name": "planning"})
        return _plan(origin, data)

    def reopen(self, config: ImageRunConfig, origin: Origin) -> LabelledImages:
        data = read_data(config.data, _decoding(origin.report))
        check_same(config.data, data.config)
        return LabelledImages(config, data, origin)

    def read_data(self, config: ImageDataConfig) -> ImageData:
        return read_data(config)

    def as_used(self, model: nn.Module, run: Run) -> nn.Module:
        assert isinstance(run.config.data, ImageDataConfig)
        return as_used(model, run.directory.path, run.config.data)

    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        return PixelClassifier(run).evaluate(*data)

    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        return {} if data() is None else {"kind": "images", **collect_image_answers(run, data())}


TASK = ClassifyImages()


def _decoding(report: Report) -> Callable[[int, int], None]:
    """Tells how far decoding has come; a phase of its own begins when there is something to decode."""
    about = {"phase": "decoding", "unit": "images"}
    begun = False

    def progress(done: int, total: int) -> None:
        nonlocal begun
        if not begun:
            report({"event": "phase", "name": "decoding", "total": total, "unit": "images"})
            begun = True
        report({"event": "progress", **about, "done": done, "total": total})

    return progress


def _form_of(request: Request, start: Start | None) -> ImageDataConfig:
    """A model that was trained before sees images in the form that it knows, and a new one in the size that it is
    asked to be made for, unless the user says something else of the images."""
    config, said = request.data_config(ImageDataConfig), request.recipe.settings | request.changes
    model: Any = None if start is None else start.model
    known = {"size": said.get("model.image_size")}
    if start is not None and start.images is not None:
        known = {name: getattr(start.images, name) for name in FORM_FIELDS}
    elif start is not None:
        known = {"size": getattr(model, "image_size", None), "channels": model.channels}
    config = config.override({name: value for name, value in known.items() if f"data.{name}" not in said})
    if start is not None and config.channels != model.channels:
        raise ConfigError(
            f"data.channels = {config.channels} for {start.path}, which knows {model.channels}",
            expected="the channels that the model was trained with",
        )
    return config


@dataclass
class LabelledImages(Experiment):
    """Labelled images, changed a little whenever they are learned from."""

    task_name = TASK.name
    tokenizer = None
    concludes = True
    config: ImageRunConfig
    images: ImageData
    origin: Origin = NO_ORIGIN

    @property
    def model(self) -> ImageConfig:
        assert isinstance(self.config.model, ImageConfig)
        return self.config.model

    @property
    def length(self) -> int:
        """Rows and columns of an image."""
        assert self.config.data.size is not None
        return self.config.data.size

    @property
    def epochs(self) -> float:
        """Readings of the images that are worth it."""
        return min(MAX_EPOCHS, max(MIN_EPOCHS, TARGET_STEPS * self.config.training.batch / len(self.images.train)))

    @cached_property
    def parts(self) -> dict[str, evaluator.EvaluationSplit]:
        """Validation and test, and the truth about them."""
        given = {"validation": self.images.validation, "test": self.images.test}
        return {name: evaluator.EvaluationSplit(part, self.images.values(part)) for name, part in given.items() if part}

    @cached_property
    def judge(self) -> evaluator.Evaluator:
        data, device = self.config.data, torch.device(self.config.training.device)
        return evaluator.Evaluator(self.images.labels, data.mean, data.deviation, device, read=images_read_as(data))

    @cached_property
    def targets(self) -> np.ndarray:
        """Labels as the loss wants them."""
        return self._as_wanted(self.images.values(self.images.train))

    def _as_wanted(self, values: np.ndarray) -> np.ndarray:
        """Numbers by their deviation from the mean."""
        data = self.config.data
        if self.images.labels.kind == "regression":
            return ((values - data.mean) / data.deviation).astype(np.float32)
        return values

    def validation_inputs(self) -> ValidationInputs:
        data, held = self.config.data, self.images.validation
        labels = torch.from_numpy(self._as_wanted(self.images.values(held)))
        some = [
            ImageBatch(as_input(held.pixels[[n]], data.pixel_mean, data.pixel_deviation), labels[n : n + 1])
            for n in some_of(len(held))
        ]
        return ValidationInputs(self.loss, some)

    @cached_property
    def augmentation(self) -> Augmentation:
        return Augmentation(self.config.objective.augment, self.config.training.seed)

    def samples(self, numbers: np.ndarray) -> ImageBatch:
        kind = self.images.labels.kind
        if not self.augmentation.config.mixes or kind == "regression":
            return ImageBatch(*self._read_batch(numbers))
        together = np.union1d(numbers, partners(numbers))
        seen, known = self._read_batch(together)
        known = F.one_hot(known, self.model.head.classes).float() if kind == "single" else known.float()
        mine, other = (np.searchsorted(together, some) for some in (numbers, partners(numbers)))
        mixed = self.augmentation.mixed(seen[mine], known[mine], seen[other], known[other], np.asarray(numbers))
        return ImageBatch(*mixed)

    def _read_batch(self, numbers: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        data = self.config.data
        places = in_order(numbers, len(self.targets), self.config.training.seed)
        seen = as_input(self.images.train.pixels[places], data.pixel_mean, data.pixel_deviation)
        return self.augmentation.changed(seen, numbers), torch.from_numpy(self.targets)[torch.from_numpy(places)]

    @property
    def per_epoch(self) -> int:
        return len(self.images.train)

    def loss(self, model: nn.Module, batch: ImageBatch) -> tuple[Any, ...]:
        return self.classification(model, batch)

    @cached_property
    def classification(self) -> ImageClassification:
        labels, smoothing = self.images.labels, self.config.objective.smoothing
        return ImageClassification(labels.kind, weights=self.weights, smoothing=smoothing)  # type: ignore[arg-type]

    @cached_property
    def weights(self) -> list[float] | None:
        """One for each class, where they are wanted."""
        return evaluator.weights_for(self.config.objective.weights, self.targets, self.images.labels)

    @property
    def evaluation_tokens(self) -> int:
        """Images; validation images are read once for the temperature and once to measure."""
        return 2 * sum(len(part.values) for part in self.parts.values())

    def seconds_at_end(self) -> float:
        cost = cost_of(self.model, batch=1, length=self.length)
        return self.evaluation_tokens * cost.operations.forward / planning.machine_speed()

    @property
    def most(self) -> int:
        return round(self.epochs * self.per_epoch / self.config.training.batch)

    @property
    def has_test(self) -> bool:
        return self.images.test is not None

    def measure(self, model: nn.Module, part: str, ranks: Ranks) -> dict[str, Any]:
        return self.judge.measure(model, self.parts[part], whole=part == "test")

    def conclude(self, model: nn.Module, run: RunDirectory) -> dict[str, Any]:
        return self.judge.conclude(model, self.parts["validation"], run.model_file)

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        few = plan["examples"] < 20 * max(1, plan["classes"])
        return [f"{plan['examples']:,} images are very little to learn from"] if few else []

    def describe(self) -> dict[str, Any]:
        config, training, labels = self.config, self.config.training, self.images.labels
        cost = cost_of(self.model, batch=training.batch, length=self.length, learning=learning_of(training))
        model: Any = self.model
        told = {name: getattr(model, name) for name in ("width", "depth") if hasattr(model, name)}
        return {
            "columns": self.images.why,
            "labels": labels.kind,
            "classes": len(labels.classes),
            "weighted": self.weights is not None,
            "examples": len(self.images.train),
            **{f"{name}_examples": len(part.values) for name, part in self.parts.items()},
            "size": config.data.size,
            "channels": config.data.channels,
            "mirrored": bool(config.objective.augment.mirror),
            "model": model.kind,
            **told,
            **({} if config.start is None else {"start": config.start}),
            "parameters": cost.parameters,
            "memory": cost.memory(memory_in_use()).total,
            "flops": cost.flops,  # of one step
            "steps": training.steps,
            "batch": training.batch,
            "epochs": round(training.steps * training.batch / len(self.images.train), 2),
            "minutes": training.minutes,
        }


# -- the plan ---------------------------------------------------------------------------------


def _plan(origin: Origin, data: ImageData) -> LabelledImages:
    """The model, what the user set on top, then the number of steps."""
    request, start, ranks = origin.asked, origin.start, origin.ranks
    minutes = request.minutes if request.steps or request.epochs or request.minutes else DEFAULT_MINUTES
    assert data.config.size is not None and data.config.channels is not None
    flops = 60 * (minutes or DEFAULT_MINUTES) * planning.machine_speed()
    budget = _budget(data.config.size, data.config.channels, len(data.train), flops)
    model = request.apply("model", _with_head(_model(request, start, budget, data.config.channels), data))
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    rates = sizing_of(model.kind, ClassifiesImages).training if start is None else _plan_fine_tuning(model)
    planned = {"average": AVERAGED_EVALUATIONS, **rates}
    training = planning.first_training(request, DEFAULT_BATCH, ranks, minutes, planned)
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    objective = request.apply("objective", ImageObjectiveConfig())
    if objective.augment.mirror == "auto":
        can = data.labels.kind == "single" and mirrors_well(data.train.pixels, data.values(data.train))  # type: ignore[arg-type]
        objective = objective.override({"augment.mirror": 0.5 if can else 0.0})
    automatic = objective.augment.strength == "auto"
    if automatic:  # until the number of steps is known
        objective = objective.override({"augment.strength": 1.0})
    config = ImageRunConfig(model=model, data=data.config, training=training, start=request.start, objective=objective)
    labelled = LabelledImages(config, data, origin)
    rows = len(data.train)
    pieces = planning.Pieces(rows, labelled.seconds_per_step, labelled.seconds_at_end, labelled.epochs)
    training = planning.with_steps(training, request, pieces, ranks)
    if not training.evaluate_every:
        training = training.override({"evaluate_every": max(1, training.steps // EVALUATIONS_PER_RUN)})
    strength = {}
    if automatic:
        epochs = training.steps * training.batch / rows
        strength = {"objective.augment.strength": strength_for(epochs)}
    return replace(labelled, config=config.override({"training": training, **strength}))


def _plan_fine_tuning(model: ModelConfig) -> dict[str, Any]:
    """Learning rates for a finished model, which is fine-tuned."""
    rate = 0.04 / getattr(model, "width", 768)
    return {"optimizer": AdamWConfig(learning_rate=rate), "warmup": 0.1, "decay": 0.9}


def _budget(size: int, channels: int, images: int, flops: float) -> Budget:
    """Room for a model: operations for one image that is learned from once, and parameters that the images can fill."""
    readings = max(MIN_PLANNED_EPOCHS, min(MAX_EPOCHS, TARGET_STEPS * DEFAULT_BATCH / images))

    def holds(model: ModelConfig, _: Sizing) -> bool:
        config = model.override({"channels": channels, "head": ImageHead(classes=10)})
        assert isinstance(config, ImageConfig)
        cost = cost_of(config, batch=1, length=size)
        return cost.flops <= flops / (readings * images) and cost.parameters <= 2.0 * images * channels * size**2

    return Budget(flops, holds, size)


def _model(request: Request, start: Start | None, budget: Budget, channels: int) -> ModelConfig:
    if start is not None:
        return start.model
    family, fields = preset(request.model or TASK.family)
    said = request.recipe.settings | request.changes
    model = ModelConfig.from_config({"kind": family})
    sizes = {"image_size": budget.image} if fields and hasattr(model, "image_size") else {}
    sizes |= {"patch": said["model.patch"]} if sizes and "model.patch" in said else {}  # its own may be too large
    fields = fields or dict(sizing_of(family, ClassifiesImages).choose(budget, model).model)
    return model.override({**fields, **sizes, "channels": channels})


def _with_head(model: ModelConfig, data: ImageData) -> ModelConfig:
    """The same trunk with a head for these labels."""
    names = data.labels.classes
    several = data.labels.kind == "multilabel"
    return model.override({"head": ImageHead(classes=max(1, len(names)), labels=tuple(names), multilabel=several)})
