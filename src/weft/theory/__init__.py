"""Every claim of the documents, checked by computing on the package's own code.

    from weft.theory import check
    for finding in check("T7", "T13"):
        finding.verdict, finding.predicted, finding.measured

A new claim is a function with `@claim(…)` above it in any file of this folder.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from weft.index import by_id
from weft.theory.claim import REGISTRY as _REGISTRY
from weft.theory.claim import Claim, Evidence, Finding

__all__ = ["Claim", "Evidence", "Finding", "check", "claims"]


def claims() -> dict[str, Claim]:
    """All claims by their ids, in order."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return {claim.id: claim for claim in sorted(_REGISTRY.values(), key=lambda claim: claim.order)}


def check(*ids: str) -> list[Finding]:
    """What is found for these claims; without ids for all, and those that train models are left out."""
    known = claims()
    if ids:
        return [known[by_id(id, known)].check() for id in ids]
    return [Finding(claim) if claim.on_request else claim.check() for claim in known.values()]
