"""`weft compare` as a person meets it: bad words are refused before anything is trained, and the table tells all."""

import io
import json

import pytest
from rich.console import Console

from fixtures.commands import run_weft
from fixtures.comparisons import DIVERGES, comparison_command, run_without_child
from fixtures.texts import make_text
from weft.cli.compare import show
from weft.cli.progress import Reporter
from weft.comparison import outcome
from weft.comparison.result import Comparison

VARY = ("--vary", "model.attention.kind=softmax,hard")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a book; variants are trained in this process."""
    (tmp_path / "book.txt").write_text(make_text(1500))
    monkeypatch.setattr(outcome, "run_in_child", run_without_child)
    return tmp_path


def test_a_table_and_files(place):
    result = run_weft(*comparison_command(*VARY, "--out", "c"), cwd=place)
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines] == ["bits", "model", "softmax", "hard", "From", "softmax:", "hard:"]
    assert sum(line.endswith("best") for line in lines) == 1
    assert "2 runs of 4 steps each, in c: softmax, hard." in result.stderr
    assert "softmax (1 of 2)" in result.stderr and "hard (2 of 2)" in result.stderr
    assert "step 4/4" in result.stderr and result.stderr.count("Learning from") == 1
    assert {path.name for path in (place / "c").iterdir()} >= {"compare.html", "compare.png", "compare.json"}
    assert (place / "c" / "hard" / "report.html").exists()
    again = run_weft("compare", "--resume", "c", cwd=place)
    assert again.stdout == result.stdout and again.stderr.count("finished before, kept") == 2


def test_one_object(place):
    result = run_weft(*comparison_command(*VARY, "--json"), cwd=place)
    found = json.loads(result.stdout)
    assert [row["model"] for row in found["models"]] == ["softmax", "hard"]
    for row in found["models"]:
        assert row["seconds"] > 0 and row["parameters"] > 0 and row["bits_per_byte"] > 0
    assert found["out"] == "runs/compare-book-1" and found["best"] in ("softmax", "hard")
    kept = json.loads((place / "runs" / "compare-book-1" / "compare.json").read_text())
    assert kept.pop("format") == 1 and kept == found


def test_a_failure_is_told_and_is_exit_code_1(place):
    vary = [f"{key}={','.join(values)}" for key, values in DIVERGES.items()]
    result = run_weft(*comparison_command("--vary", *vary, "--out", "c"), cwd=place, check=False)
    assert result.returncode == 1
    assert "embedding_rate-1e+38: step" in result.stdout and "embedding_rate-0.01" in result.stdout
    assert "embedding_rate-1e+38 failed: step" in result.stderr and "Traceback" not in result.stderr
    rows = json.loads((place / "c" / "compare.json").read_text())["models"]
    assert [row["status"] for row in rows] == ["failed", "finished"]


def test_a_dry_run_writes_nothing(place):
    before = sorted(place.iterdir())
    result = run_weft(*comparison_command(*VARY, "--dry-run"), cwd=place)
    assert "softmax: 1" in result.stderr and "parameters" in result.stderr and not result.stdout
    found = json.loads(run_weft(*comparison_command(*VARY, "--dry-run", "--json"), cwd=place).stdout)
    assert found["models"][1]["settings"] == {"model.attention.kind": "hard"}
    assert sorted(place.iterdir()) == before


def test_stopping_says_how_to_go_on(place, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(outcome, "run_in_child", stop)
    result = run_weft(*comparison_command(*VARY, "--out", "my c"), cwd=place, check=False)
    assert result.returncode == 130 and "Go on with:  weft compare --resume 'my c'" in result.stderr
    assert json.loads((place / "my c" / "compare.json").read_text())["models"][0]["status"] == "waiting"


MISTAKES = [
    ([], 2, "nothing to compare\nexpected --vary KEY=V1,V2 or --models A,B"),
    (["--vary", "model.attention.kind"], 2, "--vary model.attention.kind\nexpected key=value,value"),
    (["--vary", "model.attention.kind="], 2, "a value is empty"),
    (["--vary", "model.attention.kind=softmax"], 2, "one run is nothing to compare"),
    (["--vary", "model.attenton.kind=softmax,hard"], 2, "unknown field 'attenton'\ndid you mean 'attention'?"),
    (["--vary", "model.attention.kind=softmax,hrad"], 2, "model.attention.kind=hrad: model: attention: unknown"),
    (["--vary", "modle.width=1,2"], 2, "unknown setting 'modle.width'"),
    (["--vary", "model.dropout=0,2"], 2, "model.dropout=2: model: dropout = 2.0"),
    (["--vary", "model.width=16,32"], 2, "model.width is both set and varied"),
    (["--vary", "data.validation_share=0.1,0.2"], 2, "the same data and split for all"),
    (["--models", "gpt,gtp"], 2, "did you mean 'gpt'?"),
    ([*VARY, "--minutes", "1"], 2, "more than one of --minutes, --steps, --epochs"),
    ([*VARY, "--test", "none.txt"], 1, "none.txt"),
    ([*VARY, "--resume", "c"], 2, "expected --resume DIR alone"),
]


@pytest.mark.parametrize(("more", "code", "told"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistakes_are_found_before_anything_is_trained(place, more, code, told):
    before = sorted(place.iterdir())
    result = run_weft(*comparison_command(*more), cwd=place, check=False)
    assert result.returncode == code and told in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) <= 8 and "Traceback" not in result.stderr
    assert sorted(place.iterdir()) == before


def test_data_that_are_not_there(place):
    assert "book.txt" in run_weft("compare", "bok.txt", *VARY, cwd=place, check=False).stderr
    assert "no data was given" in run_weft("compare", *VARY, cwd=place, check=False).stderr
    assert "nowhere does not exist" in run_weft("compare", "--resume", "nowhere", cwd=place, check=False).stderr


def test_the_memory_shown_is_that_of_the_process_that_trains(monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", stream)
    for name in ("NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with Reporter() as reporter:
        reporter({"event": "step", "step": 1, "total": 1, "tokens": 5, "loss": 2.0, "memory": 123 * 2**20})
    assert "123 MB" in stream.getvalue()


def test_the_help_begins_with_an_example(place):
    told = run_weft("compare", "--help", cwd=place).stdout
    assert "weft compare book.txt --vary model.attention.kind=softmax,local" in " ".join(told.split())
    assert "separated by `;`" in " ".join(told.replace("│", " ").split())


def test_a_narrow_terminal_has_lines_instead_of_rows(tmp_path):
    row = {"model": "a-rather-long-name", "settings": {}, "run": None, "status": "finished", "seconds": 1.0, "steps": 3}
    row |= {"parameters": 5_000, "peak_memory": 2**28, "flops": 1e9, "validation_loss": 2.5, "bits_per_byte": 1.5}
    result = Comparison(tmp_path, "generate", [row | {"measured_on": "test"}])
    for width, lines in ((120, 3), (50, 4)):
        out = io.StringIO()
        show(result, Console(file=out, width=width))
        told = out.getvalue()
        assert max(map(len, told.splitlines())) <= width and "1.5000" in told and "5 k" in told and "best" in told
        assert len(told.strip().splitlines()) == lines
