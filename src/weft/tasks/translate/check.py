"""What pairs of texts are like before anything learns from them, and what will spoil the result.

Every part is read as training reads it, so that what training would refuse is told here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.pair_check import KnownPairs, PairFacts, PairOverlap
from weft.data.parallel import Pairs
from weft.data.table_check import length_quantiles
from weft.errors import DataError
from weft.tasks.sources import DEMO
from weft.tasks.token_lengths import BATCH, Progress
from weft.tasks.translate.pair_data import LEAST, PairConfig, open_parts
from weft.tasks.vocabulary import pair_tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig

LENGTHS = (64, 128, 256)  # tokens at which texts may be cut
SAMPLE = 20_000_000  # characters that are looked at; of more, pairs from everywhere
LITTLE = 1000  # pairs
MUCH_CUT = 0.05
SIDES = ("source", "target")
Lengths = dict[str, NDArray[np.int64]]  # by side


@dataclass
class PairPart:
    """What was found in one part; `characters` and `tokens` are quantiles of the length, by side."""

    files: list[str]
    rows: int
    broken: int  # rows that could not be read
    without_text: int  # left out, because a side is empty
    facts: PairFacts
    characters: dict[str, dict[str, int]]
    ratio: float  # characters of the target for each of the source, in the pair in the middle
    tokens: dict[str, dict[str, int]] = field(default_factory=dict)
    cut: dict[int, int] = field(default_factory=dict)  # how many pairs have a side longer than so many tokens
    counted: int = 0  # pairs whose tokens were counted
    leakage: dict[str, PairOverlap] = field(default_factory=dict)  # how much of it stands in the parts before it

    @property
    def name(self) -> str:
        return ", ".join(self.files)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = asdict(self)
        found |= found.pop("facts")
        return found | {"cut": {str(length): count for length, count in self.cut.items()}}


@dataclass
class PairCheck:
    """The findings; parts are `train`, `validation` and `test`, as far as they are there."""

    source: str | None  # columns; None for files without any
    target: str | None
    reason: str
    tokenizer: str
    vocab_size: int
    one_in: int  # tokens were learned from one training pair in so many
    parts: dict[str, PairPart]
    notes: list[str]
    warnings: list[str]
    problems: list[str]  # what training would refuse

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "columns": {"source": self.source, "target": self.target, "reason": self.reason},
            "tokenizer": {"kind": self.tokenizer, "vocab_size": self.vocab_size, "one_in": self.one_in},
            **dict.fromkeys(("validation", "test")),
            **{name: part.to_dict() for name, part in self.parts.items()},
            "notes": self.notes,
            "warnings": self.warnings,
            "problems": self.problems,
        }


def check_pairs(
    train: Sequence[str],
    validation: Sequence[str] = (),
    test: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    tokenizer: str | None = None,
    progress: Progress | None = None,
) -> PairCheck:
    """Read pairs, and others beside them, and count; what cannot be read at all is a `DataError`.

    `columns` are those that the user named: `source`, `target`.
    """
    TokenizerConfig.from_config(pair_tokenizer_fields(tokenizer, characters=0))  # refused before anything is read
    named = columns or {}
    config = PairConfig(
        train=tuple(train),
        validation=tuple(validation),
        test=tuple(test),
        source=named.get("source"),
        target=named.get("target"),
    )
    pairs, sides, why = open_parts(config)
    known = {name: KnownPairs(part) for name, part in pairs.items()}
    paths = {"train": config.train, "validation": config.validation, "test": config.test or config.train}
    parts = {name: _part(paths[name], known[name]) for name in pairs}
    for name, others in (("validation", ["train"]), ("test", ["train", "validation"])):
        if name in parts:
            parts[name].leakage = {other: known[name].known_in(known[other]) for other in others if other in parts}
    cutter, one_in = _learned(tokenizer, pairs["train"])
    for name, lengths in _token_lengths(pairs, cutter, progress).items():
        longer = np.maximum(lengths["source"], lengths["target"])
        parts[name].tokens = {side: length_quantiles(lengths[side]) for side in SIDES}
        parts[name].counted = len(longer)
        parts[name].cut = {length: int((longer > length).sum()) for length in LENGTHS}
    return PairCheck(
        source=None if sides is None else sides.source,
        target=None if sides is None else sides.target,
        reason=why,
        tokenizer=cutter.kind,
        vocab_size=cutter.vocab_size,
        one_in=one_in,
        parts=parts,
        notes=list(dict.fromkeys(note for part in pairs.values() for note in part.notes)),
        warnings=list(_warnings(parts)),
        problems=list(_problems(pairs["train"], split=not validation)),
    )


def _part(paths: Sequence[str], known: KnownPairs) -> PairPart:
    pairs = known.pairs
    lengths = {"source": [*map(len, pairs.sources)], "target": [*map(len, pairs.targets)]}
    ratio = np.median(np.array(lengths["target"]) / np.array(lengths["source"]))
    return PairPart(
        files=[pairs.name] if list(paths) == [DEMO] else list(paths),
        rows=len(pairs) + pairs.without_text + pairs.broken,
        broken=pairs.broken,
        without_text=pairs.without_text,
        facts=known.facts(),
        characters={side: length_quantiles(lengths[side]) for side in SIDES},
        ratio=round(float(ratio), 3),
    )


# -- tokens -----------------------------------------------------------------------------------


def _one_in(pairs: Pairs) -> int:
    """Of very many pairs, one in so many is looked at."""
    return max(-(-pairs.characters // SAMPLE), 1)


def _learned(kind: str | None, train: Pairs) -> tuple[Tokenizer, int]:
    """A tokenizer made from both sides of the training pairs, and from one in how many of them."""
    one_in = _one_in(train)
    config = TokenizerConfig.from_config(pair_tokenizer_fields(kind, train.characters))
    return config.train([*train.sources[::one_in], *train.targets[::one_in]]), one_in


def _token_lengths(
    parts: Mapping[str, Pairs], tokenizer: Tokenizer, progress: Progress | None = None
) -> dict[str, Lengths]:
    """Tokens of each text, with the one that ends it."""
    texts = {
        (name, side): (pairs.sources if side == "source" else pairs.targets)[:: _one_in(pairs)]
        for name, pairs in parts.items()
        for side in SIDES
    }
    total, done = sum(map(len, texts.values())), 0
    found: dict[str, Lengths] = {name: {} for name in parts}
    for (name, side), given in texts.items():
        lengths = np.zeros(len(given), dtype=np.int64)
        for start in range(0, len(given), BATCH):
            batch = given[start : start + BATCH]
            lengths[start : start + BATCH] = [len(ids) + 1 for ids in tokenizer.encode_batch(batch)]
            done += len(batch)
            if progress is not None:
                progress(done, total)
        found[name][side] = lengths
    return found


# -- doubts -----------------------------------------------------------------------------------


def _warnings(parts: Mapping[str, PairPart]) -> Iterator[str]:
    """What will probably spoil the result."""
    train = parts["train"]
    if train.facts.pairs < LITTLE:
        yield f"only {train.facts.pairs:,} pairs to learn from: some thousands are a start, a million is better"
    for part in parts.values():
        yield from part.facts.warnings(part.name)
        for other, overlap in part.leakage.items():
            yield from overlap.warning(part.name, part.facts.pairs, parts[other].name)
    longest = LENGTHS[-1]
    if train.cut[longest] > MUCH_CUT * train.counted:
        share = train.cut[longest] / train.counted
        yield f"{share:.0%} of the pairs have more than {longest} tokens on a side: what stands beyond may not be read"


def _problems(train: Pairs, *, split: bool) -> Iterator[str]:
    if len(train) < LEAST:
        yield str(DataError(f"{len(train)} pairs in {train.name}", expected=f"at least {LEAST} to learn from"))
    elif split and len(set(train.keys())) < 2:
        yield str(DataError(f"all sources in {train.name} are the same", expected="different ones"))
