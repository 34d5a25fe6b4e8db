"""Training with every attention kind, going on exactly after a crash, and taking weights from one kind to another."""

import json

import pytest
import torch

import weft as library
from fixtures.commands import TINY_GPT, run_until_crash, run_weft, set_flags
from fixtures.runs import hash_run
from fixtures.texts import make_text
from weft.blocks import AttentionConfig
from weft.training.trainer import Trainer

KINDS = {
    "local": ["window=3"],
    "strided": ["stride=3"],
    "union": ["of=local,global"],
    "linear": [],
    "random-features": ["features=8", "redraw=3"],
    "softmax,local": [],
}


def changes(kind):
    fields = [f"model.attention.kind={kind}", *(f"model.attention.{field}" for field in KINDS.get(kind, []))]
    return [word for field in fields for word in ("--set", field)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    path = tmp_path_factory.mktemp("kinds")
    (path / "text.txt").write_text(make_text(), encoding="utf-8")
    run_weft(
        "train",
        "text.txt",
        "--tokenizer",
        "characters",
        "--steps",
        "8",
        "--out",
        "softmax",
        *set_flags(*TINY_GPT),
        cwd=path,
    )
    return path


@pytest.mark.parametrize("kind", ["local", "random-features"])
def test_a_run_goes_on_exactly_after_it_was_stopped(desk, kind):
    base = ["train", "text.txt", "--tokenizer", "characters", "--steps", "8", *set_flags(*TINY_GPT), *changes(kind)]
    base += ["--threads", "1", "--set", "training.checkpoint_every=4", "--set", "training.precision=float32"]
    run_weft(*base, "--out", f"whole-{kind}", cwd=desk)
    run_until_crash((Trainer, "_step", 6, True), *base, "--out", f"cut-{kind}", cwd=desk)
    run_weft("resume", f"cut-{kind}", cwd=desk)
    assert hash_run(desk / f"cut-{kind}") == hash_run(desk / f"whole-{kind}")


@pytest.mark.parametrize("kind", KINDS)
def test_weights_move_between_kinds(desk, kind):
    """What softmax attention has learned is what the other one begins with."""
    out = "from-" + kind.replace(",", "-")
    words = ["train", "text.txt", "--from", "softmax", "--steps", "1", "--out", out, *changes(kind)]
    told = run_weft(*words, "--set", "training.optimizer.learning_rate=0", cwd=desk)
    assert told.returncode == 0
    old, new = (dict(library.load(desk / name).model.named_parameters()) for name in ("softmax", out))
    moved = [name for name in old if name.endswith("attention.query.weight")]
    assert moved
    for name in moved:
        torch.testing.assert_close(new[name], old[name], atol=0.05, rtol=0)  # one step of the other rates at most
    config = library.load(desk / out).model_config.attention
    assert config.kind == AttentionConfig.from_config(kind).kind


def test_weights_come_back_to_softmax_from_a_kind_with_parameters_of_its_own(desk):
    run_weft(
        "train", "text.txt", "--from", "softmax", "--steps", "1", "--out", "rf", *changes("random-features"), cwd=desk
    )
    run_weft("train", "text.txt", "--from", "rf", "--steps", "1", "--out", "back", *changes("softmax"), cwd=desk)
    names = [name for name, _ in library.load(desk / "back").model.named_parameters()]
    assert not any("core" in name for name in names)


def test_a_kind_that_looks_ahead_is_refused_before_anything_is_done(desk):
    told = run_weft(
        "train", "text.txt", "--out", "no", *set_flags(*TINY_GPT), *changes("hierarchy"), cwd=desk, check=False
    )
    assert told.returncode == 2 and "in a model that writes" in told.stderr and not (desk / "no").exists()


@pytest.mark.parametrize("kind", ["local", "linear"])
def test_a_run_writes_what_its_model_finds_likeliest(desk, kind):
    """From the command, with the kind's own cache: the same tokens as reading everything again for each."""
    out = f"write-{kind}"
    run_weft("train", "text.txt", "--from", "softmax", "--steps", "1", "--out", out, *changes(kind), cwd=desk)
    told = run_weft("generate", out, "the cat", "--max-tokens", "8", "--temperature", "0", "--json", cwd=desk)
    run = library.load(desk / out)
    end, ids = run.tokenizer.end, run.tokenizer.encode("the cat").tolist()
    begin = len(ids)
    with torch.no_grad():
        while len(ids) < begin + 8 and (token := int(run.model(torch.tensor([ids]))[0, -1].argmax())) != end:
            ids.append(token)
    assert json.loads(told.stdout)["text"] == run.tokenizer.decode(ids[begin:])


@pytest.mark.parametrize("window", [16, 3])
def test_a_pattern_that_sees_everything_is_called_what_it_is(desk, window):
    words = ["--set", "model.attention.kind=local", "--set", f"model.attention.window={window}", "--dry-run", "--json"]
    told = run_weft(
        "train", "text.txt", "--tokenizer", "characters", "--steps", "1", *set_flags(*TINY_GPT), *words, cwd=desk
    ).stdout
    warned = [event["text"] for line in told.splitlines() if (event := json.loads(line))["event"] == "warning"]
    assert any("sees all of the 16 tokens" in text for text in warned) == (window == 16)
