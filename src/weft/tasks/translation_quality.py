"""How good translations are: BLEU and chrF by sacrebleu, and how many are right to the letter.

BLEU (Papineni et al. 2002) and chrF (Popović 2015) as everybody reports them: sacrebleu's defaults, its own
tokenisation "13a" (Post 2018). Without sacrebleu, which is the extra `translate`, only the last is measured.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

HINT = "BLEU and chrF need sacrebleu:  pip install 'weft[translate]'"


def has_bleu() -> bool:
    """Whether sacrebleu is there."""
    return importlib.util.find_spec("sacrebleu") is not None


def quality(written: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """`bleu` and `chrf` from 0 to 100, `exact_match` from 0 to 1."""
    found: dict[str, float] = {}
    if has_bleu():
        import sacrebleu

        found["bleu"] = float(sacrebleu.corpus_bleu(list(written), [list(references)]).score)
        found["chrf"] = float(sacrebleu.corpus_chrf(list(written), [list(references)]).score)
    right = sum(_plain(ours) == _plain(theirs) for ours, theirs in zip(written, references, strict=True))
    return found | {"exact_match": right / max(1, len(references))}


def _plain(text: str) -> str:
    return " ".join(text.split())
