"""Pages that stand alone: no request to anywhere, a table behind every image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.report.attention import Section, attention_page, attention_section
    from weft.report.training import training_report, write_report

_HOME = {
    "Section": "attention",
    "attention_page": "attention",
    "attention_section": "attention",
    "training_report": "training",
    "write_report": "training",
}

__all__ = ["Section", "attention_page", "attention_section", "training_report", "write_report"]

__getattr__, __dir__ = lazy(__name__, _HOME)
