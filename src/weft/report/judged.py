"""The test at the end: all numbers, each class and what it was taken for, translations by length."""

from __future__ import annotations

from weft.pages import Line, beside, figure, heat_table, line_chart, table
from weft.pages.charts import HALF
from weft.report.run_files import RunFiles

MANY = 30  # classes; of more, the table of confusions is left out


def judged(files: RunFiles) -> str:
    """What was found, as far as there was a test or translations were measured."""
    return _numbers(files) + _confusion(files) + _classes(files) + _by_length(files)


def _numbers(files: RunFiles) -> str:
    rows = [(name.replace("_", " "), value) for name, value in files.test.items() if isinstance(value, int | float)]
    return table(("measure", "value"), rows, caption="The test at the end") + "\n" if rows else ""


def _classes(files: RunFiles) -> str:
    classes = files.test.get("classes")
    if not isinstance(classes, dict) or not classes:
        return ""
    keys = ("precision", "recall", "f1", "examples")
    rows = [(name, *(_short(scores.get(key)) for key in keys)) for name, scores in classes.items()]
    return table(("class", "precision", "recall", "F1", "examples"), rows, caption="Each class", right=True) + "\n"


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _confusion(files: RunFiles) -> str:
    """Darker is a larger share of the class."""
    confusion, classes = files.test.get("confusion"), files.test.get("classes")
    if not isinstance(confusion, list) or not isinstance(classes, dict) or len(classes) > MANY:
        return ""
    title = "Which class (row) was taken for which (column)"
    return heat_table(list(classes), list(classes), confusion, caption=title) + "\n"


def _by_length(files: RunFiles) -> str:
    """Translations by the length of their sources: of the test, or of what was held out."""
    rows = files.by_length
    if not isinstance(rows, list) or not rows:
        return ""
    names = {"words": "words of the source", "pairs": "pairs", "bleu": "BLEU", "exact_match": "exact match"}
    shown = [name for name in names if name in rows[0]]
    heads, cells = [names[name] for name in shown], [[row.get(name) for name in shown] for row in rows]
    title = "By the length of the source"
    measure = "bleu" if "bleu" in rows[0] else "exact_match"
    if len(rows) < 2 or any(row.get("mean_words") is None for row in rows):
        return table(heads, cells, caption=title)
    line = Line(names[measure], [(row["mean_words"], row[measure]) for row in rows], dots=True)
    across = "words of the source, mean of each group"
    chart = line_chart([line], across=across, up=names[measure], zero=True, size=HALF)
    return beside(figure(f"{title}: {names[measure]}", chart, heads, cells))
