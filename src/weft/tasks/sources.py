"""Where the data of a run comes from, recorded so that a resume can check that it is still the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.config import Config, Share
from weft.errors import DataError
from weft.text import Corpus, demo_text

DEMO = "demo"
LEAST = 100


class DataConfig(Config):
    """Paths of the texts (or "demo"), how much is held out, and what was found in them."""

    train: tuple[str, ...]
    validation: tuple[str, ...] = ()
    held_out: Share = 0.1
    fingerprint: str = ""
    characters: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Source:
    """The texts of a run, split."""

    train: Corpus
    validation: Corpus
    config: DataConfig


def read_source(config: DataConfig) -> Source:
    """Find and read the texts; `validation` files, or the last characters of the text, are held out."""
    corpus = _corpus(config.train)
    if corpus.characters < LEAST:
        given = f"{corpus.characters} characters in {', '.join(config.train)}"
        raise DataError(given, expected=f"at least {LEAST} characters to learn from", advice="give more text")
    if config.validation:
        train, validation = corpus, _corpus(config.validation)
    else:
        train, validation = corpus.split(config.held_out)
    fingerprint = f"{corpus.fingerprint}/{validation.fingerprint}" if config.validation else corpus.fingerprint
    found = DataConfig(
        train=config.train,
        validation=config.validation,
        held_out=config.held_out,
        fingerprint=fingerprint,
        characters=train.characters,
        bytes=train.bytes,
    )
    return Source(train, validation, found)


def check_unchanged(recorded: DataConfig, found: DataConfig) -> None:
    """A run goes on with the text it began with, or not at all."""
    if recorded.fingerprint != found.fingerprint:
        raise DataError(
            f"the text in {', '.join(recorded.train)} has changed since this run began: "
            f"{recorded.characters} characters to learn from then, {found.characters} now",
            advice="put the old text back, or train a new run",
        )


def _corpus(paths: Sequence[str]) -> Corpus:
    if list(paths) == [DEMO]:
        return Corpus.of_text(demo_text(), name=DEMO)
    return Corpus.of_files(*paths)


def short_name(paths: Sequence[str]) -> str:
    """A name for the run directory."""
    return Path(paths[0]).stem or "text"
