"""Two processes on one global batch: the result of one process, within rounding; resumed to the byte."""

import json

import pytest
from safetensors.torch import load_file

from fixtures.commands import generator_command, run_weft_process, set_flags
from fixtures.runs import hash_run
from fixtures.tables import make_reviews, write_table
from fixtures.texts import make_text
from training.processes import KILL_AT, torchrun

STEPS = 24
SAVES = ["--set", "training.evaluate_every=9", "--set", "training.checkpoint_every=6"]
NO_DROPOUT = ["--set", "model.dropout=0.0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "book.txt").write_text(make_text(1500))
    (folder / "test.txt").write_text(make_text(600, seed=3))
    return folder


@pytest.fixture(scope="module")
def together(folder):
    torchrun(folder, "-m", "weft", *generator_command("book.txt", "together", STEPS, *SAVES, *NO_DROPOUT))
    return folder / "together"


def test_two_ranks_give_what_one_gives(folder, together):
    run_weft_process(*generator_command("book.txt", "alone", STEPS, *SAVES, *NO_DROPOUT), cwd=folder)
    one, two = load_file(folder / "alone" / "model.safetensors"), load_file(together / "model.safetensors")
    # rounding of a sum in another order, carried through 24 steps
    assert max((one[name] - two[name]).abs().max().item() for name in one) < 2e-3
    lines = [
        [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]
        for run in (folder / "alone", together)
    ]
    assert [x["tokens"] for x in lines[0]] == [x["tokens"] for x in lines[1]]
    assert max(abs(a["loss"] - b["loss"]) for a, b in zip(*lines, strict=True)) < 1e-3
    assert abs(lines[0][0]["loss"] - lines[1][0]["loss"]) < 1e-6
    assert abs(lines[0][0]["gradient_norm"] - lines[1][0]["gradient_norm"]) < 1e-5


SHARDED = ["--set", "training.optimizer.kind=adamw", "--set", "training.optimizer.learning_rate=0.003"]


@pytest.mark.slow
def test_sharded_ranks_give_what_one_gives_and_resume_to_the_byte(folder):
    words = [*SAVES, *NO_DROPOUT, *SHARDED]
    run_weft_process(*generator_command("book.txt", "adam-alone", STEPS, *words), cwd=folder)
    words += ["--set", "training.sharded=true", "--test", "test.txt"]
    torchrun(folder, "-m", "weft", *generator_command("book.txt", "sharded", STEPS, *words))
    one, two = (load_file(folder / name / "model.safetensors") for name in ("adam-alone", "sharded"))
    assert one.keys() == two.keys()
    test = json.loads(run_weft_process("evaluate", "sharded", "test.txt", "--json", cwd=folder).stdout)
    assert abs(json.loads((folder / "sharded" / "test.json").read_text())["test_loss"] - test["loss"]) < 1e-5
    assert max((one[name] - two[name]).abs().max().item() for name in one) < 2e-3
    result = torchrun(folder, KILL_AT, "step", "15", *generator_command("book.txt", "shot", STEPS, *words), check=False)
    assert result.returncode != 0
    torchrun(folder, "-m", "weft", "resume", "shot")
    assert hash_run(folder / "shot") == hash_run(folder / "sharded")


CALLED = {  # by the objective: `hidden`, `text_logits`, and `encode` and `states`
    "a bert": ["fill", "book.txt", *set_flags("model.max_length=32")],
    "an lstm": ["classify", "reviews.csv", "--model", "lstm", *set_flags("objective.word_dropout=0.0")],
    "a t5": ["fill", "book.txt", "--model", "t5", *set_flags("model.max_length=32")],
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CALLED)
def test_sharded_models_whose_objective_calls_a_part_of_them(folder, case):
    write_table(folder / "reviews.csv", ("text", "label"), make_reviews())
    words = [*CALLED[case], "--steps", "4", "--threads", "1", *NO_DROPOUT, *SHARDED]
    words += set_flags("training.average=1", "training.batch=8", "model.width=32", "model.depth=2")
    one, two = folder / f"{case} alone", folder / f"{case} sharded"
    run_weft_process("train", *words, "--out", one.name, cwd=folder)
    torchrun(folder, "-m", "weft", "train", *words, "--set", "training.sharded=true", "--out", two.name)
    alone, sharded = (load_file(run / "model.safetensors") for run in (one, two))
    assert max((alone[name] - sharded[name]).abs().max().item() for name in alone) < 2e-3
    lines = [json.loads((run / "metrics.jsonl").read_text().splitlines()[0]) for run in (one, two)]
    assert abs(lines[0]["loss"] - lines[1]["loss"]) < 1e-5
    assert abs(lines[0]["gradient_norm"] - lines[1]["gradient_norm"]) < 1e-4


def test_sharding_needs_adamw(folder):
    result = run_weft_process(
        *generator_command("book.txt", "no", STEPS, "--set", "training.sharded=true"), cwd=folder, check=False
    )
    assert result.returncode == 2
    assert "optimizer.kind=adamw" in result.stderr


@pytest.mark.slow
def test_two_ranks_that_are_killed_resume_to_the_byte(folder, together):
    words = generator_command("book.txt", "killed", STEPS, *SAVES, *NO_DROPOUT)
    result = torchrun(folder, KILL_AT, "step", "15", *words, check=False)
    assert result.returncode != 0
    torchrun(folder, "-m", "weft", "resume", "killed")
    assert hash_run(folder / "killed") == hash_run(together)
