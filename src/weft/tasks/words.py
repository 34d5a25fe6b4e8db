"""What a task says about itself: the plan before training, the result after it, the numbers that matter, and what to
try first. Each task has its own in its folder; what they share is here. None of it needs torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from weft.plugins import with_plugins

Plan = dict[str, Any]
SCORES = {  # in the order in which they are shown
    "bleu": "BLEU {:.2f}",
    "chrf": "chrF {:.2f}",
    "f1": "F1 {:.4f}",
    "precision": "precision {:.4f}",
    "recall": "recall {:.4f}",
    "accuracy": "accuracy {:.4f}",
    "macro_f1": "macro F1 {:.4f}",
    "micro_f1": "micro F1 {:.4f}",
    "exact_match": "exact {:.4f}",
    "spearman": "Spearman {:.4f}",
    "pearson": "Pearson {:.4f}",
    "calibration_error": "calibration error {:.4f}",
}


@dataclass(frozen=True)
class Metric:
    """A number that says how good a model is.

    title             what people call it
    more_is_better    else less is
    is_share          shown in per cent where there is room
    """

    title: str
    more_is_better: bool = True
    is_share: bool = False


METRICS = {
    "bleu": Metric("BLEU"),
    "chrf": Metric("chrF"),
    "f1": Metric("F1"),
    "accuracy": Metric("accuracy", is_share=True),
    "macro_f1": Metric("macro F1"),
    "micro_f1": Metric("micro F1"),
    "exact_match": Metric("exact matches", is_share=True),
    "spearman": Metric("Spearman"),
    "pearson": Metric("Pearson"),
    "masked_accuracy": Metric("right words", is_share=True),
    "spans_accuracy": Metric("right tokens", is_share=True),
    "calibration_error": Metric("calibration error", more_is_better=False),
    "bits_per_byte": Metric("bits per byte", more_is_better=False),
    "perplexity": Metric("perplexity", more_is_better=False),
    "test_loss": Metric("loss", more_is_better=False),
    "validation_loss": Metric("loss", more_is_better=False),
}


@dataclass(frozen=True)
class Use:
    """What a model is used for.

    name    the word for it
    first   the command to try first
    what    what it is, in a few words
    tag     what Hugging Face's hub calls that
    more    another command, for a model that was not trained here
    trained whether it is what the task trains for; else a model is only a place to begin from
    """

    name: str
    first: str
    what: str
    tag: str = "feature-extraction"
    more: str | None = None
    trained: bool = True

    def command(self, path: object) -> str:
        """The first command for this run, with the plugins that it needs."""
        return with_plugins(self.first.format(path=path))


class Words(ABC):
    """Of one task.

    does      what a model does that learned it, after "that"
    uses      what its models are used for, by the name of the capability that they have
    unit      of its loss
    read      what is counted while it learns
    speed     the same, for a clock: so many a second
    matter    metrics in the order in which they matter
    deciding  metrics that say which of several models is better, the first that all have; None: those that matter.
              The loss comes after them
    metrics   what is to be known of metrics that only this task has
    learned   what is learned from, with its verb: "text is", "examples are"
    meanings  title and meaning of metrics that are not the usual ones, for a report
    """

    does: ClassVar[str]
    uses: ClassVar[Mapping[str, Use]]
    unit: ClassVar[str]
    read: ClassVar[str]
    speed: ClassVar[str] = "tokens"
    matter: ClassVar[tuple[str, ...]]
    deciding: ClassVar[tuple[str, ...] | None] = None
    metrics: ClassVar[Mapping[str, Metric]] = {}
    learned: ClassVar[tuple[str, str]] = ("text", "is")
    meanings: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def plan(self, plan: Plan) -> Iterator[str]:
        """The plan, a line each: what is learned from, the model, how long."""
        yield self.data(plan)
        yield from self.model(plan)

    @abstractmethod
    def data(self, plan: Plan) -> str:
        """What is learned from."""

    def model(self, plan: Plan) -> Iterator[str]:
        """The model, and how long."""
        sizes = f"{plan['depth']} layers of width {plan['width']}, " if plan["depth"] else ""
        yield (
            f"Model: {plan['model']}, {sizes}"
            f"{plan['parameters'] / 1e6:.2f} M parameters, {self.reading(plan)}; "
            f"about {plan['memory'] / 2**20:,.0f} MB."
        )
        time_words = f", planned for {plan['minutes']:g} minutes" if plan["minutes"] else ""
        yield f"{plan['steps']:,} steps of {self.batch(plan)} ({plan['epochs']:g} epochs){time_words}."

    def reading(self, plan: Plan) -> str:
        return f"reading {plan['length']} tokens at a time"

    def batch(self, plan: Plan) -> str:
        return f"{plan['batch']} texts"

    @abstractmethod
    def result(self, best: float, metrics: dict[str, Any]) -> str:
        """How good the best weights are, in one sentence."""

    @abstractmethod
    def measured(self, metrics: dict[str, Any]) -> Iterator[str]:
        """What `weft evaluate` found, a line each."""

    def overfitted(self, best_step: int, step: int) -> str:
        """Said when the best weights are not the last."""
        what, are = self.learned
        return (
            f"The loss on the validation {what} was lowest at step {best_step} of {step} and rose after it: the "
            f"{what} {are} being learned by heart. The best weights are kept."
        )

    def best(self, metrics: Mapping[str, Any]) -> str:
        """The metric that matters most, where it was measured: for a short name of a run."""
        name = next((name for name in self.matter if metrics.get(name) is not None), None)
        if name is None:
            return ""
        told = SCORES[name].format(metrics[name]) if name in SCORES else f"{name.replace('_', ' ')} {metrics[name]:.4f}"
        return f"{told} on {metrics['measured_on']}"

    def metric(self, name: str) -> Metric:
        """What is to be known of a metric; one that nobody describes goes by its name, and more of it is better."""
        return self.metrics.get(name) or METRICS.get(name) or Metric(name.replace("_", " "))

    def deciding_metrics(self) -> tuple[str, ...]:
        """Those by which models are compared, the most important first."""
        return (*(self.matter if self.deciding is None else self.deciding), "test_loss", "validation_loss")

    def numbers(self, found: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """What was measured on the best weights, and what follows from it."""
        del config
        return found


def text_data(plan: Plan) -> str:
    """Texts that are learned from."""
    tested = f", {plan['test_tokens']:,} are for the test at the end" if "test_tokens" in plan else ""
    return (
        f"Learning from {plan['characters']:,} characters ({plan['tokens']:,} tokens, {plan['tokenizer']}, "
        f"vocabulary {plan['vocab_size']:,}); {plan['validation_tokens']:,} tokens are for validation{tested}."
    )


def describe_columns(plan: Plan) -> str:
    """Which columns of a table were taken, as a sentence."""
    return f"{plan['columns'][0].upper()}{plan['columns'][1:]}."


def scores(metrics: Mapping[str, Any]) -> str:
    """Those that were measured."""
    return ", ".join(words.format(metrics[name]) for name, words in SCORES.items() if name in metrics)


def validation_sentence(best: float, unit: str, metrics: Mapping[str, Any]) -> str:
    """The loss on the validation text, and on the test text if there is one."""
    told = f"{best:.4f} {unit} on the validation text"
    return f"{told}, {loss(metrics['test_loss'])} on the test text" if metrics["measured_on"] == "test" else told


def loss(value: float | None) -> str:
    """With four digits; None is infinite."""
    return "inf" if value is None else f"{value:.4f}"


def class_table(metrics: dict[str, Any]) -> Iterator[str]:
    """Precision, recall and F1 of each class, and what it is most often mistaken for."""
    classes: dict[str, dict[str, float]] = metrics.get("classes", {})
    if not classes:
        return
    names = list(classes)
    width = max(5, *map(len, names))
    confusion = metrics.get("confusion")
    yield f"{'class':{width}}  precision  recall      F1  examples" + ("  mistaken for" if confusion else "")
    for place, (name, found) in enumerate(classes.items()):
        wrong = ""
        if confusion:
            others = sorted(((n, names[i]) for i, n in enumerate(confusion[place]) if i != place and n), reverse=True)
            wrong = "  " + ", ".join(f"{other} {n}" for n, other in others[:3])
        line = f"{name:{width}}  {found['precision']:9.3f}  {found['recall']:6.3f}  {found['f1']:6.3f}  "
        yield (line + f"{found['examples']:8,}{wrong}").rstrip()
