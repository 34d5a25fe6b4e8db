"""Writing what stands in gaps: only texts of the right form, with the probabilities among them."""

import itertools
import math

import pytest
import torch

from weft.generation.gaps import GapDecoding
from weft.generation.search import SearchConfig, beam_search
from weft.models import T5Config

A, B, END, PAD, S0, S1, S2 = range(7)
SENTINELS = [S0, S1, S2]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return T5Config(vocab_size=7, width=16, depth=1, dropout=0.0, start=PAD).build().double().eval()


def decoding(model, sources, counts):
    return GapDecoding(model, sources, counts, sentinels=SENTINELS, end=END, never=[PAD])


def found(model, sources, counts, beams=64, limit=8):
    settings = SearchConfig(beams=beams, best=beams, alpha=0.0, end=END)
    with torch.inference_mode():
        starts = torch.full((len(sources),), PAD)
        return beam_search(decoding(model, sources, counts), starts, settings, [limit] * len(sources))


def forms(count, limit):
    """All texts of the right form that end within the limit."""
    texts = {}
    for sizes in itertools.product(range(1, limit), repeat=count):
        for last in (True, False):
            if sum(sizes) + count + last + 1 <= limit:
                for words in itertools.product((A, B), repeat=sum(sizes)):
                    rest, text = iter(words), []
                    for gap, size in enumerate(sizes):
                        text += [SENTINELS[gap], *itertools.islice(rest, size)]
                    texts[(*text, *([SENTINELS[count]] if last else []))] = None
    return list(texts)


@pytest.mark.parametrize("count", [1, 2])
def test_all_texts_of_the_form_and_no_others(model, count):
    (texts,) = found(model, [[A, S0, B, END]], [count], beams=250, limit=6)
    ended = [tuple(text.tokens) for text in texts if text.ended]
    assert sorted(ended) == sorted(forms(count, 6)) and len(ended) == (44 if count == 1 else 24)
    assert sum(math.exp(text.log_probability) for text in texts) == pytest.approx(1)  # with those that were cut


def test_probabilities_are_those_among_what_may_come_next(model):
    """Token by token without a cache, with the rule written out for one gap."""
    source = [A, S0, B, END]
    text = next(text for text in found(model, [source], [1])[0] if text.ended and S1 in text.tokens)
    written, total = [PAD], 0.0
    for place, token in enumerate([*text.tokens, END]):
        logits = model(torch.tensor([source]), torch.tensor([written]))[0, -1].detach()
        before = written[-1]
        allowed = {PAD: [S0], S0: [A, B], S1: [END]}.get(before, [A, B, S1, END])
        assert token in allowed, place
        total += float(logits[token] - logits[allowed].logsumexp(0))
        written.append(token)
    assert text.log_probability == pytest.approx(total, abs=1e-5)


def test_company_changes_nothing(model):
    sources, counts = [[A, S0, END], [B, S0, A, S1, END], [A, B, S0, END]], [1, 2, 1]
    together = found(model, sources, counts, beams=4)
    for source, count, texts in zip(sources, counts, together, strict=True):
        (alone,) = found(model, [source], [count], beams=4)
        assert [text.tokens for text in alone] == [text.tokens for text in texts]
        assert all(text.tokens.count(S1) <= 1 and text.tokens[0] == S0 for text in texts)
