"""Examples of what a model writes: after nothing, and after beginnings of validation texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from weft.errors import WeftError
from weft.tasks.examples import inside
from weft.tasks.generate.text_generator import samples_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_NEW_TOKENS = 80  # that are written
PROMPT_WORDS = 8  # words of a validation text that are the prompt
PROMPT_COUNT = 2
SAMPLE_WORDS, SAMPLE_TOKENS = 6, 60  # given and written where models are compared


def collect_texts(run: Run, data: Callable[[], Any]) -> dict[str, Any]:
    """With what really follows in the validation text."""
    try:
        found = _texts(run, data())
    except WeftError:  # its text is gone; it writes from nothing then
        found = _texts(run, None)
    asked = [{"text": one["prompt"] + (one["really"] or one["text"])} for one in found]
    return {"kind": "texts", "examples": found, "inside": inside(asked[::-1], "text")}


def continued(run: Run) -> dict[str, str]:
    """The first whole words of the validation text, unchanged, and what the run writes after them."""
    text = "".join(run.source().validation.pieces(stop=400))
    words = re.match(rf"\S*\s+((?:\S+\s+){{0,{SAMPLE_WORDS - 1}}}\S+)", text)  # the very first may be cut
    prompt = words[1] if words else text
    return {"prompt": prompt, "text": samples_of(run, [prompt], max_tokens=SAMPLE_TOKENS, seed=0)[0].text}


def _texts(run: Run, data: Any) -> list[dict[str, Any]]:
    """What it writes after nothing, and after beginnings of the validation text; there, what really follows."""
    validation = "" if data is None else "".join(data.validation.pieces(stop=20_000))
    asked = [("", ""), *_beginnings(validation)]
    samples = samples_of(run, [prompt for prompt, _ in asked], max_tokens=MAX_NEW_TOKENS, seed=0)
    return [
        {"prompt": prompt, "text": sample.text, "really": really}
        for (prompt, really), sample in zip(asked, samples, strict=True)
    ]


def _beginnings(text: str) -> Iterator[tuple[str, str]]:
    """Whole words from two places of a text, and what follows them there."""
    for number in range(PROMPT_COUNT):
        part = text[number * len(text) // PROMPT_COUNT :]
        found = re.match(rf"\S*\s+((?:\S+\s+){{{PROMPT_WORDS - 1}}}\S+)(.{{0,400}})", part, re.DOTALL)
        if found:
            yield found[1], found[2]
