"""What pairs of texts are like before anything learns from them, and what will spoil the result.

Every part is read as training reads it, so that what training would refuse is reported here too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from weft.data.column_check import UNEVEN, Overlap, find_leakage, length_quantiles
from weft.data.parallel import Pairs
from weft.data.sides import are_two_sides, is_table_of_pairs
from weft.errors import DataError
from weft.tasks.data_check import CheckRequest, DataCheck
from weft.tasks.findings import (
    Facts,
    Findings,
    Row,
    as_sentence,
    count_rows,
    cut_rows,
    leakage_rows,
    length_rows,
    named_parts,
)
from weft.tasks.sources import DEMO, are_tables
from weft.tasks.token_lengths import count_tokens, cut_facts, cut_warning, one_in, sampled
from weft.tasks.translate.pair_data import MIN_PAIRS, PairConfig, known_pairs, open_parts, pair_facts, pair_warnings
from weft.tasks.vocabulary import pair_tokenizer_fields
from weft.text import TokenizerConfig

CUT_LENGTHS = (64, 128, 256)  # tokens at which texts may be cut
RECOMMENDED_PAIRS = 1000  # pairs
SIDES = ("source", "target")


def check_pairs(asked: CheckRequest) -> Findings:
    """Read pairs, and others beside them, and count; what cannot be read at all is a `DataError`."""
    TokenizerConfig.from_config(pair_tokenizer_fields(asked.tokenizer, characters=0))  # refused before reading
    train, validation, test = map(tuple, (asked.train, asked.validation, asked.test))
    source, target = asked.columns.get("source"), asked.columns.get("target")
    pairs, sides, why = open_parts(
        PairConfig(train=train, validation=validation, test=test, source=source, target=target)
    )
    paths = {"train": train, "validation": validation, "test": test or train}
    names = {name: [part.name] if list(paths[name]) == [DEMO] else list(paths[name]) for name, part in pairs.items()}
    known = {name: known_pairs(part) for name, part in pairs.items()}
    leakage = find_leakage(known)
    texts = {name: (part.sources, part.targets) for name, part in pairs.items()}
    fields = TokenizerConfig.from_config(pair_tokenizer_fields(asked.tokenizer, pairs["train"].characters))
    tokenizer = fields.train([text for column in sampled(texts["train"]) for text in column])
    parts: dict[str, Facts] = {}
    for name, counts in count_tokens(texts, tokenizer, asked.progress).items():
        parts[name] = {
            "files": names[name],
            **_part(pairs[name]),
            **pair_facts(pairs[name], known[name]),
            "tokens": {side: length_quantiles(lengths + 1) for side, lengths in zip(SIDES, counts, strict=True)},
            **cut_facts(counts.max(0) + 1, CUT_LENGTHS),
            "leakage": {
                other: {"sources": overlap.examples, "pairs": overlap.same_label}
                for other, overlap in leakage[name].items()
            },
        }
    facts: Facts = {
        "columns": {
            "source": sides.source if sides else None,
            "target": sides.target if sides else None,
            "reason": why,
        },
        "tokenizer": {"kind": tokenizer.kind, "vocab_size": tokenizer.vocab_size, "one_in": one_in(texts["train"])},
    }
    shown = {name: ", ".join(files) for name, files in names.items()}
    return Findings(
        parts=parts,
        facts=facts,
        sentences=list(_sentences(shown, facts)),
        counts=_counts(list(parts.values()), "rows" if sides else "lines"),
        notes=list(dict.fromkeys(note for part in pairs.values() for note in part.notes)),
        warnings=list(_warnings(shown, parts, leakage)),
        problems=list(_problems(pairs["train"], split=not asked.validation)),
    )


def _part(pairs: Pairs) -> Facts:
    """What was left out, and how many characters the two sides have."""
    lengths = [np.array([*map(len, texts)]) for texts in (pairs.sources, pairs.targets)]
    return {
        "rows": len(pairs) + pairs.without_text + pairs.broken,
        "broken": pairs.broken,
        "without_text": pairs.without_text,
        "characters": {side: length_quantiles(column) for side, column in zip(SIDES, lengths, strict=True)},
        "ratio": round(float(np.median(lengths[1] / lengths[0])), 3),  # target to source, in the pair in the middle
    }


# -- telling ----------------------------------------------------------------------------------


def _sentences(names: Mapping[str, str], facts: Facts) -> Iterator[str]:
    """Which files and columns, and how tokens were made."""
    yield from named_parts(names)
    yield as_sentence(facts["columns"]["reason"])
    tokenizer = facts["tokenizer"]
    which = "all training pairs" if tokenizer["one_in"] == 1 else f"one training pair in {tokenizer['one_in']}"
    yield (
        f"Tokens: {tokenizer['kind']}, learned from both sides of {which}, {tokenizer['vocab_size']:,} in the "
        "vocabulary; the end of a text is counted."
    )


def _counts(parts: list[Facts], rows: str) -> list[Row]:
    left_out = {"broken": "broken, left out", "without_text": "a side empty, left out"}
    doubtful = {
        "duplicates": "duplicates",
        "several_targets": "sources with several targets",
        "copied": "target is the source",
        "uneven": f"one side {UNEVEN} times as long",
    }
    return [
        *count_rows(parts, {"rows": rows}),
        *count_rows(parts, left_out, "rows", if_any=True),
        *count_rows(parts, {"pairs": "pairs"}),
        *(
            row
            for unit in ("characters", "tokens")
            for side in SIDES
            for row in length_rows(f"{side} {unit}", [part[unit][side] for part in parts])
        ),
        ("target/source characters", [f"{part['ratio']:.2f}" for part in parts]),
        *cut_rows(parts, "pairs"),
        *count_rows(parts, doubtful, "pairs"),
        *leakage_rows(parts, "pairs", {"sources": "sources also", "pairs": "pairs also"}),
    ]


def _warnings(
    names: Mapping[str, str], parts: Mapping[str, Facts], leakage: Mapping[str, Mapping[str, Overlap]]
) -> Iterator[str]:
    """What will probably spoil the result."""
    train = parts["train"]
    if train["pairs"] < RECOMMENDED_PAIRS:
        yield f"only {train['pairs']:,} pairs to learn from: some thousands are a start, a million is better"
    for name, part in parts.items():
        yield from pair_warnings(part, names[name])
        for other, overlap in leakage[name].items():
            yield from overlap.warning(f"the sources in {names[name]}", part["pairs"], names[other], "target")
    yield from cut_warning(train, "the pairs have more than {} tokens on a side")


def _problems(train: Pairs, *, split: bool) -> Iterator[str]:
    if len(train) < MIN_PAIRS:
        yield str(DataError(f"{len(train)} pairs in {train.name}", expected=f"at least {MIN_PAIRS} to learn from"))
    elif split and len(set(train.keys())) < 2:
        yield str(DataError(f"all sources in {train.name} are the same", expected="different ones"))


def are_pairs(paths: Sequence[str], columns: Collection[str]) -> bool:
    """Tables with two columns of free text and no label, two files such as train.en and train.de, and any for which
    `columns` name the two sides."""
    if columns:
        return not {"text", "pair", "label"} & set(columns)
    return is_table_of_pairs(paths[0]) if are_tables(paths) else are_two_sides(paths)


DATA_CHECKS = (
    DataCheck("pairs to translate", are_pairs, check_pairs, PairConfig.columns, ("test", "tokenizer"), turn=3),
)
