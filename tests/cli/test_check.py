"""`weft check`: the numbers are those of a plain count, and nothing is kept in memory but hashes."""

import gzip
import json
import random
import subprocess
import sys

import pytest

from fixtures.commands import run_weft_process
from fixtures.texts import WORDS, make_text
from weft.errors import DataError
from weft.tasks.data_check import CheckRequest
from weft.tasks.generate import check as text_check
from weft.tasks.generate import overlap
from weft.tasks.generate.overlap import LineSample


def check_text(*parts):
    return text_check.check_text(CheckRequest(*parts))


def sentence(rng):
    return " ".join(rng.choices(WORDS, k=14))


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return str(path)


def plain_count(content, validation_share=0.1):
    """The same findings without a stream and without hashes."""
    cut = int((1 - validation_share) * len(content))
    train, rest = content[:cut], content[cut:]
    lines = [line.strip() for line in train.split("\n") if line.strip()]
    long = [line.strip() for line in rest.split("\n") if len(line.strip()) >= 40]
    return {
        "repeated": 1 - len(set(lines)) / len(lines),
        "leaked": sum(line in set(lines) for line in long) / len(long) if long else None,
        "compared": len(long),
        "train": len(train),
    }


@pytest.mark.parametrize("seed", range(4))
def test_the_numbers_are_those_of_a_plain_count(tmp_path, seed, monkeypatch):
    rng = random.Random(seed)
    pool = [sentence(rng) for _ in range(300)] + ["", "Ω ü 𝄞", "  indented  ", "name:"]
    content = "\n".join(rng.choices(pool, k=1500)) + "\n" * (seed % 2)
    found = check_text((write(tmp_path / "a.txt", content),))
    expected = plain_count(content)
    assert found.facts["characters"] == len(content)
    assert found.to_dict()["bytes"] == len(content.encode())
    assert found.facts["lines"] == len(content.splitlines())
    assert found.parts["train"]["characters"] == found.facts["tokens"]["characters"] == expected["train"]
    assert found.facts["tokens"]["bytes"] == found.parts["train"]["bytes"]
    assert found.facts["repeated_lines"] == pytest.approx(expected["repeated"])
    assert found.facts["leakage"] == pytest.approx(expected["leaked"])
    assert found.facts["compared_lines"] == expected["compared"]
    assert found.facts["leakage"] > 0.5 and any("training part" in warning for warning in found.warnings)
    assert found.facts["lines_remembered_one_in"] == 1


def test_a_text_without_copies_has_none(tmp_path):
    content = "".join(f"line {i} is one that stands here only once, for sure\n" for i in range(500))
    found = check_text((write(tmp_path / "a.txt", content),))
    assert (found.facts["repeated_lines"], found.facts["repeated_long_lines"], found.facts["leakage"]) == (0, 0, 0)
    assert found.facts["compared_lines"] >= 49
    assert found.warnings == []
    assert found.facts["validation_share"] == pytest.approx(0.1, abs=1e-4)


def test_validation_files_are_compared_instead(tmp_path):
    lines = [f"line {i} is one that stands here only once, for sure\n" for i in range(300)]
    train, other = write(tmp_path / "a.txt", "".join(lines)), write(tmp_path / "b.txt", "".join(lines[:30]))
    found = check_text((train,), (other,))
    assert (
        found.facts["leakage"],
        found.facts["compared_lines"],
        found.parts["validation"]["lines"],
        found.facts["lines"],
    ) == (1, 30, 30, 330)
    assert found.facts["files"] == [train, other]
    assert found.parts["train"]["characters"] == len("".join(lines))


def test_several_files_end_their_lines_and_add_a_token(tmp_path):
    for name in "abcdefghij":
        write(tmp_path / f"{name}.txt", "the same one line without an end, but a long one indeed")
    found = check_text((str(tmp_path),))
    assert found.facts["lines"] == 10
    assert found.facts["repeated_lines"] == pytest.approx(8 / 9)
    assert found.facts["leakage"] == 1
    assert found.facts["tokens"]["characters"] == found.parts["train"]["characters"] + 9
    from weft.data import tokenise
    from weft.tasks.sources import DataConfig, read_source
    from weft.text import TokenizerConfig

    source = read_source(DataConfig(train=(str(tmp_path),)))
    for kind, tokens in found.facts["tokens"].items():
        fields = {"kind": kind} | ({"vocab_size": 512} if kind == "bpe" else {})
        tokenizer = TokenizerConfig.from_config(fields).train(source.train.pieces())
        assert len(tokenise(source.train, tokenizer, None)) == tokens, kind


def test_estimated_tokens_are_near(tmp_path, monkeypatch):
    content = make_text(60_000)
    path = write(tmp_path / "a.txt", content)
    exact = check_text((path,))
    assert exact.facts["exact_tokens"] == ["characters", "bytes", "words", "bpe"]
    monkeypatch.setattr(text_check, "MAX_SAMPLE_CHARACTERS", 20_000)
    rough = check_text((path,))
    assert rough.facts["exact_tokens"] == ["characters", "bytes"]
    assert rough.facts["tokens"]["words"] == pytest.approx(exact.facts["tokens"]["words"], rel=0.1)
    assert rough.facts["tokens"]["bpe"] == pytest.approx(exact.facts["tokens"]["bpe"], rel=0.15)
    assert any("about" in line for line in rough.sentences)


def test_many_lines_are_estimated_in_bounded_memory():
    rng = random.Random(0)
    sample, lines = LineSample(limit=500), [f"line {rng.randrange(20_000)}" for _ in range(40_000)]
    for line in lines:
        sample.add(line)
        assert len(sample.counts) <= 500
    assert sample.one_in > 16
    assert sample.repeated == pytest.approx(1 - len(set(lines)) / len(lines), abs=0.05)
    known = [sample.seen(f"line {i}") for i in range(30_000)]
    remembered = [(i, seen) for i, seen in enumerate(known) if seen is not None]
    assert len(remembered) == pytest.approx(30_000 / sample.one_in, rel=0.3)
    assert all(seen == (f"line {i}" in set(lines)) for i, seen in remembered[:50])


def test_a_line_without_end_is_taken_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(overlap, "MAX_LINE_CHARACTERS", 1000)
    content = "x" * 3_000_000 + "\n" + "y" * 50_000
    found = check_text((write(tmp_path / "a.txt", content),))
    assert found.facts["lines"] == 2
    assert found.facts["characters"] == len(content)


def test_damage_of_earlier_conversions_is_a_warning(tmp_path):
    found = check_text((write(tmp_path / "a.txt", "caf\ufffd " * 3000),))
    assert "3,000 characters are U+FFFD" in found.warnings[-1]


def test_what_is_no_text_is_an_error(tmp_path):
    (tmp_path / "latin.txt").write_bytes("Ein schöner Tag. ".encode("latin-1") * 9)
    with pytest.raises(DataError, match="not valid UTF-8 at byte 7"):
        check_text((str(tmp_path / "latin.txt"),))


# -- the command ------------------------------------------------------------------------------


def test_the_demo_in_json(tmp_path):
    found = json.loads(run_weft_process("check", "demo", "--json", cwd=tmp_path).stdout)
    assert found["files"] == ["demo"]
    assert found["characters"] > 1_000_000
    assert found["validation_share"] == pytest.approx(0.1, abs=1e-3)
    assert found["tokens"]["bpe"] < found["tokens"]["characters"]
    assert found["leakage"] < 0.05
    assert found["warnings"] == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("columns", ["40", "80"])
def test_in_words(tmp_path, columns):
    with gzip.open(tmp_path / "[bold]b.txt.gz", "wt") as file:
        file.write(make_text(3000))
    result = run_weft_process("check", "[bold]b.txt.gz", cwd=tmp_path, COLUMNS=columns)
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= int(columns)
    joined = " ".join(result.stdout.split())
    assert "1 file: [bold]b.txt.gz" in joined
    assert "Validation: 300 characters (10.0%)" in joined
    assert "2,700 as characters, 2,700 as bytes" in joined
    assert "Warning: only 3,000 characters" in joined


@pytest.mark.parametrize(
    ("words", "code", "answer"),
    [
        (["check"], 2, "Missing argument"),
        (["check", "bok.txt"], 1, "did you mean 'book.txt'?"),
        (["check", "book.txt", "--jsn"], 2, "--json"),
        (["check", "empty.txt"], 1, "empty.txt is empty"),
        (["check", "blank.txt"], 1, "nothing but spaces"),
        (["check", "latin.txt"], 1, "not valid UTF-8"),
        (["check", "image.txt"], 1, "PNG"),
        (["check", "book.txt", "--validation", "none.txt"], 1, "none.txt does not exist"),
        (["check", "folder"], 1, "no text in it"),
        (["chek", "book.txt"], 2, "Did you mean 'check'?"),
    ],
)
def test_mistakes_are_answered_in_three_lines(tmp_path, words, code, answer):
    write(tmp_path / "book.txt", make_text(2000))
    write(tmp_path / "empty.txt", "")
    write(tmp_path / "blank.txt", " \n \n")
    (tmp_path / "latin.txt").write_bytes("schön ".encode("latin-1") * 99)
    (tmp_path / "image.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    (tmp_path / "folder").mkdir()
    result = run_weft_process(*words, cwd=tmp_path, check=False)
    assert result.returncode == code, result.stderr
    assert answer in result.stderr
    assert len(result.stderr.splitlines()) <= 3
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("verb", ["check", "runs", "doctor"])
def test_help_starts_with_an_example_and_is_quick(tmp_path, verb):
    out = run_weft_process(verb, "--help", cwd=tmp_path).stdout
    assert f"Example:  weft {verb}" in out
    code = (
        f"import sys; sys.argv = ['weft', {verb!r}, '--help']\nfrom weft.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in ('torch', 'numpy', 'jaxtyping', 'tokenizers') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert told.stdout.splitlines()[-1] == "[]"


def test_checking_does_not_import_torch(tmp_path):
    (tmp_path / "a.txt").write_text(make_text(3000))
    code = (
        "import sys; sys.argv = ['weft', 'check', 'a.txt', '--json']\n"
        "from weft.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, encoding="utf-8")
    assert out.stdout.splitlines()[-1] == "False"
