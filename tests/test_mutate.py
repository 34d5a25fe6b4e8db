"""The machinery that tries mutants, on a project of a few lines: it must also tell mutants that do nothing."""

from dataclasses import dataclass, replace

import pytest

import mutate
from mutations import ROOT, all_mutants


@dataclass(frozen=True)
class Toy:
    name: str
    old: str
    new: str
    path: str = "sums.py"
    tests: tuple[str, ...] = ("test_sums.py",)


SUMS = "def add(a, b):\n    return a + b  # both\n\n\ndef late():\n    from weft.later import two\n    return two\n"
TESTS = """
from weft.sums import add, late
seen = []

def test_zero(): assert add(0, 0) == 0
def test_add(): assert add(1, 2) == 3; seen.append(1)
def test_late(): assert late() == 2
def test_after_another(): assert not seen or add(0, 1) == 1
"""
KEPT, ADD, ZERO = (f"test_sums.py::test_{name}" for name in ("after_another", "add", "zero"))


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    (root / "src" / "weft").mkdir(parents=True)
    (root / "src" / "weft" / "__init__.py").touch()
    (root / "src" / "weft" / "sums.py").write_text(SUMS)
    (root / "src" / "weft" / "later.py").write_text("two = 2\n")
    (root / "test_sums.py").write_text(TESTS)
    (root / "test_wrong.py").write_text(TESTS + "\ndef test_wrong(): assert add(1, 1) == 3\n")
    (root / "pytest.ini").write_text("[pytest]\n")
    made = mutate.Trial(root, mutate.RUNNER)
    yield made
    made.close()


MINUS = Toy("minus", "a + b", "a - b")


@pytest.mark.parametrize("killer", [None, ADD, ZERO, "test_sums.py::test_gone"])
def test_a_mistake_is_found_whatever_the_table_says(trial, killer):
    assert trial.try_mutant(MINUS, killer) == ("killed", ADD)


@pytest.mark.parametrize("killer", [None, ADD])
def test_a_change_that_changes_nothing_survives(trial, killer):
    assert trial.try_mutant(replace(MINUS, new="b + a"), killer) == ("SURVIVED", None)


def test_the_changed_line_must_be_there_once(trial):
    assert trial.try_mutant(replace(MINUS, old="a * b"), ADD)[0].startswith("STALE: its line stands 0 times")
    assert trial.try_mutant(replace(MINUS, old="return"), ADD)[0].startswith("STALE: its line stands 2 times")


@pytest.mark.parametrize(
    "mutant",
    [replace(MINUS, new="a +"), replace(MINUS, old="def add(", new="def plus("), Toy("late", "2", "2 +", "later.py")],
    ids=["no Python", "no name to import", "no Python, imported by a test"],
)
def test_code_that_cannot_be_imported_proves_nothing(trial, mutant):
    verdict, killer = trial.try_mutant(mutant, ADD)
    assert verdict.startswith("BROKEN") and killer is None


def test_a_process_that_dies_proves_nothing(trial):
    assert trial.try_mutant(replace(MINUS, new="__import__('os')._exit(1)"), ADD)[0].startswith("BROKEN")


def test_a_test_that_fails_on_any_code_kills_nothing(trial):
    wrong = replace(MINUS, new="b + a", tests=("test_wrong.py",))
    assert trial.try_mutant(wrong, "test_wrong.py::test_wrong")[0].startswith("UNKNOWN")
    assert trial.try_mutant(replace(MINUS, tests=("test_wrong.py",)), None) == ("killed", "test_wrong.py::test_add")


def test_a_test_that_fails_only_after_another(trial):
    later = replace(MINUS, new="a + b if a else 0")
    assert trial.try_mutant(later, KEPT) == ("killed", None), "by the suite, and not by one test alone"


@pytest.mark.parametrize("likely", [[ADD], [ZERO, ADD], [ZERO, "test_sums.py::test_gone"], ["test_wrong.py"]])
def test_likely_tests_are_only_a_short_cut(trial, likely):
    assert trial.try_mutant(MINUS, None, likely)[0] == "killed"
    assert trial.try_mutant(replace(MINUS, new="b + a"), None, likely) == ("SURVIVED", None)


def test_the_table_keeps_what_was_found(tmp_path):
    a, b, c, other = (
        Toy(name, "", "", tests=(name if name == "other" else "suite",)) for name in ("a", "b", "c", "other")
    )
    table = mutate.Table(tmp_path / "killers.json")
    table.killers = {"b": "test_b", "gone": "test_gone", "c": "test_b", "a": "test_a"}
    table.write([a, b, c, other])
    again = mutate.Table(table.path)
    assert list(again.killers.items()) == [("a", "test_a"), ("b", "test_b"), ("c", "test_b")]
    assert again.of_relatives(Toy("new", "", "", tests=("suite",)), [a, b, c]) == ["test_b", "test_a"]
    assert again.of_relatives(b, [a, b, c]) == ["test_a", "test_b"] and again.of_relatives(other, [a, b, c]) == []


def test_every_mutant_has_its_line():
    """A line that moved or changed takes its mutants along."""
    mutants = all_mutants()
    assert len({mutant.name for mutant in mutants}) == len(mutants) > 400
    source = ROOT / "src" / "weft"
    stale = [m.name for m in mutants if (source / m.path).read_text(encoding="utf-8").count(m.old) != 1]
    assert stale == []
