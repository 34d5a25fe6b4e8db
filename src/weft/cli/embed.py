"""`weft embed`: vectors of texts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from weft.cli import options
from weft.cli.streams import check_free, groups, lines_from, open_run, output_to

if TYPE_CHECKING:
    from weft.tasks.embed.text_encoder import Embedder, WordEmbedder

AT_ONCE = 512
SHOWN = 4  # numbers of a vector that a person is shown


def embed(
    run: options.RunOrFolder,
    text: Annotated[list[str] | None, typer.Argument(help="Texts; - is stdin, a text on each line.")] = None,
    pool: Annotated[str, typer.Option(help="mean of all tokens, or the state of the first or last one.")] = "mean",
    input_: options.Lines = None,
    output: Annotated[str | None, typer.Option(help="A file: .npy, .jsonl, or lines of numbers with tabs.")] = None,
    threads: options.Threads = None,
    as_json: options.ObjectEach = False,
) -> None:
    """Turn texts into vectors: near each other where texts are alike. A run of word vectors takes words.

    Example:  weft embed runs/fill-book-1 "a warm day" "a cold night"
    """
    from weft.tasks.embed.text_encoder import embedder_of

    with ExitStack() as files:
        lines = lines_from(text, input_, files)
        array = output is not None and Path(output).suffix == ".npy"
        if array and output is not None:
            check_free(output)
        embedder = embedder_of(open_run(run, threads), cast("Any", pool))
        found = _vectors(embedder, lines)
        if array and output is not None:
            _save(output, found, embedder.width)
            return
        if text and output is None and not as_json and sys.stdout.isatty():
            _show(list(found))
            return
        file = output_to(output, files)
        as_json = as_json or (output is not None and Path(output).suffix in (".jsonl", ".json"))
        for line, vector in found:
            told = json.dumps({"text": line, "vector": vector}, ensure_ascii=False)
            file.write((told if as_json else "\t".join(f"{value:.7g}" for value in vector)) + "\n")


def _vectors(embedder: Embedder | WordEmbedder, lines: Iterator[str]) -> Iterator[tuple[str, list[float]]]:
    for group in groups(lines, AT_ONCE):
        yield from zip(group, embedder.vectors(group).tolist(), strict=True)


def _save(path: str, found: Iterator[tuple[str, list[float]]], width: int) -> None:
    """All vectors as one array (N, width), which numpy opens."""
    import numpy as np

    vectors = np.array([vector for _, vector in found], dtype=np.float32).reshape(-1, width)
    with Path(path).open("xb") as file:
        np.lib.format.write_array(file, vectors)
    typer.echo(f"{len(vectors)} vectors of {width} numbers in {path}", err=True)


def _show(found: list[tuple[str, list[float]]]) -> None:
    """The first numbers of each vector, and how alike the texts are."""
    import numpy as np

    from weft.tasks.embed.text_encoder import cosines

    width = len(found[0][1])
    for number, (text, vector) in enumerate(found, 1):
        first = "  ".join(f"{value:+.3f}" for value in vector[:SHOWN])
        typer.echo(f"{number}  {first}  … ({width} numbers)  {' '.join(text.split())[:50]}")
    if len(found) > 1:
        typer.echo("\nHow alike they are (cosine, 1 is the same direction):")
        for number, row in enumerate(cosines(np.array([vector for _, vector in found], dtype=np.float32)), 1):
            typer.echo(f"{number}  " + "  ".join(f"{value:+.3f}" for value in row))
    typer.echo("\nAll numbers: --json, or --output vectors.npy", err=True)
