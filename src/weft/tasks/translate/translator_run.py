"""A run that writes one text from another, opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.tasks.given import check_texts
from weft.tasks.run import Run
from weft.tasks.translate.translator import Translation, TranslationConfig, TranslationSearch


class Translator(Run):
    """A model that writes one text from another."""

    def translate(self, texts: str | Sequence[str], **settings: Any) -> Translation | list[Translation]:
        """What the run writes for a text, or for each in a list: a `Translation` with `.text`, `.score` and `.others`.

        `settings`: beams (4), alpha (1.0), best (1: how many of each), max_tokens; or temperature, top_k, top_p, min_p
        and seed to draw instead of searching.
        """
        given = check_texts(texts, "to translate")
        found = TranslationSearch(self).translate(given, TranslationConfig(**settings))
        return found[0] if isinstance(texts, str) else found
