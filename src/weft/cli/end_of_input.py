"""Training for another program: saved and stopped, as on Ctrl-C, when that closes stdin or is no more."""

from __future__ import annotations

import os
import signal
import threading
from _thread import interrupt_main
from contextlib import suppress


def stop_at_eof() -> None:
    """From now on, the end of stdin is Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background ignores it
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    """Not through `sys.stdin`: its lock would be missed when the interpreter ends."""
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    interrupt_main()
