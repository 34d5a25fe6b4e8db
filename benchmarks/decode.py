"""Writing with GPT-2's 124 M parameters beside transformers and CTranslate2: the same random weights, greedy.

python benchmarks/decode.py [float32|int8|batch|position]     one JSON line per comparison, in tokens per second

A run is a prompt of 16 tokens and 64 new ones, from text to text for us and CTranslate2, from ids to ids for
transformers. All use as many threads as there are cores. `position` is the time of a token at position 100
divided by that at position 900 of 1 024.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import torch
import transformers
from side_by_side import compare
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import weft
from weft.generation import GenerationConfig, Reading, generate, packed

PROMPT, NEW = 16, 64
THREADS = os.cpu_count() or 1
END = "<|endoftext|>"


def make_folder(folder: Path) -> None:
    """GPT-2 with random weights, and a tokenizer of 50 257 made-up words."""
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(folder)
    words = {f"w{i}": i for i in range(50256)} | {END: 50256}
    engine = Tokenizer(models.WordLevel(words, unk_token=END))
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    engine.decoder = decoders.Fuse()
    engine.add_special_tokens([END])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=engine, bos_token=END, eos_token=END, unk_token=END)
    fast.save_pretrained(folder)


def prompts(rows: int) -> list[list[str]]:
    return [[f"w{100 * row + i}" for i in range(PROMPT)] for row in range(rows)]


def ours(folder: Path, weights: Any, rows: int) -> Callable[[], object]:
    run = weft.load(folder)
    model, tokenizer = packed(run.model, weights), run.tokenizer
    settings = GenerationConfig(temperature=0.0, max_tokens=NEW)
    texts = [" ".join(words) for words in prompts(rows)]

    def work() -> None:
        samples = generate(model, tokenizer, texts, settings)
        assert all(len(sample.tokens) == NEW for sample in samples)

    return work


def of_transformers(folder: Path, rows: int) -> Callable[[], object]:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = torch.tensor([[int(word[1:]) for word in words] for words in prompts(rows)])
    mask = torch.ones_like(ids)

    def work() -> None:
        with torch.inference_mode():
            out = model.generate(
                ids, attention_mask=mask, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, pad_token_id=0
            )
        assert out.shape[1] == PROMPT + NEW

    return work


def of_ctranslate2(folder: Path, weights: str, rows: int) -> Callable[[], object]:
    target = folder.parent / f"ctranslate2-{weights}"
    if not target.exists():
        ctranslate2.converters.TransformersConverter(str(folder)).convert(str(target), quantization=weights)
    model = ctranslate2.Generator(str(target), device="cpu", inter_threads=1, intra_threads=THREADS)
    start = prompts(rows)

    def work() -> None:
        found = model.generate_batch(
            start, max_length=NEW, min_length=NEW, sampling_topk=1, include_prompt_in_result=False, max_batch_size=rows
        )
        assert all(len(result.sequences_ids[0]) == NEW for result in found)

    return work


def positions(folder: Path, weights: Any) -> None:
    """How much slower a token is after 900 others than after 100."""
    model = packed(weft.load(folder).model, weights)
    rounds = []
    with torch.inference_mode():
        for _ in range(7):
            times = []
            for position in (100, 900):
                reading = Reading(model, [list(range(position))], device=torch.device("cpu"), room=32)  # type: ignore[arg-type]
                steps = []
                for token in range(20):
                    began = time.perf_counter()
                    reading.append([token])
                    steps.append(time.perf_counter() - began)
                times.append(statistics.median(steps))
            rounds.append(times)
    early, late = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio = statistics.median(a / b for a, b in rounds)
    line = {"name": f"decode-position/{weights}", "ours": round(1 / late, 1), "peer": round(1 / early, 1)}
    print(json.dumps(line | {"ratio": round(ratio, 3)}), flush=True)


def main() -> None:
    torch.set_num_threads(THREADS)
    wanted = sys.argv[1:] or ["float32", "int8", "batch", "position"]
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "gpt2"
        make_folder(folder)
        if "float32" in wanted:
            mine = ours(folder, "float32", 1)
            compare("decode/float32/transformers", mine, of_transformers(folder, 1), units=NEW)
            compare("decode/float32/ctranslate2", mine, of_ctranslate2(folder, "float32", 1), units=NEW)
        if "int8" in wanted:
            compare("decode/int8/ctranslate2", ours(folder, "int8", 1), of_ctranslate2(folder, "int8", 1), units=NEW)
        if "batch" in wanted:
            mine = ours(folder, "float32", 16)
            compare("decode-16/float32/transformers", mine, of_transformers(folder, 16), units=16 * NEW)
            compare("decode-16/float32/ctranslate2", mine, of_ctranslate2(folder, "float32", 16), units=16 * NEW)
        if "position" in wanted:
            positions(folder, "float32")
            positions(folder, "int8")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    main()
