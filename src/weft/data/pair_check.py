"""What a set of text pairs is like, and whether the part to judge by was already seen in the part to learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from weft.data.parallel import Pairs
from weft.data.table_check import LEAK

COPIED = 0.1  # a share of targets that are their source
UNEVEN = 9  # times as many characters on one side: probably they do not belong together
MUCH_UNEVEN = 0.01


@dataclass(frozen=True)
class PairFacts:
    """Numbers of pairs; texts count as the same if they differ in nothing but case and spaces."""

    pairs: int
    duplicates: int  # beyond the first with the same source and target
    several_targets: int  # different sources that stand there with several targets
    copied: int  # pairs whose target is the source, letter by letter
    uneven: int  # pairs with one side more than UNEVEN times as long as the other

    def warnings(self, name: str) -> Iterator[str]:
        """What is doubtful in one part by itself."""
        if self.duplicates > LEAK * self.pairs:
            yield f"{self.duplicates:,} of {self.pairs:,} pairs in {name} stand there before"
        if self.copied > COPIED * self.pairs:
            yield (
                f"source and target are the same in {self.copied:,} of {self.pairs:,} pairs in {name}: "
                "a model will learn to copy"
            )
        if self.uneven > MUCH_UNEVEN * self.pairs:
            yield (
                f"one side is more than {UNEVEN} times as long as the other in {self.uneven:,} of {self.pairs:,} "
                f"pairs in {name}: do they belong together?"
            )


@dataclass(frozen=True)
class PairOverlap:
    """How many pairs of a part have a source that stands in another part, and how many stand there whole."""

    sources: int
    pairs: int

    def warning(self, name: str, count: int, other: str) -> list[str]:
        """A sentence if these are too many of the `count` pairs in `name`, else none."""
        if self.sources <= LEAK * count:
            return []
        return [
            f"{self.sources:,} of {count:,} sources in {name} also stand in {other} ({self.pairs:,} with the same "
            "target): results on it look better than they are"
        ]


class KnownPairs:
    """The pairs of one part as hashes."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self._sources, self._pairs = pairs.keys(), pairs.pair_keys()
        self._known_sources, self._known_pairs = set(self._sources), set(self._pairs)

    def facts(self) -> PairFacts:
        """Duplicates, copies and what is uneven."""
        pairs = self.pairs
        targets = Counter(dict(zip(self._pairs, self._sources, strict=True)).values())  # of each source
        lengths = [(len(one), len(two)) for one, two in zip(pairs.sources, pairs.targets, strict=True)]
        return PairFacts(
            pairs=len(pairs),
            duplicates=len(pairs) - len(self._known_pairs),
            several_targets=sum(count > 1 for count in targets.values()),
            copied=sum(one.split() == two.split() for one, two in zip(pairs.sources, pairs.targets, strict=True)),
            uneven=sum(max(both) > UNEVEN * min(both) for both in lengths),
        )

    def known_in(self, other: KnownPairs) -> PairOverlap:
        """How much of this part stands in the other one."""
        return PairOverlap(
            sum(key in other._known_sources for key in self._sources),
            sum(key in other._known_pairs for key in self._pairs),
        )
