"""Attention maps as they are shown: which part of a model each belongs to, and what its rows and columns are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from weft.analysis.capturing import AttentionMap, site_of
from weft.analysis.maps import as_array, rollout
from weft.analysis.view import MapView, Side
from weft.blocks.attention import Grid
from weft.models.sites import AttentionSite, Rows
from weft.tasks.classify.answers import Answer
from weft.text import Tokenizer
from weft.text.readable import shown_token

Sides = Callable[[AttentionSite, Rows], Side]
ONLY_STACK = "layers"  # the part of a model that has one stack
MAX_ANSWERS, MIN_PROBABILITY = 5, 0.0005  # of the answers that are shown


def map_views(maps: Mapping[str, AttentionMap], sides: Sides) -> tuple[MapView, ...]:
    """One for each attention that ran, of the first row of the batch; `sides` has the labels of what the model says
    that its rows and columns are."""
    found = []
    for name, seen in maps.items():
        site = site_of(name, seen)
        rows = (
            channel_sides(seen) if seen.over == "channels" else (sides(site, site.asking), sides(site, site.answering))
        )
        found.append(MapView(name, site.place.part or ONLY_STACK, as_array(seen.weights[0]), *rows, seen.core.rows))
    return tuple(found)


def rollouts_of(views: Iterable[MapView], maps: Mapping[str, AttentionMap]) -> dict[str, NDArray[np.float64]]:
    """For each part in which the model says that its stream hears of others by these maps alone; no meaning where
    weights are no shares, and where channels look at each other all have seen everything."""
    parts: dict[str, list[MapView]] = {}
    for one in views:
        parts.setdefault(one.part, []).append(one)
    return {
        part: rollout([layer.weights for layer in layers])
        for part, layers in parts.items()
        if all(layer.are_shares for layer in layers)
        and all(maps[one.name].over == "tokens" and site_of(one.name, maps[one.name]).rollout for one in layers)
    }


def channel_sides(seen: AttentionMap) -> tuple[Side, Side]:
    """The channels of a head."""
    side = Side(tuple(f"channel {n + 1}" for n in range(seen.weights.shape[-1])))
    return side, side


def places(grid: Grid, before: tuple[str, ...] = ()) -> Side:
    """The places of an image, after what has no place in it."""
    where = (f"row {y + 1}, column {x + 1}" for y in range(grid.rows) for x in range(grid.columns))
    return Side((*before, *where), grid)


# -- words ------------------------------------------------------------------------------------


def token_labels(tokenizer: Tokenizer, ids: Iterable[int], named: Mapping[int, str] | None = None) -> tuple[str, ...]:
    """Each token in readable form: spaces are visible, and a part of a letter is shown as its bytes."""
    own = named or {}
    known = tokenizer.vocab_size
    return tuple(
        own.get(n) or (shown_token(tokenizer, n) if n < known else f"<{n}>") or f"<{n}>" for n in map(int, ids)
    )


def answer_facts(answer: Answer) -> dict[str, str]:
    """What a classifier says, and how sure it is."""
    if isinstance(answer.label, float):
        return {"answer": f"{answer.label:.4g}"}
    likely = [(name, chance) for name, chance in answer.probabilities.items() if chance >= MIN_PROBABILITY][
        :MAX_ANSWERS
    ]
    return {"answer": ", ".join(f"{name} {percent(chance)}" for name, chance in likely)}


def percent(share: float) -> str:
    """A probability in three letters or four."""
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"


def in_a_few_words(text: str, most: int = 60) -> str:
    """A title: one line, and not a long one."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
