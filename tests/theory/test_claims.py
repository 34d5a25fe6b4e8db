"""Every claim is there, its verdict is computed, and its numbers are the right ones."""

import re

import pytest
import torch

from weft.errors import ConfigError
from weft.index import by_id
from weft.theory import check, claims
from weft.theory.claim import Evidence, Finding, evidence, value
from weft.theory.page import page
from weft.theory.prediction import AtLeast, AtMost, Exactly, Near, number

WRONG = {1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 14, 15, 23, 24, 26, 28, 30, 31, 35, 37, 38}
QUICK = [claim.id for claim in claims().values() if not claim.on_request and not claim.missing]


@pytest.fixture(scope="session")
def findings():
    return {finding.id: finding for finding in check()}


def measured(finding, what):
    return next(v.measured for v in finding.values if what in v.what)


def test_all_claims_are_there_in_order():
    assert list(claims()) == [f"T{n}" for n in range(1, 41)]
    for claim in claims().values():
        assert set(claim.documents) <= {"000", "001", "002", "003", "004"}
        assert claim.title and claim.says and claim.where
    assert [claim.id for claim in claims().values() if claim.on_request] == ["T33", "T39"]


@pytest.mark.parametrize("id", QUICK)
def test_verdicts(findings, id):
    finding = findings[id]
    assert finding.verdict == ("document is wrong" if int(id[1:]) in WRONG else "holds")
    assert finding.sound, [v for v in finding.values if not v.right_agrees]
    assert finding.predicted and finding.measured and finding.says


def test_what_trains_waits_until_it_is_asked_for(findings):
    for id in ("T33", "T39"):
        assert findings[id].verdict is None and findings[id].predicted is None
        assert findings[id].says.startswith("Not run: it ")


NUMBERS = [
    ("T1", "biases of the three maps", 1536),
    ("T3", "largest of the 25", pytest.approx(5.6e-42, rel=0.01)),
    ("T4", "three maps, 8 heads", 3 * 512**2),
    ("T7", "between patches", 33_554_432),
    ("T7", "between channels", 67_108_864),
    ("T7", "filled up", 11_063_808),
    ("T7", "that are there", 6_422_528),
    ("T7", "channel groups", 4_194_304),
    ("T13", "diagonal", pytest.approx(0.28, abs=0.001)),
    ("T18", "3 heads, 3 layers", 64),
    ("T22", "with ε = 1e-5", pytest.approx(4e-6, rel=0.1)),
    ("T27", "transformer-base", 63.1),
    ("T27", "transformer-big", 214.2),
    ("T27", "vit-b", 86.6),
    ("T27", "vit-l", 304.3),
    ("T27", "vit-h", 632.0),
    ("T30", "attention, n = 64", 71_303_168),
    ("T30", "plain RNN", 33_554_432),
    ("T30", "LSTM", 134_217_728),
    ("T38", "ViT-B", 3072),
    ("T38", "Transformer, base", 2048),
]


@pytest.mark.parametrize(("id", "what", "expected"), NUMBERS)
def test_numbers(findings, id, what, expected):
    assert measured(findings[id], what) == expected


def test_the_same_twice_and_nothing_else_is_changed(findings):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    again = check("T2", "T10")
    assert torch.equal(torch.rand(3), expected) and torch.get_default_dtype() == torch.float32
    assert [f.to_dict() for f in again] == [findings[id].to_dict() for id in ("T2", "T10")]


def test_one_thread_is_enough(monkeypatch):
    asked, threads = [], torch.get_num_threads()
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    check("T1")
    assert asked == [1, threads]


def test_ids_as_people_type_them():
    known = claims()
    assert {by_id(word, known) for word in ("T7", "t7", "7", " T7 ")} == {"T7"}
    assert by_id("t13", known) == "T13" and by_id("13", known) == "T13"
    for word, nearest in (("T99", "T40"), ("T0", "T1"), ("theory", "T")):
        with pytest.raises(ConfigError, match=f"did you mean '{nearest}"):
            by_id(word, known)


# -- how a verdict comes about ----------------------------------------------------------------


def test_predictions():
    assert Near(2, within=0.1).agrees(2.09) and not Near(2, within=0.1).agrees(2.2)
    assert Near(200, share=0.01).agrees(202) and not Near(200, share=0.01).agrees(203)
    assert AtMost(3).agrees(3) and not AtMost(3).agrees(3.01) and not AtMost(3).agrees(float("nan"))
    assert AtLeast(3).agrees(3) and not AtLeast(3).agrees(2.9) and not AtLeast(3).agrees(float("nan"))
    assert Exactly("causal").agrees("causal") and not Exactly(1).agrees(2)
    assert not Near(2, within=9).agrees(float("nan"))


def test_a_verdict_is_computed():
    right = evidence(value("a", 3, document=3), value("b", 5, right=5), says="so")
    wrong = evidence(value("a", 3, document=4, right=3), says="so")
    broken = evidence(value("a", 3, document=4), says="so")
    assert (right.holds, right.sound) == (True, True)
    assert (wrong.holds, wrong.sound) == (False, True)
    assert (broken.holds, broken.sound) == (False, False)


@pytest.mark.parametrize(
    ("given", "told"),
    [(33554432, "33,554,432"), (0.2797, "0.28"), (5.6377e-42, "5.6e-42"), (0.0, "0"), (True, "yes"), (1234.5, "1,234"),
     (63.1, "63.1"), (632.0, "632"), (float("inf"), "∞"), (float("nan"), "not a number")],
)  # fmt: skip
def test_numbers_are_told(given, told):
    assert number(given) == told


# -- the page ---------------------------------------------------------------------------------


def test_the_page_stands_alone(findings):
    text = page(list(findings.values()))
    assert "http" not in text and "<script" not in text and "url(" not in text and "@import" not in text
    assert "prefers-color-scheme" in text and 'lang="en"' in text
    for id in findings:
        assert f'id="{id}"' in text and f'href="#{id}"' in text
    images = sum(len(f.evidence.charts) for f in findings.values() if f.evidence)
    assert images > 8 and text.count('role="img"') == images == text.count("<details>")
    assert all('aria-label="' in svg for svg in re.findall(r"<svg [^>]*role=\"img\"[^>]*>", text))
    for tag in ("table", "section", "figure", "div", "svg", "ul", "details"):
        assert len(re.findall(rf"<{tag}[ >]", text)) == text.count(f"</{tag}>"), tag


def test_the_page_escapes_everything(findings):
    evil = '<img src=x onerror=alert(1)> & "quoted"'
    claim = claims()["T1"]
    fields = dict.fromkeys(("title", "says", "where"), evil)
    other = type(claim)(**{**vars(claim), **fields, "documents": (evil,)})
    shown = findings["T9"].evidence
    changed = Evidence(
        (value(evil, evil, document=evil, unit=evil),),
        evil,
        (type(findings["T3"].evidence.tables[0])(evil, (evil,), ((evil,),)),),
        (type(shown.charts[0])(evil, evil, evil, {evil: [(1.0, 2.0), (2.0, 3.0)]}),),
    )
    text = page([Finding(other, changed)])
    assert "<img" not in text and "&lt;img" in text and 'alert(1)> & "' not in text
