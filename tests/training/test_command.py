"""`weft train` and `weft resume` as people use them: killed, stopped, damaged, changed."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fixtures.commands import generator_command, read_last_event, run_weft, run_weft_process
from fixtures.runs import hash_run
from fixtures.texts import make_text
from training.processes import run_until_killed
from weft.errors import WeftError
from weft.tasks import load
from weft.text import TokenizerConfig

STEPS = 40
EVERY = ["--set", "training.evaluate_every=9", "--set", "training.checkpoint_every=6"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "book.txt").write_text(make_text(1500))
    (folder / "empty.txt").write_text("")
    (folder / "short.txt").write_text("Too short.")
    (folder / "bytes.txt").write_bytes(b"caf\xe9 au lait " * 50)
    (folder / "image.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    return folder


@pytest.fixture(scope="module")
def undisturbed(folder):
    result = run_weft(*generator_command("book.txt", "alone", STEPS, *EVERY, "--json"), cwd=folder)
    return folder / "alone", read_last_event(result)


def test_the_run_directory_says_everything(undisturbed):
    run, event = undisturbed
    assert event["event"] == "done"
    assert event["run"] == "alone"
    assert event["steps"] == STEPS
    assert event["measured_on"] == "validation"
    assert event["validation_loss"] < 5.5
    assert event["bits_per_byte"] > 0
    assert event["peak_memory"] > 2**20
    names = {path.name for path in run.iterdir()}
    assert names >= {
        "config.json", "model.safetensors", "tokenizer.json", "metrics.jsonl", "timing.jsonl", "checkpoints",
        "environment.json", "README.md",
    }  # fmt: skip
    config = json.loads((run / "config.json").read_text())
    assert config["format"] == 1
    assert config["model"]["kind"] == "gpt"
    assert config["training"]["steps"] == STEPS
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert set(lines[0]) == {"step", "tokens", "loss", "learning_rate", "gradient_norm"}
    assert "validation_loss" in lines[8]
    assert "weft resume" in (run / "README.md").read_text()


def test_the_loss_falls_from_about_ln_of_the_vocabulary(undisturbed):
    run, _ = undisturbed
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    vocabulary = json.loads((run / "config.json").read_text())["model"]["vocab_size"]
    import math

    assert abs(lines[0]["loss"] - math.log(vocabulary)) < 0.2
    assert lines[-1]["loss"] < lines[0]["loss"] - 1


@pytest.mark.parametrize(
    ("point", "count"),
    [
        *[("step", 13), ("save", 4), ("rename", 5), ("model", 3)],
        *(
            pytest.param(point, count, marks=pytest.mark.slow)
            for point, count in [("step", 1), ("optimizer", 20), ("save", 1), ("manifest", 4), ("evaluate", 2)]
        ),
    ],
)
def test_kill_9_at_chosen_instants(folder, undisturbed, point, count):
    out = f"killed-{point}-{count}"
    run_until_killed(point, count, *generator_command("book.txt", out, STEPS, *EVERY), cwd=folder)
    run_weft("resume", out, cwd=folder)
    assert hash_run(folder / out) == hash_run(undisturbed[0])


def test_kill_9_twice_in_a_row_in_a_save(folder, undisturbed):
    run_until_killed("save", 3, *generator_command("book.txt", "twice", STEPS, *EVERY), cwd=folder)
    run_until_killed("manifest", 2, "resume", "twice", cwd=folder)
    run_weft("resume", "twice", cwd=folder)
    assert hash_run(folder / "twice") == hash_run(undisturbed[0])


@pytest.mark.slow
def test_kill_9_twenty_times_at_random_instants(folder, tmp_path):
    """At random moments of a run of some seconds; every resume goes on, and the bytes are the same."""
    words = [*EVERY, "--set", "training.keep=2"]
    run_weft_process(*generator_command("book.txt", str(tmp_path / "alone"), 8000, *words), cwd=folder)
    rng, kills = random.Random(0), 0
    command = generator_command("book.txt", str(tmp_path / "run"), 8000, *words)
    while kills < 20:
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, "-m", "weft", *command], cwd=folder, env=env, stderr=subprocess.PIPE
        )
        time.sleep(2.0 + rng.random() * 2.5)
        assert process.poll() is None, "it ended before it was killed twenty times: give it more steps"
        process.kill()
        process.wait()
        kills += 1
        if (tmp_path / "run" / "config.json").exists():
            command = ["resume", str(tmp_path / "run")]
    run_weft_process("resume", str(tmp_path / "run"), cwd=folder)
    assert hash_run(tmp_path / "run") == hash_run(tmp_path / "alone")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_says_how_to_go_on(folder, tmp_path, number):
    out = str(tmp_path / "run")
    command = [sys.executable, "-m", "weft", *generator_command("book.txt", out, 3000)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 60
    while time.time() < deadline and not (Path(out) / "timing.jsonl").exists():
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"weft resume {out}" in errors
    assert "Traceback" not in errors
    assert any((Path(out) / "checkpoints").glob("step-*"))


def test_a_second_process_is_refused(folder, undisturbed, tmp_path):
    import fcntl

    with (undisturbed[0] / ".lock").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = run_weft("resume", "alone", cwd=folder, check=False)
    assert result.returncode == 1
    assert "another process" in result.stderr


def test_changed_data_is_refused(folder, tmp_path):
    book = tmp_path / "b.txt"
    book.write_text(make_text(1500))
    run_until_killed("step", 13, *generator_command(str(book), str(tmp_path / "run"), STEPS, *EVERY), cwd=folder)
    book.write_text(make_text(1501))
    result = run_weft("resume", str(tmp_path / "run"), cwd=folder, check=False)
    assert result.returncode == 1
    assert "has changed since this run began: 1350 characters" in result.stderr
    assert len(result.stderr.splitlines()) <= 3


def test_changed_settings_are_refused(folder, tmp_path):
    run_until_killed("step", 13, *generator_command("book.txt", str(tmp_path / "run"), STEPS, *EVERY), cwd=folder)
    config = tmp_path / "run" / "config.json"
    config.write_text(config.read_text().replace('"batch": 6', '"batch": 5'))
    result = run_weft("resume", str(tmp_path / "run"), cwd=folder, check=False)
    assert result.returncode == 1
    assert "training.batch: 6 → 5" in result.stderr


def copy_of(run, path):
    shutil.copytree(run, path)
    return path


def test_absurd_sizes_in_a_strangers_config_are_refused_before_memory_is_taken(folder, undisturbed, tmp_path):
    for name, value, answer in (
        ("width", 2**28, "parameters"),
        ("depth", 2**30, "from 1 to 1000"),
        ("vocab_size", 2**31, "parameters"),
        ("width", 10**15, "from 1 to"),
        ("dropout", "__import__('os')", "a number"),
        ("attention", {"kind": "os.system"}, "unknown attention kind"),
        ("code", "x", "unknown field 'code'"),
    ):
        run = copy_of(undisturbed[0], tmp_path / f"{name}-{len(str(value))}")
        config = json.loads((run / "config.json").read_text())
        config["model"][name] = value
        if name == "width":
            config["model"]["attention"]["heads"] = 2
        (run / "config.json").write_text(json.dumps(config))
        with pytest.raises(WeftError) as error:
            load(run).evaluate(str(folder / "book.txt"))
        assert answer in str(error.value)
        assert len(str(error.value).splitlines()) <= 3


def test_foreign_and_broken_files_in_a_run_are_named(folder, undisturbed, tmp_path):
    harms = {
        "tokenizer.json": [b"{", b"[]", b"\x80\x04pickle", b'{"version": "1.0", "model": {"type": "Nonsense"}}'],
        "model.safetensors": [b"", b"\xff" * 100, b"\x80\x04pickle", (2**40).to_bytes(8, "little") + b"{}"],
        "config.json": [b"", b"[]", b'{"format": 99}', b'{"format": 1}', b"\xff\xfe"],
    }
    for name, contents in harms.items():
        for i, content in enumerate(contents):
            run = copy_of(undisturbed[0], tmp_path / f"{name}-{i}")
            (run / name).write_bytes(content)
            with pytest.raises(WeftError):
                load(run).evaluate(str(folder / "book.txt"))


def test_a_larger_vocabulary_than_the_model_knows_is_refused(folder, undisturbed, tmp_path):
    run = copy_of(undisturbed[0], tmp_path / "run")
    TokenizerConfig.from_config("characters").train(["".join(map(chr, range(200, 900)))]).save(run / "tokenizer.json")
    result = run_weft("evaluate", str(run), cwd=folder, check=False)
    assert result.returncode == 1
    assert "tokenizer.json has" in result.stderr


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1", "COLUMNS": "40"}])
def test_piped_training_has_no_control_codes(folder, tmp_path, env):
    result = run_weft_process(*generator_command("book.txt", str(tmp_path / "run"), 3), cwd=folder, **env)
    assert "\x1b" not in result.stdout + result.stderr
    assert "\r" not in result.stderr
    assert "step 1/3" in result.stderr


def test_nothing_opens_a_socket(folder, tmp_path):
    words = ["weft", *generator_command("book.txt", str(tmp_path / "run"), 2)]
    code = (
        "import socket, sys\n"
        "def refuse(*args, **options): raise SystemExit('a socket was opened')\n"
        "socket.socket.connect = socket.socket.bind = socket.getaddrinfo = refuse\n"
        f"sys.argv = {words!r}\n"
        "from weft.cli.main import main\nmain()"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_a_finished_run_can_be_trained_further(folder, tmp_path):
    out = str(tmp_path / "run")
    run_weft(*generator_command("book.txt", out, 20), cwd=folder)
    first = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    event = read_last_event(run_weft("resume", out, "--steps", "10", "--json", cwd=folder))
    assert event["steps"] == 30
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 31))
    assert lines[21]["learning_rate"] > first["learning_rate"]


def test_a_run_planned_by_the_clock_keeps_its_recorded_plan_when_resumed(folder, tmp_path):
    words = generator_command(
        "book.txt", str(tmp_path / "run"), 1, "--minutes", "0.15", "--set", "training.checkpoint_every=4"
    )
    at = words.index("--steps")
    run_until_killed("event", 2, *words[:at], *words[at + 2 :], cwd=folder)
    events = (tmp_path / "run" / "events.jsonl").read_text()
    event = read_last_event(run_weft("resume", str(tmp_path / "run"), "--json", cwd=folder))
    assert (tmp_path / "run" / "events.jsonl").read_text() == events
    planned = json.loads((tmp_path / "run" / "config.json").read_text())["training"]["steps"]
    assert event["steps"] == json.loads(events.splitlines()[-1])["steps"]
    assert planned > 0


def test_evaluate_gives_what_training_measured(folder, undisturbed):
    event = json.loads(run_weft("evaluate", "alone", "--json", cwd=folder).stdout)
    assert abs(event["loss"] - undisturbed[1]["validation_loss"]) < 1e-6
    assert abs(event["bits_per_byte"] - undisturbed[1]["bits_per_byte"]) < 1e-6
    other = json.loads(run_weft("evaluate", "alone", "book.txt", "--json", cwd=folder).stdout)
    assert other["tokens"] == 1500


def test_a_dry_run_writes_nothing(folder, tmp_path):
    result = run_weft(*generator_command(str(folder / "book.txt"), "x", STEPS, "--dry-run", "--json"), cwd=tmp_path)
    plan = json.loads(result.stdout.splitlines()[-1])
    assert plan["event"] == "plan"
    assert plan["parameters"] > 0
    assert not list(tmp_path.iterdir())


def test_an_existing_run_is_never_touched(folder, undisturbed):
    before = hash_run(undisturbed[0])
    result = run_weft(*generator_command("book.txt", "alone", STEPS), cwd=folder, check=False)
    assert result.returncode == 1
    assert "alone is there already" in result.stderr
    assert hash_run(undisturbed[0]) == before


MISTAKES = [
    (["train"], 2, "no data was given"),
    (["train", "generate"], 2, "no data was given"),
    (["train", "bok.txt"], 1, "book.txt"),
    (["train", "book.txt", "--tokenizer", "charcters"], 2, "did you mean 'characters'?"),
    (["train", "book.txt", "--model", "gtp"], 2, "did you mean 'gpt'?"),
    (["train", "book.txt", "--set", "model.widht=3"], 2, "model: unknown field 'widht'\ndid you mean 'width'?"),
    (["train", "book.txt", "--set", "tokenizer.vocab=3"], 2, "tokenizer: unknown field 'vocab'\ndid you mean"),
    (["train", "book.txt", "--set", "training.bacth=3"], 2, "training: unknown field 'bacth'\ndid you mean 'batch'?"),
    (
        ["train", "book.txt", "--set", "data.validation_shar=3"],
        2,
        "data: unknown field 'validation_shar'\ndid you mean 'validation_share'?",
    ),
    (["train", "book.txt", "--set", "training.steps=0"], 2, "training: steps = 0"),
    (["train", "book.txt", "--set", "data.validation_share=0"], 2, "--validation"),
    (["train", "book.txt", "--test", "bok.txt"], 1, "book.txt"),
    (["train", "--config", "nowhere.toml"], 1, "there is no recipe nowhere.toml"),
    (["train", "book.txt", "--set", "widht"], 2, "key=value"),
    (["train", "book.txt", "--set", "modle.width=3"], 2, "unknown setting 'modle.width'"),
    (["train", "book.txt", "--minuts", "3"], 2, "--minutes"),
    (["train", "book.txt", "--minutes", "3", "--steps", "4"], 2, "one of them"),
    (["train", "book.txt", "--steps", "many"], 2, "valid integer"),
    (["train", "embed", "book.txt", "--model", "gpt"], 2, "not for embed"),
    (["train", "book.txt", "--tokenizer", "characters", "--set", "model.attention.heads=7"], 2, "7 heads"),
    (
        ["train", "book.txt", "--tokenizer", "characters", "--set", "training.optimizer.kind=adam"],
        2,
        "did you mean 'adamw'?",
    ),
    (["train", "book.txt", "--minutes", "0"], 2, "minutes = 0"),
    (["train", "book.txt", "--minutes", "-1"], 2, "minutes = -1"),
    (["train", "book.txt", "--steps", "0"], 2, "steps = 0"),
    (["train", "book.txt", "--epochs", "0"], 2, "epochs = 0"),
    (["train", "book.txt", "--device", "gpu"], 2, "cpu, cuda, mps"),
    (["train", "book.txt", "--device", "cuda"], 2, "not available"),
    (["train", "book.txt", "--threads", "0"], 2, "threads = 0"),
    (["train", "book.txt", "--seed", "-1"], 2, "seed = -1"),
    (["train", "book.txt", "--seed", "x"], 2, "valid integer"),
    (["train", "empty.txt"], 1, "empty"),
    (["train", "image.txt"], 1, "PNG"),
    (["train", "short.txt", "--tokenizer", "characters", "--steps", "2"], 1, "characters"),
    (["train", "bytes.txt"], 1, "UTF-8"),
    (["train", "book.txt", "--validation", "bok.txt"], 1, "book.txt"),
    (["train", "book.txt", "--set", "model.dropout=2"], 2, "from 0 to 1"),
    (["train", "book.txt", "--set", "model.position.kind=rotry"], 2, "did you mean 'rotary'?"),
    (["train", "book.txt", "--set", "model.attention.kind=sofmax"], 2, "did you mean 'softmax'?"),
    (["train", "book.txt", "--set", "tokenizer.vocab_size=10"], 2, "257"),
    (["train", "book.txt", "--set", "training.batch=none"], 2, "whole number"),
    (["train", "book.txt", "--out", "book.txt", "--steps", "1"], 1, "is there already"),
    (["train", "book.txt", "--out", "book.txt/run", "--steps", "1"], 1, "cannot create"),
    (["resume", "alone", "--steps", "3", "--minutes", "2"], 2, "one of them"),
    (["resume", "nowhere"], 1, "there is no run nowhere"),
    (["resume", "."], 1, "is not a run"),
    (["evaluate", "alone", "missing.txt"], 1, "missing.txt"),
    (["resuem", "alone"], 2, "Did you mean 'resume'?"),
]


@pytest.mark.parametrize(
    ("words", "code", "answer"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_typed_mistakes(folder, undisturbed, words, code, answer):
    result = run_weft(*words, cwd=folder, check=False)
    told = [line for line in result.stderr.splitlines() if not line.endswith("…")]
    assert result.returncode == code, result.stderr
    assert answer in result.stderr
    assert len(told) <= 3, result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "runs").exists()
