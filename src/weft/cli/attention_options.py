"""Options of `weft attention RUN INPUT`."""

from __future__ import annotations

from typing import Annotated

import typer

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN INPUT [PAIR]", help="A run or Hugging Face folder, and a text or an image; - is stdin."
    ),
]
Pair = Annotated[str | None, typer.Option(metavar="TEXT", help="The second text, of a run that reads pairs.")]
Target = Annotated[
    str | None, typer.Option(metavar="TEXT", help="The text to be written. Default: what the run writes itself")
]
Layer = Annotated[int | None, typer.Option(help="Only this layer of each part, from 1.")]
Head = Annotated[int | None, typer.Option(help="Only this head of each layer, from 1.")]
InLetters = Annotated[bool, typer.Option("--text", help="One layer and head in letters, instead of a page.")]
AllWeights = Annotated[bool, typer.Option("--weights", help="With --json: all weights, not a summary.")]
