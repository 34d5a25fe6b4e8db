"""A tiny run for the tests of training: a text, a request, and a digest of what it leaves behind."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import torch

SENTENCE = "the a cat dog sat ran on under mat tree and then quickly slowly while birds sang over hills"
WORDS = SENTENCE.split(" ")


def text(characters: int = 6000, seed: int = 0) -> str:
    """Sentences of a few words: enough structure to learn something from."""
    rng = random.Random(seed)
    parts = []
    while sum(map(len, parts)) < characters:
        parts.append(" ".join(rng.choices(WORDS, k=rng.randint(4, 9))).capitalize() + ".\n")
    return "".join(parts)[:characters]


SMALL = [
    "--set",
    "model.width=16",
    "--set",
    "model.depth=2",
    "--set",
    "model.max_length=16",
    "--set",
    "model.attention.heads=2",
    "--set",
    "model.dropout=0.1",
    "--set",
    "training.batch=6",
    "--set",
    "training.micro_batch=4",
]


def weft(*words: str, cwd: Path, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, on one thread."""
    return subprocess.run(
        [sys.executable, "-m", "weft", *words],
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | env,
        capture_output=True,
        text=True,
        timeout=300,
        check=check,
    )


def here(*words: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """The command in this process: the same words and answers, without two seconds of loading torch."""
    from weft.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    threads, before, code = torch.get_num_threads(), sys.argv, 0
    sys.argv = ["weft", *words]
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.argv = before
        torch.set_num_threads(threads)
    assert not check or code == 0, err.getvalue()
    return subprocess.CompletedProcess(list(words), code, out.getvalue(), err.getvalue())


def train_words(data: str, out: str, steps: int, *more: str) -> list[str]:
    return [
        "train", "generate", data, "--tokenizer", "characters", "--steps", str(steps),
        "--out", out, "--threads", "1", *SMALL, *more,
    ]  # fmt: skip


def done(result: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """The last event of `--json`."""
    return json.loads(result.stdout.splitlines()[-1])


def digest(run: Path) -> dict[str, str]:
    """Everything that an interrupted run must have in common with one that was left alone."""
    files = [run / "metrics.jsonl", run / "model.safetensors"]
    newest = max((run / "checkpoints").glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))
    files += sorted(newest.glob("*"))
    return {str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def trainer(path: Path, *, steps: int = 30, on_step=None, **changes):
    """A trainer in this process on three epochs of a tiny text: dropout, accumulation, evaluations, saves."""
    import torch

    from weft.checkpoints import RunDirectory
    from weft.data import Windows, tokenise
    from weft.models import GPTConfig
    from weft.objectives import causal_loss
    from weft.tasks.generate.evaluation import evaluate_text
    from weft.text import Corpus, TokenizerConfig
    from weft.training import Trainer, TrainingConfig

    corpus = Corpus.of_text(text(1200))
    tokenizer = TokenizerConfig.from_config("characters").train(corpus.pieces())
    tokens = tokenise(corpus, tokenizer, None)
    config = GPTConfig(vocab_size=tokenizer.vocab_size, max_length=16, width=16, depth=2, dropout=0.1)
    fields = {"evaluate_every": 7, "checkpoint_every": 5, "micro_batch": 4} | changes
    settings = TrainingConfig(steps=steps, batch=6, **fields)
    torch.manual_seed(settings.seed)
    model = config.build()
    windows = Windows(tokens, 16, settings.seed)
    assert steps * 6 >= 2 * windows.per_epoch, "at least into a third epoch"
    path.mkdir(exist_ok=True)
    return Trainer(
        model,
        settings=settings,
        run=RunDirectory(path),
        samples=lambda numbers: torch.from_numpy(windows.batch(numbers)),
        loss=causal_loss,
        evaluate=lambda: evaluate_text(model, tokens, 16, device=torch.device("cpu")),
        on_step=on_step,
    )
