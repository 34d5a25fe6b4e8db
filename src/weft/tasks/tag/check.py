"""What tagged sentences are like before anything learns from them, and what will spoil the result.

Small functions over words and tags; `check_tagged` puts them together for the parts that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from weft.data.table_check import KnownTexts, Overlap, length_quantiles
from weft.tasks.data_check import Counts, DataCheck, Parts
from weft.tasks.tag.files import TagConfig, open_parts
from weft.tasks.tag.schemes import SCHEMES
from weft.tasks.tag.sentences import TaggedSentences, are_tagged

RARE = 5  # entities of a type: fewer cannot be learned or measured
FEW_SENTENCES = 100
MANY_ILL_FORMED = 0.01  # of the entities, or words: worth a warning
MANY_UNKNOWN = 0.3  # of the words: names that the training part does not have are usual, so many are not
LISTED = 12  # types that have a row of their own
LONG = 200  # words of a sentence: perhaps the blank lines between sentences are missing


@dataclass
class TaggedPart:
    """What was found in one part.

    kinds           entities of each type, or words of each plain tag
    words           quantiles of the words in a sentence
    duplicates      sentences that stand there before with the same tags; `contradictions`: with other tags
    unknown_words   share of the words that the training part does not have; None for the training part itself
    new_tags        tags that the training part does not have, and how often they occur
    leakage         how many sentences also stand in the parts before it
    """

    name: str
    scheme: str
    columns: tuple[str, str]
    sentences: int
    word_count: int
    entities: int
    kinds: dict[str, int]
    words: dict[str, int]
    longest_line: int
    ill_formed: int
    left_out: int
    duplicates: int
    contradictions: int
    unknown_words: float | None = None
    new_tags: dict[str, int] = field(default_factory=dict)
    leakage: dict[str, Overlap] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass
class TaggedCheck:
    """The findings on `train`, `validation` and `test`, as far as they are there."""

    parts: dict[str, TaggedPart]
    labels: tuple[str, ...]
    notes: list[str]
    warnings: list[str]
    problems: list[str]  # what training refuses

    @property
    def part_names(self) -> list[str]:
        return list(self.parts)

    def sentences(self) -> Iterator[str]:
        """Which files and columns, and what the tags are."""
        for name, part in self.parts.items():
            yield f"{name.capitalize()}: {part.name}"
        train = self.parts["train"]
        if all(train.columns):
            yield f"Words from {train.columns[0]}, tags from {train.columns[1]}."
        yield f"Tags: {train.scheme}."

    def counts(self) -> Counts:
        """Titles, and a cell for each part."""
        parts = list(self.parts.values())
        rows: Counts = [
            ("sentences", [f"{part.sentences:,}" for part in parts]),
            ("words", [f"{part.word_count:,}" for part in parts]),
            ("words of a sentence, half", [f"{part.words['half']:,}" for part in parts]),
            ("words of a sentence, longest", [f"{part.words['longest']:,}" for part in parts]),
        ]
        if any(part.entities for part in parts):
            rows.append(("entities", [f"{part.entities:,}" for part in parts]))
        for kind in list(parts[0].kinds)[:LISTED]:
            rows.append((f"  {kind}", [f"{part.kinds.get(kind, 0):,}" for part in parts]))
        for title, name in (
            ("ill-formed tags", "ill_formed"),
            ("cannot be read, left out", "left_out"),
            ("duplicates", "duplicates"),
            ("the same words, other tags", "contradictions"),
        ):
            if any(getattr(part, name) for part in parts):
                rows.append((title, [f"{getattr(part, name):,}" for part in parts]))
        unknown = ["" if part.unknown_words is None else f"{part.unknown_words:.1%}" for part in parts]
        if any(unknown):
            rows.append(("words that train does not have", unknown))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "labels": list(self.labels),
            **dict.fromkeys(("train", "validation", "test")),
            **{name: part.to_dict() for name, part in self.parts.items()},
            "notes": self.notes,
            "warnings": self.warnings,
            "problems": self.problems,
        }


def unknown_word_share(sentences: TaggedSentences, train: TaggedSentences) -> float:
    """The share of words, as they are written, that the training part does not have."""
    known = {word for words in train.words for word in words}
    return sum(word not in known for words in sentences.words for word in words) / max(sentences.word_count, 1)


def rare_kinds(sentences: TaggedSentences, fewer_than: int = RARE) -> dict[str, int]:
    """Types of entities (or plain tags) that occur less often than this."""
    return {kind: count for kind, count in sentences.kinds().items() if count < fewer_than}


def check_part(sentences: TaggedSentences) -> TaggedPart:
    """One part by itself."""
    found = KnownTexts(sentences.as_examples()).check()
    kinds, lengths = sentences.kinds(), [len(words) for words in sentences.words]
    return TaggedPart(
        name=sentences.name,
        scheme=SCHEMES[sentences.scheme],
        columns=sentences.columns,
        sentences=len(sentences),
        word_count=sum(lengths),
        entities=0 if sentences.plain else kinds.total(),
        kinds=dict(kinds),
        words=length_quantiles(lengths),
        longest_line=sentences.lines[lengths.index(max(lengths))],
        ill_formed=sentences.ill_formed,
        left_out=sentences.left_out,
        duplicates=found.duplicates,
        contradictions=found.contradictions,
    )


def check_tagged(parts: Mapping[str, TaggedSentences]) -> TaggedCheck:
    """All parts, by their names: `train`, and perhaps `validation` and `test`."""
    train = parts["train"]
    found = {name: check_part(sentences) for name, sentences in parts.items()}
    known = {name: KnownTexts(sentences.as_examples()) for name, sentences in parts.items()}
    for place, (name, part) in enumerate(found.items()):
        if name != "train":
            part.unknown_words = unknown_word_share(parts[name], train)
            part.new_tags = dict(parts[name].unknown_tags(train.labels()))
        part.leakage = {other: known[name].known_in(known[other]) for other in list(parts)[:place]}
    return TaggedCheck(
        parts=found,
        labels=train.labels(),
        notes=[note for sentences in parts.values() for note in sentences.notes],
        warnings=[line for name, part in found.items() for line in _warnings(name, part, parts[name])],
        problems=list(_problems(parts)),
    )


def _problems(parts: Mapping[str, TaggedSentences]) -> Iterator[str]:
    train = parts["train"]
    if train.scheme == "none":
        yield f"{train.name} marks no entity: every word has the tag O"
    for sentences in parts.values():
        if "none" not in (sentences.scheme, train.scheme) and sentences.plain != train.plain:
            kinds = ["plain tags" if part.plain else "entities" for part in (sentences, train)]
            yield f"{sentences.name} has {kinds[0]}, {train.name} has {kinds[1]}"


def _warnings(name: str, part: TaggedPart, sentences: TaggedSentences) -> Iterator[str]:
    if name == "train" and part.sentences < FEW_SENTENCES:
        yield f"{part.name} has {part.sentences} sentence{'s' if part.sentences > 1 else ''}: little to learn from"
    if part.ill_formed > MANY_ILL_FORMED * max(part.entities, 1):
        yield f"{part.ill_formed} tags of {part.name} are ill-formed: they do not follow {part.scheme}"
    rare = rare_kinds(sentences)
    if rare:
        shown = ", ".join(f"{kind} ({count})" for kind, count in list(rare.items())[:5])
        yield f"{part.name} has fewer than {RARE} examples of {shown}{', …' if len(rare) > 5 else ''}"
    if part.words["longest"] > LONG:
        yield (
            f"the sentence at line {part.longest_line} of {part.name} has {part.words['longest']} words: "
            "is a blank line missing after each sentence?"
        )
    if part.contradictions:
        word = "sentence stands" if part.contradictions == 1 else "sentences stand"
        yield f"{part.contradictions} {word} in {part.name} with different tags"
    for other, overlap in part.leakage.items():
        yield from overlap.warning(name, part.sentences, other)
    if part.unknown_words is not None and part.unknown_words > MANY_UNKNOWN:
        yield f"{part.unknown_words:.0%} of the words of {name} do not occur in train"
    if part.new_tags:
        shown = ", ".join(sorted(part.new_tags)[:5])
        yield f"{sum(part.new_tags.values())} words of {name} have tags that train does not have: {shown}"


def check_files(parts: Parts, columns: Mapping[str, str]) -> TaggedCheck:
    """Read all files as training reads them, and count."""
    train, validation, test = map(tuple, parts)
    text, label = columns.get("text"), columns.get("label")
    return check_tagged(open_parts(TagConfig(train=train, validation=validation, test=test, text=text, label=label)))


DATA_CHECK = DataCheck("tagged sentences", TagConfig.columns, are_tagged, check_files)
