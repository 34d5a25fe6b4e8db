"""One browser for all of these tests; without one they are skipped."""

import pytest

from browser.driver import Browser, find_missing


@pytest.fixture(scope="session")
def _started(tmp_path_factory):
    if missing := find_missing():
        pytest.skip(missing)
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def browser(_started, tmp_path):
    """The browser, writing its pages into a folder of this test."""
    _started.folder = tmp_path
    return _started
