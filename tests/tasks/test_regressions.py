"""Models that read: each of these was wrong once."""

import json

import numpy as np
import pytest
import torch

import weft
from fixtures.commands import classifier_command, run_weft, set_flags
from fixtures.numbered_sentences import make_marks, make_sentences
from fixtures.tables import write_multilabel_table, write_reviews, write_table
from fixtures.texts import make_sentence
from weft.data.labelled_pairs import LabelledPairs
from weft.data.pretraining import PretrainingSamples
from weft.errors import ConfigError
from weft.models import BERTConfig
from weft.tasks.classify.tables import TableConfig, read_tables
from weft.tasks.fill.results import with_words
from weft.tasks.task import task_of
from weft.tasks.training import paths_of


def test_a_list_of_texts_of_any_length_is_written_down(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    for text in ("a long text " * 60, "x" * 300, "two\nlines", "nul \0 byte"):
        (path,) = paths_of([text])
        with open(path, encoding="utf-8", newline="") as file:
            assert file.read() == text
    with pytest.raises(ConfigError, match="other things than texts"):
        paths_of([["a list", "in a list"]])


def test_the_length_that_is_asked_for_is_read(tmp_path):
    write_reviews(tmp_path / "t.csv")
    words = ["train", "classify", "t.csv", "--steps", "1", "--dry-run", "--threads", "1", "--json"]
    for length in (64, 300):
        out = run_weft(*words, *set_flags(f"data.length={length}"), cwd=tmp_path).stdout
        plan = next(event for event in map(json.loads, out.splitlines()) if event["event"] == "plan")
        assert plan["length"] == length


@pytest.mark.parametrize(
    ("text", "words", "filled"),
    [
        ("Élodie don't [MASK] 你 (1.5%)!", ["go"], "Élodie don't go 你 (1.5%)!"),
        ("un[MASK] and [MASK].", ["##kind", "old"], "unkind and old."),
        ("a walk [MASK] home", ["##ing"], "a walking home"),
        ("The [MASK] ran", [" cat"], "The cat ran"),
        ("[MASK] ran", [" cat"], " cat ran"),
    ],
)
def test_a_filled_text_is_otherwise_as_it_was_written(text, words, filled):
    assert with_words(text, "[MASK]", words) == filled


def test_lines_of_pairs_are_all_of_one_form(desk):
    def lines(*given):
        result = run_weft(
            "classify",
            str(desk.run("pairs")),
            "--input",
            "-",
            cwd=desk.path,
            stdin="\n".join(given) + "\n",
            check=False,
        )
        return result.returncode, result.stdout.splitlines(), result.stderr

    code, out, _ = lines("a fine film\ta warm story", "b\tc")
    assert code == 0 and len(out) == 2
    assert lines("a fine film", "a warm story", "b", "c")[1] == out
    code, _, said = lines("a\tb", "c", "d\te", "f")
    assert code == 1 and "line 2 has no tab" in said


def test_bytes_that_are_no_text_are_told_and_a_mark_of_order_is_not_read(desk, tmp_path):
    def answer(content):
        (tmp_path / "in.txt").write_bytes(content)
        return run_weft(
            "classify", str(desk.run("single")), "--input", str(tmp_path / "in.txt"), cwd=desk.path, check=False
        )

    broken = answer(b"the film\ncaf\xe9 was grim\n")
    assert broken.returncode == 1 and "not valid UTF-8" in broken.stderr and "Traceback" not in broken.stderr
    assert answer("\ufefflovely warm".encode()).stdout == answer(b"lovely warm").stdout


def test_options_are_not_dropped(desk, tmp_path):
    write_table(tmp_path / "t.csv", ("text", "other"), [("a film", "a story")])
    both = run_weft(
        *("classify", str(desk.run("single")), "--input", str(tmp_path / "t.csv"), "--text", "text", "--pair", "other"),
        cwd=desk.path,
        check=False,
    )
    assert both.returncode == 1 and "one text at a time" in both.stderr
    twice = run_weft(
        "fill", str(desk.run("masked")), "-", "--input", str(tmp_path / "t.csv"), cwd=desk.path, stdin="x", check=False
    )
    assert twice.returncode == 2 and "--input" in twice.stderr


@pytest.mark.parametrize("pool", ["mean", "first"])
def test_a_row_of_padding_alone_has_a_finite_vector(pool):
    config = BERTConfig(vocab_size=9, width=8, depth=1, head={"kind": "classes", "classes": 2}, pool=pool)
    model = config.build()
    tokens, keep = torch.zeros(2, 3, dtype=torch.long), torch.tensor([[True] * 3, [False] * 3])
    logits = model(tokens, None, keep)
    logits.sum().backward()
    assert logits.isfinite().all() and all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_several_labels_are_not_taken_for_classes_of_their_own(tmp_path):
    import random

    rng = random.Random(0)
    rows = [(make_sentence(rng, ["fine"]) + f" {n}", "comedy" if n else "comedy|drama") for n in range(40)]
    rows += [(make_sentence(rng, ["cold"]) + f" x{n}", "drama") for n in range(30)]
    write_table(tmp_path / "t.csv", ("text", "labels"), rows)
    tables = read_tables(TableConfig(train=(str(tmp_path / "t.csv"),)))
    assert tables.labels.kind == "multilabel" and not [w for w in tables.warnings if "frequent" in w]
    write_multilabel_table(tmp_path / "s.csv")


def test_a_temperature_belongs_to_its_weights(tmp_path):
    write_reviews(tmp_path / "t.csv")
    run_weft(*classifier_command("t.csv", "run", 6), cwd=tmp_path)
    file = tmp_path / "run" / "calibration.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"temperature": 4.0}))
    text = "the film was lovely"
    warm = weft.load(tmp_path / "run").model.classes[-1].weight.detach()
    file.write_text(json.dumps(json.loads(file.read_text()) | {"weights": 1}))  # of other weights
    plain = weft.load(tmp_path / "run").model.classes[-1].weight.detach()
    assert torch.allclose(4 * warm, plain) and not torch.allclose(warm, plain)
    assert weft.load(tmp_path / "run").classify(text).label in ("pos", "neg")


@pytest.mark.parametrize("tasks", [("masked", "entailment"), ("next-sentence", "entailment"), ("entailment",)])
@pytest.mark.parametrize("rows", [5, 200])
def test_beside_a_table_an_epoch_has_every_stretch_and_every_row(tasks, rows):
    text = make_sentences(20)
    size = int(text.ids.max()) + 1
    ids = np.arange(10, 10 + 4 * rows) % (size - 10) + 10
    labels = np.arange(rows) % 2
    pairs = LabelledPairs(
        ids.astype(np.uint32), np.ones(len(ids), bool), np.arange(0, len(ids) + 1, 2), labels, ("no", "yes")
    )
    samples = PretrainingSamples(text, make_marks(size), 32, tasks=tasks, pairs=pairs)
    row = samples.batch(np.arange(samples.per_epoch))
    asked = len(row.questions["entailment"][0])
    assert asked >= rows and asked == samples.per_epoch // len(samples.kinds)
    stretches = len(samples.stretches)
    assert samples.per_epoch == len(samples.kinds) * max(rows, stretches if len(samples.kinds) > 1 else 0)


def test_a_text_with_tabs_is_a_text(tmp_path):
    (tmp_path / "notes.txt").write_text("a\tb\n" * 20)
    (tmp_path / "notes.tsv").write_text("text\tlabel\n" + "a\tb\n" * 20)
    assert task_of([str(tmp_path / "notes.txt")]) == "generate"
    assert task_of([str(tmp_path / "notes.tsv")]) == "classify"
