"""ARPA files: there and back, and files that are wrong in one place."""

import re

import numpy as np
import pytest

from weft.errors import DataError, UnsupportedError
from weft.models import NGramConfig
from weft.models.ngram.arpa import arpa_lines, read_arpa, spelled
from weft.models.ngram.counts import count
from weft.models.ngram.smoothing import SmoothingConfig

WORDS = ["a", "b", "c", "d", "</s>"]
END = 4


def tables(order=3, kind="kneser-ney"):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 3, 200)
    ids[::17] = END
    return SmoothingConfig.from_config(kind).tables(count(ids, order, 5, END), END)


def written(path, *, order=3, kind="kneser-ney"):
    path.write_text("".join(arpa_lines(tables(order, kind), WORDS)))
    return path


@pytest.mark.parametrize("kind", ["kneser-ney", "witten-bell", "jelinek-mercer", "maximum-likelihood"])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_there_and_back(tmp_path, order, kind):
    ours, found = tables(order, kind), read_arpa(written(tmp_path / "m.arpa", order=order, kind=kind), WORDS)
    assert (found.words, found.end, found.unknown) == (WORDS, END, None)
    for mine, other in zip(ours.levels, found.tables.levels, strict=True):
        assert np.array_equal(mine.tokens, other.tokens) and np.array_equal(mine.starts, other.starts)
        np.testing.assert_allclose(other.probability, mine.probability, rtol=1e-7, atol=0)
        np.testing.assert_allclose(other.backoff, mine.backoff, rtol=1e-7, atol=0)
    model = NGramConfig(vocab_size=5, order=order, end=END).with_tables(found.tables)
    text = np.array([END, 0, 1, 3, 2, 1, END, END, 0])
    np.testing.assert_allclose(model.tables.probabilities(text), ours.probabilities(text), rtol=1e-6)


def test_what_the_file_says(tmp_path):
    lines = written(tmp_path / "m.arpa", order=2).read_text().splitlines()
    head = lines[: lines.index("\\1-grams:")]
    assert head[:2] == ["\\data\\", "ngram 1=7"]  # with <s> and <unk>
    singles = lines[lines.index("\\1-grams:") + 1 : lines.index("\\2-grams:") - 1]
    assert {line.split("\t")[1] for line in singles} == {*WORDS, "<s>", "<unk>"}
    assert next(line for line in singles if "<s>" in line).startswith("-99\t<s>\t-")
    pairs = [line.split("\t")[1] for line in lines[lines.index("\\2-grams:") + 1 : -2]]
    assert any(pair.startswith("<s> ") for pair in pairs) and any(pair.endswith(" </s>") for pair in pairs)
    assert not any(pair.startswith("</s>") or pair.endswith("<s>") for pair in pairs)
    assert lines[-1] == "\\end\\"


def test_words_of_the_file_are_the_vocabulary_if_none_is_known(tmp_path):
    found = read_arpa(written(tmp_path / "m.arpa"))
    assert found.words == ["<unk>", *WORDS] and found.unknown == 0 and found.end == 5
    (tmp_path / "small.arpa").write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n-0.30103\tyes\n-0.30103\tno\n\\end\\\n")
    found = read_arpa(tmp_path / "small.arpa")
    assert found.words == ["yes", "no", "</s>", "<unk>"]
    np.testing.assert_allclose(found.tables.levels[0].probability, [0.5, 0.5, 0, 0], atol=1e-6)


def test_add_k_has_no_such_file():
    with pytest.raises(UnsupportedError, match="shorter"):
        list(arpa_lines(tables(3, "add-k"), WORDS))
    assert list(arpa_lines(tables(1, "add-k"), WORDS))  # there is nothing shorter to ask


def test_spelling_has_no_spaces_and_no_two_words_alike():
    names = ["a", " ", "\n", "%", "%20", "<s>", "</s>", "<unk>", "\u00a0", "é", "", "", "<|endoftext|>", "Ġthe", "\x00"]
    words = spelled(names, 12, None)
    assert len(set(words)) == len(words)
    assert not any(re.search(r"\s|\0", word) or not word for word in words)
    assert words[0] == "a" and words[12] == "</s>" and words[9] == "é" and words[13] == "Ġthe"
    assert "<s>" not in words and "<unk>" not in words
    assert spelled(["x", "[UNK]", "e"], 2, 1) == ["x", "<unk>", "</s>"]


def changed(old, new, times=1):
    return lambda text: text.replace(old, new, times)


def without_line(start):
    return lambda text: "".join(line + "\n" for line in text.splitlines() if not line.startswith(start))


def dropped_number(text):
    """The backoff of the first pair is gone."""
    head, tail = text.split("\\2-grams:\n")
    first, rest = tail.split("\n", 1)
    return f"{head}\\2-grams:\n{first.rpartition(chr(9))[0]}\n{rest}"


def doubled(text):
    head, tail = text.split("\\3-grams:\n")
    first, _, rest = tail.split("\n", 2)
    return f"{head}\\3-grams:\n{first}\n{first}\n{rest}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda _: "", "no .data"),
        (lambda _: "hello\n" * 200, "no .data"),
        (changed("ngram 2=", "ngram 2=9"), "data.* says"),
        (changed("ngram 2=1", "ngram 2="), "promises"),
        (changed("ngram 2=", "ngram 3="), "expected ngram 2=NUMBER"),
        (changed("ngram 1=7", "ngram 1=999999999999"), "says"),
        (lambda text: text[: len(text) // 2], "line"),
        (without_line("\\end"), "end"),
        (lambda text: text + "more\n", ""),
        (dropped_number, "no backoff"),
        (doubled, "twice"),
        (changed("\tb\t", "\ta\t"), "twice"),
        (changed("-99\t<s>", "nan\t<s>"), "logarithm"),
        (changed("-99\t<s>", "0.5\t<s>"), "at most 0"),
        (changed("-99\t<s>", "inf\t<s>"), "logarithm"),
        (changed("-99\t<s>", "what\t<s>"), "logarithm"),
        (changed("a b", "a zebra"), "zebra"),
        (changed("a b", "</s> b"), "is not allowed there"),
        (changed("a b\t", "a b c\t"), "a number, 2 words"),
        (lambda text: text.replace("\\2-grams:", "\\5-grams:"), "promises"),
        (lambda text: re.sub(r"\n[^\n]*\t<s> a\t[^\n]*", "", text, count=1).replace("ngram 2=1", "ngram 2=0", 1), "."),
        (lambda text: "x" * 100_000, "longer"),
    ],
)
def test_a_damaged_file_is_refused_in_a_few_words(tmp_path, change, words):
    path = written(tmp_path / "m.arpa")
    before = path.read_text()
    path.write_text(change(before))
    if change(before) == before + "more\n":  # what comes after the end is not read
        assert read_arpa(path)
        return
    assert path.read_text() != before
    with pytest.raises(DataError, match=words) as error:
        read_arpa(path)
    assert len(str(error.value).splitlines()) <= 3
    assert str(path) in str(error.value)


def test_a_history_that_is_missing_is_named(tmp_path):
    path = written(tmp_path / "m.arpa")
    text = path.read_text()
    pairs = int(re.search(r"ngram 2=(\d+)", text)[1])
    line = re.search(r"\n[^\n]*\ta b\t[^\n]*", text)[0]
    path.write_text(text.replace(line, "", 1).replace(f"ngram 2={pairs}", f"ngram 2={pairs - 1}"))
    with pytest.raises(DataError, match="no 2-gram"):
        read_arpa(path)


def test_no_text_and_no_file(tmp_path):
    (tmp_path / "m.arpa").write_bytes(b"\\data\\\n\xff\xfe\n")
    with pytest.raises(DataError, match="UTF-8"):
        read_arpa(tmp_path / "m.arpa")
    with pytest.raises(DataError, match="cannot be read"):
        read_arpa(tmp_path / "none.arpa")
    path = written(tmp_path / "own.arpa")
    with pytest.raises(DataError, match="no token"):
        read_arpa(path, ["a", "b", "</s>"])
