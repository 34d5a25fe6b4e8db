"""`weft train fill`: every objective alone and together, each in the log, and the same bytes after any stop."""

import json
import math
import shutil

import numpy as np
import pytest
import torch

import weft as package
from fixtures.commands import (
    SAVE_OFTEN,
    filler_command,
    read_error_lines,
    read_last_event,
    run_until_crash,
    run_weft,
    run_weft_process,
    set_flags,
)
from fixtures.runs import hash_run, read_metrics
from fixtures.tables import make_reviews, write_table, write_text_pairs
from fixtures.texts import write_book
from training.processes import run_until_killed
from weft.checkpoints import checkpoint
from weft.checkpoints.files import read_tensors
from weft.data.pretraining import TASKS
from weft.tasks.fill.task import FillConfig, Pretraining, read_fill_source, read_texts
from weft.training import Ranks
from weft.training.sums import LossSums
from weft.training.trainer import Trainer

QUESTIONS = [task for task in TASKS if task != "masked"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fill")
    write_book(folder / "book.txt")
    write_book(folder / "other.txt", 5)
    write_text_pairs(folder / "nli.csv", 40)
    return folder


def words_for(out, *tasks, steps=3, data="book.txt"):
    pairs = ["--pairs", "nli.csv"] if "entailment" in tasks else []
    return filler_command(data, str(out), steps, *pairs, *set_flags(f"objective.tasks={','.join(tasks)}"))


def names_of(tasks):
    return {f"{task.replace('-', '_')}_{what}" for task in tasks for what in ("loss", "accuracy")}


# -- learning ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [*[(task,) for task in TASKS], TASKS], ids="+".join)
def test_every_objective_is_learned_and_in_the_log(folder, tasks):
    out = folder / f"learned-{len(tasks)}-{tasks[0]}"
    event = read_last_event(run_weft(*words_for(out, *tasks), "--json", cwd=folder))
    lines = read_metrics(out)
    for line in lines:
        assert {
            name for name in line if name.endswith(("_loss", "_accuracy")) and "validation" not in name
        } == names_of(tasks)
        assert all(math.isfinite(line[name]) and line[name] >= 0 for name in names_of(tasks))
        assert all(line[name] <= 1 for name in names_of(tasks) if name.endswith("_accuracy"))
    last = lines[-1]
    assert {name for name in last if name.startswith("validation_")} == {
        "validation_loss", *(f"validation_{name}" for name in names_of(tasks))
    }  # fmt: skip
    assert event["validation_loss"] == last["validation_loss"] and event["measured_on"] == "validation"
    config = json.loads((out / "config.json").read_text())
    assert config["task"] == "fill" and tuple(config["objective"]["tasks"]) == tasks
    kind = "masked" if tasks == ("masked",) else "pretraining" if "masked" in tasks else "pairs"
    assert config["model"]["head"]["kind"] == kind
    if "masked" in tasks:
        assert abs(lines[0]["masked_loss"] - math.log(config["model"]["vocab_size"])) < 0.3
    for task in set(tasks) - {"masked"}:
        assert abs(lines[0][f"{task.replace('-', '_')}_loss"] - math.log(2)) < 0.1
    if len(tasks) == 1:
        assert last["loss"] == pytest.approx(last[f"{tasks[0].replace('-', '_')}_loss"])


def test_the_loss_is_the_sum_of_its_parts(folder):
    """Σ hidden + weight · Σ pairs, by the number of hidden tokens; the weight is set here."""
    words = [*words_for("weighed", "masked", "next-sentence", steps=2), *set_flags("objective.pair_weight=2.5")]
    run_weft(*words, cwd=folder)
    for n, line in enumerate(read_metrics(folder / "weighed")):
        hidden = line["tokens"] - (read_metrics(folder / "weighed")[n - 1]["tokens"] if n else 0)
        assert line["loss"] == pytest.approx(line["masked_loss"] + 2.5 * 16 * line["next_sentence_loss"] / hidden)


def test_hidden_words_are_learned(desk):
    lines = read_metrics(desk.run("masked"))
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.5
    assert lines[-1]["validation_masked_loss"] < lines[19]["validation_masked_loss"] + 0.2
    assert lines[-1]["validation_loss"] == lines[-1]["validation_masked_loss"]


def test_other_tokens_are_hidden_in_another_epoch_and_by_another_seed(folder):
    config = FillConfig.from_dict(config_of(folder / "masked", folder))
    made = prepare_experiment(config, folder)
    count = made.learned.per_epoch
    first, second = (made.samples(np.array([n])) for n in (0, count))
    again = prepare_experiment(config, folder).samples(np.array([0]))
    assert torch.equal(first.places, again.places) and torch.equal(first.row.tokens, again.row.tokens)
    assert not torch.equal(first.row.tokens, second.row.tokens)
    other = prepare_experiment(config.override({"training.seed": 1}), folder)
    assert not torch.equal(first.row.tokens, other.samples(np.array([0])).row.tokens)
    judged = [run.evaluation_samples["validation"].batch(np.arange(3)).tokens for run in (made, other)]
    assert np.array_equal(*judged)  # what is held out is asked about alike, so that runs can be compared


def config_of(run, folder, *tasks):
    """The settings of a run, trained now if it is not there; paths are absolute."""
    if not run.exists():
        run_weft(*words_for(run, *(tasks or ("masked",))), cwd=folder)
    raw = json.loads((run / "config.json").read_text())
    raw["data"]["train"] = [str(folder / name) for name in raw["data"]["train"]]
    raw["data"]["pairs"] = raw["data"]["pairs"] and str(folder / raw["data"]["pairs"])
    return {key: value for key, value in raw.items() if key not in ("task", "format")}


def prepare_experiment(config, folder):
    config_of(folder / "masked", folder)
    tokenizer = package.load(folder / "masked").tokenizer
    return Pretraining(config, read_texts(read_fill_source(config.data), config.data, tokenizer, lambda _: None))


# -- measuring --------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [("masked",), ("next-sentence",), TASKS], ids="+".join)
def test_evaluate_gives_what_training_measured(folder, tasks):
    out = folder / ("every" if len(tasks) > 1 else tasks[0])
    config_of(out, folder, *tasks)
    last = read_metrics(out)[-1]
    found = json.loads(run_weft("evaluate", str(out), "--json", cwd=folder).stdout)
    assert found["measured_on"] == "validation"
    assert found["loss"] == pytest.approx(last["validation_loss"], abs=1e-6)
    for name in names_of(tasks):
        assert found[name] == pytest.approx(last[f"validation_{name}"], abs=1e-6)
    words = run_weft("evaluate", str(out), cwd=folder).stdout
    assert all(
        f"{task.replace('-', '_')} {last['validation_' + task.replace('-', '_') + '_accuracy']:.1%}" in words
        for task in tasks
    )
    other = json.loads(run_weft("evaluate", str(out), "other.txt", "--json", cwd=folder).stdout)
    assert other["measured_on"] == "data" and other["tokens"] != found["tokens"]
    assert {name for name in other if name.endswith("_accuracy")} == {
        name for name in names_of(tasks) if name.endswith("_accuracy") and "entailment" not in name
    }  # its own questions; other text has no labelled pairs


def test_entailment_alone_is_not_measured_on_other_text(folder):
    config_of(folder / "entailment", folder, "entailment")
    assert "entailment_accuracy" in json.loads(run_weft("evaluate", "entailment", "--json", cwd=folder).stdout)
    result = run_weft("evaluate", "entailment", "other.txt", cwd=folder, check=False)
    assert result.returncode == 1 and "labelled pairs" in result.stderr and len(read_error_lines(result)) <= 3


def test_a_text_to_test_on(folder):
    event = read_last_event(run_weft(*words_for("tested", "masked"), "--test", "other.txt", "--json", cwd=folder))
    assert event["measured_on"] == "test"
    found = json.loads((folder / "tested" / "test.json").read_text())
    assert found["test_loss"] == event["test_loss"]
    measured = json.loads(run_weft("evaluate", "tested", "--json", cwd=folder).stdout)
    assert measured["measured_on"] == "test" and measured["loss"] == pytest.approx(found["test_loss"], abs=1e-6)
    config_of(folder / "masked", folder)
    same = [read_tensors(folder / run / "model.safetensors")["tokens.weight"] for run in ("tested", "masked")]
    assert torch.equal(*same)  # the test chooses nothing


class Heard(Ranks):
    """One of several processes: what it would send to the others is kept."""

    def sum(self, tensors):
        object.__setattr__(self, "sent", [tensor.clone() for tensor in tensors])


@pytest.mark.parametrize("world", [2, 3, 50])
def test_processes_share_the_measuring(folder, world):
    """50 are more than there are rows to measure: those with nothing to do must still name the same parts."""
    made = prepare_experiment(FillConfig.from_dict(config_of(folder / "every", folder, *TASKS)), folder)
    model = package.load(folder / "every").model
    alone = made.measure(model, "validation", Ranks())
    sent = []
    for rank in range(world) if world < 10 else (0, 1, 48, 49):
        ranks = Heard(rank, world)
        made.measure(model, "validation", ranks)
        sent.append(ranks.sent[0])
    total = torch.stack(sent).sum(0)
    assert len(total) == 2 + 3 * len(TASKS)
    if world < 10:
        assert float(total[0] / total[1]) == pytest.approx(alone["validation_loss"])


def test_every_batch_names_every_part(folder):
    """Of four questions by turns, a batch of two has two; the sums of processes must still line up."""
    made = prepare_experiment(FillConfig.from_dict(config_of(folder / "every", folder, *TASKS)), folder)
    from weft.objectives import pretraining_loss

    model = package.load(folder / "every").model
    parts = [pretraining_loss(model, made.samples(np.arange(2) + 2 * n))[2] for n in range(2)]
    assert parts[0].keys() == parts[1].keys() == set(TASKS)
    assert [name for name in QUESTIONS if parts[0][name][2]] != [name for name in QUESTIONS if parts[1][name][2]]


def test_sums_over_processes_are_those_of_one():
    batches = [(3.0, 2, {"b-x": (2.0, 1, 2), "a": (1.0, 0, 1)}), (5.0, 4, {"a": (4.0, 2, 3), "b-x": (0.0, 0, 0)})]
    alone = LossSums()
    for batch in batches:
        alone.add(*batch)
    one, other = LossSums(), LossSums()
    one.add(*batches[0])
    other.add(*batches[1])
    heard = Heard(1, 2)
    other.share(heard, torch.device("cpu"))

    class Both(Ranks):
        def sum(self, tensors):
            for tensor, more in zip(tensors, heard.sent, strict=True):
                tensor.add_(more)

    one.share(Both(0, 2), torch.device("cpu"))
    assert (one.total, one.count, one.parts) == (alone.total, alone.count, alone.parts)
    assert one.means() == alone.means() == {
        "a_loss": 5 / 4, "a_accuracy": 0.5, "b_x_loss": 1.0, "b_x_accuracy": 0.5
    }  # fmt: skip
    assert LossSums(["a"]).means() == {} and LossSums(["a"]).parts == {"a": [0.0, 0.0, 0.0]}


# -- data -------------------------------------------------------------------------------------


def plan_of(folder, *words):
    return json.loads(run_weft(*words, "--dry-run", "--json", cwd=folder).stdout.splitlines()[-1])


def test_tables_are_read_as_documents(tmp_path):
    rows = [(n, "One two three. Four five six.", f"{t}.") for n, (t, _) in enumerate(make_reviews(40))]
    write_table(tmp_path / "t.csv", ("id", "note", "text"), rows)
    plan = plan_of(tmp_path, *filler_command("t.csv", "none", 2))
    assert 34 <= plan["documents"] <= 37 and plan["documents"] == plan["sentences"]  # nine tenths of 40 rows
    named = plan_of(tmp_path, *filler_command("t.csv", "none", 2, "--text", "note"))
    assert named["sentences"] == pytest.approx(2 * named["documents"], abs=1)
    (tmp_path / "t.txt").write_text("\n\n".join(text for _, _, text in rows) + "\n")
    run_weft(*filler_command("t.csv", "table", 2), cwd=tmp_path)
    run_weft(*filler_command("t.txt", "text", 2), cwd=tmp_path)
    assert hash_run(tmp_path / "table")["model.safetensors"] == hash_run(tmp_path / "text")["model.safetensors"]


def test_a_dry_run_writes_nothing(tmp_path):
    write_book(tmp_path / "book.txt")
    plan = plan_of(tmp_path, *filler_command("book.txt", "none", 2))
    assert plan["task"] == "fill" and plan["tasks"] == ["masked"] and plan["parameters"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["book.txt"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--pairs", "nli.csv"], 2, "nothing to ask about them"),
        (set_flags("objective.tasks=masked,entailment"), 2, "entailment without labelled pairs"),
        (["--pairs", "book.txt", *set_flags("objective.tasks=entailment")], 1, "book.txt is no table"),
        (["--pairs", "plain.csv", *set_flags("objective.tasks=entailment")], 1, "no pairs of texts"),
        (["--pairs", "nil.csv", *set_flags("objective.tasks=entailment")], 1, "did you mean 'nli.csv'?"),
        (set_flags("objective.tasks=maskd"), 2, "did you mean 'masked'?"),
        (set_flags("objective.taks=masked"), 2, "did you mean 'tasks'?"),
        (set_flags("objective.tasks=masked,masked"), 2, "each once"),
        (set_flags("objective.masked_share=2"), 2, "masked_share"),
        (set_flags("data.length=4"), 2, "at least 8 tokens"),
        (["--text", "body"], 2, "a table, which has columns"),
        (["--label", "x"], 2, "no such option for this task"),
        (["--sample", "The"], 2, "no such option for this task"),
        (["--model", "gpt"], 2, "not for fill"),
        (["--freeze", "7"], 2, "at most 1"),
        (["--test", "bok.txt"], 1, "book.txt"),
    ],
)
def test_what_cannot_be_is_refused(folder, words, code, said):
    write_table(folder / "plain.csv", ("text", "label"), make_reviews(20))
    result = run_weft(*filler_command("book.txt", "refused", 2, *words), cwd=folder, check=False)
    assert result.returncode == code, result.stderr
    assert said in result.stderr and "Traceback" not in result.stderr
    assert len(read_error_lines(result)) <= 3 and not (folder / "refused").exists()


def test_text_without_pairs_of_sentences_is_refused(tmp_path):
    """Before training, also if it is only the held-out text, which is looked at minutes later."""
    lone = "\n\n".join("Rain fell." for _ in range(60))
    (tmp_path / "lone.txt").write_text(lone)
    write_book(tmp_path / "book.txt")
    for data, more in (
        ("lone.txt", []),
        ("book.txt", ["--validation", "lone.txt"]),
        ("book.txt", ["--test", "lone.txt"]),
    ):
        words = filler_command(data, "run", 2, *set_flags("objective.tasks=next-sentence"), *more)
        result = run_weft(*words, cwd=tmp_path, check=False)
        assert result.returncode == 1 and "no document has two sentences" in result.stderr
        assert ("validation text" in result.stderr) == ("--validation" in more)
        assert len(read_error_lines(result)) <= 3 and not (tmp_path / "run").exists()


# -- from another model -----------------------------------------------------------------------


def further(start, out, *tasks, steps=2):
    words = ["train", "fill", "other.txt", "--from", str(start), "--out", str(out), "--steps", str(steps)]
    return [
        *words,
        "--threads",
        "1",
        *set_flags("training.batch=4", "training.keep=9", f"objective.tasks={','.join(tasks)}"),
    ]


def test_it_begins_where_the_other_ended(desk, folder):
    run_weft(*further(desk.run("masked"), "begun", "masked"), cwd=folder)
    before = read_tensors(desk.run("masked") / "model.safetensors")
    start = read_tensors(folder / "begun" / "checkpoints" / "step-0" / "model.safetensors")
    assert before.keys() == start.keys() and all(torch.equal(before[name], start[name]) for name in before)
    run_weft(*further(desk.run("masked"), "more", "masked", "inversion"), cwd=folder)
    start = read_tensors(folder / "more" / "checkpoints" / "step-0" / "model.safetensors")
    assert all(torch.equal(before[name], start[name]) for name in before)  # hidden words stay, the question is new
    assert {name.partition(".")[0] for name in start.keys() - before.keys()} - {"pooler"} == {"pairs"}


def test_it_begins_with_the_trunk_of_a_classifier(desk, folder):
    run_weft(*further(desk.run("pairs"), "read", "masked"), cwd=folder)
    before = read_tensors(desk.run("pairs") / "model.safetensors")
    start = read_tensors(folder / "read" / "checkpoints" / "step-0" / "model.safetensors")
    trunk = {name for name in before if not name.startswith(("masked.", "pooler.", "pairs.", "classes."))}
    assert all(torch.equal(before[name], start[name]) for name in trunk)
    assert {name.partition(".")[0] for name in start.keys() - trunk} == {"masked"}


def test_a_model_that_writes_is_no_start(desk, folder):
    result = run_weft(*further(desk.run("writer"), "no", "masked"), cwd=folder, check=False)
    assert result.returncode == 1 and "does not read in both directions" in result.stderr
    assert not (folder / "no").exists()


# -- stopped and gone on with -----------------------------------------------------------------

STEPS = 16
RESUMED = ("masked", "next-sentence", "entailment")


def long_words(out):
    return [*words_for(out, *RESUMED, steps=STEPS), "--threads", "1", *set_flags(*SAVE_OFTEN)]


@pytest.fixture(scope="module")
def undisturbed(folder):
    run_weft(*long_words("alone"), cwd=folder)
    return folder / "alone"


POINTS = {
    "after step 3": (Trainer, "_step", 3, True),
    "after step 11, in the third epoch": (Trainer, "_step", 11, True),
    "in an evaluation": (Pretraining, "measure", 2, True),
    "in a save": (checkpoint, "save_file", 3, True),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_changes_nothing(folder, undisturbed, point):
    out = folder / point.replace(" ", "-").replace(",", "")
    run_until_crash(POINTS[point], *long_words(out), cwd=folder)
    run_weft("resume", str(out), cwd=folder)
    assert hash_run(out) == hash_run(undisturbed)
    assert [line["step"] for line in read_metrics(out)] == list(range(1, STEPS + 1))


def test_negative_control_another_seed_gives_other_bytes(folder, undisturbed):
    run_weft(*long_words("other"), "--seed", "1", cwd=folder)
    assert hash_run(folder / "other")["model.safetensors"] != hash_run(undisturbed)["model.safetensors"]


def test_kill_9_in_an_evaluation(folder):
    run_until_killed("measure", 2, *long_words("killed"), cwd=folder)
    run_weft_process("resume", "killed", cwd=folder)
    run_weft_process(
        *long_words("apart"), cwd=folder
    )  # in a process of its own too: others may have changed how ours rounds
    assert hash_run(folder / "killed") == hash_run(folder / "apart")


@pytest.mark.parametrize(
    ("name", "said"),
    [("book.txt", "the text in book.txt has changed"), ("nli.csv", "the pairs in nli.csv have changed")],
)
def test_changed_data_are_refused_by_name(folder, undisturbed, tmp_path, name, said):
    for file in ("book.txt", "nli.csv"):
        shutil.copy(folder / file, tmp_path)
    shutil.copytree(undisturbed, tmp_path / "run")
    run_weft("resume", "run", cwd=tmp_path)  # a negative control: moved, not changed
    with (tmp_path / name).open("a") as file:
        file.write("a fine film,a dull house,same\n")
    result = run_weft("resume", "run", "--steps", "2", cwd=tmp_path, check=False)
    assert result.returncode == 1 and said in result.stderr and len(read_error_lines(result)) <= 3
