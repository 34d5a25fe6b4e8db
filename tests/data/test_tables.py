"""Tables as people have them: every encoding and separator, broken rows counted and named, and what is no table."""

import csv
import gzip
import io
import json
import logging
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.data import Table, read_table
from weft.errors import ConfigError, DataError

HEADER = ["text", "label"]
ROWS = [["naïve café, they said", "good"], ['a "quoted" word; twice', "bad"], ["plain", "good"]]


def write(path, content, encoding="utf-8"):
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def as_csv(rows, delimiter=",", end="\r\n"):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end).writerows(rows)
    return out.getvalue()


def as_tsv(rows, end="\n"):
    return "".join("\t".join(row) + end for row in rows)


def as_jsonl(rows, header=HEADER):
    return "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows)


def cells(table):
    return [list(row.cells) for row in table.rows()]


GOOD = {
    "comma.csv": as_csv([HEADER, *ROWS]).encode(),
    "semicolon.csv": as_csv([HEADER, *ROWS], ";").encode(),
    "tab.csv": as_csv([HEADER, *ROWS], "\t").encode(),
    "newline.csv": as_csv([HEADER, *ROWS], end="\n").encode(),
    "mark.csv": b"\xef\xbb\xbf" + as_csv([HEADER, *ROWS]).encode(),
    "utf16.csv": as_csv([HEADER, *ROWS]).encode("utf-16"),
    "utf16.tsv": as_tsv([HEADER, *ROWS], "\r\n").encode("utf-16"),
    "latin.csv": as_csv([HEADER, *ROWS]).encode("latin-1"),
    "plain.tsv": as_tsv([HEADER, *ROWS]).encode(),
    "crlf.tsv": as_tsv([HEADER, *ROWS], "\r\n").encode(),
    "tabbed.txt": as_tsv([HEADER, *ROWS]).encode(),
    "open_end.tsv": as_tsv([HEADER, *ROWS]).encode().rstrip(),
    "blank.tsv": as_tsv([HEADER, *ROWS]).replace("\n", "\n\n").encode(),
    "packed.csv.gz": gzip.compress(as_csv([HEADER, *ROWS]).encode()),
    "latin.csv.gz": gzip.compress(as_csv([HEADER, *ROWS]).encode("latin-1")),
    "lines.jsonl": as_jsonl(ROWS).encode(),
    "lines.json": as_jsonl(ROWS).encode(),
    "lines.unknown": as_jsonl(ROWS).encode(),
    "array.json": json.dumps([dict(zip(HEADER, row, strict=True)) for row in ROWS], indent=1).encode(),
}


@pytest.mark.parametrize("name", GOOD)
def test_the_same_table_in_many_forms(name, tmp_path):
    table = read_table(write(tmp_path / name, GOOD[name]))
    assert table.columns == ("text", "label")
    assert cells(table) == ROWS
    assert cells(table) == ROWS, "a table can be gone through again"
    assert len(table) == 3 and table.skipped == 0
    assert table.column("label") == ["good", "bad", "good"]
    notes = " ".join(table.notes)
    assert ("Windows-1252" in notes) == name.startswith("latin")
    assert "3 rows" in repr(table)


def test_rows_know_their_lines(tmp_path):
    table = read_table(
        write(tmp_path / "a.csv", 'text,label\n"two\nlines",x\n\nfour,y\n"three\nmore\nlines",x\nlast,y\n')
    )
    assert [(row.line, row.cells[0]) for row in table.rows()] == [
        (2, "two\nlines"),
        (5, "four"),
        (6, "three\nmore\nlines"),
        (9, "last"),
    ]


def test_tsv_has_no_quoting(tmp_path):
    rows = [['"open', "x"], ['he said "', "y"], ['""', "x"]]
    assert cells(read_table(write(tmp_path / "a.tsv", as_tsv([HEADER, *rows])))) == rows


def test_only_newlines_end_lines(tmp_path):
    rows = [["a\u2028b\x0bc\x85d", "x"], ["e\x1cf", "y"]]
    for name, content in (("a.tsv", as_tsv([HEADER, *rows])), ("a.csv", as_csv([HEADER, *rows]))):
        assert cells(read_table(write(tmp_path / name, content))) == rows


TEXT = st.text(st.characters(blacklist_characters="\0\r", blacklist_categories=["Cs"]), max_size=20)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8), delimiter=st.sampled_from(",;"))
def test_what_a_csv_writer_writes_is_read_back(rows, delimiter, tmp_path):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([HEADER, *rows])
    assert cells(read_table(write(tmp_path / "h.csv", out.getvalue()))) == [list(row) for row in rows]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8))
def test_json_lines_are_read_back(rows, tmp_path):
    assert cells(read_table(write(tmp_path / "h.jsonl", as_jsonl(rows)))) == [list(row) for row in rows]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=80), suffix=st.sampled_from([".csv", ".tsv", ".txt", ".jsonl", ".json", ""]))
def test_any_bytes_are_a_table_or_a_clear_refusal(data, suffix, tmp_path):
    path = write(tmp_path / f"any{suffix}", data)
    try:
        table = read_table(path)
    except DataError as error:
        assert str(path) in str(error) and str(error).count("\n") <= 2
    else:
        assert len(cells(table)) == len(table) >= 1
        assert all(len(row) == len(table.columns) for row in cells(table))


def test_json_values_become_cells(tmp_path):
    lines = '{"a": 1, "b": 2.50, "c": null}\n{"a": true, "d": ["x", "y"]}\n'
    table = read_table(write(tmp_path / "a.jsonl", lines))
    assert table.columns == ("a", "b", "c", "d")
    assert cells(table) == [["1", "2.50", "", ""], ["true", "", "", '["x", "y"]']]


# -- headers ----------------------------------------------------------------------------------

NO_HEADER = {
    "numbers": "car\tautomobile\t3.92\ngem\tjewel\t3.84\n",
    "label comes again": "good\ta film\nbad\tanother\ngood\tthird\n",
    "sentences": "A man rides a horse.\tEin Mann reitet.\nA dog runs off.\tEin Hund rennt weg.\n",
    "long words": "two dogs run fast\tx\nthree men walk home\ty\nfour cats sleep well\tx\n",
}
WITH_HEADER = {
    "usual": "text\tlabel\na b\tx\n",
    "usual beside a number": "label\t2019\nx\ta\ny\tb\n",
    "unusual": "spam or ham\tthe contents\nham\tsee you later then\nspam\twin a new car today\n",
    "numbers below": "word\tvalue of it\na\t1\nb\t2\n",
    "numbered by pandas": "0\t1\nsome text\tx\nother text\ty\n",
    "index without a name": "\ttext\n0\tone\n1\ttwo\n",
}


@pytest.mark.parametrize("what", NO_HEADER)
def test_a_missing_header_is_noticed(what, tmp_path, caplog):
    content = NO_HEADER[what]
    with caplog.at_level(logging.WARNING):
        table = read_table(write(tmp_path / "a.tsv", content))
    assert len(table) == len(content.splitlines())
    assert table.columns[:2] == ("column 1", "column 2")
    assert "no header" in caplog.text and "no header" in table.notes[0]


@pytest.mark.parametrize("what", WITH_HEADER)
def test_a_header_is_recognised(what, tmp_path):
    content = WITH_HEADER[what]
    table = read_table(write(tmp_path / "a.tsv", content))
    assert len(table) == len(content.splitlines()) - 1
    assert table.columns == tuple(name or "column 1" for name in content.split("\n")[0].split("\t"))


def test_the_user_knows_better(tmp_path):
    path = write(tmp_path / "a.csv", "1,2\n3,4\n")
    assert len(read_table(path)) == 2
    assert read_table(path, header=True).columns == ("1", "2")
    path = write(tmp_path / "b.csv", "text,label\n3,4\n")
    assert len(read_table(path)) == 1
    assert len(read_table(path, header=False)) == 2


# -- broken rows ------------------------------------------------------------------------------


def many(count, bad, broken):
    rows = [f"text number {place}\tx" for place in range(count)]
    for place in range(bad):
        rows[7 + 40 * place] = broken
    return "text\tlabel\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize("broken", ["one\tcell\ttoo many", "too few"])
def test_a_few_ragged_rows_are_skipped_counted_and_named(broken, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        table = read_table(write(tmp_path / "a.tsv", many(1000, 10, broken)))
    assert len(table) == 990 == len(cells(table)) and table.skipped == 10
    (note,) = table.notes
    assert "10 of 1000 rows" in note and "line 9 has" in note and "line 49" in note and "…" in note
    assert note in caplog.text


def test_too_many_ragged_rows_are_an_error(tmp_path):
    with pytest.raises(DataError, match=r"11 of 1000 rows .*line 9 has 3 cells where 2 belong") as error:
        read_table(write(tmp_path / "a.tsv", many(1000, 11, "a\tb\tc")))
    assert "at most 1%" in str(error.value)


def test_a_quote_that_is_never_closed_is_found(tmp_path):
    rows = [f"text {place},x" for place in range(1000)]
    rows[500] = '"opened,x'
    with pytest.raises(DataError, match="line 502 opens a quote that is never closed"):
        read_table(write(tmp_path / "a.csv", "text,label\n" + "\n".join(rows)))
    rows[500] = '"a "bare" quote",x'
    table = read_table(write(tmp_path / "a.csv", "text,label\n" + "\n".join(rows)))
    assert len(table) == 999 and "line 502 has a quote inside" in table.notes[0]


def test_broken_lines_of_json(tmp_path):
    lines = as_jsonl([["a", "x"]] * 300).splitlines()
    lines[10], lines[20], lines[30] = '{"text": ', '["a", "x"]', '{"text": "a", "text": "b"}'
    table = read_table(write(tmp_path / "a.jsonl", "\n".join(lines)))
    assert len(table) == 297
    assert all(
        f"line {n}" in table.notes[0] for n in ("11 is no JSON", "21 is no JSON object", "31 has the name 'text' twice")
    )
    with pytest.raises(DataError, match="broken"):
        read_table(write(tmp_path / "b.jsonl", "\n".join(lines[:40])))
    with pytest.raises(DataError, match=r"no line of .* is a JSON object"):
        read_table(write(tmp_path / "c.jsonl", "[1]\n" + "[" * 100_000))


# -- refusals ---------------------------------------------------------------------------------

REFUSED = {
    "empty.csv": (b"", "is empty"),
    "spaces.csv": (b"  \n \n\n", "blank lines"),
    "header.csv": (b"text,label\n", "a header and no rows"),
    "header.tsv": (b"text\tlabel", "a header and no rows"),
    "twice.csv": (b"text,label,text\na,b,c\n", "several columns named 'text'"),
    "words.tsv": (b"text,label\na,b\n", "no tab"),
    "prose.txt": (b"Once upon a time\nthere was a file\n", "no table"),
    "image.csv": (b"\x89PNG\r\n\x1a\n123", "a PNG image"),
    "null.csv": (b"text,label\na\0,b\n", "binary"),
    "null_latin.csv": (b"text,label\n" + b"a,\xe9\n" * 2000 + b"a\0,b\n", "binary"),
    "utf16_unmarked.csv": (("text,label\n" + "a,b\n" * 9).encode("utf-16-le"), "UTF-16LE"),
    "bad.json": (b"[{]", "not valid JSON"),
    "damaged.csv": (("text,label\n" + "é à ü ö,x\n" * 50).encode() + b"\xff\xfe,x\n", "not valid UTF-8 at byte"),
    "packed.csv.gz": (gzip.compress(b"text,label\n" + bytes(range(32, 127)) * 500)[:-20], "damaged gzip"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_is_refused_by_name(name, tmp_path):
    content, words = REFUSED[name]
    path = write(tmp_path / name, content)
    with pytest.raises(DataError, match=words) as error:
        read_table(path)
    assert str(path) in str(error.value) and len(str(error.value).splitlines()) <= 3


def test_missing_files_and_folders(tmp_path):
    write(tmp_path / "train.csv", "text,label\na,b\n")
    with pytest.raises(DataError, match="did you mean"):
        read_table(tmp_path / "trian.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)


def test_a_missing_column_has_a_suggestion(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "review,label\na,b\n"))
    with pytest.raises(ConfigError, match="no column 'reviw'") as error:
        table.column("reviw")
    assert "did you mean 'review'" in str(error.value)


def test_one_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("weft.data.table_files.LONGEST", 1 << 20)
    path = write(tmp_path / "a.tsv", b"text\tlabel\n" + b"x" * (4 << 20))
    with pytest.raises(DataError, match=r"line 2 of .* is longer"):
        read_table(path)


def test_long_cells_are_read(tmp_path):
    long = "word " * 60_000  # more than what Python's own reader allows at first
    assert read_table(write(tmp_path / "a.csv", f'text,label\n"{long}",x\n')).column("text") == [long]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_memory_does_not_grow_with_the_file(suffix, tmp_path, monkeypatch):
    for module in ("weft.text.files", "weft.data.table_files"):
        monkeypatch.setattr(f"{module}.CHUNK", 1 << 15)
    rows = [["some words of text " * 10, "x"]] * 200
    write_as = {".csv": as_csv, ".tsv": as_tsv}
    block = as_jsonl(rows) if suffix == ".jsonl" else write_as[suffix](rows)
    head = "" if suffix == ".jsonl" else write_as[suffix]([HEADER])
    path = write(tmp_path / f"big{suffix}", head + block * (2_000_000 // len(block)))
    tracemalloc.start()
    table = read_table(path)
    count = sum(1 for _ in table.rows())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == len(table) > 5_000
    assert peak < 700_000 < path.stat().st_size


# -- lists ------------------------------------------------------------------------------------


def test_tables_from_lists():
    table = Table.of_columns({"text": ["a", None, float("nan")], "label": [1, 2.5, ["x", "y"]]})
    assert cells(table) == [["a", "1"], ["", "2.5"], ["", '["x", "y"]']]
    assert [row.line for row in table.rows()] == [1, 2, 3]
    for wrong in ({}, {"a": []}, {"a": [1], "b": []}):
        with pytest.raises(DataError):
            Table.of_columns(wrong)
