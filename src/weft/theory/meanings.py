"""The claim about words of two meanings, which trains models."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from weft.models import BERTConfig, SkipGramConfig
from weft.models.word2vec.examples import Chances
from weft.models.word2vec.loss import word_vector_loss
from weft.theory.claim import Evidence, claim, evidence, table, value
from weft.theory.prediction import AtLeast, Near

STEPS, LENGTH = 250, 11
RIVER = (
    ("i", "we", "they"),
    ("swam", "rowed", "waded"),
    ("across", "over"),
    ("the",),
    ("river", "stream", "water"),
    ("to", "and"),
    ("reach", "see"),
    ("the",),
    ("other", "green", "muddy"),
    ("bank",),
)
MONEY = (
    ("i", "we", "they"),
    ("walked", "drove", "went"),
    ("across", "over"),
    ("the",),
    ("road", "street", "square"),
    ("to", "and"),
    ("get", "borrow"),
    ("cash", "coins", "money"),
    ("from",),
    ("the",),
    ("bank",),
)


@claim(
    "T39",
    "“bank” means two things",
    says="""In “I swam across the river to get to the other bank” and “I walked across the road to get cash from the
    bank” the word bank has different meanings. To tell them apart, a network has to attend to other words, such as
    river and cash.""",
    document="002",
    where="slide “Attention”",
    seconds=40,
    on_request=True,
)
def bank() -> Evidence:
    """A word2vec and a small BERT learn the same sentences; then each is asked for the vector of bank in both."""
    words = ["[PAD]", "[MASK]", *sorted({word for parts in (RIVER, MONEY) for part in parts for word in part})]
    river, money = _sentences(RIVER, words), _sentences(MONEY, words)
    place = words.index("bank")
    every = torch.cat([river, money])
    vectors = _word_vectors(every, len(words))
    model = _reader(every, len(words))
    rows = [
        (name, *_distances(read, river, money, place))
        for name, read in (("word2vec", vectors.__getitem__), ("contextual", functools.partial(_states, model)))
    ]
    apart, (*within, across) = rows[0][3], rows[1][1:]
    return evidence(
        value("word2vec: cosine distance of the two banks", apart, document=Near(0, 1e-5)),
        value("contextual: distance across meanings", across, document=AtLeast(0.1)),
        value("contextual: that over the distance inside one meaning", across / max(within), document=AtLeast(2)),
        says=f"""word2vec has one vector for a word, whatever stands around it. In a model that attends, the state of
        bank depends on its sentence: after {STEPS} steps of guessing hidden words, banks of rivers lie together, those
        of money lie together, and the two lie apart.""",
        brief=2,
        show=[
            table(
                "Mean cosine distance of bank in two sentences", ("", "both river", "both money", "one of each"), rows
            )
        ],
    )


def _sentences(parts: tuple[tuple[str, ...], ...], words: list[str]) -> Tensor:
    """Every combination, as rows of ids; what is missing at the end is padding."""
    rows = [[words.index(word) for word in chosen] for chosen in itertools.product(*parts)]
    return torch.tensor([row + [0] * (LENGTH - len(row)) for row in rows])


def _word_vectors(sentences: Tensor, size: int) -> Tensor:
    """The first matrix of a skip-gram model that has read all sentences."""
    config = SkipGramConfig(vocab_size=size, width=16, window=5, negative=0, sample=0.0)
    model = config.build()
    text = torch.cat([sentences, torch.zeros(len(sentences), 1, dtype=torch.long)], 1).flatten().numpy()
    text = np.where(text == 0, -1, text).astype(np.int32)
    chances = Chances(np.bincount(text[text >= 0], minlength=size), config, 0)
    steps = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(20):
        start = step * 500 * (LENGTH + 1) % len(text)
        loss, count = word_vector_loss(model, chances.examples(text[start : start + 2000], chances.base(step)))
        steps.zero_grad()
        torch.autograd.backward(loss / count)
        steps.step()
    found: Tensor = model.input.weight.detach()
    return found


def _reader(sentences: Tensor, size: int) -> Any:
    """A small BERT that has learned to guess hidden words."""
    sizes: dict[str, Any] = {"width": 32, "depth": 2, "attention": {"kind": "softmax", "heads": 2}, "head": "masked"}
    model = BERTConfig(vocab_size=size, max_length=16, **sizes).build()
    steps = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        rows = sentences[torch.randint(len(sentences), (64,))]
        keep = rows != 0
        hidden = keep & (torch.rand(rows.shape) < 0.2)
        states = model.hidden(rows.masked_fill(hidden, 1), keep=keep)
        loss = F.cross_entropy(model.masked_logits(states[hidden]), rows[hidden])
        steps.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        steps.step()
    return model.eval()


def _states(model: Any, rows: Tensor) -> Tensor:
    with torch.no_grad():
        states: Tensor = model.hidden(rows, keep=rows != 0)
    return states


def _distances(read: Callable[[Tensor], Tensor], river: Tensor, money: Tensor, word: int) -> tuple[float, float, float]:
    """Of the word's vectors in two sentences: both of a river, both of money, one of each."""
    some = [rows[torch.randperm(len(rows))[:64]] for rows in (river, money)]
    ours, theirs = (read(rows)[rows == word] for rows in some)
    return _distance(ours[::2], ours[1::2]), _distance(theirs[::2], theirs[1::2]), _distance(ours, theirs)


def _distance(one: Tensor, other: Tensor) -> float:
    """1 − cosine, the mean over all pairs."""
    return float(1 - (F.normalize(one, dim=-1) @ F.normalize(other, dim=-1).T).mean())
