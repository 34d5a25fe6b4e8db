"""What a person sees while something long runs: a bar in a terminal, plain lines in a pipe, or JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from weft.tasks.environment import memory_in_use


class Reporter:
    """Takes the events of a run. Text goes to stderr; with `as_json`, each event is a line on stdout."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        self.task: Any = None
        self.last_line = time.monotonic()

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if os.environ.get("RANK", "0") != "0":  # under torchrun, the first process speaks for all
            return
        if kind == "progress":
            self._tokenising(event)
            return
        if self.as_json and (kind != "step" or self._line_is_due(event)):
            sys.stdout.write(json.dumps({k: v for k, v in event.items() if v is not None}) + "\n")
            sys.stdout.flush()
        if kind == "phase":
            self.console.print(f"{event['name']} …", highlight=False)
        elif kind == "plan":
            self._plan(event)
        elif kind == "step":
            self._step(event)

    def _tokenising(self, event: dict[str, Any]) -> None:
        """A line every few seconds: most texts are done before the first."""
        if time.monotonic() - self.last_line > 3:
            self.last_line = time.monotonic()
            self.console.print(f"  {event['done'] / max(1, event['total']):.0%} of the text", highlight=False)

    def _plan(self, plan: dict[str, Any]) -> None:
        say = self.console.print
        say(
            f"Learning from {plan['characters']:,} characters ({plan['tokens']:,} tokens, {plan['tokenizer']}, "
            f"vocabulary {plan['vocab_size']:,}); {plan['validation_tokens']:,} tokens are held out.",
            highlight=False,
        )
        say(
            f"Model: gpt, {plan['depth']} layers of width {plan['width']}, "
            f"{plan['parameters'] / 1e6:.2f} M parameters, reading {plan['length']} tokens at a time; "
            f"about {plan['memory'] / 2**20:,.0f} MB.",
            highlight=False,
        )
        time_words = f", planned for {plan['minutes']:g} minutes" if plan["minutes"] else ""
        say(
            f"{plan['steps']:,} steps of {plan['batch']} texts ({plan['epochs']:g} epochs){time_words}.",
            highlight=False,
        )
        if plan["tokens"] < 10_000:
            say(f"{plan['tokens']:,} tokens are very little to learn from: expect babble.", highlight=False)
        if plan["epochs"] > 10:
            say("The text will be read more than ten times: expect it to be learned by heart.", highlight=False)

    def _line_is_due(self, event: dict[str, Any]) -> bool:
        due = time.monotonic() - self.last_line > 1 or "validation_loss" in event or event["step"] == event["total"]
        if due:
            self.last_line = time.monotonic()
        return due

    def _step(self, event: dict[str, Any]) -> None:
        if self.console.is_terminal and not self.as_json:
            self._show_bar(event)
        elif not self.as_json and (event["step"] == 1 or self._is_twentieth(event)):
            self.console.print(self._words(event), highlight=False)

    @staticmethod
    def _is_twentieth(event: dict[str, Any]) -> bool:
        every = max(1, event["total"] // 20)
        return event["step"] % every == 0 or "validation_loss" in event

    @staticmethod
    def _words(event: dict[str, Any]) -> str:
        held_out = f"  held out {event['validation_loss']:.4f}" if "validation_loss" in event else ""
        return f"step {event['step']}/{event['total']}  loss {event['loss']:.4f}{held_out}"

    def _show_bar(self, event: dict[str, Any]) -> None:
        if self.bar is None:
            self.bar = Progress(
                TextColumn("step {task.completed}/{task.total}"),
                BarColumn(),
                TextColumn(
                    "loss {task.fields[loss]:.4f}  {task.fields[speed]:,.0f} tokens/s  {task.fields[memory]:,.0f} MB"
                ),
                TimeRemainingColumn(),
                console=self.console,
                transient=False,
            )
            self.task = self.bar.add_task("training", total=event["total"], loss=event["loss"], speed=0.0, memory=0.0)
            self.bar.start()
            self.first = (time.monotonic(), event["tokens"])
        began, tokens = self.first
        speed = (event["tokens"] - tokens) / max(1e-9, time.monotonic() - began)
        memory = memory_in_use() / 2**20
        self.bar.update(
            self.task, completed=event["step"], total=event["total"], loss=event["loss"], speed=speed, memory=memory
        )

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()
