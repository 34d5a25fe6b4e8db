"""What tables of labelled texts are like before anything learns from them, and what will spoil the result.

Every part is read as training reads it, so that all that training would refuse is reported here at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Literal

from weft.data.column_check import (
    Overlap,
    PartCheck,
    count_copied,
    find_leakage,
    first_few,
    known_examples,
    length_quantiles,
    number_quantiles,
    rare_warning,
)
from weft.data.columns import Columns, find_columns
from weft.data.examples import Examples, read_examples
from weft.data.labels import Labels
from weft.data.tables import Table
from weft.errors import DataError, did_you_mean
from weft.tasks.classify.tables import joined, open_tables
from weft.tasks.data_check import CheckRequest, DataCheck
from weft.tasks.findings import (
    MAX_LISTED,
    Facts,
    Findings,
    Row,
    as_sentence,
    balance_rows,
    count_rows,
    cut_rows,
    leakage_rows,
    length_rows,
    named_parts,
    number_rows,
)
from weft.tasks.sources import DEMO, are_images
from weft.tasks.token_lengths import count_tokens, cut_facts, cut_warning, one_in, sampled
from weft.tasks.vocabulary import encoder_tokenizer_fields
from weft.text import TokenizerConfig
from weft.text.special import CLASSIFY, MASK, PAD, SEPARATE

CUT_LENGTHS = (128, 256, 512)  # tokens at which texts may be cut
RECOMMENDED_EXAMPLES = 100  # examples
RECOMMENDED_EXAMPLES_PER_CLASS = 10  # examples of a class
WORD_COUNT_TITLES = {"half": "median", "longest": "longest"}


def check_labelled(asked: CheckRequest, labelled: bool | None = None) -> Findings:
    """Read tables, and others beside them, and count; one that cannot be read at all is a `DataError`.

    With `labelled` there must be a label, with False none is looked for; None: one is used if there is one.
    """
    TokenizerConfig.from_config(encoder_tokenizer_fields(asked.tokenizer, characters=0))  # refused before reading
    tables = _open(asked)
    first = tables["train"][0]
    chosen, no_label = _columns(first, asked.columns, labelled)
    examples, notes = _read(tables, chosen)
    labels, problems = _labels(examples, chosen.label)
    known = {name: known_examples(part, labels) for name, part in examples.items()}
    leakage = find_leakage(known)
    content = {name: PartCheck.of(part, known[name], labels) for name, part in examples.items()}
    texts = {name: [part.texts, *([part.pairs] if part.pairs else [])] for name, part in examples.items()}
    config = TokenizerConfig.from_config(encoder_tokenizer_fields(asked.tokenizer, examples["train"].characters))
    learned = chain.from_iterable(zip(*sampled(texts["train"]), strict=True))
    tokenizer = config.train(learned, special=(PAD, CLASSIFY, SEPARATE, MASK))
    parts: dict[str, Facts] = {}
    for name, counts in count_tokens(texts, tokenizer, asked.progress).items():
        lengths = 1 + (counts + 1).sum(0)  # [CLS] text [SEP], and with a partner [CLS] a [SEP] b [SEP]
        parts[name] = {
            **_part(tables[name], examples[name], labels),
            **asdict(content[name]),
            "tokens": length_quantiles(lengths),
            **cut_facts(lengths, CUT_LENGTHS),
            "leakage": {other: asdict(overlap) for other, overlap in leakage[name].items()},
        }
    used = (chosen.text, chosen.pair, chosen.label)
    facts: Facts = {
        "columns": asdict(chosen) | {"unused": [name for name in first.columns if name not in used]},
        "labels": {
            "kind": labels.kind if labels else None,
            "classes": list(labels.classes) if labels else [],
            "missing": no_label,
        },
        "tokenizer": {"kind": config.kind, "vocab_size": tokenizer.vocab_size, "one_in": one_in(texts["train"])},
    }
    return Findings(
        parts=parts,
        facts=facts,
        sentences=list(_sentences({name: part.name for name, part in examples.items()}, facts, labels)),
        counts=_counts(list(parts.values())),
        notes=notes,
        warnings=[
            *_warnings(examples, content, leakage, labels),
            *cut_warning(parts["train"], "the texts are longer than {} tokens"),
        ],
        problems=problems,
    )


# -- reading ----------------------------------------------------------------------------------


def _open(asked: CheckRequest) -> dict[str, list[Table]]:
    """The tables by part; the embedded one brings a test set of its own."""
    test = asked.test or (asked.train if list(asked.train) == [DEMO] else ())
    given: tuple[tuple[str, Sequence[str], Literal["train", "test"]], ...]
    given = (("train", asked.train, "train"), ("validation", asked.validation, "train"), ("test", test, "test"))
    return {name: open_tables(paths, part) for name, paths, part in given if paths}


def _columns(table: Table, named: Mapping[str, str], labelled: bool | None) -> tuple[Columns, str]:
    """The columns of the training table, and why none of them is a label if none is."""
    text, pair, label = (named.get(name) for name in ("text", "pair", "label"))
    if labelled is False:
        return find_columns(table, text, pair, labelled=False), "filling in needs none"
    try:
        return find_columns(table, text, pair, label), ""
    except DataError as error:
        if labelled or label is not None:
            raise
        return find_columns(table, text, pair, labelled=False), str(error).split("\n")[0]


def _read(tables: Mapping[str, Sequence[Table]], chosen: Columns) -> tuple[dict[str, Examples], list[str]]:
    """The examples of each part, and what was noticed on the way."""
    examples, notes = {}, []
    for name, several in tables.items():
        parts = []
        labelled = name == "train" or all(chosen.label in table.columns for table in several)
        columns = chosen if labelled else replace(chosen, label=None)
        for table in several:
            _check_columns(table, columns, tables["train"][0].name)
            parts.append(read_examples(table, columns))
            notes += [*table.notes, *parts[-1].notes]
        left_out = {what: sum(getattr(part, what) for part in parts) for what in ("without_text", "without_label")}
        examples[name] = replace(joined(parts), **left_out)
        if not labelled and chosen.label is not None:
            notes.append(f"{examples[name].name} has no column {chosen.label!r}: nothing can be measured on it")
    return examples, notes


def _check_columns(table: Table, columns: Columns, train: str) -> None:
    for name in (columns.text, columns.pair, columns.label):
        if name is not None and name not in table.columns:
            given = f"{table.name} has no column {name!r}, which {train} has"
            raise DataError(given, advice=did_you_mean(name, table.columns))


def _labels(examples: Mapping[str, Examples], name: str | None) -> tuple[Labels | None, list[str]]:
    """What the labels mean, and what training would refuse about them."""
    cells = examples["train"].labels
    if cells is None or name is None:
        return None, []
    try:
        labels = Labels.of(cells, name=name)
    except DataError as error:
        return None, [str(error)]
    problems = []
    for part in examples.values():
        try:
            labels.encode(part.labels or [], part.lines, part.name)
        except DataError as error:
            problems.append(str(error))
    return labels, problems


def _part(tables: Sequence[Table], examples: Examples, labels: Labels | None) -> Facts:
    """What was left out, and what the table has besides texts and classes."""
    return {
        "files": [table.name for table in tables],
        "rows": sum(len(table) + table.skipped for table in tables),
        "broken": sum(table.skipped for table in tables),
        "without_text": examples.without_text,
        "without_label": examples.without_label,
        "labelled": examples.labels is not None,
        "numbers": _numbers(labels, examples),
        "copied": count_copied(examples.texts, examples.pairs) if examples.pairs else 0,
    }


def _numbers(labels: Labels | None, examples: Examples) -> dict[str, float] | None:
    """Quantiles of labels that are numbers; what is none of them is a problem already."""
    if labels is None or labels.kind != "regression" or not examples.labels:
        return None
    try:
        return number_quantiles(labels.encode(examples.labels))
    except DataError:
        return None


# -- telling ----------------------------------------------------------------------------------


def _sentences(names: Mapping[str, str], facts: Facts, labels: Labels | None) -> Iterator[str]:
    """Which files and columns, what the labels are, and how tokens were made."""
    yield from named_parts(names)
    columns, tokenizer = facts["columns"], facts["tokenizer"]
    yield as_sentence(columns["reason"])
    unused = columns["unused"]
    if unused:
        more = f" and {len(unused) - MAX_LISTED} more" if len(unused) > MAX_LISTED else ""
        yield f"Not used: {', '.join(map(repr, unused[:MAX_LISTED]))}{more}."
    if columns["label"] is None:
        yield f"Labels: none ({facts['labels']['missing']}); only the texts are checked."
    else:
        yield _label_kind(labels, columns["label"])
    which = "all training texts" if tokenizer["one_in"] == 1 else f"one training text in {tokenizer['one_in']}"
    yield (
        f"Tokens: {tokenizer['kind']}, learned from {which}, {tokenizer['vocab_size']:,} in the vocabulary; "
        "[CLS] and [SEP] are counted."
    )


def _label_kind(labels: Labels | None, column: str) -> str:
    if labels is None:
        return f"Labels: those in {column!r} cannot be learned."
    if labels.kind == "regression":
        return "Labels: numbers."
    if labels.kind == "multilabel":
        how = "as JSON lists" if labels.separator == "[" else f"separated by {labels.separator!r}"
        return f"Labels: {len(labels.classes)} classes, several for a text, {how}."
    return f"Labels: {len(labels.classes)} classes, one for each text."


def _counts(parts: list[Facts]) -> list[Row]:
    left_out = {"broken": "broken, left out", "without_text": "without a text, left out"}
    left_out |= {"without_label": "without a label, left out"}
    rows = count_rows(parts, left_out, "rows", if_any=True)
    return [
        *count_rows(parts, {"rows": "rows"}),
        *rows,
        *(count_rows(parts, {"examples": "examples"}) if rows else []),
        *balance_rows(parts, "examples"),
        *number_rows(parts, "label"),
        *length_rows("words", [part["words"] for part in parts], WORD_COUNT_TITLES),
        *length_rows("tokens", [part["tokens"] for part in parts]),
        *cut_rows(parts, "examples"),
        *count_rows(parts, {"duplicates": "duplicates"}, "examples"),
        *(count_rows(parts, {"contradictions": "contradicting labels"}) if parts[0]["labelled"] else []),
        *count_rows(parts, {"copied": "both texts are the same"}, "examples", if_any=True),
        *leakage_rows(parts, "examples", {"examples": "also"}),
    ]


def _warnings(
    examples: Mapping[str, Examples],
    content: Mapping[str, PartCheck],
    leakage: Mapping[str, Mapping[str, Overlap]],
    labels: Labels | None,
) -> Iterator[str]:
    """What will probably spoil the result."""
    if labels is not None:
        yield from labels.warnings
        counts = {label: n for label, n in zip(labels.classes, labels.counts, strict=True) if n > 1}
        yield from rare_warning(
            counts, RECOMMENDED_EXAMPLES_PER_CLASS
        )  # a class with one example is among the warnings of the labels
    count = len(examples["train"])
    if count < RECOMMENDED_EXAMPLES:
        yield f"only {count} examples to learn from: some hundreds are a start, thousands are better"
    for name, part in examples.items():
        yield from content[name].warnings(part.name)
        for other, overlap in leakage[name].items():
            yield from overlap.warning(part.name, len(part), examples[other].name)
        if labels is not None and name != "train" and part.labels is not None:
            missing = [repr(label) for label in labels.classes if label not in content[name].balance]
            if missing:
                yield f"{part.name} has no example of {first_few(missing)}: how well it was learned stays unknown"


# -- the looks of this task -------------------------------------------------------------------


def _check_images(asked: CheckRequest) -> Findings:
    from weft.tasks.classify.image_check import check_images  # which needs torch

    return check_images(asked)


LABELLED = DataCheck(
    things="labelled texts",
    recognises=lambda *_: True,
    check=lambda asked: check_labelled(asked, labelled=True if asked.task else None),
    columns=("text", "pair", "label"),
    options=("test", "tokenizer"),
    turn=4,
)
IMAGES = DataCheck(
    things="images",
    recognises=lambda paths, _: are_images(paths),
    check=_check_images,
    columns=("text", "label"),
    instead="none: they are no text",
    turn=0,
)
DATA_CHECKS = (IMAGES, LABELLED)
