"""What is said about learning to write."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.tasks.words import Plan, Use, Words, loss, text_data, validation_sentence


class GenerateWords(Words):
    """Of a model that continues a text."""

    does = "continues a text"
    uses: ClassVar[Mapping[str, Use]] = {
        "CausalLM": Use(
            "generate",
            'weft generate {path} "Once upon a time"',
            "A language model",
            "text-generation",
            "weft evaluate {path} book.txt",
        )
    }
    unit, read = "nats per token", "tokens read"
    matter = ("bits_per_byte", "perplexity")

    def data(self, plan: Plan) -> str:
        return text_data(plan)

    def result(self, best: float, metrics: dict[str, Any]) -> str:
        return f"{validation_sentence(best, self.unit, metrics)} ({loss(metrics['bits_per_byte'])} bits per byte)"

    def measured(self, metrics: dict[str, Any]) -> Iterator[str]:
        yield (
            f"{loss(metrics['loss'])} nats per token, {loss(metrics['bits_per_byte'])} bits per byte, "
            f"{metrics['tokens']:,} tokens"
        )

    def numbers(self, found: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        nats = found["loss"]
        return found | {"perplexity": None if nats is None or nats > 700 else math.exp(nats)}


class CountWords(GenerateWords):
    """Of a model that is counted."""

    def model(self, plan: Plan) -> Iterator[str]:
        lengths = f"n-grams of 1 to {plan['order']} tokens" if plan["order"] > 1 else "single tokens"
        yield f"Model: {plan['model']}, {lengths}, {plan['smoothing']}; at most {plan['memory'] / 2**20:,.0f} MB."
        yield "All of it is counted once: there are no steps, and no time to choose."
