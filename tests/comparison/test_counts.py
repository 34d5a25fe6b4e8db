"""Count models beside models that learn in steps."""

import json
import tomllib

import pytest

from fixtures.commands import run_weft
from fixtures.texts import make_text


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text(make_text(8000))
    return tmp_path


@pytest.mark.slow
def test_beside_models_that_learn(desk):
    words = ["compare", "book.txt", "--models", "unigram,3gram,gpt", "--steps", "3", "--tokenizer", "characters"]
    found = json.loads(run_weft(*words, "--out", "cmp", "--json", cwd=desk).stdout)
    rows = {row["model"]: row for row in found["models"]}
    assert [row["status"] for row in rows.values()] == ["finished"] * 3
    assert rows["gpt"]["steps"] == 3 and rows["3gram"]["steps"] == 1
    assert rows["3gram"]["parameters"] > rows["unigram"]["parameters"] > 0
    assert found["best"] == "3gram"
    plan = json.loads((desk / "cmp" / "plan.json").read_text())
    assert plan["steps"] == 3
    assert "batch" not in tomllib.loads((desk / "cmp" / "unigram.toml").read_text())["training"]


def test_a_comparison_of_counts_alone_is_planned(desk):
    words = ["compare", "book.txt", "--models", "unigram,bigram,gpt", "--steps", "3", "--tokenizer", "characters"]
    told = run_weft(*words, "--dry-run", cwd=desk).stderr
    assert "unigram: counted" in told and "gpt: " in told and "3 runs of 3 steps" in told
    only = run_weft(*words[:2], "--models", "unigram,bigram", "--dry-run", cwd=desk).stderr
    assert "bigram: counted" in only
