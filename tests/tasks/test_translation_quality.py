"""How good translations are by the length of their sources."""

import pytest

from weft.tasks.translate.quality import by_length, quality


def texts(*lengths):
    return [" ".join(f"w{n}" for n in range(length)) for length in lengths]


def test_each_bucket_is_measured_alone():
    sources = texts(1, 5, 6, 10, 11, 15, 16, 20, 21, 30, 31, 90)
    references = texts(*[8] * 12)
    written = references[:6] + ["something else"] * 6
    rows = by_length(sources, written, references)
    assert [row["words"] for row in rows] == ["1-5", "6-10", "11-15", "16-20", "21-30", "31+"]
    assert [row["pairs"] for row in rows] == [2] * 6 and [row["mean_words"] for row in rows] == [
        3,
        8,
        13,
        18,
        25.5,
        60.5,
    ]
    assert [row["exact_match"] for row in rows] == [1, 1, 1, 0, 0, 0]
    assert [row["bleu"] for row in rows] == pytest.approx([100] * 3 + [0] * 3, abs=1)
    assert all("chrf" not in row for row in rows)


def test_short_texts_have_finer_buckets_and_empty_buckets_are_left_out():
    rows = by_length(texts(1, 2, 4, 7, 9), ["x"] * 5, ["x"] * 5)
    assert [(row["words"], row["pairs"]) for row in rows] == [("1-2", 2), ("4", 1), ("7+", 2)]
    assert by_length([], [], []) == []
    assert [row["words"] for row in by_length(["", "a b c"], ["x", "y"], ["x", "y"])] == ["1-2", "3"]


def test_all_together_is_the_whole():
    sources, references = texts(3, 12, 40), texts(3, 12, 40)
    written = [references[0], references[1], "no"]
    rows = by_length(sources, written, references)
    whole = quality(written, references)
    assert sum(row["exact_match"] * row["pairs"] for row in rows) / 3 == pytest.approx(whole["exact_match"])


def test_without_sacrebleu_exact_matches_are_left(monkeypatch):
    monkeypatch.setattr("weft.tasks.translate.quality.has_bleu", lambda: False)
    (row,) = by_length(["a b"], ["x"], ["x"])
    assert row == {"words": "1-2", "mean_words": 2.0, "pairs": 1, "exact_match": 1.0}
