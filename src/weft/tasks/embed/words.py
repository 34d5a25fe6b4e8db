"""What is said about learning word vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.tasks.words import Plan, Use, Words, validation_sentence


class EmbedWords(Words):
    """Of vectors of words."""

    does = "has a vector for each word"
    uses: ClassVar[Mapping[str, Use]] = {
        "WordVectorTable": Use("embed", "weft similar {path} WORD", "Vectors of words")
    }
    unit, read, speed = "nats per example", "words read", "words"
    matter = ("loss", "words")
    deciding = ()

    def data(self, plan: Plan) -> str:
        tested = f", {plan['test_tokens']:,} are for the test at the end" if "test_tokens" in plan else ""
        return (
            f"Learning from {plan['characters']:,} characters ({plan['tokens']:,} words, {plan['vocab_size']:,} "
            f"different ones that are frequent enough); {plan['validation_tokens']:,} tokens are for "
            f"validation{tested}."
        )

    def model(self, plan: Plan) -> Iterator[str]:
        against = f"against {plan['negative']} others" if plan["negative"] else "against all others"
        time_words = f", planned for {plan['minutes']:g} minutes" if plan["minutes"] else ""
        yield (
            f"Model: {plan['model']}, vectors of {plan['width']} numbers for {plan['vocab_size']:,} words, guessed "
            f"{against} within {plan['window']} words; about {plan['memory'] / 2**20:,.0f} MB."
        )
        same = "the same bytes each time" if plan["threads"] == 1 else "for the same bytes each time: --threads 1"
        threads = "1 thread" if plan["threads"] == 1 else f"{plan['threads']} threads"
        yield f"{plan['steps']:,} steps ({plan['epochs']:g} epochs){time_words} on {threads} ({same})."

    def result(self, best: float, metrics: dict[str, Any]) -> str:
        return validation_sentence(best, self.unit, metrics)

    def measured(self, metrics: dict[str, Any]) -> Iterator[str]:
        """The loss, the correlation with what people say, and analogies by section."""
        if "loss" in metrics:
            yield f"{metrics['loss']:.4f} nats per example ({metrics['measured_on']})"
        if "spearman" in metrics:
            yield f"Spearman {metrics['spearman']:.4f} on {metrics['known_pairs']:,} of {metrics['pairs']:,} pairs"
        if "accuracy" in metrics:
            known, given = metrics["known_questions"], metrics["questions"]
            yield f"accuracy {metrics['accuracy']:.4f} on {known:,} of {given:,} questions"
            for name, section in metrics["sections"].items():
                yield f"  {section['accuracy']:.4f}  {section['questions']:6,}  {name}"

    def numbers(self, found: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        return found | {"words": (config.get("model") or {}).get("vocab_size")}
