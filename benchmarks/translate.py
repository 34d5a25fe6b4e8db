"""Translating sentences by a beam search of 4 beside transformers: the same weights, the same texts.

    python benchmarks/translate.py MARIAN SENTENCES.txt [COUNT]    a trained model, as `weft export` writes it
    python benchmarks/translate.py [COUNT] [WIDTH]                 a random one

One JSON line per comparison, in sentences per second. With a trained model, the sentences of a file go in as text and
come out as text, in both. The random model is a Marian of 3 + 3 layers of width 256 with 8 000 tokens, with a bias on
the end of the text so that texts of many lengths are found; sources have 5 to 35 tokens. transformers gets them in
batches of 64, in the order given or (`-sorted`) by length; both have the same limits. Before the clock starts, what
both find is compared. Both use as many threads as there are cores.
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

import weft
from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.generation.search import SearchConfig
from weft.generation.text_to_text import limit_of, write
from weft.models import EncoderDecoder

BATCH, BEAMS, LIMIT, VOCABULARY = 64, 4, 40, 8000
PAD, END = VOCABULARY - 1, 0
THREADS = os.cpu_count() or 1
Texts = list[list[int]]
Work = Callable[[], Sequence[Sequence[object]]]


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


def check_same(mine: Sequence[Sequence[object]], theirs: Sequence[Sequence[object]]) -> None:
    same = sum(a == b for a, b in zip(mine, theirs, strict=True))
    lengths = [len(text) for text in mine]
    print(
        f"{same} of {len(mine)} texts are the same; {min(lengths)} to {max(lengths)} tokens or letters", file=sys.stderr
    )
    if same < 0.99 * len(mine):  # ties of float32 may fall either way
        raise SystemExit("the two find other texts")


def trained(folder: str, sentences: list[str]) -> tuple[Work, Callable[[bool], Work]]:
    """Our way from texts to texts, and transformers', by length or not."""
    run = weft.load(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    model.generation_config.max_length = None

    def of_transformers(by_length: bool) -> Work:
        def work() -> list[str]:
            order = (
                sorted(range(len(sentences)), key=lambda n: len(sentences[n])) if by_length else range(len(sentences))
            )
            found = [""] * len(sentences)
            for start in range(0, len(sentences), BATCH):
                numbers = order[start : start + BATCH]
                batch = tokenizer([sentences[n] for n in numbers], return_tensors="pt", padding=True)
                inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
                limit = limit_of(inputs["input_ids"].shape[1], model.config.max_position_embeddings)
                with torch.inference_mode():
                    rows = model.generate(**inputs, num_beams=BEAMS, max_new_tokens=limit, do_sample=False)
                for n, text in zip(numbers, tokenizer.batch_decode(rows, skip_special_tokens=True), strict=True):
                    found[n] = text
            return found

        return work

    return lambda: [found.text for found in run.translate(sentences)], of_transformers


def random(count: int, width: int, folder: Path) -> tuple[Work, Callable[[bool], Work]]:
    """The same for tokens and a model of random weights."""
    texts = sources(count)
    save_marian(folder, width)
    return ours(folder, texts), lambda by_length: of_transformers(folder, texts, by_length=by_length)


def main() -> None:
    torch.set_num_threads(THREADS)
    transformers.utils.logging.set_verbosity_error()
    given = sys.argv[1:]
    with tempfile.TemporaryDirectory() as parent:
        if given and not given[0].isdigit():
            lines = Path(given[1]).read_text("utf-8").splitlines()
            sentences = lines[: int(given[2])] if len(given) > 2 else lines
            name, count = "translate-trained", len(sentences)
            mine, theirs = trained(given[0], sentences)
        else:
            count, width = (int(word) for word in (*given, *("1000", "256")[len(given) :]))
            name = "translate"
            mine, theirs = random(count, width, Path(parent) / "marian")
        for suffix, by_length in (("transformers", False), ("transformers-sorted", True)):
            peer = theirs(by_length)
            check_same(mine(), peer())
            compare(f"{name}/beam-{BEAMS}/{suffix}", mine, peer, units=count, rounds=3)


if __name__ == "__main__":
    main()
