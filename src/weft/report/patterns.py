"""Attention patterns as a chart: a matrix for each kind, encoder and decoder beside each other."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.analysis.patterns import LayerPattern, Seen
from weft.blocks.attention import AttentionConfig
from weft.checkpoints.files import write_text
from weft.config import Config
from weft.errors import ConfigError
from weft.pages import page, table
from weft.report.figures import new_figure, svg_of, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FUTURE, UNSEEN, OTHER, OWN = range(4)  # of a decoder what comes later; not seen; seen; seen, and the asking one itself
COLOURS = ("#ffffff", "#e6e6e6", "#0072b2", "#d55e00")  # apart for colour-blind people too
MEANINGS = ("the future, which a decoder may not see", "not seen", "seen", "itself")
CHANCE = "one draw: who is seen depends on what the tokens are"
SUFFIXES = (".png", ".svg", ".html")


# -- in words ---------------------------------------------------------------------------------


def in_order() -> list[str]:
    """All kinds as they are shown: those of one base class together."""
    base = {kind: entry.__bases__[0] for kind, entry in AttentionConfig.registry.items()}
    groups = list(dict.fromkeys(base.values()))
    return sorted(base, key=lambda kind: groups.index(base[kind]))


def name_of(config: AttentionConfig) -> str:
    """The kind and the fields that make it, as in `local (window=4)`."""
    own = inspect.get_annotations(type(config))
    fields = {n: v for n, v in config.to_dict().items() if n in own and v and isinstance(v, int) and v is not True}
    fields |= config.changed()
    members = " and ".join(name_of(member) for member in config.members if member is not config)
    told = ", ".join(f"{name}={_value(value)}" for name, value in fields.items() if name != "of")
    return config.kind + (f" of {members}" if members else "") + (f" ({told})" if told else "")


def title_of(pattern: LayerPattern) -> str:
    """The kind that was asked for, and where kinds or windows take turns, which layer this is."""
    if not pattern.layers:
        return name_of(pattern.asked)
    layers = f"layers {', '.join(map(str, pattern.layers[:2]))}, …"
    if pattern.config.kind == pattern.asked.kind:
        return f"{name_of(pattern.config)}, {layers}"
    return f"{name_of(pattern.asked)}, {layers}: {name_of(pattern.config)}"


def seen_of(side: Seen | str) -> str:
    """How many of all pairs are seen."""
    return side if isinstance(side, str) else f"{int(side.sum())} of {side.size} pairs"


def shades(seen: Seen, *, causal: bool) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Each cell as FUTURE, UNSEEN, OTHER or OWN."""
    found = np.where(seen, OTHER, UNSEEN)
    if causal:
        found[np.triu(np.ones_like(seen), 1) & ~seen] = FUTURE
    found[np.eye(len(seen), dtype=bool) & seen] = OWN
    return found


def _value(value: Any) -> str:
    if isinstance(value, Config):
        return repr(value)
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


# -- as a chart -----------------------------------------------------------------------------

SIDE, GAP, MARGIN = 1.95, 0.3, 0.3  # inches: a matrix, between the two, around both
TOP, BOTTOM, LABEL = 0.95, 0.45, 0.22  # above and below all cards; of the word above a matrix
LINE, SMALL_LINE = 48, 62  # letters beside each other above two matrices
HIGH, SMALL_HIGH = 0.19, 0.145  # inches of such a line


def write_patterns(patterns: Sequence[LayerPattern], path: Path) -> None:
    """The chart, as .png or .svg, or a page with it (.html)."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"a chart as {path.name}", expected=f"a name that ends with {', '.join(SUFFIXES)}")
    figure = figure_of(patterns)
    if path.suffix == ".html":
        write_text(path, _page(patterns, figure))
    else:
        write_figure(figure, path)


def figure_of(patterns: Sequence[LayerPattern]) -> Figure:
    """A card for each pattern: its name and cost above, encoder and decoder beside each other."""
    across = min(3, len(patterns))
    down = -(-len(patterns) // across)
    head = LABEL + max(HIGH * len(title) + SMALL_HIGH * len(small) for title, small in map(_above, patterns))
    card = (2 * SIDE + GAP + 2 * MARGIN, head + SIDE + MARGIN)
    width, height = max(across * card[0], 7.2), TOP + down * card[1] + BOTTOM
    figure: Figure = new_figure(width, height, dpi=100, layout=None, facecolor="white")
    figure.text(MARGIN / width, 1 - 0.35 / height, "Who sees whom", fontsize=16, weight="bold", va="center")
    figure.text(MARGIN / width, 1 - 0.68 / height, _heading(patterns), fontsize=10, va="center")
    for number, pattern in enumerate(patterns):
        row, column = divmod(number, across)
        left, top = column * card[0] + MARGIN, height - TOP - row * card[1] - head
        _card_title(figure, pattern, left, top + LABEL)
        for place, side in enumerate((pattern.encoder, pattern.decoder)):
            corner = ((left + place * (SIDE + GAP)) / width, (top - SIDE) / height)
            axis = figure.add_axes((*corner, SIDE / width, SIDE / height))
            axis.set_title(("encoder", "decoder")[place], fontsize=8, pad=3)
            _matrix(axis, side, causal=place == 1)
    _legend(figure)
    return figure


def _heading(patterns: Sequence[LayerPattern]) -> str:
    lengths = {len(side) for p in patterns for side in (p.encoder, p.decoder) if not isinstance(side, str)}
    return f"Rows ask, columns answer; {', '.join(map(str, lengths)) or 'no'} tokens, first at the top left"


def _above(pattern: LayerPattern) -> tuple[list[str], list[str]]:
    """Lines of the title, and of what stands below it in small letters."""
    told = [pattern.config.cost, CHANCE if pattern.by_chance else ""]
    small = [line for text in told for line in textwrap.wrap(text, SMALL_LINE)]
    return textwrap.wrap(title_of(pattern), LINE), small


def _card_title(figure: Figure, pattern: LayerPattern, left: float, bottom: float) -> None:
    """Both, just above the matrices; places in inches."""
    (width, height), (title, small) = figure.get_size_inches(), _above(pattern)
    plain: dict[str, Any] = {"va": "bottom", "parse_math": False}
    figure.text(left / width, bottom / height, "\n".join(small), fontsize=8, color="#444444", **plain)
    above = bottom + SMALL_HIGH * len(small)
    figure.text(left / width, above / height, "\n".join(title), fontsize=10, weight="bold", **plain)


def _matrix(axis: Any, side: Seen | str, *, causal: bool) -> None:
    from matplotlib.colors import ListedColormap

    axis.set(xticks=[], yticks=[])
    if isinstance(side, str):
        words = "\n".join(textwrap.wrap(side, 26))
        axis.text(0.5, 0.5, words, ha="center", va="center", fontsize=8, color="#444444", parse_math=False)
        axis.spines[:].set(color="#cccccc", linestyle="--")
        return
    cells = shades(side, causal=causal)
    axis.imshow(cells, cmap=ListedColormap(COLOURS), vmin=FUTURE, vmax=OWN, interpolation="none", aspect="auto")
    axis.spines[:].set(color="#cccccc")
    if len(side) <= 64:
        borders = np.arange(0.5, len(side) - 1)
        axis.vlines(borders, -0.5, len(side) - 0.5, colors="white", linewidth=0.5)
        axis.hlines(borders, -0.5, len(side) - 0.5, colors="white", linewidth=0.5)


def _legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    patches = [
        Patch(facecolor=COLOURS[n], edgecolor="#cccccc", label=MEANINGS[n]) for n in (OWN, OTHER, UNSEEN, FUTURE)
    ]
    place = (MARGIN / figure.get_figwidth(), 0.12 / figure.get_figheight())
    figure.legend(
        handles=patches,
        loc="lower left",
        bbox_to_anchor=place,
        ncols=4,
        fontsize=9,
        frameon=False,
        handlelength=1,
        borderpad=0,
        borderaxespad=0,
    )


STYLE = """
body { max-width: 84rem; } figure svg { width: 100%; background: #fff; color: #1a1a1a; }
"""


def _page(patterns: Sequence[LayerPattern], figure: Figure) -> str:
    """The chart, and in a table what it shows."""
    rows = [
        (title_of(p), p.config.description, p.config.cost, seen_of(p.encoder), seen_of(p.decoder)) for p in patterns
    ]
    heads = ("kind", "what it does", "cost for N tokens", "encoder sees", "decoder sees")
    return page("Attention patterns", f"<figure>{svg_of(figure)}</figure>\n{table(heads, rows)}", style=STYLE)
