"""BLEU against the length of the source: one vector, a look back at every word, and the Transformer, on the same pairs.

    python benchmarks/bottleneck.py demo [--minutes 5]                     names of numbers
    python benchmarks/bottleneck.py MULTI30K [--minutes 30] [--to de]      a folder with train, val and test_2016_flickr
                                                                           in .en and .de, compressed (.gz) or not

Sentences of such data are short. To see what length does, each text here is one to MOST consecutive pairs joined, the
sources and the targets alike (`--most`, by default 6; with 1 the pairs stay as they are), so that every length is
learned from and asked for; training, held-out and test pairs are joined each among themselves. Then it is

    weft compare translate OUT/train.tsv --validation OUT/validation.tsv --test OUT/test.tsv
        --models seq2seq,bahdanau,transformer --minutes MINUTES --out OUT/runs

whose page has the chart. One JSON line for each length and model beside `seq2seq`, the peer: BLEU of both.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path

import numpy as np

import weft
from weft.data.number_names import demo_pairs

Pairs = list[tuple[str, str]]
MODELS = ("seq2seq", "bahdanau", "transformer")
HELD_OUT = 1000  # pairs of the demo's training part


def lines(folder: Path, name: str) -> list[str]:
    """The lines of a text, compressed or not."""
    path = folder / name
    if path.exists():
        return path.read_text(encoding="utf-8").splitlines()
    return gzip.decompress((folder / f"{name}.gz").read_bytes()).decode("utf-8").splitlines()


def parts(data: str, target: str) -> dict[str, Pairs]:
    """Training, held-out and test pairs."""
    if data == "demo":
        train = demo_pairs("train")
        return {"train": train[HELD_OUT:], "validation": train[:HELD_OUT], "test": demo_pairs("test")}
    names = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
    return {
        part: list(zip(lines(Path(data), f"{name}.en"), lines(Path(data), f"{name}.{target}"), strict=True))
        for part, name in names.items()
    }


def joined(pairs: Pairs, most: int, passes: int, seed: int) -> Pairs:
    """One to `most` consecutive pairs as one, as often through all of them as there are passes."""
    drawn, found = np.random.default_rng(seed), []
    for _ in range(passes if most > 1 else 1):
        first = 0
        while first < len(pairs):
            count = int(drawn.integers(1, most + 1))
            some = pairs[first : first + count]
            found.append((" , ".join(source for source, _ in some), " , ".join(target for _, target in some)))
            first += count
    return list(dict.fromkeys(found))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("data", nargs="?", default="demo", help="demo, or the folder of Multi30k")
    words.add_argument("--to", default="de", help="the language to translate into, from English")
    words.add_argument("--most", type=int, default=6, help="pairs that are joined at most")
    words.add_argument("--minutes", type=float, default=5.0, help="of training, for each model")
    words.add_argument("--steps", type=int, help="instead of minutes: the same number of steps for each model")
    words.add_argument("--pairs", type=int, help="only so many of the training pairs, and a tenth of the others")
    words.add_argument("--out", default="bottleneck", help="a new folder for data and runs")
    given = words.parse_args()
    out = Path(given.out)
    out.mkdir(parents=True)
    for seed, (part, pairs) in enumerate(parts(given.data, given.to).items()):
        some = pairs if given.pairs is None else pairs[: given.pairs if part == "train" else given.pairs // 10]
        texts = joined(some, given.most, 3 if part == "train" else 1, seed)
        rows = ["source\ttarget", *(f"{source}\t{target}" for source, target in texts)]
        (out / f"{part}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        print(f"{part}: {len(texts)} pairs of up to {given.most} joined", file=sys.stderr)
    length = {"minutes": given.minutes} if given.steps is None else {"steps": given.steps}
    result = weft.compare(
        str(out / "train.tsv"),
        task="translate",
        models=MODELS,
        validation=str(out / "validation.tsv"),
        test=str(out / "test.tsv"),
        out=str(out / "runs"),
        **length,
    )
    print(result, file=sys.stderr)
    tables = {row["model"]: {line["words"]: line for line in row.get("by_length", [])} for row in result.rows}
    for name in MODELS[1:]:
        for bucket, line in tables[name].items():
            peer = tables[MODELS[0]][bucket]["bleu"]
            told = {"name": f"bottleneck/{bucket}/{name}", "ours": round(line["bleu"], 2), "peer": round(peer, 2)}
            print(json.dumps(told | {"ratio": round(line["bleu"] / max(peer, 0.01), 3), "pairs": line["pairs"]}))


if __name__ == "__main__":
    main()
