"""How good translations are: BLEU and chrF by sacrebleu, and how many are right to the letter.

BLEU (Papineni et al. 2002) and chrF (Popović 2015) as everybody reports them: sacrebleu's defaults, its own
tokenisation "13a" (Post 2018). Without sacrebleu, which is the extra `translate`, only the last is measured.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

EDGES, SHORT_EDGES = (5, 10, 15, 20, 30), (2, 3, 4, 5, 6)  # words of a source: the most in each bucket but the last
MAX_SHORT_WORDS = 10  # words; where no source has more, the buckets are finer
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


def by_length(sources: Sequence[str], written: Sequence[str], references: Sequence[str]) -> list[dict[str, Any]]:
    """The same for sources of similar length, from the shortest on: buckets that hold pairs, each with its `words`,
    their mean, how many pairs, `bleu` and `exact_match`. The measures are those of each bucket alone."""
    lengths = [max(1, len(source.split())) for source in sources]
    edges = SHORT_EDGES if max(lengths, default=0) <= MAX_SHORT_WORDS else EDGES
    found = []
    for low, high in zip((1, *(edge + 1 for edge in edges)), (*edges, None), strict=True):
        places = [n for n, length in enumerate(lengths) if low <= length and (high is None or length <= high)]
        if not places:
            continue
        measures = quality([written[n] for n in places], [references[n] for n in places])
        measures.pop("chrf", None)
        words = f"{low}+" if high is None else f"{low}-{high}" if low < high else f"{low}"
        mean = sum(lengths[n] for n in places) / len(places)
        found.append({"words": words, "mean_words": round(mean, 2), "pairs": len(places), **measures})
    return found


def _plain(text: str) -> str:
    return " ".join(text.split())
