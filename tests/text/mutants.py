"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

MERGES = ["tests/text/test_replay.py", "tests/text/test_schemes.py"]

MUTANTS = [
    Mutant(
        "cutting: merges in any order",
        "text/replay.py",
        old="pair = min(beside, key=ranks.__getitem__)",
        new="pair = beside[0]",
        tests=MERGES,
    ),
    Mutant(
        "cutting: merges from the right",
        "text/replay.py",
        old="(word[place], *word[place + 1 : place + 2]) != pair:",
        new="(word[place], *word[place + 1 : place + 2]) != pair or word[place + 1 : place + 3] == list(pair):",
        tests=MERGES,
    ),
    Mutant(
        "cutting: a merge does not wait for an earlier one",
        "text/replay.py",
        old="if any(ranks.get(beside, ranks[pair]) < ranks[pair] for beside in near):",
        new="if False:",
        tests=MERGES,
    ),
    Mutant("cutting: each pair counts once", "text/replay.py", old="beside.count(pair)", new="1", tests=MERGES),
    Mutant(
        "cutting: the end is not compared",
        "text/replay.py",
        old="if found.end != wanted:",
        new="if False:",
        tests=MERGES,
    ),
    Mutant(
        "cutting: a byte looks like a letter",
        "text/readable.py",
        old="if name in _BYTE_NAMES:",
        new="if False:",
        tests=MERGES,
    ),
    Mutant(
        "cutting: a terminal is given orders",
        "text/readable.py",
        old="if not letter.isprintable() or",
        new="if",
        tests=MERGES,
    ),
    Mutant(
        "cutting: marks hang in the air",
        "text/readable.py",
        old="return CARRIER + letter",
        new="return letter",
        tests=MERGES,
    ),
    Mutant(
        "cutting: one unknown word is one byte",
        "text/schemes.py",
        old="_lost_bytes(tokenizer, piece) if spelled and _has_unknown(tokenizer) else spelled",
        new="spelled",
        tests=MERGES,
    ),
    Mutant(
        "cutting: a line ends with its piece",
        "text/schemes.py",
        old="        if counts:\n",
        new="        if False:\n",
        tests=MERGES,
    ),
    Mutant("cutting: blank lines count", "text/schemes.py", old="if not is_blank]", new="]", tests=MERGES),
    Mutant(
        "cutting: attention costs n",
        "text/schemes.py",
        old="sum(length * length for length in self.lengths)",
        new="sum(length for length in self.lengths)",
        tests=MERGES,
    ),
    Mutant(
        "cutting: costs are relative to the dearest",
        "text/schemes.py",
        old="cheapest = min(costs)",
        new="cheapest = max(costs)",
        tests=MERGES,
    ),
]
