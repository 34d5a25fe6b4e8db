"""Pages that stand alone: no request to anywhere, a table behind every picture."""

from weft.report.attention import Section, attention_page, attention_section
from weft.report.training import training_report

__all__ = ["Section", "attention_page", "attention_section", "training_report"]
