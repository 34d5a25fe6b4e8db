"""`--from` and `--freeze`: training that begins with the weights of a run or of a Hugging Face folder."""

import json
import shutil

import pytest
import torch

import weft as package
from fixtures.commands import generator_command, run_weft
from fixtures.runs import hash_run
from fixtures.texts import make_text
from training.processes import run_until_killed
from weft.checkpoints.files import read_tensors
from weft.errors import ConfigError, WeightsError
from weft.models import GPTConfig
from weft.training.freezing import freeze

FURTHER = ["--threads", "1", "--set", "training.batch=4", "--set", "training.checkpoint_every=5"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A book, another one in other words, and a run that knows the first."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "book.txt").write_text(make_text(2000))
    (folder / "other.txt").write_text(make_text(1500, seed=3).upper())
    run_weft(*generator_command("book.txt", "first", 40), cwd=folder)
    return folder


def more(out, *words, steps=12, start="first"):
    return ["train", "generate", "other.txt", "--from", start, "--steps", str(steps), "--out", out, *FURTHER, *words]


def weights_of(run):
    return read_tensors(run / "model.safetensors")


def test_it_begins_where_the_other_ended(folder):
    run_weft(*more("begun", "--set", "training.keep=9"), cwd=folder)
    first = weights_of(folder / "first")
    checkpoints = folder / "begun" / "checkpoints"
    start, later = (read_tensors(checkpoints / step / "model.safetensors") for step in ("step-0", "step-5"))
    assert set(first) == set(start) and all(torch.equal(first[name], start[name]) for name in first)
    moved = max(float((first[name] - later[name]).abs().max()) for name in first)
    assert 0 < moved < 0.01  # five small steps from there, not a fresh start
    config = json.loads((folder / "begun" / "config.json").read_text())
    assert config["start"] == "first" and config["tokenizer"] is None
    assert config["training"]["optimizer"]["kind"] == "adamw"
    assert (folder / "begun" / "tokenizer.json").read_text() == (folder / "first" / "tokenizer.json").read_text()


def test_it_learns_faster_than_from_scratch(folder):
    """On the text the first run knows: a few steps from there beat as many from nothing."""
    words = ["train", "generate", "book.txt", "--steps", "5", "--json", "--threads", "1"]
    started = run_weft(*words, "--from", "first", "--out", "again", cwd=folder).stdout
    fresh = run_weft(*generator_command("book.txt", "fresh", 5, "--json"), cwd=folder).stdout
    losses = [json.loads(out.splitlines()[-1])["validation_loss"] for out in (started, fresh)]
    assert losses[0] < losses[1] - 0.5


@pytest.mark.parametrize(
    ("point", "count"),
    [
        ("step", 3),
        *(pytest.param(*at, marks=pytest.mark.slow) for at in [("save", 1), ("rename", 4), ("step", 9)]),
    ],
)
def test_killed_and_resumed_it_ends_with_the_same_bytes(folder, tmp_path, point, count):
    if not (folder / "whole").exists():
        run_weft(*more("whole"), cwd=folder)
    out = f"killed-{point}-{count}"
    run_until_killed(point, count, *more(out), cwd=folder)
    if point == "step":  # once the first checkpoint stands, the other model may be gone
        shutil.move(folder / "first", tmp_path / "first")
    try:
        run_weft("resume", out, cwd=folder)
    finally:
        if point == "step":
            shutil.move(tmp_path / "first", folder / "first")
    assert hash_run(folder / out) == hash_run(folder / "whole")


def test_frozen_parts_keep_their_weights(folder):
    run_weft(*more("frozen", "--freeze", "1"), cwd=folder)
    before, after = weights_of(folder / "first"), weights_of(folder / "frozen")
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {name for name in before if name.startswith(("tokens.", "layers.0."))}
    run_weft(*more("embeddings", "--freeze", "embeddings"), cwd=folder)
    after = weights_of(folder / "embeddings")
    assert {name for name in before if torch.equal(before[name], after[name])} == {"tokens.weight"}


@pytest.fixture(scope="module")
def with_hf(folder):
    """The same desk with a Hugging Face folder on it."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 32, "vocab_size": 300}
    transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).save_pretrained(folder / "hf")
    package.load(folder / "first").tokenizer.save(folder / "hf" / "tokenizer.json")
    return folder


def test_from_a_hugging_face_folder(with_hf):
    folder = with_hf
    run_weft(*more("tuned", "--set", "data.length=8", start="hf"), cwd=folder)
    before, after = package.load(folder / "hf").model, package.load(folder / "tuned").model
    assert type(before) is type(after)
    assert 0 < (before.tokens.weight - after.tokens.weight).abs().max() < 0.05
    assert package.load(folder / "tuned").generate("THE", max_tokens=4, temperature=0.0)


def test_settings_that_keep_the_shapes_may_change(folder):
    run_weft(*more("dropped", "--set", "model.dropout=0.3", "--set", "model.attention.kind=hard"), cwd=folder)
    assert package.load(folder / "dropped").model_config.attention.kind == "hard"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "model.width=32"], "do not fit"),
        (["--tokenizer", "bpe"], "come with the weights"),
        (["--model", "gpt2"], "come with the weights"),
        (["--freeze", "9"], "at most 2"),
        (["--freeze", "head"], "freeze"),
    ],
)
def test_what_cannot_be_is_refused(folder, words, said):
    refused = run_weft(*more("refused", *words), cwd=folder, check=False)
    assert refused.returncode in (1, 2) and said in refused.stderr
    told = [line for line in refused.stderr.strip().splitlines() if not line.endswith("…")]
    assert len(told) <= 3 and "Traceback" not in refused.stderr
    assert not (folder / "refused").exists()


def test_a_start_that_is_none(folder):
    refused = run_weft(*more("refused", start="nowhere"), cwd=folder, check=False)
    assert refused.returncode == 2 and "no such folder" in refused.stderr


def test_nothing_to_resume_in_an_imported_run(with_hf):
    run_weft("import", "hf", "--out", "imported", cwd=with_hf)
    refused = run_weft("resume", "imported", cwd=with_hf, check=False)
    assert refused.returncode == 1 and "--from" in refused.stderr


def test_freezing_all_layers_leaves_the_head():
    model = GPTConfig(vocab_size=9, width=8, depth=2).build()
    freeze(model, 2)
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["head.weight"]
    tied = GPTConfig(vocab_size=9, width=8, depth=2, tied=True).build()
    with pytest.raises(ConfigError, match="nothing to learn"):
        freeze(tied, 2)


def test_weights_that_do_not_fit_are_named(folder):
    from weft.tasks.start import read_start

    start = read_start(str(folder / "first"))
    with pytest.raises(WeightsError, match="first"):
        start.build(start.model.override({"depth": 3}))
