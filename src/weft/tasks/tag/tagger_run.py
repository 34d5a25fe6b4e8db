"""A run that tags words, opened: what it says of texts."""

from __future__ import annotations

from collections.abc import Sequence

from weft.tasks.embed.text_encoder import EmbedsTexts
from weft.tasks.given import check_texts
from weft.tasks.tag.run_tagger import tagger_of
from weft.tasks.tag.tagger import TaggedText


class Tagger(EmbedsTexts):
    """A model that says a tag for each word of a text."""

    def describe_model(self) -> str:
        labels = getattr(getattr(self.model_config, "head", None), "labels", ())
        return f"{self.model_config.kind}, {len(labels):,} tags"

    def tag(self, texts: str | Sequence[str]) -> TaggedText | list[TaggedText]:
        """The words of a text, or of each in a list, with their tags: `.words`, and the entities that they mean,
        `.spans`, each with its `.text`, `.type`, `.probability`, `.start` and `.end`."""
        found = tagger_of(self).tag(check_texts(texts, "to tag"))
        return found[0] if isinstance(texts, str) else found
