"""Pages that stand alone: no request to anywhere, a table behind every picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.report.training import training_report, write_report

_HOME = {"training_report": "training", "write_report": "training"}

__all__ = ["training_report", "write_report"]

__getattr__, __dir__ = lazy(__name__, _HOME)
