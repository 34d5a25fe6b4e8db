"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

PAGE_KIT = ["tests/pages"]

MUTANTS = [
    Mutant(
        "reporting: a gap is drawn over",
        "pages/charts.py",
        old="        elif found[-1]:\n            found.append([])\n",
        new="",
        tests=PAGE_KIT,
    ),
    Mutant(
        "reporting: cells are believed",
        "pages/tables.py",
        old='return html.escape("" if value is None else str(value))',
        new='return "" if value is None else str(value)',
        tests=PAGE_KIT,
    ),
    Mutant(
        "reporting: up is down",
        "pages/charts.py",
        old="TOP + tall * (1 - self.up.place(y))",
        new="TOP + tall * self.up.place(y)",
        tests=PAGE_KIT,
    ),
]
