"""Attention maps as they are shown: which part of a model each belongs to, and what its rows and columns stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from weft.analysis.capturing import AttentionMap
from weft.analysis.maps import as_array, rollout
from weft.analysis.view import MapView, Side
from weft.blocks.attention import Grid
from weft.tasks.answers import Answer
from weft.text import Tokenizer
from weft.text.readable import shown_token

Sides = Callable[[str, AttentionMap], tuple[Side, Side]]
ACROSS = "decoder → encoder"
SHOWN, LEAST = 5, 0.0005  # answers that are told: so many at most, and how likely they must be


def part_of(name: str, *, across: bool = False) -> str:
    """The stack that an attention belongs to, from the name of its module; `across`: it looks at what was read."""
    if across or name.endswith("cross_attention"):
        return ACROSS
    if stage := re.match(r"stages\.(\d+)\..*\b(spatial|channel)\b", name):
        return f"stage {int(stage[1]) + 1}, {'windows' if stage[2] == 'spatial' else 'channels'}"
    first = name.partition(".")[0]
    return first if first in ("encoder", "decoder") else "layers"


def map_views(maps: Mapping[str, AttentionMap], sides: Sides, *, across: bool = False) -> tuple[MapView, ...]:
    """One for each attention that ran, of the first row of the batch."""
    found = []
    for name, seen in maps.items():
        asking, answering = channel_sides(seen) if seen.over == "channels" else sides(name, seen)
        found.append(MapView(name, part_of(name, across=across), as_array(seen.weights[0]), asking, answering))
    return tuple(found)


def rollouts_of(maps: Iterable[MapView]) -> dict[str, NDArray[np.float64]]:
    """For each part whose layers all look at the same stream; where a part looks elsewhere it has no meaning, and where
    channels look at each other all have seen everything."""
    parts: dict[str, list[MapView]] = {}
    for one in maps:
        parts.setdefault(one.part, []).append(one)
    return {
        part: rollout([layer.weights for layer in layers])
        for part, layers in parts.items()
        if part in ("layers", "encoder", "decoder")
        and all(layer.answering == layers[0].answering for layer in layers)
        and all(layer.weights.shape[1] == layer.weights.shape[2] == len(layer.asking.labels) for layer in layers)
        and not any(layer.answering.labels[:1] == ("channel 1",) for layer in layers)
    }


def channel_sides(seen: AttentionMap) -> tuple[Side, Side]:
    """The channels of a head."""
    side = Side(tuple(f"channel {n + 1}" for n in range(seen.weights.shape[-1])))
    return side, side


def places(grid: Grid, before: tuple[str, ...] = ()) -> Side:
    """The places of a picture, after what has no place in it."""
    where = (f"row {y + 1}, column {x + 1}" for y in range(grid.rows) for x in range(grid.columns))
    return Side((*before, *where), grid)


# -- words ------------------------------------------------------------------------------------


def token_labels(tokenizer: Tokenizer, ids: Iterable[int], named: Mapping[int, str] | None = None) -> tuple[str, ...]:
    """What each token stands for, to be read: spaces are seen, and a part of a letter is told by its bytes."""
    own = named or {}
    known = tokenizer.vocab_size
    return tuple(
        own.get(n) or (shown_token(tokenizer, n) if n < known else f"<{n}>") or f"<{n}>" for n in map(int, ids)
    )


def answer_facts(answer: Answer) -> dict[str, str]:
    """What a classifier says, and how sure it is."""
    if isinstance(answer.label, float):
        return {"answer": f"{answer.label:.4g}"}
    likely = [(name, chance) for name, chance in answer.probabilities.items() if chance >= LEAST][:SHOWN]
    return {"answer": ", ".join(f"{name} {percent(chance)}" for name, chance in likely)}


def percent(share: float) -> str:
    """A probability in three letters or four."""
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"


def in_a_few_words(text: str, most: int = 60) -> str:
    """A title: one line, and not a long one."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
