"""A process that trains one variant and nothing else, so that its time and memory are its own.

`python -m weft.comparison.child`: an order is one line of JSON on stdin, events are lines of JSON on stdout. When stdin
closes, because somebody asked it to stop or its parent died, it saves and ends as on Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from _thread import interrupt_main
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.comparison.trials import Trial
    from weft.tasks.request import Request
    from weft.training import Outcome

STARTED = time.perf_counter() - 0.1  # the interpreter was there before us
OUTCOME = "outcome.json"
FINISHED, FAILED, STOPPED = 0, 1, 130


def main() -> int:
    """Read the order, train, say how it ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background ignores it, and so would we
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    from weft.comparison.trials import Trial
    from weft.plugins import load_all

    load_all()
    return work(Trial(**order["order"]), Path(order["out"]), _send, STARTED)


def _stop_with_parent() -> None:
    """Wait for the end of stdin. Not through `sys.stdin`: its lock would be missed when the interpreter ends."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    interrupt_main()


def _send(event: dict[str, Any]) -> None:
    if event["event"] == "step":
        from weft.tasks.environment import memory_in_use

        event = event | {"memory": memory_in_use()}
    with suppress(OSError):  # nobody listens any more: we are about to be stopped
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def work(order: Trial, out: Path, report: Callable[[dict[str, Any]], None], started: float) -> int:
    """Begin the run or go on with it; what came out, and what it cost, is kept in the run's outcome.json."""
    from weft.checkpoints import RunDirectory
    from weft.comparison.memory import peak_memory_on
    from weft.comparison.trials import reason_of

    run = RunDirectory(out)
    request = order.to_request(out)
    request.started = started
    before = read_outcome(out)
    found: dict[str, Any] = {"done": False}
    code = FAILED
    try:
        outcome = _train(order, request, report)
        found["steps"] = outcome.progress.step
        if outcome.stopped_by == "signal":
            code = STOPPED
        else:
            found |= _measured(out, outcome) | {"done": True}
            code = FINISHED
    except KeyboardInterrupt:
        code = STOPPED
    except Exception as error:
        if os.environ.get("WEFT_DEBUG"):
            raise
        found["reason"] = reason_of(error)
        report({"event": "failed", "reason": found["reason"]})
    found["seconds"] = round(before.get("seconds", 0.0) + time.perf_counter() - started, 2)
    peak = peak_memory_on(request.device)
    found["peak_memory"] = None if peak is None else max(peak, before.get("peak_memory") or 0)
    if code == FINISHED and (sample := _sample(out)) is not None:  # after the clock and the peak were read
        found["sample"] = sample
    if run.config_file.exists():
        run.write_json(OUTCOME, found)
    return code


def _sample(out: Path) -> dict[str, str] | None:
    """What it writes; a sample that cannot be had is no reason to lose the run."""
    from weft.errors import WeftError
    from weft.tasks.run import Run

    try:
        run = Run(out)
        return run.description.sample(run)
    except WeftError:
        return None


def _train(order: Trial, request: Request, report: Callable[[dict[str, Any]], None]) -> Outcome:
    """By the ordinary machinery, `weft train` or `weft resume`; checked before the first step."""
    import shutil

    from weft.checkpoints import RunDirectory
    from weft.tasks.experiment import Experiment

    assert request.out is not None
    run = RunDirectory(request.out)

    def checking(event: dict[str, Any]) -> None:
        if event["event"] == "phase" and event["name"] == "training":
            _check_shared(order, run)
        report(event)

    if run.config_file.exists():
        return Experiment.reopen(request.out, checking).fit()[1]
    if run.path.is_dir() and not run.path.is_symlink():
        shutil.rmtree(run.path)  # stopped before there was a run: settings are written last
    return Experiment.plan(request, checking).fit()[1]


def _check_shared(order: Trial, run: Any) -> None:
    """The data and the tokenizer are those that were planned for, which all variants share."""
    from weft.comparison.trials import digest
    from weft.errors import DataError

    if run.read_config()["data"]["fingerprint"] != order.fingerprint:
        raise DataError(
            "the data have changed since the comparison began", advice="put the old data back, or compare anew"
        )
    if order.tokenizer and digest(run.tokenizer_file.read_bytes()) != order.tokenizer:
        raise DataError(
            f"{run.tokenizer_file} is not the tokenizer that was planned", advice="remove this run, or compare anew"
        )


def _measured(out: Path, outcome: Outcome) -> dict[str, Any]:
    """Numbers alone; what each class was taken for stands in the run."""
    from weft.checkpoints import RunDirectory
    from weft.tasks.results import final_metrics

    metrics = final_metrics(RunDirectory(out), outcome)
    plain = {name: value for name, value in metrics.items() if isinstance(value, int | float | str | None)}
    if "by_length" in metrics:  # a short table, for the curves of translations
        plain["by_length"] = metrics["by_length"]
    return {**plain, "stopped_by": outcome.stopped_by}


def read_outcome(out: Path) -> dict[str, Any]:
    """What is known of a variant; empty if nothing is."""
    try:
        found = json.loads((out / OUTCOME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    sys.exit(main())
