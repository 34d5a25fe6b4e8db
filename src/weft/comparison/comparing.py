"""`weft.compare(…)`: comparing from Python, with the same words as the command."""

from __future__ import annotations

import logging
from typing import Any, Unpack

from weft.comparison.result import Comparison
from weft.comparison.session import Session
from weft.comparison.variants import TrialSpec
from weft.errors import ConfigError
from weft.tasks.options import CompareOptions, Given, check_keywords, with_keywords
from weft.tasks.training import asked_in_python

log = logging.getLogger(__name__)


@with_keywords(CompareOptions)
def compare(data: Given = None, **options: Unpack[CompareOptions]) -> Comparison:
    """Train one set of data with several settings: `weft.compare("a.txt", vary={"model.width": [64, 128]}, minutes=1)`.

    `models` and `vary` say what differs, every combination is a run of its own; `set` and the other keywords are those
    of `weft.train` and hold for all, and `minutes` are those of each run. `resume="runs/compare-book-1"` continues one
    that was stopped.
    """
    said = check_keywords(data, options, CompareOptions)
    if "resume" in said:
        if len(said) > 1:
            raise ConfigError("resume with other options", expected="resume alone: the settings are kept with it")
        session = Session.open(said["resume"])
    else:
        out = said.pop("out", None)
        models, vary = said.pop("models", ()), said.pop("vary", {})
        vary = {key: list(v) if isinstance(v, tuple) else v for key, v in vary.items()}
        session = Session.new(TrialSpec(**asked_in_python(said), models=models, vary=vary), out, _log)
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
