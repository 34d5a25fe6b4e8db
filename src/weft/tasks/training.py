"""`weft.train(…)`: training from Python, with the same words as the command."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.checkpoints.files import write_text
from weft.errors import ConfigError
from weft.tasks.generate import train_generate
from weft.tasks.preparation import cache_folder
from weft.tasks.request import Request, make_request
from weft.tasks.run import Run

log = logging.getLogger(__name__)


Given = str | Path | Sequence[str | Path]
OPTIONS = tuple(Request.__dataclass_fields__.keys() - {"data", "recipe", "changes", "started", "dry_run"})


def train(
    task: str | None = None,
    data: Given | None = None,
    *,
    config: str | Path | None = None,
    set: dict[str, Any] | None = None,
    **options: Any,
) -> Run:
    """Train and return the run: `weft.train("generate", "book.txt", minutes=5)`.

    `data` is a path, several paths, "demo", or a list of texts; so are the options `validation` and `test`. The
    other options are those of `weft train` (model, tokenizer, minutes, steps, epochs, seed, device, threads, out,
    freeze, and `start` for its --from).
    `config="recipe.toml"` gives all of that from a file, and `set={"model.width": 128}` sets anything else.
    """
    started = time.perf_counter()
    for name in options:
        if name not in OPTIONS:
            raise ConfigError(f"unknown option {name!r}", expected=f"one of {', '.join(sorted(OPTIONS))}")
    for name in ("validation", "test"):
        if options.get(name):
            options[name] = _paths(options[name])
    words = () if data is None else _paths(data)
    request = make_request(words, options, task=task, config=config, changes=set)
    request.started = started
    run, _ = train_generate(request, _log)
    assert run is not None
    return Run(run.path)


def _log(event: dict[str, Any]) -> None:
    if event["event"] == "warning":
        log.warning("%s", event["text"])
    else:
        log.debug("%s", event)


def _paths(data: Given) -> tuple[str, ...]:
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
