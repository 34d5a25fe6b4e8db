"""Starting the process of a variant, listening to it, and stopping it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weft.comparison.child import FINISHED, STOPPED
from weft.comparison.trials import Trial
from weft.tasks.recording import Report

WINDOWS_APART = 0x200  # CREATE_NEW_PROCESS_GROUP


def run_in_child(order: Trial, out: Path, report: Report) -> str:
    """Train a variant in a process of its own; returns why that failed, or nothing.

    Ctrl-C reaches this process alone: the child is asked to save and stop, and KeyboardInterrupt is raised when it has.
    A second Ctrl-C ends it at once.
    """
    apart: dict[str, Any] = {"creationflags": WINDOWS_APART} if os.name == "nt" else {"start_new_session": True}
    child = subprocess.Popen(
        [sys.executable, "-m", "weft.comparison.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        **apart,
    )
    with child:
        try:
            return _listen(child, json.dumps({"order": asdict(order), "out": str(out)}), report)
        except BaseException:  # also of `report`, and of a second Ctrl-C
            child.kill()
            raise


def _listen(child: subprocess.Popen[str], order: str, report: Report) -> str:
    assert child.stdin is not None and child.stdout is not None
    reason, stopping = "", False
    while True:
        try:
            if order:
                child.stdin.write(order + "\n")
                child.stdin.flush()
                order = ""
            for line in child.stdout:
                event = _event(line)
                if event.get("event") == "failed":
                    reason = event["reason"]
                elif event:
                    report(event)
            code = child.wait()
            break
        except BrokenPipeError:
            order = ""  # it died before it was told; its exit code says how
            with suppress(OSError):
                child.stdin.close()
        except KeyboardInterrupt:
            if stopping:
                raise
            stopping = True
            child.stdin.close()
    if stopping or code == STOPPED:
        raise KeyboardInterrupt
    if code == FINISHED:
        return ""
    return reason or _death(code)


def _event(line: str) -> dict[str, Any]:
    """What a library prints beside our events is no event."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) and "event" in event else {}


def _death(code: int) -> str:
    if code == -9:
        return "its process was killed: was there enough memory?"
    return f"its process ended with exit code {code}"
