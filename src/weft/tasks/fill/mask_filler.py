"""A run that fills in what is missing in a text, opened."""

from __future__ import annotations

from collections.abc import Sequence

from weft.tasks.embed.text_encoder import EmbedsTexts
from weft.tasks.fill.filler import MASK, Filler
from weft.tasks.fill.results import Filled
from weft.tasks.given import check_texts


class MaskFiller(EmbedsTexts):
    """A model that fills the gaps of a text."""

    def fill(self, texts: str | Sequence[str], *, top: int = 5, mask: str = MASK) -> Filled | list[Filled]:
        """The candidates for the gaps of a text, or of each in a list: `.gaps` and the `.best` text of each."""
        found = Filler(self).fill(check_texts(texts, "to fill in"), top=top, mask=mask)
        return found[0] if isinstance(texts, str) else found
