"""`weft embed`, as typed: a vector for each text, the same alone, in a batch and in every form of file."""

import json

import numpy as np
import pytest
import torch

import weft as package
from fixtures.commands import read_error_lines, run_weft
from fixtures.hugging_face import write_bert_folder
from weft.tasks.embed.text_encoder import Embedder, cosines

TEXTS = ["the cat sat", "a dog ran under the tree and then slowly", "", "birds"]
KINDS = ["masked", "single", "writer"]


def embedded(desk, *words, kind="masked", **options):
    return run_weft("embed", str(desk.run(kind)), "--threads", "1", *words, cwd=desk.path, **options)


def vectors(desk, texts, kind="masked", **options):
    return package.load(desk.run(kind)).embed(texts, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_each_text_alone(desk, kind):
    found = vectors(desk, TEXTS, kind)
    assert found.shape == (4, 16) and found.dtype == np.float32 and np.isfinite(found).all()
    for text, vector in zip(TEXTS, found, strict=True):
        assert np.abs(vectors(desk, text, kind) - vector).max() < 1e-5
    assert np.abs(vectors(desk, TEXTS[::-1], kind)[::-1] - found).max() < 1e-5
    assert np.abs(found[0] - found[3]).max() > 0.01  # a negative control: they are not all the same


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pool", ["mean", "first", "last"])
def test_pools_are_what_they_say(desk, kind, pool):
    run, text = package.load(desk.run(kind)), "the cat sat on a tree"
    if kind == "writer" and pool == "first":
        with pytest.raises(package.WeftError, match="its first has seen nothing"):
            run.embed(text, pool=pool)
        return
    ids = run.tokenizer.encode(text).astype(np.int64)
    marks = 0 if kind == "writer" else 1
    if marks:
        ids = np.concatenate([[run.tokenizer.special.classify], ids, [run.tokenizer.special.separate]])
    else:
        ids = ids[:16]
        text = run.tokenizer.decode(ids)
    row = torch.from_numpy(ids)[None]
    with torch.inference_mode():
        states = run.model.hidden(row)[0]
    wanted = {"mean": states[marks : len(states) - marks].mean(0), "first": states[0], "last": states[-1]}[pool]
    assert np.abs(run.embed(text, pool=pool) - wanted.numpy()).max() < 1e-5


@pytest.mark.parametrize("kind", ["masked", "writer"])
def test_long_texts_are_read_in_windows_and_all_of_them_count(desk, kind):
    run = package.load(desk.run(kind))
    embedder = Embedder(run)
    text = "the cat sat on the mat and the dog ran under a tree while birds sang slowly over hills " * 4
    ids = run.tokenizer.encode(text).astype(np.int64)
    pieces = list(embedder._pieces(ids))
    assert len(pieces) > 3 and max(map(len, pieces)) == embedder.length
    with torch.inference_mode():
        states = [run.model.text_states([piece])[0] for piece in pieces]
    marks = 0 if kind == "writer" else 1
    inner = torch.cat([rows[marks : len(rows) - marks] for rows in states])
    assert len(inner) == len(ids)
    assert np.abs(run.embed(text) - inner.mean(0).numpy()).max() < 1e-5
    assert np.abs(run.embed(["the cat", text, "a dog"])[1] - run.embed(text)).max() < 1e-5
    assert np.abs(run.embed(text, pool="last") - states[-1][-1].numpy()).max() < 1e-5
    assert np.abs(run.embed(text + " quickly") - run.embed(text)).max() > 1e-6  # the end counts too
    if kind == "masked":
        assert np.abs(run.embed(text, pool="first") - states[0][0].numpy()).max() < 1e-5


def test_alike_is_near(desk):
    found = cosines(vectors(desk, ["the cat sat on the mat", "the cat sat on the mat.", "quickly slowly"]))
    assert np.allclose(np.diag(found), 1) and np.allclose(found, found.T)
    assert found[0, 1] > found[0, 2] and np.abs(found).max() <= 1 + 1e-9
    assert np.isfinite(cosines(np.zeros((2, 3), dtype=np.float32))).all()


def test_every_form_of_output_says_the_same(desk, tmp_path):
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n")
    wanted = vectors(desk, TEXTS)
    words = ["--input", str(tmp_path / "in.txt")]
    for name in ("v.npy", "v.jsonl", "v.tsv"):
        assert embedded(desk, *words, "--output", str(tmp_path / name)).stdout == ""
    array = np.load(tmp_path / "v.npy", allow_pickle=False)
    assert array.dtype == np.float32 and np.allclose(array, wanted, atol=1e-6)
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == TEXTS and np.allclose([row["vector"] for row in rows], wanted, atol=1e-6)
    lines = (tmp_path / "v.tsv").read_text().splitlines()
    assert np.allclose([[float(value) for value in line.split("\t")] for line in lines], wanted, atol=1e-5)
    assert embedded(desk, *words).stdout.splitlines() == lines
    assert embedded(desk, "-", stdin="\n".join(TEXTS) + "\n").stdout.splitlines() == lines
    assert embedded(desk, *TEXTS).stdout.splitlines() == lines
    assert [json.loads(line) for line in embedded(desk, *TEXTS, "--json").stdout.splitlines()] == rows


def test_more_texts_than_are_read_at_once_keep_their_order(desk, monkeypatch):
    monkeypatch.setattr("weft.cli.embed.AT_ONCE", 3)
    texts = TEXTS * 3
    found = [json.loads(line)["vector"] for line in embedded(desk, *texts, "--json").stdout.splitlines()]
    assert np.allclose(found, vectors(desk, texts), atol=1e-5)


def test_no_texts_are_an_empty_array(desk, tmp_path):
    embedded(desk, "-", "--output", str(tmp_path / "v.npy"), stdin="")
    assert np.load(tmp_path / "v.npy").shape == (0, 16)
    assert vectors(desk, []).shape == (0, 16)


def test_on_a_terminal_a_few_numbers_and_how_alike(desk, monkeypatch):
    from weft.cli import embed

    shown = []
    monkeypatch.setattr(embed.typer, "echo", lambda text="", **_: shown.append(text))
    embed._show([("one  text", [1.0, 0.0, 0.5, 0.25, 9.0]), ("two", [0.0, 1.0, 0.0, 0.0, 0.0])])
    assert shown[0] == "1  +1.000  +0.000  +0.500  +0.250  … (5 numbers)  one text"
    assert "cosine" in shown[2] and shown[3].split()[:2] == ["1", "+1.000"] and ".npy" in shown[-1]


@pytest.mark.parametrize("name", ["v.npy", "v.jsonl", "v.txt"])
def test_a_file_that_is_there_is_not_touched(desk, tmp_path, name):
    (tmp_path / name).write_text("precious")
    result = embedded(desk, "a text", "--output", str(tmp_path / name), check=False)
    assert result.returncode == 1 and "is there already" in result.stderr
    assert (tmp_path / name).read_text() == "precious"


def test_a_hugging_face_folder_gives_vectors(tmp_path):
    pytest.importorskip("transformers")
    theirs = write_bert_folder(tmp_path / "hf", "BertModel")
    found = json.loads(
        run_weft("embed", str(tmp_path / "hf"), "the film was fine", "--json", "--threads", "1", cwd=tmp_path).stdout
    )
    ids = package.load(tmp_path / "hf").tokenizer.encode_pair("the film was fine")[0].astype(np.int64)
    with torch.no_grad():
        states = theirs(torch.from_numpy(ids)[None]).last_hidden_state[0]
    assert found["vector"] == pytest.approx(states[1:-1].mean(0).tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "words", "code", "said"),
    [
        ("masked", ["a", "--pool", "frist"], 2, "mean, first or last"),
        ("writer", ["a", "--pool", "first"], 2, "has seen nothing"),
        ("masked", ["a", "--pol", "last"], 2, "--pool"),
        ("masked", ["a", "--input", "book.txt"], 2, "one of them"),
        ("masked", ["--input", "nowhere.txt"], 1, "nowhere.txt cannot be opened"),
        ("masked", ["a", "--output", "no/v.npy"], 1, "no/v.npy cannot be opened"),
        ("masked", ["a", "--output", "no/v.jsonl"], 1, "no/v.jsonl cannot be opened"),
        ("masked", ["a", "--threads", "0"], 2, "threads = 0"),
    ],
)
def test_mistakes(desk, kind, words, code, said):
    result = embedded(desk, *words, kind=kind, check=False)
    assert result.returncode == code and said in result.stderr
    assert len(read_error_lines(result)) <= 3 and "Traceback" not in result.stderr


def test_no_such_run(desk):
    result = run_weft("embed", "nowhere", "a", cwd=desk.path, check=False)
    assert result.returncode == 1 and "there is no run nowhere" in result.stderr
