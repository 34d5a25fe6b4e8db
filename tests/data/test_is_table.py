"""Tables are told from texts by the end of their name, else by what is in them."""

import gzip

import pytest

from weft.data.table_files import is_table

TABBED = "sentence\tlabel\n" + "some words here\tgood\n" * 30


@pytest.mark.parametrize(
    ("name", "content", "table"),
    [
        ("a.csv", "x", True),
        ("a.CSV", "x", True),
        ("a.tsv", "x", True),
        ("a.jsonl", "x", True),
        ("a.json", "[]", True),
        ("a.txt", TABBED, True),
        ("a", TABBED, True),
        ("a.txt", TABBED.replace("\n", "\r\n"), True),
        ("a.txt", '{"text": "a", "label": "b"}\n' * 3, True),
        ("a.txt", '{"text": "a",\n "label": "b"}\n', False),
        ("a.txt", "Well, it rained, and we stayed.\n" * 30, False),
        ("a.txt", "\tindented\n" * 30, False),
        ("a.txt", "def f():\n\treturn 1\n" * 30, False),
        ("a.txt", "a\tb\n" + "one tab at the beginning only\n" * 30, False),
        ("a.txt", "one\tline", False),
        ("a.txt", "", False),
        ("a.txt", "\n\n", False),
    ],
)
def test_by_name_or_content(tmp_path, name, content, table):
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    assert is_table(tmp_path / name) is table
    with gzip.open(tmp_path / f"{name}.gz", "wt", encoding="utf-8", newline="") as file:
        file.write(content)
    assert is_table(tmp_path / f"{name}.gz") is table


def test_only_the_beginning_is_read(tmp_path):
    (tmp_path / "a.txt").write_text(TABBED * 200)  # its 64th kilobyte stands within a line
    assert is_table(tmp_path / "a.txt")
    (tmp_path / "utf16.txt").write_bytes(TABBED.encode("utf-16"))
    assert is_table(tmp_path / "utf16.txt")
    (tmp_path / "latin.txt").write_bytes(TABBED.replace("good", "schön").encode("latin-1"))
    assert is_table(tmp_path / "latin.txt")


def test_what_is_no_file_is_no_table_unless_its_name_says_so(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    assert not is_table(tmp_path / "folder.csv")
    assert not is_table(tmp_path / "none.txt")
    assert is_table(tmp_path / "none.csv")  # reading it will say that it is not there
    assert not is_table(tmp_path / ("x" * 5000))
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b nothing")
    assert not is_table(tmp_path / "broken.gz")
