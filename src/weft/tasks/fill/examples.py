"""Examples of what a model fills in: validation sentences in which a word is missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from weft.tasks.fill.filler import Filler

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_SENTENCES = 6  # with a gap


def collect_gaps(run: Run, data: Any) -> list[dict[str, Any]]:
    """Validation sentences without their longest word: the likeliest words there, and the right one."""
    if data is None:
        return []
    text = "".join(data.validation.pieces(stop=100_000))
    lines = [line.strip() for line in re.split(r"(?<=[.!?])\s+|\n+", text) if 6 <= len(line.split()) <= 24]
    lines = [line for line in lines if re.search(r"\w", line)]
    chosen = lines[:: max(1, len(lines) // MAX_SENTENCES)][:MAX_SENTENCES]
    asked = []
    for line in chosen:
        words = re.findall(r"\w+", line)
        word = max(words, key=len)
        asked.append((re.sub(rf"\b{re.escape(word)}\b", "[MASK]", line, count=1), word))
    found = Filler(run).fill([line for line, _ in asked]) if asked else []
    return [
        {**one.to_dict(), "really": word} for one, (_, word) in zip(found, asked, strict=True) if len(one.gaps) == 1
    ]
