"""Many files: the same pixels in the same order for one process and two, and none of them is left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weft.errors import DataError
from weft.images import many
from weft.images.decode import decode
from weft.images.many import decode_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """90 images, each of another grey, of different sizes; the 41st is broken."""
    folder = tmp_path_factory.mktemp("many")
    paths = [folder / f"{number:03}.png" for number in range(90)]
    for number, path in enumerate(paths):
        Image.new("L", (8 + number % 5, 8 + number % 7), 2 * number + 1).save(path)
    paths[40].write_bytes(paths[40].read_bytes()[:30])
    return paths


def test_one_process_and_two_give_the_same(files):
    told = []
    alone, problems = decode_files(files, channels=3, size=8, workers=1, progress=lambda *count: told.append(count))
    shared, again = decode_files(files, channels=3, size=8, workers=2)
    np.testing.assert_array_equal(alone, shared)
    assert problems == again and list(problems) == [40] and "040.png is a damaged PNG" in problems[40]
    assert alone[:, 0, 0, 0].tolist() == [0 if n == 40 else 2 * n + 1 for n in range(90)], "the order of the files"
    assert told == [(32, 90), (64, 90), (90, 90)]
    np.testing.assert_array_equal(alone[7], decode(files[7], channels=3, size=8))


def test_no_worker_is_left_when_somebody_interrupts(files):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode_files(files, channels=1, size=8, workers=2, progress=stop)
    assert not multiprocessing.active_children()


def test_few_files_start_no_process(files, monkeypatch):
    monkeypatch.setattr(many, "ProcessPoolExecutor", lambda *_, **__: pytest.fail("a pool"))
    decode_files(files, channels=1, size=8)
    assert many._workers(199) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert many._workers(200) == many.MOST_WORKERS


def test_no_files():
    pixels, problems = decode_files([], channels=1, size=8)
    assert pixels.shape == (0, 1, 8, 8) and not problems


def test_without_semaphores_one_process_does_it(files, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no semaphores here")

    monkeypatch.setattr(many, "ProcessPoolExecutor", refuse)
    pixels, _ = decode_files(files, channels=1, size=8, workers=2)
    assert pixels[3, 0, 0, 0] == 7


def test_a_worker_that_dies_is_told(files):
    def kill(done, total):
        for worker in multiprocessing.active_children():
            worker.kill()

    with pytest.raises(DataError, match=r"was ended, at .*\.png"):
        decode_files(files * 20, channels=1, size=8, workers=2, progress=kill)
    assert not multiprocessing.active_children()


SCRIPT = """
    import sys
    from pathlib import Path
    import torch_stand_in
    from weft.images.many import decode_files
    files = sorted(Path(sys.argv[1]).glob("*.png"))
    pixels, problems = decode_files(files, channels=1, size=8, workers=2)
    with open(sys.argv[2], "a") as out:
        out.write(f"{len(pixels)} {len(problems)}\\n")
"""


def script(folder, code):
    (folder / "torch_stand_in.py").write_text("import os; open(os.environ['IMPORTED'], 'a').write('x')")
    (folder / "program.py").write_text(textwrap.dedent(code))
    return [sys.executable, str(folder / "program.py")]


def test_a_script_without_a_guard_runs_once(files, tmp_path):
    """Neither the script nor what it imports is loaded by the workers."""
    env = os.environ | {"IMPORTED": str(tmp_path / "imported")}
    words = [*script(tmp_path, SCRIPT), str(files[0].parent), str(tmp_path / "out")]
    done = subprocess.run(words, check=False, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert (tmp_path / "out").read_text() == "90 1\n"
    assert (tmp_path / "imported").read_text() == "x"


SLOW = """
    import sys, time, multiprocessing
    from pathlib import Path
    from weft.images.many import decode_files
    files = sorted(Path(sys.argv[1]).glob("*.png")) * 50
    def told(done, total):
        Path(sys.argv[2]).write_text(" ".join(str(p.pid) for p in multiprocessing.active_children()))
        time.sleep(0.05)
    decode_files(files, channels=1, size=8, workers=2, progress=told)
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_no_orphans(how, files, tmp_path):
    words = [*script(tmp_path, SLOW), str(files[0].parent), str(tmp_path / "pids")]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    until = time.monotonic() + 30
    while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text():
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert pids and all(map(alive, pids))
    try:
        if how == "SIGINT":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        else:
            process.kill()
        _, errors = process.communicate(timeout=20)
        assert errors.count("Traceback") <= 1, "the workers say nothing"
        while any(map(alive, pids)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(map(alive, pids))
    finally:
        for pid in filter(alive, pids):
            os.kill(pid, signal.SIGKILL)
