"""Names of numbers, English and French: the embedded pairs for learning to translate.

Rules that can be learned exactly, and irregular enough to be worth it: "eighty" is "quatre-vingts", but "eighty-one" is
"quatre-vingt-un" and "eighty thousand" is "quatre-vingt mille".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from weft.data.order import Shuffle
from weft.errors import ConfigError, did_you_mean

Part = Literal["train", "test"]
PARTS = ("train", "test")
LIMIT = 1_000_000  # the first number without a name here
SEED = 0
_ALWAYS_LEARNED = (0, 1)  # the word "zero" occurs in no other name; "one" vanishes from "mille" and "cent"
_STRATA = (  # numbers, how many of them are test, how many of the others are train
    (range(2, 10), 3, 5),
    (range(10, 100), 10, 80),
    (range(100, 1_000), 100, 800),
    (range(1_000, LIMIT, 1_000), 27, 972),  # the round thousands, with all forms that stand before "mille"
    (range(1_000, 10_000), 200, 4_000),
    (range(10_000, 100_000), 300, 6_000),
    (range(100_000, LIMIT), 360, 8_000),
)

_ENGLISH = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_ENGLISH_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_FRENCH = (
    *("zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"),
    *("dix", "onze", "douze", "treize", "quatorze"),
    *("quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"),
)
_FRENCH_TENS = {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante", 80: "quatre-vingt"}


def english(n: int) -> str:
    """The American name, without "and": 1 405 is "one thousand four hundred five"."""
    thousands, rest = _halves(n)
    words = [_english_below_1000(thousands), "thousand"] if thousands else []
    if rest or not thousands:
        words.append(_english_below_1000(rest))
    return " ".join(words)


@lru_cache(maxsize=1_000)
def _english_below_1000(n: int) -> str:
    hundreds, rest = divmod(n, 100)
    words = [_ENGLISH[hundreds], "hundred"] if hundreds else []
    if rest >= 20:
        tens, unit = divmod(rest, 10)
        words.append(_ENGLISH_TENS[tens] + (f"-{_ENGLISH[unit]}" if unit else ""))
    elif rest or not hundreds:
        words.append(_ENGLISH[rest])
    return " ".join(words)


def french(n: int) -> str:
    """The name in the spelling of before 1990: 71 281 is "soixante et onze mille deux cent quatre-vingt-un"."""
    thousands, rest = _halves(n)
    words = [_french_below_1000(thousands, last=False)] if thousands > 1 else []
    if thousands:
        words.append("mille")
    if rest or not thousands:
        words.append(_french_below_1000(rest, last=True))
    return " ".join(words)


@lru_cache(maxsize=2_000)
def _french_below_1000(n: int, *, last: bool) -> str:
    """`last`: nothing follows, so that a multiple of "cent" or "vingt" takes its s."""
    hundreds, rest = divmod(n, 100)
    words = [_FRENCH[hundreds]] if hundreds > 1 else []
    if hundreds:
        words.append("cents" if hundreds > 1 and last and not rest else "cent")
    if rest or not hundreds:
        words.append(_french_below_100(rest, last=last))
    return " ".join(words)


def _french_below_100(n: int, *, last: bool) -> str:
    if n < 20:
        return _FRENCH[n]
    tens = n // 10 * 10
    if tens not in _FRENCH_TENS:  # 70 to 79 count on from sixty, 90 to 99 from eighty
        tens -= 10
    name, rest = _FRENCH_TENS[tens], n - tens
    if not rest:
        return name + "s" if tens == 80 and last else name
    joint = " et " if rest in (1, 11) and tens != 80 else "-"
    return f"{name}{joint}{_FRENCH[rest]}"


def _halves(n: int) -> tuple[int, int]:
    """The thousands, and what is left."""
    if not 0 <= n < LIMIT:
        raise ConfigError(f"n = {n}", expected="a whole number from 0 to 999 999")
    return divmod(n, 1_000)


def demo_numbers(part: Part) -> list[int]:
    """The numbers whose names are learned or asked for, in a fixed order that looks random; none is in both parts.

    The 1 000 of the test are new as a whole only: each has its thousands, and what is left, in common with numbers to
    learn from, so that it can be put together from what was seen.
    """
    if part not in PARTS:
        raise ConfigError(f"part = {part!r}", advice=did_you_mean(part, PARTS))
    numbers = list(_ALWAYS_LEARNED) if part == "train" else []
    taken: set[int] = set()
    for place, (pool, asked, learned) in enumerate(_STRATA):
        first = np.arange(min(len(pool), 2 * (asked + learned)))  # more than enough to do without those taken
        order = [pool[index] for index in Shuffle(len(pool), SEED, place)[first].tolist()]
        fresh = [n for n in order if n not in taken][: asked + learned]
        taken.update(fresh)
        numbers += fresh[asked:] if part == "train" else fresh[:asked]
    shuffle = Shuffle(len(numbers), SEED, len(_STRATA))
    return [numbers[index] for index in shuffle[np.arange(len(numbers))].tolist()]


def demo_pairs(part: Part) -> list[tuple[str, str]]:
    """English and French names of `demo_numbers(part)`, in that order."""
    return [(english(n), french(n)) for n in demo_numbers(part)]
