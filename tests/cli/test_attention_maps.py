"""`weft attention RUN INPUT`, as typed."""

import json
import re

import numpy as np
import pytest

from fixtures.commands import run_weft
from weft.analysis.view import AttentionView, MapView, Side
from weft.cli.attention_text import SHADES, drawn
from weft.tasks import load

GIVEN = {"writer": "The cat sat", "translator": "film the", "davit": None, "vit-class": None}


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def typed(desk, tmp_path):
    def type_(name, *words, check=True):
        given = GIVEN.get(name, "a text") if words and words[0] == "GIVEN" else None
        if words and words[0] == "GIVEN":
            words = (given or str(desk.image()), *words[1:])
        return run_weft("attention", str(desk.run(name)), *words, cwd=tmp_path, check=check)

    return type_


@pytest.mark.parametrize("name", GIVEN)
def test_a_page_with_a_free_name(typed, tmp_path, name):
    first, second = typed(name, "GIVEN"), typed(name, "GIVEN")
    assert first.stderr.splitlines()[-1] == "open attention.html"
    assert second.stderr.splitlines()[-1] == "open attention-2.html"
    page = (tmp_path / "attention.html").read_text(encoding="utf-8")
    assert page == (tmp_path / "attention-2.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "http://" not in page.replace("http://www.w3.org", "")
    assert re.search(r"layers?, \d+ heads?", first.stdout) and "\x1b" not in first.stdout


def test_a_page_where_it_is_wanted(typed, tmp_path):
    result = typed("writer", "GIVEN", "--out", "look.html", "--layer", "2", "--head", "1")
    assert result.stderr.splitlines()[-1] == "open look.html" and "layers: 1 layer, 1 head\n" in result.stdout
    assert (tmp_path / "look.html").exists() and not (tmp_path / "attention.html").exists()
    said = typed("writer", "GIVEN", "--out", "look.html", check=False)
    assert said.returncode == 1 and "there already" in said.stderr


def test_json_is_one_object_with_what_each_head_does(typed, desk, tmp_path):
    result = typed("writer", "GIVEN", "--json")
    told = json.loads(result.stdout)
    assert told["family"] == "gpt" and told["input"] == "The cat sat" and not list(tmp_path.iterdir())
    view = load(desk.run("writer")).attention("The cat sat")
    assert [one["name"] for one in told["maps"]] == [one.name for one in view.maps]
    for one, theirs in zip(told["maps"], view.maps, strict=True):
        assert one["asking"] == list(theirs.asking.labels) and "weights" not in one["heads"][0]
        for head, weights in zip(one["heads"], theirs.weights, strict=True):
            assert head["looks_at"] == weights.argmax(-1).tolist()
            assert head["largest"] == pytest.approx(weights.max(-1).mean(), abs=1e-4)
            logs = np.log(np.where(weights > 0, weights, 1))
            assert head["entropy"] == pytest.approx(-(weights * logs).sum(-1).mean(), abs=1e-4)


def test_json_with_all_weights(typed, desk):
    told = json.loads(typed("writer", "GIVEN", "--json", "--weights").stdout)
    view = load(desk.run("writer")).attention("The cat sat")
    for one, theirs in zip(told["maps"], view.maps, strict=True):
        np.testing.assert_allclose([head["weights"] for head in one["heads"]], theirs.weights, atol=6e-5)
    np.testing.assert_allclose(told["rollouts"]["layers"], view.rollouts["layers"], atol=6e-5)
    one = json.loads(typed("writer", "GIVEN", "--json", "--weights", "--layer", "2", "--head", "2").stdout)
    (alone,) = one["maps"]
    assert alone["layer"] == 2 and [head["head"] for head in alone["heads"]] == [2] and one["rollouts"] == {}
    assert alone["heads"][0]["weights"] == told["maps"][1]["heads"][1]["weights"]


def test_pairs_and_targets(typed):
    both = json.loads(typed("pairs", "the film", "icy house", "--json").stdout)
    again = json.loads(typed("pairs", "the film", "--pair", "icy house", "--json").stdout)
    assert both == again and both["maps"][0]["asking"].count("[SEP]") == 2
    told = json.loads(typed("translator", "film the", "--target", "house", "--json").stdout)
    assert told["facts"]["writes"] == "house (given)"


def test_images_have_a_grid(typed):
    told = json.loads(typed("davit", "GIVEN", "--json").stdout)
    assert [one["part"] for one in told["maps"]][:2] == ["stage 1, windows", "stage 1, channels"]
    assert told["maps"][0]["grid"] == [6, 6] and told["maps"][1]["grid"] is None


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("columns", [80, 40, 10])
def test_in_letters(typed, monkeypatch, tmp_path, name, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = typed(name, "GIVEN", "--text").stdout
    assert max(map(len, out.splitlines())) <= max(24, columns) and "\x1b" not in out
    assert "layer 1, head 1" in " ".join(out.split()) and not list(tmp_path.iterdir())


def view_of(weights, promise="sums to one"):
    rows, columns = (tuple(f"{side}{n}" for n in range(size)) for side, size in zip("qk", weights.shape, strict=True))
    return AttentionView("x", "gpt", (MapView("m", "layers", weights[None], Side(rows), Side(columns), promise),))


def test_shades_follow_the_weights(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = list(drawn(view_of(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.04, 0.0, 0.96]])), (1, 1)))
    rows = [re.fullmatch(r"(q\d) \|(.{3})\| (k\d) (\d+)%", line) for line in lines]
    found = [row.groups() for row in rows if row]
    assert [row[0] for row in found] == ["q0", "q1", "q2"]
    assert found[0][1] == "@  " and found[0][2:] == ("k0", "100")
    assert found[1][1][0] == found[1][1][1] != "@" and found[2][2:] == ("k2", "96")
    assert 0 < SHADES.index(found[2][1][0]) < SHADES.index(found[1][1][0]) < SHADES.index(found[2][1][2])


def test_a_long_map_is_told_with_fewer_places(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = list(drawn(view_of(np.eye(300)), (1, 1)))
    assert max(map(len, lines)) <= 60 and len(lines) < 80 and any("share a place" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "words", "code", "said"),
    [
        ("writer", [], 2, "nothing for"),
        ("writer", ["a", "b", "c"], 2, "3 inputs"),
        ("writer", [""], 1, "an empty text"),
        ("writer", ["a", "b"], 1, "a pair of texts for a gpt"),
        ("writer", ["a", "--target", "b"], 1, "a target for a gpt"),
        ("writer", ["IMAGE"], 1, "an image, for a gpt"),
        ("vit-class", ["a text"], 1, "reads no text"),
        ("vit-class", ["BOOK"], 1, "book.txt"),
        ("writer", ["a", "--layer", "99"], 2, "layer 99"),
        ("writer", ["a", "--head", "99"], 2, "head 99"),
        ("writer", ["a", "--layer", "0"], 2, "--layer 0"),
        ("writer", ["a", "--head", "x"], 2, "--head"),
        ("writer", ["a", "--weights"], 2, "--weights without --json"),
        ("writer", ["a", "--out", "a.png"], 2, "FILE.html"),
        ("writer", ["a", "--out", "there/is/none.html"], 1, "there is no folder"),
        ("lstm", ["a"], 1, "has no attention to look at"),
        ("seq2seq", ["a"], 1, "has no attention to look at"),
    ],
)
def test_mistakes_are_answered(typed, desk, tmp_path, name, words, code, said):
    stands_for = {"IMAGE": str(desk.image()), "BOOK": str(desk.path / "book.txt")}
    result = typed(name, *(stands_for.get(word, word) for word in words), check=False)
    assert result.returncode == code and said in result.stderr
    assert not result.stdout and 1 <= len(result.stderr.splitlines()) <= 3
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_not_there(tmp_path):
    result = run_weft("attention", "runs/none", "a text", cwd=tmp_path, check=False)
    assert result.returncode == 1 and "runs/none" in result.stderr and len(result.stderr.splitlines()) <= 3


def test_from_stdin(desk, tmp_path):
    words = ["attention", str(desk.run("writer")), "-", "--json"]
    assert json.loads(run_weft(*words, cwd=tmp_path, stdin="The cat").stdout)["input"] == "The cat"
