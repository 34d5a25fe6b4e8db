"""One run of training, whatever its task: begun, resumed, trained further, measured at the end.

A task reads its data, plans, and describes what is to be done as a `Job`; everything that concerns the run
directory, the clock, the processes and the best weights happens here, once for all tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from weft.checkpoints import RunDirectory, load_newest
from weft.checkpoints.files import read_json
from weft.errors import DataError, UnsupportedError
from weft.tasks.environment import environment, run_readme
from weft.tasks.purpose import can_be_exported, first_use, use_of
from weft.tasks.request import Request
from weft.tasks.settings import RunConfig
from weft.tasks.start import Start, read_start
from weft.text import Tokenizer
from weft.training import ALONE, Outcome, Ranks, Trainer
from weft.training.pace import Pace
from weft.training.resume import Carried, load_model_tensors

TEST_FILE = "test.json"
BY_LENGTH = "by_length.json"  # of translations of what was held out, where there is no test
Report = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Job:
    """What is to be trained, on what, and how it is judged.

    samples           the batch with these sample numbers
    loss              a summed loss of a batch, how many terms it has, and perhaps its parts by name
    measure           (model, "validation" or "test", ranks) → metrics; `decides` is the one that decides
    per_epoch         samples in one reading of the data
    seconds_at_end    what measuring will take once training is over
    most              steps that are worth it, however much time there is; None: any number
    look              what the model does as it stands, shown before and after training; or None
    find              for a model that is not learned in steps of gradients (counts, word vectors): does all of it, with
                      progress to `report`, checkpoints and the run's weights; gives the model with its best weights
    conclude          what is found out about the best weights once training is over: files of the run by name; or None
    """

    task: str
    config: RunConfig
    tokenizer: Tokenizer | None  # None: it reads no text
    samples: Callable[[np.ndarray], Any]
    loss: Callable[[nn.Module, Any], tuple[Any, ...]]
    measure: Callable[[nn.Module, str, Ranks], dict[str, float]]
    per_epoch: int
    seconds_per_step: Callable[[], float]
    seconds_at_end: Callable[[], float]
    most: int | None = None
    has_test: bool = False
    look: Callable[[nn.Module], dict[str, Any]] | None = None
    conclude: Callable[[nn.Module, RunDirectory], dict[str, Any]] | None = None
    find: Callable[[RunDirectory, Callable[[dict[str, Any]], None]], tuple[nn.Module, Outcome]] | None = None
    decides: str = "validation_loss"
    carried: Carried | None = None  # what training hands from step to step besides weights
    watch: Callable[[nn.Module, int], None] | None = None  # looks inside, at the start and at evaluations
    kept: str | None = None  # which weights the run keeps, where they are not the best on what was held out
    source_tokenizer: Tokenizer | None = (
        None  # of texts that are read, where it is another than that of what is written
    )


def new_run(job: Job, out: str | None, name: str, ranks: Ranks) -> RunDirectory:
    """The directory of a new run with everything that a resume needs; other ranks wait until it is there."""
    path = Path(out) if out else _next_free(f"{job.task}-{name}", ranks, torch.device(job.config.training.device))
    run = RunDirectory(path)
    if ranks.is_first:
        run = RunDirectory.create(path)
        if job.tokenizer is not None:
            job.tokenizer.save(run.tokenizer_file)
        if job.source_tokenizer is not None:
            job.source_tokenizer.save(run.source_tokenizer_file)
        run.write_json("environment.json", environment())
        run.write_file("README.md", _readme(job, run.path))
        run.write_config({"task": job.task, **job.config.to_dict()})
    ranks.wait()
    return run


def _next_free(stem: str, ranks: Ranks, device: torch.device) -> Path:
    """The directory that the first process finds free, on every process."""
    path = RunDirectory.next_free(Path("runs"), stem)
    return path.with_name(f"{stem}-{int(ranks.agree(int(path.name.rpartition('-')[2]), device))}")


def _readme(job: Job, path: Path) -> str:
    model = job.config.model
    told = {} if job.kept is None else {"kept": job.kept}
    return run_readme(path, first_use(use_of(job.task, model), path), exportable=can_be_exported(model), **told)


@dataclass(frozen=True)
class Further:
    """How much further a finished run is trained; all None: not at all."""

    minutes: float | None = None
    steps: int | None = None
    epochs: float | None = None

    def count(self, job: Job) -> int:
        """In steps."""
        if self.steps is not None:
            return self.steps
        if self.epochs is not None:
            return max(1, round(self.epochs * job.per_epoch / job.config.training.batch))
        assert self.minutes is not None
        return max(1, int(60 * self.minutes / job.seconds_per_step()))

    def extend(self, run: RunDirectory, job: Job) -> None:
        """Record that a finished run goes on, with a new curve."""
        checkpoint = load_newest(run.checkpoints)
        if checkpoint is None or not checkpoint.state["progress"]["finished"]:
            raise DataError(
                f"{run.path} is not finished", expected="a finished run to train further", advice="resume it first"
            )
        if job.find is not None and checkpoint.step == job.most:
            raise UnsupportedError(
                f"{run.path} is finished for good: all of its text is counted",
                expected="nothing to train further",
                advice="for more text, train a new run",
            )
        steps = checkpoint.step + self.count(job)
        run.add_event({"event": "extend", "step": checkpoint.step, "steps": steps})


NO_FURTHER = Further()


def train_job(
    run: RunDirectory,
    job: Job,
    ranks: Ranks,
    report: Report,
    *,
    request: Request | None = None,
    start: Start | None = None,
) -> Outcome:
    """A new run, of a `request`, is fitted to the clock on the way; a resumed one keeps its plan as it is."""
    report({"event": "phase", "name": "training"})
    with run.locked() if ranks.is_first else nullcontext():
        torch.manual_seed(job.config.training.seed)
        if job.find is not None:
            model, outcome = job.find(run, report)
        else:
            model, outcome = _learned(run, job, ranks, report, request, start)
        if outcome.stopped_by != "signal":
            _after(model, outcome, run, job, ranks, report)
        return outcome


def _learned(
    run: RunDirectory, job: Job, ranks: Ranks, report: Report, request: Request | None, start: Start | None
) -> tuple[nn.Module, Outcome]:
    """In steps of gradients; the model has its best weights if anything is still to be done with it."""
    settings = job.config.training
    model = _model_to_train(run, job.config, start).to(settings.device)
    pace = None
    if settings.minutes is not None and request is not None:
        pace = Pace(request.started + 60 * settings.minutes - job.seconds_at_end(), job.most)

    def evaluate() -> dict[str, float]:
        found = job.measure(model, "validation", _sharing(job, ranks))
        if job.watch is not None:
            job.watch(model, trainer.progress.step)
        return found

    trainer = Trainer(
        model,
        settings=settings,
        run=run,
        samples=job.samples,
        loss=job.loss,
        evaluate=evaluate,
        on_step=lambda values: report({"event": "step", "total": trainer.schedule.total, **values}),
        ranks=ranks,
        pace=pace,
    )
    trainer.decides = job.decides
    trainer.carried = job.carried
    trainer.saves_start = job.config.start is not None
    trainer.identity = job.config.to_dict()
    trainer.identity["data"].pop("test")  # its content is in the fingerprint
    if job.look is not None and ranks.world == 1:
        report(job.look(model) | {"when": "before"})
    if job.watch is not None and load_newest(run.checkpoints) is None:
        job.watch(model, 0)
    outcome = trainer.train()
    if outcome.stopped_by != "signal" and (job.look is not None or job.has_test or job.conclude is not None):
        load_model_tensors(trainer, run.read_model())  # the best weights; those in memory may be later
    return model, outcome


def _sharing(job: Job, ranks: Ranks) -> Ranks:
    """Who shares the work of measuring: a sharded model runs on all ranks at once, and there is none to share."""
    return ALONE if job.config.training.sharded else ranks


def _after(model: nn.Module, outcome: Outcome, run: RunDirectory, job: Job, ranks: Ranks, report: Report) -> None:
    """What is shown, found out and tested with the best weights."""
    if job.look is not None and ranks.world == 1:
        report(job.look(model) | {"when": "after"})
    if job.conclude is not None:
        found = job.conclude(model.eval(), run)
        for name, content in found.items() if ranks.is_first else ():
            run.write_json(name, content)
    if job.has_test:
        report({"event": "phase", "name": "testing", "step": outcome.progress.best_step})
        metrics = job.measure(model, "test", _sharing(job, ranks))
        found = {"step": outcome.progress.best_step, "test_loss": metrics.pop("validation_loss")}
        if ranks.is_first:
            run.write_json(TEST_FILE, found | _plain(metrics))


def _model_to_train(run: RunDirectory, config: RunConfig, start: Start | None) -> nn.Module:
    """With fresh weights, or those of the model it starts from; once there is a checkpoint, that one counts."""
    if config.start is None or load_newest(run.checkpoints) is not None:
        return config.model.build()
    return (start or read_start(config.start)).build(config.model)


def final_metrics(run: RunDirectory, outcome: Outcome) -> dict[str, Any]:
    """How good the best weights are: on the test data if there are any, else on what was held out.

    None is an infinite loss: something came that the model calls impossible.
    """
    return metrics_of(run, asdict(outcome.progress))


def metrics_of(run: RunDirectory, progress: Mapping[str, Any]) -> dict[str, Any]:
    """The same from the progress that a checkpoint has."""
    best = progress["best"]
    found = {**_plain(progress["best_metrics"]), "validation_loss": best, "measured_on": "validation"}
    found.pop("loss", None)
    if (run.path / TEST_FILE).exists():
        test = read_json(run.path / TEST_FILE)
        if test.pop("step") == progress["best_step"]:  # else it is of weights that were best before
            found |= {**test, "measured_on": "test"}
    if found["measured_on"] == "validation" and (run.path / BY_LENGTH).exists():
        found["by_length"] = read_json(run.path / BY_LENGTH)
    return {name: None if value in (math.inf, -math.inf) else value for name, value in found.items()}


def _plain(metrics: dict[str, Any]) -> dict[str, Any]:
    """By plain names: in a log they stand beside those of the step, here they are alone."""
    return {name.removeprefix("validation_"): value for name, value in metrics.items()}
