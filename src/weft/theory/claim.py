"""What a claim is, what is found when it is computed, and how the two become a verdict.

A claim says where it stands and how it is computed. Computing gives values: what was measured on the package's own
code, what the document predicts for it, and what is right. The document's claim holds if all of its predictions agree
with what was measured, each within a tolerance that stands beside it; nobody writes a verdict down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch

from weft.theory.prediction import Measured, Prediction, number, prediction

HOLDS, WRONG = "holds", "document is wrong"


# -- what is found ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """One thing that was measured, beside what the document and what theory predict for it.

    document  None: the document says nothing about it
    right     None: as the document says
    unit      behind the numbers
    """

    what: str
    measured: Measured
    document: Prediction | None
    right: Prediction
    unit: str = ""

    @property
    def document_agrees(self) -> bool:
        """Whether the document is right about it, or silent."""
        return self.document is None or self.document.agrees(self.measured)

    @property
    def right_agrees(self) -> bool:
        """Whether theory and the package agree."""
        return self.right.agrees(self.measured)

    def told(self, side: Prediction | Measured | None) -> str:
        """One side with its unit."""
        if side is None:
            return "—"
        shown = number(side) if isinstance(side, float | int | bool | str) else str(side)
        return f"{shown} {self.unit}".rstrip()


def value(
    what: str,
    measured: Measured,
    *,
    document: Prediction | Measured | None = None,
    right: Prediction | Measured | None = None,
    unit: str = "",
) -> Value:
    """A value; where `right` is left out, the document is right."""
    said = None if document is None else prediction(document)
    truth = said if right is None else prediction(right)
    assert truth is not None, f"nothing is predicted for {what!r}"
    return Value(what, measured, said, truth, unit)


@dataclass(frozen=True)
class EvidenceTable:
    """Numbers in words, row by row."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Chart:
    """Lines to draw: (x, y) of each; either axis may be logarithmic."""

    title: str
    across: str
    up: str
    lines: dict[str, list[tuple[float, float]]]
    log_across: bool = False
    log_up: bool = False


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Measured]]) -> EvidenceTable:
    """A table of anything that can be told."""
    return EvidenceTable(title, tuple(heads), tuple(tuple(number(cell) for cell in row) for row in rows))


@dataclass(frozen=True)
class Evidence:
    """What computing a claim gave: values, the right statement in words, and tables and images to look at.

    brief  how many of the values are shown in one line
    """

    values: tuple[Value, ...]
    says: str
    tables: tuple[EvidenceTable, ...] = ()
    charts: tuple[Chart, ...] = ()
    brief: int = 1

    @property
    def holds(self) -> bool:
        """Whether everything the document says agrees with what was measured."""
        return all(value.document_agrees for value in self.values)

    @property
    def sound(self) -> bool:
        """Whether the package does what theory says; if not, a part of it is broken."""
        return all(value.right_agrees for value in self.values)


def evidence(*values: Value, says: str, brief: int = 1, show: Sequence[EvidenceTable | Chart] = ()) -> Evidence:
    """What was found, with tables and images sorted out."""
    return Evidence(
        values=values,
        says=" ".join(says.split()),
        tables=tuple(shown for shown in show if isinstance(shown, EvidenceTable)),
        charts=tuple(shown for shown in show if isinstance(shown, Chart)),
        brief=brief,
    )


# -- claims -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """What a document says, where, and how it is checked.

    id          T1 … T40
    title       in a few words
    says        as the document says it
    documents   which of the documents 000 … 004
    where       the place in them
    seconds     how long computing it takes, roughly
    on_request  it trains models, so it is computed only when it is asked for by its id
    needs       modules without which it cannot be computed
    """

    id: str
    title: str
    says: str
    documents: tuple[str, ...]
    where: str
    compute: Callable[[], Evidence]
    seconds: float = 0.1
    on_request: bool = False
    needs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Claim({self.id}, {self.title!r}, document {', '.join(self.documents)})"

    @property
    def order(self) -> int:
        """The number in its id."""
        return int(self.id[1:])

    @property
    def missing(self) -> list[str]:
        """What it needs and is not there."""
        return [name for name in self.needs if find_spec(name) is None]

    def check(self) -> Finding:
        """Compute it: the same numbers every time, in float64 unless it trains, and nothing else is changed.

        On one thread unless it trains: the sums then have one order, and what is so small would wait for threads longer
        than it computes."""
        if self.missing:
            return Finding(self)
        before, threads = torch.get_default_dtype(), torch.get_num_threads()
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(0)
            torch.set_default_dtype(torch.float32 if self.on_request else torch.float64)
            torch.set_num_threads(threads if self.on_request else 1)
            try:
                return Finding(self, self.compute())
            finally:
                torch.set_default_dtype(before)
                torch.set_num_threads(threads)


@dataclass(frozen=True)
class Finding:
    """A claim and what was found; `evidence` is None as long as it was not computed."""

    claim: Claim
    evidence: Evidence | None = None

    def __repr__(self) -> str:
        return f"Finding({self.id}, {self.verdict or 'not run'}: {self.claim.title})"

    @property
    def id(self) -> str:
        """The claim's."""
        return self.claim.id

    @property
    def holds(self) -> bool | None:
        """Whether the document is right."""
        return None if self.evidence is None else self.evidence.holds

    @property
    def verdict(self) -> str | None:
        """`holds` or `document is wrong`."""
        return None if self.evidence is None else HOLDS if self.evidence.holds else WRONG

    @property
    def sound(self) -> bool:
        """Whether the package does what theory says."""
        return self.evidence is None or self.evidence.sound

    @property
    def values(self) -> tuple[Value, ...]:
        """All that was measured."""
        return () if self.evidence is None else self.evidence.values

    @property
    def predicted(self) -> str | None:
        """What the document predicts, all of it in one line."""
        if self.evidence is None:
            return None
        return "; ".join(f"{v.what}: {v.told(v.document)}" for v in self.values if v.document is not None)

    @property
    def measured(self) -> str | None:
        """What was measured, all of it in one line."""
        return None if self.evidence is None else "; ".join(f"{v.what}: {v.told(v.measured)}" for v in self.values)

    @property
    def says(self) -> str:
        """The right statement; or why there is none yet."""
        if self.evidence is not None:
            return self.evidence.says
        if self.claim.missing:
            return f"Not run: it needs {', '.join(self.claim.missing)}."
        return (
            f"Not run: it trains models for about {told_seconds(self.claim.seconds)}. `weft theory {self.id}` runs it."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "id": self.id,
            "title": self.claim.title,
            "claim": self.claim.says,
            "document": ", ".join(self.claim.documents),
            "where": self.claim.where,
            "predicted": self.predicted,
            "measured": self.measured,
            "verdict": self.verdict,
            "says": self.says,
            "sound": self.sound,
            "values": [
                {
                    "what": v.what,
                    "document": None if v.document is None else str(v.document),
                    "right": str(v.right),
                    "tolerance": v.right.tolerance,
                    "measured": v.measured,
                    "unit": v.unit,
                }
                for v in self.values
            ],
        }


def told_seconds(seconds: float) -> str:
    """40 seconds, 3 minutes."""
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"


REGISTRY: dict[str, Claim] = {}


def claim(
    id: str,
    title: str,
    *,
    says: str,
    document: str,
    where: str,
    seconds: float = 0.1,
    on_request: bool = False,
    needs: tuple[str, ...] = (),
) -> Callable[[Callable[[], Evidence]], Callable[[], Evidence]]:
    """Put the claim that the function computes on the list. `document`: one number, or several with commas."""

    def register(compute: Callable[[], Evidence]) -> Callable[[], Evidence]:
        assert id not in REGISTRY, f"there are two claims {id}"
        documents = tuple(document.split(", "))
        REGISTRY[id] = Claim(id, title, " ".join(says.split()), documents, where, compute, seconds, on_request, needs)
        return compute

    return register
