"""What is shown while text is read: bars where they can be drawn, plain lines elsewhere, an event a second as JSON."""

import io
import json
import os
import subprocess
import sys

import pytest

from fixtures.commands import generator_command
from fixtures.texts import make_text
from weft.cli import progress
from weft.cli.progress import Reporter
from weft.errors import DataError

EVENTS = [
    {"event": "phase", "name": "reading"},
    {"event": "phase", "name": "learning the vocabulary", "total": 4_000_000},
    {"event": "progress", "phase": "learning the vocabulary", "done": 1_000_000, "total": 4_000_000},
    {"event": "warning", "text": "50% of [bold]lines[/bold] repeat"},
    {"event": "progress", "phase": "learning the vocabulary", "done": 4_000_000, "total": 4_000_000},
    {"event": "phase", "name": "tokenising", "total": 4_000_000},
    {"event": "progress", "phase": "tokenising", "done": 3_000_000, "total": 4_000_000},
    {"event": "phase", "name": "training"},
    {"event": "step", "step": 1, "total": 2, "tokens": 10, "loss": 3.0},
    {"event": "step", "step": 2, "total": 2, "tokens": 20, "loss": 2.5, "validation_loss": 2.0},
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Four seconds between any two looks at it."""
    now = [0.0]

    def tick():
        now[0] += 4.0
        return now[0]

    monkeypatch.setattr(progress.time, "monotonic", tick)


def shown(monkeypatch, stream, *, as_json=False, **env):
    for name in ("NO_COLOR", "TERM", "FORCE_COLOR", "COLUMNS", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm", "COLUMNS": "80"} | env).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", stream)
    with Reporter(as_json=as_json) as reporter:
        for event in EVENTS:
            reporter(event)
    return stream.getvalue()


def test_a_terminal_has_bars(monkeypatch):
    out = shown(monkeypatch, Terminal())
    assert "\x1b[" in out and "━" in out
    assert "learning the vocabulary" in out and "100%" in out and "M characters/s" in out
    assert " 75%" in out and "step 2/2" in out and "loss 2.5000" in out
    assert "Warning: 50% of [bold]lines[/bold] repeat." in out
    assert "learning the vocabulary …" not in out and "reading …" in out


@pytest.mark.parametrize("columns", ["20", "40", "200"])
def test_narrow_and_wide_terminals(monkeypatch, columns):
    assert "toke" in shown(monkeypatch, Terminal(), COLUMNS=columns)


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}])
def test_a_terminal_that_wants_none_gets_plain_lines(monkeypatch, clock, env):
    out = shown(monkeypatch, Terminal(), **env)
    assert "\x1b" not in out and "\r" not in out
    assert "learning the vocabulary …\n" in out and "step 2/2  loss 2.5000  validation 2.0000\n" in out


@pytest.mark.parametrize("env", [{}, {"FORCE_COLOR": "1"}])
def test_a_pipe_gets_a_line_every_few_seconds(monkeypatch, clock, env):
    out = shown(monkeypatch, io.StringIO(), **env)
    assert "\x1b" not in out and "\r" not in out
    assert out.count("of the text") >= 2
    assert "  tokenising: 75% of the text\n" in out


def test_nothing_is_said_of_a_text_that_is_soon_done(monkeypatch):
    assert "of the text" not in shown(monkeypatch, io.StringIO())


def test_json_has_an_event_a_second(monkeypatch, capsys):
    events = [*EVENTS[:3], *([EVENTS[2]] * 50)]
    monkeypatch.setattr(sys, "stderr", Terminal())
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Reporter(as_json=True) as reporter:
        for event in events:
            now[0] += 0.1
            reporter(event)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = [line for line in lines if line["event"] == "progress"]
    assert 4 <= len(told) <= 6
    assert set(told[0]) == {"event", "phase", "done", "total"}
    assert "\x1b[?25l" not in sys.stderr.getvalue()


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("env", "drawn"),
    [({}, True), ({"NO_COLOR": "1"}, False), pytest.param({"TERM": "dumb"}, False, marks=pytest.mark.slow)],
)
def test_in_a_pseudo_terminal(tmp_path, env, drawn):
    import pty

    (tmp_path / "book.txt").write_text(make_text(3000))
    main, other = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "RANK")}
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", *generator_command("book.txt", "run", 3)],
        cwd=tmp_path,
        stderr=other,
        stdout=subprocess.DEVNULL,
        env=clean | {"OMP_NUM_THREADS": "1", "TERM": "xterm", "COLUMNS": "80"} | env,
    )
    os.close(other)
    out = b""
    try:
        while piece := os.read(main, 1 << 16):
            out += piece
    except OSError:  # the other side is closed
        pass
    os.close(main)
    assert process.wait(60) == 0
    assert (b"\x1b" in out) is drawn
    assert b"tokenising" in out and "Done in" in out.decode()


def test_steps_as_json_say_how_much_memory_is_used(capsys):
    with Reporter(as_json=True) as reporter:
        reporter(EVENTS[-1])
    assert json.loads(capsys.readouterr().out)["memory"] > 2**20


@pytest.mark.parametrize(
    ("error", "told"),
    [(DataError("no data", advice="give some"), "no data\ngive some"), (OSError("no"), "OSError: no")],
)
def test_the_last_event_says_why_it_failed(capsys, error, told):
    with pytest.raises(type(error)), Reporter(as_json=True):
        raise error
    event = json.loads(capsys.readouterr().out)
    assert (event["event"], event["reason"]) == ("failed", told) and event["peak_memory"] > 2**20


def test_a_run_goes_on_when_nobody_listens(monkeypatch):
    class Gone(io.StringIO):
        def write(self, _):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    with Reporter(as_json=True) as reporter:
        reporter(EVENTS[0])


def test_of_steps_that_come_once_a_second_a_line_for_each_twentieth(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Reporter() as reporter:
        for step in (1, 7, 8, 16, 17, 60):
            reporter({"event": "step", "step": step, "total": 100, "tokens": step, "loss": 1.0})
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == ["1/100", "7/100", "16/100", "60/100"]
