"""The beginning of a report: what this is and how good it is, in a sentence and the numbers that matter."""

from __future__ import annotations

import html
from typing import Any

from weft.report.run_files import RunFiles
from weft.tasks.words import Metric

RISEN = 1.005  # a loss above the best by more than this has risen
NAMES = {
    "bits_per_byte": ("bits per byte", "fewer is better; 8 is knowing nothing"),
    "perplexity": ("perplexity", "it is as unsure as among so many tokens"),
    "accuracy": ("right", "share of examples"),
    "macro_f1": ("macro F1", "mean over classes, 1 is best"),
    "micro_f1": ("micro F1", "over all labels, 1 is best"),
    "exact_match": ("exactly right", "share of examples"),
    "calibration_error": ("calibration error", "how far what it claims is from how often it is right"),
    "spearman": ("Spearman", "correlation of ranks, 1 is best"),
    "pearson": ("Pearson", "correlation, 1 is best"),
    "bleu": ("BLEU", "100 is best"),
    "chrf": ("chrF", "100 is best"),
    "masked_accuracy": ("right words", "share of the gaps"),
    "spans_accuracy": ("right tokens", "share of the gaps"),
    "loss": ("nats", "the loss, less is better"),
    "words": ("words", "that are frequent enough to have a vector"),
}
MOST = 3


def summary(files: RunFiles) -> str:
    """Sentence, numbers, and what to know about them."""
    told = f'<p class="lead">{html.escape(_sentence(files))}</p>\n'
    if not files.metrics:
        return told + "<p>Nothing was measured yet.</p>\n"
    meanings = NAMES | dict(files.words.meanings)
    tiles = ""
    for name, value in _numbers(files)[:MOST]:
        metric = files.words.metric(name)
        tiles += _tile(value, metric, meanings.get(name, (metric.title, "")))
    where = {"test": "the test data, which nothing was chosen by", "validation": "what was held out of the data"}
    on = where.get(files.metrics["measured_on"], files.metrics["measured_on"])
    notes = "".join(f"<p>{html.escape(note)}</p>\n" for note in _notes(files))
    return f'{told}<div class="tiles">{tiles}</div>\n<p class="soft">Measured on {html.escape(on)}.</p>\n{notes}'


def _sentence(files: RunFiles) -> str:
    model, data = files.config.get("model") or {}, files.config.get("data") or {}
    does = files.words.does
    start = files.config.get("start")
    begun = f", begun from {start}" if start else ""
    size = f" of {_size(files.plan['parameters'])} parameters" if files.plan.get("parameters") else ""
    seconds = max(files.seconds.values(), default=0.0)
    steps = files.progress.get("step") or 0
    long = f", in {steps:,} steps and {seconds:,.0f} seconds" if steps > 1 and seconds >= 1 else ""
    learned = f"learned from {_named(data.get('train') or [])}{begun}{long}"
    return f"A {model.get('kind', 'model')}{size} that {does}, {learned}."


def _size(parameters: int) -> str:
    return f"{parameters / 1e6:.1f} million" if parameters >= 950_000 else f"{parameters / 1e3:.0f} thousand"


def _named(paths: list[str]) -> str:
    if list(paths) == ["demo"]:
        return "the embedded demo"
    shown = ", ".join(paths[:3])
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more"


def _numbers(files: RunFiles) -> list[tuple[str, float | None]]:
    """Those that matter, as far as they were measured; None is infinite."""
    found = dict(files.metrics)
    found["loss"] = found["test_loss"] if "test_loss" in found else found["validation_loss"]
    found = files.words.numbers(found, files.config)
    return [(name, found[name]) for name in files.words.matter if name in found]


def _tile(value: float | None, metric: Metric, told: tuple[str, str]) -> str:
    title, meaning = told
    if value is None:
        shown = "∞"
    elif metric.is_share:
        shown = f"{value:.1%}"
    else:
        shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.3f}"
    return (
        f'<div class="tile"><span class="value">{shown}</span> <span class="name">{html.escape(title)}</span>'
        f'<span class="soft">{html.escape(meaning)}</span></div>'
    )


def _notes(files: RunFiles) -> list[str]:
    """What one should know beside the numbers."""
    notes, progress = [], files.progress
    most = _most_frequent(files)
    if most is not None and "accuracy" in files.metrics:
        notes.append(f"Always answering {most[0]!r} would be right in {most[1]:.1%}.")
    if files.status.state != "finished":
        notes.append(f"The run is not finished: {files.status.status}.")
    last = progress.get("metrics", {}).get("validation_loss", 0)
    if last and progress.get("best") and last > RISEN * progress["best"]:
        notes.append(files.words.overfitted(progress["best_step"], progress["step"]))
    elif progress.get("best_step", 0) < progress.get("step", 0):
        notes.append(f"The best weights are those of step {progress['best_step']:,} of {progress['step']:,}.")
    return notes


def _most_frequent(files: RunFiles) -> tuple[str, float] | None:
    """The class that occurs most where it was measured, and its share."""
    classes: dict[str, dict[str, Any]] = (files.examples.get("data") or {}).get("classes") or {}
    counts = {name: parts.get(files.metrics["measured_on"], 0) for name, parts in classes.items()}
    total = sum(counts.values())
    best = max(counts, key=lambda name: counts[name], default=None)
    return None if best is None or not total else (best, counts[best] / total)
