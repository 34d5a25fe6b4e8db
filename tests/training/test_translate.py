"""`weft train translate`: what is learned, how it is measured, what is kept, and the same bytes after any stop."""

import json
import math
import shutil

import numpy as np
import pytest
import torch

import weft as package
from fixtures.commands import (
    read_error_lines,
    read_last_event,
    run_until_crash,
    run_weft,
    set_flags,
    translator_command,
)
from fixtures.runs import hash_run, read_metrics
from fixtures.tables import make_reversals, write_parallel_files, write_table, write_translation_table
from weft.checkpoints import RunDirectory, checkpoint
from weft.checkpoints.files import read_tensors
from weft.generation import text_to_text
from weft.report import training_report
from weft.tasks.experiment import Origin
from weft.tasks.translate import task as translate
from weft.tasks.translate.task import Translate, TranslateConfig
from weft.training.averaging import Averaging
from weft.training.trainer import Trainer

MEASURES = {"validation_loss", "validation_bleu", "validation_chrf", "validation_exact_match"}
PAIRS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translate")
    write_translation_table(folder / "pairs.tsv", PAIRS)
    write_translation_table(folder / "test.tsv", 6, seed=9)
    return folder


def trained(folder, name, *more, steps=3, data="pairs.tsv"):
    """A run of this name, made when it is first asked for."""
    if not (folder / name).exists():
        run_weft(*translator_command(data, name, steps, *more), cwd=folder)
    return folder / name


def found_in(path):
    return json.loads(path.read_text())


# -- learning and measuring -------------------------------------------------------------------


def test_words_are_learned_to_stand_backwards(desk):
    lines = read_metrics(desk.run("translator"))
    assert lines[-1]["loss"] < lines[0]["loss"] - 2 and lines[0]["loss"] == pytest.approx(math.log(336), abs=1)
    checks = [line for line in lines if "validation_loss" in line]
    assert [line["step"] for line in checks] == [8, 16, 24]
    for line in checks:
        assert {name for name in line if name.startswith("validation_")} == MEASURES
        assert 0 <= line["validation_bleu"] <= 100 and 0 <= line["validation_exact_match"] <= 1
    assert checks[-1]["validation_chrf"] > 15  # the words of the source, mostly
    found = package.load(desk.run("translator")).translate("the film was a story of it")
    assert len({*found.text.split()} & {*found.source.split()}) >= 3


def test_the_best_bleu_is_kept(desk):
    """Of equals, the lower loss; held-out loss may rise meanwhile."""
    checks = [line for line in read_metrics(desk.run("translator")) if "validation_loss" in line]
    best = max(checks, key=lambda line: (line["validation_bleu"], -line["validation_loss"]))
    found = json.loads(run_weft("evaluate", str(desk.run("translator")), "--json", cwd=desk.path).stdout)
    assert found["loss"] == pytest.approx(best["validation_loss"], abs=1e-6)
    assert found["measured_on"] == "validation" and found["pairs"] == 6


def test_the_last_words_have_the_measures(folder):
    event = read_last_event(run_weft(*translator_command("pairs.tsv", "told", 3), "--json", cwd=folder))
    last = read_metrics(folder / "told")[-1]
    assert event["measured_on"] == "validation" and event["steps"] == 3
    kept = max(
        (line for line in read_metrics(folder / "told") if "validation_loss" in line),
        key=lambda line: (line["validation_bleu"], -line["validation_loss"]),
    )
    for name in MEASURES:
        assert event[name if name == "validation_loss" else name.removeprefix("validation_")] == kept[name]
    assert MEASURES <= last.keys() and "BLEU" in run_weft("evaluate", "told", cwd=folder).stdout
    report = training_report(folder / "told")
    assert ">bleu</th>" in report and "nats per token" in report
    config = found_in(folder / "told" / "config.json")
    assert config["task"] == "translate" and config["model"]["kind"] == "transformer" and config["data"]["length"] == 24
    assert not (folder / "told" / "source_tokenizer.json").exists()


def test_two_files_and_a_table_are_the_same_data(folder):
    one = trained(folder, "plain")
    write_parallel_files(folder, "train", PAIRS)
    two = trained(folder, "parallel", data=("train.en", "train.de"))
    assert hash_run(one)["model.safetensors"] == hash_run(two)["model.safetensors"]
    assert (one / "metrics.jsonl").read_bytes() == (two / "metrics.jsonl").read_bytes()
    write_parallel_files(folder, "other", PAIRS, seed=5)
    three = trained(folder, "control", data=("train.en", "other.de"))
    assert hash_run(one)["model.safetensors"] != hash_run(three)["model.safetensors"]


def test_a_test_at_the_end_is_searched_for_with_beams(folder, monkeypatch):
    searches = []

    def watched(decoding, starts, settings, limits):
        searches.append((settings.beams, len(limits)))
        return beam_search(decoding, starts, settings, limits)

    beam_search = text_to_text.beam_search
    monkeypatch.setattr(text_to_text, "beam_search", watched)
    monkeypatch.setattr(
        "weft.report.training.collect_examples", lambda _: {}
    )  # examples for its page are searched for too
    event = read_last_event(
        run_weft(*translator_command("pairs.tsv", "tested", 3, "--test", "test.tsv"), "--json", cwd=folder)
    )
    monkeypatch.undo()
    assert searches == [(4, 6)]  # and never before: evaluations are greedy
    assert event["measured_on"] == "test"
    found = found_in(folder / "tested" / "test.json")
    lengths = found.pop("by_length")
    assert found.keys() == {"step", "test_loss", "bleu", "chrf", "exact_match"}
    assert all(event[name] == found[name] for name in ("bleu", "chrf", "exact_match", "test_loss"))
    assert event["validation_loss"] != event["test_loss"]
    measured = json.loads(run_weft("evaluate", "tested", "--json", cwd=folder).stdout)
    assert measured.pop("measured_on") == "test" and measured.pop("pairs") == 6
    assert measured.pop("by_length") == lengths == event["by_length"]
    assert measured == pytest.approx({("loss" if k == "test_loss" else k): found[k] for k in found if k != "step"})
    other = json.loads(run_weft("evaluate", "tested", "pairs.tsv", "--json", cwd=folder).stdout)
    assert other["measured_on"] == "data" and other["pairs"] == PAIRS
    plain = trained(folder, "plain")
    assert (
        hash_run(plain)["model.safetensors"] == hash_run(folder / "tested")["model.safetensors"]
    )  # it chooses nothing


def test_without_sacrebleu_the_loss_decides(folder, monkeypatch):
    monkeypatch.setattr("weft.tasks.translate.quality.importlib.util.find_spec", lambda name: None)
    result = run_weft(*translator_command("pairs.tsv", "without", 2), "--json", cwd=folder)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert any("pip install 'weft[translate]'" in event.get("text", "") for event in events)
    assert "bleu" not in events[-1] and "exact_match" in events[-1]
    state = found_in(max((folder / "without" / "checkpoints").iterdir()) / "state.json")["progress"]
    assert state["goal"] == -state["best"]


def test_few_held_out_pairs_are_judged_alike(folder, monkeypatch):
    """Of very many, the first are translated; the loss is of all."""
    made = prepare_experiment(folder, trained(folder, "plain"))
    model = package.load(folder / "plain").model
    whole = made.measure(model, "validation", None)
    monkeypatch.setattr(translate, "EVALUATED_PAIRS", 2)
    some = made.measure(model, "validation", None)
    assert (
        whole["validation_loss"]
        == some["validation_loss"]
        == pytest.approx(json.loads(run_weft("evaluate", "plain", "--json", cwd=folder).stdout)["loss"])
    )


def prepare_experiment(folder, run, **changes):
    """The data of a run, as a resume reads them."""
    config = TranslateConfig.from_dict(
        {key: value for key, value in found_in(run / "config.json").items() if key not in ("task", "format")}
    )
    fields = {"data.train": [str(folder / name) for name in config.data.train]} | changes
    return Translate().reopen(config.override(fields), Origin(run=RunDirectory(run)))


# -- what is read -----------------------------------------------------------------------------


def texts_in(made, batch):
    """What the batch reads and what it wants, as text."""
    keep = torch.ones_like(batch.source, dtype=torch.bool) if batch.source_keep is None else batch.source_keep
    read = [made.tokenizer.decode(row[real]) for row, real in zip(batch.source, keep, strict=True)]
    lengths, rest = [], batch.wanted.tolist()
    while rest:
        lengths.append(rest[: rest.index(made.tokenizer.end)])
        rest = rest[rest.index(made.tokenizer.end) + 1 :]
    return list(zip(read, (made.tokenizer.decode(text) for text in lengths), strict=True))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_every_epoch_reads_every_pair_however_it_is_spelled(folder, share):
    made = prepare_experiment(folder, trained(folder, "plain"), **{"objective.respelling": share})
    samples, count = made.samples, made.per_epoch
    wanted = sorted(zip(made.data.train.sources, made.data.train.targets, strict=True))
    epochs = [
        [samples(np.array([number])) for number in range(first, first + count)] for first in (0, count, 5 * count)
    ]
    for epoch in epochs:
        assert sorted(pair for batch in epoch for pair in texts_in(made, batch)) == wanted
    tokens = [sum(len(batch.wanted) for batch in epoch) for epoch in epochs]
    assert (len(set(tokens)) == 1) == (share == 0)  # spelled otherwise, and in each epoch otherwise
    first = [pair for batch in epochs[0] for pair in texts_in(made, batch)]
    assert first != [pair for batch in epochs[1] for pair in texts_in(made, batch)]  # in another order


def test_a_batch_is_a_pure_function_of_its_numbers(folder):
    run = trained(folder, "plain")
    one, other = (prepare_experiment(folder, run, **{"objective.respelling": 0.5}) for _ in range(2))
    third = prepare_experiment(folder, run, **{"objective.respelling": 0.5, "training.seed": 1})
    numbers = [2 * one.per_epoch + 1, 0, 1, one.per_epoch]
    there = {n: one.samples(np.array([n])) for n in numbers}
    back = {n: other.samples(np.array([n])) for n in reversed(numbers)}
    for n in numbers:
        assert torch.equal(there[n].source, back[n].source) and torch.equal(there[n].wanted, back[n].wanted)
    seeded = [third.samples(np.array([n])).wanted.tolist() for n in numbers]
    assert seeded != [there[n].wanted.tolist() for n in numbers]
    both = one.samples(np.array([0, 1]))
    assert sorted(texts_in(one, both)) == sorted([*texts_in(one, there[0]), *texts_in(one, there[1])])


def test_long_texts_are_cut_and_it_is_told(tmp_path):
    rows = [(f"{'a b c ' * 20}{n}", f"{n} {'c b a ' * 20}") for n in range(20)]
    write_table(tmp_path / "long.tsv", ("source", "target"), rows)
    result = run_weft(*translator_command("long.tsv", "run", 1), "--json", cwd=tmp_path)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    plan = next(event for event in events if event["event"] == "plan")
    assert plan["cut"] == 1.0 and plan["length"] == 24
    assert any("have more than 24 tokens and are cut" in event.get("text", "") for event in events)
    made = prepare_experiment(tmp_path, tmp_path / "run")
    assert max(map(len, made.parts["train"].sources)) == 24
    assert all(text[-1] == made.tokenizer.end for part in made.parts.values() for text in part.sources + part.targets)


# -- what can be chosen -----------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["same", "joint"])
def test_other_memories(desk, memory):
    run = desk.run(memory)
    lines = read_metrics(run)
    assert lines[-1]["loss"] < lines[0]["loss"] - 1
    assert found_in(run / "config.json")["model"]["memory"] == memory
    found = json.loads(run_weft("evaluate", str(run), "--json", cwd=desk.path).stdout)
    checks = [line for line in lines if "validation_loss" in line]
    assert any(found["loss"] == pytest.approx(line["validation_loss"], abs=1e-6) for line in checks)
    assert package.load(run).translate("the film was fine").text
    names = read_tensors(run / "model.safetensors").keys()
    assert any("cross_attention" in name for name in names) == (memory == "same")


def unlike(count=30):
    """Sources of few letters, targets of many: each side needs a vocabulary of its own size."""
    words = [source for source, _ in make_reversals(count)]
    return [
        (text, text.upper().translate(str.maketrans("AEIOT", "ÄËÏÖ7"))[::-1] + f" {n % 10}!?")
        for n, text in enumerate(words)
    ]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_vocabulary_for_each_side(tmp_path, swapped):
    rows = [(two, one) if swapped else (one, two) for one, two in unlike()]
    write_table(tmp_path / "pairs.tsv", ("source", "target"), rows)
    words = [*translator_command("pairs.tsv", "run", 4, "--tokenizer", "characters"), *set_flags(*SEPARATE)]
    run_weft(*words, cwd=tmp_path)
    run = package.load(tmp_path / "run")
    sizes = run.source_tokenizer.vocab_size, run.tokenizer.vocab_size
    assert (sizes[0] > sizes[1]) == swapped and (tmp_path / "run" / "source_tokenizer.json").exists()
    config = found_in(tmp_path / "run" / "config.json")
    assert (config["model"]["source_vocab_size"], config["model"]["vocab_size"]) == sizes
    checks = [line for line in read_metrics(tmp_path / "run") if "validation_loss" in line]
    measured = json.loads(run_weft("evaluate", "run", "--json", cwd=tmp_path).stdout)
    assert any(measured["loss"] == pytest.approx(line["validation_loss"], abs=1e-6) for line in checks)
    shown = json.loads(run_weft("translate", "run", rows[0][0], "--json", "--align", cwd=tmp_path).stdout)
    assert shown["source"] == rows[0][0]
    if swapped:
        return
    words[words.index("run")] = "crashed"
    run_until_crash((Trainer, "_step", 3, True), *words, cwd=tmp_path)
    run_weft("resume", "crashed", cwd=tmp_path)
    assert hash_run(tmp_path / "crashed") == hash_run(tmp_path / "run")
    run_weft(*further("run", "begun", "pairs.tsv"), cwd=tmp_path)
    assert (tmp_path / "begun" / "source_tokenizer.json").read_bytes() == (
        tmp_path / "run" / "source_tokenizer.json"
    ).read_bytes()
    run_weft("evaluate", "begun", cwd=tmp_path)


SEPARATE = ("data.vocabularies=separate", "training.evaluate_every=2", "training.checkpoint_every=2", "data.length=24")


def test_the_schedule_of_the_paper(folder, undisturbed):
    rates = [line["learning_rate"] for line in read_metrics(undisturbed)]
    steps, warmup = len(rates), 0.25
    wanted = [0.05 * min((n + 1) / steps / warmup, math.sqrt(warmup * steps / (n + 1))) for n in range(steps)]
    assert rates == pytest.approx(wanted)


def test_t5_learns_from_pairs_too(folder):
    sizes = ["model.width=16", "model.depth=1", "model.attention.heads=2", "model.max_length=24", "data.length=24"]
    words = ["train", "translate", "pairs.tsv", "--model", "t5", "--steps", "2", "--out", "t5", "--threads", "1"]
    run_weft(*words, *set_flags(*sizes, "model.feed_forward.ff_width=32"), cwd=folder)
    assert (
        package.load(folder / "t5").model_config.kind == "t5" and read_metrics(folder / "t5")[-1]["validation_loss"] > 0
    )


# -- from another model -----------------------------------------------------------------------


def further(start, out, data="test.tsv", *more):
    words = ["train", "translate", data, "--from", str(start), "--out", str(out), "--steps", "1", "--threads", "1"]
    return [*words, *set_flags("training.keep=9"), *more]


def test_it_begins_where_the_other_ended(folder):
    run = trained(folder, "plain")
    run_weft(*further("plain", "begun"), cwd=folder)
    before = read_tensors(run / "model.safetensors")
    start = read_tensors(folder / "begun" / "checkpoints" / "step-0" / "model.safetensors")
    assert before.keys() == start.keys() and all(torch.equal(before[name], start[name]) for name in before)
    assert (folder / "begun" / "tokenizer.json").read_bytes() == (run / "tokenizer.json").read_bytes()
    assert found_in(folder / "begun" / "config.json")["objective"]["respelling"] == 0
    after = read_tensors(folder / "begun" / "model.safetensors")
    assert not torch.equal(after["tokens.weight"], before["tokens.weight"])


def test_a_model_that_goes_on_with_texts_is_no_start(desk, folder):
    result = run_weft(*further(desk.run("writer"), "no"), cwd=folder, check=False)
    assert result.returncode == 1 and "does not write one text from another" in result.stderr
    assert len(read_error_lines(result)) <= 3 and not (folder / "no").exists()


# -- before it begins -------------------------------------------------------------------------


def test_a_dry_run_writes_nothing(tmp_path):
    write_translation_table(tmp_path / "pairs.tsv", PAIRS)
    result = run_weft(*translator_command("pairs.tsv", "none", 2), "--dry-run", "--json", cwd=tmp_path)
    plan = json.loads(result.stdout.splitlines()[-1])
    assert plan["event"] == "plan" and plan["task"] == "translate" and plan["steps"] == 2
    assert plan["pairs"] == 36 and plan["validation_pairs"] == 4 and plan["vocabularies"] == "joint"
    assert plan["memory"] > 4 * plan["parameters"] > 0 and plan["batch_tokens"] == 300
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]
    words = run_weft(*translator_command("pairs.tsv", "none", 2), "--dry-run", cwd=tmp_path).stderr
    words = " ".join(words.split())
    assert "36 pairs of texts" in words and "4 pairs are for validation" in words and " MB" in words
    large = translator_command("pairs.tsv", "none", 2, *set_flags("model.width=256", "objective.batch_tokens=9000"))
    large = json.loads(run_weft(*large, "--dry-run", "--json", cwd=tmp_path).stdout.splitlines()[-1])
    assert large["memory"] > plan["memory"] + 16 * (large["parameters"] - plan["parameters"]) > plan["memory"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--model", "gpt"], 2, "not for translate"),
        (["--model", "bert"], 2, "not for translate"),
        (["--model", "transfomer"], 2, "did you mean 'transformer'?"),
        (["--tokenizer", "wordpiece"], 2, "does not give text back"),
        (["--label", "target"], 2, "no such option for this task"),
        (["--sample", "The"], 2, "no such option for this task"),
        (["--source", "sorce"], 2, "did you mean 'source'?"),
        (["--source", "target", "--target", "target"], 2, "a column for each"),
        (["--test", "one.txt"], 1, "one.txt alone"),
        (["--validation", "tset.tsv"], 1, "test.tsv"),
        (set_flags("model.memory=first"), 2, "last"),
        (set_flags("model.memory=joint", "model.position.kind=alibi"), 2, "no distance"),
        (set_flags("objective.smoothing=2"), 2, "smoothing"),
        (set_flags("objective.smooting=0"), 2, "did you mean 'smoothing'?"),
        (set_flags("objective.batch_tokens=0"), 2, "batch_tokens"),
        (set_flags("training.average=0"), 2, "average"),
        (set_flags("training.schedule=cosine"), 2, "inverse-sqrt"),
        (set_flags("training.schedule=inverse-sqrt", "training.warmup=0"), 2, "warm-up"),
        (set_flags("data.vocabularies=both"), 2, "separate"),
        (["--freeze", "7"], 2, "at most"),
    ],
)
def test_what_cannot_be_is_refused(folder, words, code, said):
    (folder / "one.txt").write_text("a\nb\nc\n")
    result = run_weft(*translator_command("pairs.tsv", "refused", 2, *words), cwd=folder, check=False)
    assert result.returncode == code, result.stderr
    assert said in result.stderr and "Traceback" not in result.stderr
    assert len(read_error_lines(result)) <= 3 and not (folder / "refused").exists()


# -- stopped and gone on with -----------------------------------------------------------------

STEPS = 12
EVERYTHING = [
    "training.evaluate_every=3", "training.checkpoint_every=2", "training.average=3", "training.schedule=inverse-sqrt",
    "training.warmup=0.25", "objective.respelling=0.3", "training.patience=99",
]  # fmt: skip


def long_words(out, *more):
    data = ["--validation", "test.tsv", "--test", "test.tsv"]
    return [*translator_command("pairs.tsv", str(out), STEPS, *data), *set_flags(*EVERYTHING), *more]


@pytest.fixture(scope="module")
def undisturbed(folder):
    run_weft(*long_words("alone"), cwd=folder)
    return folder / "alone"


POINTS = {
    "after step 5": (Trainer, "_step", 5, True),
    "after step 11, in a later epoch": (Trainer, "_step", 11, True),
    "in an evaluation": (translate, "plain_loss", 3, True),
    "in a save": (checkpoint, "save_file", 8, True),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_changes_nothing(folder, undisturbed, point):
    out = folder / point.replace(" ", "-").replace(",", "")
    run_until_crash(POINTS[point], *long_words(out), cwd=folder)
    run_weft("resume", str(out), cwd=folder)
    assert hash_run(out) == hash_run(undisturbed)
    assert (out / "test.json").read_bytes() == (undisturbed / "test.json").read_bytes()
    assert [line["step"] for line in read_metrics(out)] == list(range(1, STEPS + 1))


def test_the_averaged_weights_are_in_the_checkpoint(undisturbed):
    kept = read_tensors(undisturbed / "checkpoints" / f"step-{STEPS}" / "average.safetensors")
    assert {name.partition("/")[0] for name in kept} == {"0", "1", "2"}


@pytest.mark.parametrize("piece", ["averaged weights", "respelling"])
def test_negative_control_each_piece_is_needed(folder, undisturbed, monkeypatch, piece):
    out = folder / f"forgets-{piece.replace(' ', '-')}"
    run_until_crash(POINTS["after step 11, in a later epoch"], *long_words(out), cwd=folder)
    if piece == "averaged weights":
        monkeypatch.setattr(Averaging, "restore", lambda self, tensors: None)
    else:
        varied = translate.varied_batches
        monkeypatch.setattr(translate, "varied_batches", lambda *a, **options: varied(*a, **options | {"share": 0.0}))
    run_weft("resume", str(out), cwd=folder)
    assert hash_run(out) != hash_run(undisturbed)


def test_another_seed_gives_other_bytes(folder, undisturbed):
    run_weft(*long_words("seeded"), "--seed", "1", cwd=folder)
    assert hash_run(folder / "seeded")["model.safetensors"] != hash_run(undisturbed)["model.safetensors"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("pairs.tsv", "the pairs in pairs.tsv have changed"), ("test.tsv", "the pairs in test.tsv have changed")],
)
def test_changed_pairs_are_refused_by_name(folder, undisturbed, tmp_path, name, said):
    for file in ("pairs.tsv", "test.tsv"):
        shutil.copy(folder / file, tmp_path)
    shutil.copytree(undisturbed, tmp_path / "run")
    run_weft("resume", "run", cwd=tmp_path)  # a negative control: moved, not changed
    with (tmp_path / name).open("a") as file:
        file.write("a new\tpair\n")
    result = run_weft("resume", "run", "--steps", "2", cwd=tmp_path, check=False)
    assert result.returncode == 1 and said in result.stderr and len(read_error_lines(result)) <= 3
    assert hash_run(tmp_path / "run") == hash_run(undisturbed)


def test_a_finished_run_is_trained_further(folder, undisturbed, tmp_path):
    for file in ("pairs.tsv", "test.tsv"):
        shutil.copy(folder / file, tmp_path)
    shutil.copytree(undisturbed, tmp_path / "run")
    event = read_last_event(run_weft("resume", "run", "--steps", "3", "--json", cwd=tmp_path))
    assert event["steps"] == STEPS + 3 and len(read_metrics(tmp_path / "run")) == STEPS + 3
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes().startswith((undisturbed / "metrics.jsonl").read_bytes())
