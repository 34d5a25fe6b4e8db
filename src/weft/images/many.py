"""Many image files at once, decoded by several processes; the order is that of the files, however many work on them.

The processes are started afresh ("spawn": the only way that every system has), and import neither torch nor the
program that called: a script without `if __name__ == "__main__"` is not run a second time.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError
from weft.images.allocate import allocate
from weft.images.arrays import ResizeCrop
from weft.images.decode import decode, pillow

log = logging.getLogger(__name__)

CHUNK = 32  # files that a worker is given at a time
ALONE = 200  # fewer files are decoded before a worker has started
MOST_WORKERS = 8
AHEAD = 3  # chunks for each worker that are given out before their turn

Chunk = tuple[NDArray[np.uint8], dict[int, str]]
Job = tuple[list[str], Literal[1, 3], int, ResizeCrop | None]


def decode_files(
    files: Sequence[Path],
    *,
    channels: Literal[1, 3],
    size: int,
    cut: ResizeCrop | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[NDArray[np.uint8], dict[int, str]]:
    """All files as (N, channels, size, size), and for those that cannot be read what is wrong, by place; these are 0.

    `cut`: as in `decode`. `progress` is told after each chunk how many files are done, and of how many. `workers`:
    processes; None is as many as there are cores for many files, and 1, which is this process itself, for few.
    """
    pillow()  # which is said once, and not for each file
    pixels = allocate((len(files), channels, size, size))
    problems: dict[int, str] = {}
    jobs: list[Job] = [
        ([str(file) for file in files[start : start + CHUNK]], channels, size, cut)
        for start in range(0, len(files), CHUNK)
    ]
    done = 0
    # closed at once when `progress` raises, and not when somebody forgets the error
    with closing(_results(jobs, _workers(len(files)) if workers is None else workers)) as results:
        for found, wrong in results:
            pixels[done : done + len(found)] = found
            problems |= {done + place: why for place, why in wrong.items()}
            done += len(found)
            progress(done, len(files))
    return pixels, problems


def decode_chunk(files: list[str], channels: Literal[1, 3], size: int, cut: ResizeCrop | None = None) -> Chunk:
    """Some files one after the other; what a worker does."""
    pixels = np.zeros((len(files), channels, size, size), dtype=np.uint8)
    problems = {}
    for place, file in enumerate(files):
        try:
            pixels[place] = decode(file, channels=channels, size=size, cut=cut)
        except DataError as error:
            problems[place] = str(error).split("\n", 1)[0]
    return pixels, problems


def _workers(files: int) -> int:
    if files < ALONE or multiprocessing.current_process().daemon:  # which may have no children
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS)


def _results(jobs: Sequence[Job], workers: int) -> Generator[Chunk]:
    """The result of each job in order."""
    if workers > 1:
        try:
            pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_begin)
        except (ImportError, NotImplementedError, OSError) as error:  # systems without semaphores
            log.info("images are decoded by one process: %s", error)
        else:
            yield from _pooled(pool, jobs, AHEAD * workers)
            return
    for job in jobs:
        yield decode_chunk(*job)


def _pooled(pool: ProcessPoolExecutor, jobs: Sequence[Job], ahead: int) -> Generator[Chunk]:
    """Results in the order of the jobs; whatever ends the reading ends the workers too."""
    waiting: deque[tuple[Job, Future[Chunk]]] = deque()
    try:
        for job in jobs:
            with _starting():
                waiting.append((job, pool.submit(decode_chunk, *job)))
            if len(waiting) >= ahead:
                yield _result(*waiting.popleft())
        while waiting:
            yield _result(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _result(job: Job, future: Future[Chunk]) -> Chunk:
    try:
        return future.result()
    except BrokenProcessPool:
        given = f"a process that decoded images was ended, at {job[0][0]} or a little after it"
        raise DataError(given, advice="is there enough memory? is one of these files broken?") from None


@contextmanager
def _starting() -> Iterator[None]:
    """Hide the program from a process that is being started, which would run it again to find its functions.

    Until it can answer for itself, it inherits that Ctrl-C has to wait.
    """
    program = sys.modules["__main__"]
    masked = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masked else set()
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program
        if masked:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """In a worker: Ctrl-C is for the parent to answer, and a parent that is gone leaves no orphans."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
