"""`weft check` on pairs of texts, as a person meets it."""

import gzip
import json
import subprocess
import sys

import pytest

from fixtures.commands import run_weft
from fixtures.tables import make_reversals, write_parallel_files, write_table, write_translation_table
from real_data import DATA, needs_data
from weft.cli.several import repeated


def words(result):
    return " ".join(result.stdout.split())


@pytest.fixture
def desk(tmp_path):
    write_parallel_files(tmp_path, "train", 1200)
    write_parallel_files(tmp_path, "dev", 30, 9)
    write_translation_table(tmp_path / "train.csv", 1200)
    return tmp_path


def test_two_files_and_others_beside_them(desk):
    told = run_weft(
        "check", "train.en", "train.de", "--validation", "dev.en", "dev.de", "--test", "train.csv", cwd=desk
    )
    shown = words(told)
    assert shown.startswith(
        "Train: train.en, train.de Validation: dev.en, dev.de Test: train.csv The source is train.en"
    )
    assert "Tokens: bpe, learned from both sides of all training pairs," in shown
    assert "lines 1,200 30 1,200 pairs 1,200 30 1,200" in shown
    assert "target/source characters 1.00 1.00 1.00" in shown and "cut at 64 tokens 0 0 0" in shown
    assert "pairs also in train 0 1,200 (100.0%)" in shown
    assert "Warning: 100.0% of the sources in train.csv also stand in train.en, train.de" in shown
    assert told.stderr == ""
    alone = words(run_weft("check", "train.en", "train.de", cwd=desk))
    assert "also in" not in alone and "Nothing speaks against training on it." in alone


def test_a_table_of_two_texts_is_pairs(desk):
    shown = words(run_weft("check", "train.csv", cwd=desk))
    assert "Columns: the source 'source' and the target 'target', because the first is the source." in shown
    assert "rows 1,200 pairs 1,200" in shown
    swapped = words(run_weft("check", "train.csv", "--source", "target", cwd=desk))
    assert "the source 'target' and the target 'source', because you named 'target'" in swapped
    write_table(desk / "label.csv", ("text", "label"), [(a, n % 2) for n, (a, _) in enumerate(make_reversals())])
    assert "Labels: 2 classes" in words(run_weft("check", "label.csv", cwd=desk))
    assert "the source 'text' and the target 'label'" in words(run_weft("check", "translate", "label.csv", cwd=desk))
    assert "the label 'target'" in words(run_weft("check", "train.csv", "--label", "target", cwd=desk, check=False))


def test_texts_stay_texts(desk):
    for name in ("a.txt", "b.txt", "c.md", "d.log"):
        (desk / name).write_text("Once upon a time there was a text. " * 20)
    for names in (("a.txt", "b.txt"), ("a.txt", "train.en"), ("c.md", "d.log"), ("train.en",)):
        assert "Validation" in words(run_weft("check", *names, cwd=desk)), names
    assert "Validation" in words(run_weft("check", "generate", "train.en", "train.de", cwd=desk))
    assert "Validation" in words(run_weft("check", "fill", "train.en", "train.de", cwd=desk))


def test_packed_files_with_empty_lines(desk):
    for side in ("en", "de"):
        lines = [f"{side} text {n}" for n in range(50)]
        lines[7] = "" if side == "de" else lines[7]
        (desk / f"packed.{side}.gz").write_bytes(gzip.compress("\r\n".join(lines).encode("utf-8-sig")))
    shown = words(run_weft("check", "packed.en.gz", "packed.de.gz", cwd=desk))
    assert "lines 50 a side empty, left out 1 (2.0%) pairs 49" in shown
    assert "Note: lines of packed.en.gz and packed.de.gz without a text on both sides, left out: 1 (line 8)." in shown
    assert "Warning: only 49 pairs to learn from" in shown


def test_json_is_one_object(desk):
    told = run_weft(
        "check", "translate", "train.en", "train.de", "--test", "dev.en", "--test", "dev.de", "--json", cwd=desk
    )
    found = json.loads(told.stdout)
    assert (found["train"]["pairs"], found["test"]["pairs"], found["validation"]) == (1200, 30, None)
    assert found["columns"]["source"] is None and found["problems"] == []


def test_the_embedded_pairs(tmp_path):
    shown = words(run_weft("check", "translate", "demo", cwd=tmp_path))
    assert "Train: demo (train) Test: demo (test)" in shown and "Nothing speaks against" in shown


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_piped_there_are_no_control_codes_and_no_long_lines(desk, width, monkeypatch):
    odd = "o\x1b[31md.csv"
    write_table(desk / odd, ("[bold]", "\x1b[31mred"), make_reversals())
    monkeypatch.setenv("COLUMNS", width)
    for name in ("train.csv", odd):
        shown = run_weft("check", "translate", name, cwd=desk).stdout
        assert "\x1b" not in shown and ("[bold]" in shown) == (name == odd)
        assert max(map(len, shown.splitlines())) <= int(width)


@pytest.mark.parametrize(
    ("line", "code", "answer"),
    [
        ("train.en few.de", 1, "train.en has 1,200 lines and few.de has 3"),
        ("translate train.en", 1, "train.en alone"),
        ("translate train.en train.de dev.en", 1, "3 text files, train.en and others"),
        ("translate train.en train.en", 1, "are the same file"),
        ("translate train.en folder", 1, "folder is a folder"),
        ("translate train.en trian.de", 1, "did you mean 'train.de'?"),
        ("translate train.csv train.de", 1, "train.de is a text and train.csv is a table"),
        ("translate train.csv --source sorce", 2, "did you mean 'source'?"),
        ("translate train.en train.de --source en", 2, "--source en without a table"),
        ("translate train.csv --label target", 2, "--label with pairs to translate"),
        ("classify label.csv --source text", 2, "--source with labelled texts"),
        ("fill label.csv --source text", 2, "--source with labelled texts"),
        ("book.txt --target x", 1, "book.txt alone"),
        ("demo --target x", 2, "--target with a text"),
        ("train.csv --sorce source", 2, "--source"),
        ("translate", 2, "weft check translate demo"),
        ("translate train.csv --tokenizer bep", 2, "did you mean 'bpe'?"),
        ("translate train.csv --test label.csv", 1, "label.csv has no column 'source', which train.csv has"),
        ("translate few.csv", 1, "3 pairs in few.csv"),
        ("translate wide.en train.de", 1, "looks like UTF-16LE"),
        ("translate image.en train.de", 1, "PNG"),
        ("embed train.csv", 1, "does not exist yet"),
    ],
)
def test_mistakes_are_answered_in_three_lines(desk, line, code, answer):
    write_parallel_files(desk, "few", 3)
    write_translation_table(desk / "few.csv", 3)
    write_table(desk / "label.csv", ("text", "label"), [(a, n % 2) for n, (a, _) in enumerate(make_reversals())])
    (desk / "book.txt").write_text("A text of its own, as long as it needs to be. " * 9)
    (desk / "wide.en").write_bytes("some words\nand more\n".encode("utf-16-le"))
    (desk / "image.en").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    (desk / "folder").mkdir()
    told = run_weft("check", *line.split(), cwd=desk, check=False)
    assert told.returncode == code, told.stderr
    assert answer in told.stderr
    assert 1 <= len(told.stderr.splitlines()) <= 3
    assert "Traceback" not in told.stderr


def test_checking_pairs_does_not_import_torch(desk):
    code = (
        "import sys; sys.argv = ['weft', 'check', 'translate', 'dev.en', 'dev.de']\n"
        "from weft.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, cwd=desk, capture_output=True, text=True, check=True, encoding="utf-8")
    assert told.stdout.splitlines()[-1] == "False"


VALUED = ("--validation", "--test", "--minutes", "--seed")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("a b --validation c d", "a b --validation c --validation d"),
        ("a b --test c d e --json", "a b --test c --test d --test e --json"),
        ("a --validation c d --test e f", "a --validation c --validation d --test e --test f"),
        ("a --validation c --json d", "a --validation c --json d"),
        ("a --validation=c d", "a --validation=c --validation d"),
        ("--validation c a b", "--validation c a b"),
        ("translate --validation c a b", "translate --validation c a b"),
        ("--minutes 5 --validation c a", "--minutes 5 --validation c a"),
        ("a --seed -1 --test c d", "a --seed -1 --test c --test d"),
        ("a --minutes 5 c", "a --minutes 5 c"),
        ("a --test c -- d", "a --test c -- d"),
        ("a --test - -", "a --test - --test -"),
        ("", ""),
    ],
)
def test_options_with_several_files(line, meant):
    assert " ".join(repeated(line.split(), VALUED)) == meant


@needs_data("multi30k")
def test_public_data():
    raw = DATA / "multi30k" / "raw"
    shown = words(
        run_weft(
            "check", "val.en.gz", "val.de.gz", "--test", "test_2016_flickr.en.gz", "test_2016_flickr.de.gz", cwd=raw
        )
    )
    assert "lines 1,014 1,000" in shown and "Nothing speaks against" in shown
