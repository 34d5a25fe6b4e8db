"""What is said about learning to tag words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.tasks.words import Plan, Use, Words, class_table, scores

BASELINE = "simplest_"  # before the name of a measure: what each word's most frequent tag reaches of it


class TagWords(Words):
    """Of a model that tags words."""

    does = "tags the words of a text"
    uses: ClassVar[Mapping[str, Use]] = {
        "TagsTokens": Use(
            "tag",
            'weft tag {path} "Ada Lovelace lived in London."',
            "A model that tags words",
            "token-classification",
            "weft evaluate {path} FILE.conll",
        )
    }
    unit, read, speed = "nats per word", "words read", "sentences"
    matter = ("f1", "precision", "recall", "accuracy", "macro_f1")
    meanings: ClassVar[Mapping[str, tuple[str, str]]] = {
        "f1": ("F1", "of whole entities, 1 is best"),
        "precision": ("precision", "share of the found entities that are right"),
        "recall": ("recall", "share of the real entities that were found"),
        "accuracy": ("right tags", "share of the words"),
        "macro_f1": ("macro F1", "mean over tags, 1 is best"),
    }
    learned = ("sentences", "are")

    def data(self, plan: Plan) -> str:
        kinds = f"{len(plan['kinds'])} {'tags' if plan['plain'] else 'types of entities'}"
        shown = ", ".join(plan["kinds"][:8]) + (", …" if len(plan["kinds"]) > 8 else "")
        tested = f", {plan['test_sentences']:,} are for the test at the end" if "test_sentences" in plan else ""
        return (
            f"{plan['columns'][0].upper()}{plan['columns'][1:]}.\n"
            f"Learning {kinds} ({shown}) from {plan['sentences']:,} sentences with {plan['words']:,} words "
            f"({plan['tokenizer']}, vocabulary {plan['vocab_size']:,}); {plan['validation_sentences']:,} sentences are "
            f"for validation{tested}."
        )

    def batch(self, plan: Plan) -> str:
        return f"{plan['batch']} sentences"

    def result(self, best: float, metrics: dict[str, Any]) -> str:
        where = "the test" if metrics["measured_on"] == "test" else "the validation"
        return f"{scores(metrics)} on {where} sentences{simplest(metrics)}"

    def measured(self, metrics: dict[str, Any]) -> Iterator[str]:
        yield f"{scores(metrics)} on {metrics['sentences']:,} sentences ({metrics['measured_on']}){simplest(metrics)}"
        yield from class_table(metrics)

    def overfitted(self, best_step: int, step: int) -> str:
        return (
            f"Held-out sentences were tagged best at step {best_step} of {step}, and their loss rose after it: the "
            "sentences are being learned by heart. The best weights are kept."
        )


def simplest(metrics: Mapping[str, Any]) -> str:
    """The simplest answer beside that of the model, and whether it is as good."""
    name = next((name for name in ("f1", "accuracy") if BASELINE + name in metrics), None)
    if name is None:
        return ""
    told = f"each word's most frequent tag reaches {metrics[BASELINE + name]:.4f}"
    no_better = metrics[name] <= metrics[BASELINE + name]
    return f". Note: the model is no better than the simplest answer, {told}" if no_better else f" ({told})"
