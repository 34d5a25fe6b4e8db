"""Looking into a run: from what a person gives it, all that its attention does with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weft.analysis.maps import HAVE_IT
from weft.analysis.view import AttentionView
from weft.errors import DataError, UnsupportedError
from weft.images.formats import has_picture_name
from weft.models import BERTConfig, PairModelConfig
from weft.models.pictures import PictureConfig
from weft.tasks.purpose import has_attention, manner

if TYPE_CHECKING:
    from weft.tasks.run import Run


def view_of(
    run: Run, given: str | Path | np.ndarray, *, pair: str | None = None, target: str | None = None
) -> AttentionView:
    """Every attention map of a run for one input, with words for its rows and columns.

    given    a text; for a model of pictures a path or an array
    pair     the second text, for a model that reads pairs
    target   the text to be written, for a model that writes one text from another; None: what it writes itself

    A text that is longer than the model reads is cut, and the view says so.
    """
    config = run.model_config
    check_has_attention(run)
    if pair is not None and not isinstance(config, BERTConfig):
        raise _not_for(run, "a pair of texts", "a bert")
    if target is not None and not isinstance(config, PairModelConfig):
        raise _not_for(run, "a target", "one that writes one text from another")
    if isinstance(config, PictureConfig):
        from weft.tasks.looking_pictures import picture_view

        return picture_view(run, given)
    from weft.tasks.looking_texts import pair_view, reading_view, writing_view

    text = _text(run, given)
    if isinstance(config, PairModelConfig):
        return pair_view(run, text, target)
    return reading_view(run, text, pair) if isinstance(config, BERTConfig) else writing_view(run, text)


def check_has_attention(run: Run) -> None:
    """Refuse a run in which nothing looks at anything, before its weights are read."""
    if not has_attention(run.model_config):
        raise UnsupportedError(
            f"{run.directory.path} is a {run.model_config.kind}: it has no attention to look at", expected=HAVE_IT
        )


def _text(run: Run, given: object) -> str:
    """A text, and not a picture or a path for a model that reads."""
    pictured = isinstance(given, str | Path) and has_picture_name(str(given)) and os.path.isfile(given)
    if isinstance(given, str) and not pictured:
        return given
    what = f"{Path(str(given)).name}, a picture" if pictured else f"a {type(given).__name__}"
    raise DataError(
        f"{what}, for a {run.model_config.kind}: it {manner(run.model_config)}",
        expected="a text; a vit or davit looks at pictures",
    )


def _not_for(run: Run, what: str, whom: str) -> UnsupportedError:
    config = run.model_config
    return UnsupportedError(f"{what} for a {config.kind}: it {manner(config)}", expected=f"{whom}, or none")
