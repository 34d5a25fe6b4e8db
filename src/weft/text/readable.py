"""Tokens as a person can read them: spaces are seen, bytes have numbers, and nothing is obeyed by a terminal."""

from __future__ import annotations

import unicodedata

from weft.text.spelling import BYTE_NAMES
from weft.text.tokenizer import Tokenizer

SHOWN = {" ": "␣", "\n": "⏎", "\t": "⇥"}
CARRIER = "◌"  # carries a mark that has no letter before it
_BYTE_NAMES = frozenset(BYTE_NAMES)


def readable(data: bytes) -> str:
    """Bytes as signs: text as it is, spaces as `␣ ⏎ ⇥`, what cannot be seen as `<U+200D>`, half characters as `<F0>`.

    A mark that joins the letter before it stands on a `◌` if there is no such letter.
    """
    signs: list[str] = []
    before = ""
    for letter in data.decode(errors="surrogateescape"):
        signs.append(_sign(letter, before))
        before = letter
    return "".join(signs)


def _sign(letter: str, before: str) -> str:
    if letter in SHOWN:
        return SHOWN[letter]
    if "\udc80" <= letter <= "\udcff":  # Python's way to keep a byte that is no UTF-8
        return f"<{ord(letter) - 0xDC00:02X}>"
    if not letter.isprintable() or "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef":
        return f"<U+{ord(letter):04X}>"  # controls, joiners, and marks that only choose between two looks
    if unicodedata.category(letter).startswith("M") and (not before or before in SHOWN or not before.isprintable()):
        return CARRIER + letter
    return letter


def shown_token(tokenizer: Tokenizer, number: int) -> str:
    """One token: a piece of text, a single byte as `<5A>`, or the name of a special token.

    Word pieces keep the `##` of their vocabulary, for they know nothing of the space before them.
    """
    name = tokenizer.names[number]
    if tokenizer.kind == "wordpiece" or not tokenizer.token_bytes[number]:
        return readable(name.encode())
    if name in _BYTE_NAMES:
        return f"<{name[3:5]}>"
    return readable(tokenizer.spell(name))
