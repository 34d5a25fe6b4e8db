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


@pytest.fixture
def as_a_user():
    """Without the shape checks of the test run: what a user meets who passes something wrong."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """Tiny runs of every kind, each trained when a test first asks for it."""
    from table_setup import Desk

    return Desk(tmp_path_factory.mktemp("desk"))
