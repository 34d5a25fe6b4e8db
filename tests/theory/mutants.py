"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

THEORY = ["tests/theory/test_claims.py"]

MUTANTS = [
    Mutant(
        "seeing: theory: the document is always right",
        "theory/claim.py",
        old="return self.document is None or self.document.agrees(self.measured)",
        new="return True",
        tests=THEORY,
    ),
    Mutant(
        "seeing: theory: nothing is ever broken",
        "theory/claim.py",
        old="return self.right.agrees(self.measured)",
        new="return True",
        tests=THEORY,
    ),
    Mutant(
        "seeing: theory: a page believes its claims",
        "theory/page.py",
        old="{html.escape(claim.says)}",
        new="{claim.says}",
        tests=THEORY,
    ),
    Mutant(
        "seeing: theory: additions count",
        "theory/counting.py",
        old="found[kind] += flops // 2",
        new="found[kind] += flops",
        tests=THEORY,
    ),
    Mutant(
        "seeing: theory: chance is not put back",
        "theory/claim.py",
        old="with torch.random.fork_rng(devices=[]), torch.enable_grad():",
        new="with torch.enable_grad():",
        tests=THEORY,
    ),
]
