"""`weft translate`, as typed: texts in and out in their order, the best ones, draws, and what each word looked at."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

import weft as package
from fixtures.commands import read_error_lines, run_weft
from fixtures.tables import make_reversals
from weft.cli.translate import _lines
from weft.tasks.translate.alignment import aligned
from weft.tasks.translate.encoded_pairs import TokenizerPair
from weft.tasks.translate.translator import Translation

TEXT = "the film was a story of it"
TEXTS = [source for source, _ in make_reversals(7, seed=8)]


def translated(desk, *words, kind="translator", **options):
    return run_weft("translate", str(desk.run(kind)), "--threads", "1", *words, cwd=desk.path, **options)


def shown(desk, *words, **options):
    return [json.loads(line) for line in translated(desk, *words, "--json", **options).stdout.splitlines()]


# -- in and out -------------------------------------------------------------------------------


def test_a_line_for_each_text(desk):
    lines = translated(desk, *TEXTS).stdout.splitlines()
    found = package.load(desk.run("translator")).translate(TEXTS)
    assert lines == [one.text for one in found] and len(set(lines)) > 3
    assert [one.source for one in found] == TEXTS and all(one.score < 0 for one in found)


def test_files_in_and_out_keep_their_order_and_their_empty_lines(desk, tmp_path):
    given = [TEXTS[0], "", *TEXTS[1:4], "   ", *TEXTS[4:], ""]
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in given))
    run = package.load(desk.run("translator"))
    alone = [run.translate(text).text for text in TEXTS]
    lines = [alone.pop(0) if text.strip() else "" for text in given]
    translated(desk, "--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text() == "".join(f"{line}\n" for line in lines)
    text = (tmp_path / "in.txt").read_text()
    for words in (["-"], ["--input", "-"], []):
        assert translated(desk, *words, stdin=text).stdout.splitlines() == lines
    assert translated(desk, "-", stdin="").stdout == ""
    assert translated(desk, "-", stdin=text.rstrip("\n")).stdout.splitlines() == lines[:-1]
    refused = translated(desk, TEXT, "--output", str(tmp_path / "out.txt"), check=False)
    assert refused.returncode == 1 and "is there already" in refused.stderr and len(read_error_lines(refused)) <= 3
    assert (tmp_path / "out.txt").read_text().splitlines() == lines


def test_a_stream_is_read_some_lines_at_a_time(desk, monkeypatch):
    whole = translated(desk, "-", stdin="\n".join(TEXTS)).stdout
    monkeypatch.setattr("weft.cli.translate.AT_ONCE", 2)
    assert translated(desk, "-", stdin="\n".join(TEXTS)).stdout == whole and whole.count("\n") == len(TEXTS)


def test_json(desk):
    first, empty = shown(desk, TEXT, "")
    assert first.keys() == {"source", "translation", "score"} and first["source"] == TEXT
    assert empty == {"source": "", "translation": "", "score": 0.0}
    assert first["translation"] == translated(desk, TEXT).stdout.rstrip("\n")


def test_a_text_of_several_lines_is_one_line():
    """Whatever a file may take for the end of a line."""
    found = Translation("a", "one\ntwo\r\nthree\rfour\u2028five\x0csix", -1.0)
    assert list(_lines(found, scored=False)) == ["one two three four five six"]


# -- how texts are found ----------------------------------------------------------------------


def test_the_best_three_come_in_their_order_with_scores(desk):
    (found,) = shown(desk, TEXT, "--best", "3")
    scores = [found["score"], *(other["score"] for other in found["others"])]
    texts = [found["translation"], *(other["translation"] for other in found["others"])]
    assert len(texts) == 3 == len(set(texts)) and scores == sorted(scores, reverse=True)
    lines = translated(desk, TEXT, "--best", "3").stdout.splitlines()
    assert [line[:8] for line in lines] == [f"{score:8.4f}" for score in scores]
    assert [line[10:] for line in lines] == texts
    assert found["translation"] == shown(desk, TEXT)[0]["translation"]
    assert translated(desk, "-", "--best", "3", stdin=TEXT).stdout.splitlines() == texts  # for programs: no scores
    assert len(shown(desk, TEXT, "--best", "6")[0]["others"]) == 5  # which needs more than four beams


def test_one_beam_is_greedy(desk):
    run = package.load(desk.run("translator"))
    greedy = [one.text for one in run.translate(TEXTS, temperature=0.0)]
    assert translated(desk, *TEXTS, "--beams", "1").stdout.splitlines() == greedy
    scores = [[one["score"] for one in shown(desk, *TEXTS, "--alpha", "0", "--beams", beams)] for beams in ("1", "8")]
    assert sum(scores[1]) > sum(scores[0])  # more beams find likelier texts


def test_alpha_decides_which_lengths_win(desk):
    lengths = [sum(len(one["translation"]) for one in shown(desk, *TEXTS, "--alpha", alpha)) for alpha in ("0", "3")]
    assert lengths[0] < lengths[1]


def test_a_seed_draws_the_same_text_again(desk):
    words = [*TEXTS, "--temperature", "1.5", "--seed"]
    one, again, other = (translated(desk, *words, seed).stdout for seed in ("3", "3", "4"))
    assert one == again != other
    run = package.load(desk.run("translator"))
    alone = [run.translate(text, temperature=1.5, seed=3).text for text in TEXTS]
    assert [" ".join(text.splitlines()) for text in alone] == one.splitlines()
    certain = translated(desk, *TEXTS, "--temperature", "1.5", "--top-k", "1").stdout
    assert certain == translated(desk, *TEXTS, "--beams", "1").stdout
    assert translated(desk, *TEXTS, "--temperature", "1.5", "--top-p", "0.000001").stdout == certain


def test_several_draws(desk):
    (found,) = shown(desk, TEXT, "--temperature", "1.5", "--best", "3")
    assert len({found["translation"], *(other["translation"] for other in found["others"])}) > 1
    assert len(found["others"]) == 2
    assert found["translation"] == shown(desk, TEXT, "--temperature", "1.5")[0]["translation"]


def test_max_tokens(desk):
    run = package.load(desk.run("translator"))
    cut = run.translate(TEXT, max_tokens=2)
    assert len(run.tokenizer.encode(cut.text)) <= 2 and not cut.ended
    assert translated(desk, TEXT, "--max-tokens", "2").stdout.rstrip("\n") == cut.text
    assert run.translate(TEXT, max_tokens=100_000).text == run.translate(TEXT).text


def test_ragged_company_changes_no_text(desk):
    given = [TEXTS[0], "a", "the " * 15, *TEXTS[1:5], "fine", "x y z q"]
    for kind in ("translator", "joint"):
        run = package.load(desk.run(kind))
        alone = [run.translate(text).to_dict() for text in given]
        together = shown(desk, *given, kind=kind)
        assert [one["translation"] for one in together] == [one["translation"] for one in alone]
        assert [one["score"] for one in together] == pytest.approx([one["score"] for one in alone], abs=1e-5)


# -- what each word looked at -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["translator", "same", "joint"])
def test_words_are_aligned(desk, kind):
    for found in shown(desk, TEXT, *TEXTS[:2], "--align", kind=kind):
        links, words = found["alignment"], found["source"].split()
        assert [link["word"] for link in links] == found["translation"].split()
        for link in links:
            assert [word for word, _ in link["looks"]] == words
            shares = [share for _, share in link["looks"]]
            assert all(0 < share < 1 for share in shares) and sum(shares) <= 1 + 1e-6
            assert link["weight"] == max(shares) and [link["source"], link["weight"]] in link["looks"]
    lines = translated(desk, TEXT, "--align", kind=kind).stdout.splitlines()
    first = shown(desk, TEXT, "--align", kind=kind)[0]
    assert lines[0] == first["translation"] and len(lines) == 1 + len(first["alignment"])
    for line, link in zip(lines[1:], first["alignment"], strict=True):
        assert line.split()[0] == link["word"] and f"← {link['source']} {link['weight']:.0%}" in line
    looks = [[share for _, share in link["looks"]] for link in first["alignment"]]
    assert any(one != looks[0] for one in looks)  # not all words look alike


@pytest.mark.parametrize("text", ["the 😀 was fine", "naïve café", "👩‍👩‍👧 it", "你好 film"])
def test_the_words_of_a_source_are_shown_as_they_are_written(desk, text):
    """Letters and signs that take several tokens stand there once."""
    (found,) = shown(desk, text, "--align", "--max-tokens", "3")
    names = [word for word, _ in found["alignment"][0]["looks"]]
    assert "".join(names) == text.replace(" ", "")


def test_a_source_without_tokens_is_aligned_with_nothing(desk):
    """A stranger's tokenizer may find none in a text; all that was looked at then is its end."""
    run = package.load(desk.run("translator"))
    ids = run.tokenizer.encode(TEXT).astype(np.int64)
    tokenizers = TokenizerPair(run.tokenizer, run.tokenizer)
    assert list(aligned(tokenizers, "", ids, np.ones((len(ids), 1)))) == []
    assert len(list(aligned(tokenizers, "x", ids, np.ones((len(ids), 2)) / 2))) == len(TEXT.split())


def test_alignment_of_a_source_that_is_cut(desk):
    (found,) = shown(desk, "the film was " * 30, "--align", "--max-tokens", "3")
    assert {word for word, _ in found["alignment"][0]["looks"]} <= {"the", "film", "was"}
    assert 1 <= len(found["alignment"][0]["looks"]) <= 23


# -- anything that can be typed ---------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["😀😀 film 😀", "\u200b", "a\tb", "é" * 30, "\x00 the", "<|endoftext|>", "film\nstory"]
)
def test_whatever_is_typed_gives_a_text(desk, text):
    (found,) = shown(desk, text, "--max-tokens", "6", "--align")
    assert found["source"] == text and found["translation"].encode()
    lines = translated(desk, text, "--max-tokens", "6").stdout
    assert lines.count("\n") == 1


def test_signs_that_were_never_seen_are_read(desk):
    """They are spelled in bytes, and not dropped: another sign, another score."""
    one, other, none = shown(desk, "the 😀 was", "the 🚀 was", "the was")
    assert len({one["score"], other["score"], none["score"]}) == 3


def test_a_text_without_end_is_cut(desk):
    long = " ".join(TEXTS) + " "
    (found,) = shown(desk, long * 60)  # some 2000 tokens
    assert found["translation"] == shown(desk, long)[0]["translation"]
    lines = translated(desk, "-", stdin=f"{TEXT}\n{long * 60}\n{TEXT}\n").stdout.splitlines()
    assert lines[0] == lines[2] == translated(desk, TEXT).stdout.rstrip("\n") and len(lines) == 3


# -- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "words", "code", "said"),
    [
        ("translator", [TEXT, "--top-p", "0.5"], 2, "--temperature"),
        ("translator", [TEXT, "--top-k", "5"], 2, "--temperature"),
        ("translator", [TEXT, "--beams", "0"], 2, "beams = 0"),
        ("translator", [TEXT, "--best", "0"], 2, "best = 0"),
        ("translator", [TEXT, "--alpha", "-1"], 2, "alpha = -1"),
        ("translator", [TEXT, "--alpha", "5"], 2, "alpha = 5"),
        ("translator", [TEXT, "--max-tokens", "0"], 2, "max_tokens = 0"),
        ("translator", [TEXT, "--temperature", "-1"], 2, "temperature = -1"),
        ("translator", [TEXT, "--temperature", "1", "--top-p", "2"], 2, "top_p = 2"),
        ("translator", [TEXT, "--beems", "2"], 2, "--beams"),
        ("translator", [TEXT, "--input", "book.txt"], 2, "one of them"),
        ("translator", ["--input", "nowhere.txt"], 1, "nowhere.txt cannot be opened"),
        ("translator", [TEXT, "--threads", "0"], 2, "threads = 0"),
        ("writer", [TEXT], 1, "weft generate"),
        ("masked", [TEXT], 1, "does not write one text from another"),
    ],
)
def test_mistakes(desk, kind, words, code, said):
    result = translated(desk, *words, kind=kind, check=False)
    assert result.returncode == code and said in result.stderr, result.stderr
    assert len(read_error_lines(result)) <= 3 and "Traceback" not in result.stderr


def test_nothing_given(desk, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    result = run_weft("translate", str(desk.run("translator")), cwd=desk.path, stdin=None, check=False)
    assert result.returncode == 2 and "no text was given" in result.stderr


def test_what_is_no_text_leaves_no_empty_file(desk, tmp_path):
    Path(tmp_path / "bad.txt").write_bytes(b"\xff\xfe\xfa not text\n")
    words = ["--input", str(tmp_path / "bad.txt"), "--output", str(tmp_path / "out.txt")]
    result = translated(desk, *words, check=False)
    assert result.returncode == 1 and "not valid UTF-8" in result.stderr and not (tmp_path / "out.txt").exists()


def test_a_text_is_given_once_with_its_best_score(desk, monkeypatch):
    """Sub-words can spell a text in several ways, and each is a find of its own."""
    from weft.generation.search import Hypothesis
    from weft.tasks.translate import translator as translating

    run = package.load(desk.run("translator"))
    one, two = (run.tokenizer.encode(text).tolist() for text in ("the film", "a house"))
    found = [Hypothesis(ids, score, score, True) for ids, score in ((one, -1.0), (two, -2.0), (one, -3.0))]
    monkeypatch.setattr(translating, "written", lambda *_, **__: [found])
    best = run.translate("the film", best=3)
    assert (best.text, best.score) == ("the film", -1.0)
    assert [(other.text, other.score) for other in best.others] == [("a house", -2.0)]
