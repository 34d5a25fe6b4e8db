"""`weft tour`: attention on one sentence, with its map."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from torch import Tensor

SENTENCE = "Peter Piper picked a peck of pickled peppers"
SHADES = " ░▒▓█"


def tour(
    sentence: Annotated[str, typer.Argument(help="A few words; each becomes one row of the map.")] = SENTENCE,
    beta: Annotated[
        float | None, typer.Option(help="Inverse temperature: 0 averages, inf takes the best. Default 1/√width.")
    ] = None,
    causal: Annotated[bool, typer.Option("--causal", help="Words see only what came before them.")] = False,
    kind: Annotated[str, typer.Option(help="The attention kind.")] = "softmax",
) -> None:
    """A short tour: compute attention on a sentence and draw who looks at whom.

    Example:  weft tour "a rose is a rose" --causal --beta 2
    """
    from weft.errors import DataError
    from weft.index import is_enough, stand_ins

    words = sentence.split()
    if not words:
        raise DataError("the sentence is empty", expected="at least one word")
    if is_enough():
        stand_ins()["AttentionConfig"].from_config(kind).override({} if beta is None else {"beta": beta})
    from rich.console import Console

    from weft.blocks.attention import EVERYTHING, AttentionConfig, Mask

    mask = Mask(causal=True) if causal else EVERYTHING
    vectors = word_vectors(words)[None, None]
    core = AttentionConfig.from_config(kind).override({} if beta is None else {"beta": beta}).core().eval()
    weights = core.weights(vectors, vectors, mask)[0, 0]
    output = core(vectors, vectors, vectors, mask)[0, 0]
    assert (weights @ vectors[0, 0] - output).abs().max() < 1e-4

    console = Console()
    console.print(
        f"Attention ({kind}) over {len(words)} words. Each row is a word that asks; its numbers say, in percent, "
        "how much it takes from the word of each column. A row adds up to 100.\n"
    )
    draw(words, weights, console)
    console.print(
        "\nThe vectors are made from letter pairs and nothing is learned yet, so words look at words that are "
        "spelled alike. What attention returns is this map times the values (checked: they agree)."
    )
    console.print("\nTry:  weft tour --causal  ·  weft tour --beta 0  ·  weft tour --beta inf  ·  weft --help")


def word_vectors(words: list[str], width: int = 64) -> Tensor:
    """One vector per word from its letter pairs: alike where the spelling is alike, the same every time."""
    import torch

    table = torch.randn(1024, width, generator=torch.Generator().manual_seed(0))
    rows = []
    for word in words:
        marked = f"<{word.lower()}>"
        pairs = [
            zlib.crc32(marked[i : i + 2].encode("utf-8", "surrogatepass")) % len(table) for i in range(len(marked) - 1)
        ]
        rows.append(table[pairs].sum(0) / (2 * len(pairs)) ** 0.5)
    return torch.stack(rows)


def draw(words: list[str], weights: Tensor, console: Console) -> None:
    """The map as shaded cells with percent; columns are numbered where names would not fit."""
    shades = SHADES
    try:
        SHADES.encode(console.encoding)
    except UnicodeEncodeError:
        shades = " .:*#"
    label = min(12, max(len(word) for word in words)) + 4
    shown = max(1, (console.width - label - 1) // 5)
    console.print(" " * label + "".join(f"{i + 1:>5}" for i in range(min(shown, len(words)))), highlight=False)
    for i, (word, row) in enumerate(zip(words, weights.tolist(), strict=True)):
        cells = "".join(f"{shades[min(4, int(share * 5))]}{share * 100:4.0f}" for share in row[:shown])
        console.print(f"{i + 1:>2} {word[:12]:<{label - 3}}{cells}", highlight=False, markup=False)
    if shown < len(words):
        console.print(f"(the terminal is wide enough for {shown} of {len(words)} columns)")
