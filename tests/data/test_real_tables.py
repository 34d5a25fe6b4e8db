"""Public data sets as they are; skipped where they are not there."""

import gzip

import pytest

from real_data import DATA, data_marks
from weft.data import Labels, compare_tables, find_columns, read_examples, read_table

pytestmark = data_marks("sst2", "mrpc", "sick", "multi30k", "word-sim")

SETS = {
    "sst2": ({"train.csv": 6920, "dev.csv": 872, "test.csv": 1821}, ("text", None, "label"), ("negative", "positive")),
    "mrpc": (
        {"msr-para-train.tsv": 3576, "msr-para-val.tsv": 500, "msr-para-test.tsv": 1725},
        ("#1 String", "#2 String", "Quality"),
        ("0", "1"),
    ),
    "sick": (
        {"SICK_train.txt": 4500, "SICK_trial.txt": 500, "SICK_test_annotated.txt": 4927},
        ("sentence_A", "sentence_B", "entailment_judgment"),
        ("CONTRADICTION", "ENTAILMENT", "NEUTRAL"),
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_every_row_is_read(name):
    files, wanted, classes = SETS[name]
    parts = []
    for file, rows in files.items():
        table = read_table(DATA / name / file)
        assert (len(table), table.skipped, table.notes) == (rows, 0, ())
        columns = find_columns(table)
        assert (columns.text, columns.pair, columns.label) == wanted
        parts.append(read_examples(table, columns))
        assert len(parts[-1]) == rows
    labels = Labels.of(parts[0].labels)
    assert (labels.kind, labels.classes, labels.warnings) == ("single", classes, ())
    for part in parts[1:]:
        assert len(labels.encode(part.labels, part.lines, part.name)) == len(part)
        assert compare_tables(parts[0], part).known < 0.01


def test_relatedness_is_a_number():
    table = read_table(DATA / "sick" / "SICK_train.txt")
    columns = find_columns(table, label="relatedness_score")
    labels = Labels.of(read_examples(table, columns).labels)
    assert columns.pair == "sentence_B" and labels.kind == "regression"


def test_a_caption_with_a_tab_is_skipped_and_named(tmp_path):
    sides = []
    for language in ("en", "de"):
        with gzip.open(
            DATA / "multi30k" / "raw" / f"train.{language}.gz", "rt", encoding="utf-8", newline="\n"
        ) as file:
            sides.append(file.read().split("\n"))
    path = tmp_path / "multi30k.tsv"
    path.write_text("\n".join("\t".join(pair) for pair in zip(*sides, strict=True)).rstrip(), encoding="utf-8")
    table = read_table(path)
    assert len(table) + table.skipped == 29_000
    assert table.skipped == 1 and "has 3 cells where 2 belong" in table.notes[-1]
    assert table.columns == ("column 1", "column 2"), "captions are no header"


@pytest.mark.parametrize(("name", "rows"), [("EN-MC-30", 30), ("EN-MEN-TR-3k", 3000), ("EN-SimVerb-3500", 3500)])
def test_pairs_of_words_without_a_header(name, rows):
    table = read_table(DATA / "word-sim" / f"{name}.txt")
    columns = find_columns(table)
    assert len(table) == rows
    assert (columns.text, columns.pair, columns.label) == ("column 1", "column 2", "column 3")
    assert Labels.of(table.column("column 3")).kind == "regression"
