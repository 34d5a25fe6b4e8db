"""`weft attention --patterns`, as typed."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from fixtures.commands import run_weft
from weft.analysis.patterns import pattern_of, patterns_of, small
from weft.blocks.attention import AttentionConfig
from weft.cli import attention as verb
from weft.report.patterns import shades


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def typed(tmp_path, *words, check=True):
    return run_weft("attention", *words, cwd=tmp_path, check=check)


def refused(tmp_path, *words):
    result = typed(tmp_path, *words, check=False)
    assert not result.stdout and len(result.stderr.splitlines()) <= 3
    return result.returncode, result.stderr


def letters(seen, causal):
    return ["".join(" .#o"[cell] for cell in row) for row in shades(seen, causal=causal)]


def test_drawings_in_letters(tmp_path):
    out = typed(tmp_path, "--patterns", "--kind", "dilated", "--length", "12").stdout
    assert "dilated (window=3, dilation=3)" in out and "Cost: N·(2·window − 1) pairs" in out
    lines = out.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("encoder"))
    second = lines[first].index("decoder")
    drawn = [(line[:12], line[second:]) for line in lines[first + 1 : first + 13]]
    config = small("dilated")
    assert [left for left, _ in drawn] == letters(pattern_of(config, 12), False)
    assert [right for _, right in drawn] == [row.rstrip() for row in letters(pattern_of(config, 12, True), True)]
    assert not any(lines[first + 13 :])


def test_all_kinds_are_shown_and_fit_into_the_terminal(tmp_path):
    out = typed(tmp_path, "--patterns").stdout
    lines = out.splitlines()
    for kind in AttentionConfig.registry:
        assert any(line == kind or line.startswith((f"{kind} (", f"{kind} of")) for line in lines), kind
    assert {line.index("decoder") for line in lines if line.startswith("encoder ")} == {24 + verb.BETWEEN}
    assert max(map(len, lines)) <= 80 and "\x1b" not in out and "▀" not in out
    kinds = [small(kind) for kind in AttentionConfig.registry]
    assert sum("none: Mask causal" in line for line in lines) == sum(not config.writes for config in kinds) > 0
    chosen = [p.by_chance for config in kinds for p in patterns_of(config, 24)]
    assert sum("One draw" in line for line in lines) == sum(chosen) > 0  # hard attention, and its like


def test_wide_terminals_show_several_beside_each_other(tmp_path, monkeypatch):
    words = ("--patterns", "--kind", "local", "--kind", "softmax", "--kind", "channel", "--length", "8")
    narrow = typed(tmp_path, *words).stdout.splitlines()
    monkeypatch.setenv("COLUMNS", "150")
    wide = typed(tmp_path, *words).stdout.splitlines()
    assert len(wide) < len(narrow) / 2
    row = next(n for n, line in enumerate(wide) if line.startswith("encoder"))
    assert wide[row].split() == ["encoder", "decoder"] * 3
    assert wide[row + 8].split()[:2] == ["....###o"] * 2  # the first kind's last row, encoder and decoder
    assert max(map(len, wide)) <= 150


def test_long_rows_stand_below_each_other(tmp_path):
    out = typed(tmp_path, "--patterns", "--kind", "local", "--length", "60").stdout
    lines = out.splitlines()
    assert lines.index("decoder") == lines.index("encoder") + 61
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [8, 9])
def test_half_blocks_hold_two_rows(length, causal):
    """Each letter with its style, taken apart again."""
    seen = pattern_of(small("strided"), length, causal)
    found = []
    for line in verb.drawing(seen, length, causal=causal, colour=True):
        styles = {span.start: str(span.style) for span in line.spans}
        upper, lower = [0] * length, [0] * length
        for place, letter in enumerate(line.plain):
            front, _, ground = styles.get(place, "").partition(" on ")
            if letter == "▀":
                upper[place], lower[place] = verb.STYLES.index(front), verb.STYLES.index(ground)
            elif letter == "▄":
                lower[place] = verb.STYLES.index(front)
        found += [upper, lower]
    assert np.array_equal(found[:length], shades(seen, causal=causal))
    assert found[length:] == [[0] * length] * (length % 2)


def test_a_terminal_gets_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(verb, "_in_colour", lambda: True)
    out = typed(tmp_path, "--patterns", "--kind", "local").stdout
    assert "▀" in out and "#" not in out and "yellow: itself" in out
    code, told = refused(tmp_path, "--patterns", "--length", "90")
    assert code == 2 and "--length 90 in 80 columns" in told


def test_json(tmp_path):
    words = ("--patterns", "--json", "--kind", "local", "--kind", "window", "--kind", "channel", "--length", "12")
    told = json.loads(typed(tmp_path, *words, "--set", "window=3").stdout)
    assert told["length"] == 12
    local, first, second, channel = told["patterns"]
    wanted = pattern_of(small("local", {"window": 3}), 12, causal=True)
    assert local["decoder"]["rows"] == ["".join(str(int(cell)) for cell in row) for row in wanted]
    assert local["decoder"]["pairs"] == wanted.sum() and local["settings"]["window"] == 3 and local["layers"] == []
    assert (first["kind"], first["layers"]) == ("window", [1, 3]) and second["layers"] == [2, 4]
    assert first["encoder"]["rows"][0] == "111000000000" and second["encoder"]["rows"][0] == "100000000000"
    assert channel["encoder"]["pairs"] == 144 and "every channel" in channel["decoder"]["refused"]
    assert channel["words"] and channel["cost"] and not channel["by_chance"]


def test_kinds_that_take_turns_and_kinds_in_a_union(tmp_path):
    told = json.loads(typed(tmp_path, "--patterns", "--json", "--kind", "softmax,dilated").stdout)
    assert [p["settings"]["kind"] for p in told["patterns"]] == ["softmax", "dilated"]
    words = ("--patterns", "--json", "--kind", "union", "--set", "of=dilated,global")
    (union,) = json.loads(typed(tmp_path, *words).stdout)["patterns"]
    assert union["title"] == "union of dilated (window=3, dilation=3) and global (tokens=2)"


def test_fields_go_to_the_kinds_that_have_them(tmp_path):
    out = typed(tmp_path, "--patterns", "--set", "window=2", "--set", "stride=3", "--length", "6").stdout
    for title in ("local (window=2)", "dilated (window=2, dilation=3)", "window (window=2)", "strided (stride=3)"):
        assert title in out
    assert "\nsoftmax\n" in out


def test_images(tmp_path):
    words = ("--patterns", "--kind", "local", "--out")
    result = typed(tmp_path, *words, "p.png")
    assert not result.stdout and "open p.png" in result.stderr
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(typed(tmp_path, *words, "p.svg", "--json").stdout)["patterns"]
    before = (tmp_path / "p.png").read_bytes()
    code, told = refused(tmp_path, *words, "p.png")
    assert code == 1 and "is there already" in told and (tmp_path / "p.png").read_bytes() == before
    assert "no folder nowhere" in refused(tmp_path, *words, "nowhere/p.png")[1]
    assert refused(tmp_path, *words, "p.gif")[0] == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "or weft attention --patterns"),
        (["--kind", "local"], "or weft attention --patterns"),
        (["runs/book", "once upon", "--kind", "local"], "--kind or --set with a run"),
        (["--patterns", "runs/book"], "--patterns with a run"),
        (["--patterns", "--layer", "1"], "--patterns with a run, its input or its options"),
        (["--patterns", "--kind", "locl"], "did you mean 'local'?"),
        (["--patterns", "--set", "windw=3"], "did you mean 'window'?"),
        (["--patterns", "--kind", "softmax", "--set", "window=3"], "softmax without a field 'window'"),
        (["--patterns", "--set", "window"], "field=value"),
        (["--patterns", "--set", "kind=local"], "--kind"),
        (["--patterns", "--set", "window=0"], "window = 0"),
        (["--patterns", "--length", "0"], "from 1 to 256"),
        (["--patterns", "--length", "257"], "from 1 to 256"),
        (["--patern"], "No such option"),
    ],
)
def test_mistakes_are_answered(tmp_path, words, told):
    code, said = refused(tmp_path, *words)
    assert code == 2 and told in said


def test_help_begins_with_an_example_and_is_quick():
    code = (
        "import sys; sys.argv = ['weft', 'attention', '--help']\n"
        "from weft.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in ('torch', 'numpy', 'matplotlib') if m in sys.modules])"
    )
    env = {**os.environ, "COLUMNS": "80"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, env=env)
    assert "Example:  weft attention --patterns" in out.stdout
    assert out.stdout.splitlines()[-1] == "[]"
