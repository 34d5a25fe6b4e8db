"""Tags that mark entities: which scheme they follow, the entities that they mean, and one scheme for all of them, IOB2.

Ramshaw & Marcus 1995 (IOB1), Tjong Kim Sang & Veenstra 1999 (IOB2), Ratinov & Roth 2009 (BILOU). Tags that follow no
scheme, such as parts of speech, are `plain`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from weft.errors import DataError

Scheme = Literal["iob1", "iob2", "bioes", "bilou", "plain", "none"]
SCHEMES: dict[Scheme, str] = {
    "iob1": "IOB1 (I- in an entity, B- only where it touches one of the same type)",
    "iob2": "IOB2 (B- begins an entity, I- continues it)",
    "bioes": "BIOES (begin, inside, end, and S- for an entity of one word)",
    "bilou": "BILOU (begin, inside, last, and U- for an entity of one word)",
    "plain": "plain tags, one for each word, without entities",
    "none": "O for every word: no entity is marked",
}
OUTSIDE = "O"
UNTYPED = "_"  # the type of entities whose tags are B and I alone
_TYPED = re.compile(r"[BIESLUM]-.+", re.DOTALL)
_BARE = frozenset("BIESLUM")
_SAME = {"L": "E", "U": "S", "M": "I"}  # letters of other schemes that mean what BIOES says
_MISWRITTEN = re.compile(r"[bieslum][-_].+|.+[-_][bieslum]", re.DOTALL | re.IGNORECASE)


class Entity(NamedTuple):
    """An entity of a sentence: its type, and its first and last word."""

    type: str
    first: int
    last: int


@lru_cache(maxsize=4096)
def split_tag(tag: str) -> tuple[str, str]:
    """The letter (O, B, I, E or S) and the type of a tag that marks entities; a tag without a type has `_`."""
    return _SAME.get(tag[0], tag[0]), tag[1:].split("-", 1)[-1] or UNTYPED


def marks_entity(tag: str) -> bool:
    """Whether a tag has the form B-TYPE, with a letter of any scheme."""
    return _TYPED.fullmatch(tag) is not None


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """The entities that the tags of a sentence mean, as conlleval and seqeval (not strict) read them.

    Ill-formed tags mean something too: an I- after O, or after another type, begins an entity.
    """
    found: list[Entity] = []
    before, type_before, first = OUTSIDE, UNTYPED, 0
    for place, tag in enumerate([*tags, OUTSIDE]):
        letter, type_ = split_tag(tag)
        changed = type_ != type_before
        ends = before in "ES" or (before in "BI" and letter in "BSO") or (before != OUTSIDE and changed)
        begins = letter in "BS" or (before in "ESO" and letter in "EI") or (letter != OUTSIDE and changed)
        if ends:
            found.append(Entity(type_before, first, place - 1))
        if begins:
            first = place
        before, type_before = letter, type_
    return found


def write_iob2(entities: Iterable[Entity], words: int) -> list[str]:
    """The tags of a sentence of so many words with these entities."""
    tags = [OUTSIDE] * words
    for type_, first, last in entities:
        end = "" if type_ == UNTYPED else f"-{type_}"
        tags[first] = f"B{end}"
        tags[first + 1 : last + 1] = [f"I{end}"] * (last - first)
    return tags


def ill_formed(tags: Sequence[str], scheme: Scheme) -> list[int]:
    """The places where the tags of a sentence break the rules of their scheme."""
    if scheme in ("plain", "none"):
        return []
    found = []
    before, type_before = OUTSIDE, UNTYPED
    for place, tag in enumerate(tags):
        letter, type_ = split_tag(tag)
        continues = before in "BI" and type_ == type_before
        if scheme == "iob2":
            broken = letter == "I" and not continues
        elif scheme == "iob1":
            broken = letter == "B" and not continues
        else:
            broken = (letter in "IE") != (before in "BI") or (letter in "IE" and not continues)
        if broken:
            found.append(place)
        before, type_before = letter, type_
    if scheme in ("bioes", "bilou") and before in "BI":
        found.append(len(tags))  # the entity is never ended
    return found


def find_scheme(sentences: Sequence[Sequence[str]], name: str = "the data") -> Scheme:
    """Which scheme the tags of these sentences follow; what follows none, and is not plain either, is refused.

    Where IOB1 and IOB2 are mixed, it is the one that fewer places break.
    """
    counts = Counter(tag for tags in sentences for tag in tags)
    named = sorted(counts.keys() - {OUTSIDE})
    if not named:
        return "none"
    marked = [tag for tag in named if marks_entity(tag)]
    if not marked and OUTSIDE in counts and _BARE.issuperset(named):
        marked = named
    others = [tag for tag in named if tag not in set(marked)]
    if not marked:
        if counts.keys() & {"O", "o"} and all(_MISWRITTEN.fullmatch(tag) for tag in named if tag != "o"):
            shown = ", ".join(map(repr, named[:3]))
            raise DataError(f"the tags of {name} are written as {shown}", expected="B-PER, I-PER and O")
        return "plain"
    if others:
        given = f"{name} has tags of two kinds: {marked[0]!r} marks an entity, {others[0]!r} does not"
        raise DataError(given, expected="O, B-…, I-… (or BIOES, BILOU) for entities, or plain tags for every word")
    letters = {tag[0] for tag in marked}
    if letters <= {"B", "I"}:
        broken = {scheme: sum(len(ill_formed(tags, scheme)) for tags in sentences) for scheme in _IOB}
        return "iob2" if broken["iob2"] <= broken["iob1"] else "iob1"
    if letters & {"L", "U"} and letters <= {"B", "I", "L", "U"}:
        return "bilou"
    if letters & {"E", "S"} and letters <= {"B", "I", "M", "E", "S"} and letters & {"B", "S"}:
        return "bioes"
    given = f"the tags of {name} begin with {', '.join(sorted(letters))}"
    raise DataError(given, expected="B and I (IOB), B, I, E and S (BIOES), or B, I, L and U (BILOU)")


_IOB: tuple[Scheme, Scheme] = ("iob1", "iob2")
