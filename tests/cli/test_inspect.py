"""`weft inspect`: one object with what it costs, plain words, and clear refusals."""

import json
import sys

import pytest

from fixtures.commands import generator_command, run_weft
from fixtures.tables import write_translation_table
from fixtures.texts import make_text
from weft.models import ModelConfig, converter_for, preset

QUICK = ("--set", "model.width=32", "--set", "model.depth=1", "--length", "16", "--batch", "2")


def found(*words, cwd):
    return json.loads(run_weft("inspect", *words, "--json", cwd=cwd).stdout)


def test_one_object(tmp_path):
    told = found("gpt", *QUICK, "--set", "model.vocab_size=50", cwd=tmp_path)
    assert {"parameters", "flops", "memory", "seconds"} <= told.keys()
    assert told["parameters"]["total"] == sum(told["parameters"]["parts"].values()) == 50 * 32 * 2 + 12 * 32 * 32
    flops = told["flops"]
    assert flops["forward"] == sum(part["forward"] for part in flops["parts"].values())
    assert flops["forward"] == 2 * 32 * (12 * 32 * 32 + 50 * 32) + 4 * 32 * 16 * 32
    memory = told["memory"]
    names = ("weights", "gradients", "optimizer", "activations", "working", "process")
    assert memory["total"] == sum(memory[name] for name in names)
    assert memory["weights"] == 4 * told["parameters"]["total"]
    assert memory["fits"] is True
    assert told["seconds"]["step"] == pytest.approx(sum(told["seconds"]["parts"].values()))
    assert told["seconds"]["training"] == pytest.approx(1000 * told["seconds"]["step"])


QUICK_ONES = ("lstm", "vit", "bag-of-words", "cbow", "5gram", "seq2seq")
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ModelConfig.registry if name not in QUICK_ONES]


@pytest.mark.parametrize("family", [*QUICK_ONES, *OTHERS])
def test_every_family(tmp_path, family):
    size = ("--set", "model.width=32") if family in ("gru", "rnn", "lstm", "seq2seq", "bahdanau", "cbow") else ()
    told = found(family, *size, "--length", "32", "--batch", "1", cwd=tmp_path)
    assert told["model"]["batch"] == 1
    assert told["memory"]["total"] > 0
    counted = family in ("5gram", "ngram", "cbow", "skipgram")
    assert (told["seconds"]["step"] is None) is counted
    assert (told["flops"]["total"] == 0) is (family in ("5gram", "ngram", "bag-of-words"))


@pytest.mark.parametrize("columns", ["40", "100"])
def test_words(tmp_path, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    out = run_weft("inspect", "gpt-tiny", *QUICK, "--curves", cwd=tmp_path).stdout
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= int(columns)
    whole = " ".join(out.split())
    for words in (
        "parameters",
        "operations in a training step",
        "Scores and mixing cost more than",
        "It fits into this machine's memory.",
        "It would take about",
        "instead of 32 would take",
        "Over the length",
        "Over the width",
        "a vocabulary of 8,192",
    ):
        assert words in whole


def test_a_run_and_its_own_settings(tmp_path):
    (tmp_path / "book.txt").write_text(make_text())
    run_weft(*generator_command("book.txt", "run", 3), cwd=tmp_path)
    told = found("run", cwd=tmp_path)
    assert (told["model"]["length"], told["model"]["batch"], told["seconds"]["steps"]) == (16, 6, 3)
    assert found("run", "--length", "8", cwd=tmp_path)["model"]["length"] == 8
    out = run_weft("inspect", "run", cwd=tmp_path).stdout
    assert "as in its training" in out


def test_how_it_is_trained_counts(tmp_path):
    (tmp_path / "book.txt").write_text(make_text())
    frozen = ("--set", "training.micro_batch=2", "--set", "training.freeze=1")
    run_weft(*generator_command("book.txt", "run", 2), cwd=tmp_path)
    whole, parts = found("run", cwd=tmp_path), found("run", *frozen, cwd=tmp_path)
    assert (whole["memory"]["at_once"], whole["memory"]["fitting_batch"]) == (4, 6)
    assert (parts["memory"]["at_once"], parts["memory"]["fitting_batch"]) == (2, 6)
    assert parts["flops"]["backward"] < whole["flops"]["backward"]
    assert parts["memory"]["gradients"] < whole["memory"]["gradients"]
    out = " ".join(run_weft("inspect", "run", *frozen, cwd=tmp_path).stdout.split())
    assert "the batch in parts of 2 (training.micro_batch)" in out
    assert "embeddings and the first 1 layers frozen (training.freeze)" in out


def test_texts_of_a_run_that_translates(tmp_path):
    """Its training counts length_buckets of so many tokens; here all is told in texts."""
    write_translation_table(tmp_path / "pairs.tsv", 60)
    sizes = ("model.width=16", "model.depth=1", "model.max_length=24", "objective.batch_tokens=960", "training.batch=4")
    words = [word for size in (*sizes, "training.micro_batch=2") for word in ("--set", size)]
    run_weft("train", "translate", "pairs.tsv", "--steps", "1", "--out", "run", *words, cwd=tmp_path)
    told = found("run", cwd=tmp_path)
    assert (told["model"]["batch"], told["memory"]["at_once"]) == (80, 40)
    told = found("run", "--set", "training.micro_batch=1", "--set", "training.batch=2", cwd=tmp_path)
    assert (told["model"]["batch"], told["memory"]["at_once"]) == (40, 20)


def test_what_does_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("weft.tasks.environment.memory_free", lambda _: 3e7)
    monkeypatch.setattr("weft.tasks.environment.memory_in_use", lambda: 0)
    monkeypatch.setattr("weft.tasks.inspection.process_memory", lambda _: 0)
    words = ("gpt", "--set", "model.width=32", "--set", "model.depth=1", "--length", "64", "--batch", "64")
    told = found(*words, "--curves", cwd=tmp_path)
    small = told["memory"]["fitting_batch"]
    assert told["memory"]["fits"] is False and 0 < small < 64 and told["seconds"]["step"] is None
    assert found(*words[:-1], str(small), cwd=tmp_path)["memory"]["fits"] is True
    assert found(*words, "--set", f"training.micro_batch={small}", cwd=tmp_path)["memory"]["fits"] is True
    assert any(point["seconds"] is None for point in told["curves"]["length"])
    out = " ".join(run_weft("inspect", *words, "--curves", cwd=tmp_path).stdout.split())
    assert f"With --batch {small} it would, or in parts: --set training.micro_batch={small}." in out
    assert "does not fit" in out


def test_a_hugging_face_folder(tmp_path):
    from weft.checkpoints.hugging_face import write_folder

    family, fields = preset("bert-base")
    small = {"width": 16, "depth": 1, "attention.heads": 2, "vocab_size": 40, "max_length": 24}
    config = ModelConfig.from_config({"kind": family, **fields}).override(small)
    (tmp_path / "hf").mkdir()
    write_folder(
        tmp_path / "hf",
        converter_for(config),
        config,
        {name: p.detach() for name, p in config.build().named_parameters()},
        None,
    )
    assert found("hf", cwd=tmp_path)["model"] | {"name": "hf"} == {
        "name": "hf", "family": "bert", "width": 16, "depth": 1, "vocab_size": 40, "length": 24, "batch": 16,
    }  # fmt: skip


def test_a_recipe(tmp_path):
    (tmp_path / "small.toml").write_text(
        'task = "generate"\n[tokenizer]\nkind = "bpe"\nvocab_size = 300\n[model]\nwidth = 32\n'
        "depth = 1\nmax_length = 16\n[training]\nsteps = 70\nbatch = 3\n"
    )
    told = found("small.toml", cwd=tmp_path)
    assert told["model"] | {"name": ""} == {
        "name": "", "family": "gpt", "width": 32, "depth": 1, "vocab_size": 300, "length": 16, "batch": 3,
    }  # fmt: skip
    assert told["seconds"]["steps"] == 70


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["gtp2"], 2, "did you mean 'gpt2'?"),
        (["nothing-like-it"], 2, "no run, no recipe and no model"),
        (["empty"], 1, "is not a run"),
        (["runs/none"], 1, "there is no run"),
        (["broken.toml"], 2, "is not valid TOML"),
        (["odd.toml"], 2, "unknown section 'modle'"),
        (["wrong.toml"], 2, "unknown field 'widht'"),
        (["none.toml"], 1, "there is no recipe"),
        (["gpt", "--length", "0"], 2, "a number from 1 on"),
        (["gpt", "--batch", "-3"], 2, "a number from 1 on"),
        (["gpt2", "--length", "1025"], 2, "at most 1024"),
        (["vit", "--length", "3"], 2, "at least 4"),
        (["gpt", "--set", "model.width=2000000000"], 2, "more bytes than can be counted"),
        (["gpt", "--set", "data.train=x"], 2, "model.… or training.…"),
        (["gpt", "--set", "model.widht=3"], 2, "did you mean 'width'?"),
        (["gpt", "--out", "x.pdf"], 2, ".png or .svg"),
        (["gpt", "--out", "there.png"], 1, "is there already"),
    ],
)
def test_refusals(tmp_path, words, code, says):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.toml").write_text("[model\n")
    (tmp_path / "odd.toml").write_text("[modle]\nwidth = 3\n")
    (tmp_path / "wrong.toml").write_text("[model]\nwidht = 3\n")
    (tmp_path / "there.png").write_text("")
    result = run_weft("inspect", *words, cwd=tmp_path, check=False)
    assert result.returncode == code
    assert says in result.stderr
    assert len(result.stderr.splitlines()) <= 3
    assert not result.stdout


def test_a_model_that_fits_nowhere_is_not_measured(tmp_path):
    words = ("gpt", "--set", "model.width=65536", "--set", "model.depth=10", "--length", "16", "--batch", "2")
    told = found(*words, cwd=tmp_path)
    assert told["memory"]["fits"] is False
    assert told["memory"]["fitting_batch"] == 0
    assert told["seconds"]["step"] is None
    assert "It does not fit, at any batch" in run_weft("inspect", *words, cwd=tmp_path).stdout


def test_curves_as_a_image(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    run_weft("inspect", "gpt", *QUICK, "--out", "cost.svg", cwd=tmp_path)
    assert (tmp_path / "cost.svg").read_text().lstrip().startswith("<?xml")
    told = found("gpt", *QUICK, "--out", "cost.png", cwd=tmp_path)
    assert [point["length"] for point in told["curves"]["length"]] == [4, 8, 16, 32, 64]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run_weft("inspect", "gpt", *QUICK, "--out", "more.png", cwd=tmp_path, check=False)
    assert result.returncode == 1
    assert "pip install 'weft[plots]'" in result.stderr
