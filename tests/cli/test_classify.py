"""`weft classify`, as typed: texts, lines and tables in, answers out in the same order; and what people get wrong."""

import csv
import json

import numpy as np
import pytest
import torch

import weft as package
from fixtures.commands import read_error_lines, run_weft
from fixtures.hugging_face import write_bert_folder
from fixtures.tables import make_reviews, write_reviews, write_table

GOOD, BAD = "the film was lovely warm", "it was a grim cold story"


def classified(desk, kind, *words, **options):
    return run_weft("classify", str(desk.run(kind)), "--threads", "1", *words, cwd=desk.path, **options)


def answers_of(desk, texts, kind="single"):
    return package.load(desk.run(kind)).classify(texts)


# -- arguments --------------------------------------------------------------------------------


def test_one_text_is_shown_with_all_classes(desk):
    out = classified(desk, "single", GOOD).stdout
    answer = answers_of(desk, GOOD)
    assert out == f"pos  {answer.probabilities['pos']:7.2%}\nneg  {answer.probabilities['neg']:7.2%}\n"
    assert "\x1b" not in out


def test_several_texts_are_a_line_each_in_order(desk):
    lines = classified(desk, "single", GOOD, BAD, GOOD).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["pos", "neg", "pos"]
    assert all(line.endswith(text) for line, text in zip(lines, (GOOD, BAD, GOOD), strict=True))


def test_json_has_every_probability(desk):
    found = [json.loads(line) for line in classified(desk, "single", GOOD, BAD, "--json").stdout.splitlines()]
    assert [f["text"] for f in found] == [GOOD, BAD] and [f["label"] for f in found] == ["pos", "neg"]
    for f in found:
        assert sum(f["probabilities"].values()) == pytest.approx(1) and f["probability"] == max(
            f["probabilities"].values()
        )


def test_numbers_have_no_probability(desk):
    (line,) = classified(desk, "number", GOOD).stdout.splitlines()
    assert 300 < float(line.split()[0]) < 500
    found = json.loads(classified(desk, "number", BAD, "--json").stdout)
    assert 0 < found["label"] < 200 and set(found) == {"text", "label"}


def test_several_labels_are_marked(desk):
    out = classified(desk, "several", "the fine warm frost snow").stdout
    assert [line.split()[0] for line in out.splitlines() if line.endswith("✓")]
    found = json.loads(classified(desk, "several", "the fine warm lovely great", "--json").stdout)
    assert found["label"] == ["good"] and "probability" not in found
    assert all(0 <= value <= 1 for value in found["probabilities"].values())
    assert found["label"] == [name for name, value in found["probabilities"].items() if value > 0.5]


def test_pairs_are_two_texts_each(desk):
    one = classified(desk, "pairs", "a fine house", BAD, "--json").stdout
    found = json.loads(one)
    assert (found["text"], found["pair"], found["label"]) == ("a fine house", BAD, "other")
    four = [
        json.loads(line)
        for line in classified(desk, "pairs", "a fine house", BAD, "a fine house", GOOD, "--json").stdout.splitlines()
    ]
    assert [f["label"] for f in four] == ["other", "same"]
    assert four[0]["probability"] == pytest.approx(found["probability"], abs=1e-6)
    result = classified(desk, "pairs", "alone", check=False)
    assert result.returncode == 2 and "one text for a run that compares two" in result.stderr


# -- files ------------------------------------------------------------------------------------

ROWS = [
    ("7", 'fine, "warm" lovely film', "x"),
    ("8", "", "y"),
    ("9", BAD, "z"),
    ("10", "a\tgreat house", "x"),
    ("11", "é 日本 great", "y"),
]


def read(path):
    """Rows as dicts, whatever the form."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".tsv":
        title, *rows = (line.split("\t") for line in path.read_text().splitlines())
        return [dict(zip(title, row, strict=True)) for row in rows]
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("given", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("wanted", ["csv", "tsv", "jsonl"])
def test_tables_keep_their_columns_and_order(desk, tmp_path, given, wanted):
    rows = [row for row in ROWS if given != "tsv" or "\t" not in row[1]]
    write_table(tmp_path / f"in.{given}", ("id", "text", "label"), rows)
    out = tmp_path / f"out.{wanted}"
    result = classified(desk, "single", "--input", str(tmp_path / f"in.{given}"), "--output", str(out))
    assert result.stdout == ""
    found, answers = read(out), answers_of(desk, [text for _, text, _ in rows])
    assert [row["id"] for row in found] == [row[0] for row in rows]
    assert [row["label"] for row in found] == [row[2] for row in rows]  # what stood there stays, also under this name
    texts = [" ".join(text.split()) if wanted == "tsv" else text for _, text, _ in rows]
    assert [row["text"] for row in found] == texts
    assert [row["predicted"] for row in found] == [answer.label for answer in answers]
    assert [float(row["probability"]) for row in found] == pytest.approx([a.probability for a in answers], abs=2e-6)


def test_a_column_that_is_called_predicted_stays(desk, tmp_path):
    write_table(tmp_path / "in.csv", ("text", "predicted"), [(GOOD, "old"), (BAD, "older")])
    for form in ("csv", "jsonl"):
        out = tmp_path / f"out.{form}"
        classified(desk, "single", "--input", str(tmp_path / "in.csv"), "--output", str(out))
        assert [(row["predicted"], row["predicted_"]) for row in read(out)] == [("old", "pos"), ("older", "neg")]


def test_lines_in_lines_out(desk, tmp_path):
    texts = [GOOD, "", BAD, "no newline at the end"]
    (tmp_path / "in.txt").write_text("\n".join(texts))
    out = tmp_path / "out.txt"
    classified(desk, "single", "--input", str(tmp_path / "in.txt"), "--output", str(out))
    answers = answers_of(desk, texts)  # an empty line is a text too: lines stay beside each other
    assert out.read_text().splitlines() == [f"{answer.label}\t{answer.probability:.6f}" for answer in answers]
    table = tmp_path / "out.csv"
    classified(desk, "single", "--input", str(tmp_path / "in.txt"), "--output", str(table))
    assert [row["text"] for row in read(table)] == texts


@pytest.mark.parametrize("words", [["-"], ["--input", "-"], []])
def test_stdin_is_a_text_on_each_line(desk, words):
    out = classified(desk, "single", *words, stdin=f"{GOOD}\n{BAD}\n").stdout
    assert [line.split("\t")[0] for line in out.splitlines()] == ["pos", "neg"]
    assert classified(desk, "single", *words, stdin="").stdout == ""


def test_pairs_on_stdin(desk):
    both = classified(desk, "pairs", "-", stdin=f"a fine house\t{BAD}\na fine house\t{GOOD}\n").stdout
    assert [line.split("\t")[0] for line in both.splitlines()] == ["other", "same"]
    assert classified(desk, "pairs", "-", stdin=f"a fine house\n{BAD}\na fine house\n{GOOD}\n").stdout == both


def test_more_rows_than_are_read_at_once_keep_their_order(desk, tmp_path, monkeypatch):
    monkeypatch.setattr("weft.cli.classify.AT_ONCE", 7)
    write_reviews(tmp_path / "in.csv", 40, seed=3)
    out = tmp_path / "out.csv"
    classified(desk, "single", "--input", str(tmp_path / "in.csv"), "--output", str(out))
    assert [(row["text"], row["label"]) for row in read(out)] == make_reviews(40, seed=3)
    alone = [answers_of(desk, row["text"]) for row in read(out)[:10]]
    assert [float(row["probability"]) for row in read(out)[:10]] == pytest.approx(
        [a.probability for a in alone], abs=2e-6
    )


def test_columns_of_other_tables_are_found_or_named(desk, tmp_path):
    write_table(tmp_path / "in.csv", ("nr", "review", "other"), [(1, GOOD, BAD), (2, BAD, GOOD)])
    words = ["--input", str(tmp_path / "in.csv"), "--json"]
    found = [
        json.loads(line)["predicted"]
        for line in classified(desk, "single", *words, "--text", "other").stdout.splitlines()
    ]
    assert found == ["neg", "pos"]
    found = [json.loads(line)["predicted"] for line in classified(desk, "single", *words).stdout.splitlines()]
    assert found == ["pos", "neg"]  # `review` is a usual name
    result = classified(desk, "single", *words, "--text", "revieu", check=False)
    assert result.returncode == 2 and "did you mean 'review'?" in result.stderr
    pairs = [
        json.loads(line)["predicted"]
        for line in classified(desk, "pairs", *words, "--text", "other", "--pair", "review").stdout.splitlines()
    ]
    assert pairs == ["same", "other"]


def test_a_file_that_is_there_is_not_touched(desk, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    result = classified(desk, "single", GOOD, "--output", str(out), check=False)
    assert result.returncode == 1 and "is there already" in result.stderr and out.read_text() == "precious"


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.txt"])
def test_what_cannot_be_classified_leaves_no_empty_file(desk, tmp_path, name):
    result = classified(desk, "pairs", "--input", "-", "--output", str(tmp_path / name), stdin="alone\n", check=False)
    assert result.returncode == 2 and not (tmp_path / name).exists()


def test_texts_longer_than_the_model_are_cut(desk):
    long = f"{GOOD} " * 40
    assert classified(desk, "single", long).stdout.startswith("pos")
    room = package.load(desk.run("single")).model_config.max_length
    answer = answers_of(desk, [long, f"{long} {BAD}"])  # what is beyond is not read
    assert answer[0].probability == pytest.approx(answer[1].probability, abs=1e-6) and room == 24


# -- evaluate ---------------------------------------------------------------------------------


def test_evaluate_tells_of_every_class(desk, tmp_path):
    rows = [(text, "neg" if n in (1, 3) else label) for n, (text, label) in enumerate(make_reviews(20, seed=9))]
    write_table(tmp_path / "other.csv", ("text", "label"), rows)
    found = json.loads(
        run_weft("evaluate", str(desk.run("single")), str(tmp_path / "other.csv"), "--json", cwd=desk.path).stdout
    )
    told_by = [answer.label for answer in answers_of(desk, [text for text, _ in rows])]
    right = np.mean([a == b for a, (_, b) in zip(told_by, rows, strict=True)])
    assert found["accuracy"] == pytest.approx(right) and found["examples"] == 20 and found["measured_on"] == "data"
    assert (
        found["confusion"][0][1] == sum(a == "pos" and b == "neg" for a, (_, b) in zip(told_by, rows, strict=True)) >= 2
    )
    assert found["classes"]["neg"]["examples"] == 12
    lines = run_weft(
        "evaluate", str(desk.run("single")), str(tmp_path / "other.csv"), cwd=desk.path
    ).stdout.splitlines()
    assert lines[0].startswith(f"accuracy {right:.4f}") and lines[1].startswith("class") and "pos 2" in lines[2]


@pytest.mark.parametrize(
    ("kind", "names"),
    [("several", {"micro_f1", "exact_match"}), ("number", {"spearman", "pearson", "mean_squared_error"})],
)
def test_evaluate_on_what_was_held_out(desk, kind, names):
    found = json.loads(run_weft("evaluate", str(desk.run(kind)), "--json", cwd=desk.path).stdout)
    lines = [json.loads(line) for line in (desk.run(kind) / "metrics.jsonl").read_text().splitlines()]
    best = min((line for line in lines if "validation_loss" in line), key=lambda line: line["validation_loss"])
    assert found["loss"] == pytest.approx(best["validation_loss"], rel=1e-3) and names <= set(found)
    assert all(found[name] == pytest.approx(best[name], rel=1e-3) for name in names)


# -- Hugging Face -----------------------------------------------------------------------------


def test_a_hugging_face_folder_classifies(desk, tmp_path):
    pytest.importorskip("transformers")
    names = {"id2label": {0: "no", 1: "maybe", 2: "yes"}, "label2id": {"no": 0, "maybe": 1, "yes": 2}}
    theirs = write_bert_folder(tmp_path / "hf", "BertForSequenceClassification", **names)
    words = ["--threads", "1", "--json"]
    found = json.loads(run_weft("classify", str(tmp_path / "hf"), GOOD, *words, cwd=tmp_path).stdout)
    ids = torch.from_numpy(package.load(tmp_path / "hf").tokenizer.encode_pair(GOOD)[0].astype(np.int64))[None]
    with torch.no_grad():
        wanted = theirs(ids).logits[0].softmax(-1).tolist()
    assert [found["probabilities"][name] for name in ("no", "maybe", "yes")] == pytest.approx(wanted, abs=1e-5)
    write_table(tmp_path / "in.csv", ("text", "pair"), [(GOOD, BAD)])
    pair = run_weft(
        "classify", str(tmp_path / "hf"), "--input", "in.csv", "--text", "text", "--pair", "pair", *words, cwd=tmp_path
    )
    assert json.loads(pair.stdout)["probabilities"] != found["probabilities"]
    refused = run_weft("evaluate", str(tmp_path / "hf"), cwd=tmp_path, check=False)
    assert (
        refused.returncode == 1
        and "has no examples of its own" in refused.stderr
        and len(read_error_lines(refused)) <= 3
    )


# -- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "words", "code", "said"),
    [
        ("writer", ["x"], 1, "does not classify"),
        ("masked", ["x"], 1, "does not classify"),
        ("single", ["x", "--input", "single.csv"], 2, "one of them"),
        ("single", ["x", "--input", "book.txt"], 2, "one of them"),
        ("single", ["--input", "nowhere.csv"], 1, "nowhere.csv does not exist"),
        ("single", ["--input", "nowhere.txt"], 1, "nowhere.txt cannot be opened"),
        ("single", ["--input", "runs"], 1, "runs cannot be opened"),
        ("single", ["--input", "single.csv", "--text", "txet"], 2, "did you mean 'text'?"),
        ("single", ["--input", "single.csv", "--txt", "text"], 2, "--text"),
        ("single", ["x", "--jsn"], 2, "--json"),
        ("single", ["x", "--threads", "0"], 2, "threads = 0"),
        ("single", ["x", "--output", "no/where.csv"], 1, "cannot be opened"),
        ("pairs", ["--input", "single.csv"], 1, "expected pairs of texts"),
        ("single", ["--input", "pairs.csv", "--text", "sentence1", "--pair", "sentence2"], 1, "one text at a time"),
    ],
)
def test_mistakes(desk, kind, words, code, said):
    result = classified(desk, kind, *words, check=False)
    assert result.returncode == code and said in result.stderr
    assert len(read_error_lines(result)) <= 3 and "Traceback" not in result.stderr


def test_no_such_run(desk):
    result = run_weft("classify", "nowhere", "x", cwd=desk.path, check=False)
    assert result.returncode == 1 and "there is no run nowhere" in result.stderr


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables with something wrong."""
    folder = tmp_path_factory.mktemp("tables")
    rows = make_reviews(40)
    write_table(folder / "good.csv", ("text", "label"), rows)
    write_table(folder / "one.csv", ("text", "label"), [(text, "pos") for text, _ in rows])
    write_table(
        folder / "case.csv", ("text", "label"), [(t, x.upper() if n % 9 == 0 else x) for n, (t, x) in enumerate(rows)]
    )
    write_table(folder / "textless.csv", ("text", "label"), [("", label) for _, label in rows])
    write_table(folder / "unlabelled.csv", ("text", "label"), [(text, "") for text, _ in rows])
    write_table(folder / "three.csv", ("text", "label"), rows[:3])
    write_table(folder / "ids.csv", ("text", "label"), [(text, f"id{n}") for n, (text, _) in enumerate(rows)])
    (folder / "header.csv").write_text("text,label\n")
    (folder / "empty.csv").write_text("")
    (folder / "book.txt").write_text("One line.\nAnother line of it.\n" * 20)
    (folder / "folder").mkdir()
    return folder


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["clasify", "good.csv"], 2, "did you mean 'classify'?"),
        (["classify"], 2, "no data was given"),
        (["classify", "good.csv", "--txt", "text"], 2, "--text"),
        (["classify", "good.csv", "--lable", "label"], 2, "--label"),
        (["classify", "good.csv", "--label", "lable"], 2, "did you mean 'label'?"),
        (["classify", "good.csv", "--text", "body"], 2, "good.csv has no column 'body'"),
        (["classify", "good.csv", "--text", "text", "--label", "text"], 2, "a different one for each"),
        (["classify", "good.csv", "--pair", "text"], 2, "name both columns"),
        (["classify", "good.csv", "--pairs", "good.csv"], 2, "no such option for this task"),
        (["classify", "good.csv", "--sample", "The"], 2, "no such option for this task"),
        (["classify", "book.txt"], 1, "book.txt is no table"),
        (["classify", "good.csv", "book.txt"], 1, "book.txt is no table"),
        (["classify", "folder"], 1, "folder is a folder"),
        (["classify", "god.csv"], 1, "did you mean 'good.csv'?"),
        (["classify", "empty.csv"], 1, "empty.csv is empty"),
        (["classify", "header.csv"], 1, "a header and no rows"),
        (["classify", "one.csv"], 1, "every row has the label 'pos' in 'label': there is nothing to learn"),
        (["classify", "textless.csv"], 1, "no row of textless.csv has a text"),
        (["classify", "unlabelled.csv"], 1, "40 of 40 rows of unlabelled.csv have no 'label'"),
        (["classify", "three.csv"], 1, "at least 4"),
        (["classify", "ids.csv"], 1, "that is no label"),
        (["classify", "good.csv", "--validation", "case.csv"], 1, "is 'NEG' the same as 'neg'?"),
        (["classify", "good.csv", "--test", "god.csv"], 1, "did you mean 'good.csv'?"),
        (["classify", "good.csv", "--model", "gpt"], 2, "not for classify"),
        (["classify", "good.csv", "--model", "brt"], 2, "did you mean 'bert'?"),
        (["classify", "good.csv", "--tokenizer", "wordpeice"], 2, "did you mean 'wordpiece'?"),
        (["classify", "good.csv", "--from", "folder"], 1, "folder"),
        (["classify", "good.csv", "--from", "nowhere"], 2, "no such folder"),
        (["classify", "good.csv", "--freeze", "embedings"], 2, "embeddings"),
        (["classify", "good.csv", "--set", "objective.smothing=0.1"], 2, "did you mean 'smoothing'?"),
        (["classify", "good.csv", "--set", "objective.weights=all"], 2, "auto, none, balanced"),
        (["classify", "good.csv", "--set", "objective.tasks=masked"], 2, "unknown field 'tasks'"),
        (["classify", "good.csv", "--set", "data.kind=numbr"], 2, "single, multilabel, regression"),
        (["classify", "good.csv", "--set", "data.kind=regression"], 1, "'neg' in 'label' is no number"),
        (["classify", "good.csv", "--set", "data.rows=3"], 2, "found out from the data"),
        (["classify", "good.csv", "--set", "data.validation_share=0"], 2, "--validation"),
        (["classify", "good.csv", "--set", "data.length=1"], 2, "room for [CLS]"),
        (["translate", "good.csv", "--source", "txet"], 2, "did you mean 'text'?"),
        (["translate", "good.csv", "--label", "label"], 2, "no such option for this task"),
        (["translate", "book.txt"], 1, "book.txt alone"),
        (["translate", "book.txt", "book.txt"], 1, "the same file"),
        (["classify", "good.csv", "--source", "text"], 2, "no such option for this task"),
        (["generate", "book.txt", "--label", "x"], 2, "no such option for this task"),
        (["generate", "book.txt", "--set", "objective.tasks=masked"], 2, "nothing to choose"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_typed_mistakes_in_training(tables, words, code, said):
    result = run_weft("train", *words, "--steps", "1", "--threads", "1", cwd=tables, check=False)
    assert result.returncode == code, result.stderr
    assert said in result.stderr and "Traceback" not in result.stderr
    assert len(read_error_lines(result)) <= 3, result.stderr
    assert not (tables / "runs").exists()


def test_labels_that_differ_by_case_are_warned_of(tables):
    words = ["--dry-run", "--steps", "1", "--threads", "1", "--set", "model.width=16"]
    result = run_weft("train", "classify", "case.csv", *words, cwd=tables)
    assert "'NEG', 'neg' in 'label' are taken as different" in " ".join(result.stderr.split())


def test_a_table_alone_is_classified(tables):
    """Without a task: a table whose column repeats; a text is written on with."""
    for data, task in (("good.csv", "classify"), ("book.txt", "generate")):
        words = ["train", data, "--steps", "1", "--threads", "1", "--dry-run", "--json"]
        assert json.loads(run_weft(*words, cwd=tables).stdout.splitlines()[-1])["task"] == task
