"""The proof that an exported folder is the model: read again by Weft, and by transformers where it is installed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.errors import DataError
from weft.text import Tokenizer

TOLERANCE = 1e-4  # of the largest logit; equal computations in another order differ by about 1e-6
TEXTS = (
    "Once upon a time, there was a model.",
    "  two  spaces,\ttabs\r\nand\n\nlines  ",
    "naïve Ærøskøbing — Привет, 你好, مرحبا, 👩‍👩‍👧 e\u0301",
    "def f(x):\n    return x**2 + 3.14159  # 100%",
    "",
)


def certify(model: nn.Module, tokenizer: Tokenizer | None, folder: HuggingFaceFolder) -> dict[str, Any]:
    """What was compared and how far it differs; `DataError` if the folder is not the same model."""
    vocab_size, max_length = folder.settings.size("vocab_size"), getattr(folder.config, "max_length", 64)
    texts = sample_tokens(vocab_size, max_length)
    logits = _logits(model, texts)
    weights = folder.read_weights()
    different = [name for name, p in model.named_parameters() if not _same_bits(p.detach(), weights[name])]
    if different:
        raise DataError(f"read again, {different[0]!r} and {len(different) - 1} more are not what was written")
    difference = _difference(logits, _logits(folder.config.with_weights(weights).eval(), texts))
    theirs = _compare_with_transformers(folder, tokenizer, texts, logits)
    largest = max(float(rows.abs().max()) for rows in logits)
    for whose, apart in (("Weft", difference), ("transformers", theirs.get("difference", 0.0))):
        if not apart <= TOLERANCE * max(1e-6, largest):  # a NaN is not within either
            raise DataError(
                f"opened by {whose}, the folder gives logits that differ by {apart:.2g} (of {largest:.2g})",
                expected="the same model",
                advice="nothing was exported; please report this",
            )
    return {
        "tokens_compared": sum(rows.shape[1] for rows in texts),
        "largest_logit": largest,
        "weights": "bit-equal",
        "difference": difference,
        "transformers": theirs,
    }


def sample_tokens(vocab_size: int, max_length: int) -> list[Tensor]:
    """A few rows of ids, always the same ones, from all over the vocabulary."""
    lengths = sorted({1, min(7, max_length), min(64, max_length)})
    return [((torch.arange(n) * 7919 + 13 * n) % vocab_size)[None] for n in lengths]


def _logits(model: nn.Module, texts: list[Tensor]) -> list[Tensor]:
    with torch.no_grad():
        return [model(ids) for ids in texts]


def _difference(one: list[Tensor], other: list[Tensor]) -> float:
    """The largest; NaN against a number counts as infinite."""
    apart = max(float((a - b).abs().nan_to_num(nan=torch.inf).max()) for a, b in zip(one, other, strict=True))
    return apart if not all(torch.equal(a, b) for a, b in zip(one, other, strict=True)) else 0.0


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.contiguous().view(torch.int32), b.contiguous().view(torch.int32))


# -- transformers -----------------------------------------------------------------------------


def _compare_with_transformers(
    folder: HuggingFaceFolder, tokenizer: Tokenizer | None, texts: list[Tensor], logits: list[Tensor]
) -> dict[str, Any]:
    """Version, largest difference of logits, and whether the ids are the same; or why nothing was compared."""
    if importlib.util.find_spec("transformers") is None:
        return {"not_compared": "transformers is not installed"}
    with _without_network():
        import transformers

        version = str(transformers.__version__)
        name = folder.layout.name
        if name not in transformers.CONFIG_MAPPING:
            return {"not_compared": f"transformers {version} does not know {name}"}
        result: dict[str, Any] = {"version": version}
        where = str(folder.path)
        try:
            with _quiet(transformers):
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    where, local_files_only=True, trust_remote_code=False
                )
                result["difference"] = _difference(logits, _logits(_LogitsOnly(model).eval(), texts))
                if tokenizer is not None:
                    theirs = transformers.AutoTokenizer.from_pretrained(where, local_files_only=True)
                    result["texts_tokenised"] = _compare_ids(tokenizer, theirs)
        except DataError:
            raise
        except Exception as error:  # whatever it is, the folder is of no use
            why = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
            raise DataError(f"transformers {version} cannot open what was exported: {why}") from error
    return result


class _LogitsOnly(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.model(ids).logits
        return logits


def _compare_ids(ours: Tokenizer, theirs: Any) -> int:
    for text in TEXTS:
        ids = theirs(text, add_special_tokens=False)["input_ids"]
        if list(ids) != ours.encode(text).tolist():
            raise DataError(f"opened by transformers, the tokenizer gives other ids for {text[:30]!r}")
    if theirs.eos_token_id != ours.end:
        raise DataError(f"opened by transformers, a text ends with {theirs.eos_token_id}", expected=str(ours.end))
    return len(TEXTS)


@contextmanager
def _without_network() -> Iterator[None]:
    """The folder is all that is needed; this makes sure that nothing else is asked for."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Its warnings and bars are about loading, which we check ourselves."""
    level = transformers.logging.get_verbosity()
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(level)
        if bars:
            transformers.utils.logging.enable_progress_bar()
