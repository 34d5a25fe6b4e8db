"""`weft translate`: a run writes one text from another."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.cli.streams import groups, lines_from, open_run, output_to
from weft.errors import ConfigError

if TYPE_CHECKING:
    from weft.tasks.translate.translator import Translation

AT_ONCE = 512  # lines of a file that are read and written together


def translate(
    run: options.RunOrFolder,
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts to translate; - is stdin, a text on each line.")
    ] = None,
    beams: Annotated[int, typer.Option(help="Texts kept in each step of the search; 1 is greedy.")] = 4,
    best: Annotated[int, typer.Option(help="How many texts to give for each, with their scores.")] = 1,
    alpha: Annotated[float, typer.Option(help="Scores are divided by length^alpha: more for longer texts.")] = 1.0,
    max_tokens: Annotated[int | None, typer.Option(help="Of a text. Default: 3 x those of the source + 20")] = None,
    temperature: Annotated[float | None, typer.Option(help="Draw instead of searching: below 1 cautious.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Drawing: only the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Drawing: only the likeliest that share this.")] = None,
    seed: Annotated[int, typer.Option(help="Drawing: another seed, another text.")] = 0,
    align: Annotated[bool, typer.Option("--align", help="Which source words each word looked at.")] = False,
    input_: options.Lines = None,
    output: Annotated[str | None, typer.Option(help="A file for the texts, a line each. Default: stdout")] = None,
    threads: options.Threads = None,
    as_json: options.ObjectEach = False,
) -> None:
    """Write one text from another: translate, or whatever the pairs taught.

    Example:  weft translate runs/translate-demo-1 "two hundred eighty-one"
    """
    from weft.tasks.translate.translator import TranslationConfig, TranslationSearch

    if temperature is None and (top_k is not None or top_p is not None):
        raise ConfigError("--top-k or --top-p without --temperature", expected="--temperature too, to draw a text")
    settings = TranslationConfig(
        beams=beams,
        best=best,
        alpha=alpha,
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    with ExitStack() as files:
        lines = lines_from(text, input_, files)
        translator = TranslationSearch(open_run(run, threads))
        file = output_to(output, files)
        typed = bool(text) and text != ["-"]
        for group in groups(lines, AT_ONCE):
            for found in translator.translate(group, settings, align=align):
                if as_json:
                    file.write(json.dumps(found.to_dict(), ensure_ascii=False) + "\n")
                else:
                    file.writelines(line + "\n" for line in _lines(found, scored=typed and best > 1))
            file.flush() if file is not sys.stdout else None


def _lines(found: Translation, *, scored: bool) -> Iterator[str]:
    """The text; other texts below it, with their scores where a person reads them; then what each word looked at."""
    for one in (found, *found.others):
        shown = " ".join(one.text.splitlines())
        yield f"{one.score:8.4f}  {shown}" if scored else shown
    if found.links:
        width = max(len(link.word) for link in found.links)
        for link in found.links:
            others = sorted((look for look in link.looks if look[0] != link.source), key=lambda look: -look[1])
            more = ", ".join(f"{word} {share:.0%}" for word, share in others[:2] if share >= 0.1)
            yield f"  {link.word:{width}}  ← {link.source} {link.weight:.0%}{', ' + more if more else ''}"
