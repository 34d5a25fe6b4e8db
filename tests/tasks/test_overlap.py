"""The look before training: the sentences of `weft check`, for a bounded part of the text, in little time."""

import json
import logging
import time

import pytest

import weft as package
from fixtures.commands import TINY_GPT, generator_command, run_weft
from fixtures.texts import make_text
from weft.tasks.data_check import CheckRequest
from weft.tasks.generate import overlap
from weft.tasks.generate.check import check_text
from weft.tasks.generate.overlap import overlap_warnings
from weft.tasks.sources import DataConfig, read_source

LINES = [f"line {i} is one that stands here only once, for sure\n" for i in range(400)]


def write(path, lines):
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def found(train, validation=(), test=()):
    return overlap_warnings(read_source(DataConfig(train=(train,), validation=validation, test=test)))


def test_a_clean_text_gives_no_warning(tmp_path):
    book = write(tmp_path / "a.txt", LINES[:200])
    assert found(book) == []
    assert found(book, (write(tmp_path / "b.txt", LINES[200:]),), (write(tmp_path / "c.txt", LINES[300:]),)) == []


def test_the_sentences_are_those_of_check(tmp_path):
    book, copies = write(tmp_path / "a.txt", LINES[:200] * 2), write(tmp_path / "b.txt", LINES[:20] + LINES[200:220])
    told = found(book, (copies,))
    assert len(told) == 2 and told == check_text(CheckRequest((book,), (copies,))).warnings
    assert told[0].startswith("50% of the long validation lines also occur in the training part")
    assert told[1].startswith("50% of the long lines repeat")


def test_the_test_text_is_looked_at_too(tmp_path):
    book, fresh = write(tmp_path / "a.txt", LINES[:200]), write(tmp_path / "b.txt", LINES[200:])
    (told,) = found(book, (fresh,), (write(tmp_path / "c.txt", LINES[:20]),))
    assert told.startswith("100% of the long test lines") and told.endswith("give other text with --test")


def test_only_the_beginning_is_looked_at(tmp_path, monkeypatch):
    book, copies = write(tmp_path / "a.txt", LINES[:200]), write(tmp_path / "b.txt", LINES[150:200])
    assert found(book, (copies,))
    monkeypatch.setattr(overlap, "MAX_QUICK_TRAIN_CHARACTERS", 3000)
    assert found(book, (copies,)) == []
    monkeypatch.setattr(overlap, "MAX_QUICK_TRAIN_CHARACTERS", 10**6)
    monkeypatch.setattr(overlap, "MAX_QUICK_VALIDATION_CHARACTERS", 30)
    assert found(book, (copies,)) == []


def test_a_megabyte_takes_a_moment(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{i} {'words that fill a line of verse '[: 10 + i % 24]}\n" for i in range(35_000)))
    assert path.stat().st_size > 900_000
    source = read_source(DataConfig(train=(str(path),)))
    times = []
    for _ in range(3):
        began = time.process_time()
        overlap_warnings(source)
        times.append(time.process_time() - began)
    assert min(times) < 0.15


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "book.txt", LINES[:60] * 3)
    return tmp_path


def test_training_warns_in_words_and_as_an_event(folder):
    result = run_weft(*generator_command("book.txt", "a", 2, "--json"), cwd=folder)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    told = [event["text"] for event in events if event["event"] == "warning"]
    assert told[0].startswith("94% of the long validation lines")  # the first is cut
    assert "by heart" in told[1]
    assert "Warning: 94% of the long validation lines" in " ".join(result.stderr.split())
    kinds = [event.get("name", event["event"]) for event in events]
    phases = ["reading", "learning the vocabulary", "tokenising", "planning", "training"]
    assert [kind for kind in kinds if kind in phases] == phases
    assert kinds.index("warning") < kinds.index("tokenising")


def test_training_from_python_warns_by_logging(folder, monkeypatch, caplog):
    monkeypatch.chdir(folder)
    changes = dict(setting.split("=") for setting in TINY_GPT)
    with caplog.at_level(logging.WARNING):
        package.train("book.txt", task="generate", tokenizer="characters", steps=1, set=changes, threads=1)
    assert "long validation lines" in caplog.text
    caplog.clear()
    (folder / "clean.txt").write_text(make_text(2000))
    with caplog.at_level(logging.WARNING):
        package.train("clean.txt", task="generate", tokenizer="characters", steps=1, set=changes, threads=1)
    assert "validation lines" not in caplog.text
