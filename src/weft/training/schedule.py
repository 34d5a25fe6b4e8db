"""The learning rate over a run, as a pure function of the step and of the plan's recorded changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Schedule:
    """Rises over the first share of the run, stays, and falls to zero over the last share; or falls as
    1/√step once it has risen (`inverse_sqrt`, Vaswani et al. 2017).

    The number of steps may change on the way: when the machine turns out slower or faster than measured
    ("plan": the remaining curve is stretched over the new number of remaining steps), or when a finished run is trained
    further ("extend": a new curve begins). Both are recorded events, so a resumed run draws the same curve.
    """

    steps: int
    warmup: float
    decay: float
    inverse_sqrt: bool = False
    changes: list[tuple[int, int, bool]] = field(default_factory=list)  # (at step, new total, a new curve?)

    def apply(self, events: Sequence[dict[str, Any]]) -> None:
        """Take over the recorded changes, in order."""
        for event in events:
            if event["event"] in ("plan", "extend"):
                self.changes.append((event["step"], event["steps"], event["event"] == "extend"))

    @property
    def total(self) -> int:
        """Steps of the whole run as planned now."""
        return self.changes[-1][1] if self.changes else self.steps

    def progress(self, step: int) -> float:
        """How much of the curve lies before this step, from 0 to 1."""
        done, since, total = 0.0, 0, self.steps
        for at, new_total, new_curve in self.changes:
            if step < at:
                break
            done = 0.0 if new_curve else done + (1 - done) * (at - since) / max(1, total - since)
            since, total = at, new_total
        return min(1.0, done + (1 - done) * (step - since) / max(1, total - since))

    def factor(self, step: int) -> float:
        """The learning rate of this step as a share of the largest; the first and last are above zero."""
        rest_after = 1 - self.progress(step)
        so_far = self.progress(step + 1) or 1.0  # 0: a new curve begins there, and this step ends its own
        up = min(1.0, so_far / self.warmup) if self.warmup else 1.0
        if self.inverse_sqrt:
            return min(up, math.sqrt(self.warmup / so_far))
        down = min(1.0, rest_after / self.decay) if self.decay else 1.0
        return min(up, down)
