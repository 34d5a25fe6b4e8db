"""`weft attention`: who sees whom in each attention kind, and what a run looks at (`attention_maps.py`)."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import attention_options as options
from weft.cli.attention_maps import Wanted, check_place, show_maps
from weft.cli.options import parse_changes
from weft.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from rich.text import Text

    from weft.analysis.patterns import LayerPattern, Seen
    from weft.blocks.attention import AttentionConfig

EXISTS = 'weft attention RUN "a text", or weft attention --patterns: who sees whom in each attention kind'
LETTERS = " .#o"  # the future, not seen, seen, itself
STYLES = ("", "bright_black", "bright_blue", "yellow")  # the same in colour
LEGENDS = (
    "o itself, # seen, . not seen, blank: the future, which a decoder may not see",
    "yellow: itself, blue: seen, grey: not seen, empty: the future, which a decoder may not see",
)
BETWEEN, LEAST = 4, 44  # columns between drawings; of words above them
LONGEST = 256


def attention(
    words: options.Words = None,
    pair: options.Pair = None,
    target: options.Target = None,
    layer: options.Layer = None,
    head: options.Head = None,
    text: options.InLetters = False,
    weights: options.AllWeights = False,
    patterns: Annotated[bool, typer.Option("--patterns", help="Draw who sees whom in each attention kind.")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only this kind; several times for several; with commas, kinds that take turns."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="A field of the kinds that have it.")
    ] = None,
    length: Annotated[int, typer.Option(help="How many tokens a pattern has.")] = 24,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The page. Default: attention.html; patterns: .png, .svg or .html"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show what a run looks at in a text or an image, every layer and head of it, on a page of its own.

    Example:  weft attention runs/book "Once upon a time" --out attention.html

    Example:  weft attention runs/digits image.png --text --layer 2 --head 1

    Example:  weft attention --patterns --kind local --set window=3 --out patterns.png

    Rows ask, columns answer; the weights are those in use. With --patterns: for each attention kind who sees whom,
    found by trying: a token is changed, and all that then differs has seen it. Fields are small, to fit a short row.
    """
    wanted = Wanted(pair, target, layer, head, out, as_json, text, weights)
    if words and not patterns:
        if kind or set_:
            raise ConfigError("--kind or --set with a run", expected="them with --patterns alone: a run has its own")
        show_maps(words, wanted)
        return
    if not patterns:
        raise ConfigError("nothing to show was named", expected=EXISTS)
    if words or wanted != Wanted(out=out, as_json=as_json):
        raise ConfigError("--patterns with a run, its input or its options", expected=EXISTS)
    if not 1 <= length <= LONGEST:
        raise ConfigError(f"--length {length}", expected=f"from 1 to {LONGEST}")
    if out is not None:
        check_place(out)
    colour = out is None and not as_json and _in_colour()
    if colour and length > _columns():
        raise ConfigError(f"--length {length} in {_columns()} columns", expected="a wider terminal, or --out FILE")
    _show_patterns(_configs(kind, _changes(set_ or [])), length, out, as_json=as_json, colour=colour)


def _show_patterns(
    configs: Sequence[AttentionConfig], length: int, out: str | None, *, as_json: bool, colour: bool
) -> None:
    from weft.analysis.patterns import patterns_of

    found = [pattern for config in configs for pattern in patterns_of(config, length)]
    if out is not None:
        from weft.report.patterns import write_patterns

        write_patterns(found, Path(out))
        typer.echo(f"open {out}", err=True)
    if as_json:
        typer.echo(json.dumps({"length": length, "patterns": [_told(p) for p in found]}, ensure_ascii=False))
    elif out is None:
        _show(found, colour=colour)


def _changes(settings: list[str]) -> dict[str, str]:
    for setting in settings:
        if setting.partition("=")[0] == "kind":
            raise ConfigError(f"--set {setting}", expected="a field of a kind", advice="kinds are picked by --kind")
        if "=" not in setting:
            raise ConfigError(f"--set {setting}", expected="field=value, such as window=3")
    return parse_changes(settings)


def _configs(kinds: list[str] | None, changes: dict[str, str]) -> list[AttentionConfig]:
    """The kinds with small fields; a change goes to those that have the field, and some kind must."""
    from dataclasses import fields

    from weft.analysis.patterns import small
    from weft.report.patterns import in_order

    chosen = kinds or in_order()
    own = [{field.name for field in fields(small(kind))} for kind in chosen]
    for key in changes:
        known = set().union(*own)
        if key.partition(".")[0] not in known:
            which = f"no kind has a field {key!r}" if kinds is None else f"{', '.join(kinds)} without a field {key!r}"
            raise ConfigError(f"--set {key}: {which}", advice=did_you_mean(key, known))
    return [
        small(kind, {key: value for key, value in changes.items() if key.partition(".")[0] in names})
        for kind, names in zip(chosen, own, strict=True)
    ]


def _told(pattern: LayerPattern) -> dict[str, Any]:
    """For programs: rows as strings, 1 is seen."""
    from weft.report.patterns import title_of

    def side(seen: Seen | str) -> dict[str, Any]:
        if isinstance(seen, str):
            return {"refused": seen}
        return {"pairs": int(seen.sum()), "rows": ["".join("01"[int(cell)] for cell in row) for row in seen]}

    return {
        "kind": pattern.asked.kind,
        "title": title_of(pattern),
        "settings": pattern.config.to_dict(),
        "layers": list(pattern.layers),
        "words": pattern.config.description,
        "cost": pattern.config.cost,
        "by_chance": pattern.by_chance,
        "encoder": side(pattern.encoder),
        "decoder": side(pattern.decoder),
    }


# -- in a terminal ----------------------------------------------------------------------------


def _columns() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def _in_colour() -> bool:
    """Whether half blocks in colour can be shown; a pipe and a plain terminal get letters."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return sys.stdout.isatty() and not plain and "utf" in (sys.stdout.encoding or "").lower()


def _show(patterns: Sequence[LayerPattern], *, colour: bool) -> None:
    """As many cards beside each other as there is room for."""
    from rich.console import Console
    from rich.text import Text

    length = max((len(s) for p in patterns for s in (p.encoder, p.decoder) if not isinstance(s, str)), default=LEAST)
    beside = 2 * length + BETWEEN <= _columns()
    width = max(LEAST, 2 * length + BETWEEN if beside else length)
    cards = [_card(pattern, width, beside=beside, colour=colour) for pattern in patterns]
    in_row = max(1, (_columns() + BETWEEN) // (width + BETWEEN))
    console = Console(highlight=False, markup=False, emoji=False, width=max(width, _columns()), soft_wrap=True)
    legend = textwrap.wrap("Rows ask, columns answer. " + LEGENDS[colour], max(LEAST, _columns()))
    lines = [*map(Text, legend), Text()]
    for first in range(0, len(cards), in_row):
        lines += [*_side_by_side(cards[first : first + in_row], width), Text()]
    for line in lines:
        if colour:
            console.print(line)
        else:
            typer.echo(line.plain.rstrip())


def _card(pattern: LayerPattern, width: int, *, beside: bool, colour: bool) -> list[list[Text]]:
    """What it is in words, and its drawings; the parts of cards that stand side by side begin at the same line."""
    from rich.text import Text

    from weft.report.patterns import CHANCE, title_of

    told = [f"{pattern.config.description}.", f"Cost: {pattern.config.cost}"]
    told += [CHANCE[:1].upper() + CHANCE[1:] + "."] if pattern.by_chance else []
    words = [Text(line, style="bold") for line in textwrap.wrap(title_of(pattern), width)]
    words += [Text(line) for text in told for line in textwrap.wrap(text, width)]
    one = (width - BETWEEN) // 2 if beside else width
    drawings = []
    for name, side in (("encoder", pattern.encoder), ("decoder", pattern.decoder)):
        drawn = drawing(side, one, causal=name == "decoder", colour=colour)
        drawings.append([Text(name, style="" if isinstance(side, str) else "italic"), *drawn])
    return [words, list(_side_by_side([[d] for d in drawings], one))] if beside else [words, *drawings]


def drawing(side: Seen | str, width: int, *, causal: bool, colour: bool) -> list[Text]:
    """The matrix in letters, or two cells in one half block; or why there is none."""
    from rich.text import Text

    from weft.report.patterns import shades

    if isinstance(side, str):
        return [Text(line) for line in textwrap.wrap(f"none: {side}", width)]
    cells = shades(side, causal=causal).tolist()
    if not colour:
        return [Text("".join(LETTERS[cell] for cell in row)) for row in cells]
    cells += [[0] * len(side)] if len(side) % 2 else []
    lines = []
    for upper, lower in zip(cells[::2], cells[1::2], strict=True):
        lines.append(Text())
        for above, below in zip(upper, lower, strict=True):
            lines[-1].append(*_half_blocks(above, below))
    return lines


def _half_blocks(above: int, below: int) -> tuple[str, str]:
    """Two cells in one letter, and its style; an empty one shows the terminal's own ground."""
    if not above:
        return ("▄", STYLES[below]) if below else (" ", "")
    return "▀", f"{STYLES[above]} on {STYLES[below]}" if below else STYLES[above]


def _side_by_side(cards: Sequence[Sequence[Sequence[Text]]], width: int) -> Iterator[Text]:
    """Lines of cards beside each other; each part of a card is as high as the highest of its neighbours."""
    from rich.text import Text

    for parts in zip(*cards, strict=True):
        for number in range(max(len(part) for part in parts)):
            line = Text()
            for place, part in enumerate(parts):
                line.append(" " * (place * (width + BETWEEN) - len(line)))
                line.append_text(part[number] if number < len(part) else Text())
            yield line
