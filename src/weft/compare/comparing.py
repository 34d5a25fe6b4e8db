"""`weft.compare(…)`: comparing from Python, with the same words as the command."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.compare.comparison import Comparison
from weft.compare.session import Session
from weft.compare.trials import TrialSpec
from weft.errors import ConfigError
from weft.tasks.training import OPTIONS, Given, paths_of

log = logging.getLogger(__name__)


def compare(
    task: str | None = None,
    data: Given | None = None,
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    models: Sequence[str] = (),
    set: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    resume: str | Path | None = None,
    **options: Any,
) -> Comparison:
    """Train the same data over several settings: `weft.compare("generate", "book.txt", vary={"model.width": [64, 128]},
    minutes=1)`.

    `vary` and `models` say what differs, every combination is a run of its own; `set` and the other options are those
    of `weft.train` and hold for all. `resume="runs/compare-book-1"` goes on with one that was stopped.
    """
    if resume is not None:
        if task or data is not None or vary or models or set or config or options:
            raise ConfigError("resume with other options", expected="resume alone: the settings are kept with it")
        session = Session.open(resume)
    else:
        for name in options:
            if name not in OPTIONS or name == "model":
                known = ", ".join(sorted({*OPTIONS} - {"model"}))
                raise ConfigError(f"unknown option {name!r}", expected=f"models, vary, set, config or one of {known}")
        out = options.pop("out", None)
        for name in ("validation", "test"):
            if options.get(name):
                options[name] = paths_of(options[name], task)
        asked = TrialSpec(
            data=() if data is None else paths_of(data, task),
            task=task,
            options=options,
            changes=dict(set or {}),
            config=None if config is None else str(config),
            models=tuple(models.split(",")) if isinstance(models, str) else tuple(models),
            vary={key: list(values) if isinstance(values, tuple) else values for key, values in (vary or {}).items()},  # type: ignore[misc]
        )
        session = Session.new(asked, None if out is None else str(out), _log)
    result = session.run(_log)
    session.draw(result)
    return result


def _log(event: dict[str, Any]) -> None:
    if event["event"] == "warning":
        log.warning("%s", event["text"])
    elif event["event"] == "variant":
        log.info("%s (%d of %d)", event["name"], event["number"], event["count"])
    else:
        log.debug("%s", event)
