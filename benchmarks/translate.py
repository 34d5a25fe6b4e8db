"""Translating 1 000 sentences by a beam search of 4 beside transformers: the same random weights, the same texts.

    python benchmarks/translate.py [SENTENCES] [WIDTH]      one JSON line per comparison, in sentences per second

The model is a Marian of 3 + 3 layers of width 256 with 8 000 tokens, random, with a bias on the end of the text so that
texts of many lengths are found, as those of a trained model are. Sources have 5 to 35 tokens. transformers gets them in
batches of 64, in the order given or (`-sorted`) by length; both have the same limit of tokens. Before the clock starts,
the ids that both find are compared. Both use as many threads as there are cores.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
import transformers
from side_by_side import compare

from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.generation.search import SearchConfig
from weft.generation.text_to_text import write
from weft.models import EncoderDecoder

BATCH, BEAMS, LIMIT, VOCABULARY = 64, 4, 40, 8000
PAD, END = VOCABULARY - 1, 0
THREADS = os.cpu_count() or 1
Texts = list[list[int]]


def sources(count: int) -> Texts:
    random = np.random.default_rng(0)
    lengths = np.clip(random.normal(15, 5, count).round(), 5, 35).astype(int)
    return [[*random.integers(1, VOCABULARY - 1, n).tolist(), END] for n in lengths]


def save_marian(folder: Path, width: int) -> None:
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=VOCABULARY,
        decoder_vocab_size=VOCABULARY,
        d_model=width,
        encoder_layers=3,
        decoder_layers=3,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        max_position_embeddings=512,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=PAD,
        forced_eos_token_id=None,
    )
    model = transformers.MarianMTModel(config)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(3.0)  # far enough from uniform that the search has something to decide
        model.final_logits_bias[0, END] = 12.0  # half of the texts end within ten tokens, one in ten at the limit
    model.save_pretrained(folder)


def ours(folder: Path, texts: Texts) -> Callable[[], Texts]:
    source = HuggingFaceFolder(folder)
    model = cast(EncoderDecoder, source.config.with_weights(source.read_weights()).eval())
    search = SearchConfig(beams=BEAMS, end=END, suppress=(PAD,))

    def work() -> Texts:
        found = write(model, texts, search, start=PAD, limits=[LIMIT] * len(texts))
        return [best[0].tokens for best in found]

    return work


def of_transformers(folder: Path, texts: Texts, *, by_length: bool) -> Callable[[], Texts]:
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    def work() -> Texts:
        order = sorted(range(len(texts)), key=lambda n: len(texts[n])) if by_length else range(len(texts))
        found: Texts = [[] for _ in texts]
        for start in range(0, len(texts), BATCH):
            numbers = order[start : start + BATCH]
            longest = max(len(texts[n]) for n in numbers)
            ids = torch.tensor([texts[n] + [PAD] * (longest - len(texts[n])) for n in numbers])
            with torch.inference_mode():
                written = model.generate(
                    input_ids=ids,
                    attention_mask=(ids != PAD).long(),
                    num_beams=BEAMS,
                    max_new_tokens=LIMIT,
                    do_sample=False,
                    bad_words_ids=[[PAD]],
                )
            for n, row in zip(numbers, written.tolist(), strict=True):
                found[n] = [token for token in row[1:] if token not in (PAD, END)]
        return found

    return work


def check_same(mine: Sequence[list[int]], theirs: Sequence[list[int]]) -> None:
    same = sum(a == b for a, b in zip(mine, theirs, strict=True))
    lengths = [len(text) for text in mine]
    print(f"{same} of {len(mine)} texts are the same; {min(lengths)} to {max(lengths)} tokens", file=sys.stderr)
    if same < 0.99 * len(mine):  # ties of float32 may fall either way
        raise SystemExit("the two find other texts")


def main() -> None:
    torch.set_num_threads(THREADS)
    count, width = (int(word) for word in (*sys.argv[1:], *("1000", "256")[len(sys.argv) - 1 :]))
    texts = sources(count)
    transformers.utils.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "marian"
        save_marian(folder, width)
        mine = ours(folder, texts)
        for name, by_length in (("transformers", False), ("transformers-sorted", True)):
            theirs = of_transformers(folder, texts, by_length=by_length)
            check_same(mine(), theirs())
            compare(f"translate/beam-{BEAMS}/{name}", mine, theirs, units=count, rounds=3)


if __name__ == "__main__":
    main()
