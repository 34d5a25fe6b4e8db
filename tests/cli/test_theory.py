"""`weft theory`, as typed."""

import json
import os
import subprocess
import sys

import pytest

from fixtures.commands import run_weft
from weft.blocks import FeedForward
from weft.theory import check, claims
from weft.theory.claim import Finding


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def _few(monkeypatch):
    """All of them, but only a few are computed."""
    quick = ("T1", "T7", "T13", "T20", "T27")
    for id, claim in claims().items():
        if id not in quick:
            monkeypatch.setitem(vars(claim), "on_request", True)


def typed(tmp_path, *words, check=True):
    return run_weft("theory", *words, cwd=tmp_path, check=check)


def refused(tmp_path, *words):
    result = typed(tmp_path, *words, check=False)
    assert not result.stdout and len(result.stderr.splitlines()) <= 3
    return result.returncode, result.stderr


@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize("columns", ["80", "40", "120"])
def test_the_table_fits(tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    out = typed(tmp_path).stdout
    assert max(map(len, out.splitlines())) <= int(columns) and "\x1b" not in out
    for id, claim in claims().items():
        assert any(line.startswith((f"{id} ", f"  {id} ")) for line in out.splitlines()), id
        assert claim.title.split()[0] in out
    flat = " ".join(out.split())
    assert "2 hold, in 3 the document is wrong, 35 not run" in flat
    assert "1,536" in flat and "0.28" in flat and "document is wrong" in flat


def test_a_claim_in_full(tmp_path):
    out = typed(tmp_path, "T13", "t7").stdout
    assert out.index("T13  Attention") < out.index("T7  DaViT") and max(map(len, out.splitlines())) <= 80
    assert "document 000, problem 12.9" in out and "the document predicts 33,554,432, measured 33,554,432" in out
    assert "the document predicts 1, right is 0.28" in out and out.count("Verdict: document is wrong") == 2
    assert "A token's weight for itself" in out and " |" in out and "+---" in out  # the image


def test_json_is_the_contract(tmp_path):
    told = json.loads(typed(tmp_path, "T7", "T11", "--json").stdout)
    assert list(told) == ["claims"] and [claim["id"] for claim in told["claims"]] == ["T7", "T11"]
    for claim in told["claims"]:
        assert {"id", "claim", "document", "predicted", "measured", "verdict"} <= set(claim)
    assert [claim["verdict"] for claim in told["claims"]] == ["document is wrong", "holds"]
    assert told["claims"][0]["document"] == "000" and "33,554,432" in told["claims"][0]["predicted"]


@pytest.mark.usefixtures("_few")
def test_json_of_all(tmp_path):
    told = json.loads(typed(tmp_path, "--json").stdout)["claims"]
    assert [claim["id"] for claim in told] == [f"T{n}" for n in range(1, 41)]
    assert next(claim for claim in told if claim["id"] == "T33")["verdict"] is None


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("T99",), 2, "did you mean 'T40'?"),
        (("T7", "T0"), 2, "did you mean 'T1'?"),
        (("davit",), 2, "did you mean"),
        (("--jsn",), 2, "--json"),
        (("T7", "--report", "x/y.html"), 1, "no folder"),
        (("T7", "--report", "page.txt"), 2, ".html"),
    ],
)
def test_mistakes(tmp_path, words, code, hint):
    found, told = refused(tmp_path, *words)
    assert found == code and hint in told


def test_a_page(tmp_path):
    result = typed(tmp_path, "T7", "T9", "--report")
    assert "open theory.html" in result.stderr and "T9  β" in result.stdout
    text = (tmp_path / "theory.html").read_text(encoding="utf-8")
    assert 'id="T7"' in text and 'id="T8"' not in text and "http" not in text
    assert "theory-2.html" in typed(tmp_path, "--report", "--json", "T7").stderr
    assert (tmp_path / "theory-2.html").exists()
    typed(tmp_path, "--report", "own.html", "T1")
    assert 'id="T1"' in (tmp_path / "own.html").read_text(encoding="utf-8")
    code, told = refused(tmp_path, "T1", "--report", "own.html")
    assert code == 1 and "is there already" in told


def test_a_broken_block_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(FeedForward, "forward", lambda self, x: x.roll(1, 1))
    result = typed(tmp_path, "T37", check=False)
    assert result.returncode == 1 and "T37" in result.stderr and "broken" in result.stderr


def test_what_was_not_run_says_why():
    told = Finding(claims()["T33"])
    assert told.verdict is None and "weft theory T33" in told.says and "not run" in repr(told)
    assert "holds" in repr(check("T11")[0])


@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_no_control_codes_in_a_pipe(tmp_path, plain):
    env = {k: v for k, v in os.environ.items() if k != "FORCE_COLOR"} | {"COLUMNS": "40", **plain}
    command = [sys.executable, "-m", "weft", "theory", "T1"]
    out = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True, encoding="utf-8").stdout
    assert "\x1b" not in out and max(map(len, out.splitlines())) <= 40
