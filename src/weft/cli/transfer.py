"""`weft import`, `weft export`: models from Hugging Face, and back to it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer


def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="HF_DIR|FILE", help="A Hugging Face folder, owner/name on its hub, FILE.arpa, or word2vec's file."
        ),
    ],
    out: Annotated[str, typer.Option(help="Directory of the new run.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Make a run of a model that comes from Hugging Face or from timm, or of n-grams in an ARPA file.

    Example:  weft import models/gpt2 --out runs/gpt2
    """
    from weft.exchange.transfer import import_model
    from weft.tasks.task import first_use

    made = import_model(source, out)
    if as_json:
        typer.echo(json.dumps(made))
        return
    if made["converter"] == "word2vec":
        typer.echo(f"Imported {made['vocab_size']:,} vectors of {made['width']} numbers from {source} into {out}")
        typer.echo(f"Try:  {first_use(made['use'], out)}")
        return
    size = f"{made['parameters'] / 1e6:.2f} M parameters"
    typer.echo(f"Imported {source} ({made['converter']}, {size}, {_about(made)}) into {out}")
    _notes(made["notes"])
    if made["tokenizer"] or "classes" in made:
        typer.echo(f"Try:  {first_use(made['use'], out)}")
    else:
        typer.echo(f'Try in Python:  weft.load("{out}").model(ids)')


def _about(made: dict[str, Any]) -> str:
    """What a model reads, or looks at."""
    if "classes" in made:
        what = "grey images" if made["channels"] == 1 else "images"
        size = f" of {made['image_size']} × {made['image_size']}" if made["image_size"] else ""
        return f"{what}{size}, {made['classes']:,} classes"
    tokenizer = f"a {made['tokenizer']} tokenizer" if made["tokenizer"] else "no tokenizer"
    return f"vocabulary {made['vocab_size']:,}, {made['max_length']:,} tokens at a time, {tokenizer}"


def export(
    run: Annotated[str, typer.Argument(help="The directory of the run.")],
    folder: Annotated[str, typer.Argument(metavar="DIR|FILE", help="The folder or file to make.")],
    to: Annotated[
        str | None,
        typer.Option(
            help="hf: a folder for Hugging Face's transformers; arpa: n-grams; word2vec or word2vec-binary: vectors of"
            " words. By default what suits the model."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Write a run for Hugging Face, with a certificate that it is the same model; n-grams for KenLM; or word vectors.

    Example:  weft export runs/generate-book-1 book-hf --to hf

    Example:  weft export runs/embed-book-1 vectors.txt --to word2vec
    """
    from weft.exchange.formats import check_format

    check_format(to)
    from weft.exchange.transfer import export_run

    certificate = export_run(run, folder, to=to)
    if as_json:
        typer.echo(json.dumps(certificate))
        return
    if "ngrams" in certificate:
        ngrams = ", ".join(f"{count:,}" for count in certificate["ngrams"])
        typer.echo(f"Exported {run} to {folder}: {ngrams} n-grams of 1 … {certificate['order']} tokens.")
        typer.echo(f"Read again, logarithms differ by at most {certificate['difference']:.2g}.")
        if certificate["tokenizer"]:
            typer.echo(f"How text becomes these tokens: {certificate['tokenizer']}")
        return
    if "words" in certificate:
        words, width = certificate["words"], certificate["width"]
        typer.echo(f"Wrote {words:,} vectors of {width} numbers to {folder} ({certificate['format']}).")
        return
    auto, what = certificate["auto_class"], _listed(certificate["compared"])
    typer.echo(f"Exported {run} to {folder} as {certificate['architecture']}.")
    _notes(f"left out: {what}" for what in certificate["left_out"])
    typer.echo(
        f"Certificate: read again, the weights are {certificate['weights']} and {what} differ by "
        f"{certificate['difference']:.2g}; {_compared(certificate['transformers'], what)}."
    )
    typer.echo(f'Try in Python:  from transformers import {auto}\n                {auto}.from_pretrained("{folder}")')


def _compared(theirs: dict[str, Any], what: str) -> str:
    if "not_compared" in theirs:
        return f"not compared: {theirs['not_compared']}"
    pairs = ", also of pairs with their segments" if "pairs_tokenised" in theirs else ""
    ids = f", token ids are equal{pairs}" if "texts_tokenised" in theirs else ""
    ids += f", {theirs['tokens_written']} tokens that it writes are the same" if "tokens_written" in theirs else ""
    ids += f", prepared pixels by {theirs['pixel_difference']:.2g}" if "pixel_difference" in theirs else ""
    return f"in transformers {theirs['version']} {what} differ by at most {theirs['difference']:.2g}{ids}"


def _listed(names: Iterable[str]) -> str:
    *before, last = (name.replace("_", " ") for name in names)
    return f"{', '.join(before)} and {last}" if before else last


def _notes(notes: Any) -> None:
    for note in notes:
        typer.echo(f"Note: {note}.")
