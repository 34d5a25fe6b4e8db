"""What is trained, from the first word to the last, the same for every task.

    Experiment.plan(request, report).fit()       a new run
    Experiment.reopen(directory, report).fit()   continues where it stopped
    ….extend(steps=100)                          before that: a finished run is trained further

A task reads its data and plans; what it then trains is its own subclass of `Experiment`, which knows the batches, the
loss, and how it is evaluated. Everything that concerns the run directory, the clock, the processes and the best weights
happens here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from weft.checkpoints import Checkpoint, RunDirectory, load_newest
from weft.cost import cost_of
from weft.errors import DataError
from weft.models import ModelConfig, preset
from weft.models.attention_fits import sees_everything
from weft.models.base import Model
from weft.tasks import planning
from weft.tasks.environment import environment, memory_in_use, run_readme, usual_threads
from weft.tasks.preparation import check_model
from weft.tasks.recording import Recording, Report
from weft.tasks.request import Request
from weft.tasks.results import TEST_FILE, plain_names
from weft.tasks.run import load
from weft.tasks.settings import RunConfig
from weft.tasks.sources import short_name
from weft.tasks.start import Start, read_start
from weft.tasks.task import Task, find_task, find_use, read_settings, variants
from weft.tasks.use import can_be_exported, has_attention
from weft.tasks.validation_inputs import ValidationInputs
from weft.tasks.watching import SoftmaxHealthLog, has_health_log, make_no_attention_event
from weft.text import Tokenizer
from weft.training import ALONE, Outcome, Ranks, Trainer, ranks_from_environment
from weft.training.pace import Pace
from weft.training.resume import RecurrentState
from weft.training.step_cost import learning_of

MAIN_MODEL = "model"  # the name of the model that is trained; a run keeps it in model.safetensors


def _nobody(event: dict[str, Any]) -> None:
    del event


@dataclass(frozen=True)
class Origin:
    """Where an experiment comes from: the request, or the run that is continued; and the processes.

    start     the model that a new run begins from
    report    is called with each event
    """

    request: Request | None = None
    run: RunDirectory | None = None
    start: Start | None = None
    ranks: Ranks = ALONE
    report: Recording = field(default_factory=lambda: Recording(_nobody))

    @property
    def asked(self) -> Request:
        """Of a new run."""
        assert self.request is not None
        return self.request


NO_ORIGIN = Origin()


class Experiment(ABC):
    """Settings, data, model and objective of one run, and where they come from; a task's own is a dataclass.

    tokenizer         None: it reads no text
    source_tokenizer  of texts that are read, where it is another than that of what is written
    kept              which weights the run keeps, where they are not the best on the validation data
    """

    task_name: ClassVar[str]
    kept: ClassVar[str | None] = None
    config: RunConfig
    origin: Origin
    tokenizer: Tokenizer | None
    source_tokenizer: Tokenizer | None = None

    # -- begin, resume, train further ----------------------------------------------------------

    @staticmethod
    def plan(request: Request, report: Report = _nobody) -> Experiment:
        """Check the request, read the data and plan; `report` is called with each event. Writes nothing."""
        recording = Recording(report)
        task = task_for(request)
        task.check(request)
        ranks = ranks_from_environment(request.device)
        torch.set_num_threads(request.threads or usual_threads())
        recording({"event": "phase", "name": "reading"})
        start = read_start(request.start, task.check_start) if request.start else None
        planned = task.plan(Origin(request, None, start, ranks, recording))
        description = planned.describe()
        for text in (*planned.warnings(description), *planned._needless()):
            recording({"event": "warning", "text": text})
        recording({"event": "plan", "task": task.name, **description})
        return planned

    @staticmethod
    def reopen(path: str | Path, report: Report = _nobody) -> Experiment:
        """A run that was begun, with its settings and its data; `fit` continues from the newest sound checkpoint."""
        run = RunDirectory.open(path)
        raw = run.read_config()
        if "origin" in raw:
            raise DataError(
                f"{path} was imported, not trained here: there is nothing to resume",
                advice=f"train it on your own data:  weft train DATA --from {path}",
            )
        config = read_settings(raw, path)
        origin = Origin(run=run, ranks=ranks_from_environment(config.training.device), report=Recording(report))
        torch.set_num_threads(config.training.threads)
        report({"event": "phase", "name": "reading"})
        opened = find_task(raw["task"], config.model.kind).reopen(config, origin)
        opened._check_models(str(run.config_file))
        return opened

    def extend(
        self, *, steps: int | None = None, minutes: float | None = None, epochs: float | None = None
    ) -> Experiment:
        """Record that a finished run is extended: with a new curve, for so long."""
        run = self.origin.run
        assert run is not None, "only a run that was reopened is trained further"
        if self.origin.ranks.is_first:
            done = self.check_extends(run)
            if steps is None and epochs is not None:
                steps = max(1, round(epochs * self.per_epoch / self.config.training.batch))
            elif steps is None:
                assert minutes is not None
                steps = max(1, int(60 * minutes / self.seconds_per_step()))
            run.add_event({"event": "extend", "step": done.step, "steps": done.step + steps})
        self.origin.ranks.wait()
        return self

    def check_extends(self, run: RunDirectory) -> Checkpoint:
        """The last checkpoint of a run that can be trained further; refuses one that cannot."""
        checkpoint = load_newest(run.checkpoints)
        if checkpoint is None or not checkpoint.state["progress"]["finished"]:
            raise DataError(
                f"{run.path} is not finished", expected="a finished run to train further", advice="resume it first"
            )
        return checkpoint

    def fit(self) -> tuple[RunDirectory, Outcome]:
        """Train to the end, an early stop or a signal, and find out how good the best weights are.

        A new run is fitted to the clock on the way; a reopened one keeps its plan as it is.
        """
        ranks, report = self.origin.ranks, self.origin.report
        run = self.origin.run or self._begin()
        watch = self._watch(run)
        if self.origin.run is None and ranks.is_first:
            report.begin(run, self.reasons())
        report({"event": "phase", "name": "training"})
        with run.locked() if ranks.is_first else nullcontext():
            torch.manual_seed(self.config.training.seed)
            model, outcome = self.learn(run, watch)
            if outcome.stopped_by != "signal":
                self._finish(model, outcome, run)
        return run, outcome

    # -- what a task says ---------------------------------------------------------------------

    @property
    @abstractmethod
    def length(self) -> int:
        """Tokens that are read at a time."""

    @property
    @abstractmethod
    def per_epoch(self) -> int:
        """Samples in one reading of the data."""

    @property
    @abstractmethod
    def evaluation_tokens(self) -> int:
        """Tokens that are read to measure, once training is over."""

    @property
    @abstractmethod
    def has_test(self) -> bool:
        """Whether there are data to test on, which nothing looks at before the end."""

    @abstractmethod
    def samples(self, numbers: np.ndarray) -> Any:
        """The batch with these sample numbers."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> tuple[Any, ...]:
        """A summed loss of a batch, how many terms it has, and perhaps its parts by name."""

    @abstractmethod
    def measure(self, model: nn.Module, part: str, ranks: Ranks) -> dict[str, Any]:
        """Metrics on the "validation" or the "test" part, the work shared between ranks."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The plan in numbers, for people and programs."""

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        """What the plan already tells about the result."""
        return []

    @property
    def most(self) -> int | None:
        """Steps that are worth it, however much time there is; None: any number."""
        return None

    @property
    def selection_metric(self) -> str:
        """The metric that decides which weights are best."""
        return "validation_loss"

    @property
    def carried(self) -> RecurrentState | None:
        """What the loss hands from step to step besides weights."""
        return None

    def validation_inputs(self) -> ValidationInputs:
        """A few validation inputs to inspect the model with; none for a model without attention."""
        return ValidationInputs(self.loss, [])

    def look(self, model: nn.Module) -> dict[str, Any] | None:
        """What the model does now, shown before and after training, if requested."""
        return None

    @property
    def concludes(self) -> bool:
        """Whether something is found out about the best weights once training is over."""
        return False

    def conclude(self, model: nn.Module, run: RunDirectory) -> dict[str, Any]:
        """What is found out about them: files of the run by name."""
        return {}

    def seconds_per_step(self) -> float:
        """Measured with fresh weights, which are thrown away."""
        return planning.seconds_per_step(self.config.model.build(), self.config.training, self.samples, self.loss)

    def seconds_at_end(self) -> float:
        """Forward alone; shapes are large, so the speed is that of plain products."""
        cost = cost_of(self.config.model, batch=1, length=self.length)
        return self.evaluation_tokens / self.length * cost.operations.forward / planning.machine_speed()

    # -- its models ---------------------------------------------------------------------------

    def models(self) -> dict[str, ModelConfig]:
        """All models of the run by name; MAIN_MODEL is the one that is trained."""
        return {MAIN_MODEL: self.config.model}

    def _check_models(self, where: str) -> None:
        for model in self.models().values():
            check_model(model, self.tokenizer, where, self.source_tokenizer)

    def initial_model(self, run: RunDirectory) -> Model:
        """With fresh weights, or those of the model it starts from; once there is a checkpoint, that one counts."""
        model, start = self.models()[MAIN_MODEL], self.config.start
        if start is None or load_newest(run.checkpoints) is not None:
            return model.build()
        return (self.origin.start or read_start(start)).build(model)

    # -- training -----------------------------------------------------------------------------

    def learn(self, run: RunDirectory, watch: SoftmaxHealthLog | None) -> tuple[nn.Module, Outcome]:
        """In steps of gradients; the model has its best weights if anything is still to be done with it."""
        ranks, report = self.origin.ranks, self.origin.report
        model = self.initial_model(run).to(self.config.training.device)

        def evaluate() -> dict[str, Any]:
            found = self.measure(model, "validation", self._sharing)
            if watch is not None:
                watch(model, trainer.progress.step)
            return found

        trainer: Trainer = self.trainer(
            model,
            settings=self.config.training,
            run=run,
            evaluate=evaluate,
            on_step=lambda values: report({"event": "step", "total": trainer.schedule.total, **values}),
            ranks=ranks,
            pace=self._pace(),
            selection_metric=self.selection_metric,
            identity=self.identity(),
            carried=self.carried,
            saves_start=self.config.start is not None,
        )
        shown = self._show(model, "before")
        if watch is not None and load_newest(run.checkpoints) is None:
            watch(model, 0)
        outcome = trainer.train()
        if outcome.stopped_by != "signal" and (shown or self.has_test or self.concludes):
            trainer.load_best()
        return model, outcome

    def trainer(self, model: Model, **rest: Any) -> Trainer:
        """What takes the steps."""
        return Trainer(model, samples=self.samples, loss=self.loss, **rest)

    def identity(self) -> dict[str, Any]:
        """What the run is, as its checkpoints say."""
        found = self.config.to_dict()
        found["data"].pop("test")  # its content is in the fingerprint
        return found

    def _pace(self) -> Pace | None:
        """Of a new run that has so many minutes."""
        minutes, request = self.config.training.minutes, self.origin.request
        if minutes is None or request is None:
            return None
        return Pace(request.started + 60 * minutes - self.seconds_at_end(), self.most)

    @property
    def _sharing(self) -> Ranks:
        """Who shares the work of measuring: a sharded model runs on all ranks at once, and there is none to share."""
        return ALONE if self.config.training.sharded else self.origin.ranks

    def _show(self, model: nn.Module, when: str) -> bool:
        """Whether there is something to show."""
        found = self.look(model) if self.origin.ranks.world == 1 else None
        if found is not None:
            self.origin.report(found | {"when": when})
        return found is not None

    def _watch(self, run: RunDirectory) -> SoftmaxHealthLog | None:
        """Logs softmax health while it trains, if requested; says once if there is no attention."""
        request, ranks, report = self.origin.request, self.origin.ranks, self.origin.report
        wanted = has_health_log(run) if request is None else request.watch
        if not wanted or not ranks.is_first:
            return None
        if not has_attention(self.config.model):
            report(make_no_attention_event(self.config.model.kind))
            return None
        if self.config.training.sharded and ranks.world > 1:
            report({"event": "warning", "text": "--watch is left out: the weights are spread over several processes"})
            return None
        return SoftmaxHealthLog(run, self.validation_inputs, report)

    def _finish(self, model: nn.Module, outcome: Outcome, run: RunDirectory) -> None:
        """What is shown, found out and tested with the best weights."""
        ranks = self.origin.ranks
        self._show(model, "after")
        if self.concludes:
            found = self.conclude(model.eval(), run)
            for name, content in found.items() if ranks.is_first else ():
                run.write_json(name, content)
        if self.has_test:
            self.origin.report({"event": "phase", "name": "testing", "step": outcome.progress.best_step})
            metrics = self.measure(model, "test", self._sharing)
            found = {"step": outcome.progress.best_step, "test_loss": metrics.pop("validation_loss")}
            if ranks.is_first:
                run.write_json(TEST_FILE, found | plain_names(metrics))

    # -- the run directory --------------------------------------------------------------------

    def _begin(self) -> RunDirectory:
        """The directory of a new run with everything that a resume needs; other ranks wait until it is there."""
        self._check_models("the plan")
        ranks, out = self.origin.ranks, self.origin.asked.out
        path = Path(out) if out else self._next_free()
        run = RunDirectory(path)
        if ranks.is_first:
            run = RunDirectory.create(path)
            if self.tokenizer is not None:
                self.tokenizer.save(run.tokenizer_file)
            if self.source_tokenizer is not None:
                self.source_tokenizer.save(run.source_tokenizer_file)
            run.write_json("environment.json", environment())
            run.write_file("README.md", self._readme(path))
            run.write_config({"task": self.task_name, **self.config.to_dict()})
        ranks.wait()
        return run

    def _next_free(self) -> Path:
        """The directory that the first process finds free, on every process."""
        stem = f"{self.task_name}-{short_name(self.config.data.train)}"
        path = RunDirectory.next_free(Path("runs"), stem)
        number, device = int(path.name.rpartition("-")[2]), torch.device(self.config.training.device)
        return path.with_name(f"{stem}-{int(self.origin.ranks.agree(number, device))}")

    def _readme(self, path: Path) -> str:
        model = self.config.model
        told = {} if self.kept is None else {"kept": self.kept}
        use = find_use(model, self.task_name)[1]
        return run_readme(path, use.command(path), exportable=can_be_exported(model), **told)

    # -- what is said of it -------------------------------------------------------------------

    def common_facts(self, read: int, epochs: float, texts: int | None = None) -> dict[str, Any]:
        """What every plan for texts says: tokenizer, model, memory for texts of `read` tokens (so many in a step),
        how long."""
        config, training = self.config, self.config.training
        assert self.tokenizer is not None
        model: Any = config.model
        texts = training.batch if texts is None else texts
        cost = cost_of(model, batch=texts, length=read, learning=learning_of(training))
        return {
            "tokenizer": self.tokenizer.kind,
            "vocab_size": self.tokenizer.vocab_size,
            "model": model.kind,
            "width": model.width,
            "depth": model.depth,
            "length": self.length,
            **({} if config.start is None else {"start": config.start}),
            "parameters": cost.parameters,
            "memory": cost.memory(memory_in_use()).total,
            "flops": cost.flops,  # of one step
            "steps": training.steps,
            "batch": training.batch,
            "epochs": round(epochs, 2),
            "minutes": training.minutes,
        }

    def _needless(self) -> list[str]:
        """A pattern that forbids nothing is full attention under another name."""
        attention = getattr(self.config.model, "attention", None)
        if self.tokenizer is None or attention is None:  # an image has no length
            return []
        kind = sees_everything(attention, self.length)
        advice = "make its window smaller, or texts longer (--set model.max_length=…)"
        told = f"attention.kind = {kind} sees all of the {self.length} tokens that are read at a time, as softmax does"
        return [] if kind is None else [f"{told}: {advice}"]

    def reasons(self) -> dict[str, str]:
        """Why each thing was chosen, in a few words: given by the user, usual, or measured."""
        request = self.origin.asked
        found = {"task": "recognised from the data" if request.task_is_recognised else "given by the user"}
        usual = f"the usual one for {request.task}"
        if request.start is not None:
            found["model"] = found["tokenizer"] = f"it continues from {request.start}"
            found["size"] = "comes with the weights it began from"
        else:
            found["model"] = "given by the user" if request.model else usual
            found["tokenizer"] = "given by the user" if request.tokenizer or request.says("tokenizer") else usual
            found["size"] = _reason_of_size(request)
        if self.tokenizer is None:
            found.pop("tokenizer", None)
        found["steps"] = _reason_of_steps(request, self.config)
        return found


def _reason_of_size(request: Request) -> str:
    if request.model is not None and preset(request.model)[1]:
        return f"a size with a name: {request.model}"
    said = [f"{key} = {value}" for key, value in request.changes.items() if key.startswith("model.")]
    rest = "what suits this much data and time"
    return f"{', '.join(said)} as set, the others {rest}" if said else rest


def _reason_of_steps(request: Request, config: RunConfig) -> str:
    training = config.training
    if not config.model.learned_in_steps:
        return "all of it is counted once"
    if request.steps is not None:
        return "given by the user"
    if request.epochs is not None:
        return f"for the {request.epochs:g} epochs that were given"
    if request.minutes is not None and training.minutes is not None:
        return f"as many as fit into {training.minutes:g} minutes, by the speed measured here"
    if training.minutes is not None:
        return f"as many as fit into {training.minutes:g} minutes, the usual time, by the speed measured here"
    if request.minutes is not None:
        return "as many as pay; there was time for all of them"
    return "as many readings as are usual for this much data"


def task_for(request: Request) -> Task:
    """The requested task: by its name, or for the named model, for the data, or for the run to start from."""
    if request.model is not None:
        return find_task(request.task, preset(request.model)[0])
    for task in variants(request.task):
        if task.claims(request):
            return task
    begun = request.start is not None and Path(request.start).is_dir()
    return find_task(request.task, load(str(request.start)).model_config.kind if begun else None)
