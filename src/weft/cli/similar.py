"""`weft similar`, `weft analogy`: words near other words."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options
from weft.cli.streams import lines_from, open_run, output_to
from weft.errors import ConfigError

if TYPE_CHECKING:
    from weft.tasks.embed.word_vectors import Neighbour

Top = Annotated[int, typer.Option(help="How many words.")]
Output = Annotated[str | None, typer.Option(help="A new file; default: stdout.")]


def similar(
    run: options.RunDirectory,
    word: Annotated[list[str] | None, typer.Argument(help="Words; - is stdin, a word on each line.")] = None,
    top: Top = 10,
    input_: options.Lines = None,
    output: Output = None,
    as_json: options.ObjectEach = False,
) -> None:
    """Which words are used like this one?

    Example:  weft similar runs/embed-book-1 king
    """
    from weft.tasks.embed.word_vectors import NearestWords

    with ExitStack() as files:
        words = lines_from(word, input_, files)
        vectors = NearestWords(open_run(run))
        file = output_to(output, files)
        for asked in words:
            found = vectors.similar(asked, top)
            file.write(_told({"word": asked.strip()}, found, as_json=as_json))


def analogy(
    run: options.RunDirectory,
    word: Annotated[
        list[str] | None, typer.Argument(help="a b c: a is to b as c is to …? - is stdin, three on each line.")
    ] = None,
    top: Top = 10,
    input_: options.Lines = None,
    output: Output = None,
    as_json: options.ObjectEach = False,
) -> None:
    """France is to Paris as Italy is to what?

    Example:  weft analogy runs/embed-book-1 france paris italy
    """
    from weft.tasks.embed.word_vectors import NearestWords

    with ExitStack() as files:
        lines = iter([" ".join(word)]) if word and word != ["-"] else lines_from(word, input_, files)
        if word and word != ["-"] and input_ is not None:
            raise ConfigError("words and --input", expected="one of them")
        vectors = NearestWords(open_run(run))
        file = output_to(output, files)
        for line in lines:
            asked = line.split()
            if len(asked) != 3:
                raise ConfigError(f"{len(asked)} words: {line.strip()[:60]!r}", expected="three: france paris italy")
            a, b, c = asked
            found = vectors.analogy(a, b, c, top)
            about = f"{asked[0]} is to {asked[1]} as {asked[2]} is to"
            file.write(_told({"word": about} if not as_json else {"analogy": asked}, found, as_json=as_json))


def _told(about: dict[str, Any], found: list[Neighbour], *, as_json: bool) -> str:
    """One JSON object, or a line for the question and one for each answer."""
    if as_json:
        words = [{"word": one.word, "similarity": round(one.similarity, 6)} for one in found]
        return json.dumps(about | {"similar": words}, ensure_ascii=False) + "\n"
    width = max((len(one.word) for one in found), default=0)
    lines = [f"  {one.word:{width}}  {one.similarity:.3f}" for one in found]
    return "\n".join([f"{about['word']}:", *lines]) + "\n"
