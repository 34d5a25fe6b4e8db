"""Where the data of a run comes from, recorded so that a resume can check that it is still the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from weft.config import Config, Share, Size
from weft.data.image_files import is_images
from weft.data.table_files import is_table
from weft.errors import ConfigError, DataError
from weft.tasks.data_facts import parts_of
from weft.text import Corpus, demo_text

DEMO = "demo"
MIN_CHARACTERS = 100


class FilesConfig(Config):
    """Paths of the data (or "demo"), the share for validation, and a fingerprint of what was found there.

    `validation` decides which weights are best, `test` only measures them at the very end.
    """

    found: ClassVar[tuple[str, ...]] = ("fingerprint",)  # fields that nobody sets
    columns: ClassVar[tuple[str, ...]] = ()  # options that name columns or further files

    train: tuple[str, ...]
    validation: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    validation_share: Share = 0.1
    fingerprint: str = ""


class DataConfig(FilesConfig):
    """Texts. `length` is how many tokens are read at a time (None: as many as the model can).

    The fingerprint is TRAIN, TRAIN/VALIDATION, TRAIN;TEST or TRAIN/VALIDATION;TEST.
    """

    found: ClassVar[tuple[str, ...]] = (*FilesConfig.found, "characters", "bytes")

    length: Size | None = None
    characters: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Source:
    """The texts of a run, split."""

    train: Corpus
    validation: Corpus
    config: DataConfig
    test: Corpus | None = None

    def facts(self) -> dict[str, Any]:
        """In numbers, for a report."""
        return {
            "parts": {
                name: {"texts": len(part.documents), "characters": part.characters}
                for name, part in parts_of(self).items()
            }
        }


def read_source(config: DataConfig, opened: Callable[[tuple[str, ...]], Corpus | None] = lambda _: None) -> Source:
    """Find and read the texts; `validation` files, or the last characters of the text, are for validation.

    `opened` may know better how to open paths that are no plain texts.
    """

    def _corpus(paths: tuple[str, ...]) -> Corpus:
        return opened(paths) or _texts(paths)

    corpus = _corpus(config.train)
    if corpus.characters < MIN_CHARACTERS:
        given = f"{corpus.characters} characters in {', '.join(config.train)}"
        raise DataError(given, expected=f"at least {MIN_CHARACTERS} characters to learn from", advice="give more text")
    if config.validation:
        train, validation = corpus, _corpus(config.validation)
    elif config.validation_share > 0:
        train, validation = corpus.split(config.validation_share)
    else:
        raise ConfigError("data.validation_share = 0", expected="more than 0, or other text with --validation")
    test = _corpus(config.test) if config.test else None
    fingerprint = f"{corpus.fingerprint}/{validation.fingerprint}" if config.validation else corpus.fingerprint
    found = config.override(
        {
            "fingerprint": f"{fingerprint};{test.fingerprint}" if test else fingerprint,
            "characters": train.characters,
            "bytes": train.bytes,
        }
    )
    return Source(train, validation, found, test)


def check_unchanged(recorded: DataConfig, found: DataConfig) -> None:
    """Refuse to resume a run whose text has changed."""
    if recorded.fingerprint == found.fingerprint:
        return
    before, now = _parts(recorded.fingerprint), _parts(found.fingerprint)
    counts = ""
    if before[0] != now[0]:
        paths = recorded.train
        counts = f": {recorded.characters} characters to learn from then, {found.characters} now"
    else:
        paths = recorded.validation if before[1] != now[1] else recorded.test
    raise DataError(
        f"the text in {', '.join(paths)} has changed since this run began{counts}",
        advice="put the old text back, or train a new run",
    )


def _parts(fingerprint: str) -> tuple[str, str, str]:
    """Those of train, validation and test; empty where there is none."""
    learned, _, test = fingerprint.partition(";")
    train, _, validation = learned.partition("/")
    return train, validation, test


def _texts(paths: Sequence[str]) -> Corpus:
    if list(paths) == [DEMO]:
        return Corpus.of_text(demo_text(), name=DEMO)
    return Corpus.of_files(*paths)


def short_name(paths: Sequence[str]) -> str:
    """A name for the run directory."""
    return Path(paths[0]).stem or "text"


def are_images(paths: Sequence[str], text: str | None = None) -> bool:
    """Whether these are images, by their names; `text` is the column of a table that the user named."""
    return list(paths) != [DEMO] and is_images(paths, text)


def are_tables(paths: Sequence[str]) -> bool:
    """Whether these are tables, and not texts."""
    return bool(paths) and all(is_table(Path(path)) for path in paths)
