"""Pages that stand alone: no script, no request to anywhere, a table behind every picture."""

from weft.report.training import training_report

__all__ = ["training_report"]
