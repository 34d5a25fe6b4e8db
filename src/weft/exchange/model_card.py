"""The pages beside a model that came from elsewhere or goes there: what it is, and how it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from weft.models import Converter, EncodesImages, Seq2SeqLM
from weft.models.images import ImageConfig
from weft.tasks.classify.image_form import preprocessing_of
from weft.tasks.run import Run
from weft.tasks.task import find_use
from weft.tasks.words import Use
from weft.text.hugging_face import TARGET


def imported_readme(path: Path, source: str, converter: Converter, use: Use) -> str:
    """What a run that was imported says of itself."""
    more = f"\n    {use.more.format(path=path)}" if use.more else ""
    return f"""# {path.name}

A model imported by Weft from `{source}`, where it is written as {converter.name}. Its sizes are in `config.json`.

    {use.command(path)}{more}

It was not trained here, so there is nothing to resume.
"""


def model_card(target: Path, run: Run, converter: Converter, left_out: Sequence[str] = ()) -> str:
    """What an exported folder says of itself, as Hugging Face's hub reads it."""
    config = run.model_config
    about, auto = find_use(config)[1], converter.auto_class(config)
    depth, width = getattr(config, "depth", "?"), getattr(config, "width", "?")
    opener = ", AutoTokenizer"
    tokenizer = f'\n    tokenizer = AutoTokenizer.from_pretrained("{target}")' if run.has_tokenizer else ""
    use = ""
    if EncodesImages in config.provides:
        opener, tokenizer, use = (
            _of_images(target, cast(ImageConfig, config)) if preprocessing_of(run) is not None else ("", "", "")
        )
    elif run.has_tokenizer and Seq2SeqLM in config.provides:
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
pipeline_tag: {about.tag}
---
# {target.name}

{about.what} made with Weft: {depth} layers of width {width}, written in the converter of {converter.name}.
`certificate.json` says how exactly this folder gives the same numbers as the run it was made from.
{notes}
    from transformers import {auto}{opener}

    model = {auto}.from_pretrained("{target}"){tokenizer}
{use}"""


def _of_images(target: Path, config: ImageConfig) -> tuple[str, str, str]:
    """What is imported for images, what opens their settings, and how one is looked at."""
    opened = f'\n    processor = AutoImageProcessor.from_pretrained("{target}")'
    mode = "L" if config.channels == 1 else "RGB"
    answer = "logits" if config.head.classes else "last_hidden_state"
    named = config.head.classes > 1 and not config.head.multilabel
    last = "model.config.id2label[int(answer.argmax())]" if named else "answer"
    use = f"""
    inputs = processor(Image.open("image.png").convert("{mode}"), return_tensors="pt")
    answer = model(**inputs).{answer}
    {last}
"""
    return ", AutoImageProcessor\n    from PIL import Image", opened, use
