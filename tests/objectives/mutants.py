"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

PAIRS = ["tests/objectives/test_text_to_text.py", "tests/data/test_by_tokens.py"]
CARRIED = ["tests/objectives/test_recurrent_state.py"]

MUTANTS = [
    Mutant(
        "translating: labels are not shifted",
        "objectives/text_to_text.py",
        old="torch.cat([torch.full((len(wanted), 1), start), wanted[:, :-1]], 1)",
        new="wanted",
        tests=PAIRS,
    ),
    Mutant(
        "translating: smoothing is dropped",
        "objectives/text_to_text.py",
        old="label_smoothing=self.smoothing",
        new="label_smoothing=0.0",
        tests=PAIRS,
    ),
    Mutant(
        "translating: the same length_buckets in every epoch",
        "data/by_tokens.py",
        old='f"pairs of epoch {epoch}"',
        new='"pairs"',
        tests=PAIRS,
    ),
    Mutant(
        "translating: length_buckets in the same order in every epoch",
        "data/by_tokens.py",
        old="Shuffle(self.per_epoch, hash_numbers(self.seed, 1), epoch)",
        new="Shuffle(self.per_epoch, hash_numbers(self.seed, 1), 0)",
        tests=PAIRS,
    ),
    Mutant(
        "recurring: the gradient crosses",
        "objectives/recurrent_state.py",
        old="part.detach() for part",
        new="part for part",
        tests=CARRIED,
    ),
    Mutant(
        "recurring: an epoch goes on from the last",
        "objectives/recurrent_state.py",
        old=".masked_fill(batch.fresh[:, None], 0)",
        new="",
        tests=CARRIED,
    ),
    Mutant(
        "recurring: streams exchange their states",
        "objectives/recurrent_state.py",
        old="table[streams] = part",
        new="table[streams.flip(0)] = part",
        tests=CARRIED,
    ),
    Mutant(
        "recurring: some streams are taken for all",
        "objectives/recurrent_state.py",
        old="whole = len(places) == streams and bool((places == np.arange(streams)).all())",
        new="whole = len(places) == streams",
        tests=CARRIED,
    ),
    Mutant(
        "recurring: a fresh stream remembers",
        "objectives/recurrent_state.py",
        old="if fresh.any() else None",
        new="if False else None",
        tests=CARRIED,
    ),
]
