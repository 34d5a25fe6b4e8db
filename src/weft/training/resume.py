"""What a checkpoint holds and how a run takes it up again, to the byte."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from weft.checkpoints import RunDirectory
from weft.errors import DataError
from weft.training.averaging import Averaging
from weft.training.distributed import Ranks, gather, shard_like

CLOCK_VALUES = ("seconds",)  # values that depend on the clock go to timing.jsonl
EARLIER_NAMES = {
    "exp_avg": "first",
    "exp_avg_sq": "second",
}  # what checkpoints of earlier versions call AdamW's averages


class RecurrentState(Protocol):
    """What training hands from one step to the next besides weights: tables with a row for each sample of a batch.
    Under several processes, each has the rows of its own share."""

    def tensors(self) -> dict[str, Tensor]:
        """By name; none before the first step."""
        ...

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on with these."""
        ...


class Log:
    """metrics.jsonl: one line a step, only values that the run determines; timing.jsonl: the clock."""

    def __init__(self, run: RunDirectory, *, enabled: bool) -> None:
        self.run, self.enabled = run, enabled
        self._metrics: Any = None
        self._timing: Any = None

    def rewind(self, size: int) -> None:
        """Cut the log back to where the checkpoint saw it."""
        if not self.enabled:
            return
        path = self.run.metrics_file
        if (path.stat().st_size if path.exists() else 0) < size:
            raise DataError(f"{path} is shorter than the checkpoint says", expected=f"at least {size} bytes")
        self._metrics = path.open("ab")
        self._metrics.truncate(size)
        self._timing = self.run.timing_file.open("ab")

    def write(self, values: dict[str, Any]) -> None:
        if self.enabled:
            lasting = {k: v for k, v in values.items() if k not in CLOCK_VALUES}
            clock = {"step": values["step"]} | {k: round(v, 6) for k, v in values.items() if k in CLOCK_VALUES}
            self._metrics.write(json.dumps(lasting).encode() + b"\n")
            self._timing.write(json.dumps(clock).encode() + b"\n")

    def close(self) -> None:
        """Nothing is written any more. Left open, the last lines would come in whenever the file is forgotten: perhaps
        into a log that this process is already writing."""
        for file in (self._metrics, self._timing):
            if file is not None:
                file.close()
        self._metrics = self._timing = None

    def sync(self) -> int:
        """On disk for good; returns its size."""
        if not self.enabled:
            return 0
        self._metrics.flush()
        os.fsync(self._metrics.fileno())
        self._timing.flush()
        return int(self._metrics.seek(0, os.SEEK_END))


@dataclass(frozen=True, eq=False)
class TrainingState:
    """All tensors that a step of training changes. Data order, schedule and dropout follow from the step and need none.

    carried   what is handed from step to step besides weights
    batch     samples of a step, over all processes
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    averaging: Averaging
    carried: RecurrentState | None
    ranks: Ranks
    device: torch.device
    batch: int

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """By part, as a checkpoint holds them. All ranks must ask; the first one has them whole."""
        first = self.ranks.is_first
        tensors = {"model": unique_state(self.model, keep=first), "optimizer": self.optimizer_tensors(keep=first)}
        if averaged := self.averaging.tensors():
            tensors["average"] = averaged
        if carried := self.carried_tensors():
            tensors["carried"] = carried
        return tensors

    def load(self, tensors: dict[str, dict[str, Tensor]]) -> None:
        """Take up what a checkpoint holds."""
        self.load_model(tensors["model"])
        self.load_optimizer(tensors["optimizer"])
        self.averaging.restore(tensors.get("average", {}))
        self.load_carried(tensors.get("carried", {}))

    def load_model(self, tensors: dict[str, Tensor]) -> None:
        """Into the model's own tensors, sharded or not; tied ones are filled through their first name."""
        params = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        stored = {name for name in self.model.state_dict() if name in params}
        if set(tensors) != stored or any(tensors[name].shape != params[name].shape for name in stored):
            raise DataError("the checkpoint does not fit the model", expected="the tensors of config.json's model")
        with torch.no_grad():
            for name, tensor in tensors.items():
                params[name].copy_(shard_like(tensor, params[name]))

    def optimizer_tensors(self, *, keep: bool = True) -> dict[str, Tensor]:
        """`name of the parameter` + `/` + `name of the state`: readable, and independent of their order."""
        names: dict[Tensor, str] = {p: name for name, p in self.model.named_parameters()}
        tensors = {}
        for p, state in self.optimizer.state.items():
            for key, value in state.items():
                together = gather(value) if isinstance(value, Tensor) else torch.tensor(value)
                if keep:
                    tensors[f"{names[p]}/{key}"] = together
        return tensors

    def load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        params = dict(self.model.named_parameters())
        for full_name, tensor in tensors.items():
            name, _, key = full_name.rpartition("/")
            if name not in params:
                raise DataError(f"the checkpoint has optimizer state for {name!r}, which the model does not have")
            p, key = params[name], EARLIER_NAMES.get(key, key)
            counts = key == "step"  # one number, whole on every rank
            self.optimizer.state[p][key] = tensor.to(p.device) if counts else shard_like(tensor, p)

    def carried_tensors(self) -> dict[str, Tensor]:
        """All rows: those of the other processes are zero here, so that the sum is the whole."""
        if self.carried is None:
            return {}
        tensors = self.carried.tensors()
        if self.ranks.world > 1 and tensors:
            tensors = {name: t.clone() for name, t in tensors.items()}
            self.ranks.sum(list(tensors.values()))
        return tensors

    def load_carried(self, tensors: dict[str, Tensor]) -> None:
        """The rows of this process's share of the batch."""
        if self.carried is None or not tensors:
            return
        own = self.ranks.share(self.batch)
        placed = {name: torch.zeros_like(t, device=self.device) for name, t in tensors.items()}
        for name, t in tensors.items():
            placed[name][own] = t[own].to(self.device)
        self.carried.load(placed)


def unique_state(model: nn.Module, *, keep: bool = True) -> dict[str, Tensor]:
    """The state dict with whole tensors, tied weights once under their first name. All ranks must ask;
    one that does not `keep` only helps to put sharded tensors together."""
    seen: set[int] = set()
    state = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            together = gather(tensor.detach())
            if keep:
                state[name] = together
    return state


def check_identity(recorded: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to resume a run with other settings; the difference is shown."""
    before, after = _flat(recorded), _flat(now)
    changed = [key for key in sorted(before | after) if before.get(key) != after.get(key)]
    if changed:
        shown = ", ".join(f"{key}: {before.get(key)} → {after.get(key)}" for key in changed[:3])
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise DataError(
            f"the settings in config.json have changed since this run began: {shown}{more}",
            advice="put them back, or train a new run",
        )


def _flat(table: dict[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return flat
