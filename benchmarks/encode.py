"""Reading 2 000 sentences with a BERT of base size beside transformers: the same random weights, no gradients.

    python benchmarks/encode.py DATA_FOLDER [SENTENCES]     one JSON line per comparison, in sentences per second

The sentences are the first English ones of Multi30k, in BERT's own word pieces, made before the clock starts. A run
goes from lists of ids to the pooled vector of each sentence, in the order given. transformers pads batches of 32,
in the order of the file or (`-sorted`) by length; we pad nothing. Both use as many threads as there are cores.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import transformers
from side_by_side import compare
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor

from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.models import encode_first

BATCH = 32
THREADS = os.cpu_count() or 1


def sentences(data: Path, count: int) -> list[list[int]]:
    engine = Tokenizer(models.WordPiece.from_file(str(data / "bert-tokenizer" / "vocab.txt"), unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=True)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(word, engine.token_to_id(word)) for word in ("[SEP]", "[CLS]")]
    engine.post_processor = processors.BertProcessing(*ends)
    with gzip.open(data / "multi30k" / "raw" / "train.en.gz", "rt", encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line, _ in zip(file, range(count), strict=False)]
    return [found.ids for found in engine.encode_batch(texts)]


def ours(folder: Path, texts: Sequence[list[int]]) -> Callable[[], Tensor]:
    source = HuggingFaceFolder(folder)
    model = source.config.with_weights(source.read_weights()).eval()

    def work() -> Tensor:
        with torch.inference_mode():
            return model.pooled(encode_first(model, texts)[:, None])

    return work


def of_transformers(folder: Path, texts: Sequence[list[int]], *, by_length: bool) -> Callable[[], Tensor]:
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def work() -> Tensor:
        order = sorted(range(len(texts)), key=lambda n: len(texts[n])) if by_length else range(len(texts))
        vectors = torch.empty(len(texts), model.config.hidden_size)
        for start in range(0, len(texts), BATCH):
            numbers = order[start : start + BATCH]
            longest = max(len(texts[n]) for n in numbers)
            ids = torch.tensor([texts[n] + [0] * (longest - len(texts[n])) for n in numbers])
            with torch.inference_mode():
                vectors[list(numbers)] = model(ids, attention_mask=(ids != 0).long()).pooler_output
        return vectors

    return work


def main() -> None:
    torch.set_num_threads(THREADS)
    data, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    texts = sentences(data, count)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "bert"
        torch.manual_seed(0)
        transformers.BertModel(transformers.BertConfig()).save_pretrained(folder)
        mine = ours(folder, texts)
        for name, by_length in (("transformers", False), ("transformers-sorted", True)):
            peer = of_transformers(folder, texts, by_length=by_length)
            apart = float((mine() - peer()).abs().max())
            assert apart < 1e-4, f"not the same vectors: {apart}"
            compare(f"encode/bert-base/{name}", mine, peer, units=len(texts))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    main()
