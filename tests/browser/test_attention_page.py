"""The attention page as a person meets it: by mouse, by keys, light and dark, and without a word to the outside."""

import statistics

import numpy as np
import pytest

from fixtures.attention_views import (
    HOSTILE,
    make_chapter_view,
    make_hostile_view,
    make_image_view,
    make_long_view,
    make_pair_view,
    make_stages_view,
    make_text_view,
)
from weft.pages import page
from weft.report import attention_page, attention_section

ROOT = "document.querySelector('section.attention')"
VIEWS = {
    "text": make_text_view,
    "pairs": make_pair_view,
    "image": make_image_view,
    "stages": make_stages_view,
    "hostile": make_hostile_view,
    "chapter": make_chapter_view,
}


def opened(browser, view, **more):
    """The page, drawn."""
    browser.open(attention_page(view), **more)
    browser.wait(f"{ROOT}.dataset.ready")
    return browser


def state(browser):
    """Part, what, layer, head, side, index, once everything is drawn."""
    browser.driver.execute_async_script(
        "const done = arguments[0]; setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 0)"
    )
    part, what, layer, head, side, index = browser.run(f"return {ROOT}.dataset.ready").rsplit(" ", 5)
    return part, what, int(layer), int(head), side, int(index)


def told(browser):
    """The table behind the image: label, position, weight."""
    rows = browser.run(
        f"return [...{ROOT}.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    return [
        (label.strip("\u2068\u2069"), place, float(weight.removesuffix("\u00a0%"))) for label, place, weight in rows
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_nothing_is_wrong_with_it(browser, name, dark):
    opened(browser, VIEWS[name](), dark=dark).check()
    assert browser.run("return window.broken === undefined && document.querySelectorAll('img').length === 0")
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (int(ground[4:-1].split(",")[0]) < 100) == dark


@pytest.mark.parametrize("name", ["text", "image", "stages"])
def test_a_narrow_window_is_enough(browser, name):
    opened(browser, VIEWS[name](), width=640).check()


def test_hostile_words_are_shown_as_they_are(browser):
    opened(browser, make_hostile_view())
    shown = browser.run(f"return [...{ROOT}.querySelectorAll('.asking [role=option]')].map(o => o.textContent)")
    assert shown[:3] == list(HOSTILE[:3])
    assert shown[5:8] == ["∅", "␣␣␣", "⏎"]  # one sees them
    assert browser.run("return document.querySelector('h1').textContent") == f"Attention: {make_hostile_view().title}"


# -- the numbers are those that were given --------------------------------------------------------


def expected(row, labels):
    order = sorted(np.flatnonzero(row), key=lambda n: (-row[n], n))
    return [(labels[n], str(n + 1), 100 * float(row[n])) for n in order]


def assert_told(browser, row, labels, largest=None):
    """The strongest first, each to half of 1/255 of the largest of its row, and what the page rounds."""
    found, wanted = told(browser), expected(row, labels)[:12]
    off = float(100 * (largest or row.max()) / 510 + 0.051)
    assert [weight for *_, weight in found[:12]] == pytest.approx([weight for *_, weight in wanted], abs=off)
    by_place = {place: (label, weight) for label, place, weight in wanted}
    for label, place, weight in found[:6]:
        assert by_place[place] == (label, pytest.approx(weight, abs=off))


def test_the_table_tells_the_weights(browser):
    view = make_text_view()
    opened(browser, view)
    labels = view.maps[0].asking.labels
    labels = [*labels[:-1], "⏎"]
    assert state(browser) == ("layers", "head", 0, 0, "asking", 11)
    assert_told(browser, view.maps[0].weights[0, 11], labels)
    browser.run(f"{ROOT}.querySelectorAll('.overview button')[6].click()")
    assert state(browser) == ("layers", "head", 1, 2, "asking", 11)
    assert_told(browser, view.maps[1].weights[2, 11], labels)
    browser.run(f"{ROOT}.querySelector('.answering [data-at=\"3\"]').click()")
    assert state(browser)[4:] == ("answering", 3)
    assert_told(browser, view.maps[1].weights[2, :, 3], labels, largest=1)
    browser.run(f"{ROOT}.querySelector('input[value=mean]').click()")
    browser.run(f"{ROOT}.querySelector('.asking [data-at=\"7\"]').click()")
    assert state(browser)[1:] == ("mean", 1, 2, "asking", 7)
    assert_told(browser, view.maps[1].weights[:, 7].mean(0), labels, largest=2)  # rounded twice
    browser.run(f"{ROOT}.querySelector('input[value=rollout]').click()")
    assert state(browser)[1] == "rollout"
    assert_told(browser, view.rollouts["layers"][7], labels)


def test_the_matrix_has_the_weights_in_its_cells(browser):
    view = make_text_view()
    opened(browser, view)
    browser.run(f"{ROOT}.querySelector('input[value=matrix]').click()")
    state(browser)
    shades = """
      const canvas = ROOT.querySelector('.frame canvas'), pen = canvas.getContext('2d');
      const ratio = canvas.width / parseFloat(canvas.style.width), found = [];
      const [left, top] = [canvas.width, canvas.height].map((size) => Math.floor(size / ratio - 2 - 12 * 30 + 15));
      for (let r = 0; r < 12; r++) for (let c = 0; c < 12; c++)
        found.push(pen.getImageData((left + 30 * c) * ratio, (top + 30 * r) * ratio, 1, 1).data[3]);
      return found;
    """.replace("ROOT", ROOT)
    for layer, head in ((0, 0), (2, 3)):
        browser.run(f"{ROOT}.querySelectorAll('.overview button')[{4 * layer + head}].click()")
        assert state(browser)[2:4] == (layer, head)
        found = np.array(browser.run(shades)).reshape(12, 12) / 255
        assert found == pytest.approx(view.maps[layer].weights[head], abs=0.01)
        assert not found[np.triu_indices(12, 1)].any()


def test_a_row_that_may_look_nowhere(browser):
    view = make_text_view(depth=1)
    view.maps[0].weights[:, 5] = 0
    opened(browser, view)
    browser.run(f"{ROOT}.querySelector('.asking [data-at=\"5\"]').click()")
    state(browser)
    assert told(browser) == []
    assert "nothing" in browser.run(f"return {ROOT}.querySelector('.said').textContent")


# -- mouse and keys ---------------------------------------------------------------------------------


def test_hovering_shows_and_leaving_goes_back(browser):
    from selenium.webdriver import ActionChains

    opened(browser, make_text_view())
    token = browser.driver.find_element("css selector", '.asking [data-at="4"]')
    ActionChains(browser.driver).move_to_element(token).perform()
    assert state(browser)[4:] == ("asking", 4)
    assert browser.run(f"return {ROOT}.querySelector('caption').textContent").startswith("Where “\u2068 on")
    shaded = f"return [...{ROOT}.querySelectorAll('.answering [role=option]')].map(o => o.style.backgroundColor !== '')"
    assert browser.run(shaded)[5:] == [False] * 7 and any(browser.run(shaded)[:5])
    ActionChains(browser.driver).move_to_element(browser.driver.find_element("css selector", "h1")).perform()
    assert state(browser)[4:] == ("asking", 11)


def walk(browser, count):
    """What TAB comes to, each with whether one sees it."""
    met = []
    for _ in range(count):
        browser.press("TAB")
        met.append(browser.focused())
    return met


def test_everything_is_reached_by_keys_and_seen(browser):
    opened(browser, make_pair_view())
    met = walk(browser, 10)
    assert [role for role, *_ in met] == ["a", "tab", *["radio"] * 5, "option", "option", "region"]
    assert all(seen for *_, seen in met), met


def test_arrows_choose_heads_tokens_and_parts(browser):
    opened(browser, make_pair_view())
    browser.press("TAB", "TAB", "ARROW_RIGHT")
    assert state(browser)[0] == "decoder"
    browser.press("ARROW_RIGHT")
    assert state(browser) == ("decoder → encoder", "head", 0, 0, "asking", 8)
    assert browser.focused()[:2] == ("tab", "decoder → encoder")
    browser.press("TAB", "ARROW_RIGHT")
    assert state(browser)[2:4] == (0, 1)
    browser.press("ARROW_DOWN")
    assert state(browser)[2:4] == (1, 1)
    assert browser.focused()[1] == "layer 2, head 2"
    browser.press("TAB", "ARROW_RIGHT")  # head, mean
    assert state(browser)[1] == "mean"
    browser.press("TAB", "TAB", "TAB", "TAB")  # draw, ask, shade, tokens
    assert browser.focused()[:2] == ("option", "i")
    browser.press("ARROW_UP", "ARROW_UP")
    assert state(browser)[4:] == ("asking", 6)
    browser.press("TAB", "END")
    assert state(browser)[4:] == ("answering", 11)
    assert "is looked at by" in browser.run(f"return {ROOT}.querySelector('[aria-live]').textContent")
    view = make_pair_view()
    assert_told(browser, view.maps[5].weights.mean(0)[:, 11], view.maps[5].asking.labels, largest=2)


def test_places_of_a_image_are_chosen_by_arrows_and_by_mouse(browser):
    from selenium.webdriver import ActionChains

    opened(browser, make_image_view())
    assert state(browser)[4:] == ("asking", 0)
    frame = browser.driver.find_element("css selector", ".frame")
    browser.run("arguments[0].focus()", frame)
    browser.press("ARROW_RIGHT")
    assert state(browser)[4:] == ("asking", 1)  # from the class token to the first place
    browser.press("ARROW_DOWN", "ARROW_RIGHT")
    assert state(browser)[4:] == ("asking", 1 + 14 + 1)
    assert "row 2, column 2" in browser.run(f"return {ROOT}.querySelector('[aria-live]').textContent")
    view = make_image_view()
    assert_told(browser, view.maps[0].weights[0, 16], view.maps[0].asking.labels)
    canvas = browser.driver.find_element("css selector", ".frame canvas")
    ActionChains(browser.driver).move_to_element_with_offset(canvas, 12, 12).perform()  # right below its middle
    assert state(browser)[4:] == ("asking", 1 + 7 * 14 + 7)


@pytest.mark.parametrize("name", ["stages", "image"])
def test_the_map_lies_over_the_image(browser, name):
    view = make_stages_view() if name == "stages" else make_image_view(rows=8)
    view.image[:] = 90
    opened(browser, view)
    warm = """
      const canvas = ROOT.querySelector('.frame canvas'), pen = canvas.getContext('2d');
      const size = canvas.width / 8, found = [];
      for (let n = 0; n < 64; n++) {
        const [r, g, b] = pen.getImageData((n % 8 + .5) * size, (Math.floor(n / 8) + .5) * size, 1, 1).data;
        found.push(r - b);
      }
      return found;
    """.replace("ROOT", ROOT)
    at = state(browser)[5]
    assert at == (36 if name == "stages" else 0)  # the middle, or the class token
    found, row = np.array(browser.run(warm)) / 255, view.maps[0].weights[0, at, -64:]
    assert np.corrcoef(found, row)[0, 1] > 0.99  # the warmer, the more weight, and each at its place


def test_the_image_stays_under_every_map(browser):
    view = make_stages_view()
    width = view.image.shape[1]
    view.image[:] = 0
    view.image[:, width // 2 :] = 255
    opened(browser, view)
    halves = """
      const canvas = ROOT.querySelector('.frame canvas'), pen = canvas.getContext('2d');
      const mean = (left) => {
        const { data } = pen.getImageData(left, 0, canvas.width / 2, canvas.height);
        return data.reduce((sum, value, n) => sum + (n % 4 === 2 ? value : 0), 0) / (data.length / 4);
      };
      return [mean(0), mean(canvas.width / 2)];
    """.replace("ROOT", ROOT)
    for head in (0, 1):
        browser.run(f"{ROOT}.querySelectorAll('.overview button')[{head}].click()")
        dark, bright = browser.run(halves)
        assert bright - dark > 60, (head, dark, bright)


def test_layers_of_different_sizes(browser):
    opened(browser, make_stages_view())
    browser.run(f"{ROOT}.querySelectorAll('.overview button')[4].click()")
    assert state(browser)[2:] == (1, 2, "asking", 10)  # the middle of 4 × 4
    browser.run(f"{ROOT}.querySelector('[role=tab]:nth-child(2)').click()")
    assert state(browser)[0] == "channels"
    assert told(browser)[0][0].startswith("channel ")
    assert browser.errors() == []


def test_several_on_one_page(browser):
    sections = [
        attention_section(view, f"s{n}", level=3) for n, view in enumerate((make_text_view(), make_image_view()))
    ]
    body = "<h2>Examples</h2>" + "".join(section.html for section in sections)
    one = sections[0]
    browser.open(page("Both", body, style=one.style * 2, script=one.script + one.script))
    browser.wait("[...document.querySelectorAll('section.attention')].every(s => s.dataset.ready)")
    browser.run("document.querySelectorAll('#s1 .overview button')[4].click()")
    browser.wait("document.querySelector('#s1').dataset.ready.startsWith('layers head 1 1')")
    assert browser.run("return document.querySelector('#s0').dataset.ready.startsWith('layers head 0 0')")
    browser.check()


# -- a long text ------------------------------------------------------------------------------------

TIMED = """
const done = arguments[arguments.length - 1], root = ROOT, times = [];
const frame = () => new Promise(go => requestAnimationFrame(() => setTimeout(go, 0)));
const buttons = root.querySelectorAll('.overview button'), tokens = root.querySelectorAll('.asking [role=option]');
const shown = () => root.dataset.ready.split(' ').map(Number);
const hover = new MouseEvent('mouseover', {bubbles: true});
const actions = {
  head: n => [() => buttons[n * 37 % 144].click(), () => shown()[2] * 12 + shown()[3] === n * 37 % 144],
  hover: n => [() => tokens[n * 97 % 512].dispatchEvent(hover), () => shown()[5] === n * 97 % 512],
};
(async () => {
  for (let n = 1; n < 10; n++) {
    await frame();
    const [act, over] = actions[arguments[0]](n), start = performance.now();
    act();
    do await frame(); while (!over());
    times.push(performance.now() - start);
  }
  done(times);
})();
""".replace("ROOT", ROOT)


def test_512_tokens_of_144_heads_answer_at_once(browser):
    view = make_long_view()
    opened(browser, view)
    browser.wait(f"{ROOT}.dataset.warm", 60)
    for what in ("head", "hover"):
        times = browser.driver.execute_async_script(TIMED, what)
        assert statistics.median(times) < 200, f"{what}: {times}"
    labels = view.maps[0].asking.labels
    layer, head, _, index = state(browser)[2:]
    assert_told(browser, view.maps[layer].weights[head, index], labels)
    assert browser.errors() == browser.requests() == []
