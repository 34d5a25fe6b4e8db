"""Keeping to a time: at a few points of the run, the remaining steps are fitted to the remaining time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Pace:
    """`deadline` (of time.perf_counter) is when the last step should be done: evaluation comes after it.

    Decisions fall at fixed shares of the steps planned then, and each is recorded, so a resumed run takes
    the same ones at the same steps. `most` is how many steps are worth it, whatever the time left.
    """

    deadline: float
    most: int | None = None
    points: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
    since: int = 0  # the step and the time at which this process began
    began: float = field(default_factory=time.perf_counter)
    _next: int = 0

    def skip(self, step: int, total: int) -> None:
        """A resumed run: points that lie behind are decided."""
        self.since, self.began = step, time.perf_counter()
        while self._next < len(self.points) and step > int(self.points[self._next] * total):
            self._next += 1

    def due(self, step: int, total: int) -> bool:
        return self._next < len(self.points) and step >= max(1, int(self.points[self._next] * total))

    def new_total(self, step: int, total: int) -> int:
        """The number of steps that fits, if it differs from the plan by more than 2 %."""
        self._next += 1
        done = step - self.since
        if done < 3:
            return total
        now = time.perf_counter()
        each = (now - self.began) / done
        fitting = step + max(1, int((self.deadline - now) / each))
        if self.most is not None:
            fitting = max(step + 1, min(fitting, self.most))
        return fitting if abs(fitting - total) > 0.02 * total else total
