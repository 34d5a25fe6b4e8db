"""A run of word vectors, opened: words near other words."""

from __future__ import annotations

import functools

from weft.errors import DataError
from weft.tasks.embed.text_encoder import EmbedsTexts
from weft.tasks.embed.word_vectors import NearestWords, Neighbour


class WordVectors(EmbedsTexts):
    """A vector for each word. `embed` gives the vectors themselves."""

    def describe_model(self) -> str:
        config = self.model_config
        words, width = getattr(config, "vocab_size", 0), getattr(config, "width", "?")
        return f"{config.kind}, {words:,} words of {width} numbers"

    @functools.cached_property
    def vectors(self) -> NearestWords:
        """Neighbours, analogies, and how good they are."""
        return NearestWords(self)

    def similar(self, word: str, *, top: int = 10) -> list[Neighbour]:
        """The words nearest to this one: `.word` and `.similarity` of each."""
        return self.vectors.similar(_word(word), top)

    def analogy(self, a: str, b: str, c: str, *, top: int = 10) -> list[Neighbour]:
        """a is to b as c is to …: the best answers."""
        return self.vectors.analogy(_word(a), _word(b), _word(c), top)


def _word(given: object) -> str:
    if not isinstance(given, str):
        raise DataError(f"a {type(given).__name__} for a word", expected="a word", advice="ask for one word at a time")
    return given
