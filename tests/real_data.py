"""The public data sets that some tests read: the folder that WEFT_DATA names, and no other.

Without it these tests are skipped. Nothing is looked for beside the repository: a test that passes because of what
happens to lie there fails for everybody else.
"""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("WEFT_DATA") or "no-data-set-is-named").absolute()
WITHOUT = (
    f"the public data sets are not in {DATA}: set WEFT_DATA" if "WEFT_DATA" in os.environ else "WEFT_DATA is not set"
)


def data_marks(*names):
    """Marks of a test that reads these folders or files of DATA, for `pytestmark` and `pytest.param(marks=…)`."""
    missing = [name for name in names if not (DATA / name).exists()]
    return [pytest.mark.data, pytest.mark.skipif(bool(missing), reason=f"{WITHOUT} ({', '.join(missing)})")]


def needs_data(*names):
    """The same, as a decorator of one test."""

    def marked(test):
        for mark in data_marks(*names):
            test = mark(test)
        return test

    return marked
