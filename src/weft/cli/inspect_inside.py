"""The sections of `weft inspect` that look inside: --health, --reach, --flow."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from weft.cli.inspect_section import InspectSection
from weft.errors import ConfigError, WeftError

if TYPE_CHECKING:
    from weft.tasks.inspection import Inspected

COLUMNS = (
    ("entropy", "relative_entropy"),
    ("largest", "largest"),
    ("saturated", "saturated"),
    ("variance", "score_variance"),
    ("gradient", "gradient"),
)


def sections_inside(words: list[str], *, health: bool, reach: bool, flow: bool) -> list[InspectSection]:
    """The sections that were asked for by an option of their own."""
    position, given = position_and_input(words)
    if given is not None and not health:
        raise ConfigError(f"an input ({given!r}) without --health", expected="--health, which reads it")
    if position is not None and not reach:
        if not health or given is not None:
            raise ConfigError(f"a position ({position}) without --reach", expected="--reach, which asks for one")
        position, given = None, str(position)
    sections = []
    if health:
        sections.append(InspectSection("health", lambda found, _: _health(found, given), _told(tell_health, "health")))
    if reach:
        sections.append(InspectSection("reach", lambda found, _: _reach(found, position), _told(tell_reach, "reach")))
    if flow:
        sections.append(InspectSection("flow", lambda found, _: _flow(found), _told(tell_flow, "flow")))
    return sections


def position_and_input(words: list[str]) -> tuple[int | None, str | None]:
    """A whole number is a position, anything else an input."""
    position, given = None, None
    for word in words:
        if word.isdecimal() and position is None:
            position = int(word)
        elif given is None:
            given = word
        else:
            raise ConfigError(f"{given!r} and {word!r}", expected="one input", advice="put quotes around a text")
    return position, given


def _told(tell: Callable[[dict[str, Any], int], Iterator[str]], name: str) -> Callable[..., Iterator[str]]:
    """A section that looks at nothing but its own numbers; without any, it says nothing."""

    def lines(_: Inspected, told: dict[str, Any], columns: int) -> Iterator[str]:
        return tell(told[name], columns) if name in told else iter(())

    return lines


def _health(found: Inspected, given: str | None) -> dict[str, Any]:
    """Of every head of a run."""
    from weft.tasks.inside import health_of

    return health_of(_run(found, "--health"), given)


def _short_health(found: Inspected) -> dict[str, Any] | None:
    """A few sentences, if there is anything to say without being asked; what is not known is left out."""
    from weft.tasks.inside import health_of
    from weft.tasks.use import has_attention

    if found.run is None or found.run.is_imported or not has_attention(found.config):
        return None
    try:
        told = health_of(found.run)
    except WeftError:  # its data are gone or have changed, or it has no weights yet
        return None
    return {"read": told["read"], "sentences": told["sentences"]}


def _reach(found: Inspected, position: int | None) -> dict[str, Any]:
    """What a position can see after each layer."""
    from weft.tasks.inside import convert_reach, reach_of

    return convert_reach(reach_of(found.config, position, found.length, found.run))


def _flow(found: Inspected) -> dict[str, Any]:
    """Gradients through depth, and through time."""
    from weft.tasks.inside import flow_of

    return flow_of(_run(found, "--flow"))


def _run(found: Inspected, option: str) -> Any:
    if found.run is None:
        raise ConfigError(f"{option} for {found.name}, which has no weights", expected="a run, after weft train")
    return found.run


# -- in a terminal ----------------------------------------------------------------------------


def tell_health(told: dict[str, Any], columns: int) -> Iterator[str]:
    """Sentences, and a table with a row for each head."""
    yield f"Softmax health, on {told['read']}:"
    for sentence in told["sentences"]:
        yield f"  {sentence}"
    rows = [
        (_name(layer, head["head"]), *(head[key] for _, key in COLUMNS))
        for layer in told.get("layers", [])
        for head in layer.get("heads", [])
    ]
    if not rows:
        return
    room = max(len("head"), *(len(row[0]) for row in rows))
    shown = COLUMNS[: max(1, (columns - room) // 11)]
    yield ""
    yield f"{'head':{room}}" + "".join(f"{title:>11}" for title, _ in shown)
    for name, *values in rows:
        yield f"{name:{room}}" + "".join(f"{_number(value):>11}" for value, _ in zip(values, shown, strict=False))
    yield ""
    for line in (
        "entropy: 1 is everything alike; largest: the largest weight of a row; saturated: rows above 0.98;",
        "variance: of the scores of a row; gradient: what passes through the softmax",
    ):
        yield line[:columns] if columns < 40 else line


def _name(layer: dict[str, Any], head: int) -> str:
    return f"{layer['part']} {layer['layer']}.{head}".strip()


def _number(value: float) -> str:
    return f"{value:.3g}"


LETTERS = "o itself, # seen, . not seen; + some of several"


def tell_reach(told: dict[str, Any], columns: int) -> Iterator[str]:
    """A row of letters for each layer, or the image for each; and how many inputs are seen."""
    position, inputs, sources = told["position"], told["inputs"], told["sources"]
    what = "places" if told["grid"] else "inputs"
    yield from textwrap.wrap(f"What position {position} can see of {inputs:,} {what}, layer by layer:", columns)
    own = sources + position
    room = max(len(name) for name in told["layers"])
    for name, row, count in zip(told["layers"], told["predicted"], told["seen"], strict=True):
        yield f"{name:>{room}}  {count:,} of {inputs:,}"
        if told["grid"]:
            yield from (f"  {line}" for line in grid_letters(row, told["grid"], own, max(8, columns - 2)))
        else:
            for title, part in (("source", row[:sources]), ("written" if sources else "", row[sources:])):
                at = position if part is not row[:sources] or not sources else -1
                if part:
                    line = letters(part, at if title != "source" else -1, max(8, columns - 12))
                    yield f"  {title + ' ' if title else ''}{line}"
    yield LETTERS[:columns]
    for sentence in _about_reach(told):
        yield from textwrap.wrap(sentence, min(columns, 100))


def _about_reach(told: dict[str, Any]) -> Iterator[str]:
    if told["note"]:
        yield told["note"]
    if told["agrees"]:
        yield "Measured by gradients: the same."
    elif told["measured"] is not None:
        yield "Measured by gradients, it sees less or more: these weights let some of it through, or not."
    elif told["layers"] != ["counts"]:
        yield "Too large to be measured by gradients in a moment."


def letters(row: str, itself: int, width: int) -> str:
    """One letter for each input, or for several that stand together where there is no room."""
    each = -(-len(row) // width)
    cells = []
    for first in range(0, len(row), each):
        part = row[first : first + each]
        if first <= itself < first + each:
            cells.append("o")
        else:
            cells.append(_letter(part))
    return "".join(cells)


def grid_letters(row: str, grid: Sequence[int], itself: int, width: int) -> Iterator[str]:
    """The image, row by row, or a letter for a square of places where there is no room; what stands before its
    places, as a class token does, comes first."""
    rows, columns = grid
    before, each = len(row) - rows * columns, -(-columns // width)
    if before:
        yield letters(row[:before], itself, width)
    own = divmod(itself - before, columns) if itself >= before else (-1, -1)
    lines = [row[before + n * columns : before + (n + 1) * columns] for n in range(rows)]
    for top in range(0, rows, each):
        cells = []
        for left in range(0, columns, each):
            square = "".join(line[left : left + each] for line in lines[top : top + each])
            here = top <= own[0] < top + each and left <= own[1] < left + each
            cells.append("o" if here else _letter(square))
        yield "".join(cells)


def _letter(part: str) -> str:
    return "#" if "0" not in part else "." if "1" not in part else "+"


def tell_flow(told: dict[str, Any], columns: int) -> Iterator[str]:
    """A table over the layers, with bars; then over the distance."""
    norm = f" ({told['norm']}-norm)" if told["norm"] else ""
    yield f"Gradient of the loss on held-out input, at the stream before each layer{norm}:"
    for now, start in zip(told["now"], told["start"], strict=True):
        most = max(now["stream"]) or 1.0
        names = [f"{layer['part']} {layer['layer']}".strip() for layer in now["layers"]] + ["after the last"]
        room = max(map(len, names))
        yield f"{'layer':{room}}       now  at start"
        for name, here, begun in zip(names, now["stream"], start["stream"], strict=True):
            bar = "#" * round(max(0, columns - room - 24) * min(1.0, here / most) ** 0.5 / 2)
            yield f"{name:{room}} {_number(here):>9} {_number(begun):>9}  {bar}".rstrip()
        if not any(start["stream"]):
            yield "At the start nothing passes: its last map begins at zero."
        if now["first_to_last"] is not None:
            yield f"At the first layer it is {_number(now['first_to_last'])} times what it is after the last."
        for group, norms in now["groups"].items():
            yield f"  to the parameters of {group}: first layer {_number(norms[0])}, last {_number(norms[-1])}"
    if told.get("distance"):
        yield "Over the distance to a token that was read before, relative to the largest:"
        distance, far = told["distance"], [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
        for back in far:
            if back < len(distance):
                yield f"  {back:>4} back {_number(distance[back]):>9}"


SHORT_HEALTH = InspectSection("health", lambda found, _: _short_health(found), _told(tell_health, "health"))
