"""Files as people have them, and files that are something else."""

import gzip
import io
import os
import zipfile

import numpy as np
import pytest

from weft.errors import DataError
from weft.text import Document, find_documents

TEXT = "First line\nnaïve café 👩‍👩‍👧\nlast"


def read(path):
    return "".join(Document.of_file(path).read())


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def names(found, base):
    return [os.path.relpath(document.name, base) for document in found]


GOOD = {
    "plain": TEXT.encode(),
    "utf-8 with a mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "utf-16": TEXT.encode("utf-16"),
    "utf-16 big-endian": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-32": TEXT.encode("utf-32"),
    "crlf": TEXT.replace("\n", "\r\n").encode(),
    "cr": TEXT.replace("\n", "\r").encode(),
    "utf-16 crlf": TEXT.replace("\n", "\r\n").encode("utf-16"),
    "gzip": gzip.compress(TEXT.encode()),
}


@pytest.mark.parametrize("what", GOOD)
def test_the_same_text_in_many_forms(what, tmp_path):
    path = write(tmp_path / "text.txt", GOOD[what])
    assert [document.path for document in find_documents([path])] == [path]
    assert read(path) == TEXT


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("what", GOOD)
def test_chunks_may_cut_anywhere(what, chunk, tmp_path, monkeypatch):
    path = write(tmp_path / "text.txt", GOOD[what])
    find_documents([path])
    if what not in ("plain", "crlf", "cr", "gzip"):
        chunk += 4  # the mark must be in the first one
    monkeypatch.setattr("weft.text.files.CHUNK", chunk)
    assert read(path) == TEXT


def test_strings_are_cleaned_too():
    assert "".join(Document.of_text("\ufeffa\r\nb\rc\n").read()) == "a\nb\nc\n"
    assert list(Document.of_text("").read()) == []
    assert repr(Document.of_text("abc", name="demo")) == "Document('demo')"


def test_one_very_long_line(tmp_path):
    path = write(tmp_path / "long.txt", b"word " * 1_000_000)
    pieces = list(Document.of_file(path).read())
    assert max(map(len, pieces)) <= 1 << 20 and sum(map(len, pieces)) == 5_000_000


# -- finding ----------------------------------------------------------------------------------


def test_folders_are_searched_in_order(tmp_path):
    for name in ("b.txt", "a.TXT", "c/d.txt", "c/e.md", ".hidden.txt", ".git/f.txt", "c/g.txt.gz", "empty.txt"):
        content = gzip.compress(b"packed") if name.endswith("gz") else b"" if "empty" in name else b"text"
        write(tmp_path / name, content)
    expected = ["a.TXT", "b.txt", "c/d.txt", "c/g.txt.gz"]
    assert names(find_documents([tmp_path]), tmp_path) == expected
    assert names(find_documents([tmp_path / "c" / "e.md", str(tmp_path)]), tmp_path) == ["c/e.md", *expected]
    assert names(find_documents([tmp_path, tmp_path / "b.txt"]), tmp_path) == expected, "no file is read twice"


def test_what_is_not_there(tmp_path):
    write(tmp_path / "shakespeare.txt", "text")
    cases = {
        "shakespear.txt": "shakespear.txt does not exist\ndid you mean '.*shakespeare.txt'",
        "zzz": "zzz does not exist$",
        "no/where.txt": "does not exist\nthere is no folder .*no either",
        "shakespeare.txt/x": "does not exist",
    }
    for name, message in cases.items():
        with pytest.raises(DataError, match=message):
            find_documents([tmp_path / name])
    for text in ("Once upon a time.\n" * 3, "word " * 2000, "nul\0"):
        with pytest.raises(DataError, match="is no name of a file\nexpected a path"):
            find_documents([text])
    with pytest.raises(DataError, match="no files given"):
        find_documents([])
    (tmp_path / "dead.txt").symlink_to(tmp_path / "gone")
    with pytest.raises(DataError, match="does not exist"):
        find_documents([tmp_path / "dead.txt"])
    assert len(find_documents([tmp_path])) == 1, "a dead link in a folder is left out"


def test_folders_without_text(tmp_path):
    write(tmp_path / "a" / "image.png", b"\x89PNG")
    write(tmp_path / "b" / "empty.txt", b"")
    for name in "ab":
        with pytest.raises(DataError, match=r"is a folder with no text in it\nexpected files that end in \.txt"):
            find_documents([tmp_path / name])


def test_pipes_and_locked_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(DataError, match="a device or a pipe"):
        find_documents([tmp_path / "pipe.txt"])
    locked = write(tmp_path / "locked.txt", "text")
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        with pytest.raises(DataError, match="cannot be read: Permission denied"):
            find_documents([locked])


# -- what is no text --------------------------------------------------------------------------


def _zip():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "<w/>")
    return file.getvalue()


def _numpy():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


BINARY = {
    "a PNG image": b"\x89PNG\r\n\x1a\n....",
    "a JPEG image": b"\xff\xd8\xff\xe0..",
    "a PDF document": b"%PDF-1.7\n",
    "a zip archive": _zip(),
    "a pickled Python object": b"\x80\x04\x95\x10\x00",
    "a NumPy array": _numpy(),
    "a rich-text": b"{\\rtf1\\ansi hello}",
    "a program": b"\x7fELF\x02\x01",
    "a safetensors file": (40).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[1],',
    "a tar archive": b"name".ljust(257, b"\0") + b"ustar\x0000",
    r"a binary file \(a NUL at byte 5\)": b"hello\0world, this is some text",
    "looks like UTF-16LE without a byte-order mark": "hello world".encode("utf-16-le"),
    "looks like UTF-16BE without a byte-order mark": "hello world".encode("utf-16-be"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("what", BINARY)
def test_binary_files_are_called_by_their_name(what, packed, tmp_path):
    path = write(tmp_path / "text.txt", gzip.compress(BINARY[what]) if packed else BINARY[what])
    for act in (lambda: find_documents([path]), lambda: find_documents([tmp_path]), lambda: read(path)):
        with pytest.raises(DataError, match=what) as caught:
            act()
        assert "text.txt" in str(caught.value) and len(str(caught.value).splitlines()) <= 3


def test_a_nul_far_inside(tmp_path):
    path = write(tmp_path / "text.txt", b"some text " * 200_000 + b"\0 more")
    find_documents([path])
    with pytest.raises(DataError, match="a NUL at byte 2000000"):
        read(path)
    path = write(tmp_path / "wide.txt", "wide \0 text".encode("utf-16"))
    with pytest.raises(DataError, match="a binary file"):
        read(path)


def test_empty_files(tmp_path):
    for content in (b"", gzip.compress(b"")):
        with pytest.raises(DataError, match=r"a\.txt is empty"):
            find_documents([write(tmp_path / "a.txt", content)])


@pytest.mark.parametrize("place", [3, 1_500_000])
def test_invalid_utf8_is_located(place, tmp_path):
    path = write(tmp_path / "text.txt", b"a" * place + "é".encode("latin-1") + b" and more")
    find_documents([path])
    with pytest.raises(DataError, match=f"not valid UTF-8 at byte {place}\nexpected UTF-8\n.*WINDOWS-1252"):
        read(path)
    with pytest.raises(DataError, match=f"at byte {place + 3}\n"):
        read(write(path, b"\xef\xbb\xbf" + b"a" * place + b"\x81\xff bad"))


def test_a_file_that_ends_inside_a_character(tmp_path):
    path = write(tmp_path / "text.txt", "abé".encode()[:-1])
    with pytest.raises(DataError, match="not valid UTF-8 at byte 2"):
        read(path)
    with pytest.raises(DataError, match="not valid UTF-16-LE at byte 4"):
        read(write(path, "ab".encode("utf-16")[:-1]))


def test_damaged_gzip(tmp_path):
    whole = gzip.compress(os.urandom(3000).hex().encode())
    for damaged in (whole[:1000], whole[:50] + b"\xff" * 50 + whole[100:]):
        path = write(tmp_path / "text.txt.gz", damaged)
        with pytest.raises(DataError, match="a damaged gzip file"):
            find_documents([path]) and read(path)
