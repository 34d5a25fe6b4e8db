"""Ctrl-C and SIGTERM: finish the step, save, say how to resume. A second signal ends at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class StopRequest:
    """While the block runs, the first signal sets `requested` instead of ending the process."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in self.SIGNALS:
                self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()  # the next one acts as it would have

    def _restore(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def __exit__(self, *_: object) -> None:
        self._restore()
