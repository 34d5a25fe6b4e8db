"""Using a tagger: the tag of each word of a text, and the entities that the tags mean.

tagger.tag("Ada Lovelace lived in London.")                 # a text: TaggedText
tagger.tag(["A first text.", "A second one."])              # a list of texts: a list of them
tagger.tag_words(["Ada", "Lovelace", "lived"])              # a sentence that is already cut into words
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from weft.blocks import length_buckets
from weft.errors import DataError, UnsupportedError
from weft.models.capabilities import TagsTokens
from weft.objectives.token_classification import word_logits
from weft.tasks.tag.alignment import EncodedWords, encode_words
from weft.tasks.tag.schemes import Entity, find_entities, find_scheme
from weft.tasks.tag.split_words import PlacedWord, place_words, split_words
from weft.text import Tokenizer

ROW_TOKENS = 1024  # tokens that are read together


@dataclass(frozen=True)
class TaggedWord:
    """A word of a text, its tag, and the probability of this tag; `text[start:end]` is the word."""

    text: str
    tag: str
    probability: float
    start: int
    end: int


@dataclass(frozen=True)
class TaggedSpan:
    """An entity of a text; `text[start:end]` is it. `probability` is that of all its tags together, their product."""

    text: str
    type: str
    probability: float
    start: int
    end: int


@dataclass(frozen=True)
class TaggedText:
    """What a tagger says of a text: every word with its tag, and the entities in it. Plain tags mean no entities."""

    text: str
    words: list[TaggedWord]
    spans: list[TaggedSpan]

    def __repr__(self) -> str:
        shown = ", ".join(f"{span.text!r}: {span.type}" for span in self.spans) if self.spans else "no entities"
        return f"TaggedText({len(self.words)} words; {shown})"

    @property
    def tags(self) -> list[str]:
        """The tags alone."""
        return [word.tag for word in self.words]

    def to_dict(self) -> dict[str, Any]:
        """For programs: words, their tags and the probabilities of these, and the entities."""
        return {
            "text": self.text,
            "words": [word.text for word in self.words],
            "tags": self.tags,
            "probabilities": [word.probability for word in self.words],
            "entities": [asdict(span) for span in self.spans],
        }


def tag_logits(model: nn.Module, words: EncodedWords, device: torch.device | None = None) -> list[NDArray[np.float64]]:
    """(words, labels) for each sentence, in the order given; windows of similar length are read together."""
    device = device or next(model.parameters()).device
    model.eval()
    found: dict[int, NDArray[np.float64]] = {}
    with torch.inference_mode():
        for numbers in length_buckets(words.lengths.tolist(), ROW_TOKENS):
            row, places = words.row(numbers)
            logits = word_logits(model, row.to(device), places.to(device)).cpu().double().numpy()
            ends = np.cumsum([len(words.windows[number].firsts) for number in numbers])
            found |= dict(zip(numbers, np.split(logits, ends[:-1]), strict=True))
    return words.unpacked(found)


class WordTagger:
    """A model that tags words, with its tokenizer and the names of its labels in the model's order."""

    def __init__(
        self, model: nn.Module, tokenizer: Tokenizer, labels: Sequence[str], *, max_length: int | None = None
    ) -> None:
        context = getattr(model, "context", None)
        if not isinstance(model, TagsTokens):
            raise UnsupportedError(f"{type(model).__name__} does not tag words", expected="a model with token_logits")
        if max_length is None and context is None:
            raise UnsupportedError("a model of any length without max_length", expected="how many tokens it reads")
        self.model, self.tokenizer, self.labels = model, tokenizer, tuple(labels)
        self.max_length = min(n for n in (max_length, context) if n is not None)
        self.plain = find_scheme([self.labels], "the model") in ("plain", "none")

    def __repr__(self) -> str:
        kinds = sorted({entity.type for label in self.labels for entity in self._entities([label])})
        told = f"entities: {', '.join(kinds)}" if kinds else f"{len(self.labels)} plain tags"
        return f"WordTagger({type(self.model).__name__}, {told}, max_length={self.max_length})"

    @overload
    def tag(self, text: str) -> TaggedText: ...
    @overload
    def tag(self, text: list[str]) -> list[TaggedText]: ...
    def tag(self, text: str | list[str]) -> TaggedText | list[TaggedText]:
        """The words and entities of a text, or of each of several; a text is cut into words by `split_words`."""
        texts = [text] if isinstance(text, str) else list(text)
        for given in texts:
            if not isinstance(given, str):
                expected = "a text, or a list of texts; for sentences that are cut into words, tag_words"
                raise DataError(f"a {type(given).__name__} to tag", expected=expected)
        found = self._tagged(texts, [split_words(given) for given in texts])
        return found[0] if isinstance(text, str) else found

    @overload
    def tag_words(self, words: list[str]) -> TaggedText: ...
    @overload
    def tag_words(self, words: list[list[str]]) -> list[TaggedText]: ...
    def tag_words(self, words: list[str] | list[list[str]]) -> TaggedText | list[TaggedText]:
        """The same for a sentence that is given as words, or for several; places are those in the words joined by
        spaces."""
        if isinstance(words, str):
            raise DataError("a text to tag as words", expected="a list of words; for a text, tag")
        several = bool(words) and not isinstance(words[0], str)
        given: list[list[str]] = [list(each) for each in words] if several else [list(words)]  # type: ignore[arg-type]
        if not all(isinstance(word, str) and word for each in given for word in each):
            raise DataError("words that are empty or no text", expected="a list of words, or a list of such lists")
        found = self._tagged([" ".join(each) for each in given], [place_words(each) for each in given])
        return found if several else found[0]

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of sentences that are given as words, and nothing else: for measuring."""
        return [[self.labels[n] for n in row.argmax(1)] for row in self._logits(sentences)]

    def _logits(self, sentences: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
        found = tag_logits(self.model, encode_words(self.tokenizer, sentences, self.max_length))
        if found and found[0].shape[1] != len(self.labels):
            raise DataError(f"{len(self.labels)} names for {found[0].shape[1]} labels", expected="one for each")
        return found

    def _tagged(self, texts: Sequence[str], placed: Sequence[Sequence[PlacedWord]]) -> list[TaggedText]:
        filled = [number for number, words in enumerate(placed) if words]
        sentences = [[word.text for word in placed[number]] for number in filled]
        found = [TaggedText(text, [], []) for text in texts]
        if not filled:
            return found
        for number, rows in zip(filled, self._logits(sentences), strict=True):
            found[number] = self._read(texts[number], placed[number], rows)
        return found

    def _read(self, text: str, placed: Sequence[PlacedWord], logits: NDArray[np.float64]) -> TaggedText:
        best = logits.argmax(1)
        chances = 1 / np.exp(logits - logits.max(1, keepdims=True)).sum(1)  # of the best: the others are relative to it
        words = [
            TaggedWord(word.text, self.labels[label], float(chance), word.start, word.end)
            for word, label, chance in zip(placed, best, chances, strict=True)
        ]
        spans = []
        for type_, first, last in self._entities([word.tag for word in words]):
            start, end = words[first].start, words[last].end
            spans.append(TaggedSpan(text[start:end], type_, float(np.prod(chances[first : last + 1])), start, end))
        return TaggedText(text, words, spans)

    def _entities(self, tags: Sequence[str]) -> list[Entity]:
        return [] if self.plain else find_entities(tags)
