"""Pairs from two files or a table: line n belongs to line n in every form a file can have, and what is no pair."""

import gzip
import logging
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.tables import make_reversals, write_table
from weft.data import Pairs, Sides, Table, read_pairs, read_parallel, read_table
from weft.errors import DataError

ENGLISH = ["A man.", "naïve café 👩‍👩‍👧", "Two dogs run off."]
GERMAN = ["Ein Mann.", "\tein Tab am Anfang\tund mitten drin", "e\u0301 ist é"]
SIDES = Sides("source", "target")


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def two(folder, source, target):
    return write(folder / "a.en", source), write(folder / "a.de", target)


def text(lines, end="\n", last=True):
    return end.join(lines) + (end if last else "")


FORMS = {
    "plain": lambda lines: text(lines).encode(),
    "open end": lambda lines: text(lines, last=False).encode(),
    "crlf": lambda lines: text(lines, "\r\n").encode(),
    "crlf, open end": lambda lines: text(lines, "\r\n", last=False).encode(),
    "two returns": lambda lines: text(lines, "\r\r\n").encode(),
    "cr": lambda lines: text(lines, "\r").encode(),
    "a mark": lambda lines: b"\xef\xbb\xbf" + text(lines).encode(),
    "utf-16": lambda lines: text(lines, "\r\n").encode("utf-16"),
    "gzip": lambda lines: gzip.compress(text(lines).encode()),
    "blank lines at the end": lambda lines: text([*lines, "", "  ", ""]).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_pairs_in_many_forms(form, tmp_path):
    for paths in (
        two(tmp_path, FORMS[form](ENGLISH), FORMS["plain"](GERMAN)),
        two(tmp_path, FORMS["plain"](ENGLISH), FORMS[form](GERMAN)),
        two(tmp_path, FORMS[form](ENGLISH), FORMS[form](GERMAN)),
    ):
        pairs = read_parallel(*paths)
        assert (pairs.sources, pairs.targets, pairs.lines) == (ENGLISH, GERMAN, [1, 2, 3])
        assert (pairs.without_text > 0) == (form == "blank lines at the end") == bool(pairs.notes)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("form", ["plain", "crlf", "crlf, open end", "cr", "gzip"])
def test_chunks_may_cut_anywhere(form, chunk, tmp_path, monkeypatch):
    paths = two(tmp_path, FORMS[form](ENGLISH), FORMS[form](GERMAN))
    monkeypatch.setattr("weft.text.files.CHUNK", chunk)
    pairs = read_parallel(*paths)
    assert (pairs.sources, pairs.targets) == (ENGLISH, GERMAN)


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e", "\r", "\t"])
def test_only_newlines_end_lines(odd, tmp_path):
    source = [f"one{odd}line", "two", f"{odd}three"]
    pairs = read_parallel(*two(tmp_path, text(source), text("abc")))
    assert (pairs.sources, pairs.targets) == (source, ["a", "b", "c"])


TEXT = st.text(st.characters(blacklist_characters="\0\r\n\ufeff", blacklist_categories=["Cs"]), max_size=12)
FOLDER = [HealthCheck.function_scoped_fixture]


@settings(max_examples=60, deadline=None, suppress_health_check=FOLDER)
@given(rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8))
def test_what_was_written_is_read_back(rows, tmp_path):
    kept = [(n, *row) for n, row in enumerate(rows, 1) if all(side.strip() for side in row)]
    paths = two(tmp_path, text([a for a, _ in rows]), text([b for _, b in rows]))
    if not kept:
        with pytest.raises(DataError):
            read_parallel(*paths)
        return
    pairs = read_parallel(*paths)
    assert list(zip(pairs.lines, pairs.sources, pairs.targets, strict=True)) == kept


@settings(max_examples=100, deadline=None, suppress_health_check=FOLDER)
@given(data=st.binary(max_size=60), other=st.binary(max_size=60))
def test_any_bytes_are_pairs_or_a_clear_refusal(data, other, tmp_path):
    paths = two(tmp_path, data, other)
    try:
        pairs = read_parallel(*paths)
    except DataError as error:
        assert str(tmp_path) in str(error) and str(error).count("\n") <= 2
    else:
        assert len(pairs.sources) == len(pairs.targets) == len(pairs.lines) >= 1


# -- what does not belong together ------------------------------------------------------------


@pytest.mark.parametrize("longer", [0, 1])
def test_different_numbers_of_lines_are_named(longer, tmp_path):
    sides = [text(map(str, range(1200))), text(map(str, range(1199)))]
    paths = two(tmp_path, *(sides if longer == 0 else reversed(sides)))
    with pytest.raises(DataError) as error:
        read_parallel(*paths)
    told = str(error.value)
    counts = ("1,200", "1,199") if longer == 0 else ("1,199", "1,200")
    assert f"{paths[0]} has {counts[0]} lines and {paths[1]} has {counts[1]}" in told
    assert "expected as many in both" in told


def test_empty_sides_are_left_out_counted_and_named(tmp_path, caplog):
    source = [f"text {n}" for n in range(20)]
    target = list(source)
    source[3], target[3], target[7], source[11], target[15] = "", "", " \t", "\u00a0", "\r"
    with caplog.at_level(logging.WARNING):
        pairs = read_parallel(*two(tmp_path, text(source), text(target)))
    assert len(pairs) == 16 and pairs.without_text == 4
    (note,) = pairs.notes
    assert note.startswith("lines of ") and note.endswith("left out: 4 (lines 4, 8, 12, …)") and note in caplog.text
    assert pairs.lines[2:5] == [3, 5, 6], "a pair knows its line"
    with pytest.raises(DataError, match=r"no line of .* has text on both sides"):
        read_parallel(*two(tmp_path, "a\n\n", "\nb\n"))


REFUSED = {
    "a PNG image": b"\x89PNG\r\n\x1a\n123",
    "binary file": b"one\nt\0wo\n",
    "UTF-16LE without a byte-order mark": "one line\nand another\n".encode("utf-16-le"),
    "not valid UTF-8 at byte 3": "schön\n".encode("latin-1"),
    "is empty": b"",
    "damaged gzip": gzip.compress(b"one\ntwo\n" * 99)[:-9],
    "a gzip file inside": gzip.compress(gzip.compress(b"one\ntwo\n")),
}


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_text_is_refused_by_name(what, side, tmp_path):
    contents = [b"one\ntwo\n", b"eins\nzwei\n"]
    contents[side] = REFUSED[what]
    paths = two(tmp_path, *contents)
    with pytest.raises(DataError, match=what) as error:
        read_parallel(*paths)
    assert str(paths[side]) in str(error.value) and len(str(error.value).splitlines()) <= 3


def test_folders_missing_files_and_the_same_file(tmp_path):
    one, other = two(tmp_path, "a\n", "b\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.fr").symlink_to(one)
    with pytest.raises(DataError, match=r"folder is a folder\nexpected a text file for each side: line n"):
        read_parallel(one, tmp_path / "folder")
    with pytest.raises(DataError, match=r"(?s)b\.de does not exist.*did you mean '.*a\.de'"):
        read_parallel(one, tmp_path / "b.de")
    for same in (one, str(one), tmp_path / "link.fr", tmp_path / "folder" / ".." / "a.en"):
        with pytest.raises(DataError, match="are the same file"):
            read_parallel(one, same)
    write(tmp_path / "copy.de", "a\n")
    assert len(read_parallel(one, tmp_path / "copy.de")) == 1, "the same content is allowed, and warned of elsewhere"
    assert len(read_parallel(one, other)) == 1


# -- what would fill the memory ---------------------------------------------------------------


def test_a_gzip_bomb_is_refused_early(tmp_path, monkeypatch):
    monkeypatch.setattr("weft.text.files.HARMLESS", 1 << 20)
    monkeypatch.setattr("weft.text.files.CHUNK", 1 << 16)
    block, size = b"boom " * 200 + b"\n", 16 << 20
    bomb = gzip.compress(block * (size // len(block)), 6)
    assert len(bomb) < size / 200
    other = write(tmp_path / "a.de", b"x\n")
    tracemalloc.start()
    with pytest.raises(DataError, match=r"a\.en unpacks to more than 200 times its size") as error:
        read_parallel(write(tmp_path / "a.en", bomb), other)
    with pytest.raises(DataError, match=r"a\.en unpacks"):
        read_parallel(other, tmp_path / "a.en")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(str(error.value).splitlines()) <= 3
    assert peak < size / 3
    with pytest.raises(DataError, match="unpacks to more"):  # tables are read by the same hands
        list(read_table(write(tmp_path / "b.tsv", gzip.compress(b"a b\tc d\n" * (1 << 20)))).rows())
    monkeypatch.setattr("weft.text.files.HARMLESS", 1 << 30)
    with pytest.raises(DataError, match="lines and"):  # without the limit it is read to the end
        read_parallel(tmp_path / "a.en", other)


def test_text_that_shrinks_as_text_does_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("weft.text.files.HARMLESS", 1 << 10)
    pairs = make_reversals(3000)
    sides = [gzip.compress(text(side).encode()) for side in zip(*pairs, strict=True)]
    assert len(read_parallel(*two(tmp_path, *sides))) == 3000


def test_a_line_without_end_and_too_much_text(tmp_path, monkeypatch):
    monkeypatch.setattr("weft.data.parallel.LONGEST", 1 << 20)
    paths = two(tmp_path, b"short\n" + b"x" * (3 << 20), b"a\nb\n")
    with pytest.raises(DataError, match=r"line 2 of .*a\.en is longer than 1,048,576 characters"):
        read_parallel(*paths)
    monkeypatch.setattr("weft.data.parallel.LONGEST", 1 << 24)
    assert len(read_parallel(*paths).sources[1]) == 3 << 20
    monkeypatch.setattr("weft.data.parallel.LARGEST", 2 << 20)
    with pytest.raises(DataError, match=r"a\.en has more than 2,097,152 characters"):
        read_parallel(*paths)


# -- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_a_table_gives_the_same_pairs(name, tmp_path):
    rows = [*make_reversals(20), ('he said "no"', "c'est ça, oui; non")]
    pairs = read_pairs(read_table(write_table(tmp_path / name, ("source", "target"), rows)), SIDES)
    assert list(zip(pairs.sources, pairs.targets, strict=True)) == rows
    assert pairs.lines[0] == (1 if name == "a.jsonl" else 2) and pairs.notes == ()
    swapped = read_pairs(read_table(tmp_path / name), Sides("target", "source"))
    assert (swapped.sources, swapped.targets) == (pairs.targets, pairs.sources)


def test_a_table_without_a_header_says_so(tmp_path):
    path = write(tmp_path / "a.tsv", "A man rides a horse.\tEin Mann reitet.\nA dog runs off.\tEin Hund rennt weg.\n")
    pairs = read_pairs(read_table(path), Sides("column 1", "column 2"))
    assert pairs.sources == ["A man rides a horse.", "A dog runs off."]
    assert "no header" in pairs.notes[0]


def test_broken_rows_and_empty_cells_are_counted(tmp_path):
    rows = [f"text number {n}\tTexte {n}" for n in range(300)]
    rows[7], rows[9], rows[11] = "a\tb\tc", "only\t ", "\tsolely"
    pairs = read_pairs(read_table(write(tmp_path / "a.tsv", "source\ttarget\n" + "\n".join(rows))), SIDES)
    assert (len(pairs), pairs.broken, pairs.without_text) == (297, 1, 2)
    assert "line 9 has 3 cells" in pairs.notes[0] and "left out: 2 (lines 11, 13)" in pairs.notes[1]
    with pytest.raises(DataError, match=r"no row of .* has text on both sides"):
        read_pairs(Table.of_columns({"source": ["a", None], "target": ["", "b"]}), SIDES)


def test_old_letters_and_quoted_newlines(tmp_path):
    path = write(tmp_path / "a.csv", 'source,target\n"zwei\nZeilen",schön\nx,y\n'.encode("latin-1"))
    pairs = read_pairs(read_table(path), SIDES)
    assert pairs.sources == ["zwei\nZeilen", "x"] and pairs.targets[0] == "schön" and pairs.lines == [2, 4]
    assert "Windows-1252" in pairs.notes[0]


# -- pairs ------------------------------------------------------------------------------------


def test_parts_keys_and_joining():
    pairs = Pairs.of([("A  Dog", "ein Hund"), ("a dog", "Ein Hund"), ("a dog", "une chienne"), ("x", "y")], "few")
    assert len(pairs) == 4 and repr(pairs) == "Pairs('few', 4 pairs)"
    assert pairs.characters == 6 + 8 + 5 + 8 + 5 + 11 + 1 + 1
    one, same, again, other = pairs.keys()
    assert one == same == again != other, "the source alone, without case and spaces"
    first, second, third, _ = pairs.pair_keys()
    assert first == second != third
    part = pairs.part([3, 0])
    assert (part.sources, part.targets, part.lines, part.name) == (["x", "A  Dog"], ["y", "ein Hund"], [4, 1], "few")
    both = Pairs.joined([pairs, part])
    assert len(both) == 6 and both.name == "few, few" and both.lines == [1, 2, 3, 4, 4, 1]
    assert Pairs.joined([pairs]) is pairs
