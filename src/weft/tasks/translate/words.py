"""What is said about learning to write one text from another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.tasks.words import Plan, Use, Words, describe_columns, scores


class TranslateWords(Words):
    """Of a model that writes one text from another."""

    does = "writes one text from another"
    uses: ClassVar[Mapping[str, Use]] = {
        "Seq2SeqLM": Use(
            "translate",
            'weft translate {path} "a text of yours"',
            "A model that writes one text from another",
            "translation",
            "weft evaluate {path} FILE.tsv",
        )
    }
    unit, read = "nats per token", "tokens written"
    matter = ("bleu", "chrf", "exact_match")

    def data(self, plan: Plan) -> str:
        tested = f", {plan['test_pairs']:,} are for the test at the end" if "test_pairs" in plan else ""
        own = ", one for each side" if plan["vocabularies"] == "separate" else ""
        return (
            f"{describe_columns(plan)}\n"
            f"Learning from {plan['pairs']:,} pairs of texts ({plan['tokens']:,} tokens, {plan['tokenizer']}, "
            f"vocabulary {plan['vocab_size']:,}{own}); {plan['validation_pairs']:,} pairs are for validation{tested}."
        )

    def batch(self, plan: Plan) -> str:
        return f"{plan['batch_tokens']:,} tokens"

    def result(self, best: float, metrics: dict[str, Any]) -> str:
        return f"{scores(metrics)} on {'the test' if metrics['measured_on'] == 'test' else 'the validation'} pairs"

    def measured(self, metrics: dict[str, Any]) -> Iterator[str]:
        yield f"{scores(metrics)} on {metrics['pairs']:,} pairs ({metrics['measured_on']})"
        yield from length_table(metrics)

    def overfitted(self, best_step: int, step: int) -> str:
        return (
            f"Held-out pairs were translated best at step {best_step} of {step}, and their loss rose after it: the "
            "pairs are being learned by heart. The best weights are kept."
        )


def length_table(metrics: dict[str, Any]) -> Iterator[str]:
    """BLEU and exact matches of translations, by the words that their sources have."""
    rows: list[dict[str, Any]] = metrics.get("by_length", [])
    if not rows:
        return
    scored = all("bleu" in row for row in rows)
    yield "words of the source  pairs" + ("    BLEU" if scored else "") + "   exact"
    for row in rows:
        bleu = f"  {row['bleu']:6.2f}" if scored else ""
        yield f"{row['words']:>19}  {row['pairs']:5,}{bleu}  {row['exact_match']:6.4f}"
