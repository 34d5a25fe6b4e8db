"""Claims about models of words: which matrix of word2vec is the embedding, and what count models ignore."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.models import CBOWConfig, NGramConfig, SkipGramConfig, Word2VecConfig
from weft.models.ngram.counts import count
from weft.models.ngram.smoothing import SmoothingConfig
from weft.models.word2vec.examples import Chances
from weft.models.word2vec.loss import word_vector_loss
from weft.theory.claim import Evidence, claim, evidence, table, value
from weft.theory.prediction import AtLeast, Near

WORDS, TASTES = 60, 4  # of the language that is made up for T31


@claim(
    "T31",
    "Which matrix of word2vec is the embedding",
    says="""Once trained, the embedding is given in continuous bag of words by the transpose of the second-layer matrix,
    and in skip-grams by the first-layer matrix.""",
    document="002",
    where="slide “The word2vec technique”",
    seconds=3,
)
def which_matrix() -> Evidence:
    """A made-up language in which it is known how alike two words are; both matrices are asked."""
    liking, sentences = _language()
    found = {kind: _similarity(_learned(kind, sentences), liking) for kind in (CBOWConfig, SkipGramConfig)}
    (first, second), (own, other) = found[CBOWConfig], found[SkipGramConfig]
    return evidence(
        value(
            "CBOW: second matrix less first, Spearman with how alike words are",
            second - first,
            document=AtLeast(0.1),
            right=Near(0, 0.1),
        ),
        value("CBOW: first matrix", first, right=AtLeast(0.8)),
        value("CBOW: second matrix", second, document=AtLeast(0.8)),
        value("skip-gram: first matrix", own, document=AtLeast(0.8)),
        says="""In CBOW both matrices carry the meaning of words about equally: what is learned of one word is learned
        from the other matrix. The usual programs keep the first, by which words are read, in both kinds; `weft similar`
        does so too.""",
        brief=1,
        show=[
            table(
                "Spearman of cosines with how alike words are",
                ("", "first matrix", "second matrix"),
                [("CBOW", first, second), ("skip-gram", own, other)],
            )
        ],
    )


def _language() -> tuple[Tensor, np.ndarray[Any, np.dtype[np.int32]]]:
    """Each word has a liking for a few tastes; each sentence has a taste of its own and draws words by it. Words are
    alike that are liked alike."""
    liking = torch.nn.functional.normalize(torch.randn(WORDS, TASTES), dim=-1)
    tastes = torch.nn.functional.normalize(torch.randn(1500, TASTES), dim=-1)
    drawn = torch.multinomial((4 * tastes @ liking.T).softmax(-1), 10, replacement=True)
    border = torch.full((len(drawn), 1), -1)
    return liking, torch.cat([drawn, border], 1).flatten().numpy().astype(np.int32)


def _learned(kind: type[Word2VecConfig], sentences: np.ndarray[Any, np.dtype[np.int32]]) -> Any:
    """The package's own model, examples and loss, learned in large steps."""
    config = kind(vocab_size=WORDS, width=8, window=5, negative=0, sample=0.0)
    model = config.build()
    counts = np.bincount(sentences[sentences >= 0], minlength=WORDS)
    chances = Chances(counts, config, 0)
    steps = torch.optim.Adam(model.parameters(), lr=0.05)
    for step, block in zip(range(100), itertools.cycle(np.array_split(sentences, 30)), strict=False):
        loss, count = word_vector_loss(model, chances.examples(block, chances.base(step)))
        steps.zero_grad()
        torch.autograd.backward(loss / count)
        steps.step()
    return model


def _similarity(model: Any, liking: Tensor) -> tuple[float, float]:
    """Spearman's correlation of cosines with how alike words are, for the first and for the second matrix."""
    pairs = torch.triu_indices(WORDS, WORDS, 1)
    wanted = _ranks((liking @ liking.T)[pairs[0], pairs[1]])
    found = []
    for weight in (model.input.weight, model.output.weight):
        vectors = torch.nn.functional.normalize(weight.detach() - weight.detach().mean(0), dim=-1)
        ranks = _ranks((vectors @ vectors.T)[pairs[0], pairs[1]])
        found.append(float(torch.corrcoef(torch.stack([wanted, ranks]))[0, 1]))
    return found[0], found[1]


def _ranks(values: Tensor) -> Tensor:
    return values.argsort().argsort().to(torch.float64)


# -- counts -----------------------------------------------------------------------------------

TEXT = """the cat sat on the mat . the dog sat on the rug . a cat ran to the dog . the dog ran to a mat .
the cat saw the dog on the mat . a dog saw a cat . the mat was on the rug . a rug was on a mat ."""


@claim(
    "T32",
    "Bag of words and n-grams",
    says="""A bag of words takes words as independent, p(x₁ … x_N) = Π p(x_n), and ignores their order. An n-gram model
    factorises into conditional probabilities that depend on the last n − 1 words only.""",
    document="002",
    where="slides “Bag of words”, “Autoregressive models”",
)
def counts() -> Evidence:
    """A sentence and all its orders, by models that count; the chain rule; and all sentences of two words."""
    words = sorted(set(TEXT.split()))
    ids = np.array([words.index(word) for word in TEXT.split()], dtype=np.int64)
    end = words.index(".")
    models = {n: _counted(ids, n, len(words), end) for n in (1, 2, 3)}
    sentence = [words.index(word) for word in ["the", "cat", "sat", "on", "the", "mat"]]
    orders = [[end, *order] for order in itertools.islice(itertools.permutations(sentence), 0, 720, 7)]
    nats = {n: [model.text_nats(np.array(order)) for order in orders] for n, model in models.items()}
    trigram = models[3]
    logs = trigram(torch.tensor([orders[0]]))[0]
    chain = -float(sum(logs[n, token] for n, token in enumerate(orders[0][1:])))
    far = trigram(torch.tensor([[end, *sentence[::-1][:3], sentence[0], sentence[1]]]))[0, -1]
    near = trigram(torch.tensor([[sentence[0], sentence[1]]]))[0, -1]
    spread = {n: max(v) - min(v) for n, v in nats.items()}
    alone = models[1](torch.tensor([[end]]))[0, -1]
    product = -float(sum(alone[token] for token in sentence))
    total = _all_pairs(trigram, end, len(words))
    rows = [(f"{n}-gram", nats[n][0], min(nats[n]), max(nats[n])) for n in models]
    return evidence(
        value("bag of words: nats of a sentence, most − least of its orders", spread[1], document=Near(0, 1e-9)),
        value("3-gram: the same", spread[3], document=AtLeast(1)),
        value("bag of words: nats − those of the product Π p(x_n)", abs(nats[1][0] - product), document=Near(0, 1e-9)),
        value("3-gram: nats − those of the conditional probabilities", abs(nats[3][0] - chain), document=Near(0, 1e-9)),
        value(
            "3-gram: words further back than two change the next by",
            float((far - near).exp().sub(1).abs().max()),
            document=Near(0, 1e-9),
        ),
        value("3-gram: probability of all beginnings of two words together", total, right=Near(1, 1e-9)),
        says="""The bag of words gives every order of a sentence the same probability; n-grams do not. Their chain rule
        holds: the product of conditional probabilities is the probability of the text, those of all texts sum to 1, and
        what stands further back than n − 1 words changes nothing.""",
        brief=2,
        show=[
            table(
                "Nats of “the cat sat on the mat”", ("model", "as it stands", "likeliest order", "least likely"), rows
            )
        ],
    )


def _counted(ids: np.ndarray[Any, Any], order: int, size: int, end: int) -> Any:
    """A count model with a little for what was never seen (Witten–Bell)."""
    config = NGramConfig(vocab_size=size, order=order, smoothing=SmoothingConfig.from_config("witten-bell"), end=end)
    return config.with_tables(config.smoothing.tables(count(ids, order, size, end), end))


def _all_pairs(model: Any, end: int, size: int) -> float:
    """The sum of p(a)·p(b | a) over all a and b."""
    first = model(torch.tensor([[end]]))[0, -1].exp()
    second = model(torch.tensor([[end, token] for token in range(size)]))[:, -1].exp()
    return float((first[:, None] * second).sum())
