"""`weft train fill --model t5`: spans are learned, measured, filled in and learned on from, the same after a crash."""

import json
import math

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
    set_flags,
)
from fixtures.runs import hash_run, read_metrics
from fixtures.tables import write_translation_table
from fixtures.texts import write_book
from weft.checkpoints.files import read_tensors
from weft.data.spans import SpanMarks, restored
from weft.generation import Hypothesis
from weft.objectives import ObjectiveConfig
from weft.tasks.fill.span_filler import SpanFiller
from weft.tasks.fill.spans import SPAN_TOKENS, SpanPretraining
from weft.tasks.fill.task import training_of
from weft.tasks.fill.texts import FillConfig, read_fill_source, read_texts
from weft.training import Ranks

STEPS = 22
T5 = ["--model", "t5", "--tokenizer", "bpe"]  # later words win
PARTS = {"spans_loss", "spans_accuracy"}


def words_for(out, *more, steps=STEPS, data="book.txt"):
    return filler_command(data, str(out), steps, *T5, *set_flags(*SAVE_OFTEN), *more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spans")
    write_book(folder / "book.txt")
    write_book(folder / "other.txt", 5)
    write_translation_table(folder / "pairs.tsv", 40)
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    """A run, and the last event of its training."""
    event = read_last_event(run_weft(*words_for("run"), "--json", cwd=folder))
    return folder / "run", event


# -- learning ---------------------------------------------------------------------------------


def test_spans_are_learned_and_in_the_log(trained):
    run, event = trained
    lines = read_metrics(run)
    for line in lines:
        assert {n for n in line if n.endswith(("_loss", "_accuracy")) and "validation" not in n} == PARTS
        assert line["loss"] == line["spans_loss"] and 0 <= line["spans_accuracy"] <= 1
    config = json.loads((run / "config.json").read_text())
    assert abs(lines[0]["loss"] - math.log(config["model"]["vocab_size"])) < 1
    assert lines[-1]["loss"] < lines[0]["loss"] - 2 and lines[-1]["spans_accuracy"] > 0.3
    last = lines[-1]
    assert {n for n in last if n.startswith("validation_")} == {"validation_loss", *(f"validation_{n}" for n in PARTS)}
    assert event["validation_loss"] == min(line.get("validation_loss", math.inf) for line in lines)
    assert event["spans_accuracy"] > 0.3 and event["measured_on"] == "validation"
    assert config["objective"]["tasks"] == ["spans"] and config["model"]["kind"] == "t5"
    assert f'weft fill {run.name} "' in (run / "README.md").read_text()


def test_the_tokenizer_has_what_a_t5_needs(trained):
    opened = package.load(trained[0])
    tokenizer, names = opened.tokenizer, json.loads((trained[0] / "tokenizer.json").read_text())["added_tokens"]
    assert [token["content"] for token in names][1:] == list(SPAN_TOKENS) and len(tokenizer.sentinels) == 100
    assert opened.model_config.start == tokenizer.special.pad != tokenizer.end


def made_of(run, folder, **changes):
    raw = json.loads((run / "config.json").read_text())
    config = FillConfig.from_dict({k: v for k, v in raw.items() if k not in ("task", "format")}).override(changes)
    config = config.override({"data.train": (str(folder / "book.txt"),)})
    texts = read_texts(read_fill_source(config.data), config.data, package.load(run).tokenizer, lambda _: None)
    made = training_of(config, texts)
    assert isinstance(made, SpanPretraining)
    return made


def test_what_is_held_out_is_asked_about_alike(trained, folder):
    made, other = (made_of(trained[0], folder, **{"training.seed": seed}) for seed in (0, 1))
    count = made.learned.per_epoch
    first, again, later, seeded = (
        run.samples(np.array([number])) for run, number in ((made, 0), (made, 0), (made, count), (other, 0))
    )
    assert torch.equal(first.source, again.source) and torch.equal(first.written, again.written)
    assert not torch.equal(first.source, later.source) and not torch.equal(first.source, seeded.source)
    assert int(first.written[0, 0]) == made.config.model.start != made.marks.end == int(first.wanted[-1])
    judged = [run.evaluation_samples["validation"].batch(np.arange(3)).source for run in (made, other)]
    assert np.array_equal(*judged)


@pytest.mark.parametrize("changes", [{}, {"objective.spans.span": 1.0}, {"objective.spans.share": 0.8}], ids=str)
def test_samples_fit_into_the_length(trained, folder, changes):
    made = made_of(trained[0], folder, **changes)
    row = made.learned.batch(np.arange(made.learned.per_epoch))
    longest = max(row.source_lengths.max(), row.target_lengths.max())
    assert made.length == 24 and 20 <= longest <= 24
    marks, text = SpanMarks.of(made.tokenizer), made.texts.parts["train"]
    found = sum(len(restored(*pair, marks)) for pair in row.pairs())
    assert 0.9 * len(text.ids) < found <= len(text.ids)  # white space between sentences is left out


def test_a_crash_changes_nothing(trained, folder):
    run_until_crash((SpanPretraining, "measure", 2, True), *words_for("stopped"), cwd=folder)
    assert len(read_metrics(folder / "stopped")) < STEPS
    run_weft("resume", "stopped", cwd=folder)
    assert hash_run(folder / "stopped") == hash_run(trained[0])
    assert [line["step"] for line in read_metrics(folder / "stopped")] == list(range(1, STEPS + 1))


# -- measuring --------------------------------------------------------------------------------


def test_evaluate_gives_what_training_measured(trained, folder):
    run, event = trained
    found = json.loads(run_weft("evaluate", str(run), "--json", cwd=folder).stdout)
    assert found["measured_on"] == "validation"
    assert found["loss"] == pytest.approx(event["validation_loss"], abs=1e-6)
    assert found["spans_accuracy"] == pytest.approx(event["spans_accuracy"], abs=1e-6)
    assert f"spans {event['spans_accuracy']:.1%} right" in run_weft("evaluate", str(run), cwd=folder).stdout
    other = json.loads(run_weft("evaluate", str(run), "other.txt", "--json", cwd=folder).stdout)
    assert other["measured_on"] == "data" and other["loss"] != found["loss"]


def test_accuracy_and_loss_are_those_of_single_tokens(trained, folder):
    """Against a sum over one sample at a time, token by token."""
    made, model = made_of(trained[0], folder), package.load(trained[0]).model
    samples, nats, right, count = made.evaluation_samples["validation"], 0.0, 0, 0
    with torch.no_grad():
        for number in range(samples.per_epoch):
            (source, target), start = next(samples.batch(np.array([number])).pairs()), [made.config.model.start]
            logits = model(torch.from_numpy(source)[None], torch.tensor([[*start, *target[:-1].tolist()]]))[0]
            chosen = logits.log_softmax(-1)[torch.arange(len(target)), torch.from_numpy(target)]
            nats, count = nats - float(chosen.sum()), count + len(target)
            right += int((logits.argmax(-1) == torch.from_numpy(target)).sum())
    found = made.measure(model, "validation", Ranks())
    assert found["validation_loss"] == pytest.approx(nats / count, abs=1e-5)
    assert found["validation_spans_accuracy"] == pytest.approx(right / count)


# -- using ------------------------------------------------------------------------------------


def test_gaps_are_filled(trained, folder):
    run = package.load(trained[0])
    texts = ["the cat [MASK] on the mat", "[MASK] cat sat [MASK] and then ran"]
    found = run.fill(texts, top=3)
    assert [len(each.gaps) for each in found] == [1, 2]
    for each, text in zip(found, texts, strict=True):  # in a list as alone
        alone = run.fill(text, top=3)
        assert alone.best == each.best and alone.gaps[0][0].text == each.gaps[0][0].text
        assert alone.gaps[0][0].probability == pytest.approx(each.gaps[0][0].probability, abs=1e-5)
    for each in found:
        assert "[MASK]" not in each.best and "<" not in each.best
        for gap in each.gaps:
            shares = [candidate.probability for candidate in gap]
            assert 1 <= len(gap) <= 3 and shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1 + 1e-9
            assert len({candidate.text.strip() for candidate in gap}) == len(gap) and all(c.text.strip() for c in gap)
    (one,) = found[0].gaps
    assert found[0].best.split() == f"the cat {one[0].text} on the mat".split()
    line = json.loads(run_weft("fill", str(trained[0]), texts[0], "--json", "--top", "3", cwd=folder).stdout)
    assert line == run.fill(texts[0], top=3).to_dict()


def test_answers_are_put_together_gap_by_gap(trained):
    """Spaces count once, blank answers not at all, shares are those of exp(log-probability)."""
    filler = SpanFiller(package.load(trained[0]))
    (zero, one, two), encode = filler.marks.sentinels[:3].tolist(), filler.run.tokenizer.encode

    def answer(first, second, share):
        tokens = [zero, *encode(first).tolist(), one, *encode(second).tolist(), two]
        return Hypothesis(tokens, 0.0, math.log(share) - 5, True)

    answers = [answer(" cat", " mat", 0.2), answer("cat ", " tree", 0.1), answer(" dog", " mat", 0.1)]
    found = filler._filled("the _ on a _", "_", [answer(" ", " mat", 0.5), *answers], top=2)
    assert found.best == "the cat on a mat"
    told = [{c.text: round(c.probability, 6) for c in gap} for gap in found.gaps]
    assert told == [{"cat": 0.75, "dog": 0.25}, {"mat": 0.75, "tree": 0.25}]
    blank = filler._filled("the _ on a _", "_", [answer("", "", 0.5)], top=2)
    assert [gap[0].text for gap in blank.gaps] == ["", ""] and blank.best == "the  on a "
    inside = filler._filled("the_ on_", "_", answers[:1], top=2)
    assert inside.best == "the cat on mat" and inside.gaps[0][0].text == " cat"


def test_what_it_cannot_fill_is_refused(trained, folder):
    for text, said in (("no gap", "no [MASK]"), ("a [MASK] b " * 30, "at most 24"), ("[MASK]" * 100, "at most 99")):
        result = run_weft("fill", str(trained[0]), text, cwd=folder, check=False)
        assert result.returncode == 1 and said in result.stderr and len(read_error_lines(result)) <= 3


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*T5, *set_flags("objective.tasks=masked")], "objective.tasks = masked for a t5"),
        ([*T5, *set_flags("objective.tasks=spans,masked")], "spans alone"),
        ([*T5, *set_flags("objective.tasks=span")], "did you mean 'spans'?"),
        ([*T5, *set_flags("objective.masked_share=0.3")], "objective.spans.share"),
        ([*T5, "--tokenizer", "wordpiece"], "does not give text back"),
        ([*T5, *set_flags("data.length=3")], "more: spans need room"),
        ([*T5, *set_flags("model.start=100000")], "start = 100000"),
        (set_flags("objective.tasks=spans"), "objective.tasks = spans for a bert"),
        (set_flags("objective.spans.share=0.3"), "objective.spans for a bert"),
    ],
)
def test_each_family_learns_what_it_can(folder, words, said):
    result = run_weft(*filler_command("book.txt", "refused", 2, *words), cwd=folder, check=False)
    assert result.returncode == 2 and said in result.stderr, result.stderr
    assert len(read_error_lines(result)) <= 3 and not (folder / "refused").exists()


def test_the_usual_objective_is_that_of_the_family():
    assert (
        ObjectiveConfig.usual(spans=True).tasks == ("spans",)
        and ObjectiveConfig.usual(spans=False) == ObjectiveConfig()
    )
    for family in ("t5", "bert"):
        ObjectiveConfig.usual(spans=family == "t5").check_family(family, spans=family == "t5")


def test_the_usual_tokenizer_is_unigram(folder):
    words = [*filler_command("book.txt", "none", 2), "--model", "t5", "--dry-run", "--json"]
    words = [word for n, word in enumerate(words) if "--tokenizer" not in words[max(0, n - 1) : n + 1]]
    plan = json.loads(run_weft(*words, cwd=folder).stdout.splitlines()[-1])
    assert (plan["tokenizer"], plan["model"], plan["tasks"]) == ("unigram", "t5", ["spans"])


# -- learning on ------------------------------------------------------------------------------


def further(task, data, out, start, *more):
    return ["train", task, data, "--from", str(start), "--out", out, "--steps", "2", "--threads", "1", *more]


def test_it_begins_where_the_other_ended(trained, folder):
    before = read_tensors(trained[0] / "model.safetensors")
    run_weft(*further("fill", "other.txt", "begun", trained[0], *set_flags("training.keep=9")), cwd=folder)
    run_weft(*further("translate", "pairs.tsv", "pairs", trained[0], *set_flags("training.keep=9")), cwd=folder)
    for run in ("begun", "pairs"):
        start = read_tensors(folder / run / "checkpoints" / "step-0" / "model.safetensors")
        assert before.keys() == start.keys() and all(torch.equal(before[name], start[name]) for name in before)
        assert len(read_metrics(folder / run)) == 2
    assert isinstance(package.load(folder / "pairs").translate("the film was fine").text, str)
    result = run_weft(
        *further("fill", "other.txt", "no", folder / "begun", *set_flags("objective.tasks=masked")),
        cwd=folder,
        check=False,
    )
    assert result.returncode == 2 and "for a t5" in result.stderr and not (folder / "no").exists()


def test_a_t5_without_sentinels_is_no_start(folder):
    sizes = set_flags("model.width=16", "model.depth=1", "model.attention.heads=2", "training.evaluate_every=2")
    words = ["train", "translate", "pairs.tsv", "--model", "t5", "--out", "plain", "--steps", "2", "--threads", "1"]
    run_weft(*words, *sizes, cwd=folder)
    result = run_weft(*further("fill", "other.txt", "no", "plain"), cwd=folder, check=False)
    assert result.returncode == 1 and "no sentinels" in result.stderr and not (folder / "no").exists()
    result = run_weft("fill", "plain", "a [MASK]", cwd=folder, check=False)
    assert result.returncode == 1 and "no sentinels" in result.stderr
