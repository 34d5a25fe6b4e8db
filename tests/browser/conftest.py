"""One browser for all of these tests; without one they are skipped."""

import pytest

from browser_setup import Browser, missing


@pytest.fixture(scope="session")
def _started(tmp_path_factory):
    if missing():
        pytest.skip(missing())
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def browser(_started, tmp_path):
    """The browser, writing its pages into a folder of this test."""
    _started.folder = tmp_path
    return _started
