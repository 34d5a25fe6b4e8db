"""A 5-gram of words on text8: counting it, and looking a text up in it beside KenLM.

    python benchmarks/ngrams.py TEXT8_GZ [MEGABYTES]     one JSON line per comparison, in tokens per second

`ngram/train` is counting and smoothing (modified Kneser–Ney) beside the same with numpy alone: KenLM's Python package
cannot estimate. `ngram/score/kenlm` is the score of every token of a text that was not counted: ours by look-ups of
the whole text, KenLM's by its Python query on the same ARPA file, a line of 1 000 words at a time. Tokens are made
before the clock starts.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

import kenlm
import numpy as np
from side_by_side import compare

from weft.models import NGramConfig, ngram_tables
from weft.models.ngram.arpa import arpa_lines, spelled
from weft.models.ngram.counts import count
from weft.models.ngram.model import NGram
from weft.text import TokenizerConfig

ORDER, LINE = 5, 1000


def tokens(path: Path, size: int) -> tuple[np.ndarray, list[str], int]:
    """The ids of the first bytes of the text, how they are spelled, and which one ends a text."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read(size)
    tokenizer = TokenizerConfig.from_config("words").train([text])
    pieces = [text[start : start + 100_000] for start in range(0, len(text), 100_000)]
    ids = np.concatenate(tokenizer.encode_batch(pieces)).astype(np.uint16)
    return ids, spelled(tokenizer.names, tokenizer.end, None), tokenizer.end


def train(ids: np.ndarray, size: int, end: int) -> NGram:
    config = NGramConfig(vocab_size=size, order=ORDER, end=end)
    return config.with_tables(config.smoothing.tables(count(ids, ORDER, size, end), end))


def without_loops(ids: np.ndarray, size: int, end: int) -> NGram:
    has_loops = ngram_tables.has_loops
    try:
        ngram_tables.has_loops = lambda: False
        return train(ids, size, end)
    finally:
        ngram_tables.has_loops = has_loops


def main() -> None:
    path, megabytes = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    ids, words, end = tokens(path, int(megabytes * 1e6))
    cut = int(0.9 * len(ids))
    learned, held_out, size = ids[:cut], ids[cut:], len(words)
    compare(
        "ngram/train/numpy",
        lambda: train(learned, size, end),
        lambda: without_loops(learned, size, end),
        units=len(learned),
        rounds=3,
    )
    model = train(learned, size, end)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.arpa"
        with file.open("w", encoding="utf-8") as out:
            out.writelines(arpa_lines(model.tables, words))
        peer = kenlm.Model(str(file))
    lines = [
        " ".join(words[token] for token in held_out[start : start + LINE]) for start in range(0, len(held_out), LINE)
    ]

    def theirs() -> float:
        return sum(peer.score(line, bos=False, eos=False) for line in lines)

    compare("ngram/score/kenlm", lambda: model.text_nats(held_out), theirs, units=len(held_out))


if __name__ == "__main__":
    main()
