"""`weft tokens`: what a person meets who wants to see how texts are cut."""

import json
import subprocess
import sys

import pytest

from fixtures.commands import generator_command, run_weft, run_weft_process
from fixtures.texts import make_text
from weft.cli import tokens as command
from weft.cli.tokens_shown import _lines
from weft.text import TokenizerConfig
from weft.text.schemes import SCHEMES

PETER = "Peter Piper picked a peck of pickled peppers"


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk")
    (folder / "book.txt").write_text(make_text(3000))
    (folder / "run").mkdir()
    config = TokenizerConfig.from_config({"kind": "bpe", "vocab_size": 400})
    config.train([make_text(3000)]).save(folder / "run" / "tokenizer.json")
    return folder


def told(*words, **options):
    return json.loads(run_weft("tokens", *words, "--json", **options).stdout)


def refused(*words, cwd):
    result = run_weft("tokens", *words, cwd=cwd, check=False)
    assert 1 <= len(result.stderr.splitlines()) <= 3 and "Traceback" not in result.stderr
    return result.returncode, result.stderr


def test_every_scheme_side_by_side(desk):
    out = run_weft("tokens", "The cat sat", "--train", "book.txt", "--vocab-size", "400", cwd=desk).stdout
    lines = out.splitlines()
    assert lines[:2] == [
        "11 characters, 11 bytes, 1 line.",
        "The schemes have learned from book.txt (3,000 characters).",
    ]
    assert "characters  T h e ␣ c a t ␣ s a t" in lines
    assert "words       The ␣cat ␣sat" in lines
    assert "wordpiece   the cat sat" in lines
    for kind in SCHEMES:
        assert sum(line.split()[:1] == [kind] for line in lines) == 3, kind
    row = next(line for line in lines if line.startswith("bytes ") and "257" in line)
    assert row.split() == ["bytes", "257", "11", "1.00", "1.00", "0", "yes"]
    pays = [line.split() for line in lines if line.startswith("bytes ")][-1]
    assert pays == ["bytes", "11.0", "11", "13.4×", "3.7×", "0.3", "MB"]
    assert "\x1b" not in out and not any(line != line.rstrip() for line in lines)


def test_json_has_everything(desk):
    found = told("The 🎉", "on", "--schemes", "bpe,characters", "--train", "book.txt", "--width", "8", cwd=desk)
    assert (found["characters"], found["bytes"], found["lines"], found["width"]) == (7, 10, 2, 8)
    assert found["learned_from"] == "book.txt (3,000 characters)"
    assert [row["scheme"] for row in found["schemes"]] == ["bpe", "characters"]
    row = found["schemes"][1]
    assert row["tokens"] == 4 + 4 + 2 and row["unseen"] == 4 / 10 and row["gives_text_back"] is True
    assert row["embedding_parameters"] == row["vocab_size"] * 8
    assert b"".join(bytes.fromhex(token["bytes"]) for token in row["cuts"][0]).decode() == "The 🎉"
    tokenizer = TokenizerConfig.from_config("characters").train([make_text(3000)])
    assert [token["id"] for token in row["cuts"][0]] == tokenizer.encode("The 🎉").tolist()


def test_ids_stand_below_their_tokens(desk):
    out = run_weft("tokens", "The cat", "--ids", "--schemes", "bytes", cwd=desk).stdout.splitlines()
    assert out[2:4] == ["bytes  T  h   e   ␣  c  a  t", "       84 104 101 32 99 97 116"]


def test_lines_break_between_tokens():
    assert list(_lines(["Peter", "␣a", "日本"], [7, 12345, 8], 40)) == ["Peter ␣a    日本", "7     12345 8"]
    assert list(_lines(["Peter", "␣a", "日本"], [7, 12345, 8], 9)) == ["Peter", "7", "␣a", "12345", "日本", "8"]
    assert list(_lines(["ab", "cd", "ef"], [], 5)) == ["ab cd", "ef"]
    assert list(_lines(["ab", "x" * 12], [], 5)) == ["ab", "xxxxx", "xxxxx", "xx"]
    assert list(_lines([], [], 5)) == [""]


def test_files_stdin_and_input(desk):
    book = make_text(3000)
    for words in (("book.txt",), ("--input", "book.txt")):
        assert told(*words, "--schemes", "bytes", cwd=desk)["characters"] == 3000
    for words in (("-",), ("--input", "-"), ()):
        assert told(*words, "--schemes", "bytes", cwd=desk, stdin=book + "é")["bytes"] == 3002
    assert refused("a", "--input", "book.txt", cwd=desk)[0] == 2
    assert refused("--input", "missing.txt", cwd=desk)[0] == 1
    result = run_weft("tokens", "bok.txt", "--schemes", "bytes", cwd=desk)
    assert "no file bok.txt" in result.stderr and "did you mean 'book.txt'" in result.stderr
    assert result.stdout.startswith("7 characters")


def test_a_large_text_teaches_itself(desk, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "LARGE", 3000)
    assert told("book.txt", "--schemes", "words", cwd=desk)["learned_from"] == "the text itself (3,000 characters)"
    monkeypatch.setattr(command, "LARGE", 3001)
    monkeypatch.setattr(command, "DEMO_LENGTH", 20_000)
    assert "demo text" in told("book.txt", "--schemes", "words", cwd=desk)["learned_from"]
    assert told("book.txt", "--schemes", "bytes", cwd=desk)["learned_from"] is None
    monkeypatch.setattr(command, "LEARNED", 1000)
    (tmp_path / "lines.txt").write_text("unheard-of words\n" * 3)
    found = told("lines.txt", "--train", str(desk / "book.txt"), "--schemes", "words", cwd=tmp_path)
    assert "its first 1,000 characters" in found["learned_from"]


def test_the_tokenizer_of_a_run(tmp_path):
    (tmp_path / "book.txt").write_text(make_text(2000))
    run_weft(*generator_command("book.txt", "runs/book", 1), cwd=tmp_path)
    alone = told("The cat", "--run", "runs/book", cwd=tmp_path)
    assert [(row["scheme"], row["kind"]) for row in alone["schemes"]] == [("runs/book", "characters")]
    assert alone["learned_from"] is None
    both = told("The cat", "--run", "runs/book", "--schemes", "bytes,runs/book/tokenizer.json", cwd=tmp_path)
    assert [row["scheme"] for row in both["schemes"]] == ["bytes", "runs/book/tokenizer.json", "runs/book"]
    out = run_weft("tokens", "The cat", "--run", "runs/book", "--schemes", "bytes", cwd=tmp_path).stdout
    assert "runs/book  T h e ␣ c a t" in out
    code, said = refused("The cat", "--run", "runs/bok", cwd=tmp_path)
    assert code == 1 and "did you mean 'book'?" in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["x", "--schemes", "bpee"], 2, "did you mean 'bpe'?"),
        (["x", "--schemes", "bpe,,words"], 2, "commas"),
        (["x", "--schemes", ""], 2, "commas"),
        (["x", "--schemes", "runs/none"], 1, "does not exist"),
        (["x", "--vocab-size", "100"], 2, "at least 257"),
        (["x", "--vocab-sise", "100"], 2, "--vocab-size"),
        (["x", "--show", "-1"], 2, "0 or more"),
        (["x", "--width", "0"], 2, "1 or more"),
        (["x", "--train", "missing.txt"], 1, "missing.txt"),
        (["--replay", "a sentence", "of two"], 2, "one sentence"),
        (["--replay", "x" * 1001], 1, "1,000"),
        (["--replay", "a", "--schemes", "words"], 2, "expected bpe"),
        (["--replay", "a", "--schemes", "bytes"], 2, "expected bpe"),
        (["--replay", "a", "--schemes", "bpe,words"], 2, "expected bpe"),
        (["--replay", "a", "--run", "run", "--vocab-size", "300"], 2, "learned already"),
        (["--replay", "abc"], 1, "merges"),
    ],
)
def test_mistakes(desk, words, code, said):
    found = refused(*words, cwd=desk)
    assert found[0] == code and said in found[1]


def test_merges_that_a_sentence_teaches(desk):
    out = run_weft("tokens", "--replay", "banana bandana", "--ids", cwd=desk).stdout.splitlines()
    assert out[:4] == [
        "Merges that this sentence teaches, the most frequent pair first.",
        "start: 14 tokens",
        "  b a n a n a ␣ b a n d a n a",
        "1: a + n → an, 4 times",
    ]
    assert out[4] == "  b an an a ␣ b an d an a"
    assert out[-2].startswith("ids: ")
    found = told("--replay", "banana bandana", cwd=desk)
    assert [" ".join(map(str, found["ids"]))] == [out[-2].removeprefix("ids: ")]
    assert found["merges"][0] == {
        "rank": 0,
        "pair": ["a", "n"],
        "joined": "an",
        "count": 4,
        "tokens": ["b", "an", "an", "a", "␣", "b", "an", "d", "an", "a"],
    }
    last = found["merges"][-1]["tokens"]
    assert out[-1] == f"{len(found['merges'])} merges: 14 tokens became {len(last)}."
    assert len(last) == len(found["ids"]) and "".join(last) == "banana␣bandana"


def test_merges_of_a_run(desk):
    found = told("--replay", PETER, "--run", "run", cwd=desk)
    assert found["tokenizer"] == "run"
    tokenizer = TokenizerConfig.from_config({"kind": "bpe", "vocab_size": 400}).train([make_text(3000)])
    assert found["ids"] == tokenizer.encode(PETER).tolist()
    assert told("--replay", PETER, "--train", "book.txt", "--vocab-size", "400", cwd=desk)["ids"] == found["ids"]
    out = run_weft("tokens", "--replay", PETER, "--run", "run", cwd=desk).stdout
    assert out.startswith("Merges of run.\n") and "of its list)" in out


@pytest.mark.parametrize(
    "words", ["", " ", "👨‍👩‍👧 e\u0301\u0301 \u202e x", "a\x00b\x1b[31m", "日本語" * 40, "x" * 300]
)
@pytest.mark.parametrize("columns", [12, 40, 80])
def test_any_text_at_any_width(desk, words, columns, monkeypatch):
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    for more in ([], ["--ids"]):
        out = run_weft("tokens", words, "--run", "run", "--schemes", "characters,wordpiece", "--train", "book.txt",
                   *more, cwd=desk).stdout  # fmt: skip
        assert "\x1b" not in out and "\u202e" not in out and "\x00" not in out
        assert all(cell_len(line) <= columns for line in out.splitlines())
    if words.strip():
        assert run_weft("tokens", "--replay", words, "--run", "run", cwd=desk).stdout


def test_nothing_but_words_is_loaded(desk):
    code = (
        "import sys; sys.argv = ['weft', 'tokens', 'The cat', '--run', 'run']\n"
        "from weft.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=desk, capture_output=True, check=True, encoding="utf-8")
    assert out.stdout.splitlines()[-1] == "False"


def test_help_starts_with_an_example(desk):
    out = run_weft_process("tokens", "--help", cwd=desk).stdout
    assert "Example:  weft tokens" in out
