"""The texts that a model learns to fill in from: files or tables as sentences of tokens, and labelled pairs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.data import Labels, Sentences, find_columns, read_examples, read_table, stratified_split, tokenise_sentences
from weft.data.labelled_pairs import LabelledPairs
from weft.errors import ConfigError, DataError
from weft.objectives import ObjectiveConfig
from weft.tasks.recording import Report
from weft.tasks.settings import RunConfig
from weft.tasks.sources import DataConfig, Source, are_tables, read_source
from weft.text import Corpus, Tokenizer

VALIDATION_SHARE_OF_PAIRS = 0.1


class FillDataConfig(DataConfig):
    """Texts, or tables whose column `text` is read; `pairs` is a table of labelled pairs, for entailment."""

    columns: ClassVar[tuple[str, ...]] = ("text", "pairs")

    text: str | None = None
    pairs: str | None = None


class FillConfig(RunConfig):
    """All settings of a run that learns to fill in."""

    data: FillDataConfig
    objective: ObjectiveConfig = ObjectiveConfig()


# -- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FillTexts:
    """Texts as sentences of tokens, and labelled pairs if there are any: for training and for evaluation."""

    source: Source
    tokenizer: Tokenizer
    parts: dict[str, Sentences]
    pairs: dict[str, LabelledPairs]


def read_fill_source(config: FillDataConfig) -> Source:
    """The texts; rows of a table are documents of their own."""
    source = read_source(config, lambda paths: _corpus(paths, config.text))
    if config.pairs is None:
        return source
    found = source.config.override({"fingerprint": f"{source.config.fingerprint}|{_fingerprint(config.pairs)}"})
    return Source(source.train, source.validation, found, source.test)


def _fingerprint(path: str) -> str:
    """Of all rows of a table."""
    digest = hashlib.sha256()
    for row in read_table(path).rows():
        digest.update("\x1f".join(row.cells).encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()[:16]


def _corpus(paths: tuple[str, ...], column: str | None) -> Corpus | None:
    """Tables as a text with blank lines between its documents; None: these are no tables."""
    if not are_tables(paths):
        if column is not None:
            raise ConfigError(f"--text {column} for {', '.join(paths)}", expected="a table, which has columns")
        return None
    texts: list[str] = []
    for path in paths:
        table = read_table(path)
        name = column or find_columns(table, labelled=False).text
        texts += ["\n".join(line for line in cell.splitlines() if line.strip()) for cell in table.column(name)]
    return Corpus.of_text("\n\n".join(text for text in texts if text.strip()) + "\n", name=", ".join(paths))


def read_texts(source: Source, config: FillDataConfig, tokenizer: Tokenizer, report: Report) -> FillTexts:
    """All texts as tokens."""
    corpora = {"train": source.train, "validation": source.validation}
    corpora |= {"test": source.test} if source.test is not None else {}
    total = sum(corpus.characters for corpus in corpora.values())
    report({"event": "phase", "name": "tokenising", "total": total})
    before, parts = 0, {}
    for name, corpus in corpora.items():

        def progress(done: int, _: int, before: int = before) -> None:
            report({"event": "progress", "phase": "tokenising", "done": before + done, "total": total})

        parts[name] = tokenise_sentences(corpus, tokenizer, progress=progress)
        before += corpus.characters
    pairs = {} if config.pairs is None else _pairs(config.pairs, tokenizer, tuple(parts))
    return FillTexts(source, tokenizer, parts, pairs)


def _pairs(path: str, tokenizer: Tokenizer, names: tuple[str, ...]) -> dict[str, LabelledPairs]:
    """Labelled pairs from a table: a tenth for validation, and another tenth for the test if there is one."""
    table = read_table(path)
    examples = read_examples(table, find_columns(table))
    assert examples.labels is not None
    if examples.pairs is None:
        raise DataError(f"{path} has no pairs of texts", expected="two columns of text and one of labels")
    labels = Labels.of(examples.labels, "single", name=table.name)
    values = labels.encode(examples.labels, examples.lines, examples.name)
    keys, both = examples.keys(), list(zip(examples.texts, examples.pairs, strict=True))
    learn = np.arange(len(both))
    places = {}
    for seed, name in enumerate(names[1:]):
        remaining, chosen = stratified_split(
            values[learn], VALIDATION_SHARE_OF_PAIRS, seed=seed, groups=[keys[n] for n in learn]
        )
        places[name], learn = learn[chosen], learn[remaining]
    return {
        name: LabelledPairs.of([both[place] for place in part], values[part], labels.classes, tokenizer)
        for name, part in {"train": learn, **places}.items()
    }
