"""Softmax health: whether the attention of each head can still choose, and learn to choose otherwise.

A row of weights a = softmax(s) that lies on one key alone passes hardly any gradient to its scores: ∂aᵢ/∂sⱼ =
aᵢ(δᵢⱼ − aⱼ). Large scores do that, which is why they are divided by √width (Vaswani et al. 2017, section 3.2.1). A row
that lies on all keys alike passes some, but tells nothing apart. Both are seen in numbers here, for each head, from
the very scores that the model's cores take their softmax of.

with capture(model) as maps:
    model(tokens)
softmax_health([maps])
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from weft.analysis.capturing import AttentionMap, site_of
from weft.blocks.attention.softmax import softargmax
from weft.errors import UnsupportedError
from weft.models.sites import Place

SATURATED = 0.98  # a row whose largest weight is more has made its choice for good
MEASURES = ("entropy", "relative_entropy", "largest", "saturated", "variance", "gradient", "uniform")


@dataclass(frozen=True)
class HeadHealth:
    """One head, each number the mean over its rows that have at least two keys to choose between.

    rows              how many those were; padding does not count
    entropy           −Σ aᵢ·ln aᵢ, in nats
    relative_entropy  of the largest that is possible for the keys which the row may look at: 1 is everything alike
    largest           the largest weight of a row
    saturated         the share of rows whose largest weight is more than 0.98
    score_variance    of the scores that are in use, over the keys which the row may look at
    gradient          ‖∂a/∂s‖, the Frobenius norm
    uniform_gradient  what it would be if all keys weighed alike: √(n − 1)/n for n keys
    """

    rows: int
    entropy: float
    relative_entropy: float
    largest: float
    saturated: float
    score_variance: float
    gradient: float
    uniform_gradient: float

    @property
    def relative_gradient(self) -> float:
        """How much passes, where a row that weighs all alike is 1."""
        return self.gradient / self.uniform_gradient


@dataclass(frozen=True)
class LayerHealth:
    """All heads of one attention.

    name     of the module
    place    where it stands in the model, as people count: from 1
    unit     what is looked at: a token, a place of an image, a channel, a summary
    heads    one for each head; empty where there is no softmax
    without  why there is none
    """

    name: str
    place: Place
    unit: str
    heads: tuple[HeadHealth, ...]
    without: str | None = None

    def mean(self, measure: str) -> float:
        """Over the heads, of one of their numbers."""
        return sum(getattr(head, measure) for head in self.heads) / len(self.heads)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        told: dict[str, Any] = {"name": self.name, "part": self.place.part, "layer": self.place.number}
        if self.without is not None:
            return told | {"without": self.without}
        heads = [
            {"head": number, **{name: getattr(head, name) for name in HeadHealth.__dataclass_fields__}}
            for number, head in enumerate(self.heads, 1)
        ]
        return told | {"unit": self.unit, "heads": heads}


def softmax_health(looks: Iterable[Mapping[str, AttentionMap]]) -> list[LayerHealth]:
    """Of every attention that left a map, in the order in which they ran; several looks (one for each input) are
    counted together."""
    sums: dict[str, Tensor] = {}
    seen: dict[str, tuple[AttentionMap, str | None]] = {}
    for maps in looks:
        for name, found in maps.items():
            try:
                with torch.no_grad():
                    here = sum(_sums(part, reads_itself=_reads_itself(name, part)) for part in found.texts())
            except UnsupportedError as error:
                seen[name] = found, str(error).splitlines()[0]
                continue
            assert isinstance(here, Tensor)
            sums[name] = here if name not in sums else sums[name] + here
            seen.setdefault(name, (found, None))
    return [_layer(name, found, without, sums.get(name)) for name, (found, without) in seen.items()]


def row_measures(
    scores: Float[Tensor, "*rows S"], allowed: Bool[Tensor, "*rows S"]
) -> tuple[Float[Tensor, "*rows M"], Bool[Tensor, "*rows"]]:
    """The `MEASURES` of each row of scores, in float64, and which rows have at least two keys to choose between."""
    scores = scores.double()
    weights = softargmax(scores, allowed=allowed)
    count = allowed.sum(-1).double()
    entropy = -torch.special.xlogy(weights, weights).sum(-1)
    top, at = weights.max(-1)
    others = weights.scatter(-1, at[..., None], 0.0)
    # Σᵢⱼ (aᵢ(δᵢⱼ − aⱼ))², with 1 − a of the largest as the sum of the others: it may be far below a rounding of 1
    rest, squares = others.sum(-1), others.square().sum(-1)
    along = top.square() * (rest.square() + squares)
    across = (others.square() * ((1 - others).square() + (top.square() + squares)[..., None] - others.square())).sum(-1)
    mean = scores.masked_fill(~allowed, 0.0).sum(-1) / count.clamp(min=1)
    variance = (scores - mean[..., None]).masked_fill(~allowed, 0.0).square().sum(-1) / count.clamp(min=1)
    choosing = count >= 2
    full = count.clamp(min=2)
    measures = (
        entropy,
        entropy / full.log(),
        top,
        (top > SATURATED).double(),
        variance,
        (along + across).sqrt(),
        (full - 1).sqrt() / full,
    )
    return torch.stack(measures, -1), choosing


def _sums(found: AttentionMap, *, reads_itself: bool) -> Float[Tensor, "H M1"]:
    """The measures of each head summed over its rows, and how many rows those were."""
    if found.core.rows == "nothing":
        kind = type(found.core).__name__
        raise UnsupportedError(f"{kind} promises nothing of a row of its weights: entropy would mean nothing")
    scores, allowed = found.core.scored(found.query, found.key, found.mask)
    every = torch.ones((), dtype=torch.bool, device=scores.device) if allowed is None else allowed
    every = every.expand(scores.shape)
    if reads_itself and found.mask.keep is not None:
        every = every & found.mask.keep[:, None, :, None]  # padding asks too, but nobody listens
    total = scores.new_zeros(scores.shape[1], len(MEASURES) + 1, dtype=torch.float64)
    for row in range(len(scores)):  # one after the other: a long text has large tables
        measures, choosing = row_measures(scores[row], every[row])
        total[:, :-1] += measures.masked_fill(~choosing[..., None], 0.0).sum(1)
        total[:, -1] += choosing.sum(1)
    return total.cpu()


def _reads_itself(name: str, found: AttentionMap) -> bool:
    """Whether the tokens that ask are those that answer, so that padding among these is padding among those."""
    if found.over == "channels" or not site_of(name, found).reads_itself:
        return False
    return found.query.shape[2] == found.key.shape[2]


def _layer(name: str, found: AttentionMap, without: str | None, sums: Tensor | None) -> LayerHealth:
    place = site_of(name, found).place
    unit = "place" if found.core.unit == "token" and found.mask.grid else found.core.unit
    if without is None and sums is not None and not bool((sums[:, -1] > 0).all()):
        without = "no row has two keys to choose between"
    if without is not None or sums is None:
        return LayerHealth(name, place, unit, (), without)
    heads = []
    for *values, rows in sums.tolist():
        entropy, relative, top, saturated, variance, gradient, uniform = (value / rows for value in values)
        heads.append(HeadHealth(int(rows), entropy, relative, top, saturated, variance, gradient, uniform))
    return LayerHealth(name, place, unit, tuple(heads))


# -- in words ---------------------------------------------------------------------------------

NARROW = 0.9  # a head whose rows lie on one key by more, on average
WIDE = 0.98  # a head whose entropy is more of the largest possible
STUCK = 0.5  # a layer with more saturated rows
PASSING = 0.1  # of the gradient of a row that weighs all alike: less is little
MOST = 5


def health_sentences(layers: Iterable[LayerHealth], most: int = MOST) -> list[str]:
    """What stands out, the worst first: layers through which little is learned, heads that look at one thing alone,
    heads that tell nothing apart. At most so many; the last says how many more there are."""
    looked = [layer for layer in layers if layer.heads]
    without = [layer for layer in layers if not layer.heads]
    stuck = [layer for layer in looked if _is_stuck(layer)]
    told = [
        f"{layer.place.layer}: scores have a variance of {_short(layer.mean('score_variance'))}, "
        f"{_percent(layer.mean('saturated'))} of the rows are saturated: little can be learned through them"
        for layer in sorted(stuck, key=lambda layer: -layer.mean("saturated"))
    ]
    alike = [layer for layer in looked if len(layer.heads) > 1 and all(map(_is_wide, layer.heads))]
    heads = [
        (head, layer, number)
        for layer in looked
        if layer not in stuck and layer not in alike
        for number, head in enumerate(layer.heads, 1)
    ]
    told += [
        f"{layer.place.head(number)} puts {_percent(head.largest)} on one {layer.unit}"
        for head, layer, number in sorted(heads, key=lambda found: -found[0].largest)
        if head.largest > NARROW
    ]
    told += [f"{layer.place.layer}: all {len(layer.heads)} heads look at everything alike" for layer in alike]
    told += [
        f"{layer.place.head(number)} looks at everything alike"
        for head, layer, number in sorted(heads, key=lambda found: -found[0].relative_entropy)
        if _is_wide(head)
    ]
    if looked and not told:
        told = [_nothing(looked)]
    reasons: dict[str | None, list[str]] = {}  # always told: nobody would miss numbers that are not there
    for layer in without:
        reasons.setdefault(layer.without, []).append(layer.place.layer)
    room = max(1, most - len(reasons))
    told = told if len(told) <= room else [*told[: room - 1], f"and {len(told) - room + 1} more"]
    return [*told, *(f"{_joined(layers)}: {reason}" for reason, layers in reasons.items())]


def _joined(layers: list[str]) -> str:
    """A few by name."""
    return ", ".join(layers) if len(layers) <= 3 else f"{layers[0]}, {layers[1]} and {len(layers) - 2} more"


def _is_stuck(layer: LayerHealth) -> bool:
    return layer.mean("saturated") > STUCK and layer.mean("gradient") < PASSING * layer.mean("uniform_gradient")


def _is_wide(head: HeadHealth) -> bool:
    return head.relative_entropy > WIDE


def _nothing(layers: list[LayerHealth]) -> str:
    count = sum(len(layer.heads) for layer in layers)
    heads = [head for layer in layers for head in layer.heads]
    entropy = sum(head.relative_entropy for head in heads) / count
    saturated = sum(head.saturated for head in heads) / count
    return (
        f"{count} {'head' if count == 1 else 'heads'}, nothing stands out: entropy {_percent(entropy)} of the largest "
        f"possible, {_percent(saturated)} of the rows saturated"
    )


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _percent(share: float) -> str:
    """Rounded down: what is nearly all is not all."""
    return f"{math.floor(100 * share + 1e-9)} %"
