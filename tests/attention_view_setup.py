"""Tiny runs of all that looks, and of some that do not, made when a test first asks for them."""

from image_setup import image_words, write_folder
from table_setup import fill_words, sets, translate_words
from training_setup import here

PAIRED = ["model.depth=2"]
OWN = {  # what is trained, after the table's own desk
    "reads the same layer": ("translate", sets("model.memory=same", *PAIRED)),
    "reads one table": ("translate", sets("model.memory=joint", *PAIRED)),
    "t5": ("translate", ["--model", "t5", *sets(*PAIRED)]),
    "t5-fill": ("fill", ["--model", "t5", "--tokenizer", "unigram"]),
    "bahdanau": ("recurrent", ["--model", "bahdanau"]),
    "seq2seq": ("recurrent", ["--model", "seq2seq"]),
    "vit": ("images", ["--model", "vit"]),
    "vit-class": ("images", ["--model", "vit", *sets("model.pool=class")]),
    "davit": ("davit", ["--model", "davit"]),
    "resnet": ("davit", ["--model", "resnet"]),
    "lstm": ("text", ["--model", "lstm"]),
    "bigram": ("counted", ["--model", "bigram"]),
    "bag-of-words": ("table", ["--model", "bag-of-words"]),
}
DAVIT = sets("model.widths=8,16", "model.depths=1,1", "model.strides=2,2", "model.head_width=4", "model.window=4")


def run_of(desk, name):
    """The path of a run: one of the desk's own, or of the list above."""
    if name not in OWN:
        return desk.run(name)
    path = desk.path / "runs" / f"look-{name}".replace(" ", "-")
    if not path.exists():
        here(*_words(desk, name, str(path)), cwd=desk.path)
    return path


def image_of(desk):
    if not (desk.path / "bars").exists():
        write_folder(desk.path / "bars", 24)
    return next(iter(sorted((desk.path / "bars").rglob("*.png"))))


def _words(desk, name, out):
    how, more = OWN[name]
    ending = ["--steps", "2", "--out", out, "--threads", "1"]
    if how == "translate":
        return translate_words("reversals.tsv", out, 2, *more)
    if how == "fill":
        return fill_words("book.txt", out, 2, *more)
    if how == "recurrent":
        return ["train", "translate", "reversals.tsv", *ending, *sets("model.width=16", "model.max_length=24"), *more]
    if how == "images":
        image_of(desk)
        return image_words("bars", out, 2, *more)
    if how == "davit":
        image_of(desk)
        return ["train", "classify", "bars", *ending, *more, *(DAVIT if name == "davit" else [])]
    if how == "table":
        return ["train", "classify", "single.csv", *ending, *more]
    if how == "counted":
        return ["train", "generate", "book.txt", "--out", out, *more]
    return ["train", "generate", "book.txt", *ending, *sets("model.width=16"), *more]
