"""The data of a run: which files, how many of what, how they were split, classes and lengths, and the warnings."""

from __future__ import annotations

import html
from typing import Any

from weft.pages import Bar, bars, figure, table
from weft.report.run_files import RunFiles

PARTS = {"train": "learned from", "validation": "held out", "test": "tested on"}
TOKENS = {"tokens": "train", "validation_tokens": "validation", "test_tokens": "test"}
MANY = 30  # classes that are drawn
QUARTERS = ("least", "a quarter is below", "half are below", "three quarters are below", "most")


def data(files: RunFiles) -> str:
    """Everything that is known of them."""
    facts = files.examples.get("data") or {}
    shown = [_files(files), _parts(files, facts), _warnings(files), _classes(facts), _lengths(facts)]
    problem = (files.examples.get("problems") or {}).get("data")
    if problem:
        shown.append(f"<p>What they are like cannot be told now: {html.escape(problem)}</p>\n")
    return "".join(shown)


def _files(files: RunFiles) -> str:
    given = files.config.get("data") or {}
    rows = [(PARTS[part], ", ".join(given[part])) for part in PARTS if given.get(part)]
    if not given.get("validation") and given.get("validation_share"):
        rows.append((PARTS["validation"], f"{given['validation_share']:.0%} of it"))
    for name in ("text", "pair", "label", "source", "target"):
        if given.get(name):
            rows.append((f"column of the {name}", given[name]))
    return table(("", "where from"), rows)


def _parts(files: RunFiles, facts: dict[str, Any]) -> str:
    """How many there are of each part: texts, rows, characters, tokens."""
    counts = {part: dict(found) for part, found in (facts.get("parts") or {}).items()}
    for key, part in TOKENS.items():
        if key in files.plan:
            counts.setdefault(part, {})["tokens"] = files.plan[key]
    names = list(dict.fromkeys(name for found in counts.values() for name in found))
    if not names:
        return ""
    rows = [(PARTS[part], *(found.get(name) for name in names)) for part, found in counts.items()]
    return table(("part", *names), rows)


def _warnings(files: RunFiles) -> str:
    told = "".join(f"<li>{html.escape(text)}</li>" for text in files.warnings)
    return f'<p>Before training it was warned:</p><ul class="warnings">{told}</ul>\n' if told else ""


def _classes(facts: dict[str, Any]) -> str:
    """How often each class occurs, drawn if they are not too many."""
    if facts.get("numbers"):
        rows = [(PARTS[part], *values) for part, values in facts["numbers"].items() if values]
        return table(("the label, a number", *QUARTERS), rows)
    classes = facts.get("classes")
    if not classes:
        return ""
    parts = [part for part in PARTS if any(part in counts for counts in classes.values())]
    rows = [(name, *(counts.get(part, 0) for part in parts)) for name, counts in classes.items()]
    heads = ("class", *(PARTS[part] for part in parts))
    title = "Classes, and how often each is learned from"
    if len(classes) > MANY:
        return f"<details><summary>{title}</summary>{table(heads, rows)}</details>\n"
    drawn = [Bar(name, counts.get("train", 0), f"{counts.get('train', 0):,}", 0) for name, counts in classes.items()]
    return figure(title, bars(title, drawn), heads, rows)


def _lengths(facts: dict[str, Any]) -> str:
    rows = [(name, *map(round, values)) for name, values in (facts.get("lengths") or {}).items() if values]
    return table(("lengths", *QUARTERS), rows) if rows else ""
