"""Writing: prompts in, text out, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from weft.generation.context import Reading
from weft.generation.sampling import next_tokens
from weft.generation.settings import GenerationConfig
from weft.generation.text_stream import TextStream
from weft.models import CausalLM
from weft.text import Tokenizer

TEXTS_PER_BATCH = 16  # texts that are written side by side
DEFAULTS = GenerationConfig()


@dataclass(frozen=True)
class Step:
    """One chosen token, how likely the model found it, and the best of the others."""

    token: int
    text: str
    probability: float
    others: tuple[tuple[str, float], ...]


@dataclass
class Sample:
    """One text: `prompt` and `text` after it; `ended_by` is "end" (of text), "stop" or "max_tokens"."""

    prompt: str
    number: int  # of this prompt's samples
    text: str = ""
    tokens: list[int] = field(default_factory=list)
    ended_by: str = ""
    steps: list[Step] = field(default_factory=list)  # if `alternatives` were requested


@dataclass(frozen=True)
class TextChunk:
    """A piece of text number `index` (prompt by prompt, sample by sample); its last one carries the whole."""

    index: int
    text: str
    sample: Sample | None = None


class _Row:
    """One text in the making."""

    def __init__(self, index: int, sample: Sample, ids: list[int], tokenizer: Tokenizer, config: GenerationConfig):
        self.index, self.sample = index, sample
        self.stream = TextStream(tokenizer, ids, config.stop)
        self.random = np.random.default_rng([config.seed, sample.number])

    def take(self, token: int, end: int, config: GenerationConfig) -> str:
        """Note a token; returns the text that may be shown."""
        if token == end:
            self.sample.ended_by = "end"
            return self.stream.finish()
        self.sample.tokens.append(token)
        text = self.stream.push(token)
        if self.stream.stopped:
            self.sample.ended_by = "stop"
        elif len(self.sample.tokens) >= config.max_tokens:
            self.sample.ended_by = "max_tokens"
            text += self.stream.finish()
        return text


def stream(
    model: nn.Module, tokenizer: Tokenizer, prompts: Sequence[str], settings: GenerationConfig = DEFAULTS
) -> Iterator[TextChunk]:
    """Write on from every prompt, some texts side by side; pieces come as soon as they are certain."""
    each = settings.samples
    at_once = max(1, TEXTS_PER_BATCH // each)
    for first in range(0, len(prompts), at_once):
        yield from _side_by_side(model, tokenizer, prompts[first : first + at_once], first * each, settings)


def generate(
    model: nn.Module, tokenizer: Tokenizer, prompts: Sequence[str], settings: GenerationConfig = DEFAULTS
) -> list[Sample]:
    """All texts: the samples of the first prompt, then those of the second …"""
    found = [piece for piece in stream(model, tokenizer, prompts, settings) if piece.sample is not None]
    return [piece.sample for piece in sorted(found, key=lambda piece: piece.index) if piece.sample is not None]


def _side_by_side(
    model: nn.Module, tokenizer: Tokenizer, prompts: Sequence[str], first: int, settings: GenerationConfig
) -> Iterator[TextChunk]:
    """Texts that grow by one token at a time together; each leaves the batch when it is done."""
    encoded = [prompt_ids(tokenizer, prompt) for prompt in prompts]
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    numbers = [(row, sample) for row in range(len(prompts)) for sample in range(settings.samples)]
    rows = [
        _Row(first + i, Sample(prompts[row], sample), encoded[row], tokenizer, settings)
        for i, (row, sample) in enumerate(numbers)
    ]
    model.eval()
    with torch.inference_mode():
        reading = Reading(cast(CausalLM, model), encoded, device=device, room=settings.max_tokens)
        reading.select([row for row, _ in numbers])
    while rows:
        with torch.inference_mode():
            logits = reading.logits[:, : tokenizer.vocab_size].float()  # a model may have room for more than there are
            tokens = next_tokens(logits, settings, reading.rows, [row.random for row in rows])
            if settings.alternatives is not None:
                for row, token, values in zip(rows, tokens, logits, strict=True):
                    row.sample.steps.append(_step(token, values, tokenizer, settings.alternatives))
        texts = [row.take(token, tokenizer.end, settings) for row, token in zip(rows, tokens, strict=True)]
        for row, text in zip(rows, texts, strict=True):
            row.sample.text += text
            done = bool(row.sample.ended_by)
            if text or done:
                yield TextChunk(row.index, text, row.sample if done else None)
        going = [i for i, row in enumerate(rows) if not row.sample.ended_by]
        rows = [rows[i] for i in going]
        if rows:
            with torch.inference_mode():
                reading.select(going)
                reading.append([tokens[i] for i in going])


def prompt_ids(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """The tokens of a prompt; an empty one begins where a text has just ended."""
    return [int(token) for token in tokenizer.encode(prompt)] or [tokenizer.end]


def _step(token: int, logits: Float[Tensor, "V"], tokenizer: Tokenizer, alternatives: int) -> Step:
    """Probabilities as the model gives them, before temperature and filters."""
    shares = logits.softmax(-1)
    best = shares.topk(min(alternatives + 1, len(shares)))
    others = [(int(t), float(p)) for t, p in zip(best.indices, best.values, strict=True) if int(t) != token]
    named = tuple((_show(tokenizer, t), p) for t, p in others[:alternatives])
    return Step(token, _show(tokenizer, token), float(shares[token]), named)


def _show(tokenizer: Tokenizer, token: int) -> str:
    return "<end>" if token == tokenizer.end else tokenizer.decode([token])
