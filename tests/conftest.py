"""Shapes written in signatures are checked in every test; users do not pay for that."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads of processes that tests start: no turning while they wait

import jaxtyping
import pytest
import torch

HOOK = jaxtyping.install_import_hook(["weft.blocks", "weft.analysis"], "beartype.beartype")
HOOK.__enter__()
torch.set_num_threads(1)  # pytest runs two workers on two cores


def _asked_for_threads(count):
    """Commands take every core by default. In a worker they must not: four threads on two cores wait for each other."""
    assert isinstance(count, int) and count > 0


torch.set_num_threads = _asked_for_threads


@pytest.fixture(autouse=True)
def _same_start():
    torch.manual_seed(0)


SHORT_REPORTS = ("tests/training/", "tests/tasks/", "tests/cli/test_")
REAL_REPORTS = ("tests/cli/test_runs.py", "tests/cli/test_compare.py")


@pytest.fixture(scope="session", autouse=True)
def _reports():
    """Every training writes a report, which takes a third of a short one's time. Tests of other things get an empty
    page; those of reports, of pages in a browser and of all commands in the docs get the real one."""
    from weft.report import training

    made = training.made_report

    def made_or_empty(path):
        test = os.environ.get("PYTEST_CURRENT_TEST", "")
        if not test.startswith(SHORT_REPORTS) or test.startswith(REAL_REPORTS):
            return made(path)
        (path / training.REPORT_FILE).write_text("<!doctype html>\n<title>a report</title>\n")
        return path / training.REPORT_FILE

    training.made_report = made_or_empty
    yield
    training.made_report = made


@pytest.fixture
def as_a_user():
    """Without the shape checks of the test run: what a user meets who passes something wrong."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """Tiny runs of every kind, each trained when a test first asks for it."""
    from fixtures.runs import Desk

    return Desk(tmp_path_factory.mktemp("desk"))
