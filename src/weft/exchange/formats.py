"""The formats that a run can be written in, known without torch."""

from __future__ import annotations

from weft.errors import ConfigError, did_you_mean

FORMATS = ("hf", "arpa", "word2vec", "word2vec-binary")


def check_format(to: str | None) -> None:
    """Refuse a word that names none; None is what suits the model."""
    if to is not None and to not in FORMATS:
        raise ConfigError(f"--to {to}", expected=f"one of {', '.join(FORMATS)}", advice=did_you_mean(to, FORMATS))
