"""What a model looks at in an image: the maps of places, and of channels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from weft.analysis.capturing import AttentionMap, site_of
from weft.analysis.maps import watched
from weft.analysis.view import AttentionView, MapView, Side
from weft.blocks.attention import Grid
from weft.errors import UnsupportedError
from weft.models.images import ImageConfig, ImageModel
from weft.models.sites import AttentionSite, Rows
from weft.tasks.attention_view.maps import answer_facts, in_a_few_words, map_views, places, rollouts_of
from weft.tasks.classify.answers import answers_of, labels_of
from weft.tasks.classify.image_classifier import Given, decoded
from weft.tasks.classify.image_data import as_input
from weft.tasks.classify.image_form import form_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

CLASS_TOKEN, BORDER = "[CLS]", "border"


def image_view(run: Run, given: Given) -> AttentionView:
    """The image as the model saw it, every map of it, and what the model says it is."""
    form, model = form_of(run), cast(ImageModel, run.model)
    image = decoded(form, given)
    pixels = as_input(np.stack([image]), form.pixel_mean, form.pixel_deviation).to(run.device)
    found, seen = watched(model, lambda: model(pixels))
    grids = model.place_grids(*pixels.shape[2:])
    maps = tuple(_views(seen, grids))
    facts = {"image": f"{image.shape[1]} × {image.shape[2]} pixels"}
    facts["places"] = ", then ".join(f"{grid.rows} × {grid.columns}" for grid in grids)
    head = cast(ImageConfig, run.model_config).head
    if head.classes:
        facts |= answer_facts(answers_of(found.cpu().double().numpy(), labels_of(head, form.separator))[0])
    if any(BORDER in one.answering.labels for one in maps):
        facts[BORDER] = "zeros at the edge that fill up the last windows: they are looked at too"
    title = "an image" if isinstance(given, np.ndarray) else in_a_few_words(str(given))
    rows, columns = model.pixels_read(*image.shape[1:])
    shown = np.ascontiguousarray(image.transpose(1, 2, 0)[:rows, :columns])
    return AttentionView(title, run.model_config.kind, maps, rollouts_of(maps, seen), shown, facts)


def _views(seen: dict[str, AttentionMap], grids: list[Grid]) -> Iterator[MapView]:
    def sides(site: AttentionSite, rows: Rows) -> Side:
        if rows != "places":
            raise UnsupportedError(f"rows of {site.name} that stand for {rows}", expected="places of the image")
        return places(grids[site.grid], (CLASS_TOKEN,) if site.class_token else ())

    for one in map_views(seen, sides):
        found = seen[one.name]
        grid, around = grids[site_of(one.name, found).grid], found.mask.grid
        if around is None or found.over == "channels" or around == grid:
            yield one
        else:
            yield _with_one_border(one, grid, around)


def _with_one_border(one: MapView, grid: Grid, around: Grid) -> MapView:
    """Windows at the border are filled up with zeros: all of these together are one column, and they do not ask, for
    what they receive is thrown away."""
    inside = np.zeros((around.rows, around.columns), dtype=bool)
    inside[: grid.rows, : grid.columns] = True
    real = inside.ravel()
    asking = one.weights[:, real]
    weights = np.concatenate([asking[:, :, ~real].sum(-1, keepdims=True), asking[:, :, real]], axis=-1)
    return MapView(one.name, one.part, weights, places(grid), places(grid, (BORDER,)), one.rows)
