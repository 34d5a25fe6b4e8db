"""A few examples of what a run does, made once with its best weights and kept with it: what it writes, fills in,
answers, translates; and what its data are like. Everything follows from the run, so that it is the same each time."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from weft.data.token_file import checksum
from weft.errors import WeftError
from weft.tasks.data_facts import Data, data_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

EXAMPLES_FILE = "examples.json"
MAX_PARAMETERS = 200_000_000  # parameters; above, writing takes more than a few seconds
ATTENTION_EXAMPLES = 2  # of which the attention is shown
MAX_ATTENTION_WORDS = 24

log = logging.getLogger(__name__)


def collect_examples(run: Run) -> dict[str, Any]:
    """Everything, ready for JSON: `data` in numbers, `kind` of the examples, `examples`, and the inputs of which the
    attention is worth a look (`inside`); what fails is reported in `problems`. `weights`: of which it is."""
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
        part("data", lambda: {"data": {} if (read := data()) is None else read.facts()})
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
    if sum(p.numel() for p in run.model_config.skeleton().parameters()) > MAX_PARAMETERS:
        return {}
    return run.description.examples(run, data)


def inside(found: list[dict[str, Any]], name: str) -> list[list[str]]:
    """The inputs of which the attention is shown: a text each, or two."""
    return [[few_words(one[name])] for one in found[:ATTENTION_EXAMPLES] if one[name].strip()]


def few_words(text: str) -> str:
    """The beginning of a text: what looks at what is a square of its words."""
    return " ".join(text.split()[:MAX_ATTENTION_WORDS])
