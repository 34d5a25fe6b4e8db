"""Names of numbers: spelled as a person would, all readable back, and a split that is new and still learnable."""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from functools import lru_cache
from itertools import pairwise

import pytest

from weft.data.number_names import LIMIT, demo_numbers, demo_pairs, english, french
from weft.errors import ConfigError

# number: English | French; written by hand
TABLE = """
0: zero | zéro
1: one | un
2: two | deux
3: three | trois
4: four | quatre
5: five | cinq
6: six | six
7: seven | sept
8: eight | huit
9: nine | neuf
10: ten | dix
11: eleven | onze
12: twelve | douze
13: thirteen | treize
14: fourteen | quatorze
15: fifteen | quinze
16: sixteen | seize
17: seventeen | dix-sept
18: eighteen | dix-huit
19: nineteen | dix-neuf
20: twenty | vingt
21: twenty-one | vingt et un
22: twenty-two | vingt-deux
29: twenty-nine | vingt-neuf
30: thirty | trente
31: thirty-one | trente et un
40: forty | quarante
41: forty-one | quarante et un
44: forty-four | quarante-quatre
50: fifty | cinquante
51: fifty-one | cinquante et un
60: sixty | soixante
61: sixty-one | soixante et un
62: sixty-two | soixante-deux
69: sixty-nine | soixante-neuf
70: seventy | soixante-dix
71: seventy-one | soixante et onze
72: seventy-two | soixante-douze
76: seventy-six | soixante-seize
77: seventy-seven | soixante-dix-sept
79: seventy-nine | soixante-dix-neuf
80: eighty | quatre-vingts
81: eighty-one | quatre-vingt-un
82: eighty-two | quatre-vingt-deux
89: eighty-nine | quatre-vingt-neuf
90: ninety | quatre-vingt-dix
91: ninety-one | quatre-vingt-onze
96: ninety-six | quatre-vingt-seize
97: ninety-seven | quatre-vingt-dix-sept
99: ninety-nine | quatre-vingt-dix-neuf
100: one hundred | cent
101: one hundred one | cent un
111: one hundred eleven | cent onze
120: one hundred twenty | cent vingt
121: one hundred twenty-one | cent vingt et un
171: one hundred seventy-one | cent soixante et onze
180: one hundred eighty | cent quatre-vingts
181: one hundred eighty-one | cent quatre-vingt-un
191: one hundred ninety-one | cent quatre-vingt-onze
200: two hundred | deux cents
201: two hundred one | deux cent un
280: two hundred eighty | deux cent quatre-vingts
400: four hundred | quatre cents
420: four hundred twenty | quatre cent vingt
480: four hundred eighty | quatre cent quatre-vingts
900: nine hundred | neuf cents
999: nine hundred ninety-nine | neuf cent quatre-vingt-dix-neuf
1000: one thousand | mille
1001: one thousand one | mille un
1021: one thousand twenty-one | mille vingt et un
1080: one thousand eighty | mille quatre-vingts
1100: one thousand one hundred | mille cent
1200: one thousand two hundred | mille deux cents
1789: one thousand seven hundred eighty-nine | mille sept cent quatre-vingt-neuf
1999: one thousand nine hundred ninety-nine | mille neuf cent quatre-vingt-dix-neuf
2000: two thousand | deux mille
2100: two thousand one hundred | deux mille cent
4020: four thousand twenty | quatre mille vingt
10000: ten thousand | dix mille
11011: eleven thousand eleven | onze mille onze
20300: twenty thousand three hundred | vingt mille trois cents
21000: twenty-one thousand | vingt et un mille
71071: seventy-one thousand seventy-one | soixante et onze mille soixante et onze
80000: eighty thousand | quatre-vingt mille
80080: eighty thousand eighty | quatre-vingt mille quatre-vingts
81000: eighty-one thousand | quatre-vingt-un mille
90000: ninety thousand | quatre-vingt-dix mille
91091: ninety-one thousand ninety-one | quatre-vingt-onze mille quatre-vingt-onze
100000: one hundred thousand | cent mille
100100: one hundred thousand one hundred | cent mille cent
101000: one hundred one thousand | cent un mille
101001: one hundred one thousand one | cent un mille un
123405: one hundred twenty-three thousand four hundred five | cent vingt-trois mille quatre cent cinq
180000: one hundred eighty thousand | cent quatre-vingt mille
200000: two hundred thousand | deux cent mille
200200: two hundred thousand two hundred | deux cent mille deux cents
280280: two hundred eighty thousand two hundred eighty | deux cent quatre-vingt mille deux cent quatre-vingts
300001: three hundred thousand one | trois cent mille un
500016: five hundred thousand sixteen | cinq cent mille seize
700080: seven hundred thousand eighty | sept cent mille quatre-vingts
880000: eight hundred eighty thousand | huit cent quatre-vingt mille
900000: nine hundred thousand | neuf cent mille
"""
ROWS = [re.fullmatch(r"(\d+): (.+) \| (.+)", line).groups() for line in TABLE.strip().splitlines()]

IN_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand"
)
IN_FRENCH = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize vingt vingts trente "
    "quarante cinquante soixante et cent cents mille"
)
ENGLISH_WORDS, FRENCH_WORDS = IN_ENGLISH.split(), IN_FRENCH.split()
ENGLISH_VALUES = dict(zip(ENGLISH_WORDS, [*range(20), *range(20, 100, 10), 100, 1000], strict=True))
FRENCH_VALUES = dict(zip(FRENCH_WORDS, [*range(17), 20, 20, 30, 40, 50, 60, 0, 100, 100, 1000], strict=True))
MULTIPLE = "|".join(FRENCH_WORDS[2:10])
WRONG_FRENCH = [  # what must stand nowhere, and a name where it does
    (r"^un mille", "un mille deux"),
    (r"\bun cent", "mille un cent"),
    (r"milles", "deux milles"),
    (r"cents.", "deux cents mille"),
    (r"vingts.", "quatre-vingts-un"),
    (rf"\b(?:{MULTIPLE}) cent$", "mille deux cent"),
    (r"(?:^|mille )cents", "mille cents"),
    (r"quatre-vingt$", "cent quatre-vingt"),
    (r"(?<!quatre-)vingts", "cent vingts"),
    (r"quatre-vingt et", "quatre-vingt et un"),
    (r"-et|et-", "vingt-et-un"),
    (r"(?<!e)(?<!vingt) et ", "cent et un"),
    (r" et (?!un\b|onze\b)", "vingt et deux"),
    (r"(?<!quatre-)\bvingt-un", "vingt-un"),
    (r"e-(?:un|onze)\b", "soixante-onze"),
    (r"(?:vingt|trente|quarante|cinquante|soixante) (?!et |mille)", "vingt deux"),
    (r"(?<!soixante) et onze", "trente et onze"),
    (r".zéro|zéro.", "mille zéro"),
    (r"  |^ | $|,|[A-Z]", "mille  un"),
]
WRONG_ENGLISH = [
    (r"\band\b", "one hundred and one"),
    (r"^hundred|thousand hundred|^thousand", "hundred"),
    (r"y (?!thousand)", "twenty one"),
    (r"(?<!y)-|y-(?!(?:one|two|three|four|five|six|seven|eight|nine)\b)", "hundred-one"),
    (r".zero|zero.", "one hundred zero"),
    (r"s\b", "two thousands"),
    (r"  |^ | $|,|[A-Z]", "one thousand, one"),
]
# every name below 1 000 alone, before and after "mille", and a walk through all the others
SOME = [*range(3_000), *range(3_000, LIMIT, 1_000), *range(3_001, LIMIT, 97)]


@lru_cache(maxsize=3_000)
def value_below_1000(name, language):
    """What a name adds up to; hundreds multiply, and so does the twenty of "quatre-vingt"."""
    values = {"en": ENGLISH_VALUES, "fr": FRENCH_VALUES}[language]
    total = 0
    for word in re.findall(r"quatre-vingts?|[a-zé]+", name):
        if word.startswith("quatre-"):
            total += 80
        elif values[word] == 100:
            total = 100 * max(total, 1)
        else:
            total += values[word]
    return total


def value(name, language):
    before, word, after = name.partition({"en": "thousand", "fr": "mille"}[language])
    low = value_below_1000(after.strip(), language)
    if not word:
        return value_below_1000(before, language)
    return 1000 * (value_below_1000(before.strip(), language) or 1) + low


def unreadable(numbers):
    """The numbers with a name that does not lead back to them."""
    return [n for n in numbers if value(english(n), "en") != n or value(french(n), "fr") != n]


def misspelled(names, wrong):
    pattern = re.compile("|".join(pattern for pattern, _ in wrong))
    return [name for name in names if pattern.search(name)]


@pytest.mark.parametrize(("number", "in_english", "in_french"), ROWS, ids=[row[0] for row in ROWS])
def test_tricky_names(number, in_english, in_french):
    assert (english(int(number)), french(int(number))) == (in_english, in_french)


def test_the_table_is_long_enough_and_reads_back():
    assert len({row[0] for row in ROWS}) == len(ROWS) >= 80
    for number, in_english, in_french in ROWS:
        assert value(in_english, "en") == value(in_french, "fr") == int(number)


def test_names_can_be_read_back():
    assert unreadable(SOME) == []


@pytest.mark.slow
def test_all_names_can_be_read_back():
    """So they are all different too."""
    assert unreadable(range(LIMIT)) == []


def test_names_are_well_spelled():
    assert misspelled(map(french, SOME), WRONG_FRENCH) == []
    assert misspelled(map(english, SOME), WRONG_ENGLISH) == []
    assert {word for n in SOME for word in re.split("[ -]", french(n))} == set(FRENCH_WORDS)
    assert {word for n in SOME for word in re.split("[ -]", english(n))} == set(ENGLISH_WORDS)


@pytest.mark.parametrize(("pattern", "name"), WRONG_FRENCH + WRONG_ENGLISH, ids=lambda case: case)
def test_every_rule_catches_a_mistake(pattern, name):
    assert re.search(pattern, name)


def test_the_parser_can_say_no(monkeypatch):
    monkeypatch.setitem(globals(), "french", lambda n: french_of(n).replace("soixante et onze", "soixante et un"))
    french_of = sys.modules["weft.data.number_names"].french
    assert unreadable(range(200)) == [71, 171]


@pytest.mark.parametrize("name", [english, french])
@pytest.mark.parametrize("number", [-1, LIMIT])
def test_what_has_no_name_is_refused(name, number):
    with pytest.raises(ConfigError, match=f"n = {number}\nexpected a whole number from 0 to 999 999"):
        name(number)


def faults(train, test):
    """What is wrong with a split, in words."""
    found = []
    if set(train) & set(test):
        found.append("leak")
    if len({*train}) != len(train) or len({*test}) != len(test):
        found.append("twice")
    if not {n for n in range(1_000) if n not in test} <= set(train):
        found.append("a number below 1000 is missing")
    if not {n for n in range(1_000, LIMIT, 1_000) if n not in test} <= set(train):
        found.append("a round thousand is missing")
    for name in (english, french):
        seen = {word for n in train for word in name(n).split()}
        if not {word for n in test for word in name(n).split()} <= seen:
            found.append("unseen word")
    if not {n // 1_000 for n in test} <= {n // 1_000 for n in train}:
        found.append("unseen thousands")
    if not {n % 1_000 for n in test} <= {n % 1_000 for n in train if n >= 1_000}:
        found.append("unseen rest")
    return found


@pytest.fixture(scope="module")
def train():
    return demo_numbers("train")


@pytest.fixture(scope="module")
def test():
    return demo_numbers("test")


def test_the_split_is_new_and_learnable(train, test):
    assert faults(train, test) == []
    assert len(test) == 1_000 and 19_000 <= len(train) <= 21_000
    assert Counter(len(str(n)) for n in test if n % 1_000 or n == 0) == {1: 3, 2: 10, 3: 100, 4: 200, 5: 300, 6: 360}
    assert sum(n >= 1_000 and n % 1_000 == 0 for n in test) == 27
    sizes = Counter(len(str(n)) for n in train)
    assert sizes[1] == 7 and sizes[2] == 80 and sizes[3] == 800 and min(sizes[4], sizes[5], sizes[6]) >= 4_000


def test_the_test_asks_for_the_irregular_forms(test):
    names = "\n".join(map(french, test))
    for form in (r"quatre-vingts$", r"quatre-vingt mille", r" cents$", r" cent mille", r"et onze", r"et un mille"):
        assert len(re.findall(form, names, re.MULTILINE)) >= 3, form


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda train, test: [*train, test[0]], "leak"),
        (lambda train, test: [*train, train[0]], "twice"),
        (lambda train, test: [n for n in train if n != 0], "a number below 1000 is missing"),
        (lambda train, test: [n for n in train if n != train_round(train)], "a round thousand is missing"),
        (lambda train, test: [n for n in train if "seize" not in french(n)], "unseen rest"),
        (lambda train, test: [n for n in train if "soixante-dix-sept" not in french(n)], "unseen word"),
        (lambda train, test: [n for n in train if not 541_000 <= n < 542_000], "unseen thousands"),
    ],
)
def test_a_spoiled_split_is_noticed(train, test, spoil, fault):
    assert fault in faults(spoil(train, test), test)


def train_round(train):
    return next(n for n in train if n and n % 1_000 == 0)


def test_the_order_is_mixed(train, test):
    for numbers in (train, test):
        sizes = [len(str(n)) for n in numbers]
        halves = [Counter(sizes[: len(sizes) // 2]), Counter(sizes[len(sizes) // 2 :])]
        for digits in (3, 4, 5, 6):
            few, many = sorted(half[digits] for half in halves)
            assert many <= 1.6 * few, f"{digits} digits: {few} and {many}"
        rises = sum(a < b for a, b in pairwise(numbers)) / len(numbers)
        assert 0.4 < rises < 0.6


def test_pairs_are_the_names_of_the_numbers(train, test):
    for part, numbers in (("train", train), ("test", test)):
        pairs = demo_pairs(part)
        assert pairs == [(english(n), french(n)) for n in numbers]
        assert len({source for source, _ in pairs}) == len({target for _, target in pairs}) == len(pairs)
    assert demo_pairs("test") == demo_pairs("test")


def test_they_are_the_same_in_another_process_and_another_year():
    code = (
        "import hashlib, sys; from weft.data.number_names import demo_pairs as d; "
        "print(hashlib.sha256(repr([d('train'), d('test')]).encode()).hexdigest(), 'torch' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    here = hashlib.sha256(repr([demo_pairs("train"), demo_pairs("test")]).encode()).hexdigest()
    assert run.stdout.split() == [here, "False"]
    assert here[:16] == "c0923ef2b666a34d", "other data than before: measured values of the demo no longer compare"


def test_there_are_two_parts():
    with pytest.raises(ConfigError, match="did you mean 'test'"):
        demo_numbers("tset")
    with pytest.raises(ConfigError, match="part = 'validation'\nknown: test, train"):
        demo_pairs("validation")
