"""How mutants are tried: a copy of the code with one line changed, and pytest in a process of its own.

Starting a process and loading torch takes longer than most tests. So a server loads the libraries once (not weft) and
splits off a child for each question (`multiprocessing`'s forkserver; where there is none, each child loads its own).
And most mutants are known: a table names the test that found each the last time. That test alone is asked first; where
it finds nothing, or where the table has no line, the whole suite is asked.

A mutant counts as killed only if a test fails on it that passes on the code as it is, asked in the same way.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PASSED, FAILED = 0, 1  # pytest's exit codes; any other says that tests did not even run
RUNNER = ["pytest", "hypothesis", "jaxtyping", "_hypothesis_pytestplugin", "xdist.plugin", "anyio.pytest_plugin"]
LIBRARIES = [*RUNNER, "beartype", "torch", "torch.utils.data", "transformers", "numba", "tokenizers", "typer"]
LIBRARIES += ["rich.console", "PIL.Image", "sacrebleu", "sklearn.datasets", "matplotlib.pyplot"]
ENOUGH = 900.0  # seconds: a mutant that never ends proves nothing


@dataclass(frozen=True)
class Mutant:
    """A mistake: what is broken (`name`), the file of src/weft, the line as it is and with the mistake, and the tests
    that should notice."""

    name: str
    path: str
    old: str
    new: str
    tests: Sequence[str]


@dataclass(frozen=True)
class Answer:
    """What pytest said: its exit code (None if it never came to one), the first test that failed, if any, and whether
    the changed module could be imported."""

    code: int | None
    failed: str | None = None
    imported: bool = True

    @property
    def broken(self) -> str | None:
        if self.code is None:
            return "BROKEN (pytest came to no end)"
        if self.code not in (PASSED, FAILED):
            return f"BROKEN (pytest exit code {self.code})"
        return None if self.imported else "BROKEN (cannot be imported)"


class FirstFailure:
    """A plugin of pytest that keeps the name of the test that failed."""

    def __init__(self) -> None:
        self.name: str | None = None

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.name is None:
            self.name = report.nodeid


def answer_in_child(root: Path, source: Path, folder: Path, module: str | None, tests: list[str]) -> None:
    """Ask tests about the code in a folder, and leave the answer in another one."""
    said = os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.chdir(root)
    os.environ["PYTHONPATH"] = str(source)  # for the processes that tests start
    sys.path[:0] = [str(root), str(source)]
    sys.argv, sys.dont_write_bytecode = ["pytest"], False
    import pytest

    first = FirstFailure()
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", f"--basetemp={folder / 'tmp'}"]
    code = int(pytest.main([*options, *tests], plugins=[first]))
    imported = True
    if module is not None:
        try:
            found = importlib.import_module(module).__file__ or ""
            imported = found.startswith(str(source))
        except Exception:
            imported = False
    told = json.dumps({"code": code, "failed": first.name, "imported": imported})
    (folder / "answer.json").write_text(told, encoding="utf-8")


class Trial:
    """All questions about the code of one project, as it was at the start."""

    def __init__(self, root: Path, libraries: Sequence[str] = LIBRARIES) -> None:
        self.root = root
        os.environ["OMP_NUM_THREADS"] = "1"  # two at a time on two cores; and a fork copies no threads
        forks = "forkserver" in multiprocessing.get_all_start_methods()
        self._processes: Any = multiprocessing.get_context("forkserver" if forks else "spawn")
        if forks:
            self._processes.set_forkserver_preload(list(libraries))
        self._home = Path(tempfile.mkdtemp(prefix="mutants-"))
        shutil.copytree(root / "src", self._home / "src")
        self._answers: dict[tuple[str, ...], Answer] = {}
        self._locks: dict[tuple[str, ...], threading.Lock] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)

    def ask_first(self, tests: list[str]) -> None:
        """Ask about the code as it is before anything is copied from it: the copies then have its bytecode."""
        self._answers[tuple(tests)] = self._ask(self._home, None, tests)

    def passes(self, tests: list[str]) -> bool:
        """Whether tests pass on the code as it is; they are asked once."""
        key = tuple(tests)
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._answers:
                with self._copy() as folder:
                    self._answers[key] = self._ask(folder, None, tests)
            return self._answers[key].code == PASSED

    def try_mutant(self, mutant: Mutant, killer: str | None, likely: Sequence[str] = ()) -> tuple[str, str | None]:
        """'killed', or what went wrong; and the test that killed it alone, if one did. Asked are the killer alone, then
        what is likely to find something, then the whole suite."""
        with self._copy() as folder:
            file = folder / "src" / "weft" / mutant.path
            text = file.read_text(encoding="utf-8")
            if text.count(mutant.old) != 1:
                return f"STALE: its line stands {text.count(mutant.old)} times in {mutant.path}", None
            for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
                compiled.unlink()
            file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
            module = ".".join(["weft", *Path(mutant.path).with_suffix("").parts]).removesuffix(".__init__")
            if killer is not None and self._kills(folder, module, killer):
                return "killed", killer
            found = self._ask(folder, module, list(likely)).failed if likely else None
            if found is not None and self._kills(folder, module, found):
                return "killed", found
            answer = self._ask(folder, module, list(mutant.tests))
            if answer.broken or answer.failed is None:
                return answer.broken or "SURVIVED", None
            if self._kills(folder, module, answer.failed):
                return "killed", answer.failed
        passes = self.passes(list(mutant.tests))  # a test that fails only after others may do so on any code
        return ("killed" if passes else "UNKNOWN: its suite does not pass on the code as it is"), None

    def _kills(self, folder: Path, module: str, test: str) -> bool:
        """Whether one test, alone, fails here and passes on the code as it is."""
        answer = self._ask(folder, module, [test])
        return answer.broken is None and answer.code == FAILED and self.passes([test])

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self._home, ignore_cleanup_errors=True) as name:
            shutil.copytree(self._home / "src", Path(name) / "src")
            yield Path(name)

    def _ask(self, folder: Path, module: str | None, tests: list[str]) -> Answer:
        with tempfile.TemporaryDirectory(dir=self._home, ignore_cleanup_errors=True) as name:
            question = self.root, folder / "src", Path(name), module, tests
            child = self._processes.Process(target=answer_in_child, args=question)
            child.start()
            child.join(ENOUGH)
            if child.is_alive():
                child.kill()
                child.join()
            told = Path(name) / "answer.json"
            return Answer(**json.loads(told.read_text(encoding="utf-8"))) if told.exists() else Answer(None)


class Table:
    """Which test found each mutant the last time: a JSON file of names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.killers: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def of_relatives(self, mutant: Mutant, mutants: Sequence[Mutant]) -> list[str]:
        """The tests that found other mutants of the same suite, those that found most of them first."""
        names = [other.name for other in mutants if other.tests == mutant.tests and other.name != mutant.name]
        return [test for test, _ in Counter(self.killers[name] for name in names if name in self.killers).most_common()]

    def write(self, mutants: Sequence[Mutant]) -> None:
        """In the order of the list, without those that are no longer in it."""
        kept = {mutant.name: self.killers[mutant.name] for mutant in mutants if mutant.name in self.killers}
        self.path.write_text(json.dumps(kept, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def main(mutants: Sequence[Mutant], root: Path, table: Table) -> int:
    parser = argparse.ArgumentParser(description="Break the code on purpose: a test must fail for each mutant.")
    parser.add_argument("word", nargs="?", default="", help="only mutants whose name contains it")
    parser.add_argument("--record", action="store_true", help=f"renew {table.path.name}")
    options = parser.parse_args()
    chosen = [mutant for mutant in mutants if options.word in mutant.name]
    known = {mutant.name: table.killers[mutant.name] for mutant in chosen if mutant.name in table.killers}
    trial, lock = Trial(root), threading.Lock()

    def verdict_of(mutant: Mutant) -> str:
        start = time.perf_counter()
        verdict, killer = trial.try_mutant(mutant, known.get(mutant.name), table.of_relatives(mutant, mutants))
        print(f"{verdict:<10} {mutant.name} ({time.perf_counter() - start:.0f} s)", flush=True)
        with lock:
            if killer is not None:
                table.killers[mutant.name] = killer
            if options.record:
                table.write(mutants)
        return verdict

    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(trial.ask_first, [[killer] for killer in dict.fromkeys(known.values())]))
            verdicts = list(pool.map(verdict_of, chosen))
    finally:
        trial.close()
    killed = verdicts.count("killed")
    print(f"{killed} of {len(chosen)} mutants killed")
    news = sum(table.killers.get(mutant.name) != known.get(mutant.name) for mutant in chosen)
    if news and not options.record:
        print(f"{news} of them by another test than last time: `--record` makes the next run quicker")
    return 0 if killed == len(chosen) and chosen else 1
