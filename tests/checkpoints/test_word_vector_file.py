"""word2vec's file format: exact both ways, the same as gensim's, and hostile files are refused by name."""

import numpy as np
import pytest

from weft.checkpoints.word_vector_file import is_word_vector_file, read_word_vectors, write_word_vectors
from weft.errors import DataError

WORDS = ("the", "Köln", "new_york", "日本")
VECTORS = np.array([[1, -2.5], [1e-30, 3.4e38], [0, -0.0], [0.1, 1 / 3]], dtype=np.float32)


@pytest.mark.parametrize("binary", [False, True])
def test_what_is_written_is_read_again(tmp_path, binary):
    path = tmp_path / "vectors"
    write_word_vectors(path, WORDS, VECTORS, binary=binary)
    found = read_word_vectors(path)
    assert is_word_vector_file(path) and found.words == WORDS and found.binary is binary
    assert found.vectors.tobytes() == VECTORS.tobytes()


@pytest.mark.parametrize("binary", [False, True])
def test_gensim_reads_ours_and_we_read_gensims(tmp_path, binary):
    keyed = pytest.importorskip("gensim.models").KeyedVectors
    vectors = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32)
    write_word_vectors(tmp_path / "ours", WORDS, vectors, binary=binary)
    theirs = keyed.load_word2vec_format(tmp_path / "ours", binary=binary)
    assert theirs.index_to_key == list(WORDS) and np.array_equal(theirs.vectors, vectors)
    theirs.save_word2vec_format(tmp_path / "theirs", binary=binary)
    found = read_word_vectors(tmp_path / "theirs")
    assert found.words == WORDS and np.array_equal(found.vectors, vectors) and found.binary is binary


def test_the_habits_of_other_programs_are_understood(tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(b"2 2\r\na 1 2 \r\nb 3 4 ")  # spaces at the ends of lines, and no last end
    assert read_word_vectors(path).vectors.tolist() == [[1, 2], [3, 4]]
    row = np.array([1, 2], dtype="<f4").tobytes()
    path.write_bytes(b"2 2\na " + row + b"b " + row)  # gensim puts no line ends between binary rows
    assert read_word_vectors(path).words == ("a", "b")


ROW = np.array([1, 2], dtype="<f4").tobytes()
NAN = np.array([1, np.nan], dtype="<f4").tobytes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "does not begin with two numbers"),
        (b"hello world\n", "does not begin with two numbers"),
        (b"0 5\n", "0 words"),
        (b"2 0\na\nb\n", "0 numbers"),
        (b"9999999999 999999\na 1 2\n", "bytes at least"),
        (b"3000000 300\na " + ROW * 50, "bytes at least"),
        (b"3 2\na 1 2\nb 3 4\n\n\n\n\n\n\n\n\n\n", "cells after it"),
        (b"2 2\na 1 2\nb 3 4\nc 5 6\n", "goes on after"),
        (b"2 2\na 1 2\nb 3 x\n", "cells after it"),
        (b"2 2\na 1 2 3\nb 3 4\n", "cells after it"),
        (b"2 2\na 1 2\na 3 4\n", "was there already"),
        (b"2 2\na 1 nan\nb 3 4\n", "not finite"),
        (b"2 2\na 1 inf\nb 3 4\n", "not finite"),
        (b"2 2\na 1 1e99\nb 3 4\n", "not finite"),
        (b"2 2\na 1 2\n\xff\xfe 3 4\n", "not valid UTF-8"),
        (b"2 2\na " + ROW + b"a " + ROW, "was there already"),
        (b"2 2\na " + ROW + b"b " + NAN, "not finite"),
        (b"2 2\na " + ROW + b"b" * 20 + b" " + ROW[:4], "ends after 1 of 2"),
        (b"2 2\na " + ROW + b"b " + ROW + b"c " + ROW, "goes on after"),
        (b"1 2\n" + b"a" * 2000 + b" " + ROW, "ends after 0"),
        (b"1 2\n\xff " + ROW, "not valid UTF-8"),
    ],
)
def test_broken_and_hostile_files_are_refused(tmp_path, content, said):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said) as refused:
        read_word_vectors(path)
    assert len(str(refused.value).splitlines()) <= 3


def test_words_that_the_format_cannot_hold_are_not_written(tmp_path):
    with pytest.raises(DataError, match="new york"):
        write_word_vectors(tmp_path / "vectors", ["new york"], VECTORS[:1], binary=False)
    assert not any(tmp_path.iterdir())
