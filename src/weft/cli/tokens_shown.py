"""What `weft tokens` found, for people and for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from weft.text.readable import readable, shown_token
from weft.text.schemes import TokenizerStatistics, excerpts, measure, relative

if TYPE_CHECKING:
    from rich.console import Console

    from weft.cli.tokens import TokenisedTexts
    from weft.text import Tokenizer
    from weft.text.replay import Replay

NARROW = 78  # columns; below, a scheme takes a few lines instead of a row
LONG_NAME = 12  # letters of a scheme's name; only paths are longer
MEASURED = 4_000_000  # characters of the beginning that are counted
LEGEND = {"␣": "␣ is a space", "⏎": "⏎ a new line", "⇥": "⇥ a tab", "◌": "◌ no letter under a mark"}


Columns = Sequence[tuple[str, Callable[[TokenizerStatistics], str]]]
"""Titles, and what stands below them for each scheme."""


def measures_of(cut: TokenisedTexts) -> list[TokenizerStatistics]:
    """One for each scheme."""
    return [measure(name, tokenizer, cut.texts, MEASURED) for name, tokenizer in cut.tokenizers.items()]


# -- for programs -----------------------------------------------------------------------------


def cut_to_dict(cut: TokenisedTexts) -> dict[str, Any]:
    """All numbers, and the tokens of what is shown: their ids, their bytes in hexadecimal, and a form to read."""
    measures = measures_of(cut)
    parts = list(excerpts(cut.texts, cut.show))
    rows = []
    for found, tokenizer in zip(measures, cut.tokenizers.values(), strict=True):
        cuts = [[_token_to_dict(tokenizer, number) for number in tokenizer.encode(part).tolist()] for part in parts]
        rows.append({**found.to_dict(cut.width, measures), "cuts": cuts})
    return {
        "characters": measures[0].characters,
        "bytes": measures[0].bytes,
        "lines": len(measures[0].lengths),
        "learned_from": cut.learned_from or None,
        "width": cut.width,
        "shown": parts,
        "schemes": rows,
    }


def _token_to_dict(tokenizer: Tokenizer, number: int) -> dict[str, Any]:
    stands_for = tokenizer.spell(tokenizer.names[number]) if tokenizer.token_bytes[number] else b""
    return {"id": number, "shown": shown_token(tokenizer, number), "bytes": stands_for.hex()}


def replay_to_dict(found: tuple[Replay, str]) -> dict[str, Any]:
    """The same for merges."""
    replay, whose = found
    show = _shower(replay.tokenizer)
    merges = [
        {
            "rank": merge.rank,
            "pair": [show(token) for token in merge.pair],
            "joined": show(merge.joined),
            "count": merge.count,
            "tokens": [show(token) for token in merge.tokens],
        }
        for merge in replay.merges
    ]
    return {
        "text": replay.text,
        "tokenizer": whose or None,
        "start": [show(token) for token in replay.start],
        "merges": merges,
        "ids": replay.tokenizer.encode(replay.text).tolist(),
    }


# -- for people: side by side -----------------------------------------------------------------


def show_cut(cut: TokenisedTexts, *, ids: bool) -> None:
    """How each scheme cuts the beginning, then the numbers."""
    console = _console()
    measures = measures_of(cut)
    first = measures[0]
    counts = (_count(first.characters, "character"), _count(first.bytes, "byte"), _count(len(first.lengths), "line"))
    _say(console, ", ".join(counts) + (" of the beginning." if first.characters >= MEASURED else "."))
    if cut.learned_from:
        _say(console, f"The schemes have learned from {cut.learned_from}.")
    parts = list(excerpts(cut.texts, cut.show))
    if any(parts):
        _say(console, "")
        _show_pieces(console, cut, parts, ids=ids)
    _say(console, "")
    _show_rows(console, measures, cut.width)


def _show_pieces(console: Console, cut: TokenisedTexts, parts: Sequence[str], *, ids: bool) -> None:
    """The name of each scheme, and its tokens beside or below it; then what the signs mean."""
    room = max(map(len, cut.tokenizers))
    below = console.width < NARROW or room > console.width // 3
    indent = 2 if below else room + 2
    drawn: set[str] = set()
    for name, tokenizer in cut.tokenizers.items():
        if below:
            _line(console, name)
        title = "" if below else name
        for numbers in (tokenizer.encode(part).tolist() for part in parts):
            tokens = [shown_token(tokenizer, number) for number in numbers]
            drawn.update(*tokens, (token for token in tokens if token.startswith(("<", "##"))))
            for line in _lines(tokens, numbers if ids else [], console.width - indent):
                _line(console, f"{title:{indent}}{line}".rstrip())
                title = ""
    told = [words for sign, words in LEGEND.items() if sign in drawn]
    told += ["<F0> a single byte"] * any(len(token) == 4 and token.startswith("<") for token in drawn)
    told += ["## goes on with a word"] * any(token.startswith("##") and len(token) > 2 for token in drawn)
    if told:
        _say(console, f"({', '.join(told)})")


def _lines(tokens: Sequence[str], ids: Sequence[int], width: int) -> Iterator[str]:
    """Tokens with a blank between them; with ids, each above its number. A token that is too long is cut."""
    from rich.cells import cell_len, chop_cells

    upper = lower = ""
    for place, token in enumerate(tokens):
        number = str(ids[place]) if ids else ""
        size = min(width, max(cell_len(token), len(number)))
        if upper and cell_len(upper) + size > width:
            yield from [upper.rstrip(), lower.rstrip()][: 1 + bool(ids)]
            upper = lower = ""
        *first, last = chop_cells(token, width) or [""]
        yield from first
        upper += last + " " * (size - cell_len(last) + 1)
        lower += number + " " * (size - len(number) + 1)
    yield from [upper.rstrip(), lower.rstrip()][: 1 + bool(ids)]


def _show_rows(console: Console, measures: Sequence[TokenizerStatistics], width: int) -> None:
    """Two tables: how well the text is packed, and what that means for a model."""
    packed: Columns = [
        ("vocabulary", lambda one: f"{one.vocab_size:,}"),
        ("tokens", lambda one: f"{one.tokens:,}"),
        ("characters/token", lambda one: _number(one.characters_per_token)),
        ("bytes/token", lambda one: _number(one.bytes_per_token)),
        ("unseen", lambda one: _share(one.unseen)),
        ("exact", lambda one: "yes" if one.gives_back else "no"),
    ]
    cost: Columns = [
        ("mean line", lambda one: f"{one.mean_length:,.1f}"),
        ("longest", lambda one: f"{one.longest:,}"),
        ("attention n²", lambda one: _times(relative(one.pairs, (m.pairs for m in measures)))),
        ("the rest n", lambda one: _times(relative(sum(one.lengths), (sum(m.lengths) for m in measures)))),
        ("embedding", lambda one: _megabytes(one.embedding_bytes(width))),
    ]
    if console.width < NARROW:
        for one in measures:
            _line(console, one.name)
            for title, cell in [*packed, *cost]:
                _line(console, f"  {title}: {cell(one)}")
    else:
        _table(console, measures, packed)
        _say(console, f"\nWhat a model pays that reads line by line, with vectors of {width} numbers:")
        _table(console, measures, cost)
    if any(one.unseen for one in measures):
        _say(console, "\nunseen: the share of the text that is spelled byte by byte, or is [UNK].")
    if not all(one.gives_back for one in measures):
        _say(console, "exact: whether the tokens give the text back as it was.")


def _table(console: Console, measures: Sequence[TokenizerStatistics], columns: Columns) -> None:
    """A row for each scheme."""
    rows = [["scheme", *(title for title, _ in columns)]]
    rows += [[one.name, *(cell(one) for _, cell in columns)] for one in measures]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    if sum(widths) + 2 * len(widths) > console.width:  # a long path has a line of its own
        widths[0] = max(len(name) for name in ("scheme", *(one.name for one in measures)) if len(name) <= LONG_NAME)
    for name, *cells in rows:
        if len(name) > widths[0]:
            _line(console, name)
        told = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        _line(console, f"{name if len(name) <= widths[0] else '':{widths[0]}}  {told}")


# -- for people: merges -----------------------------------------------------------------------


def show_replay(found: tuple[Replay, str], *, ids: bool) -> None:
    """Each merge in words, and the sentence after it."""
    replay, whose = found
    console, show = _console(), _shower(replay.tokenizer)

    def tell(tokens: Sequence[str]) -> None:
        for line in _lines([show(token) for token in tokens], [], console.width - 2):
            _line(console, f"  {line}".rstrip())

    _say(
        console, f"Merges of {whose}." if whose else "Merges that this sentence teaches, the most frequent pair first."
    )
    _line(console, f"start: {_count(len(replay.start), 'token')}")
    tell(replay.start)
    for step, merge in enumerate(replay.merges, 1):
        first, second = map(show, merge.pair)
        place = f" (merge {merge.rank + 1:,} of its list)" if whose else ""
        times = "once" if merge.count == 1 else f"{merge.count} times"
        _line(console, f"{step}: {first} + {second} → {show(merge.joined)}, {times}{place}")
        tell(merge.tokens)
    if ids:
        _say(console, "ids: " + " ".join(map(str, replay.tokenizer.encode(replay.text).tolist())))
    steps = _count(len(replay.merges), "merge")
    _say(console, f"{steps}: {_count(len(replay.start), 'token')} became {len(replay.end):,}.")


def _shower(tokenizer: Tokenizer) -> Callable[[str], str]:
    return lambda name: readable(tokenizer.spell(name))


# -- words and numbers ------------------------------------------------------------------------


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def _line(console: Console, words: str) -> None:
    """One line as it is, in pieces if the terminal is narrower."""
    from rich.cells import chop_cells

    for part in chop_cells(words, max(1, console.width)) or [""]:
        console.print(part, soft_wrap=True)


def _say(console: Console, words: str) -> None:
    """Sentences, wrapped between words."""
    for line in words.split("\n"):
        for part in textwrap.wrap(line, max(8, console.width)) or [""]:
            _line(console, part)


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float) -> str:
    return "0" if not value else f"{value:.1%}" if value >= 0.001 else "<0.1%"


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}×"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
