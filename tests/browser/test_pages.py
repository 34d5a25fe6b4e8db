"""Every other page that Weft writes: it stands alone, nothing goes wrong in it, and nobody is shut out."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fixtures.commands import generator_command, run_weft
from fixtures.texts import make_text
from weft.cli.main import app
from weft.comparison import page as compare_page
from weft.comparison.result import Comparison
from weft.theory import check, claims
from weft.theory.claim import Finding
from weft.theory.page import page as theory_page

BAD = 'a<i>&"b</script><img src=x>'
UNSEEN = """
return [...document.querySelectorAll('.wide, [tabindex="0"], a, summary, button')].filter(e => {
  e.focus({focusVisible: true});
  const style = getComputedStyle(e);
  return document.activeElement === e && (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) === 0);
}).map(e => e.outerHTML.slice(0, 80));
"""


def assert_sound(browser, page: str | Path):
    """In a wide window, and in a narrow dark one; whatever has the focus shows it."""
    for dark, width in ((False, 1200), (True, 640)):
        browser.open(page, dark=dark, width=width).check()
        assert browser.run(UNSEEN) == []
        assert "dark" in browser.run("return getComputedStyle(document.documentElement).colorScheme")


def finished(folder: Path, name: str, place: int) -> dict:
    """A run, as far as the page of a comparison needs one."""
    run = folder / f"run-{place}"
    run.mkdir()
    steps = [{"step": n, "loss": 3.0, "validation_loss": 3 - n / 8 - place / 9} for n in range(1, 7)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    (run / "timing.jsonl").write_text("".join(json.dumps({"step": n, "seconds": 0.5}) + "\n" for n in range(1, 7)))
    sizes = {"seconds": 10.0 + place, "steps": 6, "parameters": 12_345_678, "peak_memory": 300 * 2**20, "flops": 3e12}
    worth = {"validation_loss": 2.25 - place / 9, "bits_per_byte": 2.0 - place / 100, "measured_on": "validation"}
    sample = {"sample": {"prompt": "Once", "text": f"Once {BAD}"}}
    return {"model": name, "settings": {"model.attention.kind": name}, "run": str(run), "status": "finished"} | (
        sizes | worth | sample
    )


def test_a_comparison(browser, tmp_path):
    rows = [finished(tmp_path, name, place) for place, name in enumerate(("softmax", BAD, "local"))]
    assert_sound(browser, compare_page.page(Comparison(tmp_path / "x&y", "generate", rows)))


def test_some_claims(browser):
    assert_sound(browser, theory_page([*check("T1", "T3", "T9", "T18", "T25"), Finding(claims()["T33"])]))


@pytest.mark.slow
def test_all_claims(browser):
    assert_sound(browser, theory_page(check()))


@pytest.mark.parametrize(
    "kinds", [["softmax", "local", "channel"], pytest.param([], marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_the_patterns(browser, tmp_path, kinds):
    pytest.importorskip("matplotlib")
    out, named = tmp_path / "patterns.html", [word for kind in kinds for word in ("--kind", kind)]
    result = CliRunner().invoke(app, ["attention", "--patterns", *named, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert_sound(browser, out)


def test_the_report_of_a_run(browser, tmp_path):
    (tmp_path / "a&b.txt").write_text(make_text(1500))
    run_weft(*generator_command("a&b.txt", "run", 12, "--set", "training.evaluate_every=4"), cwd=tmp_path)
    assert_sound(browser, tmp_path / "run" / "report.html")
