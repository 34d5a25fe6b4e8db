"""Tagged sentences as the data of a run: read, split, and recorded so that a resume can check them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from weft.errors import ConfigError, DataError
from weft.tasks.data_facts import count_classes, quarters
from weft.tasks.sources import DEMO
from weft.tasks.tag.check import check_tagged
from weft.tasks.tag.files import TagConfig, open_parts
from weft.tasks.tag.sentences import TaggedSentences, split_sentences

MIN_SENTENCES = 4  # sentences


@dataclass(frozen=True)
class TagData:
    """The tagged sentences of a run, split; `labels` are what a model chooses between."""

    config: TagConfig
    labels: tuple[str, ...]
    plain: bool
    train: TaggedSentences
    validation: TaggedSentences
    test: TaggedSentences | None
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """In numbers, for a report."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        there = {name: part for name, part in parts.items() if part is not None}
        return {
            "parts": {name: {"sentences": len(part), "words": part.word_count} for name, part in there.items()},
            "classes": count_classes({name: part.kinds() for name, part in there.items()}, sorted(self.train.kinds())),
            "lengths": {"words of a sentence": quarters(map(len, self.train.words))},
        }


def read_tag_data(config: TagConfig) -> TagData:
    """Read the sentences and split off the validation part; what cannot be learned is refused."""
    parts = open_parts(config)
    everything, test = parts["train"], parts.get("test")
    if len(everything) < MIN_SENTENCES:
        given = f"{len(everything)} sentences in {everything.name}"
        raise DataError(
            given, expected=f"at least {MIN_SENTENCES} to learn from", advice="a blank line ends a sentence"
        )
    found = check_tagged(parts)
    if found.problems:
        raise DataError(found.problems[0], expected="tags of one kind, and at least two of them")
    if "validation" in parts:
        train, validation = everything, parts["validation"]
    elif config.validation_share > 0:
        train, validation = split_sentences(everything, config.validation_share, seed=0)
    else:
        raise ConfigError("data.validation_share = 0", expected="more than 0, or other sentences with --validation")
    texts = [word for words in train.words for word in words]
    recorded = {
        "sentences": len(train),
        "characters": sum(map(len, texts)),
        "bytes": sum(len(word.encode("utf-8", "surrogatepass")) for word in texts),
        "fingerprint": ";".join(_fingerprint(part) for part in (everything, validation, test) if part is not None),
    }
    told = () if list(config.train) == [DEMO] else (*found.notes, *found.warnings)
    labels = everything.labels()
    return TagData(config.override(recorded), labels, everything.plain, train, validation, test, told)


def _fingerprint(sentences: TaggedSentences) -> str:
    digest = hashlib.sha256()
    for row in zip(sentences.words, sentences.tags, strict=True):
        digest.update("\x1e".join("\x1f".join(part) for part in row).encode("utf-8", "surrogatepass") + b"\x1d")
    return digest.hexdigest()[:16]


def check_same(recorded: TagConfig, found: TagConfig) -> None:
    """Refuse to resume a run whose sentences have changed."""
    if recorded.fingerprint == found.fingerprint:
        return
    before, now = recorded.fingerprint.split(";"), found.fingerprint.split(";")
    parts = (recorded.train, recorded.validation or recorded.train, recorded.test or recorded.train)
    changed = next((n for n, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), 2)
    counts = f": {recorded.sentences} sentences to learn from then, {found.sentences} now" if changed == 0 else ""
    raise DataError(
        f"the sentences in {', '.join(parts[changed])} have changed since this run began{counts}",
        advice="put the old file back, or train a new run",
    )
