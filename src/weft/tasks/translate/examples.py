"""Examples of translations, and what they are in truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.tasks.data_facts import evaluation_part
from weft.tasks.translate.translator import TranslationSearch

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_TRANSLATIONS = 4
MAX_SOURCE_WORDS = 15  # words; of longer ones, what looked at what is too large an image


def collect_translations(run: Run, data: Any) -> list[dict[str, Any]]:
    """Sources that were not learned from, what is made of them, what they are in truth, and what looked at what."""
    pairs, translator = evaluation_part(data)[1], TranslationSearch(run)
    short = [n for n, text in enumerate(pairs.sources) if 2 <= len(text.split()) <= MAX_SOURCE_WORDS]
    places = (short or list(range(len(pairs))))[:: max(1, len(short or pairs) // MAX_TRANSLATIONS)][:MAX_TRANSLATIONS]
    align = translator.model.looks is not None
    found = translator.translate([pairs.sources[n] for n in places], align=align)
    return [{**one.to_dict(), "really": pairs.targets[n]} for one, n in zip(found, places, strict=True)]
