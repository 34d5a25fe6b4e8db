"""Word vectors beside gensim: words a second, and how good the vectors are.

python benchmarks/word2vec.py [TEXT]                one JSON line each for cbow and skipgram, in words per second
python benchmarks/word2vec.py quality [TEXT]        means of 3 seeds: Spearman on WordSim-353 and three other lists,
                                                    accuracy on analogies

TEXT is a file of words with spaces between them, by default the first 10 MB of text8 in $WEFT_DATA. Settings are the
same: width 100, window 5, 5 negatives, sample 1e-3, words that occur 5 times, 2 threads; for the quality 5 epochs, each
with the learning rate that it has by default (cbow: 0.1 here, where the error is divided among the words around, as the
derivative says; 0.025 there, where it is not; it was chosen by WordSim-353 and the analogies, so that only the other
lists say something new about cbow). Speed is that of reading a text once that is in memory as each of the
two wants it: lists of words there, ids here. Making these is in neither.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from gensim.models import Word2Vec
from side_by_side import compare

import weft
from weft.exchange.transfer import import_model
from weft.models import ModelConfig
from weft.models.word2vec.examples import Chances
from weft.models.word2vec.learning import lined_up
from weft.models.word2vec.workers import Workers

DATA = Path(os.environ.get("WEFT_DATA", "data"))
KINDS = ("cbow", "skipgram")
LISTS = ("WS-353-ALL", "MEN-TR-3k", "MTurk-771", "SIMLEX-999")
THREADS, SEEDS, EPOCHS, BLOCK, BATCH = 2, 3, 5, 4096, 64
SETTINGS = {"vector_size": 100, "window": 5, "negative": 5, "sample": 1e-3, "min_count": 5, "workers": THREADS}


def read(path: Path | None) -> list[str]:
    """The words of the text."""
    path = path or DATA / "text8" / "text8_prefix.gz"
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()[:10_000_000].split()


def sentences(words: list[str]) -> list[list[str]]:
    return [words[start : start + 10_000] for start in range(0, len(words), 10_000)]


def ours(kind: str, words: list[str]) -> Callable[[], object]:
    counts = {word: count for word, count in Counter(words).most_common() if count >= SETTINGS["min_count"]}
    rows = {word: row for row, word in enumerate(counts)}
    ids = np.array([rows[word] for word in words if word in rows], dtype=np.int32)
    config = ModelConfig.from_config({"kind": kind, "vocab_size": len(rows)})
    chances = Chances(np.array(list(counts.values())), config, 0)
    blocks = -(-len(ids) // BLOCK)

    def work() -> None:
        torch.manual_seed(0)
        model = lined_up(config.build())
        workers = Workers(model, chances, lambda n: ids[n * BLOCK : (n + 1) * BLOCK], THREADS)
        for start in range(0, blocks, BATCH):
            workers.learn(range(start, min(blocks, start + BATCH)), 0.025)

    return work


def peer(kind: str, words: list[str]) -> Callable[[], object]:
    given = sentences(words)

    model = Word2Vec(sg=int(kind == "skipgram"), **SETTINGS)
    model.build_vocab(given)
    return lambda: model.train(given, total_examples=len(given), epochs=1)


def speed(words: list[str]) -> None:
    for kind in KINDS:
        compare(f"word2vec/{kind}", ours(kind, words), peer(kind, words), rounds=5, units=len(words))


def judged(run: weft.Run) -> dict[str, float]:
    """Spearman on each list of word pairs, and the accuracy of analogies."""
    found = run.evaluate(str(DATA / "word-analogy" / "questions-words.txt"))
    lists = {name: run.evaluate(str(DATA / "word-sim" / f"EN-{name}.txt"))["spearman"] for name in LISTS}
    return {"accuracy": found["accuracy"], **{f"spearman/{name}": value for name, value in lists.items()}}


def quality(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text(" " + " ".join(words), encoding="utf-8")
        for kind in KINDS:
            found: dict[str, list[dict[str, float]]] = {"ours": [], "peer": []}
            for seed in range(SEEDS):
                out = f"{folder}/{kind}-{seed}"
                small = {"data.validation_share": 0.001, "tokenizer.min_count": 5}  # the other has all of the text
                told = {"model": kind, "epochs": EPOCHS, "seed": seed, "threads": THREADS, "set": small}
                run = weft.train(str(text), task="embed", out=out, **told)
                found["ours"].append(judged(run))
                other = Word2Vec(sentences(words), sg=int(kind == "skipgram"), seed=seed, epochs=EPOCHS, **SETTINGS)
                other.wv.save_word2vec_format(f"{out}.bin", binary=True)
                import_model(f"{out}.bin", f"{out}-peer")
                found["peer"].append(judged(weft.load(f"{out}-peer")))
            for metric in found["ours"][0]:
                a, b = (statistics.mean(one[metric] for one in found[who]) for who in ("ours", "peer"))
                line = {"name": f"word2vec/{kind}/{metric}", "ours": a, "peer": b, "ratio": a / b}
                print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()}), flush=True)


def main(arguments: list[str]) -> None:
    measured = quality if arguments[:1] == ["quality"] else speed
    rest = arguments[measured is quality :]
    measured(read(Path(rest[0]) if rest else None))


if __name__ == "__main__":
    main(sys.argv[1:])
