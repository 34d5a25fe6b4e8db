"""A bag of words: logits against a float64 sum by hand, and no trace of the order."""

import math
import random
from collections import Counter

import numpy as np
import pytest
import torch

from weft.cost import cost_of
from weft.errors import ConfigError
from weft.models import BagOfWordsConfig, ModelConfig, TextRow, preset
from weft.objectives import Classification, LabelledRow

V = 20


def model_of(**fields):
    config = BagOfWordsConfig(vocab_size=V, **{"head": {"kind": "classes", "classes": 3}} | fields)
    model = config.build().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p))
    return model


def some_texts(count=7, seed=0, longest=9):
    rng = random.Random(seed)
    return [[rng.randrange(V) for _ in range(rng.randint(1, longest))] for _ in range(count)]


def by_hand(model, first, second=None):
    """Σ count · weight + bias in float64."""
    weight, bias = (p.detach().double().numpy() for p in model.classes[0].parameters())
    once = model.config.repeats == "once"
    bags = [Counter(first), Counter(second or [])]
    logits = bias.copy()
    for part, bag in enumerate(bags):
        for token, count in bag.items():
            logits += weight[:, part * V + token] * (1 if once else count)
    for token in bags[0].keys() & bags[1].keys():
        logits += weight[:, 2 * V + token]
    return logits


@pytest.mark.parametrize("repeats", ["once", "each"])
def test_the_sum_by_hand(repeats):
    model, texts = model_of(repeats=repeats), some_texts()
    texts.append([3] * 8)
    with torch.inference_mode():
        logits = model.text_logits(TextRow.of(texts)).double().numpy()
    wanted = np.array([by_hand(model, text) for text in texts])
    assert np.abs(logits - wanted).max() < 1e-5


@pytest.mark.parametrize("repeats", ["once", "each"])
def test_pairs_have_a_bag_each_and_one_for_what_they_share(repeats):
    model = model_of(pairs=True, repeats=repeats)
    firsts, seconds = some_texts(seed=1), some_texts(seed=2)
    texts = [a + b for a, b in zip(firsts, seconds, strict=True)]
    segments = [[0] * len(a) + [1] * len(b) for a, b in zip(firsts, seconds, strict=True)]
    with torch.inference_mode():
        logits = model.text_logits(TextRow.of(texts, segments)).double().numpy()
        alone = model.text_logits(TextRow.of(firsts)).double().numpy()
    wanted = np.array([by_hand(model, a, b) for a, b in zip(firsts, seconds, strict=True)])
    assert any(set(a) & set(b) for a, b in zip(firsts, seconds, strict=True))
    assert np.abs(logits - wanted).max() < 1e-5
    assert np.abs(alone - np.array([by_hand(model, a) for a in firsts])).max() < 1e-5


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("repeats", ["once", "each"])
def test_order_does_not_matter(pairs, repeats):
    """To the last bit; and another text does have other logits."""
    model, rng = model_of(pairs=pairs, repeats=repeats), random.Random(3)
    for text in some_texts(20, longest=30):
        shuffled = rng.sample(text, len(text))
        both = model(torch.tensor([text, shuffled]))
        assert torch.equal(both[0], both[1])
        other = model(torch.tensor([[(text[0] + 1) % V, *text[1:]]]))
        assert not torch.equal(other[0], both[0]) or set(text) == {*text[1:], (text[0] + 1) % V}


def test_texts_do_not_see_each_other():
    model, texts = model_of(), some_texts(12)
    together = model.text_logits(TextRow.of(texts))
    for text, logits in zip(texts, together, strict=True):
        assert torch.equal(model.text_logits(TextRow.of([text]))[0], logits)


def test_gradients_reach_the_tokens_that_are_there():
    """Against autograd through a matrix of counts."""
    model, texts = model_of(repeats="each"), some_texts()
    labels = torch.tensor([n % 3 for n in range(len(texts))])
    Classification("single").loss(model.text_logits(TextRow.of(texts)), labels).backward()
    found = [p.grad.clone() for p in model.classes.parameters()]
    model.zero_grad()
    counts = torch.stack([torch.bincount(torch.tensor(text), minlength=V).float() for text in texts])
    torch.nn.functional.cross_entropy(model.classes(counts), labels, reduction="sum").backward()
    for grad, p in zip(found, model.classes.parameters(), strict=True):
        assert torch.allclose(grad, p.grad, atol=1e-5)


def test_it_begins_without_an_opinion():
    model = BagOfWordsConfig(vocab_size=V).build()
    batch = LabelledRow(TextRow.of(some_texts(4)), torch.tensor([0, 1, 0, 1]))
    loss, count = Classification("single")(model, batch)
    assert float(loss.detach()) / count == pytest.approx(math.log(2))


def test_dropout_leaves_tokens_out_and_keeps_the_mean():
    model = model_of(dropout=0.5).train()
    text, weight = [1, 2, 3], model.classes[0].weight.detach()
    drawn = torch.stack([model.text_logits(TextRow.of([text] * 50)) for _ in range(80)]).flatten(0, 1).detach()
    plain = model.eval().text_logits(TextRow.of([text]))[0].detach()
    assert torch.allclose(drawn.mean(0), plain, atol=0.15)
    possible = {
        tuple(round(float(x), 3) for x in sum((2 * weight[:, t] for t in kept), model.classes[0].bias.detach()))
        for kept in ([], [1], [2], [3], [1, 2], [1, 3], [2, 3], [1, 2, 3])
    }
    assert {tuple(round(float(x), 3) for x in row) for row in drawn} == possible


def test_its_config():
    assert preset("bag-of-words") == ("bag-of-words", {})
    config = ModelConfig.from_config({"kind": "bag-of-words", "vocab_size": V})
    assert (config.features, config.width, config.depth, config.context) == (V, 2, 0, None)
    assert BagOfWordsConfig(vocab_size=V, pairs=True).features == 3 * V
    assert ModelConfig.from_dict(config.to_dict()) == config
    assert repr(config.build()) == "BagOfWords(20 features, 2 classes)"
    cost = cost_of(config, batch=4, length=10)
    assert cost.parameters == sum(p.numel() for p in config.build().parameters()) == 2 * V + 2
    assert cost.flops == 0, "it looks up and adds"
    assert cost.memory().total > 4 * cost.parameters
    with pytest.raises(ConfigError, match="repeats"):
        BagOfWordsConfig(vocab_size=V, repeats="twice")


def test_what_is_not_kept_is_in_no_bag():
    model, tokens = model_of(), torch.tensor([[5, 7, 9], [4, 4, 2]])
    keep = torch.tensor([[True, True, True], [False, True, False]])
    found = model(tokens, keep=keep)
    assert torch.equal(found, model.text_logits(TextRow.of([[5, 7, 9], [4]])))
    assert not torch.equal(found, model(tokens))  # a negative control
    pairs, kinds = model_of(pairs=True), torch.tensor([[0, 0, 1], [0, 1, 1]])
    expected = pairs.text_logits(TextRow.of([[5, 7, 9], [4]], [[0, 0, 1], [1]]))
    assert torch.equal(pairs(tokens, kinds, keep), expected)
