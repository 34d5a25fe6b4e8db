"""A command in a process of its own: its events are heard, and it is stopped when this one is or ends.

`weft … --json --until-eof` writes events as lines of JSON on stdout, and saves and stops when its stdin is closed: by
this process, or because that is no more.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

from weft.tasks.recording import Report

WINDOWS_APART = 0x200  # CREATE_NEW_PROCESS_GROUP
FINISHED, STOPPED = 0, 130


def run_in_child(words: Sequence[str], listen: Report) -> str:
    """Run `weft` with these words, tell its events, and return why it failed, or nothing.

    Ctrl-C reaches this process alone: the child is asked to save and stop, and KeyboardInterrupt is raised when it has.
    A second Ctrl-C, or an error of `listen`, ends it at once.
    """
    apart: dict[str, Any] = {"creationflags": WINDOWS_APART} if os.name == "nt" else {"start_new_session": True}
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "weft", *words, "--json", "--until-eof"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("WEFT_DEBUG") else said,
            encoding="utf-8",
            errors="replace",
            **apart,
        )
        with child:
            try:
                return _listen(child, listen, said)
            except BaseException:  # also of `listen`, and of a second Ctrl-C
                _end(child)
                raise


def _listen(child: subprocess.Popen[str], listen: Report, said: IO[bytes]) -> str:
    assert child.stdin is not None and child.stdout is not None
    reason, stopping = "", False
    while True:
        try:
            for line in child.stdout:
                event = _event(line)
                if event:
                    listen(event)
                    reason = event["reason"] if event["event"] == "failed" else reason
            code = child.wait()
            break
        except KeyboardInterrupt:
            if stopping:
                raise
            stopping = True
            child.stdin.close()
    if stopping or code == STOPPED:
        raise KeyboardInterrupt
    return "" if code == FINISHED else reason or _death(code, said)


def _event(line: str) -> dict[str, Any]:
    """What a library prints beside our events is no event."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) and "event" in event else {}


def _end(child: subprocess.Popen[str]) -> None:
    """At once, with what it has started itself."""
    with suppress(ProcessLookupError):
        if os.name == "nt":
            child.kill()
        else:
            os.killpg(child.pid, signal.SIGKILL)


def _death(code: int, said: IO[bytes]) -> str:
    if code == -9:
        return "its process was killed: was there enough memory?"
    said.seek(0)
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    ours = max((place for place, line in enumerate(lines) if line.startswith("weft: ")), default=None)
    if ours is not None:  # refused before it could say so by an event
        return "\n".join(lines[ours:]).removeprefix("weft: ")
    return f"its process ended with exit code {code}" + (f": {lines[-1]}" if lines else "")
