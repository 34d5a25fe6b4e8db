"""What is said about learning to fill gaps in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.tasks.words import Plan, Use, Words, text_data, validation_sentence

FINE_TUNING_COMMAND = "weft train classify FILE.csv --from {path}"


class FillWords(Words):
    """Of a model that fills gaps in, or one that only reads."""

    does = "fills gaps in a text"
    uses: ClassVar[Mapping[str, Use]] = {
        **dict.fromkeys(
            ("FillsMasks", "FillsSpans"),
            Use(
                "fill",
                'weft fill {path} "The [MASK] of the day"',
                "A model that fills gaps in text",
                "fill-mask",
                FINE_TUNING_COMMAND,
            ),
        ),
        "EncodesText": Use(
            "read",
            'weft embed {path} "a text of yours"',
            "A model that reads text",
            more=FINE_TUNING_COMMAND,
            trained=False,
        ),
    }
    unit, read, speed = "nats", "questions answered", "answers"
    matter = ("masked_accuracy", "spans_accuracy", "loss")
    deciding = ()  # hidden words differ between objectives; the loss is that of training

    def data(self, plan: Plan) -> str:
        return f"{text_data(plan)}\nAsking for: {', '.join(plan['tasks'])}."

    def result(self, best: float, metrics: dict[str, Any]) -> str:
        right = [
            f"{name.removesuffix('_accuracy')} {n:.1%} right" for name, n in metrics.items() if "_accuracy" in name
        ]
        return f"{validation_sentence(best, self.unit, metrics)} ({', '.join(right).replace('_', ' ')})"

    def measured(self, metrics: dict[str, Any]) -> Iterator[str]:
        told = ", ".join(
            f"{name.removesuffix('_accuracy')} {value:.1%} right"
            for name, value in metrics.items()
            if name.endswith("_accuracy")
        )
        yield f"{metrics['loss']:.4f} nats, {told} ({metrics['measured_on']})"
