"""Training a model that says what a picture shows: a class, several, or a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from weft.checkpoints import RunDirectory
from weft.cost import picture_cost
from weft.data.augmentation import Augmentation, mirrors_well, partners, strength_for
from weft.data.order import in_order
from weft.data.pictures import Pictures
from weft.errors import ConfigError
from weft.models import ModelConfig, preset
from weft.models.pictures import PictureConfig, PictureHead
from weft.objectives.pictures import PictureBatch, PictureClassification, PictureObjectiveConfig, picture_logits
from weft.tasks import judging, planning
from weft.tasks.environment import memory_in_use
from weft.tasks.held_out import HeldOut, some_of
from weft.tasks.job import Job, Report
from weft.tasks.picture_data import PictureData, PictureDataConfig, as_input, check_same, read_data
from weft.tasks.picture_form import FORM
from weft.tasks.picture_sizes import BATCH, LEARNING, Room, picture_fields, readings, room_for
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.start import Start
from weft.tasks.task import Prepared, Task
from weft.training import AdamWConfig, Ranks
from weft.training.freezing import freeze

MINUTES = 5.0  # when the user says nothing
EVALUATIONS = 20  # in a run, the last few of which are averaged
AVERAGED = 3
AT_ONCE = 256  # pictures that are judged together


class PictureRunConfig(RunConfig):
    """All settings of a run that learns to classify pictures."""

    data: PictureDataConfig
    objective: PictureObjectiveConfig = PictureObjectiveConfig()


class ClassifyPictures(Task):
    """Learn from labelled pictures what a picture shows."""

    name = "classify"
    family = "vit"
    families = ("vit", "davit", "convnext", "resnet")
    tokenizer = None
    settings = PictureRunConfig
    data = PictureDataConfig
    objective = PictureObjectiveConfig

    def check_start(self, run: Run) -> None:
        run.check_looks()

    def prepare(self, request: Request, start: Start | None, ranks: Ranks, report: Report) -> LabelledPictures:
        data = read_data(_form_of(request, start), _decoding(report))
        for text in data.warnings if ranks.is_first else ():
            report({"event": "warning", "text": text})
        report({"event": "phase", "name": "planning"})
        return _plan(request, data, start, ranks)

    def reopen(self, config: PictureRunConfig, run: RunDirectory, report: Report) -> LabelledPictures:
        data = read_data(config.data, _decoding(report))
        check_same(config.data, data.config)
        return LabelledPictures(config, data)


TASK = ClassifyPictures()


def _decoding(report: Report) -> Callable[[int, int], None]:
    """Tells how far decoding has come; a phase of its own begins when there is something to decode."""
    about = {"phase": "decoding", "unit": "pictures"}
    begun = False

    def progress(done: int, total: int) -> None:
        nonlocal begun
        if not begun:
            report({"event": "phase", "name": "decoding", "total": total, "unit": "pictures"})
            begun = True
        report({"event": "progress", **about, "done": done, "total": total})

    return progress


def _form_of(request: Request, start: Start | None) -> PictureDataConfig:
    """A model that was trained before sees pictures in the form that it knows, and a new one in the size that it is
    asked to be made for, unless the user says something else of the pictures."""
    config, said = request.data_config(PictureDataConfig), request.recipe.settings | request.changes
    model: Any = None if start is None else start.model
    known = {"size": said.get("model.image_size")}
    if start is not None and start.pictures is not None:
        known = {name: getattr(start.pictures, name) for name in FORM}
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
class LabelledPictures(Prepared):
    """Labelled pictures, changed a little whenever they are learned from."""

    config: PictureRunConfig
    pictures: PictureData
    tokenizer = None

    @property
    def model(self) -> PictureConfig:
        assert isinstance(self.config.model, PictureConfig)
        return self.config.model

    @property
    def length(self) -> int:
        """Rows and columns of a picture."""
        assert self.config.data.size is not None
        return self.config.data.size

    @property
    def epochs(self) -> float:
        """Readings of the pictures that are worth it."""
        return readings(len(self.pictures.train), self.config.training.batch)

    @cached_property
    def parts(self) -> dict[str, judging.Judged]:
        """Validation and test, and the truth about them."""
        given = {"validation": self.pictures.validation, "test": self.pictures.test}
        return {name: judging.Judged(part, self.pictures.values(part)) for name, part in given.items() if part}

    @cached_property
    def judge(self) -> judging.Judge:
        data, device = self.config.data, torch.device(self.config.training.device)
        return judging.Judge(self.pictures.labels, data.mean, data.deviation, device, read=reading(data))

    @cached_property
    def targets(self) -> np.ndarray:
        """Labels as the loss wants them."""
        return self._as_wanted(self.pictures.values(self.pictures.train))

    def _as_wanted(self, values: np.ndarray) -> np.ndarray:
        """Numbers by their deviation from the mean."""
        data = self.config.data
        if self.pictures.labels.kind == "number":
            return ((values - data.mean) / data.deviation).astype(np.float32)
        return values

    def held_out(self) -> HeldOut:
        data, held = self.config.data, self.pictures.validation
        labels = torch.from_numpy(self._as_wanted(self.pictures.values(held)))
        some = [
            PictureBatch(as_input(held.pixels[[n]], data.pixel_mean, data.pixel_deviation), labels[n : n + 1])
            for n in some_of(len(held))
        ]
        return HeldOut(self.loss, some)

    def samples(self) -> Callable[[np.ndarray], PictureBatch]:
        data, training, pixels = self.config.data, self.config.training, self.pictures.train.pixels
        labels, kind = torch.from_numpy(self.targets), self.pictures.labels.kind
        augmentation = Augmentation(self.config.objective.augment, training.seed)
        classes = self.model.head.classes

        def looked_at(numbers: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
            places = in_order(numbers, len(labels), training.seed)
            seen = as_input(pixels[places], data.pixel_mean, data.pixel_deviation)
            return augmentation.changed(seen, numbers), labels[torch.from_numpy(places)]

        def batch(numbers: np.ndarray) -> PictureBatch:
            if not augmentation.config.mixes or kind == "number":
                return PictureBatch(*looked_at(numbers))
            together = np.union1d(numbers, partners(numbers))
            seen, known = looked_at(together)
            known = F.one_hot(known, classes).float() if kind == "single" else known.float()
            mine, other = (np.searchsorted(together, some) for some in (numbers, partners(numbers)))
            return PictureBatch(
                *augmentation.mixed(seen[mine], known[mine], seen[other], known[other], np.asarray(numbers))
            )

        return batch

    @cached_property
    def loss(self) -> PictureClassification:
        labels, smoothing = self.pictures.labels, self.config.objective.smoothing
        return PictureClassification(labels.kind, weights=self.weights, smoothing=smoothing)  # type: ignore[arg-type]

    @cached_property
    def weights(self) -> list[float] | None:
        """One for each class, where they are wanted."""
        return judging.weights_for(self.config.objective.weights, self.targets, self.pictures.labels)

    @property
    def judged_tokens(self) -> int:
        """Pictures; what is judged is looked at once for the temperature and once to measure."""
        return 2 * sum(len(part.values) for part in self.parts.values())

    def seconds_at_end(self) -> float:
        cost = picture_cost(self.model, batch=1, size=self.length)
        return self.judged_tokens * cost.flops / 3 / planning.machine_speed()

    def job(self, sample: str | None = None) -> Job:
        judge = self.judge

        def conclude(model: nn.Module, run: RunDirectory) -> dict[str, Any]:
            return judge.conclude(model, self.parts["validation"], run.model_file)

        def measure(model: nn.Module, part: str, _: Ranks) -> dict[str, Any]:
            return judge.measure(model, self.parts[part], whole=part == "test")

        return Job(
            task=TASK.name,
            config=self.config,
            tokenizer=None,
            samples=self.samples(),
            loss=self.loss,
            measure=measure,
            per_epoch=len(self.pictures.train),
            most=round(self.epochs * len(self.pictures.train) / self.config.training.batch),
            seconds_per_step=self.seconds_per_step,
            seconds_at_end=self.seconds_at_end,
            has_test=self.pictures.test is not None,
            conclude=conclude,
        )

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        few = plan["examples"] < 20 * max(1, plan["classes"])
        return [f"{plan['examples']:,} pictures are very little to learn from"] if few else []

    def describe(self) -> dict[str, Any]:
        config, training, labels = self.config, self.config.training, self.pictures.labels
        cost = picture_cost(self.model, batch=training.micro_batch or training.batch, size=self.length)
        model: Any = self.model
        told = {name: getattr(model, name) for name in ("width", "depth") if hasattr(model, name)}
        return {
            "columns": self.pictures.why,
            "labels": labels.kind,
            "classes": len(labels.classes),
            "weighted": self.weights is not None,
            "examples": len(self.pictures.train),
            **{f"{name}_examples": len(part.values) for name, part in self.parts.items()},
            "size": config.data.size,
            "channels": config.data.channels,
            "mirrored": bool(config.objective.augment.mirror),
            "model": model.kind,
            **told,
            **({} if config.start is None else {"start": config.start}),
            "parameters": cost.parameters,
            "memory": memory_in_use() + cost.memory,
            "flops": cost.flops / cost.tokens * training.batch,  # of one step
            "steps": training.steps,
            "batch": training.batch,
            "epochs": round(training.steps * training.batch / len(self.pictures.train), 2),
            "minutes": training.minutes,
        }


def reading(data: PictureDataConfig) -> judging.Read:
    """How pictures of this form are shown to a model."""

    def logits(model: nn.Module, pictures: Pictures, device: torch.device) -> np.ndarray:
        model.eval()
        found = []
        with torch.inference_mode():
            for start in range(0, len(pictures), AT_ONCE):
                some = pictures.pixels[start : start + AT_ONCE]
                seen = as_input(some, data.pixel_mean, data.pixel_deviation).to(device)
                found.append(picture_logits(model, seen).cpu().double().numpy())
        return np.concatenate(found)

    return logits


# -- the plan ---------------------------------------------------------------------------------


def _plan(request: Request, data: PictureData, start: Start | None, ranks: Ranks) -> LabelledPictures:
    """The model, what the user set on top, then the number of steps."""
    minutes = request.minutes if request.steps or request.epochs or request.minutes else MINUTES
    assert data.config.size is not None and data.config.channels is not None
    flops = 60 * (minutes or MINUTES) * planning.machine_speed()
    room = room_for(data.config.size, data.config.channels, len(data.train), flops)
    model = request.apply("model", _with_head(_model(request, start, room), data))
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    planned = {"average": AVERAGED} | (LEARNING if start is None else _bending(model))
    training = planning.first_training(request, BATCH, ranks, minutes, planned)
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    objective = request.apply("objective", PictureObjectiveConfig())
    if objective.augment.mirror == "auto":
        can = data.labels.kind == "single" and mirrors_well(data.train.pixels, data.values(data.train))  # type: ignore[arg-type]
        objective = objective.override({"augment.mirror": 0.5 if can else 0.0})
    automatic = objective.augment.strength == "auto"
    if automatic:  # until the number of steps is known
        objective = objective.override({"augment.strength": 1.0})
    config = PictureRunConfig(
        model=model, data=data.config, training=training, start=request.start, objective=objective
    )
    labelled = LabelledPictures(config, data)
    rows = len(data.train)
    pieces = planning.Pieces(rows, labelled.seconds_per_step, labelled.seconds_at_end, labelled.epochs)
    training = planning.with_steps(training, request, pieces, ranks)
    if not training.evaluate_every:
        training = training.override({"evaluate_every": max(1, training.steps // EVALUATIONS)})
    strength = {}
    if automatic:
        epochs = training.steps * training.batch / rows
        strength = {"objective.augment.strength": strength_for(epochs)}
    return LabelledPictures(config.override({"training": training, **strength}), data)


def _bending(model: ModelConfig) -> dict[str, Any]:
    """Rates for a finished model, which is only bent."""
    rate = 0.04 / getattr(model, "width", 768)
    return {"optimizer": AdamWConfig(learning_rate=rate), "warmup": 0.1, "decay": 0.9}


def _model(request: Request, start: Start | None, room: Room) -> ModelConfig:
    if start is not None:
        return start.model
    family, fields = preset(request.model or TASK.family)
    said = request.recipe.settings | request.changes
    sizes = {"image_size": room.size} if family == "vit" and fields else {}
    sizes |= {"patch": said["model.patch"]} if sizes and "model.patch" in said else {}  # its own may be too large
    planned = {**(fields or picture_fields(family, room)), **sizes, "channels": room.channels}
    return ModelConfig.pick({"kind": family}).override(planned)


def _with_head(model: ModelConfig, data: PictureData) -> ModelConfig:
    """The same trunk with a head for these labels."""
    names = data.labels.classes
    several = data.labels.kind == "several"
    return model.override({"head": PictureHead(classes=max(1, len(names)), labels=tuple(names), several=several)})
