"""`weft generate`, as typed."""

import json

import pytest

import weft as package
from fixtures.commands import generator_command, run_weft
from fixtures.texts import make_text
from weft.tasks.generate.statistics import copied_share
from weft.text import Corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk")
    (folder / "book.txt").write_text(make_text(2000))
    run_weft(*generator_command("book.txt", "run", 60), cwd=folder)
    return folder


def test_one_text_streams_after_its_prompt(folder):
    done = run_weft("generate", "run", "The cat", "--max-tokens", "30", cwd=folder)
    assert done.stdout.startswith("The cat") and len(done.stdout.strip()) > 20
    again = run_weft("generate", "run", "The cat", "--max-tokens", "30", cwd=folder)
    assert again.stdout == done.stdout  # the same seed, the same text
    assert "\x1b" not in done.stdout


def test_python_writes_the_same(folder):
    words = ["--temperature", "0", "--max-tokens", "12"]
    typed = run_weft("generate", "run", "The cat", *words, cwd=folder).stdout
    run = package.load(folder / "run")
    text = run.generate("The cat", temperature=0.0, max_tokens=12)
    assert typed == f"The cat{text}\n"
    assert "".join(run.stream("The cat", temperature=0.0, max_tokens=12)) == text
    assert run.generate(["The cat", "A dog"], temperature=0.0, max_tokens=12)[0] == text
    assert len(run.generate("The cat", samples=3, max_tokens=3)) == 3
    with pytest.raises(package.WeftError, match="samples"):
        run.stream("The cat", samples=2)


def test_json_has_one_object_for_each_text(folder):
    words = ["--samples", "2", "--json", "--max-tokens", "8", "--probabilities", "2", "--copied"]
    lines = run_weft("generate", "run", "The", "A", *words, cwd=folder).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [(f["prompt"], f["sample"]) for f in found] == [("The", 0), ("The", 1), ("A", 0), ("A", 1)]
    assert all(len(f["steps"]) == f["tokens"] and len(f["steps"][0]["others"]) == 2 for f in found)
    assert all(0 <= f["copied"] <= 1 for f in found)


def test_files_in_and_out_keep_their_order(folder):
    (folder / "prompts.txt").write_text("".join(f"The {word}\n" for word in ["cat", "dog", "mat"] * 7))
    words = ["--max-tokens", "4", "--stop", "\n", "--input", "prompts.txt"]
    plain = run_weft("generate", "run", *words, cwd=folder).stdout.splitlines()
    assert [line[:7] for line in plain] == [f"The {word}" for word in ["cat", "dog", "mat"] * 7]
    run_weft("generate", "run", *words, "--output", "out.jsonl", "--json", cwd=folder)
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert [f["prompt"] + f["text"] for f in found] == plain
    refused = run_weft("generate", "run", *words, "--output", "out.jsonl", cwd=folder, check=False)
    assert refused.returncode == 1 and "there already" in refused.stderr


def test_weights_in_int8_say_what_they_cost(folder):
    done = run_weft("generate", "run", "The", "--weights", "int8", "--max-tokens", "3", cwd=folder)
    assert "int8 weights: loss on" in done.stderr and "→" in done.stderr
    rounded = json.loads(run_weft("evaluate", "run", "--weights", "int8", "--json", cwd=folder).stdout)
    exact = json.loads(run_weft("evaluate", "run", "--json", cwd=folder).stdout)
    assert 0 < abs(rounded["loss"] - exact["loss"]) < 0.02 * exact["loss"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere", "a"], 1, "no run"),
        (["run", "a", "--temprature", "1"], 2, "temperature"),
        (["run", "a", "--temperature", "-1"], 2, "temperature"),
        (["run", "a", "--top-p", "7"], 2, "top_p"),
        (["run", "a", "--weights", "int4"], 2, "int8"),
        (["run", "a", "--stop", ""], 2, "stop"),
        (["run", "a", "--input", "prompts.txt"], 2, "one of them"),
        (["run", "--input", "none.txt"], 1, "none.txt"),
        (["run", "a", "--threads", "0"], 2, "threads"),
        (["run", "a", "--samples", "0"], 2, "samples"),
    ],
)
def test_mistakes(folder, words, code, said):
    refused = run_weft("generate", *words, cwd=folder, check=False)
    assert refused.returncode == code and said in refused.stderr
    assert len(refused.stderr.strip().splitlines()) <= 3 and "Traceback" not in refused.stderr


def test_what_stands_in_the_text_is_found():
    book = make_text(20_000, seed=4)
    corpus = Corpus.of_text(book, name="book")
    passage = book[7003:7103]
    assert copied_share(passage, corpus) == 1.0
    assert copied_share("?" * 100 + passage, corpus) == pytest.approx(0.5)
    assert copied_share("nothing of this kind is written anywhere in that book, we hope, or is it", corpus) == 0.0
    assert copied_share("", corpus) == 0.0


@pytest.mark.parametrize("at", range(990, 1060, 7))
def test_passages_across_the_borders_of_pieces_are_found(at):
    book = "".join(chr(97 + (i * i * 7 + i // 26) % 26) for i in range(3000))

    class Pieces:
        def pieces(self):
            return (book[i : i + 500] for i in range(0, len(book), 500))

    assert copied_share(book[at - 30 : at + 30], Pieces()) == 1.0
