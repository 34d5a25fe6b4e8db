"""`weft runs`: a list that nothing in the folder can break, and a removal that takes nothing but a run."""

import fcntl
import json
import os
import subprocess
import sys
import time

import pytest

from fixtures.commands import generator_command, run_weft, run_weft_process
from fixtures.texts import make_text
from weft.checkpoints.removal import check_removable, remove_run
from weft.checkpoints.status import is_locked, list_runs, run_status
from weft.cli.runs import age, megabytes
from weft.errors import DataError


def fake(path, *, step=None, steps=20, finished=False, best=2.5, events=(), ago=0, **config):
    """A run made by hand, of the small files that tell its state."""
    path.mkdir(parents=True)
    (path / "config.json").write_text(
        json.dumps({"format": 1, "task": "generate", "training": {"steps": steps}} | config)
    )
    if step is not None:
        save(path, step, finished=finished, best=best)
    if events:
        (path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events) + '{"half')
    for name in ("config.json", "checkpoints"):
        if (path / name).exists():
            os.utime(path / name, (time.time() - ago,) * 2)
    return path


def save(path, step, *, finished=False, best=2.5):
    folder = path / "checkpoints" / f"step-{step}"
    folder.mkdir(parents=True)
    state = {"step": step, "progress": {"step": step, "best": best, "finished": finished}}
    (folder / "state.json").write_text(json.dumps(state))


def states(folder):
    return {run.name: run.status for run in list_runs(folder)}


def test_how_runs_stand(tmp_path):
    fake(tmp_path / "done", step=20, finished=True)
    fake(tmp_path / "stopped", step=5)
    fake(tmp_path / "fresh")
    fake(tmp_path / "hurried", step=9, events=[{"event": "plan", "step": 4, "steps": 11}])
    fake(tmp_path / "early", step=9, finished=True)
    fake(tmp_path / "further", step=20, finished=True, events=[{"event": "extend", "step": 20, "steps": 30}])
    past = [{"event": "extend", "step": 20, "steps": 30}, {"event": "nan", "step": 25}]
    fake(tmp_path / "further-done", step=30, finished=True, events=past)
    assert states(tmp_path) == {
        "done": "finished",
        "stopped": "interrupted at step 5 of 20",
        "fresh": "no checkpoint yet",
        "hurried": "interrupted at step 9 of 11",
        "early": "finished",  # patience ran out
        "further": "interrupted at step 20 of 30",
        "further-done": "finished",
    }


def test_the_newest_checkpoint_counts_by_number(tmp_path):
    run = fake(tmp_path / "run", step=9)
    save(run, 10)
    (run / "checkpoints" / "step-11.backup").mkdir()
    (run / "checkpoints" / ".step-12.77.tmp").mkdir()
    assert run_status(run).step == 10


def test_a_lock_that_is_held_means_running(tmp_path):
    run = fake(tmp_path / "run", step=5)
    (run / ".lock").touch()
    assert not is_locked(run)
    with (run / ".lock").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert states(tmp_path) == {"run": "running, saved at step 5 of 20"}
        with pytest.raises(DataError, match="a process is training"):
            remove_run(run)
    assert states(tmp_path) == {"run": "interrupted at step 5 of 20"}
    with (run / ".lock").open("rb") as other:  # a second list at the same instant
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not is_locked(run)


@pytest.mark.parametrize(
    "content",
    [b'{"format', b"", b"\xff\xfe", b"[" * 100_000, b"[1]", b'{"format": ' + b"9" * 5000 + b"}", b"null"],
    ids=["cut", "empty", "not-utf8", "nested", "list", "long-number", "null"],
)
def test_a_damaged_config_does_not_break_the_list(tmp_path, content):
    fake(tmp_path / "good", step=5)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.json").write_bytes(content)
    found = states(tmp_path)
    assert found["good"] == "interrupted at step 5 of 20"
    assert found["bad"].startswith("unreadable: config.json ")
    with pytest.raises(DataError, match="not recognisably"):
        remove_run(tmp_path / "bad")
    assert (tmp_path / "bad" / "config.json").exists()


def test_odd_values_do_not_break_the_list(tmp_path):
    fake(tmp_path / "a", step=5, best=float("inf"))
    fake(tmp_path / "b", step=5, best="low", steps="many")
    fake(tmp_path / "c", training=3, task=["x"])
    fake(tmp_path / "d", step=5, events=[{"event": "plan"}, {"event": "plan", "step": 1, "steps": None}])
    (fake(tmp_path / "e", step=5) / "events.jsonl").write_bytes(b"\xff\n[]\n\n")
    runs = {run.name: run for run in list_runs(tmp_path)}
    assert runs["a"].best is None
    assert runs["b"].status == "interrupted at step 5"
    assert (runs["c"].task, runs["c"].status) == (None, "no checkpoint yet")
    assert runs["d"].steps == 20 and runs["e"].steps == 20


def test_a_damaged_checkpoint_is_passed_over_for_an_older_one(tmp_path):
    run = fake(tmp_path / "run", step=5)
    save(run, 6)
    (run / "checkpoints" / "step-6" / "state.json").write_text('{"st')
    assert run_status(run).status == "interrupted at step 5 of 20"
    (run / "checkpoints" / "step-5" / "state.json").write_text("3")
    assert run_status(run).status == "unreadable: step-6: state.json is not valid JSON"


def test_only_runs_are_listed_and_the_latest_first(tmp_path):
    fake(tmp_path / "old", step=5, ago=9000)
    fake(tmp_path / "new", step=5)
    fake(tmp_path / "older", step=5, ago=99_999)
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "flag").mkdir()
    (tmp_path / "flag" / "config.json").write_text('{"format": true}')
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("hello")
    fake(tmp_path / ".old.1.old", step=5)
    assert [run.name for run in list_runs(tmp_path)] == ["new", "old", "older"]
    assert [run.name for run in list_runs(tmp_path / "old")] == ["old"]  # a run itself
    size = sum(file.stat().st_size for file in (tmp_path / "new").rglob("*") if file.is_file())
    assert run_status(tmp_path / "new").size == size > 0


def test_removing_takes_the_run_and_nothing_else(tmp_path):
    run = fake(tmp_path / "run", step=5)
    other = fake(tmp_path / "other", step=5)
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    (run / "link").symlink_to(outside)
    (run / "folder").symlink_to(other)
    assert remove_run(run).step == 5
    assert sorted(item.name for item in tmp_path.iterdir()) == ["other", "outside.txt"]
    assert (other / "config.json").exists()


def test_what_is_not_surely_a_run_is_not_removed(tmp_path):
    (tmp_path / "runs").mkdir()
    run = fake(tmp_path / "runs" / "run", step=5)
    (tmp_path / "link").symlink_to(run)
    (tmp_path / "note.txt").write_text("x")
    for name, config in {"hf": '{"model_type": "gpt2"}', "app": '{"format": 1}', "flag": '{"format": true}'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(config)
    before = sorted(tmp_path.rglob("*"))
    for name in ("runs", "link", "note.txt", "hf", "app", "flag", "nothing", "."):
        with pytest.raises(DataError) as caught:
            remove_run(tmp_path / name)
        assert len(str(caught.value).splitlines()) <= 3
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_run_that_cannot_be_removed_stays_whole(tmp_path):
    run = fake(tmp_path / "runs" / "run", step=5)
    (tmp_path / "runs").chmod(0o500)
    try:
        with pytest.raises(DataError, match="cannot remove"):
            remove_run(run)
    finally:
        (tmp_path / "runs").chmod(0o700)
    assert check_removable(run).step == 5


def test_numbers_in_words():
    assert [megabytes(n) for n in (0, 999, 1000, 75_849, 241_225, 999_999, 12_345_678_901)] == [
        "0 B", "999 B", "1.0 kB", "75.8 kB", "241 kB", "1.0 MB", "12.3 GB",
    ]  # fmt: skip
    assert [age(n) for n in (-5, 0, 98, 120, 7200, 200_000)] == ["0 s", "0 s", "98 s", "2 min", "2 h", "2 days"]


# -- the command ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A real run, and some made by hand."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "book.txt").write_text(make_text(1500))
    run_weft(*generator_command("book.txt", "runs/real", 3), cwd=folder)
    fake(folder / "runs" / "a-run-with-quite-a-long-name-to-fold-somewhere", step=1200, steps=30_000, ago=90_000)
    fake(folder / "runs" / "[red]odd\x1b[31m", step=1, ago=100)
    (folder / "runs" / "bad").mkdir()
    (folder / "runs" / "bad" / "config.json").write_text("{")
    return folder


def test_a_real_run_in_json(folder):
    found = {run["name"]: run for run in json.loads(run_weft_process("runs", "--json", cwd=folder).stdout)["runs"]}
    real = found["real"]
    assert (real["run"], real["task"], real["status"], real["step"], real["steps"]) == (
        "runs/real", "generate", "finished", 3, 3,
    )  # fmt: skip
    assert 0 < real["best_validation_loss"] < 6
    assert real["size"] > 10_000
    assert found["bad"]["status"] == "unreadable: config.json is not valid JSON"


@pytest.mark.parametrize("env", [{}, {"COLUMNS": "40"}, {"COLUMNS": "200"}, {"TERM": "dumb"}])
def test_the_list_is_plain_and_fits(folder, env):
    out = run_weft_process("runs", cwd=folder, **{"COLUMNS": "80"} | env).stdout
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= int(env.get("COLUMNS", 80))
    joined = " ".join(out.split())
    assert "finished, 3 steps" in joined
    assert "[red]odd?[31m" in joined
    if env.get("COLUMNS") == "200":
        assert "interrupted at step 1200 of 30000" in joined


def test_removing_asks_first(folder):
    fake(folder / "runs" / "gone", step=5)
    command = [sys.executable, "-m", "weft", "runs", "--remove", "gone"]
    ask = lambda answer: subprocess.run(  # noqa: E731
        command, cwd=folder, input=answer, capture_output=True, text=True, check=False, timeout=60
    )
    nobody = ask("")
    assert nobody.returncode == 2 and "--yes" in nobody.stderr
    no = ask("n\n")
    assert no.returncode == 1 and "Nothing was removed" in no.stderr
    assert (folder / "runs" / "gone").exists()
    assert ask("y\n").returncode == 0
    assert not (folder / "runs" / "gone").exists()
    fake(folder / "runs" / "gone", step=5)
    result = json.loads(run_weft_process("runs", "--remove", "runs/gone", "--yes", "--json", cwd=folder).stdout)
    assert result["removed"] == "runs/gone"
    assert not (folder / "runs" / "gone").exists()


def test_a_name_that_means_two_things_is_refused(tmp_path):
    fake(tmp_path / "runs" / "x", step=5)
    fake(tmp_path / "x", step=5)
    result = run_weft_process("runs", "--remove", "x", "--yes", cwd=tmp_path, check=False)
    assert result.returncode == 2
    assert (tmp_path / "runs" / "x").exists() and (tmp_path / "x").exists()


def test_no_runs_yet(tmp_path):
    assert "weft train demo" in run_weft_process("runs", cwd=tmp_path).stdout
    assert json.loads(run_weft_process("runs", "--json", cwd=tmp_path).stdout) == {"runs": []}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "code", "answer"),
    [
        (["runs", "rusn"], 1, "did you mean 'runs'?"),
        (["runs", "book.txt"], 1, "book.txt is not a folder"),
        (["runs", "--remove", "rael"], 1, "did you mean 'real'?"),
        (["runs", "--remove", "", "--yes"], 2, "given nothing"),
        (["runs", "--remove", "."], 1, "not recognisably"),
        (["runs", "--remove", "runs", "--yes"], 1, "not recognisably"),
        (["runs", "--remove", "book.txt", "--yes"], 1, "not a directory"),
        (["runs", "--remov", "real"], 2, "--remove"),
        (["runs", "--remove"], 2, "--remove"),
        (["runs", "--yes"], 2, "without --remove"),
        (["run"], 2, "Did you mean 'runs'?"),
    ],
)
def test_mistakes_are_answered_in_three_lines(folder, words, code, answer):
    result = run_weft_process(*words, cwd=folder, check=False)
    assert result.returncode == code, result.stderr
    assert answer in result.stderr
    assert len(result.stderr.splitlines()) <= 3
    assert "Traceback" not in result.stderr
    assert (folder / "runs" / "real" / "config.json").exists()


def test_listing_does_not_import_torch(tmp_path):
    fake(tmp_path / "done", step=20, finished=True)
    fake(tmp_path / "stopped", step=5)
    code = (
        f"import sys; sys.argv = ['weft', 'runs', {str(tmp_path)!r}]\n"
        "from weft.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in ('torch', 'numpy', 'safetensors') if m in sys.modules])\n"
        "from weft.checkpoints import RunDirectory, checkpoint; print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert out.stdout.splitlines()[-2:] == ["[]", "True"]
    assert len(out.stdout.splitlines()) == 5


def test_names_of_the_package_resolve():
    from weft import checkpoints

    assert all(getattr(checkpoints, name) is not None for name in checkpoints.__all__)
    assert set(checkpoints.__all__) == set(dir(checkpoints))
    with pytest.raises(AttributeError, match="no attribute 'RunDirectroy'"):
        checkpoints.RunDirectroy  # noqa: B018
