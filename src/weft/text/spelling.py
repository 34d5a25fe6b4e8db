"""How tokens are written down: the two ways in which `tokenizer.json` files spell raw bytes.

Byte-level files (GPT-2 and many since) give each of the 256 bytes a visible character, so that every token
is printable text. Byte-fallback files keep characters as they are and call single bytes `<0x00>` … `<0xFF>`;
those that come from SentencePiece write a space as `▁`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError

Ids = NDArray[np.uint32]

END = "<|endoftext|>"
INSIDE = "##"  # before a WordPiece that goes on with a word
SPACE = "▁"  # how SentencePiece writes a space
HIDDEN = "\ufdd0"  # before a token that no text is cut into; Unicode keeps it free for such use
BYTE_NAMES = tuple(f"<0x{value:02X}>" for value in range(256))


def _visible_bytes() -> tuple[str, ...]:
    """GPT-2's alphabet: bytes that are printable in Latin-1 stand for themselves, the others for U+0100 and on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return tuple(chr(value) if value in printable else chr(next(spare)) for value in range(256))


BYTE_CHARACTERS = _visible_bytes()
_BYTE_OF = {character: value for value, character in enumerate(BYTE_CHARACTERS)}
_NAMED_BYTE = {name: value for value, name in enumerate(BYTE_NAMES)}


def byte_level(token: str) -> bytes:
    """The bytes of a token of a byte-level file; a character outside the alphabet stands for itself."""
    if all(character in _BYTE_OF for character in token):
        return bytes(_BYTE_OF[character] for character in token)
    return token.encode()


def byte_fallback(token: str) -> bytes:
    """The bytes of a token of a byte-fallback file."""
    value = _NAMED_BYTE.get(token)
    return token.encode() if value is None else bytes([value])


def sentence_piece(token: str) -> bytes:
    """The bytes of a token of a SentencePiece file."""
    return byte_fallback(token.removeprefix(HIDDEN).replace(SPACE, " "))


def word_piece(token: str) -> bytes:
    """The bytes of a token of a WordPiece file; the space before a word is not one of them."""
    return (token.removeprefix(INSIDE) or token).encode()


def utf8(text: str) -> bytes:
    """The UTF-8 bytes of a text, or a `DataError` for the one thing that has none: half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _half_character(text, error.start) from None


def code_points(text: str) -> NDArray[np.uint32]:
    """The Unicode number of every character."""
    try:
        return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    except UnicodeEncodeError as error:
        raise _half_character(text, error.start) from None


def _half_character(text: str, place: int) -> DataError:
    return DataError(
        f"character {place} of the text is half a surrogate pair (U+{ord(text[place]):04X})",
        advice="such text cannot be written as UTF-8; read it again with the right encoding",
    )


class CharacterTable:
    """Characters to ids by one table look-up, a hundred times faster than a tokenizer that could also merge.

    A character that is not in the vocabulary becomes the ids of its UTF-8 bytes.
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self.byte_ids = np.array([vocabulary[name] for name in BYTE_NAMES], dtype=np.uint32)
        known = {ord(token): number for token, number in vocabulary.items() if len(token) == 1}
        self.unknown = np.uint32(0xFFFFFFFF)
        self.table = np.full(max(known, default=0) + 2, self.unknown, dtype=np.uint32)
        self.table[list(known)] = list(known.values())

    def encode(self, text: str) -> Ids:
        """One id for each known character, one for each byte of an unknown one."""
        codes = code_points(text)
        ids = self.table[np.minimum(codes, len(self.table) - 1)]
        unseen = ids == self.unknown
        return self._spell(ids, codes, unseen) if unseen.any() else ids

    def _spell(self, ids: Ids, codes: NDArray[np.uint32], unseen: NDArray[np.bool_]) -> Ids:
        """Make room for the bytes of the unseen characters, and fill it."""
        lengths = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
        lengths[~unseen] = 1
        starts = np.cumsum(lengths) - lengths
        spelled = np.ones(int(lengths.sum()), dtype=bool)
        spelled[starts[~unseen]] = False
        result = np.empty(len(spelled), dtype=np.uint32)
        result[~spelled] = ids[~unseen]
        raw = codes[unseen].tobytes().decode("utf-32-le").encode()
        result[spelled] = self.byte_ids[np.frombuffer(raw, dtype=np.uint8)]
        return result
