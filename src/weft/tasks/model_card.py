"""The pages beside a model that came from elsewhere or goes there: what it is, and how it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft.models import Layout
from weft.tasks.purpose import first_use, purpose
from weft.tasks.run import Run
from weft.text.hugging_face import TARGET

TAGS = {
    "generate": "text-generation",
    "fill": "fill-mask",
    "classify": "text-classification",
    "translate": "translation",
}
KINDS = {
    "generate": "A language model",
    "fill": "A model that fills gaps in text",
    "classify": "A model that sorts texts",
    "translate": "A model that writes one text from another",
    "read": "A model that reads text",
}
MORE = {
    "generate": "weft evaluate {path} book.txt",
    "fill": "weft train classify FILE.csv --from {path}",
    "classify": "weft evaluate {path} FILE.csv",
    "translate": "weft evaluate {path} FILE.tsv",
    "read": "weft train classify FILE.csv --from {path}",
}


def imported_readme(path: Path, source: str, layout: Layout, task: str) -> str:
    """What a run that was imported says of itself."""
    return f"""# {path.name}

A model imported by Weft from `{source}`, where it is written as {layout.name}. Its sizes are in `config.json`.

    {first_use(task, path)}
    {MORE[task].format(path=path)}

It was not trained here, so there is nothing to resume.
"""


def model_card(target: Path, run: Run, layout: Layout, left_out: Sequence[str] = ()) -> str:
    """What an exported folder says of itself, as Hugging Face's hub reads it."""
    config = run.model_config
    task, auto = purpose(config), layout.auto_class(config)
    depth, width = getattr(config, "depth", "?"), getattr(config, "width", "?")
    tokenizer = f'\n    tokenizer = AutoTokenizer.from_pretrained("{target}")' if run.has_tokenizer else ""
    use = ""
    if run.has_tokenizer and task == "translate":
        other = run.source_tokenizer is not run.tokenizer
        writer = "written" if other else "tokenizer"
        tokenizer += f'\n    written = AutoTokenizer.from_pretrained("{target / TARGET}")' if other else ""
        use = f"""
    inputs = tokenizer(["a text of yours"], padding=True, return_tensors="pt")
    {writer}.batch_decode(model.generate(**inputs), skip_special_tokens=True)
"""
    notes = "".join(f"\nLeft out: {what}.\n" for what in left_out)
    return f"""---
library_name: transformers
pipeline_tag: {TAGS.get(task, "feature-extraction")}
---
# {target.name}

{KINDS[task]} made with Weft: {depth} layers of width {width}, written in the layout of {layout.name}.
`certificate.json` says how exactly this folder gives the same numbers as the run it was made from.
{notes}
    from transformers import {auto}, AutoTokenizer

    model = {auto}.from_pretrained("{target}"){tokenizer}
{use}"""
