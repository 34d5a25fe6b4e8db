"""Charts by matplotlib, which is not needed for anything else: an empty one, and a file with the same bytes for the
same chart."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from weft.checkpoints.files import write_whole
from weft.errors import UnsupportedError

STABLE: Any = {"svg.hashsalt": "weft", "svg.fonttype": "none"}


def check_can_draw() -> None:
    """Refuse to draw where there is nothing to draw with."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UnsupportedError("charts need matplotlib", advice="pip install 'weft[plots]'") from None


def new_figure(width: float, height: float, **options: Any) -> Any:
    """An empty chart of so many inches."""
    check_can_draw()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    usual: dict[str, Any] = {"dpi": 110, "layout": "constrained"}
    figure = Figure(figsize=(width, height), **usual | options)
    FigureCanvasAgg(figure)
    return figure


def svg_of(figure: Any) -> str:
    """As an element of a page."""
    import matplotlib as mpl

    drawn = io.StringIO()
    with mpl.rc_context(STABLE):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()[drawn.getvalue().index("<svg") :]


def write_figure(figure: Any, path: Path) -> None:
    """As .png or .svg, by the ending of its name."""
    import matplotlib as mpl

    kind = path.suffix.removeprefix(".")
    dateless = {"Date": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context(STABLE):
        write_whole(path, lambda beside: figure.savefig(beside, format=kind, metadata=dateless))
