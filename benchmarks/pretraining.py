"""What each pretraining objective brings: the same text, the same steps, then the same tables learned from there.

    python benchmarks/pretraining.py DATA_FOLDER [STEPS]

Pretrains on WikiText-2's validation text (entailment: on MRPC's pairs beside it), then learns SST-2 (one text) and SICK
(pairs) from there, three seeds each; `nothing` begins with the same tokenizer, sizes and fresh weights. One JSON line
for each: {"objective", "masked_accuracy"…, "sst2", "sick"}, accuracies on the test sets, with their deviations.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

OBJECTIVES = (
    ("masked",),
    ("next-sentence",),
    ("sentence-order",),
    ("inversion",),
    ("entailment",),
    ("masked", "next-sentence"),
    ("masked", "sentence-order"),
    ("masked", "inversion"),
    ("masked", "entailment"),
)
SIZES = (
    *("model.width=64", "model.depth=2", "model.attention.heads=2", "model.max_length=64"),
    *("training.batch=32", "tokenizer.vocab_size=4096"),
)
SEEDS = (0, 1, 2)
EPOCHS = "4"


def weft(*words: str, folder: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "weft", "train", *words, "--json", "--threads", "1"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def settings(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--set", pair)]


def pretrain(tasks: tuple[str, ...], data: Path, steps: str, folder: str) -> tuple[str, dict[str, Any]]:
    """The run, and how well it does what it was asked."""
    out = "+".join(tasks)
    words = [str(data / "wikitext2" / "valid.txt"), "--steps", steps, "--out", out, *settings(*SIZES)]
    words += settings(f"objective.tasks={','.join(tasks)}")
    if "entailment" in tasks:
        words += ["--pairs", str(data / "mrpc" / "msr-para-train.tsv")]
    done = weft("fill", *words, folder=folder)
    return out, {name: round(value, 4) for name, value in done.items() if name.endswith("_accuracy")}


def downstream(start: str, data: Path, folder: str) -> dict[str, Any]:
    """Mean and deviation of the accuracies on the test sets."""
    sst, sick = data / "sst2", data / "sick"
    tables = {
        "sst2": [str(sst / "train.csv"), "--validation", str(sst / "dev.csv"), "--test", str(sst / "test.csv")],
        "sick": [
            *(str(sick / "SICK_train.txt"), "--validation", str(sick / "SICK_trial.txt")),
            *("--test", str(sick / "SICK_test_annotated.txt"), "--text", "sentence_A", "--pair", "sentence_B"),
            *("--label", "entailment_judgment"),
        ],
    }
    found = {}
    for name, words in tables.items():
        scores = [
            weft("classify", *words, "--from", start, "--epochs", EPOCHS, "--seed", str(seed), folder=folder)[
                "accuracy"
            ]
            for seed in SEEDS
        ]
        found |= {name: round(statistics.mean(scores), 4), f"{name}_deviation": round(statistics.stdev(scores), 4)}
    return found


def main() -> None:
    data, steps = Path(sys.argv[1]).resolve(), (sys.argv[2:] or ["1000"])[0]
    with tempfile.TemporaryDirectory() as folder:
        start, _ = pretrain(("masked",), data, "1", folder)  # one step: as good as fresh
        Path(folder, start).rename(Path(folder, "nothing"))
        print(json.dumps({"objective": "nothing", **downstream("nothing", data, folder)}), flush=True)
        for tasks in OBJECTIVES:
            start, learned = pretrain(tasks, data, steps, folder)
            print(json.dumps({"objective": start, **learned, **downstream(start, data, folder)}), flush=True)


if __name__ == "__main__":
    main()
