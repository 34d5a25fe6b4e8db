"""Files of tagged sentences, and the command that learns from them in a second."""

from fixtures.commands import set_flags
from weft.tasks.tag.demo import demo_sentences

TINY_TAGGER = [
    "model.width=32", "model.depth=1", "model.attention.heads=2", "model.max_length=32", "model.dropout=0.1",
    "training.batch=16", "training.micro_batch=10", "training.optimizer.kind=adamw",
    "training.optimizer.learning_rate=0.01", "training.warmup=0.1", "training.decay=0.5",
]  # fmt: skip


def write_conll(path, part="train", count=300, plain=False):
    """The first of the embedded sentences as CoNLL; `plain`: whether each word begins with a capital, or is a sign."""
    sentences = demo_sentences(part)
    with path.open("w", encoding="utf-8") as file:
        for words, tags in zip(sentences.words[:count], sentences.tags[:count], strict=True):
            shown = [_find_form(word) for word in words] if plain else tags
            file.write("".join(f"{word}\t{tag}\n" for word, tag in zip(words, shown, strict=True)) + "\n")
    return path


def _find_form(word):
    return "NAME" if word[0].isupper() else "WORD" if word[0].isalpha() else "SIGN"


def tagger_command(data, out, steps, *more):
    """`weft train tag …`; later words win."""
    return [
        "train",
        "tag",
        data,
        "--steps",
        str(steps),
        "--out",
        str(out),
        "--threads",
        "1",
        *set_flags(*TINY_TAGGER),
        *more,
    ]
