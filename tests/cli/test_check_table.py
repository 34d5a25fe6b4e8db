"""`weft check` on tables, as a person meets it: what is shown, what is refused, and how."""

import gzip
import json
import subprocess
import sys

import pytest

from fixtures.commands import run_weft, run_weft_process
from real_data import DATA, needs_data

TEXTS = [f"{mood} film number {n}, with a plot" for n in range(60) for mood in ("a good", "a bad")]


def rows_of(texts=TEXTS, labels=("positive", "negative")):
    return [(text, labels[n % len(labels)]) for n, text in enumerate(texts)]


def csv(path, rows, header="text,label", encoding="utf-8"):
    lines = [header, *(",".join(f'"{cell}"' for cell in row) for row in rows)]
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))


def words(result):
    """What was shown, without its line breaks."""
    return " ".join(result.stdout.split())


@pytest.fixture
def desk(tmp_path):
    csv(tmp_path / "train.csv", rows_of())
    csv(tmp_path / "test.csv", [*rows_of([f"another one, {n}" for n in range(18)]), *rows_of()[:2]])
    return tmp_path


def test_a_table_and_its_test(desk):
    told = run_weft("check", "train.csv", "--test", "test.csv", cwd=desk)
    shown = words(told)
    assert shown.startswith("Train: train.csv Test: test.csv Columns: the text 'text' and the label 'label', because")
    assert "Labels: 2 classes, one for each text." in shown
    assert "Tokens: wordpiece, learned from all training texts," in shown
    assert "rows 120 20" in shown
    assert "'positive' 60 (50.0%) 10 (50.0%)" in shown
    assert "words, median 8 3" in shown
    assert "cut at 128 tokens 0 0" in shown
    assert "also in train 2 (10.0%)" in shown
    warning = "10.0% of test.csv also stand in train.csv (2 with the same label, 0 with another)"
    assert f"Warning: {warning}: results on it look better than they are." in shown
    assert "Nothing speaks against" not in shown
    assert told.stderr == ""
    alone = run_weft("check", "train.csv", cwd=desk)
    assert "also in" not in words(alone) and "Warning" not in words(alone)
    assert "Nothing speaks against training on it." in words(alone)


def test_json_is_one_object(desk):
    found = json.loads(run_weft("check", "train.csv", "--test", "test.csv", "--json", cwd=desk).stdout)
    assert (found["train"]["rows"], found["test"]["leakage"]["train"]["examples"]) == (120, 2)
    assert len(found["warnings"]) == 1 and found["problems"] == []


@pytest.mark.parametrize("width", ["40", "72", "80", "200"])
def test_piped_there_are_no_control_codes_and_no_long_lines(desk, width, monkeypatch):
    odd = "o\x1b[31md.csv"
    csv(desk / odd, [(f"text {n}", "[bold]" + "x" * 70 if n % 2 else "\x1b[31mred") for n in range(100)])
    monkeypatch.setenv("COLUMNS", width)
    for name in ("train.csv", odd):
        shown = run_weft("check", name, "--test", name, cwd=desk).stdout
        assert "\x1b" not in shown and ("[bold]" in shown) == (name == odd)
        assert max(map(len, shown.splitlines())) <= int(width)
    narrow = " ".join(run_weft("check", "train.csv", cwd=desk).stdout.split())
    assert ("train: rows: 120" in narrow) == (width == "40")


def test_no_terminal_in_a_process_of_its_own(desk):
    told = run_weft_process("check", "train.csv", cwd=desk, COLUMNS="40")
    assert "\x1b" not in told.stdout + told.stderr and told.stderr == ""


def test_pairs_with_bare_quotes_in_tabs(tmp_path):
    rows = [f'{n % 2}\t{n}\tHe said "no {n}\tHe "denied" it, {n}"' for n in range(110)]
    (tmp_path / "a.tsv").write_text("\n".join(["Quality\t#1 ID\t#1 String\t#2 String", *rows]), encoding="utf-8-sig")
    shown = words(run_weft("check", "a.tsv", cwd=tmp_path))
    assert "the pair '#1 String', '#2 String' and the label 'Quality'" in shown
    assert "Not used: '#1 ID'." in shown
    assert "rows 110" in shown and "words, median 8" in shown


def test_several_labels_in_json_lines(tmp_path):
    lines = [json.dumps({"text": text, "tags": ["a", "b"] if n % 2 else ["c"]}) for n, text in enumerate(TEXTS)]
    with gzip.open(tmp_path / "a.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    shown = words(run_weft("check", "a.jsonl.gz", cwd=tmp_path))
    assert "Labels: 3 classes, several for a text, as JSON lists." in shown
    assert "'a' 60 (50.0%) 'b' 60 (50.0%) 'c' 60 (50.0%)" in shown


def test_numbers(tmp_path):
    csv(tmp_path / "a.csv", [(text, n / 10) for n, text in enumerate(TEXTS[:101])], header="text,score")
    shown = words(run_weft("check", "a.csv", cwd=tmp_path))
    assert "Labels: numbers." in shown
    assert "label, lowest 0 label, 25% have at most 2.5 label, median 5 label, 75% have at most 7.5" in shown


def test_more_classes_than_are_listed(tmp_path):
    csv(tmp_path / "a.csv", [(f"{text} {n}", f"class {n % 30}") for n, text in enumerate(TEXTS * 3)])
    shown = words(run_weft("check", "a.csv", cwd=tmp_path))
    assert "Labels: 30 classes" in shown and "18 other classes 216" in shown


def test_quoted_newlines_and_old_letters(tmp_path, caplog):
    rows = [(f"schön {n}\nund gut", "ab"[n % 2]) for n in range(100)]
    csv(tmp_path / "a.csv", rows, encoding="latin-1")
    told = run_weft("check", "a.csv", cwd=tmp_path)
    assert "rows 100" in words(told) and "words, longest 4" in words(told)
    assert "Note: a.csv is not UTF-8; it is read as Windows-1252 (Western European)." in words(told)
    assert told.stderr == "" and not caplog.records  # said once


def test_empty_texts_and_labels_that_differ_by_case(tmp_path):
    rows = rows_of([*TEXTS, *(f"again {n}" for n in range(90))], labels=("good", "bad", "Good"))
    rows[7] = ("  ", "bad")
    csv(tmp_path / "a.csv", rows)
    shown = words(run_weft("check", "a.csv", cwd=tmp_path))
    assert "rows 210 without a text, left out 1 (0.5%) examples 209" in shown
    assert "Note: rows of a.csv without a text, left out: 1 (line 9)." in shown
    assert "Warning: the labels 'Good', 'good' in 'label' are taken as different: is it the same one? " in shown + " "


def test_the_embedded_table(tmp_path):
    shown = words(run_weft("check", "classify", "demo", cwd=tmp_path))
    assert "Train: demo (train) Test: demo (test)" in shown and "Nothing speaks against" in shown


def test_the_task_may_be_said_first(desk):
    assert "Labels: none (filling in needs none)" in words(run_weft("check", "fill", "train.csv", cwd=desk))
    raw = words(run_weft("check", "generate", "train.csv", cwd=desk))
    assert "1 file: train.csv" in raw and "Validation" in raw
    (desk / "comma.txt").write_text((desk / "train.csv").read_text())
    assert "1 file: comma.txt" in words(run_weft("check", "comma.txt", cwd=desk))
    assert "Labels: 2 classes" in words(run_weft("check", "classify", "comma.txt", cwd=desk))
    assert "Labels: 2 classes" in words(run_weft("check", "comma.txt", "--label", "label", cwd=desk))


@pytest.mark.parametrize(
    ("line", "code", "answer"),
    [
        ("train.csv --label lable", 2, "did you mean 'label'?"),
        ("train.csv --text txt", 2, "did you mean 'text'?"),
        ("train.csv --pair label", 2, "name both columns of the pair"),
        ("train.csv --tokenizer wordpeice", 2, "did you mean 'wordpiece'?"),
        ("train.csv --lable label", 2, "--label"),
        ("fill train.csv --label label", 2, "classify, which learns labels"),
        ("embed train.csv", 1, "does not exist yet"),
        ("classify", 2, "weft check classify demo"),
        ("demo --label x", 2, "--label with a text"),
        ("book.txt --test train.csv", 2, "--test with a text"),
        ("trian.csv", 1, "did you mean 'train.csv'?"),
        ("train.csv --test tset.csv", 1, "did you mean 'test.csv'?"),
        ("train.csv --test other.csv", 1, "other.csv has no column 'text', which train.csv has"),
        ("empty.csv", 1, "empty.csv is empty"),
        ("header.csv", 1, "a header and no rows"),
        ("twice.csv", 1, "several columns named 'text'"),
        ("ragged.csv", 1, "are broken: line 3 has 3 cells where 2 belong"),
        ("unlabelled.csv", 1, "have no 'label': lines 3, 5, 7, …"),
        ("classify folder", 1, "is a folder"),
        ("image.csv", 1, "PNG"),
        ("one.csv", 1, "every row has the label 'positive'"),
        ("train.csv --test one.csv --validation case.csv", 1, "'Positive' (line 2)"),
        ("classify texts.csv", 1, "looks like a label"),
    ],
)
def test_mistakes_are_answered_in_three_lines(desk, line, code, answer):
    csv(desk / "one.csv", rows_of(labels=("positive",)))
    csv(desk / "case.csv", rows_of(labels=("Positive", "negative")))
    csv(desk / "other.csv", [("a", "positive"), ("b", "negative")], header="sentence,label")
    csv(desk / "texts.csv", enumerate(TEXTS), header="id,text")
    csv(desk / "twice.csv", rows_of(), header="text,text")
    csv(desk / "ragged.csv", [(*row, "more") if n % 2 else row for n, row in enumerate(rows_of())])
    csv(desk / "unlabelled.csv", [(text, "" if n % 2 else label) for n, (text, label) in enumerate(rows_of())])
    (desk / "header.csv").write_text("text,label\n")
    (desk / "empty.csv").write_text("")
    (desk / "book.txt").write_text("A text of its own, as long as it needs to be. " * 9)
    (desk / "folder").mkdir()
    (desk / "image.csv").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    told = run_weft("check", *line.split(), cwd=desk, check=False)
    assert told.returncode == code, told.stderr
    assert answer in told.stderr
    assert 1 <= len(told.stderr.splitlines()) <= 3
    assert "Traceback" not in told.stderr


def test_what_training_would_refuse_ends_the_report(desk):
    csv(desk / "one.csv", rows_of(labels=("positive",)))
    told = run_weft("check", "one.csv", cwd=desk, check=False)
    assert "Labels: those in 'label' cannot be learned." in words(told) and "'positive' 120 (100.0%)" in words(told)
    assert "Nothing speaks" not in told.stdout
    csv(desk / "new.csv", rows_of(labels=("neutral", "negative")))
    told = run_weft(
        "check", "train.csv", "--validation", "new.csv", "--test", "new.csv", "--json", cwd=desk, check=False
    )
    assert told.returncode == 1 and told.stderr.count("'neutral'") == 2
    assert len(json.loads(told.stdout)["problems"]) == 2


def test_checking_a_table_does_not_import_torch(desk):
    code = (
        "import sys; sys.argv = ['weft', 'check', 'train.csv']\n"
        "from weft.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, cwd=desk, capture_output=True, text=True, check=True, encoding="utf-8")
    assert told.stdout.splitlines()[-1] == "False"


@needs_data("sst2", "mrpc", "sick")
@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (
            "sst2/train.csv --validation sst2/dev.csv --test sst2/test.csv",
            ["rows 6,920 872 1,821", "also in train 0 2"],
        ),
        ("mrpc/msr-para-train.tsv", ["rows 3,576", "Not used: '#1 ID', '#2 ID'."]),
        ("sick/SICK_train.txt --test sick/SICK_test_annotated.txt", ["rows 4,500 4,927", "also in train 49 (1.0%)"]),
        ("sick/SICK_trial.txt --label relatedness_score", ["Labels: numbers.", "label, highest 5"]),
    ],
)
def test_public_data(line, parts):
    told = words(run_weft("check", *line.split(), cwd=DATA))
    assert all(part in told for part in parts), told
