"""What tagged sentences are like before anything learns from them, and what will spoil the result.

Small functions over words and tags; `check_tagged` puts them together for the parts that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from weft.data.column_check import (
    KnownTexts,
    Overlap,
    contradiction_warning,
    find_leakage,
    first_few,
    known_examples,
    length_quantiles,
    rare_labels,
)
from weft.tasks.data_check import CheckRequest, DataCheck
from weft.tasks.findings import MAX_LISTED, Facts, Findings, Row, count_rows, leakage_rows, length_rows, named_parts
from weft.tasks.tag.files import TagConfig, open_parts
from weft.tasks.tag.schemes import SCHEMES
from weft.tasks.tag.sentences import TaggedSentences, are_tagged

MIN_ENTITIES_PER_TYPE = 5  # entities of a type: fewer cannot be learned or measured
RECOMMENDED_SENTENCES = 100
MAX_ILL_FORMED_SHARE = 0.01  # of the entities, or words: worth a warning
MAX_UNKNOWN_SHARE = 0.3  # of the words: names that the training part does not have are usual, so many are not
MAX_SENTENCE_WORDS = 200  # words of a sentence: perhaps the blank lines between sentences are missing


def unknown_word_share(sentences: TaggedSentences, train: TaggedSentences) -> float:
    """The share of words, as they are written, that the training part does not have."""
    known = {word for words in train.words for word in words}
    return sum(word not in known for words in sentences.words for word in words) / max(sentences.word_count, 1)


def check_part(sentences: TaggedSentences, known: KnownTexts) -> Facts:
    """One part by itself."""
    kinds, lengths = sentences.kinds(), [len(words) for words in sentences.words]
    return {
        "name": sentences.name,
        "scheme": SCHEMES[sentences.scheme],
        "columns": sentences.columns,
        "sentences": len(sentences),
        "word_count": sum(lengths),
        "entities": 0 if sentences.plain else kinds.total(),
        "kinds": dict(kinds),  # entities of each type, or words of each plain tag
        "words": length_quantiles(lengths),
        "longest_line": sentences.lines[lengths.index(max(lengths))],
        "ill_formed": sentences.ill_formed,
        "left_out": sentences.left_out,
        "duplicates": known.duplicates,  # with the same tags
        "contradictions": known.contradictions,
    }


def check_tagged(sentences: Mapping[str, TaggedSentences]) -> Findings:
    """All parts, by their names: `train`, and perhaps `validation` and `test`."""
    train = sentences["train"]
    known = {name: known_examples(part.as_examples()) for name, part in sentences.items()}
    leakage = find_leakage(known)
    parts: dict[str, Facts] = {}
    for name, part in sentences.items():
        is_train = name == "train"
        parts[name] = check_part(part, known[name]) | {
            "unknown_words": None if is_train else unknown_word_share(part, train),
            "new_tags": {} if is_train else dict(part.unknown_tags(train.labels())),
            "leakage": {other: asdict(overlap) for other, overlap in leakage[name].items()},
        }
    return Findings(
        parts=parts,
        facts={"labels": list(train.labels())},
        sentences=list(_sentences(parts)),
        counts=list(_counts(list(parts.values()))),
        notes=[note for part in sentences.values() for note in part.notes],
        warnings=[line for name, part in parts.items() for line in _warnings(name, part, leakage[name])],
        problems=list(_problems(sentences)),
    )


# -- telling ----------------------------------------------------------------------------------


def _sentences(parts: Mapping[str, Facts]) -> Iterator[str]:
    """Which files and columns, and what the tags are."""
    yield from named_parts({name: part["name"] for name, part in parts.items()})
    words, tags = parts["train"]["columns"]
    if words and tags:
        yield f"Words from {words}, tags from {tags}."
    yield f"Tags: {parts['train']['scheme']}."


def _counts(parts: list[Facts]) -> Iterator[Row]:
    yield from count_rows(parts, {"sentences": "sentences", "word_count": "words"})
    yield from length_rows(
        "words of a sentence", [part["words"] for part in parts], {"half": "median", "longest": "longest"}
    )
    yield from count_rows(parts, {"entities": "entities"}, if_any=True)
    for kind in list(parts[0]["kinds"])[:MAX_LISTED]:
        yield f"  {kind}", [f"{part['kinds'].get(kind, 0):,}" for part in parts]
    doubtful = {
        "ill_formed": "ill-formed tags",
        "left_out": "cannot be read, left out",
        "duplicates": "duplicates",
        "contradictions": "the same words, other tags",
    }
    yield from count_rows(parts, doubtful, if_any=True)
    if len(parts) > 1:
        shares = [part["unknown_words"] for part in parts]
        yield "words that train does not have", ["" if one is None else f"{one:.1%}" for one in shares]
    yield from leakage_rows(parts, "sentences", {"examples": "also"})


def _problems(parts: Mapping[str, TaggedSentences]) -> Iterator[str]:
    train = parts["train"]
    if train.scheme == "none":
        yield f"{train.name} marks no entity: every word has the tag O"
    for sentences in parts.values():
        if "none" not in (sentences.scheme, train.scheme) and sentences.plain != train.plain:
            kinds = ["plain tags" if part.plain else "entities" for part in (sentences, train)]
            yield f"{sentences.name} has {kinds[0]}, {train.name} has {kinds[1]}"


def _warnings(name: str, part: Facts, leakage: Mapping[str, Overlap]) -> Iterator[str]:
    file, count = part["name"], part["sentences"]
    if name == "train" and count < RECOMMENDED_SENTENCES:
        yield f"{file} has {count} sentence{'s' if count > 1 else ''}: little to learn from"
    if part["ill_formed"] > MAX_ILL_FORMED_SHARE * max(part["entities"], 1):
        yield f"{part['ill_formed']} tags of {file} are ill-formed: they do not follow {part['scheme']}"
    rare = rare_labels(part["kinds"], MIN_ENTITIES_PER_TYPE)
    if rare:
        kinds = first_few(f"{kind} ({n})" for kind, n in rare.items())
        yield f"{file} has fewer than {MIN_ENTITIES_PER_TYPE} examples of {kinds}"
    longest = part["words"]["longest"]
    if longest > MAX_SENTENCE_WORDS:
        yield (
            f"the sentence at line {part['longest_line']} of {file} has {longest} words: "
            "is a blank line missing after each sentence?"
        )
    yield from contradiction_warning(part["contradictions"], file, "sentence", "different tags")
    for other, overlap in leakage.items():
        yield from overlap.warning(name, count, other)
    if part["unknown_words"] is not None and part["unknown_words"] > MAX_UNKNOWN_SHARE:
        yield f"{part['unknown_words']:.0%} of the words of {name} do not occur in train"
    if part["new_tags"]:
        shown = first_few(sorted(part["new_tags"]))
        yield f"{sum(part['new_tags'].values())} words of {name} have tags that train does not have: {shown}"


def check_files(asked: CheckRequest) -> Findings:
    """Read all files as training reads them, and count."""
    train, validation, test = map(tuple, (asked.train, asked.validation, asked.test))
    text, label = asked.columns.get("text"), asked.columns.get("label")
    return check_tagged(open_parts(TagConfig(train=train, validation=validation, test=test, text=text, label=label)))


DATA_CHECKS = (
    DataCheck(
        "tagged sentences", are_tagged, check_files, TagConfig.columns, instead="none: words are counted", turn=1
    ),
)
