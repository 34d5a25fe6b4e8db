"""`weft tag`: the tag of each word of a text, and the names in it."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.cli.runs import shown
from weft.cli.streams import groups, lines_from, open_run, output_to

if TYPE_CHECKING:
    from weft.tasks.tag.tagger import TaggedText

AT_ONCE = 64


def tag(
    run: options.RunOrFolder,
    text: Annotated[list[str] | None, typer.Argument(help="Texts; - is stdin, a text on each line.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every word with its tag.")] = False,
    input_: options.Lines = None,
    output: Annotated[
        str | None, typer.Option(help="A file: .jsonl, else words and tags as CoNLL, a blank line after each text.")
    ] = None,
    threads: options.Threads = None,
    as_json: options.ObjectEach = False,
) -> None:
    """Say which words of a text are names, places, nouns …: what the run has learned, with probabilities.

    Example:  weft tag runs/tag-demo-1 "Ada Lovelace lived in London."
    """
    from weft.tasks.tag.run_tagger import tagger_of

    with ExitStack() as files:
        lines = lines_from(text, input_, files)
        tagger = tagger_of(open_run(run, threads))
        file = output_to(output, files)
        typed = bool(text) and text != ["-"] and output is None
        in_json = as_json or (output is not None and Path(output).suffix in (".jsonl", ".json"))
        for group in groups(lines, AT_ONCE):
            for found in tagger.tag(group):
                if in_json:
                    file.write(json.dumps(found.to_dict(), ensure_ascii=False) + "\n")
                elif typed:
                    _show(found, every=every or tagger.plain, several=len(group) > 1)
                else:
                    file.write("".join(f"{word.text}\t{word.tag}\n" for word in found.words) + "\n")
            file.flush() if file is not sys.stdout else None


def _show(found: TaggedText, *, every: bool, several: bool) -> None:
    """A line for each entity, or for each word: what it is, how sure, where it stands."""
    if several:
        typer.echo(shown(" ".join(found.text.split())))
    rows = [(word.tag, word) for word in found.words] if every else [(span.type, span) for span in found.spans]
    if not rows:
        typer.echo("  no entities" if found.words else "  no words")
    width = max((len(name) for name, _ in rows), default=0)
    for name, part in rows:
        text = shown(" ".join(part.text.split()))
        typer.echo(f"  {name:{width}}  {part.probability:7.2%}  {text}  ({part.start} to {part.end})")
