"""What a person sees while something long runs: a bar in a terminal, plain lines in a pipe, or JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from weft.errors import WeftError
from weft.tasks.environment import memory_in_use, peak_memory

TEXT_COLUMNS = ("{task.description}", "{task.fields[speed]:.1f} M characters/s")
IMAGE_COLUMNS = ("{task.description}", "{task.fields[speed]:,.0f} images/s")
MILLION = 1e6
STEP_COLUMNS = (
    "step {task.completed}/{task.total}",
    "loss {task.fields[loss]:.4f}  {task.fields[speed]:,.0f} {task.fields[unit]}/s  {task.fields[memory]:,.0f} MB",
)
HEALTH_LINES = 3  # of the sentences about a model's heads, while it learns
PATIENCE = 3  # seconds between plain lines about a text
T = TypeVar("T")


class ProgressBar:
    """One line that is drawn again and again: words, a bar, more words, the time left."""

    def __init__(self, console: Console, name: str, columns: tuple[str, str], total: int, **fields: Any) -> None:
        before, after = map(TextColumn, columns)
        percent = () if "task.total" in columns[0] else (TaskProgressColumn(),)
        self.progress = Progress(before, BarColumn(), *percent, after, TimeRemainingColumn(), console=console)
        self.task: TaskID = self.progress.add_task(name, total=total, speed=0.0, **fields)
        self.began, self.first = time.monotonic(), 0
        self.progress.start()

    def speed(self, count: int) -> float:
        """Of something that is counted, a second since the bar began."""
        return (count - self.first) / max(1e-9, time.monotonic() - self.began)

    def update(self, done: int, total: int, **fields: Any) -> None:
        self.progress.update(self.task, completed=done, total=total, **fields)

    def close(self) -> None:
        self.progress.stop()


class Reporter:
    """Takes the events of a run. Text goes to stderr; with `as_json`, each event is a line on stdout."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        terminal = can_draw()
        self.console = Console(
            stderr=True, force_terminal=None if terminal else False, highlight=False, markup=False, emoji=False
        )
        self.live = terminal and not as_json
        self.bar: ProgressBar | None = None
        self.unit, self.part = "tokens", 0  # which twentieth of the steps was told last
        self.last_line = self.last_event = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        self.close()
        if self.as_json and isinstance(error, Exception) and is_first():
            write_event({"event": "failed", "reason": reason_of(error), "peak_memory": peak_memory()})

    def close(self) -> None:
        """No bar is drawn any more; the next event may begin one."""
        self._end_bar()

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if not is_first():
            return
        if self.as_json and (kind not in ("step", "progress") or self._event_is_due(event)):
            write_event(event | {"memory": memory_in_use()} if kind == "step" else event)
        if kind == "phase":
            self._phase(event)
        elif kind == "progress":
            self._progress(event)
        elif kind == "warning":
            self.console.print(f"Warning: {event['text']}.")
        elif kind == "plan":
            self._plan(event)
        elif kind == "sample":
            self._sample(event)
        elif kind == "health":
            self._health(event)
        elif kind == "step":
            self._step(event)

    def _sample(self, event: dict[str, Any]) -> None:
        """What the model writes, with room around it."""
        self._end_bar()
        self.console.print(f"\nWhat it writes {event['when']} training, beginning with {event['prompt']!r}:")
        self.console.print(event["prompt"] + event["text"] + "\n", markup=False)

    def _health(self, event: dict[str, Any]) -> None:
        """A few short lines above the bar."""
        if "without" in event:
            self.console.print(f"{event['without']}.")
            return
        lines = event["sentences"][:HEALTH_LINES]
        for number, line in enumerate(lines):
            before = f"health at step {event['step']}: "
            self.console.print((before if number == 0 else " " * len(before)) + line)

    def _event_is_due(self, event: dict[str, Any]) -> bool:
        """At most one a second, but never without an evaluation or the end."""
        due = time.monotonic() - self.last_event > 1 or "validation_loss" in event
        due = due or (event["event"] == "step" and event["step"] == event["total"])
        if due:
            self.last_event = time.monotonic()
        return due

    def _end_bar(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def _phase(self, event: dict[str, Any]) -> None:
        self._end_bar()
        self.last_line = time.monotonic()
        if self.live and event.get("total"):
            columns = IMAGE_COLUMNS if event.get("unit") == "images" else TEXT_COLUMNS
            self.bar = ProgressBar(self.console, event["name"], columns, event["total"])
        else:
            self.console.print(f"{event['name']} …")

    def _progress(self, event: dict[str, Any]) -> None:
        """The bar, or a line every few seconds: most texts are done before the first."""
        done, total = event["done"], event["total"]
        if self.bar is not None:
            self.bar.update(done, total, speed=self.bar.speed(done) / (1 if "unit" in event else MILLION))
        elif time.monotonic() - self.last_line > PATIENCE:
            self.last_line = time.monotonic()
            what = event.get("unit", "text")
            self.console.print(f"  {event['phase']}: {done / max(1, total):.0%} of the {what}")

    def _plan(self, plan: dict[str, Any]) -> None:
        from weft.tasks.task import find_task

        words = find_task(plan["task"], plan["model"]).words
        self.unit = words.speed
        for line in list(words.plan(plan))["same_data" in plan :]:  # the first is about the data
            self.console.print(line)

    def _step(self, event: dict[str, Any]) -> None:
        if self.live:
            self._show_step(event)
        elif not self.as_json and (self._is_twentieth(event) or "validation_loss" in event):
            self.console.print(self._words(event))

    def _is_twentieth(self, event: dict[str, Any]) -> bool:
        """Whether this is the first step that is told of a twentieth; of another process, not every step is."""
        before, self.part = self.part, event["step"] // max(1, event["total"] // 20)
        return self.part != before or event["step"] == 1

    @staticmethod
    def _words(event: dict[str, Any]) -> str:
        validation = f"  validation {event['validation_loss']:.4f}" if "validation_loss" in event else ""
        return f"step {event['step']}/{event['total']}  loss {event['loss']:.4f}{validation}"

    def _show_step(self, event: dict[str, Any]) -> None:
        if self.bar is None:
            self.bar = ProgressBar(
                self.console, "training", STEP_COLUMNS, event["total"], loss=event["loss"], memory=0.0, unit=self.unit
            )
            self.bar.first = event["tokens"]
        speed = self.bar.speed(event["tokens"])
        memory = event.get("memory", memory_in_use()) / 2**20  # of another process, if that trains
        self.bar.update(event["step"], event["total"], loss=event["loss"], speed=speed, memory=memory)


def is_first() -> bool:
    """Under torchrun, the first process speaks for all."""
    return os.environ.get("RANK", "0") == "0"


def write_event(event: dict[str, Any]) -> None:
    """A line of JSON on stdout. A run goes on if nobody listens any more.

    What is None is left out, but of a plan, and of the end: an infinite loss is None."""
    told = {name: value for name, value in event.items() if value is not None or event["event"] in ("plan", "done")}
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def reason_of(error: Exception) -> str:
    """What went wrong, in a few lines at most; what is not ours is named by its kind."""
    if isinstance(error, WeftError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}".rstrip(": ")


def counted(things: Sequence[T], name: str) -> Iterator[T]:
    """These things one after the other, with a bar if anybody sees it."""
    if not can_draw():
        yield from things
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(things, description=name)


def can_draw() -> bool:
    """Whether stderr is a terminal that may be sent control codes."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    return wanted and sys.stderr.isatty()
