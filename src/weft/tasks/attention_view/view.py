"""Looking into a run: from what a person gives it, all that its attention does with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weft.analysis.maps import HAVE_IT
from weft.analysis.view import AttentionView
from weft.errors import DataError, UnsupportedError
from weft.images.formats import has_image_name
from weft.models.capabilities import CausalLM
from weft.tasks.use import has_attention, what_it_does

if TYPE_CHECKING:
    from weft.tasks.run import Run


def view_of(
    run: Run, given: str | Path | np.ndarray, *, pair: str | None = None, target: str | None = None
) -> AttentionView:
    """Every attention map of a run for one input, with words for its rows and columns.

    given    a text; for a model of images a path or an array
    pair     the second text, for a model that reads pairs
    target   the text to be written, for a model that writes one text from another; None: what it writes itself

    A text that is longer than the model reads is cut, and the view says so.
    """
    check_has_attention(run)
    model = run.model_config.skeleton()  # what cannot be is refused before weights are read
    answering = {site.answering for site in model.attention_sites()}
    if pair is not None and not model.reads_pairs:
        raise _not_for(run, "a pair of texts", "a bert")
    if target is not None and "source" not in answering:
        raise _not_for(run, "a target", "one that writes one text from another")
    if "places" in answering:
        from weft.tasks.attention_view.images import image_view

        return image_view(run, given)
    from weft.tasks.attention_view.texts import pair_view, reading_view, writing_view

    text = _text(run, given)
    if "source" in answering:
        return pair_view(run, text, target)
    return writing_view(run, text) if isinstance(model, CausalLM) else reading_view(run, text, pair)


def check_has_attention(run: Run) -> None:
    """Refuse a run in which nothing looks at anything, before its weights are read."""
    if not has_attention(run.model_config):
        raise UnsupportedError(
            f"{run.directory.path} is a {run.model_config.kind}: it has no attention to look at", expected=HAVE_IT
        )


def _text(run: Run, given: object) -> str:
    """A text, and not an image or a path for a model that reads."""
    imaged = isinstance(given, str | Path) and has_image_name(str(given)) and os.path.isfile(given)
    if isinstance(given, str) and not imaged:
        return given
    what = f"{Path(str(given)).name}, an image" if imaged else f"a {type(given).__name__}"
    raise DataError(
        f"{what}, for a {run.model_config.kind}: it {what_it_does(run.model_config)}",
        expected="a text; a vit or davit looks at images",
    )


def _not_for(run: Run, what: str, whom: str) -> UnsupportedError:
    config = run.model_config
    return UnsupportedError(f"{what} for a {config.kind}: it {what_it_does(config)}", expected=f"{whom}, or none")
