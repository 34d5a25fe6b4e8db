"""What each variant writes of its own, from the same beginning: numbers do not show how a text reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

WORDS = 6  # of the held-out text that are given
TOKENS = 60  # that are written


def sample_of(out: Path) -> dict[str, str] | None:
    """A beginning from the held-out part and what the run makes of it; None for a task that does not write."""
    from weft.tasks.run import Run

    run = Run(out)
    if run.task == "generate":
        prompt = _beginning(run)
        text = run.generate(prompt, max_tokens=TOKENS, seed=0)
        assert isinstance(text, str)
        return {"prompt": prompt, "text": text}
    if run.task == "translate":
        source = _first_source(run.config.data)
        return {"prompt": source, "text": run.translate(source).text}
    return None


def _beginning(run: Any) -> str:
    """The first whole words of the held-out text, as they stand there; the very first may be cut."""
    text = "".join(run.source().validation.pieces(stop=400))
    found = re.match(rf"\S*\s+((?:\S+\s+){{0,{WORDS - 1}}}\S+)", text)
    return found[1] if found else text


def _first_source(config: Any) -> str:
    """The first text that was held out."""
    from weft.tasks.pair_tables import read_pair_data

    return str(read_pair_data(config).validation.sources[0])
