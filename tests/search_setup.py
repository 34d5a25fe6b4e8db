"""A model for searches that is nothing but a function, and a watch on the rules of a `Decoding`."""

import itertools

import numpy as np
import torch

from weft.generation import SearchConfig, beam_search

END, START, WORDS = 0, 5, 5  # the start token is not one that can be written


class Fake:
    """A model that is a function (source, what is written) → logits, and a watch on the rules of a `Decoding`."""

    def __init__(self, logits, sources):
        self.logits, self.sources = logits, list(sources)
        self.rows = [(place, ()) for place in range(len(self.sources))]
        self.read = []  # rows of each step
        self.moved = 0

    def step(self, tokens):
        assert tokens.shape == (len(self.rows),)
        self.rows = [(place, (*text, token)) for (place, text), token in zip(self.rows, tokens.tolist(), strict=True)]
        self.read.append(len(self.rows))
        return torch.stack([self.logits(self.sources[place], text[1:]) for place, text in self.rows])

    def places(self):
        counted = {place: len(list(rows)) for place, rows in itertools.groupby(place for place, _ in self.rows)}
        assert list(counted) == sorted(counted) and len(set(counted.values())) <= 1
        return list(counted)

    def select(self, rows):
        before = self.places()
        self.rows = [self.rows[row] for row in rows.tolist()]
        assert self.places() == before
        self.moved += 1

    def keep(self, sources):
        kept = [self.places()[n] for n in sources.tolist()]
        assert kept == sorted(kept) and 0 < len(kept) < len(self.places())
        self.rows = [row for row in self.rows if row[0] in kept]


def chance(seed, words=WORDS, spread=1.5):
    """Random logits, the same for the same source and text."""
    return lambda source, text: torch.from_numpy(
        spread * np.random.default_rng([seed, source, *text]).normal(size=words)
    )


def settings(**changes):
    return SearchConfig(**({"end": END} | changes))


def search(logits, sources, config, limits, how=beam_search):
    """What is found for these sources, and the fake that was asked."""
    decoding = Fake(logits, sources)
    return how(decoding, torch.full((len(sources),), START), config, limits), decoding
