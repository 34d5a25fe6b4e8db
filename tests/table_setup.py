"""Tiny tables and texts for the tests of models that read, and the words that train on them in a second."""

from __future__ import annotations

import csv
import gc
import io
import json
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from training_setup import here, text, train_words

GOOD = ["fine", "warm", "bright", "lovely", "great"]
BAD = ["dull", "cold", "grim", "awful", "poor"]
ICY = ["frost", "snow", "icy", "winter"]
PLAIN = ["the", "film", "a", "story", "was", "of", "it", "and", "in", "this", "house"]
SIZES = [
    "model.width=16", "model.depth=1", "model.attention.heads=2", "model.max_length=24", "model.dropout=0.1",
    "training.batch=16", "training.micro_batch=10", "training.optimizer.kind=adamw",
    "training.optimizer.learning_rate=0.01", "training.warmup=0.1", "training.decay=0.5",
]  # fmt: skip
PAIR_SIZES = [
    "model.width=16", "model.depth=1", "model.attention.heads=2", "model.max_length=24", "model.dropout=0.1",
    "training.batch=2", "training.micro_batch=1", "objective.batch_tokens=150", "training.optimizer.learning_rate=0.05",
    "training.optimizer.embedding_rate=0.03", "training.warmup=0.1", "training.decay=0.5",
]  # fmt: skip
EVERY = ["training.evaluate_every=7", "training.checkpoint_every=5"]


def sets(*changes: str) -> list[str]:
    """`--set` before each."""
    return [word for change in changes for word in ("--set", change)]


def sentence(rng: random.Random, words: Sequence[str], longest: int = 8) -> str:
    """Plain words and two that tell."""
    return " ".join([*rng.choices(PLAIN, k=rng.randint(2, longest)), *rng.choices(words, k=2)])


def reviews(count: int = 96, seed: int = 0) -> list[tuple[str, str]]:
    """Texts that a child could tell apart, by turns bad and good, none twice."""
    rng = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        found.setdefault(sentence(rng, GOOD if len(found) % 2 else BAD), "pos" if len(found) % 2 else "neg")
    return list(found.items())


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """As .csv, .tsv or .jsonl, by the ending."""
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False) + "\n" for row in rows]
        path.write_text("".join(lines), encoding="utf-8")
        return path
    if path.suffix == ".tsv":  # which has no quoting
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in (header, *rows)), encoding="utf-8")
        return path
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return path


def write_reviews(path: Path, count: int = 96, seed: int = 0) -> Path:
    return write_table(path, ("text", "label"), reviews(count, seed))


def write_pairs(path: Path, count: int = 96, seed: int = 1) -> Path:
    """Whether the second text is of the good kind; the first is always."""
    rng = random.Random(seed)
    rows = [
        (sentence(rng, GOOD, 4), sentence(rng, GOOD if n % 2 else BAD, 4), "same" if n % 2 else "other")
        for n in range(count)
    ]
    return write_table(path, ("sentence1", "sentence2", "label"), rows)


def reversals(count: int = 96, seed: int = 4) -> list[tuple[str, str]]:
    """Sentences and the same words backwards, none twice."""
    rng, found = random.Random(seed), dict[str, str]()
    while len(found) < count:
        words = rng.choices([*PLAIN, *GOOD, *BAD], k=rng.randint(3, 7))
        if words != words[::-1]:
            found[" ".join(words)] = " ".join(reversed(words))
    return list(found.items())


def write_pairs_table(path: Path, count: int = 96, seed: int = 4) -> Path:
    """Texts to translate, as a table."""
    return write_table(path, ("source", "target"), reversals(count, seed))


def write_parallel(folder: Path, name: str = "train", count: int = 96, seed: int = 4) -> tuple[Path, Path]:
    """The same as two files, NAME.en and NAME.de."""
    paths = folder / f"{name}.en", folder / f"{name}.de"
    for path, texts in zip(paths, zip(*reversals(count, seed), strict=True), strict=True):
        path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return paths


def write_several(path: Path, count: int = 120, seed: int = 2) -> Path:
    """good, cold or both."""
    rng, rows = random.Random(seed), []
    for n in range(count):
        good, cold = [(4, 0), (0, 4), (2, 2)][n % 3]
        words = [*rng.choices(PLAIN, k=rng.randint(1, 4)), *rng.choices(GOOD, k=good), *rng.choices(ICY, k=cold)]
        rows.append((" ".join(words), ("good", "cold", "cold|good")[n % 3]))
    return write_table(path, ("text", "labels"), rows)


def write_numbers(path: Path, count: int = 96, seed: int = 3) -> Path:
    """Around 400 for good texts and 100 for bad ones: far from zero, and widely spread."""
    rng, rows = random.Random(seed), []
    for n, (told, label) in enumerate(reviews(count, seed)):
        rows.append((told, f"{(400 if label == 'pos' else 100) + rng.random() + n % 7:.2f}"))
    return write_table(path, ("text", "score"), rows)


def write_book(path: Path, documents: int = 14) -> Path:
    """Documents of a few sentences."""
    path.write_text("\n\n".join(text(260, seed=seed).strip() for seed in range(documents)) + "\n")
    return path


def classify_words(data: Sequence[str] | str, out: str, steps: int, *more: str) -> list[str]:
    """`weft train classify …`; later words win."""
    paths = [data] if isinstance(data, str) else list(data)
    words = ["train", "classify", *paths, "--tokenizer", "wordpiece", *_ending(out, steps)]
    return [*words, *sets("objective.word_dropout=0.1"), *more]


def fill_words(data: Sequence[str] | str, out: str, steps: int, *more: str) -> list[str]:
    paths = [data] if isinstance(data, str) else list(data)
    return ["train", "fill", *paths, "--tokenizer", "wordpiece", *_ending(out, steps), *more]


def translate_words(data: Sequence[str] | str, out: str, steps: int, *more: str) -> list[str]:
    paths = [data] if isinstance(data, str) else list(data)
    words = ["train", "translate", *paths, "--steps", str(steps), "--out", out, "--threads", "1"]
    return [*words, *sets(*PAIR_SIZES), *more]


def _ending(out: str, steps: int) -> list[str]:
    return ["--steps", str(steps), "--out", out, "--threads", "1", *sets(*SIZES)]


def typed(*words: str, cwd: Path, stdin: str = "", check: bool = True) -> CompletedProcess[str]:
    """`here`, with something to read on stdin."""
    before, sys.stdin = sys.stdin, io.StringIO(stdin)
    try:
        return here(*words, cwd=cwd, check=check)
    finally:
        sys.stdin = before


class Crash(BaseException):
    """Stands for a power cut: nothing more is saved."""


def crash(point: tuple[Any, str, int, bool], *words: str, cwd: Path) -> None:
    """Type the words; the world ends before or after the n-th call of `home.name`, where (home, name, n, after)."""
    home, name, left, after = point
    function = getattr(home, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and not after:
            raise Crash
        result = function(*args, **options)
        if left == 0:
            raise Crash
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, name, wrapped)
        with pytest.raises(Crash):
            here(*words, cwd=cwd)
    gc.collect()  # what was never written to a file is gone now, as after a power cut, and not at some later time


class Desk:
    """A folder with a table or text of every kind, and runs that learned from them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        write_reviews(path / "single.csv")
        write_several(path / "several.csv")
        write_numbers(path / "number.csv")
        write_pairs(path / "pairs.csv")
        write_book(path / "book.txt")
        write_pairs_table(path / "reversals.tsv", 64)

    def run(self, kind: str) -> Path:
        """single, several, number or pairs: a classifier; masked or questions: they fill in or know pairs; writer;
        translator, same or joint: they write words backwards, with the memory of that name."""
        path = self.path / "runs" / kind
        if not path.exists():
            here(*self._words(kind, str(path)), cwd=self.path)
        return path

    def _words(self, kind: str, out: str) -> list[str]:
        if kind == "writer":
            return [*train_words("book.txt", out, 5)]
        if kind in ("translator", "same", "joint"):
            sizes = ["model.width=32", "model.dropout=0", "objective.batch_tokens=600", "objective.respelling=0"]
            memory = [] if kind == "translator" else [f"model.memory={kind}", "model.depth=2"]
            more = sets(*sizes, *memory, "objective.smoothing=0", "training.evaluate_every=8")
            return translate_words("reversals.tsv", out, 24, *more)
        if kind in ("masked", "questions"):
            tasks = "masked" if kind == "masked" else "next-sentence,sentence-order"
            return fill_words("book.txt", out, 40, *sets(f"objective.tasks={tasks}", "training.evaluate_every=20"))
        more = sets("training.evaluate_every=10")
        if kind == "several":  # which is harder
            more += sets("training.optimizer.learning_rate=0.02", "objective.word_dropout=0", "model.dropout=0")
        return classify_words(f"{kind}.csv", out, 60 if kind == "several" else 40, *more)


MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HF_WORDS = list(dict.fromkeys([*MARKS, *GOOD, *BAD, *PLAIN, "##s", *"abcdefghijklmnopqrstuvwxyz.,!"]))


def hugging_face_folder(path: Path, head: str, **fields: Any) -> Any:
    """A tiny random BERT as Hugging Face writes it, with a vocabulary of ours; gives their model."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(HF_WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=20, **fields,
    )  # fmt: skip
    model = getattr(transformers, head)(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn_like(p))
    model.save_pretrained(path)
    (path / "vocab.txt").write_text("\n".join(HF_WORDS) + "\n")
    return model


def metrics(run: Path) -> list[dict[str, Any]]:
    """The log, a dict for each step."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def told(result: CompletedProcess[str]) -> list[str]:
    """What an error says, without the names of phases."""
    return [line for line in result.stderr.strip().splitlines() if not line.endswith("…")]
