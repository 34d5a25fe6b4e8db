"""Where words begin in a row of tokens, whatever the scheme: for hiding and moving whole words.

WordPiece says it (`##` goes on with a word). In the other schemes a token goes on with a word if it begins with a
letter or digit and the one before ends with one; a space belongs to the word after it. Characters of scripts that
are written without spaces are words of their own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.text.recognise import spelling_of
from weft.text.spelling import INSIDE
from weft.text.tokenizer import Tokenizer

_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0xA4CF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class WordEdges:
    """What each id says about words.

    inside    it can go on with a word that an `open` one before it has begun
    blank     it is nothing but white space
    bare      the id of the same token without the space before it, or itself: for the beginning of a text
    """

    inside: Flags
    open: Flags
    blank: Flags
    bare: NDArray[np.uint32]

    def __repr__(self) -> str:
        return f"WordEdges({len(self.bare)} tokens)"

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> WordEdges:
        """The tables of a tokenizer."""
        settings = json.loads(tokenizer.to_json())
        vocabulary, size = settings["model"]["vocab"], tokenizer.vocab_size
        if isinstance(vocabulary, list):  # Unigram: token and score, in the order of ids
            vocabulary = {token: number for number, (token, _) in enumerate(vocabulary[:size])}
        bare = np.arange(size, dtype=np.uint32)
        inside, ending, blank = (np.zeros(size, dtype=bool) for _ in range(3))
        if settings["model"].get("type") == "WordPiece":
            for token, number in vocabulary.items():
                inside[number] = token.startswith(INSIDE) and token != INSIDE
            return cls(inside, ~ending, blank, bare)
        spell = spelling_of(settings)
        spelled = {number: spell(token) for token, number in vocabulary.items() if number < size}
        known = {text: number for number, text in spelled.items()}
        for number, text in spelled.items():
            inside[number], ending[number] = _is_inside(text), _is_inside(text, last=True)
            blank[number] = not text.strip() and len(text) > 0
            if text[:1] == b" " and len(text) > 1:
                bare[number] = known.get(text[1:], number)
        for token in settings.get("added_tokens") or []:
            if token.get("special") and token["id"] < size:
                inside[token["id"]] = ending[token["id"]] = blank[token["id"]] = False
                bare[token["id"]] = token["id"]
        return cls(inside, ending, blank, bare)

    def begins(self, ids: NDArray[np.integer], starts: NDArray[np.integer]) -> Flags:
        """Which tokens begin a word, in texts that lie one after the other and begin at these places."""
        before = ids[:-1]
        found = np.ones(len(ids), dtype=bool)
        found[1:] = ~(self.inside[ids[1:]] & self.open[before]) & ~(self.blank[before] & ~self.blank[ids[1:]])
        found[starts[starts < len(ids)]] = True
        return found


def _is_inside(text: bytes, last: bool = False) -> bool:
    """Whether the first (or last) character can stand inside a word; of half a character, the byte has to tell."""
    if not text:
        return False
    try:
        character = text.decode()[-1 if last else 0]
    except UnicodeDecodeError:
        byte = text[-1 if last else 0]
        if byte < 0x80:
            return is_letter(chr(byte))
        return last or not 0xE3 <= byte <= 0xE9  # the first bytes of U+3000 … U+9FFF
    return is_letter(character)


def is_letter(character: str) -> bool:
    """Whether a character can stand inside a word; those of scripts without spaces are words by themselves."""
    number = ord(character)
    if any(low <= number <= high for low, high in _UNSPACED):
        return False
    return character.isalnum() or character == "_" or 0x300 <= number < 0x370 or number == 0x200D
