"""Which files of tagged sentences belong to a run; the embedded ones are "demo"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.tasks.sources import DEMO, DataConfig
from weft.tasks.tag.demo import Part, demo_sentences
from weft.tasks.tag.sentences import TaggedSentences, join_sentences, read_tagged


class TagConfig(DataConfig):
    """Which files, which columns of them hold words and tags (None: found out), and how they are split.

    `length` is how many tokens are read at a time: a longer sentence is read in windows. The rest is found in the data.
    """

    found: ClassVar[tuple[str, ...]] = (*DataConfig.found, "sentences")
    columns: ClassVar[tuple[str, ...]] = ("text", "label")

    text: str | None = None
    label: str | None = None
    sentences: int = 0


def open_tagged(paths: Sequence[str], config: TagConfig, part: Part = "train") -> TaggedSentences:
    """The sentences of these files, or a part of the embedded ones."""
    if list(paths) == [DEMO]:
        return demo_sentences(part)
    return join_sentences([read_tagged(path, text=config.text, label=config.label) for path in paths])


def open_parts(config: TagConfig) -> dict[str, TaggedSentences]:
    """The training files, and the validation and test files; the embedded sentences have all three parts."""
    is_demo = list(config.train) == [DEMO]
    found = {"train": open_tagged(config.train, config)}
    for part, paths in (("validation", config.validation), ("test", config.test)):
        if paths or is_demo:
            found[part] = open_tagged(paths or config.train, config, part)  # type: ignore[arg-type]
    return found
