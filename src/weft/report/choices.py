"""What was chosen and why: the same facts that the command says before it trains."""

from __future__ import annotations

import html
from typing import Any

from weft.pages import table
from weft.report.run_files import RunFiles
from weft.tasks.task import find_task

FACTS = {  # of the plan by the name of its reason
    "task": ("task",),
    "tokenizer": ("tokenizer", "vocab_size"),
    "model": ("model",),
    "size": ("parameters", "width", "depth", "length"),
    "steps": ("steps", "batch", "batch_tokens", "epochs", "minutes"),
}
NAMES = {
    "vocab_size": "{:,} in the vocabulary",
    "parameters": "{:,} parameters",
    "width": "width {:,}",
    "depth": "{:,} layers",
    "length": "{:,} tokens at a time",
    "steps": "{:,} steps",
    "batch": "batches of {:,}",
    "batch_tokens": "{:,} tokens in each",
    "epochs": "{:g} epochs",
    "minutes": "{:g} minutes",
}


def choices(files: RunFiles) -> str:
    """The plan in sentences, then each choice with its reason."""
    if not files.plan:
        return "<p>This run was made by a version of Weft that did not write its plan down; see the settings below.</p>"
    lines = find_task(files.plan["task"], files.plan["model"]).words.plan(files.plan)
    told = "".join(f"<p>{html.escape(line)}</p>\n" for text in lines for line in text.split("\n"))
    rows = [(name, _facts(files.plan, name), reason) for name, reason in files.reasons.items()]
    return told + (table(("what", "chosen", "why"), rows) if rows else "") + _changed(files)


def _facts(plan: dict[str, Any], name: str) -> str:
    keys = [key for key in FACTS.get(name, ()) if plan.get(key) is not None]
    if "batch_tokens" in keys:
        keys.remove("batch")  # which counts length_buckets of tokens there
    return ", ".join(NAMES.get(key, "{}").format(plan[key]) for key in keys)


def _changed(files: RunFiles) -> str:
    """A run that was trained further, or fitted to the clock, has another number of steps than was planned."""
    taken, planned = files.progress.get("step"), files.plan.get("steps")
    if not taken or not planned or taken == planned:
        return ""
    return f"<p>In the end there were {taken:,} steps instead of {planned:,}.</p>\n"
