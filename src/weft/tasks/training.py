"""`weft.train(…)`: training from Python, with the same words as the command."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.checkpoints.files import write_text
from weft.errors import ConfigError, UnsupportedError
from weft.tasks.generate import Request, cache_folder, train_generate
from weft.tasks.run import Run

log = logging.getLogger(__name__)


def train(
    task: str, data: str | Path | Sequence[str | Path], *, set: dict[str, Any] | None = None, **options: Any
) -> Run:
    """Train and return the run: `weft.train("generate", "book.txt", minutes=5)`.

    `data` is a path, several paths, "demo", or a list of texts. Options are those of `weft train`
    (model, tokenizer, validation, minutes, steps, epochs, seed, device, threads, out), and
    `set={"model.width": 128}` sets anything else.
    """
    if task != "generate":
        raise UnsupportedError(f"the task {task!r} does not exist yet", expected="generate")
    changes = {key: value if isinstance(value, str) else str(value) for key, value in (set or {}).items()}
    known = Request.__dataclass_fields__.keys() - {"data", "changes", "started", "dry_run"}
    for name in options:
        if name not in known:
            raise ConfigError(f"unknown option {name!r}", expected=f"one of {', '.join(sorted(known))}")
    request = Request(data=_paths(data), changes=changes, started=time.perf_counter(), **options)
    run, _ = train_generate(request, lambda event: log.debug("%s", event))
    assert run is not None
    return Run(run.path)


def _paths(data: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    """Paths as they are; texts are written down first, so that the run can be resumed."""
    if isinstance(data, (str, Path)):
        return (str(data),)
    if not data:
        raise ConfigError("an empty list of data", expected="paths or texts")
    if all(isinstance(item, Path) or (len(item) < 4096 and "\n" not in item and Path(item).exists()) for item in data):
        return tuple(str(item) for item in data)
    return tuple(_written(str(item)) for item in data)


def _written(text: str) -> str:
    path = cache_folder() / "texts" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return str(path)
