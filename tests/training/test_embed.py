"""`weft train embed`: what it learns, that it can be repeated and resumed to the byte, and where it leads."""

import json
import random
import time

import numpy as np
import pytest
import torch

import weft as package
from fixtures.commands import read_last_event, run_weft
from fixtures.runs import hash_run
from training.processes import run_until_killed
from weft.checkpoints.files import read_tensors
from weft.errors import ConfigError, DataError
from weft.models.word2vec.workers import Workers
from weft.training.trainer import Progress, Trainer
from weft.training.word_vectors import VectorTrainer

ROLES, KINDS, EACH = ("king", "prince", "servant", "farmer"), ("he", "she"), 5
NAMES = {(role, kind): f"{role}_{kind}" for role in ROLES for kind in KINDS}


def corpus(sentences=2500, seed=0):
    """Each person stands between a word of its role and one of its kind, so its vector must be the sum of two."""
    rng = random.Random(seed)
    lines = []
    for _ in range(sentences):
        role, kind = rng.choice(ROLES), rng.choice(KINDS)
        lines.append(f"does {role}{rng.randrange(EACH)} {NAMES[role, kind]} {kind}{rng.randrange(EACH)} so.")
    return "\n".join(lines) + "\n"


SMALL = [
    *("--threads", "1", "--set", "model.width=16", "--set", "model.window=1", "--set", "model.sample=0"),
    *("--set", "training.optimizer.learning_rate=0.1"),
]


def words_for(out, *more, text="people.txt", epochs="12"):
    return ["train", "embed", text, "--out", out, "--epochs", epochs, *SMALL, *more]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "people.txt").write_text(corpus())
    (folder / "short.txt").write_text(corpus(400))
    run_weft(*words_for("run"), cwd=folder)
    run_weft(*words_for("cbow", "--model", "cbow"), cwd=folder)
    return folder


@pytest.mark.parametrize("name", ["run", "cbow"])
def test_neighbours_and_analogies_come_out(folder, name):
    run = package.load(folder / name)
    right = [
        run.analogy(NAMES[a, "he"], NAMES[a, "she"], NAMES[b, "he"])[0].word == NAMES[b, "she"]
        for a in ROLES
        for b in ROLES
        if a != b
    ]
    assert sum(right) >= 11, right
    near = {one.word for one in run.similar("king0", top=4)}
    assert near == {f"king{n}" for n in range(1, EACH)}
    assert [one.similarity for one in run.similar("king0")] == sorted(
        (one.similarity for one in run.similar("king0")), reverse=True
    )


def test_a_vector_is_that_of_the_first_matrix(folder):
    run = package.load(folder / "run")
    tensors, words = read_tensors(folder / "run" / "model.safetensors"), (folder / "run" / "words.tsv").read_text()
    row = [line.split("\t")[0] for line in words.splitlines()].index("king0")
    assert np.array_equal(run.embed("king0"), tensors["input.weight"][row].numpy())
    assert run.embed(["king0", " king1 "]).shape == (2, 16)
    counts = [int(line.split("\t")[1]) for line in words.splitlines()]
    assert counts == sorted(counts, reverse=True)
    text = corpus()[: int(0.98 * len(corpus()))]
    assert dict(line.split("\t") for line in words.splitlines())["does"] == str(text.count("does"))


def test_the_run_has_what_every_run_has(folder):
    metrics = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    config = json.loads((folder / "run" / "config.json").read_text())
    assert [line["step"] for line in metrics] == list(range(1, config["training"]["steps"] + 1))
    assert "validation_loss" in metrics[-1] and metrics[-1]["loss"] < 0.8 * metrics[0]["loss"]
    rates = [line["learning_rate"] for line in metrics]
    assert rates[0] == 0.1 and rates == sorted(rates, reverse=True) and rates[-1] < 0.01 * 0.1 * len(rates)
    assert config["task"] == "embed" and config["model"]["kind"] == "skipgram"
    assert "weft similar" in (folder / "run" / "README.md").read_text()
    assert (folder / "run" / "report.html").exists()
    last = max((folder / "run" / "checkpoints").iterdir(), key=lambda path: int(path.name.removeprefix("step-")))
    kept, checkpoint = (read_tensors(path / "model.safetensors") for path in (folder / "run", last))
    assert all(torch.equal(kept[name], checkpoint[name]) for name in kept)  # the last weights, not others


def test_the_same_seed_gives_the_same_bytes(folder):
    for out, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        run_weft(*words_for(out, "--seed", seed, text="short.txt", epochs="3"), cwd=folder)
    assert hash_run(folder / "a") == hash_run(folder / "b")
    assert hash_run(folder / "a")["model.safetensors"] != hash_run(folder / "c")["model.safetensors"]


class StoppedError(Exception):
    pass


def stop_at(monkeypatch, step):
    """The run dies in the middle of a step, after weights have changed."""
    learned = VectorTrainer._step

    def dying(trainer):
        values = learned(trainer)
        if trainer.progress.step == step:
            raise StoppedError
        return values

    monkeypatch.setattr(VectorTrainer, "_step", dying)


SAVED = ("--set", "training.checkpoint_every=4", "--set", "training.evaluate_every=5")


@pytest.fixture(scope="module")
def alone(folder):
    run_weft(*words_for("alone", *SAVED, text="short.txt", epochs="3"), cwd=folder)
    return hash_run(folder / "alone")


@pytest.mark.parametrize("step", [1, 9, 26])
def test_a_killed_run_ends_as_one_that_was_left_alone(folder, alone, monkeypatch, step):
    out = f"killed-{step}"
    with monkeypatch.context() as patch:
        stop_at(patch, step)
        with pytest.raises(StoppedError):
            run_weft(*words_for(out, *SAVED, text="short.txt", epochs="3"), cwd=folder)
    run_weft("resume", out, cwd=folder)
    assert hash_run(folder / out) == alone


def test_with_other_blocks_after_the_kill_it_would_end_otherwise(folder, alone, monkeypatch):
    """The negative control: a run that forgot its place."""
    with monkeypatch.context() as patch:
        stop_at(patch, 9)
        with pytest.raises(StoppedError):
            run_weft(*words_for("lost", *SAVED, text="short.txt", epochs="3"), cwd=folder)
    learn = Workers.learn
    with monkeypatch.context() as patch:
        patch.setattr(Workers, "learn", lambda self, numbers, rate: learn(self, [n - 8 for n in numbers], rate))
        run_weft("resume", "lost", cwd=folder)
    assert hash_run(folder / "lost")["model.safetensors"] != alone["model.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("point", ["save", "manifest", "rename", "model"])
def test_kill_nine_while_something_is_written(folder, alone, point):
    out = f"nine-{point}"
    words = words_for(out, *SAVED, text="short.txt", epochs="3")
    run_until_killed(point, 3, *words, cwd=folder)
    run_weft("resume", out, cwd=folder)
    assert hash_run(folder / out) == alone


def test_several_threads_resume_too_and_learn_as_well(folder, alone, monkeypatch):
    words = [*words_for("two", *SAVED, "--threads", "2", text="short.txt", epochs="3")]
    words.remove("1")
    words.remove("--threads")
    with monkeypatch.context() as patch:
        stop_at(patch, 9)
        with pytest.raises(StoppedError):
            run_weft(*words, cwd=folder)
    told = read_last_event(run_weft("resume", "two", "--json", cwd=folder))
    lines = (folder / "alone" / "metrics.jsonl").read_text().splitlines()
    assert told["validation_loss"] == pytest.approx(json.loads(lines[-1])["validation_loss"], rel=0.02)


def test_a_finished_run_is_trained_further(folder):
    run_weft(*words_for("further", text="short.txt", epochs="2"), cwd=folder)
    before = read_last_event(run_weft("resume", "further", "--json", cwd=folder))
    after = read_last_event(run_weft("resume", "further", "--epochs", "4", "--json", cwd=folder))
    assert after["steps"] > before["steps"] and after["validation_loss"] != before["validation_loss"]


def test_minutes_are_kept(folder):
    began = time.perf_counter()
    told = {"model.width": 16, "model.window": 1}
    run = package.train(
        str(folder / "people.txt"), task="embed", out=folder / "timed", minutes=0.03, threads=1, set=told
    )
    assert time.perf_counter() - began < 30
    assert 1 <= run.config.training.steps and run.similar("king0")


def test_capitals_can_be_put_together(folder):
    (folder / "capitals.txt").write_text(corpus(300).replace("does", "Does", 100))
    run_weft(*words_for("kept", text="capitals.txt", epochs="1"), cwd=folder)
    run_weft(*words_for("lowered", "--set", "data.lowercase=true", text="capitals.txt", epochs="1"), cwd=folder)
    files = ((folder / name / "words.tsv").read_text().splitlines() for name in ("kept", "lowered"))
    both, one = (dict(line.split("\t") for line in lines) for lines in files)
    assert "Does" in both and "Does" not in one and int(one["does"]) == int(both["does"]) + int(both["Does"])
    run = package.load(folder / "lowered")
    assert np.array_equal(run.embed("DOES"), run.embed("does"))


def test_vectors_can_begin_with_those_of_another_run(folder):
    (folder / "other.txt").write_text("zebra does a zebra king0.\n" * 4 + corpus(300, seed=5))
    words = ["train", "embed", "other.txt", "--from", "run", "--out", "begun", "--steps", "2", "--threads", "1"]
    run_weft(*words, "--set", "training.keep=9", "--set", "data.validation_share=0.1", cwd=folder)
    start = read_tensors(folder / "begun" / "checkpoints" / "step-0" / "model.safetensors")["input.weight"]
    names = [line.split("\t")[0] for line in (folder / "begun" / "words.tsv").read_text().splitlines()]
    run = package.load(folder / "run")
    assert np.array_equal(start[names.index("king0")].numpy(), run.embed("king0"))
    assert start[names.index("zebra")].abs().max() <= 1 / 16  # fresh


def test_a_model_that_writes_begins_with_word_vectors(folder):
    words = ["train", "generate", "people.txt", "--from", "run", "--out", "writer", "--steps", "2", "--threads", "1"]
    run_weft(*words, "--set", "training.keep=9", "--set", "training.batch=2", "--set", "model.depth=1", cwd=folder)
    table = read_tensors(folder / "writer" / "checkpoints" / "step-0" / "model.safetensors")["tokens.weight"]
    run, writer = package.load(folder / "run"), package.load(folder / "writer")
    ids = writer.tokenizer.encode(" king0 so king0")
    assert (folder / "writer" / "tokenizer.json").read_bytes() == (folder / "run" / "tokenizer.json").read_bytes()
    for number, word in zip(ids, ("king0", "so", "king0"), strict=True):
        assert np.array_equal(table[int(number)].numpy(), run.embed(word))
    assert table[ord(".")].abs().max() > 0.5  # what is no word is drawn, as in any gpt
    assert isinstance(writer.generate("does ", max_tokens=3), str)


def test_vectors_from_elsewhere_lead_there_too(folder):
    run_weft("export", "run", "vectors.bin", cwd=folder)
    run_weft("import", "vectors.bin", "--out", "imported", cwd=folder)
    words = ["train", "generate", "people.txt", "--from", "imported", "--out", "writer-2", "--steps", "1"]
    run_weft(*words, "--threads", "1", "--set", "training.batch=2", "--set", "model.depth=1", cwd=folder)
    table = read_tensors(folder / "writer-2" / "checkpoints" / "step-0" / "model.safetensors")["tokens.weight"]
    writer = package.load(folder / "writer-2")
    number = int(writer.tokenizer.encode(" king0")[0])
    assert np.array_equal(table[number].numpy(), package.load(folder / "run").embed("king0"))
    assert writer.tokenizer.decode(writer.tokenizer.encode("Ünseen,  text\n")) == "Ünseen,  text\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tokenizer", "bpe"], "expected words"),
        (["--model", "gpt"], "not for embed"),
        (["--set", "training.optimizer.kind=adamw"], "expected sgd"),
        (["--freeze", "embeddings"], "no such option"),
        (["--set", "model.negative=-1"], "negative"),
        (["--set", "model.vocab_size=7"], "vocab_size"),
        (["--from", "run", "--set", "model.width=5"], "width"),
    ],
)
def test_what_cannot_be_is_refused(folder, words, said):
    result = run_weft("train", "embed", "short.txt", "--out", "never", *words, cwd=folder, check=False)
    assert result.returncode == 2 and said in result.stderr and len(result.stderr.strip().splitlines()[-3:]) <= 3
    assert not (folder / "never").exists()


def test_a_text_without_words_is_refused(folder):
    (folder / "marks.txt").write_text("!? .. " * 60)
    result = run_weft("train", "embed", "marks.txt", "--out", "never", cwd=folder, check=False)
    assert result.returncode == 1 and "words occur often enough" in result.stderr


def test_numpy_alone_gives_the_same_vectors(folder, monkeypatch):
    from weft.models.word2vec import learning as word2vec_learning

    run_weft(*words_for("loop", text="short.txt", epochs="1"), cwd=folder)
    monkeypatch.setattr(word2vec_learning, "has_loop", lambda: False)
    run_weft(*words_for("plain", text="short.txt", epochs="1"), cwd=folder)
    one, two = (read_tensors(folder / name / "model.safetensors")["input.weight"] for name in ("loop", "plain"))
    torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)


def test_python_speaks_the_same_words(folder):
    run = package.load(folder / "run")
    with pytest.raises(DataError, match="did you mean 'king0'"):
        run.similar("King0")
    with pytest.raises(ConfigError, match="top"):
        run.similar("king0", top=0)
    assert len(run.similar("king0", top=10_000)) == len((folder / "run" / "words.tsv").read_text().splitlines()) - 1


def test_the_rate_falls_to_its_floor(folder):
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    rates = [json.loads(line)["learning_rate"] for line in lines]
    assert rates == sorted(rates, reverse=True) and rates[0] <= 0.1 and rates[-1] < 0.05 * rates[0]


def test_the_last_vectors_are_kept(monkeypatch):
    """Whatever was best before, the weights of an evaluation count as better."""
    trainer = object.__new__(VectorTrainer)
    trainer.progress = Progress(best=0.5, goal=-0.5)
    monkeypatch.setattr(Trainer, "_evaluate", lambda self: {"best": self.progress.best, "goal": self.progress.goal})
    assert trainer._evaluate() == {"best": float("inf"), "goal": float("-inf")}
