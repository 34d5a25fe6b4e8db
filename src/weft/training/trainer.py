"""The training loop. Everything it does at step n follows from the settings, n, and what a checkpoint
holds, so that a run that was killed ends with the same bytes as one that was not."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from weft.checkpoints import Checkpoint, RunDirectory, load_newest, remove_old, save_checkpoint
from weft.data.order import hash_numbers
from weft.errors import ConfigError, DataError
from weft.models.base import Model
from weft.training.allocation import keep_freed_memory
from weft.training.averaging import Averaging
from weft.training.distributed import ALONE, Ranks, gather, shard
from weft.training.freezing import freeze
from weft.training.pace import Pace
from weft.training.resume import Log, RecurrentState, TrainingState, check_identity, unique_state
from weft.training.schedule import Schedule
from weft.training.settings import TrainingConfig
from weft.training.stopping import StopRequest
from weft.training.sums import LossSums

log = logging.getLogger(__name__)
Loss = Callable[[nn.Module, Any], tuple[Any, ...]]


@dataclass
class Progress:
    """The progress of a run; all of it is in every checkpoint."""

    step: int = 0
    tokens: int = 0
    best: float = math.inf  # the loss of the best weights
    goal: float = -math.inf  # what they reach of the measure that decides
    best_step: int = 0
    since_best: int = 0
    finished: bool = False
    metrics: dict[str, Any] = field(default_factory=dict)  # of the last evaluation
    best_metrics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How training ended."""

    progress: Progress
    stopped_by: str  # "finished", "patience" or "signal"


class Trainer:
    """Trains `model` on samples that are a pure function of their number.

    samples(numbers)    the batch with these sample numbers, as a tensor or anything with `.to(device)`
    loss(model, batch)  a summed loss, how many terms it has, and perhaps its parts by name: for the log, the
                        (summed loss, right answers, terms) of each
    evaluate()          metrics of the validation part; `selection_metric` names the one by which weights are best: the
                        loss, or one of which more is better
    on_step(values)     called after every step, for a progress bar
    identity            what the run is: a checkpoint of another one is refused
    carried             what is handed from step to step besides weights
    saves_start         the weights came from elsewhere: the first checkpoint is of step 0
    """

    def __init__(
        self,
        model: Model,
        *,
        settings: TrainingConfig,
        run: RunDirectory,
        samples: Callable[[np.ndarray], Any],
        loss: Loss,
        evaluate: Callable[[], dict[str, float]],
        on_step: Callable[[dict[str, Any]], None] | None = None,
        ranks: Ranks = ALONE,
        pace: Pace | None = None,
        selection_metric: str = "validation_loss",
        identity: dict[str, Any] | None = None,
        carried: RecurrentState | None = None,
        saves_start: bool = False,
    ) -> None:
        self.model, self.settings, self.run, self.ranks = model, settings, run, ranks
        self.samples, self.loss, self.evaluate, self.on_step = samples, loss, evaluate, on_step
        self.pace, self.selection_metric, self.saves_start = pace, selection_metric, saves_start
        self.identity = identity or {}
        self.device = torch.device(settings.device)
        self.sharded = settings.sharded and ranks.world > 1
        if self.sharded and any(p.dim() == 0 for p in model.parameters()):
            raise ConfigError(
                "attention.redraw with training.sharded", expected="one of them: draws are counted in one place"
            )
        if self.sharded:
            if settings.batch % ranks.world:
                raise ConfigError(f"a batch of {settings.batch} over {ranks.world} processes", expected="equal parts")
            shard(model, ranks, self.device)
        freeze(model, settings.freeze)
        self.optimizer = settings.optimizer.build(model)
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.schedule = Schedule(
            settings.steps, settings.warmup, settings.decay, inverse_sqrt=settings.schedule == "inverse-sqrt"
        )
        self.schedule.apply(run.events())
        self.progress = Progress()
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.averaging = Averaging(model, settings.average)
        self.state = TrainingState(model, self.optimizer, self.averaging, carried, ranks, self.device, settings.batch)
        self.log = Log(run, enabled=ranks.is_first)

    def train(self) -> Outcome:
        """From the current step to the end, an early stop or a signal; saves on the way and at the end."""
        keep_freed_memory()
        try:
            return self._train()
        finally:
            self.log.close()

    def _train(self) -> Outcome:
        found = self._restore()
        if self.progress.finished and not self._is_extended():
            return Outcome(self.progress, "finished")
        if self.saves_start and not found:
            self._save()
        with StopRequest() as stop:
            while self.progress.step < self.schedule.total:
                self._decide_pace()
                values = self._step()
                step = self.progress.step
                last = step >= self.schedule.total
                if last or self._due(step, self.settings.evaluate_every):
                    values |= self._evaluate()
                self.log.write(values)
                if self.on_step is not None:
                    self.on_step(values)
                patient = self.settings.patience is None or self.progress.since_best < self.settings.patience
                signalled = self.ranks.any(stop.requested, self.device)
                self.progress.finished = last or not patient
                if self.progress.finished or signalled or self._due(step, self.settings.checkpoint_every):
                    self._save()
                if not patient:
                    return Outcome(self.progress, "patience")
                if signalled and not last:
                    return Outcome(self.progress, "signal")
        return Outcome(self.progress, "finished")

    def load_best(self) -> None:
        """The weights that the run keeps; those in memory may be later."""
        self.state.load_model(self.run.read_model())

    def _restore(self) -> bool:
        """Take up the newest sound checkpoint, or begin; says whether there was one."""
        checkpoint = load_newest(self.run.checkpoints)
        if checkpoint is None:
            self.log.rewind(0)
            return False
        check_identity(checkpoint.state["identity"], self.identity)
        self.state.load(checkpoint.tensors)
        for name, value in checkpoint.state["progress"].items():
            setattr(self.progress, name, value)
        self.log.rewind(checkpoint.state["metrics_bytes"])
        if self.pace is not None:
            self.pace.skip(self.progress.step, self.schedule.total)
        return True

    def _save(self) -> None:
        """Rank 0 writes; the others wait, so that no rank runs ahead of what is on disk."""
        size = self.log.sync()
        state = {"progress": asdict(self.progress), "metrics_bytes": size, "identity": self.identity}
        checkpoint = Checkpoint(self.progress.step, self.state.tensors(), state)
        if self.ranks.is_first:
            save_checkpoint(self.run.checkpoints, checkpoint)
            remove_old(self.run.checkpoints, self.settings.keep)
        self.ranks.wait()

    def _is_extended(self) -> bool:
        """Whether a finished run is extended from here; its patience then begins anew."""
        extended = any(new_curve and at == self.progress.step for at, _, new_curve in self.schedule.changes)
        if extended:
            self.progress.since_best = 0
        return extended

    @staticmethod
    def _due(step: int, every: int) -> bool:
        return every > 0 and step % every == 0

    def _step(self) -> dict[str, Any]:
        """One update: gradients of summed losses, divided by the number of terms over all processes."""
        began = time.perf_counter()
        step = self.progress.step
        factor = self.schedule.factor(step)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        self._reseed(_seed(self.settings.seed, step, self.ranks.rank))
        total, count, parts = self._gradients(step)
        norm = self._scale_and_clip(count)
        loss = total / count
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._refuse(step, loss, norm)
        self.optimizer.step()
        self.progress.step += 1
        self.progress.tokens += count
        return {
            "step": self.progress.step,
            "tokens": self.progress.tokens,
            "loss": loss,
            **parts,
            "learning_rate": self.settings.optimizer.learning_rate * factor,
            "gradient_norm": norm,
            "seconds": time.perf_counter() - began,
        }

    def _reseed(self, seed: int) -> None:
        """Of the devices in use alone: torch would note a seed for each other kind of device, with a traceback, every
        time, which takes as long as a small model's whole update."""
        torch.default_generator.manual_seed(seed)
        if self.device.type != "cpu":
            torch.manual_seed(seed)

    def _gradients(self, step: int) -> tuple[float, int, dict[str, float]]:
        """Accumulate over this rank's micro-batches; returns loss, count and parts over all ranks."""
        count = self.settings.batch
        numbers = (np.arange(count) + step * count)[self.ranks.share(count)]
        size = self.settings.micro_batch or len(numbers)
        if not self.model.training:
            self.model.train()
        for p in self.params:
            p.grad = None
        sums = LossSums()
        for start in range(0, len(numbers), size):
            batch = self.samples(numbers[start : start + size]).to(self.device)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bf16"):
                summed, terms, *parts = self.loss(self.model, batch)
            torch.autograd.backward(summed)
            sums.add(summed.item(), terms, parts[0] if parts else {})
        if self.ranks.world > 1:
            for p in self.params:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            sums.share(self.ranks, self.device)
            if not self.sharded:  # FSDP has averaged them already
                self.ranks.sum([p.grad for p in self.params if p.grad is not None])
        return sums.total, sums.count, sums.means()

    def _scale_and_clip(self, count: int) -> float:
        """Gradients of the sum → of the mean, not longer than `clip`; returns the length before."""
        gradients = [p.grad for p in self.params if p.grad is not None]
        unit = self.ranks.world / count if self.sharded else 1 / count
        lengths = [gather(length) for length in torch._foreach_norm(gradients)]
        norm = float(torch.stack(lengths).double().norm()) * unit
        clip = self.settings.clip
        shrink = 1.0 if clip is None or norm <= clip else clip / norm
        torch._foreach_mul_(gradients, shrink * unit)
        return norm

    def _refuse(self, step: int, loss: float, norm: float) -> None:
        """A step with a loss that is no number is not taken; the last good state is on disk."""
        batch = self.settings.batch
        event = {"event": "nan", "step": step + 1, "loss": repr(loss), "gradient_norm": repr(norm)}
        if self.ranks.is_first:
            self.run.add_event(event | {"samples": [step * batch, (step + 1) * batch - 1]})
        raise DataError(
            f"step {step + 1}: the loss is {loss}, the gradient norm {norm}: the step was not taken",
            expected="finite numbers",
            advice="the last checkpoint is good; try a lower training.optimizer.learning_rate, or look at the data",
        )

    def _evaluate(self) -> dict[str, float]:
        self.model.eval()
        progress = self.progress
        with self.averaging.applied():
            with torch.no_grad():
                metrics = self.evaluate()
            progress.metrics = metrics
            loss = metrics["validation_loss"]
            goal = -loss if self.selection_metric == "validation_loss" else metrics[self.selection_metric]
            if goal > progress.goal or (goal == progress.goal and loss < progress.best):
                progress.best, progress.goal, progress.best_step, progress.since_best = loss, goal, progress.step, 0
                progress.best_metrics = metrics
                state = unique_state(self.model, keep=self.ranks.is_first)
                if self.ranks.is_first:
                    self.run.write_model(state)
            else:
                progress.since_best += 1
        return metrics

    def _decide_pace(self) -> None:
        """At a few recorded steps, fit the remaining steps to the remaining time."""
        if self.pace is None or not self.pace.due(self.progress.step, self.schedule.total):
            return
        total = int(self.ranks.agree(self.pace.new_total(self.progress.step, self.schedule.total), self.device))
        event = {"event": "plan", "step": self.progress.step, "steps": total}
        if self.ranks.is_first:
            self.run.add_event(event)
        self.schedule.apply([event])


def _seed(seed: int, step: int, rank: int) -> int:
    """A seed for the dropout of one step on one rank: nothing about randomness needs to be saved."""
    return hash_numbers(seed, step, rank) >> 1
