"""How well a classifier learns a table, through the command as a user types it, beside a bag of words.

    python benchmarks/classify.py DATA_FOLDER                     SST-2, five seeds, shipped defaults
    python benchmarks/classify.py DATA_FOLDER pretraining         the same after `weft train fill` on the same texts
    python benchmarks/classify.py DATA_FOLDER … --threads 1       with fewer threads than there are cores

One JSON line for each comparison: {"name", "ours", "peer", "ratio"}, accuracy on the test set. The peer is a logistic
regression on the words' counts or TF-IDF (scikit-learn), whichever is better on the development set. Differences
between two ways of training are over pairs of seeds, with the 95 % interval of their mean (Student's t).
"""

from __future__ import annotations

import csv
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

SEEDS = range(5)
STUDENT = {4: 2.776}  # 97.5 % point, by degrees of freedom
FILL_MINUTES = 5
SIZES = ("width=128", "depth=2", "attention.heads=4", "max_length=256")  # those of the classifier's plan
MORE = sys.argv[sys.argv.index("--threads") :][:2] if "--threads" in sys.argv else []


def rows(path: Path) -> tuple[list[str], list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        found = [(row["text"], row["label"]) for row in csv.DictReader(file)]
    texts, labels = zip(*found, strict=True)
    return list(texts), list(labels)


def bag_of_words(data: Path) -> dict[str, float]:
    """Accuracy on dev and test of the better of two bags."""
    train, dev, test = (rows(data / f"{name}.csv") for name in ("train", "dev", "test"))
    models = [make_pipeline(bag(), LogisticRegression(max_iter=1000)) for bag in (CountVectorizer, TfidfVectorizer)]
    scores = [{"dev": m.fit(*train).score(*dev), "test": m.score(*test)} for m in models]
    return max(scores, key=lambda score: score["dev"])


def weft(*words: str, folder: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "weft", "train", *words, "--json", *MORE]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(result.stdout.splitlines()[-1])


def learn(data: Path, folder: str, *more: str) -> list[dict[str, Any]]:
    """One run for each seed."""
    files = [str(data / "train.csv"), "--validation", str(data / "dev.csv"), "--test", str(data / "test.csv")]
    done = []
    for seed in SEEDS:
        done.append(weft("classify", *files, "--minutes", "10", "--seed", str(seed), *more, folder=folder))
        kept = ("accuracy", "macro_f1", "calibration_error", "test_loss", "seconds", "steps")
        print(json.dumps({"seed": seed, "from": list(more), **{k: done[-1][k] for k in kept}}), flush=True)
    return done


def say(name: str, runs: list[dict[str, Any]], peer: float) -> None:
    accuracies = [run["accuracy"] for run in runs]
    ours = statistics.mean(accuracies)
    more = {
        "deviation": round(statistics.stdev(accuracies), 4),
        "worst_calibration_error": round(max(run["calibration_error"] for run in runs), 4),
        "longest_seconds": max(run["seconds"] for run in runs),
    }
    told = {"name": name, "ours": round(ours, 4), "peer": round(peer, 4), "ratio": round(ours / peer, 4)}
    print(json.dumps(told | more), flush=True)


def difference(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    apart = [b["accuracy"] - a["accuracy"] for a, b in zip(one, other, strict=True)]
    mean, half = statistics.mean(apart), STUDENT[len(apart) - 1] * statistics.stdev(apart) / math.sqrt(len(apart))
    told = {"name": "classify/sst2/effect-of-pretraining", "difference": round(mean, 4)}
    print(json.dumps(told | {"interval": [round(mean - half, 4), round(mean + half, 4)]}), flush=True)


def main() -> None:
    data, only = Path(sys.argv[1]).resolve() / "sst2", sys.argv[2:]
    peer = bag_of_words(data)
    print(json.dumps({"name": "bag of words, logistic regression", **peer}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = learn(data, folder)
        say("classify/sst2/logistic-regression", scratch, peer["test"])
        if "pretraining" in only:
            words = [str(data / "train.csv"), "--validation", str(data / "dev.csv"), "--minutes", str(FILL_MINUTES)]
            words += [word for size in SIZES for word in ("--set", f"model.{size}")]
            print(json.dumps(weft("fill", *words, "--out", "words", folder=folder)), flush=True)
            further = learn(data, folder, "--from", "words")
            say("classify/sst2/after-fill/logistic-regression", further, peer["test"])
            difference(scratch, further)


if __name__ == "__main__":
    main()
