"""`weft similar`, `weft analogy`, and the other verbs for runs of word vectors."""

import json

import numpy as np
import pytest

from fixtures.commands import run_weft
from weft.checkpoints.word_vector_file import write_word_vectors

# two directions: which country, and whether it is a capital; a third for words that have nothing to do with it
PLACES = {
    "france": (1, 0, 0), "paris": (1, 1, 0), "italy": (0.2, 0, 1), "rome": (0.2, 1, 1),
    "spain": (-1, 0, 0.3), "madrid": (-1, 1, 0.3), "cheese": (0, -1, -1),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    vectors = np.array(list(PLACES.values()), dtype=np.float32)
    write_word_vectors(folder / "places.txt", list(PLACES), vectors, binary=False)
    run_weft("import", "places.txt", "--out", "run", cwd=folder)
    return folder


def cosine(a, b):
    a, b = np.array(PLACES[a]), np.array(PLACES[b])
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_similar_gives_the_nearest_by_cosine(folder):
    told = json.loads(run_weft("similar", "run", "paris", "--top", "3", "--json", cwd=folder).stdout)
    expected = sorted((word for word in PLACES if word != "paris"), key=lambda word: -cosine("paris", word))[:3]
    assert told["word"] == "paris" and [one["word"] for one in told["similar"]] == expected
    assert told["similar"][0]["similarity"] == pytest.approx(cosine("paris", expected[0]), abs=1e-5)
    lines = run_weft("similar", "run", "paris", "rome", "--top", "2", cwd=folder).stdout.splitlines()
    assert lines[0] == "paris:" and lines[3] == "rome:" and len(lines) == 6


def test_analogy_leaves_its_three_words_out(folder):
    told = json.loads(run_weft("analogy", "run", "france", "paris", "spain", "--json", cwd=folder).stdout)
    words = [one["word"] for one in told["similar"]]
    assert words[0] == "madrid" and not {"france", "paris", "spain"} & set(words) and len(words) == 4
    said = run_weft("analogy", "run", "france", "paris", "italy", cwd=folder).stdout
    assert said.startswith("france is to paris as italy is to:\n  rome")


def test_words_come_from_files_and_go_into_files(folder):
    (folder / "asked.txt").write_text("paris\nrome\n")
    run_weft("similar", "run", "--input", "asked.txt", "--output", "told.jsonl", "--json", cwd=folder)
    told = [json.loads(line) for line in (folder / "told.jsonl").read_text().splitlines()]
    assert [one["word"] for one in told] == ["paris", "rome"]
    (folder / "three.txt").write_text("france paris spain\nspain madrid france\n")
    lines = run_weft("analogy", "run", "--input", "three.txt", "--json", cwd=folder).stdout.splitlines()
    assert [json.loads(line)["similar"][0]["word"] for line in lines] == ["madrid", "paris"]


def test_embed_gives_the_vectors_of_words(folder):
    told = json.loads(run_weft("embed", "run", "rome", "--json", cwd=folder).stdout)
    assert told["vector"] == pytest.approx(PLACES["rome"])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["similar", "run", "pariss"], 1, "did you mean 'paris'"),
        (["similar", "run", "Paris"], 1, "did you mean 'paris'"),
        (["similar", "run", "qqqqqqqq"], 1, "7 words are known"),
        (["embed", "run", "pariss"], 1, "did you mean 'paris'"),
        (["similar", "run", "paris", "--top", "0"], 2, "top = 0"),
        (["analogy", "run", "france", "paris"], 2, "expected three"),
        (["embed", "run", "paris", "--pool", "last"], 2, "one vector"),
        (["generate", "run", "paris"], 1, "has a vector for each word"),
        (["evaluate", "run"], 1, "it has no validation data"),
        (["evaluate", "run", "nowhere.txt"], 1, "cannot be read"),
        (["resume", "run"], 1, "imported"),
        (["export", "run", "new", "--to", "hf"], 1, "not skipgram"),
        (["export", "run", "places.txt"], 1, "there already"),
        (["export", "run", "nowhere/places.txt"], 1, "no folder"),
        (["import", "odd.txt", "--out", "new"], 1, "vectors as word2vec writes them"),
        (["train", "fill", "odd.txt", "--from", "run"], 1, "is a skipgram"),
    ],
)
def test_mistakes_are_told_in_three_lines(folder, words, code, said):
    (folder / "odd.txt").write_text("some text that is no vectors. " * 20)
    result = run_weft(*words, cwd=folder, check=False)
    assert result.returncode == code and said in result.stderr
    assert len([line for line in result.stderr.splitlines() if not line.endswith("…")]) <= 3


def test_evaluate_measures_pairs_of_words(folder):
    lines = [("paris", "rome", 9), ("paris", "France", 8.5), ("cheese", "rome", 1), ("paris", "unheard", 5)]
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in lines))
    told = json.loads(run_weft("evaluate", "run", "pairs.tsv", "--json", cwd=folder).stdout)
    ours = [cosine(a, b.lower()) for a, b, _ in lines[:3]]
    from scipy.stats import spearmanr

    assert told["spearman"] == pytest.approx(spearmanr(ours, [9, 8.5, 1])[0])
    assert (told["pairs"], told["known_pairs"]) == (4, 3)
    assert "3 of 4 pairs" in run_weft("evaluate", "run", "pairs.tsv", cwd=folder).stdout


def test_evaluate_counts_right_analogies(folder):
    (folder / "questions.txt").write_text(
        ": capitals\nFrance Paris Spain Madrid\nfrance paris italy cheese\n"
        ": others\nspain madrid france paris\na b c d\n"
    )
    told = json.loads(run_weft("evaluate", "run", "questions.txt", "--json", cwd=folder).stdout)
    assert told["accuracy"] == pytest.approx(2 / 3) and (told["questions"], told["known_questions"]) == (4, 3)
    assert told["sections"] == {
        "capitals": {"accuracy": 0.5, "questions": 2},
        "others": {"accuracy": 1.0, "questions": 1},
    }
    both = json.loads(run_weft("evaluate", "run", "questions.txt", "pairs.tsv", "--json", cwd=folder).stdout)
    assert {"accuracy", "spearman"} <= set(both)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("a\tb\tc\nparis\trome\tx\n", "line 2"),
        ("xx\tyy\t1\n", "are known"),
        (": s\na b c\n", "line 2"),
    ],
)
def test_a_file_that_measures_nothing_is_refused(folder, content, said):
    (folder / "bad.txt").write_text(content)
    result = run_weft("evaluate", "run", "bad.txt", cwd=folder, check=False)
    assert result.returncode == 1 and said in result.stderr


def test_what_is_exported_is_what_was_imported(folder):
    run_weft("export", "run", "again.txt", "--to", "word2vec", cwd=folder)
    run_weft("export", "run", "again.bin", cwd=folder)
    told = json.loads(run_weft("export", "run", "again.vec", "--to", "word2vec-binary", "--json", cwd=folder).stdout)
    assert (folder / "again.txt").read_bytes() == (folder / "places.txt").read_bytes()
    assert told["format"] == "word2vec-binary" and told["words"] == 7
    assert (
        (folder / "again.vec").read_bytes()
        == (folder / "again.bin").read_bytes()
        != (folder / "again.txt").read_bytes()
    )
