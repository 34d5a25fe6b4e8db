"""What is said about a run in words, task by task: the plan before it, the result after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Plan = dict[str, Any]


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan, a line each: what is learned from, the model, how long."""
    yield LEARNED_FROM[plan["task"]](plan)
    if "order" in plan:
        lengths = f"n-grams of 1 to {plan['order']} tokens" if plan["order"] > 1 else "single tokens"
        yield f"Model: {plan['model']}, {lengths}, {plan['smoothing']}; at most {plan['memory'] / 2**20:,.0f} MB."
        yield "All of it is counted once: there are no steps, and no time to choose."
        return
    if plan["task"] == "embed":
        yield from _vectors(plan)
        return
    reading = "looking at {size} × {size} pixels" if "size" in plan else "reading {length} tokens at a time"
    sizes = f"{plan['depth']} layers of width {plan['width']}, " if plan["depth"] else ""
    yield (
        f"Model: {plan['model']}, {sizes}"
        f"{plan['parameters'] / 1e6:.2f} M parameters, {reading.format(**plan)}; "
        f"about {plan['memory'] / 2**20:,.0f} MB."
    )
    time_words = f", planned for {plan['minutes']:g} minutes" if plan["minutes"] else ""
    things = "pictures" if "size" in plan else "texts"
    each = f"{plan['batch_tokens']:,} tokens" if "batch_tokens" in plan else f"{plan['batch']} {things}"
    yield f"{plan['steps']:,} steps of {each} ({plan['epochs']:g} epochs){time_words}."


def _texts(plan: Plan) -> str:
    tested = f", {plan['test_tokens']:,} are for the test at the end" if "test_tokens" in plan else ""
    return (
        f"Learning from {plan['characters']:,} characters ({plan['tokens']:,} tokens, {plan['tokenizer']}, "
        f"vocabulary {plan['vocab_size']:,}); {plan['validation_tokens']:,} tokens are held out{tested}."
    )


def _pretraining(plan: Plan) -> str:
    return f"{_texts(plan)}\nAsking for: {', '.join(plan['tasks'])}."


def _table(plan: Plan) -> str:
    tested = f", {plan['test_examples']:,} are for the test at the end" if "test_examples" in plan else ""
    kinds = {
        "single": f"{plan['classes']} classes",
        "several": f"{plan['classes']} labels, any number of them at once",
        "number": "a number",
    }
    weighted = ", rare classes weigh more" if plan["weighted"] else ""
    if "size" in plan:
        colours = "grey" if plan["channels"] == 1 else "coloured"
        mirrored = ", mirrored or not" if plan["mirrored"] else ""
        return (
            f"{plan['columns'][0].upper()}{plan['columns'][1:]}.\n"
            f"Learning {kinds[plan['labels']]} from {plan['examples']:,} {colours} pictures{mirrored}{weighted}; "
            f"{plan['validation_examples']:,} pictures are held out{tested}."
        )
    return (
        f"{plan['columns'][0].upper()}{plan['columns'][1:]}.\n"
        f"Learning {kinds[plan['labels']]} from {plan['examples']:,} examples ({plan['tokenizer']}, vocabulary "
        f"{plan['vocab_size']:,}){weighted}; {plan['validation_examples']:,} examples are held out{tested}."
    )


def _pairs(plan: Plan) -> str:
    tested = f", {plan['test_pairs']:,} are for the test at the end" if "test_pairs" in plan else ""
    own = ", one for each side" if plan["vocabularies"] == "separate" else ""
    return (
        f"{plan['columns'][0].upper()}{plan['columns'][1:]}.\n"
        f"Learning from {plan['pairs']:,} pairs of texts ({plan['tokens']:,} tokens, {plan['tokenizer']}, vocabulary "
        f"{plan['vocab_size']:,}{own}); {plan['validation_pairs']:,} pairs are held out{tested}."
    )


def _vectors(plan: Plan) -> Iterator[str]:
    """Of word vectors: the model and how long."""
    against = f"against {plan['negative']} others" if plan["negative"] else "against all others"
    time_words = f", planned for {plan['minutes']:g} minutes" if plan["minutes"] else ""
    yield (
        f"Model: {plan['model']}, vectors of {plan['width']} numbers for {plan['vocab_size']:,} words, guessed "
        f"{against} within {plan['window']} words; about {plan['memory'] / 2**20:,.0f} MB."
    )
    same = "the same bytes each time" if plan["threads"] == 1 else "for the same bytes each time: --threads 1"
    threads = "1 thread" if plan["threads"] == 1 else f"{plan['threads']} threads"
    yield f"{plan['steps']:,} steps ({plan['epochs']:g} epochs){time_words} on {threads} ({same})."


def _words(plan: Plan) -> str:
    tested = f", {plan['test_tokens']:,} are for the test at the end" if "test_tokens" in plan else ""
    return (
        f"Learning from {plan['characters']:,} characters ({plan['tokens']:,} words, {plan['vocab_size']:,} different "
        f"ones that are frequent enough); {plan['validation_tokens']:,} tokens are held out{tested}."
    )


LEARNED_FROM: dict[str, Callable[[Plan], str]] = {
    "generate": _texts,
    "fill": _pretraining,
    "classify": _table,
    "translate": _pairs,
    "embed": _words,
}


# -- the end ----------------------------------------------------------------------------------

METRICS = {  # in the order in which they are told
    "bleu": "BLEU {:.2f}",
    "chrf": "chrF {:.2f}",
    "accuracy": "accuracy {:.4f}",
    "macro_f1": "macro F1 {:.4f}",
    "micro_f1": "micro F1 {:.4f}",
    "exact_match": "exact {:.4f}",
    "spearman": "Spearman {:.4f}",
    "pearson": "Pearson {:.4f}",
    "calibration_error": "calibration error {:.4f}",
}


def result(task: str, best: float, metrics: dict[str, Any]) -> str:
    """How good the best weights are, in one sentence."""
    tested = metrics["measured_on"] == "test"
    if task in ("classify", "translate"):
        what = "examples" if task == "classify" else "pairs"
        told = ", ".join(words.format(metrics[name]) for name, words in METRICS.items() if name in metrics)
        return f"{told} on {'the test' if tested else 'held-out'} {what}"
    unit = {"generate": "nats per token", "embed": "nats per example"}.get(task, "nats")
    told = f"{best:.4f} {unit} on held-out text"
    if tested:
        told += f", {_loss(metrics['test_loss'])} on the test text"
    if task == "fill":
        right = [
            f"{name.removesuffix('_accuracy')} {n:.1%} right" for name, n in metrics.items() if "_accuracy" in name
        ]
        return f"{told} ({', '.join(right).replace('_', ' ')})"
    return told if task == "embed" else f"{told} ({_loss(metrics['bits_per_byte'])} bits per byte)"


def _loss(value: float | None) -> str:
    """With four digits; None is infinite."""
    return "inf" if value is None else f"{value:.4f}"


def overfitted(task: str, best_step: int, step: int) -> str:
    """Said when the best weights are not the last."""
    if task == "translate":
        return (
            f"Held-out pairs were translated best at step {best_step} of {step}, and their loss rose after it: the "
            "pairs are being learned by heart. The best weights are kept."
        )
    what, are = ("examples", "are") if task == "classify" else ("text", "is")
    return (
        f"The loss on held-out {what} was lowest at step {best_step} of {step} and rose after it: the {what} {are} "
        "being learned by heart. The best weights are kept."
    )


def next_words(task: str, run: Path, *, exportable: bool, further: bool = True, report: Path | None = None) -> str:
    """What to do with the run now; one that is counted cannot be trained further. `report`: its page, if it has one."""
    from weft.tasks.purpose import first_use

    more = f"  ·  weft resume {run} --minutes 5" if further else ""
    export = [f"weft export {run} DIR"] if exportable else []
    page = [] if report is None else [f"open {report}"]
    return "\n      ".join(filter(None, [f"Try:  {first_use(task, run)}{more}", "  ·  ".join([*export, *page])]))


def measured(task: str, metrics: dict[str, Any]) -> Iterator[str]:
    """What `weft evaluate` found, a line each; of classes, how each does and what it is taken for."""
    if task == "generate":
        yield (
            f"{_loss(metrics['loss'])} nats per token, {_loss(metrics['bits_per_byte'])} bits per byte, "
            f"{metrics['tokens']:,} tokens"
        )
        return
    if task == "fill":
        told = ", ".join(
            f"{name.removesuffix('_accuracy')} {value:.1%} right"
            for name, value in metrics.items()
            if name.endswith("_accuracy")
        )
        yield f"{metrics['loss']:.4f} nats, {told} ({metrics['measured_on']})"
        return
    if task == "embed":
        yield from _measured_vectors(metrics)
        return
    told = ", ".join(words.format(metrics[name]) for name, words in METRICS.items() if name in metrics)
    count = f"{metrics['examples']:,} examples" if "examples" in metrics else f"{metrics['pairs']:,} pairs"
    yield f"{told} on {count} ({metrics['measured_on']})"
    yield from class_table(metrics)
    yield from length_table(metrics)


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


def _measured_vectors(metrics: dict[str, Any]) -> Iterator[str]:
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


def class_table(metrics: dict[str, Any]) -> Iterator[str]:
    """Precision, recall and F1 of each class, and what it is most often mistaken for."""
    classes: dict[str, dict[str, float]] = metrics.get("classes", {})
    if not classes:
        return
    names = list(classes)
    width = max(5, *map(len, names))
    confusion = metrics.get("confusion")
    yield f"{'class':{width}}  precision  recall      F1  examples" + ("  mistaken for" if confusion else "")
    for place, (name, scores) in enumerate(classes.items()):
        wrong = ""
        if confusion:
            others = sorted(((n, names[i]) for i, n in enumerate(confusion[place]) if i != place and n), reverse=True)
            wrong = "  " + ", ".join(f"{other} {n}" for n, other in others[:3])
        line = f"{name:{width}}  {scores['precision']:9.3f}  {scores['recall']:6.3f}  {scores['f1']:6.3f}  "
        yield (line + f"{scores['examples']:8,}{wrong}").rstrip()
