"""The page and the chart: complete, escaped, alone, and readable where labels would overlap."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from weft.comparison import charts
from weft.comparison.columns import amount
from weft.comparison.figure import write_chart
from weft.comparison.page import page
from weft.comparison.result import Comparison
from weft.comparison.rows import best_of, curve_of, deciding_metric
from weft.comparison.session import Session
from weft.comparison.trials import Plan
from weft.tasks.task import find_task
from weft.tasks.words import Metric

NASTY = 'a<i>&"b'


def row(name, tmp_path, place=0, **more):
    """A finished run, as far as a page needs one."""
    run = tmp_path / f"run-{place}"
    run.mkdir()
    steps = [{"step": n, "loss": 3.0} | ({"validation_loss": 3 - n / 8 - place / 9} if n % 2 == 0 else {}) for n in
             range(1, 7)]  # fmt: skip
    (run / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps) + '{"step": 7, "lo')
    times = [{"step": n, "seconds": 0.5} for n in (1, 2, 3, 3, 4, 5, 6)]  # the third was taken twice
    (run / "timing.jsonl").write_text("".join(json.dumps(time) + "\n" for time in times))
    return {
        "model": name,
        "settings": {"model.attention.kind": name},
        "run": str(run),
        "status": "finished",
        "seconds": 10.0 + place,
        "steps": 6,
        "parameters": 12_345_678,
        "peak_memory": 300 * 2**20,
        "flops": 3e12,
        "validation_loss": 2.25 - place / 9,
        "bits_per_byte": 2.0 - place / 100,
        "measured_on": "validation",
    } | more


@pytest.fixture
def result(tmp_path):
    broken = {"status": "failed", "reason": "no <b>luck</b>\nat all", "flops": None, "run": None, "steps": None}
    rows = [row("softmax", tmp_path), row(NASTY, tmp_path, 1, flops=None), row("late", tmp_path, 2, **broken)]
    for name in ("bits_per_byte", "validation_loss", "seconds"):
        rows[2].pop(name)
    return Comparison(tmp_path / "x&y", "generate", rows)


def test_the_page_stands_alone(result):
    text = page(result)
    assert "<title>x&amp;y</title>" in text and "a&lt;i&gt;&amp;&quot;b" in text
    assert "<i>" not in text and "<b>luck" not in text and "no &lt;b&gt;luck&lt;/b&gt;; at all" in text
    assert not re.search(r"https?://|<script|<link (?!rel=\"icon\" href=\"data:,\")|url\(", text)
    assert text.count("<polyline") == 2 * 2 and text.count("<circle") == 2 * 2 * 3 + 2
    assert text.count("<rect") == 5 * 2 and text.count("not known") == 2  # the cell of the chart, and its words
    assert text.count('<tr class="best">') == 1
    HTMLParser().feed(text)


def test_a_curve_counts_each_step_once(result):
    assert curve_of(Path(result.rows[0]["run"])) == [
        (2, 1.0, 2.75), (4, 2.0, 2.5), (6, 3.0, 2.25)
    ]  # fmt: skip


def test_without_evaluations_on_the_way_the_curve_is_that_of_training(result):
    for row in result.rows[:2]:
        steps = [{"step": n, "loss": 8 - n / 10} for n in range(1, 41)] + [
            {"step": 41, "loss": 1, "validation_loss": 2}
        ]
        Path(row["run"], "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    title, curves = charts.curves_of(result)
    assert title == "training loss, smoothed" and len(curves) == 2
    assert len(curves[0].points) == 14 and curves[0].points[0] == (3, 1.5, pytest.approx(7.8))
    assert curves[0].points[-1][0] == 41 and "Training loss, smoothed" in page(result)


def test_nothing_finished_is_a_page_too(result):
    nothing = Comparison(result.path, "generate", result.rows[2:])
    assert nothing.best is None and "failed" in page(nothing) and "<polyline" not in page(nothing)
    assert "late" in repr(nothing)


def test_the_chart_is_a_png(result, tmp_path):
    write_chart(result, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    write_chart(Comparison(result.path, "generate", result.rows[2:]), tmp_path / "b.png")
    assert (tmp_path / "b.png").stat().st_size > 1000


def test_without_matplotlib_there_is_a_page(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    made = Session(tmp_path, Plan("generate", [], 1, None, False)).draw(result)
    assert made == [tmp_path / "compare.html"] and not (tmp_path / "compare.png").exists()


def test_what_decides():
    words = find_task("classify").words
    accuracy, loss = words.metric("accuracy"), words.metric("validation_loss")
    rows = [
        {"status": "finished", "model": n, "validation_loss": 1.0, "accuracy": a} for n, a in (("x", 0.5), ("y", 0.7))
    ]
    assert deciding_metric(rows, words) == "accuracy" and best_of(rows, "accuracy", accuracy) == "y"
    rows.append({"status": "finished", "model": "z", "validation_loss": 0.5, "accuracy": 0.7})
    assert best_of(rows, "accuracy", accuracy) == "z"  # of equals, the lower loss
    rows.append({"status": "failed", "model": "w"})
    assert deciding_metric(rows, words) == "accuracy" and best_of(rows, "validation_loss", loss) == "z"


def test_a_metric_that_only_one_task_has_decides():
    """Of a task from elsewhere: it says what matters and whether more is better."""
    words = type("Own", (type(find_task("classify").words),), {"matter": ("distance",), "metrics": {}})()
    rows = [
        {"status": "finished", "model": n, "validation_loss": loss, "distance": d}
        for n, loss, d in (("near", 2.0, 0.1), ("far", 1.0, 0.9))
    ]
    assert deciding_metric(rows, words) == "distance" and words.metric("distance").title == "distance"
    assert best_of(rows, "distance", words.metric("distance")) == "far", "more is better, if nothing is said"
    words.metrics = {"distance": Metric("distance in km", more_is_better=False)}
    assert best_of(rows, "distance", words.metric("distance")) == "near"
    for task in ("generate", "fill", "embed"):
        found = find_task(task).words.deciding_metrics()
        assert not find_task(task).words.metric(found[0]).more_is_better, "a loss decides"


def test_amounts():
    told = [amount(n) for n in (0, 999, 12_345, 12_345_678, 3.21e12, 1e18)]
    assert told == ["0", "999", "12.3 k", "12.3 M", "3.21 T", "1e+03 P"]
    assert amount(None) == ""


# -- translations by the length of their sources ----------------------------------------------


def by_length(*scores):
    lengths = (("1-5", 4.0), ("6-10", 8.5), ("31+", 40.0))
    return [
        {"words": words, "mean_words": mean, "pairs": 20, "bleu": score, "exact_match": 0.5}
        for (words, mean), score in zip(lengths, scores, strict=False)
    ]


@pytest.fixture
def translated(tmp_path):
    rows = [
        row("seq2seq", tmp_path, bleu=20.0, by_length=by_length(40.0, 30.0, 5.0)),
        row(NASTY, tmp_path, 1, bleu=30.0, by_length=by_length(41.0, 39.25)),
        row("none", tmp_path, 2, bleu=10.0),
    ]
    return Comparison(tmp_path / "lengths", "translate", rows)


def test_a_line_for_each_model_over_the_length_of_the_source(translated, tmp_path):
    what, curves = charts.length_curves(translated)
    assert what == "BLEU" and [curve.name for curve in curves] == ["seq2seq", NASTY]
    assert curves[0].points == [(20, 4.0, 40.0), (20, 8.5, 30.0), (20, 40.0, 5.0)]
    assert curves[1].colour == charts.colour_of(1)
    text = page(translated)
    assert "BLEU by the length of the source" in text and ">39.25</td>" in text and "seq2seq 5" in text
    measure, table = translated.by_length()
    assert measure == "bleu" and table[0] == ["words of the source", "pairs", "seq2seq", NASTY]
    assert table[1:] == [["1-5", "20", "40.00", "41.00"], ["6-10", "20", "30.00", "39.25"], ["31+", "20", "5.00", ""]]
    write_chart(translated, tmp_path / "lengths.png")
    assert (tmp_path / "lengths.png").stat().st_size > 10_000


def test_without_lengths_there_is_no_such_chart(result):
    assert charts.length_curves(result)[1] == [] and result.by_length() == ("", [])
    assert "length of the source" not in page(result)


def test_exact_matches_where_there_is_no_bleu(translated):
    for place in (0, 1):
        for line in translated.rows[place]["by_length"]:
            line.pop("bleu")
    assert translated.by_length()[0] == "exact_match" and charts.length_curves(translated)[0] == "exact matches"
    assert "0.5000" in page(translated)
