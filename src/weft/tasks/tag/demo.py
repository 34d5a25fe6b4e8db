"""Embedded sentences with persons, places, organisations and dates, put together by a small grammar.

Names are made of syllables. Half of the names in the validation and test parts occur in the training part, the others
do not; and families, towns and companies share their names, so that the words around a name must tell what it is. The
same sentences on every call and every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from weft.data.order import hash_numbers
from weft.errors import ConfigError, did_you_mean
from weft.tasks.tag.schemes import OUTSIDE
from weft.tasks.tag.sentences import TaggedSentences
from weft.tasks.tag.split_words import split_words

Part = Literal["train", "validation", "test"]
SIZES = {"train": 2400, "validation": 300, "test": 300}  # sentences
NAMES_PER_PART = 240  # family names and towns of a part
SHARED_NAMES = 0.5  # of them are names of the training part, in the other parts
SEED = 1

_of = str.split  # lists of words
_ONSETS = _of("b br c cl d dr f g gr h j k l m n p r s st t tr v w")
_VOWELS = _of("a e i o u ai ea oo")
_CODAS = _of("l n r s t ck lm nd rk")
_ENDS = _of("son er ley well man by ton ford ham mere field gate")
_FIRST = _of(
    "Ada Anton Bea Ben Clara Cyril Dora Edgar Elsa Emil Flora Frank Greta Hugo Ida Ivan Jana Jonas Kira Leo Lina Marco "
    "Mira Nils Nora Oskar Paula Quentin Rosa Simon Tara Umberto Vera Walter Yara Zeno"
)
_MONTHS = _of("January February March April May June July August September October November December")
_DAYS = _of("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_TRADES = _of("Bank Press Motors Foods Textiles Railways Instruments Steel Shipping Insurance")
_PUBLIC = _of("University Museum Orchestra Observatory Hospital Institute")
_NOUNS = _of("bridge contract garden machine novel painting report station telescope theatre vineyard workshop")
_ROLES = _of("architect baker chemist conductor doctor engineer gardener lawyer minister painter teacher writer")
_ADJECTIVES = _of("careful costly famous new old quiet remarkable small unfinished white")

_TEMPLATES = """
{PER} was born in {LOC} {DATE}.
{PER}, a {role} from {LOC}, joined {ORG} {DATE}.
{DATE!}, {PER} left {ORG} and moved to {LOC}.
The {role} {PER} visited {LOC} with {PER}.
{ORG} opened a {adjective} {noun} in {LOC} {DATE}.
{ORG} bought the {noun} from {ORG}.
The {noun} in {LOC} belongs to {PER}.
Nobody in {LOC} had seen the {adjective} {noun} before.
{PER} sold a {adjective} {noun} to {ORG}.
"The {noun} is {adjective}," said {PER} of {ORG}.
Travellers between {LOC} and {LOC} pass a {adjective} {noun}.
{PER}'s {noun} won a prize {DATE}.
Shares of {ORG} fell by {number} percent {DATE}.
{PER} and {PER} met in {LOC}.
The {role} wrote a {adjective} report about {ORG}.
It rained in {LOC} {DATE}.
A {role} paid {number} coins for the {adjective} {noun}.
{ORG}, where {PER} works, is moving to {LOC}.
The mayor of {LOC} thanked {ORG} and {PER}.
The {noun} was closed for {number} days.
Every {role} knows the {adjective} {noun}.
{PER} spoke at {ORG} {DATE}.
"""
_SLOT = re.compile(r"\{(\w+)(!?)\}")


class _Draws:
    """Draws that are the same everywhere: a hash of the seed and of how many came before."""

    def __init__(self, *key: int) -> None:
        self.key, self.count = key, 0

    def below(self, limit: int) -> int:
        self.count += 1
        return (hash_numbers(SEED, *self.key, self.count) >> 20) % limit

    def of(self, options: Sequence[str]) -> str:
        return options[self.below(len(options))]


@lru_cache(maxsize=4)
def demo_sentences(part: Part = "train") -> TaggedSentences:
    """The sentences of a part; none of them is in another one."""
    if part not in SIZES:
        raise ConfigError(f"part = {part!r}", advice=did_you_mean(part, SIZES))
    known = {" ".join(words) for before in _before(part) for words in demo_sentences(before).words}
    draws, names = _Draws(1, list(SIZES).index(part)), _names(part)
    templates = _TEMPLATES.strip().split("\n")
    words: list[list[str]] = []
    tags: list[list[str]] = []
    while len(words) < SIZES[part]:
        row, told = _filled(draws.of(templates), names, draws)
        if " ".join(row) not in known:
            known.add(" ".join(row))
            words.append(row)
            tags.append(told)
    return TaggedSentences(f"demo ({part})", words, tags, list(range(1, len(words) + 1)), "iob2")


def _before(part: Part) -> list[Part]:
    order: list[Part] = ["train", "validation", "test"]
    return order[: order.index(part)]


def _names(part: Part) -> list[str]:
    """Family names, which towns and companies have too."""
    number = list(SIZES).index(part)
    made: dict[str, None] = {}
    draws = _Draws(0)
    while len(made) < len(SIZES) * NAMES_PER_PART:
        middle = draws.of(_CODAS) + (draws.of(_VOWELS) if draws.below(3) == 0 else "")
        made[(draws.of(_ONSETS) + draws.of(_VOWELS) + middle + draws.of(_ENDS)).capitalize()] = None
    pools = [list(made)[place * NAMES_PER_PART : (place + 1) * NAMES_PER_PART] for place in range(len(SIZES))]
    shared = int(SHARED_NAMES * NAMES_PER_PART) if number else 0
    return pools[0][:shared] + pools[number][shared:]


def _filled(template: str, names: Sequence[str], draws: _Draws) -> tuple[list[str], list[str]]:
    """A sentence as words and tags."""
    words: list[str] = []
    tags: list[str] = []
    place = 0
    for slot in _SLOT.finditer(template):
        _add(template[place : slot.start()], "", words, tags)
        kind, capital = slot[1], bool(slot[2])
        phrase = _PHRASES[kind](names, draws)
        _add(phrase[:1].upper() + phrase[1:] if capital else phrase, kind if kind.isupper() else "", words, tags)
        place = slot.end()
    _add(template[place:], "", words, tags)
    for place, (word, following) in enumerate(pairwise(words)):
        if word in ("a", "A") and following[0] in "aeiou":
            words[place] = word + "n"
    return words, tags


def _add(phrase: str, kind: str, words: list[str], tags: list[str]) -> None:
    if phrase.startswith("'s"):  # which is a word of its own after a name only
        words.append("'s")
        tags.append(OUTSIDE)
        phrase = phrase[2:]
    cut = [word.text for word in split_words(phrase)]
    words += cut
    free = 1 if kind == "DATE" and cut[0].lower() == "on" else 0  # "on Monday": the preposition is no part of it
    marked = [f"B-{kind}", *[f"I-{kind}"] * len(cut)][: len(cut) - free] if kind else []
    tags += [OUTSIDE] * (len(cut) - len(marked)) + marked


def _person(names: Sequence[str], draws: _Draws) -> str:
    form = draws.below(4)
    if form == 0:
        return draws.of(names)
    return f"{draws.of(_FIRST)} {draws.of(names)}" if form < 3 else f"{draws.of(_FIRST)[0]}. {draws.of(names)}"


def _organisation(names: Sequence[str], draws: _Draws) -> str:
    form, name = draws.below(6), draws.of(names)
    if form == 0:
        return name
    if form == 1:
        return f"{name} and Sons"
    if form == 2:
        return f"the {draws.of(_PUBLIC)} of {name}"
    return f"{name} {draws.of(_TRADES if form < 5 else _PUBLIC)}"


def _place(names: Sequence[str], draws: _Draws) -> str:
    form = draws.below(6)
    return f"{('Lower', 'Port')[form]} {draws.of(names)}" if form < 2 else draws.of(names)


def _date(_: Sequence[str], draws: _Draws) -> str:
    form, year = draws.below(4), str(1850 + draws.below(170))
    if form == 0:
        return f"on {draws.of(_DAYS)}"
    if form == 1:
        return f"on {draws.below(28) + 1} {draws.of(_MONTHS)} {year}"
    return f"last {draws.of(_MONTHS)}" if form == 2 else f"on {draws.of(_MONTHS)} {draws.below(28) + 1}, {year}"


_PHRASES: dict[str, Callable[[Sequence[str], _Draws], str]] = {
    "PER": _person,
    "ORG": _organisation,
    "LOC": _place,
    "DATE": _date,
    "role": lambda _, draws: draws.of(_ROLES),
    "noun": lambda _, draws: draws.of(_NOUNS),
    "adjective": lambda _, draws: draws.of(_ADJECTIVES),
    "number": lambda _, draws: str(2 + draws.below(90)),
}
