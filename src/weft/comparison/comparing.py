"""`weft.compare(…)`: comparing from Python, with the same words as the command."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from weft.comparison.result import Comparison
from weft.comparison.session import Session
from weft.comparison.trials import TrialSpec
from weft.config import fit
from weft.errors import ConfigError
from weft.tasks.training import Given, paths_of

log = logging.getLogger(__name__)
APART = ("data", "models", "vary", "set", "validation", "test")  # checked by what is done with them


def compare(
    data: Given | None = None,
    *,
    models: Sequence[str] = (),
    vary: Mapping[str, Sequence[Any]] | None = None,
    task: str | None = None,
    tokenizer: str | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    pairs: str | Path | None = None,
    source: str | None = None,
    target: str | None = None,
    validation: Given | None = None,
    test: Given | None = None,
    start: str | Path | None = None,
    freeze: int | str | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    device: str | None = None,
    threads: int | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] | None = None,
    watch: bool = False,
    resume: str | Path | None = None,
) -> Comparison:
    """Train one set of data with several settings: `weft.compare("a.txt", vary={"model.width": [64, 128]}, minutes=1)`.

    `models` and `vary` say what differs, every combination is a run of its own; `set` and the other options are those
    of `weft.train` and hold for all, and `minutes` are those of each run. `resume="runs/compare-book-1"` goes on with
    one that was stopped.
    """
    given = {name: value for name, value in locals().items() if value is not None and value is not False}
    hints = get_type_hints(compare)
    given = {n: value if n in APART else fit(value, hints[n], n) for n, value in given.items()}
    if resume is not None:
        if {name for name, value in given.items() if name != "resume" and value != ()}:
            raise ConfigError("resume with other options", expected="resume alone: the settings are kept with it")
        session = Session.open(resume)
    else:
        session = Session.new(_asked(given), None if out is None else str(out), _log)
    result = session.run(_log)
    session.draw(result)
    return result


def _asked(given: dict[str, Any]) -> TrialSpec:
    """The keywords as they are asked of a comparison; tables and lists are checked here."""
    options = dict(given)
    words = {name: options.pop(name, None) for name in ("data", "models", "vary", "set", "config", "task", "out")}
    for name in ("pairs", "start"):
        if name in options:
            options[name] = str(options[name])
    for name in ("validation", "test"):
        if name in options:
            options[name] = paths_of(_data(options[name], name), words["task"])
    return TrialSpec(
        data=() if words["data"] is None else paths_of(_data(words["data"], "data"), words["task"]),
        task=words["task"],
        options=options,
        changes=_table(words["set"], "set"),
        config=None if words["config"] is None else str(words["config"]),
        models=_names(words["models"]),
        vary={
            key: list(values) if isinstance(values, tuple) else values
            for key, values in _table(words["vary"], "vary").items()
        },
    )


def _data(value: Any, name: str) -> Any:
    if not hasattr(value, "__len__") and not isinstance(value, Path):
        raise ConfigError(f"{name} = {value!r}", expected="a path, several, texts, tuples, arrays or a data frame")
    return value


def _table(value: Any, name: str) -> dict[str, Any]:
    if value is not None and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
        wanted = '{"model.width": [64, 128]}' if name == "vary" else '{"model.width": 128}'
        raise ConfigError(f"{name} = {value!r}", expected=f"settings by name, such as {wanted}")
    return dict(value or {})


def _names(value: Any) -> tuple[str, ...]:
    value = value.split(",") if isinstance(value, str) else value
    if not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"models = {value!r}", expected="a list of names of models")
    return tuple(name.strip() for name in value)


def _log(event: dict[str, Any]) -> None:
    if event["event"] == "warning":
        log.warning("%s", event["text"])
    elif event["event"] == "variant":
        log.info("%s (%d of %d)", event["name"], event["number"], event["count"])
    else:
        log.debug("%s", event)
