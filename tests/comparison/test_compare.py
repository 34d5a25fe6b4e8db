"""A comparison: what is the same for all, what is kept, what is resumed, and what a failure costs."""

import html
import json
import shlex
import shutil
import signal
from typing import Any

import pytest

import weft
from comparison.tiny_comparisons import KINDS, TINY_SETTINGS, make_trial_spec, run_comparison
from fixtures.commands import TINY_TRANSLATOR, run_weft
from fixtures.comparisons import DIVERGES, run_without_child
from fixtures.images import write_image_folder
from fixtures.runs import hash_run
from fixtures.tables import write_reviews, write_translation_table
from fixtures.texts import make_text
from weft.comparison import outcome
from weft.comparison.charts import curves_of
from weft.comparison.page import page
from weft.comparison.planning import make_plan
from weft.comparison.session import Session
from weft.comparison.trials import Trial, recipe_of, words_of
from weft.config import _parse
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.tasks import planning
from weft.tasks.recipe import Recipe, read_recipe
from weft.tasks.request import make_request

pytestmark = pytest.mark.usefixtures("in_process", "folder")
ALONE = {"options": {"tokenizer": None, "steps": 2}}


def silent(event):
    pass


def read_config(run):
    return json.loads((run / "config.json").read_text())


def test_all_share_tokenizer_split_and_seed(folder):
    result = run_comparison(options={"tokenizer": "bpe", "seed": 3})
    first, second = (folder / "c" / name for name in ("softmax", "hard"))
    assert (first / "tokenizer.json").read_bytes() == (second / "tokenizer.json").read_bytes()
    one, other = read_config(first), read_config(second)
    for section in ("data", "tokenizer", "training"):
        assert one[section] == other[section]
    assert one["training"]["seed"] == 3
    assert one["model"].pop("attention")["kind"] == "softmax" and other["model"].pop("attention")["kind"] == "hard"
    assert one["model"] == other["model"]
    assert [row["status"] for row in result.rows] == ["finished", "finished"]


def test_sizes_are_planned_once_on_a_machine_whose_speed_changes(folder, monkeypatch):
    speeds = iter([1e9, 1e12, 1e10, 1e13, 1e9, 1e12, 1e9, 1e12, 1e10, 1e13, 1e9, 1e12])
    monkeypatch.setattr(planning, "machine_speed", lambda: next(speeds))
    few, options = {"model.depth": "1", "model.max_length": "16"}, {"steps": 1, "tokenizer": "characters"}
    orders = make_plan(make_trial_spec(sizes=few, options=options), folder / "c", silent).orders
    sizes = {(order.parameters, order.recipe["model.width"]) for order in orders}
    assert len(sizes) == 1
    alone = [width_of(make_request(["book.txt"], options, changes=few)) for _ in range(2)]
    assert alone[0] != alone[1]  # left alone, each would have its own


def width_of(request):
    from weft.tasks.experiment import Experiment

    return Experiment.plan(request, silent).config.model.width


def test_a_variant_is_the_run_that_train_makes(folder):
    run_comparison()
    every = read_config(folder / "c" / "hard")["training"]["evaluate_every"]
    changes = {**TINY_SETTINGS, "model.attention.kind": "hard", "training.evaluate_every": every}
    weft.train("book.txt", task="generate", steps=4, tokenizer="characters", threads=1, set=changes, out="alone")
    assert hash_run(folder / "alone") == hash_run(folder / "c" / "hard")


def test_a_variant_can_be_trained_alone_by_its_recipe(folder):
    changes = {
        "training.optimizer.kind": "adamw",
        "model.attention": {"kind": "local", "window": 4},
        "model.tied": True,
    }
    run_comparison({"model.dropout": [0.1, 0.0]}, changes=changes, options={"text": None, "seed": 2})
    recipe = folder / "c" / "dropout-0.1.toml"
    assert "as weft compare planned it. Alone:  weft train --config c/dropout-0.1.toml" in recipe.read_text()
    words = shlex.split(recipe.read_text().splitlines()[0].partition("weft ")[2].partition("weft ")[2])
    run_weft(*words, "--out", "alone", cwd=folder)
    assert hash_run(folder / "alone") == hash_run(folder / "c" / "dropout-0.1")
    assert read_config(folder / "alone") == read_config(folder / "c" / "dropout-0.1")


@pytest.mark.parametrize("value", ["softmax,local", True, None, 3, 1e-8, [0.8, 0.9], ["a, b", "c"], {"kind": "local"}])
def test_a_recipe_and_words_say_what_was_asked_for(folder, value):
    given = {"model.attention": "local", "training.batch": 5, "data.validation_share": None}
    (folder / "r.toml").write_text('[model]\nattention = "local"\n[training]\nbatch = 5\n')
    options = {"steps": 3, "text": "-x", "start": "runs/a b", "freeze": 2, "test": ("a, b.txt",), "watch": True}
    request = make_request(["book.txt"], options, task="generate", config="r.toml", changes={"model.x": value})
    request.recipe = Recipe("", None, given | {"model.attention.heads": 2, "tokenizer.kind": "bytes"})
    trial = Trial("one", {}, recipe_of(request), words_of(request))
    (folder / "one.toml").write_text(trial.to_toml(folder / "one.toml"))
    again = read_recipe("one.toml")
    assert again.settings | {"task": again.task} == trial.recipe | {"task": "generate"}
    assert {key: again.settings[key] for key in given} == given | {"data.validation_share": "none"}
    assert again.settings["model.attention.heads"] == 2 and again.settings["data.test"] == ["a, b.txt"]
    *words, said = trial.words
    assert words == ["--from=runs/a b", "--text=-x", "--freeze=2", "--watch"]
    read = _parse(said.removeprefix("--set=model.x="), Any if value is None else type(value))
    assert said.startswith("--set=model.x=") and read == ("none" if value is None else value)


def test_what_cannot_be_written_down_is_refused(folder):
    with pytest.raises(ConfigError, match="a setting cannot be written down"):
        words_of(make_request(["book.txt"], {}, changes={"model.x": object()}))


def test_rows_say_what_a_run_costs_and_how_good_it_is(folder):
    result = run_comparison()
    for row in result.rows:
        assert row["steps"] == 4 and row["parameters"] > 1000 and row["seconds"] > 0 and row["peak_memory"] > 2**20
        assert row["measured_on"] == "validation" and row["bits_per_byte"] > 0
        found = weft.load(row["run"]).evaluate()
        assert found["loss"] == pytest.approx(row["validation_loss"], abs=1e-6)
    softmax, hard = result.rows
    assert softmax["flops"] > 4 * 6 * 15 * softmax["parameters"]
    assert hard["flops"] == softmax["flops"]  # it compares as many pairs
    assert result.metric == "bits_per_byte"
    assert result.best == min(result.rows, key=lambda row: row["bits_per_byte"])["model"]
    assert json.loads((folder / "c" / "compare.json").read_text())["models"] == result.rows


def test_a_test_set_decides_and_more_accuracy_is_better(folder):
    write_reviews(folder / "a.csv")
    write_reviews(folder / "b.csv", 24, seed=5)
    result = run_comparison(
        {"training.optimizer.learning_rate": [0.0001, 0.01]},
        data=["a.csv"],
        task="classify",
        changes={"training.optimizer.kind": "adamw", "model.max_length": "24", "training.batch": "16"},
        options={"test": ("b.csv",), "steps": 12, "tokenizer": "words"},
        out="d",
    )
    assert result.metric == "accuracy" and {row["measured_on"] for row in result.rows} == {"test"}
    assert [row["model"] for row in result.rows] == ["learning_rate-0.0001", "learning_rate-0.01"]
    assert result.best == max(result.rows, key=lambda row: (row["accuracy"], -row["validation_loss"]))["model"]
    assert "accuracy, on test" in repr(result)
    assert not any(isinstance(value, dict) for row in result.rows for key, value in row.items() if key != "settings")


def test_one_that_fails_does_not_lose_the_others(folder):
    result = run_comparison(DIVERGES)
    mad, sound = result.rows
    assert mad["status"] == "failed" and "the step was not taken" in mad["reason"] and "bits_per_byte" not in mad
    assert sound["status"] == "finished" and result.best == sound["model"] == "embedding_rate-0.01"
    assert "embedding_rate-1e+38: step" in repr(result)
    assert result.failed == [mad]


def test_what_a_model_cannot_do_is_found_before(folder):
    result = run_comparison({}, models=("gpt", "bert"))
    assert [row["status"] for row in result.rows] == ["finished", "failed"]
    assert "bert does not continue a text" in result.rows[1]["reason"] and not (folder / "c" / "bert").exists()
    with pytest.raises(UnsupportedError, match="bert-dropout-0: bert does not continue"):
        make_plan(make_trial_spec({"model.dropout": [0, 0.1]}, models=("bert",)), folder / "x", silent)


def test_what_is_finished_is_kept(folder, monkeypatch):
    before = run_comparison()
    shutil.rmtree(folder / "c" / "hard")
    made = []

    def train_here(words, *rest):
        made.append(words[-1])
        return run_without_child(words, *rest)

    monkeypatch.setattr(outcome, "run_in_child", train_here)
    again = Session.open("c").run(silent)
    assert made == ["--out=c/hard"]
    for old, new in zip(before.rows, again.rows, strict=True):
        assert old["validation_loss"] == new["validation_loss"]
    assert before.rows[0] == again.rows[0]


def interrupting(name, step):
    """Ctrl-C at this step of this variant."""
    now = [""]

    def report(event):
        if event["event"] == "variant":
            now[0] = event["name"]
        if event["event"] == "step" and now[0] == name and event["step"] == step:
            signal.raise_signal(signal.SIGINT)

    return report


@pytest.mark.parametrize("name", ["softmax", "hard"])
def test_an_interrupted_one_is_resumed_to_the_same_bytes(folder, name):
    whole = run_comparison(out="whole", options={"steps": 8})
    with pytest.raises(KeyboardInterrupt):
        run_comparison(options={"steps": 8}, report=interrupting(name, 3))
    stopped = json.loads((folder / "c" / "compare.json").read_text())["models"]
    states = [row["status"] for row in stopped]
    assert states == (["interrupted", "waiting"] if name == "softmax" else ["finished", "interrupted"])
    half = next(row for row in stopped if row["model"] == name)
    assert half["steps"] == 3
    told = []
    result = Session.open("c").run(told.append)
    assert next(event["step"] for event in told if event["event"] == "step") == 4  # nothing is done twice
    for old, new in zip(whole.rows, result.rows, strict=True):
        assert hash_run(folder / "whole" / old["model"]) == hash_run(folder / "c" / new["model"])
        assert new["status"] == "finished" and new["validation_loss"] == old["validation_loss"]
    assert next(row for row in result.rows if row["model"] == name)["seconds"] > half["seconds"]


def test_what_was_begun_without_settings_begins_anew(folder):
    made = Session.new(make_trial_spec(), "c", silent)
    made.run(silent)
    shutil.rmtree(folder / "c" / "hard")
    (folder / "c" / "hard").mkdir()
    (folder / "c" / "hard" / "tokenizer.json").write_text("half a tok")
    assert Session.open("c").run(silent).rows[1]["status"] == "finished"


def test_what_was_finished_when_nobody_was_there_to_hear_it(folder):
    """The comparison was killed in the last moment of a run: there is nothing left to train, and nothing is lost."""
    before = run_comparison().rows[1]
    (folder / "c" / "hard" / "outcome.json").unlink()
    timing = folder / "c" / "hard" / "timing.jsonl"
    timing.write_text(timing.read_text() + '{"step": 4, "seconds": 1000.0}\n')
    told = []
    again = Session.open("c").run(told.append).rows[1]
    assert not [event for event in told if event["event"] == "step"]
    own = ("seconds", "peak_memory")
    assert {k: v for k, v in again.items() if k not in own} == {k: v for k, v in before.items() if k not in own}
    assert again["seconds"] > 1000


def test_data_that_change_in_between_are_no_comparison(folder):
    run_comparison()
    shutil.rmtree(folder / "c" / "hard")
    (folder / "book.txt").write_text(make_text(1500, seed=1))
    rows = Session.open("c").run(silent).rows
    assert [row["status"] for row in rows] == ["finished", "failed"]
    assert "the data have changed since the comparison began" in rows[1]["reason"]


def test_a_tokenizer_may_vary_where_text_is_judged_and_not_otherwise(folder):
    often = {"training.evaluate_every": "2"}
    result = run_comparison({"tokenizer.kind": ["characters", "bytes"]}, options={"tokenizer": None}, changes=often)
    assert [row["status"] for row in result.rows] == ["finished", "finished"]
    one, other = (folder / "c" / name / "tokenizer.json" for name in ("characters", "bytes"))
    assert one.read_bytes() != other.read_bytes()
    title, curves = curves_of(result)
    assert (
        title == "bits per byte, held out" and curves_of(run_comparison(out="d", changes=often))[0] == "held-out loss"
    )
    for curve, row in zip(curves, result.rows, strict=True):
        assert curve.points[-1][2] == pytest.approx(row["bits_per_byte"])
    filling = make_trial_spec({"tokenizer.kind": ["wordpiece", "words"]}, task="fill", options={"tokenizer": None})
    with pytest.raises(ConfigError, match="a loss for other tokens is another measure"):
        make_plan(filling, folder / "x", silent)


def test_the_first_models_tokenizer_is_for_all(folder):
    with pytest.raises(ConfigError, match="'wordpiece' is not for a t5"):  # which would have taken unigram
        make_plan(
            make_trial_spec({}, task="fill", models=("bert", "t5"), options={"tokenizer": None}), folder / "x", silent
        )
    with pytest.raises(ConfigError, match="need different special tokens"):
        make_plan(
            make_trial_spec({}, task="fill", models=("t5", "bert"), options={"tokenizer": "words"}),
            folder / "x",
            silent,
        )


def test_words_for_how_long(folder):
    plan = make_plan(make_trial_spec(options={"steps": None, "minutes": 2.0}), folder / "c", silent)
    assert plan.words() == "2 runs of 2 minutes each, about 4 minutes in all"
    plan = make_plan(make_trial_spec(), folder / "c", silent)
    assert plan.words() == "2 runs of 4 steps each"
    assert "seconds in all" in make_plan(make_trial_spec(options={"steps": 50}), folder / "c", silent).words()


def test_evaluations_on_the_way_do_not_eat_the_time(folder):
    for steps, every in ((4, 0), (50, 5)):
        orders = make_plan(make_trial_spec(options={"steps": steps}), folder / "c", silent).orders
        assert [order.recipe["training.evaluate_every"] for order in orders] == [every] * 2


def test_a_folder_has_one_comparison(folder):
    run_comparison()
    with pytest.raises(DataError, match="holds a comparison already\ngo on with it:  weft compare --resume c"):
        run_comparison()
    (folder / "full").mkdir()
    (folder / "full" / "file").touch()
    with pytest.raises(DataError, match="full is there already"):
        run_comparison(out="full")
    with pytest.raises(DataError, match="full is no comparison"):
        Session.open("full")
    with pytest.raises(DataError, match="nowhere does not exist"):
        Session.open("nowhere")
    (folder / "c" / "plan.json").write_text('{"format": 1, "orders": [{"nam": 1}]}')
    with pytest.raises(DataError, match="damaged"):
        Session.open("c")


def test_one_that_was_trained_further_says_so(folder):
    from weft.tasks.experiment import Experiment

    run_comparison()
    Experiment.reopen("c/hard", silent).extend(steps=2).fit()
    row = Session.open("c").run(silent).rows[1]
    assert row["steps"] == 4 and row["note"] == "trained further since: 6 steps now"


def test_from_python(folder):
    result = weft.compare(
        "book.txt",
        task="generate",
        vary={"model.width": (16, 32)},
        set={key: value for key, value in TINY_SETTINGS.items() if key != "model.width"},
        tokenizer="characters",
        threads=1,
        steps=2,
        out="p",
    )
    assert [row["model"] for row in result.rows] == ["width-16", "width-32"]
    assert result.rows[1]["parameters"] > result.rows[0]["parameters"]
    assert (folder / "p" / "compare.html").exists() and (folder / "p" / "compare.png").exists()
    assert "width-32" in result._repr_html_() and "width-16" in repr(result)
    assert repr(weft.compare(resume="p")) == repr(result)
    with pytest.raises(ConfigError, match="resume alone"):
        weft.compare(resume="p", steps=3)
    for unknown, meant in (({"model": "gpt"}, "models"), ({"step": 3}, "steps")):
        with pytest.raises(ConfigError, match=f"unknown option .*\ndid you mean '{meant}'"):
            weft.compare("book.txt", **unknown)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"data": 3}, "data = 3\nexpected a path"),
        ({"validation": 0.1}, "validation = 0.1\nexpected a path"),
        ({"models": 3}, "models = 3\nexpected a list of names"),
        ({"models": ["gpt", 3]}, "expected a list of names"),
        ({"vary": ["model.width"]}, "expected settings by name"),
        ({"vary": {"model.width": 64}}, "model.width: 64\nexpected a list of values"),
        ({"set": "model.width=3"}, "expected settings by name"),
        ({"minutes": "five"}, "minutes = 'five'\nexpected a number"),
        ({"steps": 2.5}, "steps = 2.5\nexpected a whole number"),
        ({"steps": True}, "steps = True\nexpected a whole number"),
        ({"seed": "0"}, "seed = '0'\nexpected a whole number"),
        ({"text": 3}, "text = 3\nexpected text"),
        ({"out": 3}, "out = 3"),
        ({"watch": 3}, "watch = 3\nexpected true or false"),
        ({"resume": 3}, "resume = 3"),
    ],
    ids=str,
)
def test_wrong_types_are_refused(folder, wrong, told):
    before = sorted(folder.iterdir())
    with pytest.raises(weft.WeftError) as error:
        weft.compare(**{"data": "book.txt", "vary": KINDS} | wrong)
    assert told in str(error.value) and sorted(folder.iterdir()) == before


def test_families_that_look_at_charts(folder):
    write_image_folder(folder / "bars", 40)
    result = run_comparison(
        {}, data=["bars"], task="classify", models=("vit", "resnet"), sizes={"training.batch": "16"}, **ALONE
    )
    assert [row["model"] for row in result.rows] == ["vit", "resnet"]
    assert [row["status"] for row in result.rows] == ["finished", "finished"] and result.metric == "accuracy"
    assert all(row["flops"] > 0 for row in result.rows)
    one, other = (read_config(folder / "c" / name) for name in ("vit", "resnet"))
    assert one["data"] == other["data"] and one["training"]["precision"] == other["training"]["precision"]


def test_models_that_translate(folder):
    write_translation_table(folder / "pairs.tsv", 60)
    sizes = dict(size.split("=") for size in TINY_TRANSLATOR if "rate" not in size)
    rates = {"training.optimizer.learning_rate": [0.05, 0.01]}
    result = run_comparison(rates, data=["pairs.tsv"], task="translate", sizes=sizes, **ALONE)
    assert [row["status"] for row in result.rows] == ["finished", "finished"] and result.metric == "bleu"
    files = [(folder / "c" / row["model"] / "tokenizer.json").read_bytes() for row in result.rows]
    assert files[0] == files[1]


def test_beginning_with_another_model(folder):
    weft.train("book.txt", task="generate", steps=2, tokenizer="characters", threads=1, set=TINY_SETTINGS, out="base")
    rates = {"training.optimizer.learning_rate": [0.001, 0.01]}
    result = run_comparison(
        rates, sizes={"training.batch": "6"}, options={"tokenizer": None, "steps": 2, "start": "base"}
    )
    assert [row["status"] for row in result.rows] == ["finished", "finished"]
    for row in result.rows:
        assert read_config(folder / "c" / row["model"])["start"] == "base"
        assert (folder / "c" / row["model"] / "tokenizer.json").read_bytes() == (
            folder / "base" / "tokenizer.json"
        ).read_bytes()


def test_a_recipe_holds_for_all(folder):
    (folder / "r.toml").write_text(
        '[data]\ntrain = ["book.txt"]\n[model]\nwidth = 24\ndepth = 1\nmax_length = 16\nattention.heads = 2\n'
        '[tokenizer]\nkind = "bytes"\n[training]\nsteps = 2\nbatch = 5\n'
    )
    result = run_comparison(data=(), task=None, sizes={}, config="r.toml", options={"tokenizer": None, "steps": None})
    found = [read_config(folder / "c" / row["model"]) for row in result.rows]
    assert [made["model"]["width"] for made in found] == [24, 24]
    assert [made["training"]["batch"] for made in found] == [5, 5]
    assert [made["tokenizer"]["kind"] for made in found] == ["bytes", "bytes"]


def test_every_variant_shows_what_it_writes_from_the_same_beginning(folder, in_process):
    found = run_comparison()
    samples = [row["sample"] for row in found.rows]
    assert samples[0]["prompt"] == samples[1]["prompt"] and samples[0]["prompt"] in make_text(1500)
    assert all(sample["text"] for sample in samples)
    assert samples[0]["text"] == weft.load("c/softmax").generate(samples[0]["prompt"], max_tokens=60, seed=0)
    assert samples[1]["text"] in html.unescape(page(found))
