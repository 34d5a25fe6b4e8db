"""Random tags of every scheme, well-formed and not, for comparing with seqeval. `python tests/tag_setup.py` renews
the stored values where seqeval is installed."""

import json
import random
import sys
from pathlib import Path

REFERENCE = Path(__file__).parent / "tag" / "seqeval_reference.json"
LETTERS = {"iob2": "BI", "iob1": "BI", "bioes": "BIES", "bilou": "BILU", "bare": "BI"}
TYPES = ("PER", "LOC", "ORG", "A-B")


def entities(rng, words, share):
    """Disjoint stretches of a sentence with types."""
    found, place = [], 0
    while place < words:
        length = rng.randint(1, 4)
        if rng.random() < share:
            found.append((rng.choice(TYPES), place, min(place + length, words) - 1))
        else:
            length = rng.randint(1, 3)
        place += length
    return found


def written(found, words, scheme):
    """The tags of a sentence with these entities."""
    tags, before = ["O"] * words, None
    for kind, first, last in found:
        letters = ["I"] * (last - first + 1)
        if scheme in ("iob2", "bare") or (scheme == "iob1" and before == (kind, first - 1)):
            letters[0] = "B"
        if scheme in ("bioes", "bilou"):
            letters[0], letters[-1] = "B", "E" if scheme == "bioes" else "L"
            letters = letters if first != last else ["S" if scheme == "bioes" else "U"]
        end = "" if scheme == "bare" else f"-{kind}"
        tags[first : last + 1] = [letter + end for letter in letters]
        before = (kind, last)
    return tags


def noisy(rng, tags, scheme, share):
    """The same with some tags replaced by any others."""
    letters = LETTERS[scheme]
    options = ["O", *(letters if scheme == "bare" else [f"{a}-{kind}" for a in letters for kind in TYPES])]
    return [rng.choice(options) if rng.random() < share else tag for tag in tags]


def case(number):
    """True and predicted tags of a few sentences."""
    rng = random.Random(number)
    scheme = list(LETTERS)[number % len(LETTERS)]
    lengths = [rng.randint(1, 12) for _ in range(rng.randint(1, 6))]
    true = [written(entities(rng, n, rng.choice([0.0, 0.4, 0.8])), n, scheme) for n in lengths]
    if number % 3 == 0:  # the truth breaks the rules too
        true = [noisy(rng, tags, scheme, 0.3) for tags in true]
    share = rng.choice([0.0, 0.2, 0.5, 1.0])
    return scheme, true, [noisy(rng, tags, scheme, share) for tags in true]


def in_bioes(sentences):
    """What seqeval reads: it does not know the letters of BILOU."""
    swap = {"L": "E", "U": "S"}
    return [[swap.get(tag[0], tag[0]) + tag[1:] for tag in tags] for tags in sentences]


def by_seqeval(true, predicted):
    """Its values in its usual mode."""
    from seqeval.metrics import accuracy_score, f1_score, precision_score, recall_score
    from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

    true, predicted = in_bioes(true), in_bioes(predicted)
    names = sorted({kind for side in (true, predicted) for kind, _, _ in get_entities(side)})
    each = precision_recall_fscore_support(true, predicted, average=None, zero_division=0) if names else ([],) * 4
    scores = (precision_score, recall_score, f1_score)
    return {
        **{f.__name__.split("_")[0]: float(f(true, predicted, zero_division=0)) if names else 0.0 for f in scores},
        "accuracy": float(accuracy_score(true, predicted)),
        "types": {name: [float(part[n]) for part in each] for n, name in enumerate(names)},
    }


# -- tiny runs ----------------------------------------------------------------------------------

SMALL = [
    "model.width=32", "model.depth=1", "model.attention.heads=2", "model.max_length=32", "model.dropout=0.1",
    "training.batch=16", "training.micro_batch=10", "training.optimizer.kind=adamw",
    "training.optimizer.learning_rate=0.01", "training.warmup=0.1", "training.decay=0.5",
]  # fmt: skip


def write_conll(path, part="train", count=300, plain=False):
    """The first of the embedded sentences as CoNLL; `plain`: whether each word begins with a capital, or is a sign."""
    from weft.tasks.tag.demo import demo_sentences

    sentences = demo_sentences(part)
    with path.open("w", encoding="utf-8") as file:
        for words, tags in zip(sentences.words[:count], sentences.tags[:count], strict=True):
            told = [_form(word) for word in words] if plain else tags
            file.write("".join(f"{word}\t{tag}\n" for word, tag in zip(words, told, strict=True)) + "\n")
    return path


def _form(word):
    return "NAME" if word[0].isupper() else "WORD" if word[0].isalpha() else "SIGN"


def tag_words(data, out, steps, *more):
    """`weft train tag …` in a second; later words win."""
    from table_setup import sets

    return ["train", "tag", data, "--steps", str(steps), "--out", str(out), "--threads", "1", *sets(*SMALL), *more]


if __name__ == "__main__":
    kept = []
    for number in range(60):
        scheme, true, predicted = case(number)
        kept.append({"scheme": scheme, "true": true, "predicted": predicted, **by_seqeval(true, predicted)})
    REFERENCE.write_text("[\n" + ",\n".join(json.dumps(item) for item in kept) + "\n]\n", encoding="utf-8")
    sys.exit(0)
