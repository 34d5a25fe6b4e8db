"""The page of a run: everything in its place for every task, escaped, without a word to the outside, and never in the
way of a training."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

import weft as package
from fixtures.commands import classifier_command, generator_command, run_weft, set_flags
from fixtures.images import make_bars
from fixtures.runs import hash_run
from fixtures.tables import make_reviews, write_reviews, write_table
from fixtures.texts import make_text
from weft.cost.flops import walk
from weft.errors import DataError
from weft.report import training, training_report, write_report
from weft.report.run_files import RunFiles

NASTY = "<script>alert('x')</script>"
EVERY = set_flags("training.evaluate_every=4")
VOID = {"meta", "link", "img", "br", "circle", "line", "polyline", "rect"}


class Checked(HTMLParser):
    """Every tag is closed, every link on the page leads somewhere, no id is there twice."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.links = [], [], []
        self.feed(page)
        assert not self.open and len(set(self.ids)) == len(self.ids) and set(self.links) <= set(self.ids)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.ids += [named["id"]] if "id" in named else []
        self.links += [named["href"][1:]] if named.get("href", "").startswith("#") else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def page_of(run):
    page = (run / "report.html").read_text()
    Checked(page)
    outside = set(re.findall(r"https?://[^\s\"'<]*", page)) - {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not outside and "url(" not in page and "@import" not in page and "src=" not in page.replace('src="data:', "")
    assert "cannot be shown" not in page and "could be made" not in page
    return page


def part(page, ident):
    """One section of the page."""
    found = re.search(rf'<section id="{ident}">(.*?)(?=<section id="(?!inside-)|</main>)', page, re.DOTALL)
    return "" if found is None else found[1]


def sections(page):
    return re.findall(r'<section id="(\w+)"><h2>', page)


# -- a text -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A folder with a run that was asked for a sample; its names want to be markup."""
    path = tmp_path_factory.mktemp("book")
    (path / "a&b<i>.txt").write_text(make_text(1500))
    run_weft(*generator_command("a&b<i>.txt", "x&y<b>", 12, *EVERY, "--sample", "The <b>"), cwd=path)
    return path


def test_a_run_leaves_a_page_that_stands_alone(book):
    page = page_of(book / "x&y<b>")
    assert "<title>x&amp;y&lt;b&gt;</title>" in page and "a&amp;b&lt;i&gt;.txt" in page
    assert "<i>" not in page and "<b>." not in page
    expected = ["choices", "data", "curves", "cost", "examples", "inside", "commands", "settings"]
    assert sections(page) == expected
    assert "bits per byte" in page and "Measured on what was held out" in page and "12 steps" in page


def test_the_page_is_a_function_of_the_run_directory(book, monkeypatch):
    monkeypatch.chdir(book)
    assert (book / "x&y<b>" / "report.html").read_bytes().decode() == training_report(Path("x&y<b>"))


def test_curves_have_a_table_behind_each(book):
    shown = part(page_of(book / "x&y<b>"), "curves")
    assert shown.count("<circle") == 2 * 3 + 3 + 12 + 12  # held out, twice; bits; rate; gradient
    assert shown.count("<figure>") == shown.count("The numbers of this chart") == 5
    for title in ("Loss over steps", "Loss over time", "Learning rate", "Length of the gradient", "bits per byte"):
        assert title in shown


def test_what_it_costs_by_part(book):
    shown, config = part(page_of(book / "x&y<b>"), "cost"), package.load(book / "x&y<b>").model_config
    walked = walk(config, batch=6, length=config.max_length)
    assert {"feed-forward", "attention maps", "attention scores", "head"} <= set(walked.parts)
    for name, one in walked.parts.items():
        share = f"{one.total / walked.total.total:.1%}"
        assert f'<td>{name}</td><td class="number">{one.total:.4g}</td><td>{share}</td>' in shown
    assert shown.count("<figure>") == 2 and "Parameters by part" in shown


def test_what_was_chosen_is_kept_with_the_run(book):
    plan = json.loads((book / "x&y<b>" / "plan.json").read_text())
    assert plan["plan"]["steps"] == 12 and plan["plan"]["parameters"] > 1000 and "event" not in plan["plan"]
    assert plan["reasons"]["steps"] == "given by the user" and plan["reasons"]["model"] == "the usual one for generate"
    assert plan["reasons"]["size"].startswith("model.width = 16, model.depth = 2") and plan["warnings"]
    page = page_of(book / "x&y<b>")
    chosen = part(page, "choices")
    assert "Learning from" in chosen and "given by the user" in chosen and "12 steps of 6 texts" in chosen
    assert "very little to learn from" in part(page, "data")


def test_what_it_writes(book):
    shown = part(page_of(book / "x&y<b>"), "examples")
    sample = json.loads((book / "x&y<b>" / "sample.json").read_text())
    assert set(sample) == {"prompt", "before", "after"} and sample["before"] != sample["after"]
    assert "Before training" in shown and "After training" in shown and "<b>The &lt;b&gt;</b>" in shown
    found = json.loads((book / "x&y<b>" / "examples.json").read_text())
    assert [bool(one["prompt"]) for one in found["examples"]] == [False, True, True]
    assert make_text(1500).count(found["examples"][1]["prompt"] + found["examples"][1]["really"]) == 1
    assert shown.count("How it really goes on") == 2


def test_attention_and_health_are_shown(book):
    shown = part(page_of(book / "x&y<b>"), "inside")
    assert shown.count('class="attention"') == 2 and "Health of its softmax" in shown
    assert re.findall(r"<tr><td>(head [\d.]+)</td>", shown) == ["head 1.1", "head 1.2", "head 2.1", "head 2.2"]


def test_the_commands_are_exact(book):
    shown = part(page_of(book / "x&y<b>"), "commands")
    for words in ("generate", "resume", "evaluate", "inspect", "attention", "export"):
        assert f"<pre>weft {words} &#x27;x&amp;y&lt;b&gt;&#x27;" in shown  # in quotes, as a shell wants it
    assert "weft runs --report &#x27;x&amp;y" in shown


def test_a_run_that_was_watched(tmp_path):
    (tmp_path / "a.txt").write_text(make_text(1500))
    run_weft(*generator_command("a.txt", "run", 4, "--watch", *set_flags("training.evaluate_every=2")), cwd=tmp_path)
    shown = part(page_of(tmp_path / "run"), "inside")
    assert "Entropy of each layer while it learned" in shown and shown.count("<polyline") == 2


# -- the other tasks --------------------------------------------------------------------------


def test_a_classifier(tmp_path):
    rows = [(text.replace("the", "<i>the"), {"pos": NASTY, "neg": "a & b"}[label]) for text, label in make_reviews(64)]
    write_table(tmp_path / "t.csv", ["text", "label"], rows)
    write_table(tmp_path / "test.csv", ["text", "label"], rows[:20])
    run_weft(*classifier_command("t.csv", "run", 8, *EVERY, "--test", "test.csv"), cwd=tmp_path)
    page = page_of(tmp_path / "run")
    escaped = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;"
    assert "<i>" not in page and "<script>alert" not in page and escaped in page
    assert "Measured on the test data" in page and "Always answering" in page
    data, detail = part(page, "data"), part(page, "judged")
    assert escaped in data and data.count("<rect") == 2 and "words of a text" in data
    confusion = json.loads((tmp_path / "run" / "test.json").read_text())["confusion"]
    cells = re.findall(r'<td(?: style="--heat: [\d.]+")?>(\d+)</td>', detail)
    assert cells == [str(n) for row in confusion for n in row] and 'style="--heat: 1.00"' in detail
    examples = json.loads((tmp_path / "run" / "examples.json").read_text())
    assert examples["measured_on"] == "test" and len(examples["data"]["classes"]) == 2
    assert all(one["right"] == (one["answer"] == one["truth"]) for one in examples["examples"])
    assert "✓ right" in part(page, "examples") or "✗ wrong" in part(page, "examples")
    assert "Attention" in part(page, "inside")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("several", ("micro F1", "exactly right", "how sure")),
        ("number", ("Spearman", "Pearson", "the label, a number")),
        ("pairs", ("right", "words of the second", " ‖ ")),
        ("masked", ("right words", "Gaps filled in", "[MASK]")),
        ("questions", ("nats", "Loss over steps")),
        ("translator", ("BLEU", "What each word looked at", "words of a target", "By the length of the source")),
    ],
)
def test_every_task_has_its_page(desk, kind, words, monkeypatch):
    run = desk.run(kind)
    monkeypatch.chdir(desk.path)  # the data of the run are named from there
    training.made_report(run)  # the run may be from a test that got an empty page
    page = page_of(run)
    for word in words:
        assert word in page, word
    assert ("inside" in sections(page)) == (kind != "questions")


def test_images(tmp_path, monkeypatch):
    pixels, labels = make_bars(60)
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    small = {"model.width": 16, "model.depth": 1, "model.patch": 4, "model.stem": (), "model.attention.heads": 2}
    run = package.train((pixels, labels), task="classify", steps=6, out=str(tmp_path / "run"), threads=1, set=small)
    page = page_of(run.directory.path)  # written from Python too
    shown = part(page, "examples")
    found = json.loads((tmp_path / "run" / "examples.json").read_text())["examples"]
    assert shown.count("<img") == len(found) == 6 and shown.count("in truth") == sum(not one["right"] for one in found)
    assert "classifies images" in page and part(page, "inside").count('class="attention"') == 2
    assert "lying" in part(page, "data")


@pytest.mark.parametrize("model", ["3gram", "lstm", "skipgram"])
def test_models_without_attention(tmp_path, model):
    (tmp_path / "a.txt").write_text(make_text(4000))
    task = "embed" if model == "skipgram" else "generate"
    sizes = {"3gram": [], "lstm": ["model.width=16"], "skipgram": ["model.width=8"]}[model]
    tokens = [] if task == "embed" else ["--tokenizer", "words"]
    long = [] if model == "3gram" else ["--steps", "4"]
    words = ["train", task, "a.txt", "--model", model, *tokens, *long, "--out", "run", "--threads", "1"]
    run_weft(*words, *set_flags(*sizes), cwd=tmp_path)
    page = page_of(tmp_path / "run")
    assert "inside" not in sections(page) and "weft attention" not in page
    assert ("nearest words" if task == "embed" else "What it writes") in part(page, "examples")
    assert ("no steps to draw" in page) == (model == "3gram")


def test_a_run_that_began_from_another(desk, tmp_path):
    shutil.copy(desk.path / "single.csv", tmp_path)
    start = desk.run("masked")
    words = ["train", "classify", "single.csv", "--from", str(start), "--steps", "2", "--out", "run", "--threads", "1"]
    run_weft(*words, cwd=tmp_path)
    page = page_of(tmp_path / "run")
    assert f"begun from {start}" in page and "comes with the weights it began from" in part(page, "choices")


# -- again, further, and without --------------------------------------------------------------


def test_a_report_changes_nothing_of_the_run(tmp_path, monkeypatch):
    """The same bytes with and without one, and after a resume."""
    (tmp_path / "a.txt").write_text(make_text(1500))
    run_weft(*generator_command("a.txt", "with", 8, *EVERY), cwd=tmp_path)
    monkeypatch.setattr("weft.report.training.collect_examples", None)
    monkeypatch.setattr("weft.report.training.training_report", None)
    run_weft(*generator_command("a.txt", "without", 8, *EVERY), cwd=tmp_path)
    assert not (tmp_path / "without" / "report.html").exists()
    monkeypatch.undo()
    assert hash_run(tmp_path / "with") == hash_run(tmp_path / "without")
    run_weft("resume", "with", "--steps", "4", cwd=tmp_path)
    run_weft("resume", "without", "--steps", "4", cwd=tmp_path)
    assert hash_run(tmp_path / "with") == hash_run(tmp_path / "without")
    page = page_of(tmp_path / "with")
    assert page.replace("with", "without").count("12 steps") == page.count("12 steps") > 0
    assert (
        "In the end there were 12 steps instead of 8" in page and "given by the user" in page
    )  # the plan is still there


def test_examples_are_made_anew_for_new_weights_alone(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(make_text(1500))
    run_weft(*generator_command("a.txt", "run", 4), cwd=tmp_path)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "run" / "examples.json"
    first = json.loads(file.read_text())
    made = []
    real = training.collect_examples
    monkeypatch.setattr(training, "collect_examples", lambda run: made.append(run) or real(run))
    write_report("run")
    assert not made
    run_weft("resume", "run", "--steps", "4", cwd=tmp_path)
    assert len(made) == 1 and json.loads(file.read_text())["weights"] != first["weights"]


def test_an_older_run_gets_one_too(tmp_path):
    write_reviews(tmp_path / "t.csv")
    run_weft(*classifier_command("t.csv", "run", 4), cwd=tmp_path)
    for name in ("plan.json", "examples.json", "report.html", "timing.jsonl", "environment.json"):
        (tmp_path / "run" / name).unlink()
    result = run_weft("runs", "--report", "run", cwd=tmp_path)
    page = page_of(tmp_path / "run")
    assert "report.html" in result.stdout and "did not write its plan down" in page and "over time" not in page
    assert json.loads(run_weft("runs", "--report", "run", "--json", cwd=tmp_path).stdout) == {
        "report": "run/report.html"
    }


def test_without_its_data_the_rest_is_there(book, tmp_path, monkeypatch):
    shutil.copytree(book / "x&y<b>", tmp_path / "run")
    (tmp_path / "run" / "examples.json").unlink()
    monkeypatch.chdir(tmp_path)
    assert write_report("run") is not None
    page = (tmp_path / "run" / "report.html").read_text()
    assert "cannot be told now" in page and "a&amp;b" in page and "From nothing" in page
    found = json.loads((tmp_path / "run" / "examples.json").read_text())
    assert list(found["problems"]) == ["data"] and len(found["examples"]) == 1


def test_a_broken_part_is_shown_in_its_place(tmp_path, monkeypatch, caplog):
    (tmp_path / "a.txt").write_text(make_text(1500))

    def broken(files):
        raise ValueError(f"no luck {NASTY}")

    changed = tuple((ident, title, broken if ident == "cost" else make) for ident, title, make in training.SECTIONS)
    monkeypatch.setattr(training, "SECTIONS", changed)
    monkeypatch.setattr("weft.tasks.sources.Source.facts", broken)
    result = run_weft(*generator_command("a.txt", "run", 4), cwd=tmp_path)
    assert result.returncode == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "This part cannot be shown: ValueError: no luck &lt;script&gt;" in part(page, "cost")
    assert "<script>alert" not in page and "cannot be told now: ValueError" in part(page, "data")
    assert "Loss over steps" in page and "the part 'cost' of the report" in caplog.text


def test_no_page_at_all_does_not_end_a_training(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(make_text(1500))
    monkeypatch.setattr(training, "page", None)
    result = run_weft(*generator_command("a.txt", "run", 4), cwd=tmp_path)
    assert result.returncode == 0 and not (tmp_path / "run" / "report.html").exists()
    assert "Done in" in result.stderr and "report.html" not in result.stderr
    refused = run_weft("runs", "--report", "run", cwd=tmp_path, check=False)
    assert refused.returncode == 1 and "no report of run can be made: TypeError: " in refused.stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_who_does_not_wait_for_the_page_has_the_rest(tmp_path, monkeypatch, options):
    (tmp_path / "a.txt").write_text(make_text(1500))

    def stop(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "made_report", stop)
    result = run_weft(*generator_command("a.txt", "run", 4, *options), cwd=tmp_path)
    assert result.returncode == 0 and not (tmp_path / "run" / "report.html").exists()
    assert '"event": "done"' in result.stdout if options else "Done in" in result.stderr


def test_large_data_are_not_read_again(book, tmp_path, monkeypatch):
    write_reviews(tmp_path / "t.csv")
    run_weft(*classifier_command("t.csv", "run", 4), cwd=tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "examples.json").unlink()
    monkeypatch.setattr("weft.tasks.data_facts.MAX_REREAD_BYTES", 100)
    write_report("run")
    found = json.loads((tmp_path / "run" / "examples.json").read_text())
    assert found["problems"] == {} and found["data"] == {} and "examples" not in found
    page_of(tmp_path / "run")


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(DataError, match="not a run"):
        write_report(tmp_path)
    for words, code in ((("--report", "nothing"), 1), (("--report", "a", "--remove", "b"), 2), (("--report", ""), 2)):
        assert run_weft("runs", *words, cwd=tmp_path, check=False).returncode == code


def test_half_a_log_is_half_a_curve(book, tmp_path):
    shutil.copytree(book / "x&y<b>", tmp_path / "run")
    log = tmp_path / "run" / "metrics.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:5]) + '{"step": 6, "lo')
    (tmp_path / "run" / "test.json").write_text("{")
    cut = '{"step": {"step": 7, "seconds": 9}\n'  # a crash, and the next line behind it
    (tmp_path / "run" / "timing.jsonl").write_text(
        '{"step": 1, "seconds": 1}\n' * 2 + cut + '{"step": 2, "seconds": 3}\n'
    )
    files = RunFiles.read(tmp_path / "run")
    assert len(files.steps) == 5 and files.test == {} and files.seconds == {1: 1, 2: 4}
    assert "5 steps" in training_report(tmp_path / "run")
