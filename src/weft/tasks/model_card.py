"""The pages beside a model that came from elsewhere or goes there: what it is, and how it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft.models import Layout
from weft.models.pictures import PictureConfig
from weft.tasks.picture_form import preprocessing_of
from weft.tasks.purpose import first_use, purpose, use_of
from weft.tasks.run import Run
from weft.text.hugging_face import TARGET

TAGS = {
    "generate": "text-generation",
    "fill": "fill-mask",
    "classify": "text-classification",
    "translate": "translation",
    "look": "image-classification",
    "begin": "image-feature-extraction",
}
KINDS = {
    "generate": "A language model",
    "fill": "A model that fills gaps in text",
    "classify": "A model that sorts texts",
    "translate": "A model that writes one text from another",
    "read": "A model that reads text",
    "look": "A classifier of pictures",
    "begin": "A model of pictures, without classes,",
}
MORE = {
    "generate": "weft evaluate {path} book.txt",
    "fill": "weft train classify FILE.csv --from {path}",
    "classify": "weft evaluate {path} FILE.csv",
    "translate": "weft evaluate {path} FILE.tsv",
    "read": "weft train classify FILE.csv --from {path}",
    "look": "weft evaluate {path} FOLDER",
}


def imported_readme(path: Path, source: str, layout: Layout, use: str) -> str:
    """What a run that was imported says of itself."""
    more = f"\n    {MORE[use].format(path=path)}" if use in MORE else ""
    return f"""# {path.name}

A model imported by Weft from `{source}`, where it is written as {layout.name}. Its sizes are in `config.json`.

    {first_use(use, path)}{more}

It was not trained here, so there is nothing to resume.
"""


def model_card(target: Path, run: Run, layout: Layout, left_out: Sequence[str] = ()) -> str:
    """What an exported folder says of itself, as Hugging Face's hub reads it."""
    config = run.model_config
    task, auto = use_of(purpose(config), config), layout.auto_class(config)
    depth, width = getattr(config, "depth", "?"), getattr(config, "width", "?")
    opener = ", AutoTokenizer"
    tokenizer = f'\n    tokenizer = AutoTokenizer.from_pretrained("{target}")' if run.has_tokenizer else ""
    use = ""
    if isinstance(config, PictureConfig):
        opener, tokenizer, use = _of_pictures(target, config) if preprocessing_of(run) is not None else ("", "", "")
    elif run.has_tokenizer and task == "translate":
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
    from transformers import {auto}{opener}

    model = {auto}.from_pretrained("{target}"){tokenizer}
{use}"""


def _of_pictures(target: Path, config: PictureConfig) -> tuple[str, str, str]:
    """What is imported for pictures, what opens their settings, and how one is looked at."""
    opened = f'\n    processor = AutoImageProcessor.from_pretrained("{target}")'
    mode = "L" if config.channels == 1 else "RGB"
    answer = "logits" if config.head.classes else "last_hidden_state"
    named = config.head.classes > 1 and not config.head.several
    last = "model.config.id2label[int(answer.argmax())]" if named else "answer"
    use = f"""
    inputs = processor(Image.open("picture.png").convert("{mode}"), return_tensors="pt")
    answer = model(**inputs).{answer}
    {last}
"""
    return ", AutoImageProcessor\n    from PIL import Image", opened, use
