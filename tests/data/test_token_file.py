"""Ids on disk: the same as in memory, found again by content, made anew when damaged."""

import json
import logging
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from weft.data import TokenFile, tokenise
from weft.data.token_file import _is_alive
from weft.errors import DataError
from weft.text import Corpus, Document, Tokenizer, TokenizerConfig

PROSE = "The quick brown fox, it's said,\njumps over 12 lazy dogs.\n\n   Indented “text”, tabs\tand  gaps.\n" * 1500
KINDS = list(TokenizerConfig.registry)


def trained(kind, text=PROSE[:20_000]):
    return TokenizerConfig.from_config(kind).train([text])


def files(folder):
    return sorted(path.suffix for path in folder.iterdir())


@pytest.fixture
def counted(monkeypatch):
    """How often anything was really tokenised."""
    calls = []
    real = Tokenizer.encode_batch
    monkeypatch.setattr(Tokenizer, "encode_batch", lambda self, pieces: calls.append(1) or real(self, pieces))
    return calls


@pytest.mark.parametrize("kind", KINDS)
def test_the_stream_is_the_whole(kind, tmp_path):
    tokenizer, corpus = trained(kind), Corpus.of_text(PROSE)
    told = []
    tokens = tokenise(corpus, tokenizer, tmp_path, progress=lambda done, total: told.append((done, total)))
    assert isinstance(tokens.ids, np.memmap) and tokens.ids.dtype == np.uint16
    assert tokens.ids.tolist() == tokenizer.encode(PROSE).tolist()
    assert len(tokens) == len(tokens.ids) and tokens.bytes == len(PROSE.encode())
    assert told[-1] == (len(PROSE), len(PROSE)) and told == sorted(told)
    in_memory = tokenise(corpus, tokenizer, None)
    assert np.array_equal(in_memory.ids, tokens.ids) and in_memory.ids.dtype == tokens.ids.dtype
    assert in_memory.bytes == tokens.bytes and in_memory.path is None
    assert files(tmp_path) == [".bin", ".json"]
    assert f"{len(tokens)} tokens" in repr(tokens)


def test_many_groups(monkeypatch, tmp_path):
    monkeypatch.setattr("weft.data.token_file.PIECE", 100)
    monkeypatch.setattr("weft.data.token_file.AT_ONCE", 3)
    tokenizer = trained("bpe")
    told = []
    text = PROSE[:5000]
    tokens = tokenise(Corpus.of_text(text), tokenizer, tmp_path, progress=lambda done, _: told.append(done))
    assert tokens.ids.tolist() == tokenizer.encode(text).tolist()
    assert len(told) > 15 and told == sorted(set(told)) and told[-1] == 5000


def test_the_end_of_each_of_several_documents(tmp_path):
    tokenizer = trained("characters")
    corpus = Corpus.of_text("fox", "dogs", "text")
    end = tokenizer.end
    ids = [tokenizer.encode(text).tolist() for text in ("fox", "dogs", "text")]
    assert tokenise(corpus, tokenizer, tmp_path).ids.tolist() == [*ids[0], end, *ids[1], end, *ids[2], end]
    assert tokenise(corpus, tokenizer, None).bytes == 11
    assert tokenise(Corpus.of_text("fox"), tokenizer, tmp_path).ids.tolist() == ids[0]
    train, held_out = corpus.split(0.5)
    assert tokenise(train, tokenizer, tmp_path).ids.tolist() == [*ids[0], end, *ids[1][:2]]
    assert tokenise(held_out, tokenizer, tmp_path).ids.tolist() == [*ids[1][2:], end, *ids[2], end]


def test_a_second_call_finds_the_file(tmp_path, counted):
    tokenizer, corpus = trained("bpe"), Corpus.of_text(PROSE)
    first = tokenise(corpus, tokenizer, tmp_path)
    done = len(counted)
    told = []
    second = tokenise(Corpus.of_text(PROSE), tokenizer, tmp_path, progress=lambda *seen: told.append(seen))
    assert len(counted) == done and told == [(len(PROSE), len(PROSE))]
    assert np.array_equal(first.ids, second.ids) and first.bytes == second.bytes
    tokenise(Corpus.of_text(PROSE + "!"), tokenizer, tmp_path)
    tokenise(corpus, trained("words"), tmp_path)
    assert len(counted) > done and len(list(tmp_path.iterdir())) == 6


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "a bit": lambda bin, side: _flip(bin),
    "cut off": lambda bin, side: bin.write_bytes(bin.read_bytes()[:-2]),
    "no ids": lambda bin, side: bin.unlink(),
    "no description": lambda bin, side: side.unlink(),
    "half a description": lambda bin, side: side.write_text(side.read_text()[:30]),
    "no object": lambda bin, side: side.write_text("[1]"),
    "another text": lambda bin, side: side.write_text(side.read_text().replace('"corpus": "', '"corpus": "0')),
    "an absurd count": lambda bin, side: side.write_text(
        json.dumps({**json.loads(side.read_text()), "count": 10**18}),
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_files_are_made_anew(what, tmp_path, caplog, counted):
    tokenizer, corpus = trained("bpe"), Corpus.of_text(PROSE)
    expected = tokenise(corpus, tokenizer, tmp_path).ids.tolist()
    done = len(counted)
    (ids,), (side,) = tmp_path.glob("*.bin"), tmp_path.glob("*.json")
    DAMAGE[what](ids, side)
    with caplog.at_level(logging.WARNING):
        again = tokenise(corpus, tokenizer, tmp_path)
    assert again.ids.tolist() == expected and len(counted) > done
    assert "made anew" in caplog.text or what == "no description"
    assert files(tmp_path) == [".bin", ".json"]


def test_nothing_half_written_stays(tmp_path, monkeypatch):
    tokenizer, corpus = trained("bytes"), Corpus.of_text(PROSE)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weft.data.token_file.os.fsync", full)
    with pytest.raises(DataError, match=r"cannot be written to .*: No space left on device\nfree some space"):
        tokenise(corpus, tokenizer, tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt):
        tokenise(corpus, tokenizer, tmp_path, progress=lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot be written"):
        tokenise(corpus, tokenizer, tmp_path / "file")


def test_what_a_killed_process_left_is_removed(tmp_path):
    tokenizer, corpus = trained("bytes"), Corpus.of_text(PROSE)
    tokenise(corpus, tokenizer, tmp_path)
    (ids,) = tmp_path.glob("*.bin")
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    names = {
        "dead": f"{ids.stem}.{int(dead.stdout)}.part",
        "alive": f"{ids.stem}.{os.getppid()}.part",
        "old": f"{ids.stem}.1.part",
        "absurd": f"{ids.stem}.{10**30}.part",
        "of another text": f"0{ids.stem}.{int(dead.stdout)}.part",
        "no process": f"{ids.stem}.x.part",
    }
    for name in names.values():
        (tmp_path / name).write_bytes(b"half")
    os.utime(tmp_path / names["old"], (0, 0))
    tokenise(corpus, tokenizer, tmp_path)  # found: nothing is made, nothing is tidied
    assert all((tmp_path / name).exists() for name in names.values())
    ids.unlink()
    tokenise(corpus, tokenizer, tmp_path)
    left = {what for what, name in names.items() if (tmp_path / name).exists()}
    assert left == {"alive", "of another text", "no process"}


def test_on_windows_no_process_is_asked(tmp_path, monkeypatch):
    """There, os.kill(process, 0) is Ctrl-C: only the age counts."""
    monkeypatch.setattr("weft.data.token_file.os.name", "nt")
    monkeypatch.setattr("weft.data.token_file.os.kill", lambda *_: pytest.fail("asked"))
    assert _is_alive(10**9)


def test_large_vocabularies_take_four_bytes(tmp_path):
    words = " ".join(f"w{number}" for number in range(66_000))
    tokenizer = TokenizerConfig.from_config({"kind": "words", "vocab_size": 70_000, "min_count": 1}).train([words])
    tokens = tokenise(Corpus.of_text(words), tokenizer, tmp_path)
    assert tokenizer.vocab_size > 1 << 16 and tokens.ids.dtype == np.uint32
    assert tokens.ids.tolist() == tokenizer.encode(words).tolist()


def test_an_empty_part(tmp_path):
    _, nothing = Corpus.of_text("abc").split(0.0)
    for folder in (tmp_path, None):
        tokens = tokenise(nothing, trained("bytes"), folder)
        assert isinstance(tokens, TokenFile) and len(tokens) == 0 and tokens.bytes == 0
        assert len(tokenise(nothing, trained("bytes"), folder)) == 0


def test_memory_stays_bounded(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text(PROSE * 120, encoding="utf-8")  # 17 million characters: 68 MB of ids as they leave the tokenizer
    tokenizer, corpus = trained("characters"), Corpus.of_files(path)
    tracemalloc.start()
    tokens = tokenise(corpus, tokenizer, tmp_path / "tokens")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(tokens) == corpus.characters > 16e6
    assert peak < 40e6


def test_the_text_is_read_while_the_ids_are_written(monkeypatch):
    """Never more than a group ahead: what is in flight does not grow with the text."""
    seen = []

    class Slow(Document):
        def read(self):
            for number in range(200):
                seen.append(number)
                yield "word " * 100

    monkeypatch.setattr("weft.data.token_file.PIECE", 100)
    monkeypatch.setattr("weft.data.token_file.AT_ONCE", 10)
    corpus = Corpus([Slow(name="slow")])
    _ = corpus.characters
    seen.clear()
    ahead = []
    tokenise(corpus, trained("bpe"), None, progress=lambda done, _: ahead.append(500 * len(seen) - done))
    assert len(ahead) > 50 and max(ahead) <= 1500
