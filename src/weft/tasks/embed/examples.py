"""Examples of word vectors: frequent words and the nearest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.tasks.embed.word_vectors import NearestWords

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_WORDS = 10  # with their neighbours
NEIGHBOURS_PER_WORD = 6
MIN_LETTERS = 4  # of a word that says something


def collect_neighbours(run: Run) -> list[dict[str, Any]]:
    """Of frequent words that say something, the nearest ones."""
    vectors = NearestWords(run)
    words = [word for word in vectors.words.words if len(word) >= MIN_LETTERS][:MAX_WORDS]
    return [
        {
            "word": word,
            "neighbours": [(near.word, near.similarity) for near in vectors.similar(word, top=NEIGHBOURS_PER_WORD)],
        }
        for word in words
    ]
