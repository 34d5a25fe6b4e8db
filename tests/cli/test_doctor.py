"""`weft doctor`: what is there, how fast it is, and what to do about what is missing."""

import json
import os
import subprocess
import sys
import time

import pytest

from fixtures.commands import run_weft_process
from weft.cli import doctor


def test_everything_in_json(tmp_path):
    began = time.monotonic()
    result = run_weft_process("doctor", "--json", cwd=tmp_path)
    assert time.monotonic() - began < 20  # 5 on a machine that does nothing else
    found = json.loads(result.stdout)
    import torch

    assert found["ok"] is True
    assert found["problems"] == []
    assert found["versions"]["torch"] == torch.__version__
    assert set(found["versions"]) >= {"weft", "python", "torch", "numpy", "tokenizers", "safetensors"}
    assert set(found["extras"]) == {"vision", "plots", "translate", "fast", "serve"}
    assert found["processors"] == os.cpu_count()
    assert found["threads"] == 1
    assert found["speed_float32"] > 1e8
    assert found["speed_bf16"] > 0
    assert found["memory_available"] > 0
    assert found["disk_free"] > 0
    assert found["runs_writable"] is True
    assert not list(tmp_path.iterdir()), "a look changes nothing"


@pytest.mark.parametrize("columns", ["40", "80"])
def test_plain_lines_and_the_verdict_last(tmp_path, columns):
    out = run_weft_process("doctor", cwd=tmp_path, COLUMNS=columns).stdout
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= int(columns)
    assert out.splitlines()[-1] == "Everything needed is there."
    assert "float32 is used" in " ".join(out.split())


FOUND = {
    "versions": {"weft": "1", "torch": None}, "extras": {}, "system": "x", "processors": 2, "memory_available": None,
    "disk_free": 5 * 10**9, "runs_writable": True, "problems": [],
}  # fmt: skip


def test_bf16_in_words():
    base = FOUND | {"threads": 2, "cpu_capability": "AVX2", "cuda": ["T4"], "mps": False, "speed_float32": 9e10}
    slow = "\n".join(doctor.describe(base | {"speed_bf16": 3e9}))
    assert "bf16 is 30 times slower here: float32 is used" in slow
    assert "90 GFLOP/s" in slow and "cuda (T4)" in slow and "Memory available: unknown" in slow
    assert "bf16 is 2 times as fast here" in "\n".join(doctor.describe(base | {"speed_bf16": 1.8e11}))


def test_problems_are_the_last_line():
    *_, last = doctor.describe(FOUND | {"problems": ["torch is not installed: do this"]})
    assert last == "Missing: torch is not installed: do this"
    *_, last = doctor.describe(FOUND | {"problems": ["a", "b"]})
    assert last == "Missing: (1) a; (2) b"


def test_a_missing_and_a_broken_package_are_named(tmp_path):
    """torch is hidden, safetensors raises: the doctor still answers, in words."""
    (tmp_path / "safetensors.py").write_text("raise RuntimeError('no such\\nlibrary')")
    code = (
        "import sys; sys.modules['torch'] = None; sys.path.insert(0, '.'); sys.argv = ['weft', 'doctor', '--json']\n"
        "from weft.cli.main import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 1, result.stderr
    found = json.loads(result.stdout)
    assert found["versions"]["torch"] is None
    told = "\n".join(found["problems"])
    assert "torch is not installed: python -m pip install 'torch>=" in told
    assert "safetensors is broken (no such library): python -m pip install" in told
    assert "speed_float32" not in found


def test_an_old_version_is_named(monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda name: "0.1" if name == "rich" else "99.0")
    assert [problem.split(":")[0] for problem in doctor._versions()[1]] == ["rich 0.1 is too old"]
    assert doctor._numbers("2.13.0+cpu") == (2, 13, 0)
    assert doctor._numbers("2.13") > doctor._numbers("2.6")


def test_where_runs_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").write_text("")
    result = run_weft_process("doctor", cwd=tmp_path, check=False)
    assert result.returncode == 1
    assert "rename it" in result.stdout.splitlines()[-1] + result.stdout.splitlines()[-2]
    if os.geteuid() != 0:
        (tmp_path / "runs").unlink()
        (tmp_path / "runs").mkdir(mode=0o500)
        assert "cannot be written to" in doctor.examine()["problems"][0]


def test_requirements_are_read_from_the_installed_package():
    parsed = [doctor.REQUIREMENT.match(line).groups() for line in ("torch>=2.6", "a-b>=1; extra == 'x'", "c[d]>=2")]
    assert parsed == [("torch", "2.6", None), ("a-b", "1", "x"), ("c", "2", None)]


@pytest.mark.parametrize("words", [["doctor", "--jsn"], ["doctr"], ["doctor", "me"]])
def test_mistakes_are_answered_in_three_lines(tmp_path, words):
    result = run_weft_process(*words, cwd=tmp_path, check=False)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) <= 3
    assert "Traceback" not in result.stderr
