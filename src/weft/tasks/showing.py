"""A few examples of what a run does, made once with its best weights and kept with it: what it writes, fills in,
answers, translates; and what its data are like. Everything follows from the run, so that it is the same each time."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from weft.data.token_file import checksum
from weft.errors import WeftError
from weft.models.pictures import PictureConfig
from weft.tasks.data_facts import Data, data_of, facts_of
from weft.tasks.purpose import purpose
from weft.tasks.showing_answers import INSIDE, answers_shown, few_words, pictures_shown

if TYPE_CHECKING:
    from weft.tasks.run import Run

EXAMPLES_FILE = "examples.json"
LARGEST = 200_000_000  # parameters; above, writing takes more than a few seconds
TOKENS = 80  # that are written
PROMPT = 8  # words of a held-out text that are given
BEGINNINGS = 2
SENTENCES = 6  # with a gap
TRANSLATIONS = 4
LONGEST_SOURCE = 15  # words; of longer ones, what looked at what is too large a picture
WORDS = 10  # with their neighbours
NEIGHBOURS = 6
LETTERS = 4  # of a word that says something

log = logging.getLogger(__name__)


def shown(run: Run) -> dict[str, Any]:
    """Everything, ready for JSON: `data` in numbers, `kind` of the examples, `examples`, and the inputs of which the
    attention is worth a look (`inside`); what cannot be had is told in `problems`. `weights`: of which it is."""
    found: dict[str, Any] = {"weights": checksum(run.directory.model_file), "problems": {}}

    def part(name: str, make: Callable[[], dict[str, Any]]) -> None:
        try:
            found.update(make())
        except Exception as error:  # a finished training is worth more than a page about it
            told = str(error) if isinstance(error, WeftError) else f"{type(error).__name__}: {error}"
            found["problems"][name] = told
            log.info("no %s for the report of %s: %s", name, run.directory.path, told)

    @functools.cache
    def data() -> Data | None:
        return data_of(run)

    with _undisturbed():
        part("data", lambda: {"data": {} if (read := data()) is None else facts_of(read)})
        part("examples", lambda: _examples(run, data))
    return found


def is_current(run: Run, found: dict[str, Any]) -> bool:
    """Whether they are of the weights that the run has now."""
    return found.get("weights") == checksum(run.directory.model_file)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What was warned of when the data were first read is not said again, and no random number is taken away."""
    logger = logging.getLogger("weft.data")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        logger.setLevel(level)


def _examples(run: Run, data: Callable[[], Data | None]) -> dict[str, Any]:
    config = run.model_config
    if sum(p.numel() for p in config.skeleton().parameters()) > LARGEST:
        return {}
    if run.task == "embed":
        return {"kind": "neighbours", "examples": _neighbours(run)}
    if run.task in ("classify", "translate") and data() is None:
        return {}
    if isinstance(config, PictureConfig):
        return {"kind": "pictures", **pictures_shown(run, data())}
    if run.task == "classify":
        return {"kind": "answers", **answers_shown(run, data())}
    if run.task == "translate":
        found = _translations(run, data())
        return {"kind": "translations", "examples": found, "inside": _inside(found, "source")}
    if run.task == "fill" and purpose(config) != "read":
        found = _gaps(run, data())
        return {"kind": "gaps", "examples": found, "inside": _inside(found, "best")}
    if run.task == "fill":
        return {}
    try:
        found = _texts(run, data())
    except WeftError:  # its text is gone; it writes from nothing then
        found = _texts(run, None)
    asked = [{"text": one["prompt"] + (one["really"] or one["text"])} for one in found]
    return {"kind": "texts", "examples": found, "inside": _inside(asked[::-1], "text")}


def _inside(found: list[dict[str, Any]], name: str) -> list[list[str]]:
    """The inputs of which the attention is shown: a text each, or two."""
    return [[few_words(one[name])] for one in found[:INSIDE] if one[name].strip()]


# -- of each task -----------------------------------------------------------------------------


def _texts(run: Run, data: Any) -> list[dict[str, Any]]:
    """What it writes after nothing, and after beginnings of the held-out text; there, what really follows."""
    held_out = "" if data is None else "".join(data.validation.pieces(stop=20_000))
    asked = [("", ""), *_beginnings(held_out)]
    samples = run.samples([prompt for prompt, _ in asked], max_tokens=TOKENS, seed=0)
    return [
        {"prompt": prompt, "text": sample.text, "really": really}
        for (prompt, really), sample in zip(asked, samples, strict=True)
    ]


def _beginnings(text: str) -> Iterator[tuple[str, str]]:
    """Whole words from two places of a text, and what follows them there."""
    for number in range(BEGINNINGS):
        part = text[number * len(text) // BEGINNINGS :]
        found = re.match(rf"\S*\s+((?:\S+\s+){{{PROMPT - 1}}}\S+)(.{{0,400}})", part, re.DOTALL)
        if found:
            yield found[1], found[2]


def _gaps(run: Run, data: Any) -> list[dict[str, Any]]:
    """Held-out sentences in which the longest word is missing: what may stand there, and what does."""
    if data is None:
        return []
    text = "".join(data.validation.pieces(stop=100_000))
    lines = [line.strip() for line in re.split(r"(?<=[.!?])\s+|\n+", text) if 6 <= len(line.split()) <= 24]
    lines = [line for line in lines if re.search(r"\w", line)]
    chosen = lines[:: max(1, len(lines) // SENTENCES)][:SENTENCES]
    asked = []
    for line in chosen:
        words = re.findall(r"\w+", line)
        word = max(words, key=len)
        asked.append((re.sub(rf"\b{re.escape(word)}\b", "[MASK]", line, count=1), word))
    found = run.fill([line for line, _ in asked]) if asked else []
    return [
        {**one.to_dict(), "really": word} for one, (_, word) in zip(found, asked, strict=True) if len(one.gaps) == 1
    ]


def _translations(run: Run, data: Any) -> list[dict[str, Any]]:
    """Sources that were not learned from, what is made of them, what they are in truth, and what looked at what."""
    from weft.tasks.data_facts import judged_part
    from weft.tasks.translating import Translator

    pairs, translator = judged_part(data)[1], Translator(run)
    short = [n for n, text in enumerate(pairs.sources) if 2 <= len(text.split()) <= LONGEST_SOURCE]
    places = (short or list(range(len(pairs))))[:: max(1, len(short or pairs) // TRANSLATIONS)][:TRANSLATIONS]
    align = translator.model.looks is not None
    found = translator.translate([pairs.sources[n] for n in places], align=align)
    return [{**one.to_dict(), "really": pairs.targets[n]} for one, n in zip(found, places, strict=True)]


def _neighbours(run: Run) -> list[dict[str, Any]]:
    """Of frequent words that say something, the nearest ones."""
    words = [word for word in run.vectors.words.words if len(word) >= LETTERS][:WORDS]
    return [
        {"word": word, "neighbours": [(near.word, near.similarity) for near in run.similar(word, top=NEIGHBOURS)]}
        for word in words
    ]
