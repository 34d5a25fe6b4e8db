"""Examples of what a tagger says: some typical ones, and the mistakes with the highest confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.tasks.data_facts import evaluation_part
from weft.tasks.examples import ATTENTION_EXAMPLES, few_words
from weft.tasks.tag.data import TagData
from weft.tasks.tag.run_tagger import tagger_of
from weft.tasks.tag.schemes import find_entities
from weft.tasks.tag.tagger import TaggedText
from weft.tasks.validation_inputs import some_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_CANDIDATES = 200  # sentences that are looked at, to find a few
TYPICAL_SENTENCES, WRONG_SENTENCES = 4, 6  # that are shown: typical ones, and the surest mistakes
MAX_SENTENCE_CHARACTERS = 400  # letters of a sentence
Sentence = list[str]


def collect_tags(run: Run, data: TagData) -> dict[str, Any]:
    """Sentences with predicted and true tags; `measured_on`: whether they are of the validation or test part."""
    part, sentences = evaluation_part(data)
    places = some_of(len(sentences), MAX_CANDIDATES)
    given: list[Sentence] = [sentences.words[n] for n in places]
    rows = [
        _row(found, sentences.words[n], sentences.tags[n], plain=data.plain)
        for found, n in zip(tagger_of(run).tag_words(given), places, strict=True)
    ]
    some = [rows[n] for n in some_of(len(rows), TYPICAL_SENTENCES)]
    wrong = sorted((row for row in rows if not row["right"] and row not in some), key=lambda row: -row["probability"])
    chosen = [
        *({**row, "group": "some"} for row in some),
        *({**row, "group": "mistakes"} for row in wrong[:WRONG_SENTENCES]),
    ]
    inside = [[few_words(row["text"][0])] for row in chosen[:ATTENTION_EXAMPLES]]
    return {"measured_on": part, "examples": chosen, "inside": inside}


def _row(found: TaggedText, words: Sentence, tags: Sentence, *, plain: bool) -> dict[str, Any]:
    """How sure it was: of the least sure answer, among the wrong ones if there are any."""
    wrong = [word.probability for word, tag in zip(found.words, tags, strict=True) if word.tag != tag]
    return {
        "text": [" ".join(words)[:MAX_SENTENCE_CHARACTERS]],
        "answer": _named(words, found.tags, plain=plain),
        "truth": _named(words, tags, plain=plain),
        "probability": min(wrong or [word.probability for word in found.words]),
        "right": found.tags == tags,
    }


def _named(words: Sentence, tags: Sentence, *, plain: bool) -> list[str]:
    """Entities by name, or every word with its tag."""
    if plain:
        return [f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)]
    return [f"{' '.join(words[first : last + 1])} ({type_})" for type_, first, last in find_entities(tags)]
