"""What a model looks at in a picture: the maps of places, and of channels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from weft.analysis.capturing import AttentionMap
from weft.analysis.maps import watched
from weft.analysis.view import AttentionView, MapView, Side
from weft.blocks.attention import Grid
from weft.models import DaViT, ViT
from weft.models.pictures import PictureConfig, PictureModel
from weft.tasks.answers import answers_of, labels_of
from weft.tasks.classifying_pictures import Given, decoded
from weft.tasks.map_views import answer_facts, in_a_few_words, map_views, places, rollouts_of
from weft.tasks.picture_data import as_input
from weft.tasks.picture_form import form_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

CLASS_TOKEN, BORDER = "[CLS]", "border"


def picture_view(run: Run, given: Given) -> AttentionView:
    """The picture as the model saw it, every map of it, and what the model says it is."""
    form, model = form_of(run), cast(PictureModel, run.model)
    picture = decoded(form, given)
    pixels = as_input(np.stack([picture]), form.pixel_mean, form.pixel_deviation).to(run.device)
    states, grids, seen = _read(model, pixels)
    maps = tuple(_views(model, seen, grids))
    facts = {"picture": f"{picture.shape[1]} × {picture.shape[2]} pixels"}
    facts["places"] = ", then ".join(f"{grid.rows} × {grid.columns}" for grid in grids)
    head = cast(PictureConfig, run.model_config).head
    if head.classes:
        with torch.inference_mode():
            logits = model.class_logits(states).cpu().double().numpy()
        facts |= answer_facts(answers_of(logits, labels_of(head, form.separator))[0])
    if any(BORDER in one.answering.labels for one in maps):
        facts[BORDER] = "zeros at the edge that fill up the last windows: they are looked at too"
    title = "a picture" if isinstance(given, np.ndarray) else in_a_few_words(str(given))
    shown = _covered(model, picture.transpose(1, 2, 0), grids[0])
    kind = run.model_config.kind
    return AttentionView(title, kind, maps, rollouts_of(maps) if not isinstance(model, DaViT) else {}, shown, facts)


def _read(model: PictureModel, pixels: Tensor) -> tuple[Tensor, list[Grid], dict[str, AttentionMap]]:
    """The last states, the grid on which each stage stands, and the maps."""
    if isinstance(model, DaViT):
        stages, seen = watched(model, lambda: list(model.pyramid(pixels)))
        return stages[-1][0], [grid for _, grid in stages], seen
    states, seen = watched(model, lambda: model(pixels))
    side = math.isqrt(states.shape[1])  # pictures are brought to as many rows as columns; a class token is no place
    return states, [Grid(side, side)], seen


def _views(model: PictureModel, seen: dict[str, AttentionMap], grids: list[Grid]) -> Iterator[MapView]:
    first = (CLASS_TOKEN,) if isinstance(model, ViT) and model.class_token is not None else ()

    def sides(name: str, _: AttentionMap) -> tuple[Side, Side]:
        side = places(grids[_stage(name)], first)
        return side, side

    for one in map_views(seen, sides):
        grid, around = grids[_stage(one.name)], seen[one.name].mask.grid
        if around is None or seen[one.name].over == "channels" or around == grid:
            yield one
        else:
            yield _with_one_border(one, grid, around)


def _stage(name: str) -> int:
    words = name.split(".")
    return int(words[1]) if words[0] == "stages" else 0


def _with_one_border(one: MapView, grid: Grid, around: Grid) -> MapView:
    """Windows at the border are filled up with zeros: all of these together are one row, their mean, and one column,
    their sum."""
    inside = np.zeros((around.rows, around.columns), dtype=bool)
    inside[: grid.rows, : grid.columns] = True
    real = inside.ravel()
    asking = np.concatenate([one.weights[:, ~real].mean(1, keepdims=True), one.weights[:, real]], axis=1)
    weights = np.concatenate([asking[:, :, ~real].sum(-1, keepdims=True), asking[:, :, real]], axis=-1)
    side = places(grid, (BORDER,))
    return MapView(one.name, one.part, weights, side, side)


def _covered(model: PictureModel, picture: np.ndarray, grid: Grid) -> np.ndarray:
    """Without a rest that fills no patch, which a ViT does not read: places then lie where they are."""
    if isinstance(model, ViT):
        picture = picture[: grid.rows * model.config.patch, : grid.columns * model.config.patch]
    return np.ascontiguousarray(picture)
