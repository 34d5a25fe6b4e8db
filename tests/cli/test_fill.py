"""`weft fill`, as typed: gaps filled by what the model thinks likeliest."""

import json

import numpy as np
import pytest
import torch

import weft as package
from fixtures.commands import read_error_lines, run_weft
from fixtures.hugging_face import write_bert_folder

TEXT = "the cat sat on the [MASK] and ran"


def filled(desk, *words, kind="masked", **options):
    return run_weft("fill", str(desk.run(kind)), "--threads", "1", *words, cwd=desk.path, **options)


def test_the_best_text_and_its_candidates(desk):
    lines = filled(desk, TEXT).stdout.splitlines()
    found = package.load(desk.run("masked")).fill(TEXT)
    assert lines[0] == found.best and len(lines) == 6
    shares = [float(line.split("%")[0]) for line in lines[1:]]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 100.01
    assert [line.split("%")[1].strip() for line in lines[1:]] == [c.text.strip() for c in found.gaps[0]]


def test_json_and_several_gaps(desk):
    words = ["a [MASK] ran under [MASK] tree", "the [MASK]", "--json", "--top", "3"]
    two, one = (json.loads(line) for line in filled(desk, *words).stdout.splitlines())
    assert [len(gap) for gap in two["gaps"]] == [3, 3] and [len(gap) for gap in one["gaps"]] == [3]
    assert two["text"] == words[0] and "[MASK]" not in two["best"]
    assert "gap 1:" in filled(desk, words[0]).stdout and "gap 1:" not in filled(desk, words[1]).stdout


def test_probabilities_are_those_of_the_model(desk):
    run = package.load(desk.run("masked"))
    found = run.fill(TEXT, top=10_000).gaps[0]
    special, tokenizer = run.tokenizer.special, run.tokenizer
    ids = tokenizer.encode_with_mask(TEXT).astype(np.int64)
    row = torch.from_numpy(np.concatenate([[special.classify], ids, [special.separate]]))[None]
    place = int(np.flatnonzero(row[0].numpy() == special.mask)[0])
    marks = [
        n
        for n in (special.end, special.unknown, special.classify, special.separate, special.mask, special.pad)
        if n is not None
    ]
    with torch.inference_mode():
        logits = run.model(row)[0, place]
        logits[marks] = -torch.inf
        wanted = logits.softmax(-1)
    assert found[0].probability == pytest.approx(float(wanted.max()), abs=1e-6)
    assert found[0].text == tokenizer.decode([int(wanted.argmax())])
    assert sum(c.probability for c in found) == pytest.approx(1, abs=1e-5)


def test_no_mark_is_ever_a_candidate(desk):
    found = json.loads(filled(desk, TEXT, "--json", "--top", "10000").stdout)["gaps"][0]
    likely = [c["text"] for c in found if c["probability"] > 0]
    assert len(likely) > 20 and not any("[" in text and "]" in text and len(text) > 2 for text in likely)


def test_another_word_for_the_gap(desk):
    assert filled(desk, TEXT.replace("[MASK]", "___"), "--mask", "___").stdout == filled(desk, TEXT).stdout


def test_files_in_and_out_keep_their_order(desk, tmp_path):
    texts = [f"the {word} [MASK] quickly" for word in ("cat", "dog", "tree", "mat")]
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts))
    run = package.load(desk.run("masked"))
    best = [found.best for found in run.fill(texts)]
    assert best == [run.fill(text).best for text in texts]  # in a list as alone
    filled(desk, "--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text().splitlines() == best
    assert filled(desk, "-", stdin=(tmp_path / "in.txt").read_text()).stdout.splitlines() == best
    assert filled(desk, stdin=(tmp_path / "in.txt").read_text()).stdout.splitlines() == best
    assert filled(desk, "-", stdin="").stdout == ""
    refused = filled(desk, TEXT, "--output", str(tmp_path / "out.txt"), check=False)
    assert refused.returncode == 1 and "is there already" in refused.stderr
    assert (tmp_path / "out.txt").read_text().splitlines() == best


def test_a_hugging_face_folder_fills(desk, tmp_path):
    pytest.importorskip("transformers")
    theirs = write_bert_folder(tmp_path / "hf", "BertForMaskedLM")
    text = "the film was [MASK] in this house"
    found = json.loads(run_weft("fill", str(tmp_path / "hf"), text, "--json", "--threads", "1", cwd=tmp_path).stdout)
    tokenizer = package.load(tmp_path / "hf").tokenizer
    ids = np.concatenate([[2], tokenizer.encode_with_mask(text).astype(np.int64), [3]])
    with torch.no_grad():
        logits = theirs(torch.from_numpy(ids)[None]).logits[0, int(np.flatnonzero(ids == 4)[0])]
    logits[:5] = -torch.inf
    assert found["gaps"][0][0]["probability"] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-5)
    assert found["gaps"][0][0]["text"] == tokenizer.decode([int(logits.argmax())])
    (tmp_path / "book.txt").write_text("the film was a story of this house.\n" * 20)
    measured = json.loads(run_weft("evaluate", str(tmp_path / "hf"), "book.txt", "--json", cwd=tmp_path).stdout)
    assert measured["loss"] > 0 and 0 <= measured["masked_accuracy"] <= 1
    refused = run_weft("evaluate", str(tmp_path / "hf"), cwd=tmp_path, check=False)
    assert refused.returncode == 1 and "no text of its own" in refused.stderr and len(read_error_lines(refused)) <= 3


def test_a_hugging_face_folder_without_that_head_does_not(tmp_path):
    pytest.importorskip("transformers")
    write_bert_folder(tmp_path / "hf", "BertModel")
    (tmp_path / "book.txt").write_text("the film was a story of this house.\n" * 20)
    for words in (["fill", "hf", TEXT], ["evaluate", "hf", "book.txt"]):
        refused = run_weft(*words, cwd=tmp_path, check=False)
        assert refused.returncode == 1 and "does not fill in" in refused.stderr and len(read_error_lines(refused)) <= 3


@pytest.mark.parametrize(
    ("kind", "words", "code", "said"),
    [
        ("masked", ["no gap"], 1, "no [MASK] in 'no gap'"),
        ("masked", ["a [mask] in small letters"], 1, "no [MASK] in"),
        ("masked", ["a ___", "--mask", "_____"], 1, "no _____ in"),
        ("masked", ["the [MASK] " * 40], 1, "at most 24"),
        ("masked", [TEXT, "--top", "0"], 2, "top = 0"),
        ("masked", [TEXT, "--tpo", "3"], 2, "--top"),
        ("masked", [TEXT, "--mask", ""], 2, "mask = ''"),
        ("masked", [TEXT, "--input", "book.txt"], 2, "one of them"),
        ("masked", ["--input", "nowhere.txt"], 1, "nowhere.txt cannot be opened"),
        ("masked", ["--input", "runs"], 1, "runs cannot be opened"),
        ("masked", [TEXT, "--threads", "0"], 2, "threads = 0"),
        ("single", [TEXT], 1, "does not fill in"),
        ("writer", [TEXT], 1, "does not fill in"),
        ("questions", [TEXT], 1, "does not fill in"),
    ],
)
def test_mistakes(desk, kind, words, code, said):
    result = filled(desk, *words, kind=kind, check=False)
    assert result.returncode == code and said in result.stderr
    assert len(read_error_lines(result)) <= 3 and "Traceback" not in result.stderr


def test_what_cannot_be_filled_leaves_no_empty_file(desk, tmp_path):
    long = "[MASK] " + "cat " * 500
    result = filled(desk, "--input", "-", "--output", str(tmp_path / "out.txt"), stdin=f"{long}\n", check=False)
    assert result.returncode == 1 and not (tmp_path / "out.txt").exists()


def test_lines_without_a_gap_come_through_a_stream_as_they_are(desk):
    lines = filled(desk, "--input", "-", stdin=f"no gap\n\n{TEXT}\n").stdout.splitlines()
    assert lines[:2] == ["no gap", ""] and len(lines) == 3 and "[MASK]" not in lines[2]
