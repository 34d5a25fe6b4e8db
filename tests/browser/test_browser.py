"""The checks themselves: each finds what it is there for."""

import pytest

SOUND = '<!doctype html><html lang="en"><head><title>x</title></head><body><main><h1>x</h1>{}</main></body></html>'


def test_a_sound_page_passes(browser):
    browser.open(SOUND.format("<p>words</p>")).check()


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("requests", '<img alt="" src="http://127.0.0.1:9/x.png">'),
        ("requests", "<script>fetch('http://127.0.0.1:9/x').catch(() => 0)</script>"),
        ("errors", "<script>nobody.knows()</script>"),
        ("errors", "<script>Promise.reject(new Error('late'))</script>"),
        ("serious", '<p style="color: #ccc; background: #fff">pale</p>'),
        ("serious", "<button></button>"),
        ("serious", '<div role="listbox" aria-label="x"><b>no option</b></div>'),
    ],
)
def test_what_is_wrong_is_found(browser, what, body):
    browser.open(SOUND.format(body))
    assert getattr(browser, what)()
    with pytest.raises(AssertionError):
        browser.open(SOUND.format(body)).check()


def test_a_page_that_is_too_wide_is_found(browser):
    with pytest.raises(AssertionError, match="wide"):
        browser.open(SOUND.format('<div style="width: 3000px">.</div>')).check()
