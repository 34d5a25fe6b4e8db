"""`--watch`: what is seen is true, and training does not notice that it was looked at."""

import json

import pytest
import torch

import weft
from fixtures.commands import (
    classifier_command,
    filler_command,
    generator_command,
    image_classifier_command,
    run_until_crash,
    run_weft,
    set_flags,
    translator_command,
)
from fixtures.images import write_image_folder
from fixtures.runs import hash_run, read_metrics
from fixtures.tables import write_reviews, write_translation_table
from fixtures.texts import make_text, write_book
from weft.analysis import attention_maps
from weft.tasks import watching
from weft.tasks.held_out import some_of, windows_of
from weft.tasks.run import load
from weft.training import Trainer

EVERY = set_flags("training.evaluate_every=4", "training.checkpoint_every=3")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watch")
    (folder / "book.txt").write_text(make_text(3000))
    return folder


@pytest.fixture(scope="module")
def runs(book):
    """The same run with and without being watched."""
    shown = run_weft(*generator_command("book.txt", "watched", 10, *EVERY, "--watch"), cwd=book)
    run_weft(*generator_command("book.txt", "alone", 10, *EVERY), cwd=book)
    return book, shown


def lines(run):
    return [json.loads(line) for line in (run / "health.jsonl").read_text().splitlines()]


def test_it_changes_no_byte_of_the_run(runs):
    book, _ = runs
    assert hash_run(book / "watched") == hash_run(book / "alone")
    assert (book / "watched" / "config.json").read_bytes() == (book / "alone" / "config.json").read_bytes()
    assert not (book / "alone" / "health.jsonl").exists()


def test_there_is_a_line_for_the_start_and_each_evaluation(runs):
    book, shown = runs
    found = lines(book / "watched")
    assert [line["step"] for line in found] == [0, 4, 8, 10]
    assert all(len(line["layers"]) == 2 and len(line["layers"][0]["heads"]) == 2 for line in found)
    words = " ".join(shown.stderr.split())  # a narrow terminal breaks lines
    for line in found:
        assert f"health at step {line['step']}: {line['sentences'][0]}" in words
    assert "\x1b" not in shown.stderr


def test_what_is_told_is_of_the_weights_of_that_step(runs, monkeypatch):
    """Of the best ones, which were kept: computed once more from the held-out text, by another road."""
    book, _ = runs
    monkeypatch.chdir(book)
    run = load(book / "watched")
    measured = [line for line in read_metrics(book / "watched") if "validation_loss" in line]
    best = min(measured, key=lambda line: line["validation_loss"])
    line = next(line for line in lines(book / "watched") if line["step"] == best["step"])
    ids = torch.from_numpy(run.held_out().ids.astype("int64"))
    starts = some_of(len(ids) - 16)
    windows = torch.stack([ids[start : start + 16] for start in starts])
    maps = attention_maps(run.model, windows)
    for layer in line["layers"]:
        weights = maps[layer["name"]]
        for head in layer["heads"]:
            largest = weights[:, head["head"] - 1, 1:].max(-1)  # the first row sees itself alone
            assert head["rows"] == largest.size
            assert head["largest"] == pytest.approx(float(largest.mean()), rel=1e-4)


def test_a_look_that_disturbs_is_found(book, monkeypatch):
    """Negative control: one that draws random numbers and leaves the model in eval mode changes the run."""

    def disturb(self, model, step):
        model.eval()
        with torch.no_grad():
            next(model.parameters()).add_(1e-6)

    monkeypatch.setattr(watching.SoftmaxHealthLog, "__call__", disturb)
    run_weft(*generator_command("book.txt", "disturbed", 10, *EVERY, "--watch"), cwd=book)
    assert hash_run(book / "disturbed") != hash_run(book / "alone")


def test_modes_and_random_state_are_as_before(runs, monkeypatch):
    book, _ = runs
    monkeypatch.chdir(book)
    run = load(book / "alone")
    model = run.model.train()
    model.layers[0].eval()
    torch.manual_seed(3)
    before = [module.training for module in model.modules()], torch.random.get_rng_state()
    for maps in windows_of(run.held_out(), 16).looks(model):
        assert not any(module.training for module in model.modules()) and maps
        torch.rand(3)
    assert [module.training for module in model.modules()] == before[0]
    assert torch.equal(torch.random.get_rng_state(), before[1])


def test_each_step_stands_once_after_a_crash(runs):
    """The process dies between an evaluation and the next checkpoint; the resumed run looks at it again."""
    book, _ = runs
    words = generator_command("book.txt", "broken", 10, *EVERY, "--watch")
    run_until_crash((Trainer, "_step", 6, True), *words, cwd=book)
    assert [line["step"] for line in lines(book / "broken")] == [0, 4]
    with (book / "broken" / "health.jsonl").open("a") as file:
        file.write('{"step": 8, "sent')  # half a line
    run_weft("resume", "broken", cwd=book)
    assert (book / "broken" / "health.jsonl").read_bytes() == (book / "watched" / "health.jsonl").read_bytes()
    assert hash_run(book / "broken") == hash_run(book / "watched")


def test_a_run_that_was_not_watched_is_not_when_it_is_resumed(runs):
    book, _ = runs
    run_weft("resume", "alone", "--steps", "2", cwd=book)
    assert not (book / "alone" / "health.jsonl").exists()


def test_events_for_programs(book):
    shown = run_weft(*generator_command("book.txt", "told", 4, *EVERY, "--watch", "--json"), cwd=book)
    events = [json.loads(line) for line in shown.stdout.splitlines()]
    health = [event for event in events if event["event"] == "health"]
    assert [event["step"] for event in health] == [0, 4]
    assert {"entropy", "saturated", "score_variance", "gradient"} <= health[0]["layers"][0]["heads"][0].keys()


def test_every_task_with_attention(tmp_path):
    write_book(tmp_path / "book.txt")
    write_reviews(tmp_path / "reviews.csv")
    write_translation_table(tmp_path / "pairs.csv")
    write_image_folder(tmp_path / "images")
    davit = set_flags(
        "model.widths=16,16", "model.depths=1,1", "model.strides=2,2", "model.head_width=8", "model.window=3"
    )
    ours = ["train", "classify", "images", "--steps", "2", "--threads", "1", "--model", "davit", "--out", "davit"]
    bahdanau = [
        "train",
        "translate",
        "pairs.csv",
        "--model",
        "bahdanau",
        "--steps",
        "2",
        "--threads",
        "1",
        "--out",
        "bahdanau",
    ]
    for out, words, parts in (
        ("bert", filler_command("book.txt", "bert", 2), {""}),
        ("classes", classifier_command("reviews.csv", "classes", 2), {""}),
        ("pairs", translator_command("pairs.csv", "pairs", 2), {"encoder", "decoder", "decoder → encoder"}),
        ("bahdanau", [*bahdanau, "--threads", "1", *set_flags("model.width=16")], {"decoder → encoder"}),
        ("vit", image_classifier_command("images", "vit", 2), {""}),
        ("davit", [*ours, *davit], {f"stage {n}, {what}" for n in (1, 2) for what in ("windows", "channels")}),
    ):
        run_weft(*words, "--watch", cwd=tmp_path)
        for line in lines(tmp_path / out):
            assert {layer["part"] for layer in line["layers"]} == parts
            assert all(layer["heads"] for layer in line["layers"])


@pytest.mark.parametrize("model", ["lstm", "3gram"])
def test_nothing_to_watch_is_said_once(book, model):
    small = set_flags("model.width=8", "model.depth=1") if model == "lstm" else []
    words = ["train", "book.txt", "--model", model, "--steps", "2", "--threads", "1", "--out", model, *small, "--watch"]
    shown = run_weft(*words, cwd=book)
    assert shown.stderr.count("nothing to watch") == 1
    assert not (book / model / "health.jsonl").exists()


def test_from_python(tmp_path):
    (tmp_path / "book.txt").write_text(make_text(2000))
    sizes = {"model.width": 16, "model.depth": 1, "model.max_length": 16}
    run = weft.train(
        tmp_path / "book.txt", task="generate", steps=2, watch=True, threads=1, out=str(tmp_path / "run"), set=sizes
    )
    assert [line["step"] for line in lines(run.directory.path)] == [0, 2]
