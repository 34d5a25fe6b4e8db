"""Random tags of every scheme, well-formed and not, for comparing with seqeval.

`python tests/tag/random_tags.py` renews the stored values where seqeval is installed.
"""

import json
import random
import sys
from pathlib import Path

REFERENCE = Path(__file__).with_name("seqeval_reference.json")
LETTERS = {"iob2": "BI", "iob1": "BI", "bioes": "BIES", "bilou": "BILU", "bare": "BI"}
TYPES = ("PER", "LOC", "ORG", "A-B")


def draw_entities(rng, words, share):
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


def write_tags(found, words, scheme):
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


def replace_tags(rng, tags, scheme, share):
    """The same with some tags replaced by any others."""
    letters = LETTERS[scheme]
    options = ["O", *(letters if scheme == "bare" else [f"{a}-{kind}" for a in letters for kind in TYPES])]
    return [rng.choice(options) if rng.random() < share else tag for tag in tags]


def make_case(number):
    """True and predicted tags of a few sentences."""
    rng = random.Random(number)
    scheme = list(LETTERS)[number % len(LETTERS)]
    lengths = [rng.randint(1, 12) for _ in range(rng.randint(1, 6))]
    true = [write_tags(draw_entities(rng, n, rng.choice([0.0, 0.4, 0.8])), n, scheme) for n in lengths]
    if number % 3 == 0:  # the truth breaks the rules too
        true = [replace_tags(rng, tags, scheme, 0.3) for tags in true]
    share = rng.choice([0.0, 0.2, 0.5, 1.0])
    return scheme, true, [replace_tags(rng, tags, scheme, share) for tags in true]


def to_bioes(sentences):
    """What seqeval reads: it does not know the letters of BILOU."""
    swap = {"L": "E", "U": "S"}
    return [[swap.get(tag[0], tag[0]) + tag[1:] for tag in tags] for tags in sentences]


def score_by_seqeval(true, predicted):
    """Its values in its usual mode."""
    from seqeval.metrics import accuracy_score, f1_score, precision_score, recall_score
    from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

    true, predicted = to_bioes(true), to_bioes(predicted)
    names = sorted({kind for side in (true, predicted) for kind, _, _ in get_entities(side)})
    each = precision_recall_fscore_support(true, predicted, average=None, zero_division=0) if names else ([],) * 4
    scores = (precision_score, recall_score, f1_score)
    return {
        **{f.__name__.split("_")[0]: float(f(true, predicted, zero_division=0)) if names else 0.0 for f in scores},
        "accuracy": float(accuracy_score(true, predicted)),
        "types": {name: [float(part[n]) for part in each] for n, name in enumerate(names)},
    }


if __name__ == "__main__":
    kept = []
    for number in range(60):
        scheme, true, predicted = make_case(number)
        kept.append({"scheme": scheme, "true": true, "predicted": predicted, **score_by_seqeval(true, predicted)})
    REFERENCE.write_text("[\n" + ",\n".join(json.dumps(item) for item in kept) + "\n]\n", encoding="utf-8")
    sys.exit(0)
