"""What the attention page carries: the weights that were given, and nothing that could become code.

How it looks and answers is tried in tests/browser."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

from fixtures.attention_views import (
    HOSTILE,
    draw_weights,
    make_hostile_view,
    make_image_view,
    make_pair_view,
    make_stages_view,
    make_text_view,
)
from weft.report import attention_page, attention_section
from weft.report.attention import safe_json
from weft.report.attention_data import PIXELS, SMALL, image_data, in_bytes, small_copy, weights_data


class Parts(HTMLParser):
    """The tags of a page, and what stands in its scripts by their name."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.scripts, self._inside = [], {}, None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._inside = dict(attrs).get("data-of", "code") if tag == "script" else None

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside is not None:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data


def unpacked(text):
    return zlib.decompress(base64.b64decode(text))


def as_read(data, heads, rows, columns):
    """What the page makes of the bytes."""
    largest = np.frombuffer(data[: 4 * heads * rows], "<f4").reshape(heads, rows, 1)
    return np.frombuffer(data[4 * heads * rows :], np.uint8).reshape(heads, rows, columns) / 255 * largest


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_keep_their_worth(dtype):
    given = draw_weights(3, 40, 70, causal=True).astype(dtype)
    given[:, 5] = 0  # a row that may look nowhere
    found = as_read(in_bytes(given), 3, 40, 70)
    largest = given.max(-1, keepdims=True)
    assert (np.abs(found - given) <= largest / 510 + 1e-7).all()
    assert (found[given == 0] == 0).all()
    assert found.max(-1) == pytest.approx(given.max(-1), rel=1e-6)


def test_a_row_that_looks_everywhere_is_not_rounded_away():
    given = np.full((1, 2, 1000), 0.001)
    assert as_read(in_bytes(given), 1, 2, 1000) == pytest.approx(given, rel=1e-6)


def test_small_copies_show_the_largest_of_what_they_stand_for():
    given = np.zeros((2, 100, 130), np.float32)
    given[0, :, 0], given[0, 57, 100] = 0.2, 0.8
    small = small_copy(given)
    assert small.shape == (2, SMALL, SMALL) and not small[1].any()
    row, column = (max(n for n in range(SMALL) if n * size // SMALL <= at) for at, size in ((57, 100), (100, 130)))
    assert small[0, row, column] == 255 and np.count_nonzero(small[0]) == SMALL + 1
    assert small[0, :, 0].tolist() == [255] * SMALL  # beside the largest of their row, as another row's is there
    assert small_copy(given[:, 57:58])[0, 0, 0] == round(255 * 0.25)
    few = draw_weights(2, 9, 12)
    assert (small_copy(few) == np.rint(few * 255)).all()


def test_the_page_carries_all_maps_and_what_they_stand_for():
    view = make_pair_view()
    scripts = Parts(attention_page(view)).scripts
    told = json.loads(scripts["view"])
    for number, shown in enumerate(view.maps):
        heads, rows, columns = shown.weights.shape
        found = as_read(unpacked(scripts[f"map {number}"]), heads, rows, columns)
        assert found == pytest.approx(shown.weights, abs=1 / 510)
        entry = told["maps"][number]
        assert (entry["part"], entry["heads"], entry["small"]) == (shown.part, heads, [rows, columns])
        assert told["sides"][entry["asking"]]["labels"] == list(shown.asking.labels)
        assert told["sides"][entry["answering"]]["labels"] == list(shown.answering.labels)
    assert len(told["sides"]) == 2  # each is told once
    assert len(unpacked(scripts["small"])) == sum(shown.weights.size for shown in view.maps)


def test_rollouts_have_their_part():
    view = make_text_view()
    assert as_read(unpacked(weights_data(view)["rollout layers"]), 1, 12, 12)[0] == pytest.approx(
        view.rollouts["layers"], abs=1 / 510
    )


def test_hostile_words_stay_words():
    view = make_hostile_view()
    page = attention_page(view)
    parts, plain = Parts(page), Parts(attention_page(make_text_view()))
    assert "img" not in parts.tags and "<!--" not in page and "\u2028" not in page
    names = ["view", "map 0", "map 1", 'rollout b"', "small"]
    assert [*parts.scripts] == [*names, "code"] and parts.scripts["code"] == plain.scripts["code"]
    assert tuple(json.loads(parts.scripts["view"])["sides"][0]["labels"]) == HOSTILE


def test_safe_json_is_json():
    value = {"a": ["</script>", "<!--", "&", "\u2028\u2029", "\\u003c", '"', "é"]}
    text = safe_json(value)
    assert json.loads(text) == value and not set(text) & set("<>&\u2028\u2029")


def test_the_page_stands_alone():
    for view in (make_text_view(), make_image_view(), make_stages_view()):
        page = attention_page(view)
        assert not re.search(r"https?://|@import|url\(|\bsrc=|innerHTML|document\.write|\beval\b", page)
        assert "1/255 of the largest of their row" in page
        assert Parts(page).tags.count("section") == 1
    assert "<noscript>" in page and "stages.0.channels" in page


def test_sections_bring_the_same_code():
    one, other = (attention_section(view, name) for view, name in ((make_text_view(), "a"), (make_image_view(), 'b"<')))
    assert (one.style, one.script) == (other.style, other.script)
    assert 'id="a"' in one.html and 'id="b&quot;&lt;"' in other.html


def test_images_are_red_green_and_blue():
    colours = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert unpacked(image_data(colours)) == colours.tobytes()
    assert unpacked(image_data(colours[..., :1])) == np.repeat(colours[..., :1], 3, axis=2).tobytes()
    large = np.zeros((2 * PIXELS + 2, 9, 3), np.uint8)
    large[::3, ::3] = 7
    rows = -(-len(large) // 3)
    assert unpacked(image_data(large)) == bytes([7]) * (rows * 3 * 3)
