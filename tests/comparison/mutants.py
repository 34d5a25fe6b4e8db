"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

COMPARE = ["tests/comparison/test_compare.py"]
COMPARED = ["tests/comparison/test_page.py", "tests/comparison/test_variants.py"]

MUTANTS = [
    Mutant(
        "seeing: sizes are planned anew for each",
        "comparison/planning.py",
        old="_with(request.recipe, self.shared | (known or {}))",
        new="_with(request.recipe, self.shared)",
        tests=COMPARE,
    ),
    Mutant(
        "seeing: each has a tokenizer of its own",
        "comparison/planning.py",
        old="if config.tokenizer is not None and not any(",
        new="if False and not any(",
        tests=COMPARE,
    ),
    Mutant(
        "seeing: other data are compared",
        "comparison/outcome.py",
        old='if run.read_config()["data"]["fingerprint"] != trial.fingerprint:',
        new="if False:",
        tests=COMPARE,
    ),
    Mutant(
        "seeing: time before the comparison was killed does not count",
        "comparison/outcome.py",
        old='seconds = max(before.get("seconds", 0.0), _trained_for(out))',
        new='seconds = before.get("seconds", 0.0) * 0',
        tests=COMPARE,
    ),
    Mutant(
        "seeing: a setting beside its table is no TOML",
        "comparison/trials.py",
        old='return any(name.startswith(other + ".") for other in names)',
        new="return False",
        tests=COMPARE,
    ),
    Mutant(
        "seeing: a finished run is trained again",
        "comparison/session.py",
        old='return bool(order.reason) or read_outcome(self.folder(order)).get("done") is True',
        new="return bool(order.reason)",
        tests=COMPARE,
    ),
    Mutant(
        "seeing: the worst is best",
        "comparison/rows.py",
        old="sign = -1 if metric.more_is_better else 1",
        new="sign = 1",
        tests=COMPARED,
    ),
    Mutant(
        "seeing: two variants share a folder",
        "comparison/variants.py",
        old="while name.casefold() in taken:",
        new="while name in taken:",
        tests=COMPARED,
    ),
]
