"""The command as people type it: quick, plain when piped, and short about mistakes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from fixtures.commands import run_weft

WEFT = [sys.executable, "-m", "weft"]


def run(*words, **env):
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM", "COLUMNS", "FORCE_COLOR")}
    return subprocess.run(
        [*WEFT, *words], capture_output=True, text=True, env=clean | env, timeout=60, encoding="utf-8", check=False
    )


def test_version():
    assert run("--version").stdout.strip() == f"weft {weft.__version__}"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["tour", "--help"]])
def test_help_does_not_import_torch(words):
    code = (
        f"import sys; sys.argv = ['weft', *{words!r}]\n"
        "from weft.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in ('torch', 'numpy', 'jaxtyping') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert out.stdout.splitlines()[-1] == "[]"


def test_import_weft_is_lazy():
    code = "import sys, weft; print('torch' in sys.modules); weft.attention; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "True"]


def test_every_verb_starts_its_help_with_an_example():
    for words in (["--help"], ["tour", "--help"]):
        assert "Example:" in run(*words).stdout


@pytest.mark.parametrize("env", [{"TERM": "dumb", "COLUMNS": "40"}, {}])
def test_tour_is_plain_when_piped(env):
    result = run("tour", **env)
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert "Peter" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= int(env.get("COLUMNS", 80))


def test_tour_survives_odd_words_and_odd_terminals():
    assert run("tour", "\udcff a", "--beta", "1e39", "--causal").returncode == 0
    piped = subprocess.run(
        [*WEFT, "tour"], env=os.environ | {"PYTHONIOENCODING": "cp1252"}, capture_output=True, check=True, timeout=60
    )
    assert b"#" in piped.stdout


def tour(*words):
    return run_weft("tour", *words, cwd=Path()).stdout


def test_hard_attention_in_the_tour_does_not_depend_on_beta():
    maps = {tour("--kind", "hard", "--beta", beta) for beta in ("0", "1", "inf")}
    assert len(maps) == 1 and tour("--beta", "1") not in maps


def test_tour_shows_the_numbers():
    rows = [line for line in tour("a rose is a rose", "--beta", "0").splitlines() if " rose" in line]
    assert rows[0].split()[-1] == "20"
    causal = tour("one two", "--causal", "--beta", "0")
    assert "100" in next(line for line in causal.splitlines() if line.startswith(" 1 one"))


@pytest.mark.parametrize(
    ("words", "exit_code", "answer"),
    [
        (["tuor"], 2, "Did you mean 'tour'"),
        (["tour", "--bta", "2"], 2, "--beta"),
        (["tour", "--beta", "much"], 2, "valid number"),
        (["tour", "--beta", "-1"], 2, "beta = -1.0"),
        (["tour", "--kind", "sofmax"], 2, "did you mean 'softmax'?"),
        (["tour", ""], 1, "the sentence is empty"),
        (["--verison"], 2, "--version"),
    ],
)
def test_mistakes_are_answered_in_three_lines(words, exit_code, answer):
    result = run(*words)
    assert result.returncode == exit_code
    assert answer in result.stderr
    assert len(result.stderr.splitlines()) <= 3
    assert "Traceback" not in result.stderr + result.stdout


def test_debug_shows_the_traceback():
    assert "Traceback" in run("--debug", "tour", "").stderr
    assert "Traceback" in run("tour", "", "--debug").stderr


def test_the_installed_command_is_the_module():
    script = Path(sys.executable).with_name("weft")
    if not script.exists():
        pytest.skip("weft is not installed as a command here")
    out = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert out.stdout == run("--version").stdout
