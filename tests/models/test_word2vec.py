"""word2vec: the compiled loop, its plain twin and the readable loss are one computation; draws are right."""

import numpy as np
import pytest
import torch

from weft.models import CBOWConfig, ModelConfig, SkipGramConfig
from weft.models.word2vec import learning
from weft.models.word2vec.examples import DOCUMENT_BORDER, Chances, alias_table, hash_many, hash_pair
from weft.models.word2vec.loss import word_vector_loss
from weft.models.word2vec.workers import Workers

COUNTS = np.arange(40, 0, -1) ** 2
KINDS = ["cbow", "skipgram"]


def config_of(kind, **fields):
    return ModelConfig.from_config({"kind": kind, "vocab_size": 40, "width": 20, "window": 3, "negative": 4, **fields})


def block(size=200, seed=0):
    """Words as frequent as the counts say, with borders, two of them side by side."""
    words = np.random.default_rng(seed).choice(40, size, p=COUNTS / COUNTS.sum()).astype(np.int32)
    words[[n for n in (50, 51, 120) if n < size]] = DOCUMENT_BORDER
    return words


def model_of(config, dtype=torch.float32):
    torch.manual_seed(1)
    model = config.build()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model.lined_up() if dtype == torch.float32 else model.to(dtype)


def brute_force(words, chances, base):
    """Examples as pairs (context words, right word), by the plainest loop."""
    window, size = chances.config.window, len(words)
    documents, kept, document = [], [], 0
    for i, word in enumerate(words):
        if word == DOCUMENT_BORDER:
            document += 1
        elif hash_pair(base, i) >> 32 <= chances.kept[word]:
            kept.append(int(word))
            documents.append(document)
    found = []
    for p, word in enumerate(kept):
        reach = window - (((hash_pair(base, size + p) >> 32) * window) >> 32)
        places = range(max(0, p - reach), min(len(kept), p + reach + 1))
        around = [kept[q] for q in places if q != p and documents[q] == documents[p]]
        if isinstance(chances.config, SkipGramConfig):
            found += [((other,), word) for other in around]
        elif around:
            found.append((tuple(around), word))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_examples_are_those_of_the_plainest_loop(kind):
    chances = Chances(COUNTS, config_of(kind, sample=0.02), 7)
    words, base = block(), chances.base(3)
    found = chances.examples(words, base)
    pairs = [
        (tuple(row[keep].tolist()), int(right[0]))
        for row, keep, right in zip(found.context, found.context_keep, found.words, strict=True)
    ]
    assert pairs == brute_force(words, chances, base) and len(pairs) > 100
    assert (
        found.words_keep[:, 0].all() and (found.words_keep[:, 1:] == (found.words[:, 1:] != found.words[:, :1])).all()
    )
    assert not found.words_keep.all()  # a negative that is the right word does not count


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_loop_is_the_plain_one(kind):
    pytest.importorskip("numba")
    config = config_of(kind, sample=0.02)
    chances = Chances(COUNTS, config, 7)
    fast, plain = model_of(config), model_of(config)
    for number, rate in enumerate([0.05, 0.1, 0.0]):
        words, base = block(seed=number), chances.base(number)
        one, two = (
            who(words, rate, base) for who in (learning._Compiled(fast, chances), learning._Plain(plain, chances))
        )
        assert one[1] == two[1] > 100 and one[0] == pytest.approx(two[0], rel=2e-6)
    for name, p in fast.named_parameters():
        torch.testing.assert_close(p, dict(plain.named_parameters())[name], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("negative", [4, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_each_step_goes_down_the_gradient_of_the_readable_loss(kind, negative):
    """One example at a time in float64: the change of the weights is −rate × what autograd says."""
    config = config_of(kind, sample=0.0, negative=negative)
    chances = Chances(COUNTS, config, 7)
    words, base, rate = block(12)[:7], chances.base(5), 0.03
    words[3:] = DOCUMENT_BORDER
    every = chances.examples(words, base)
    model, before = model_of(config, torch.float64), model_of(config, torch.float64)
    plain = learning._Plain(model, chances)
    loss, count = plain(words, rate, base)
    expected = 0.0
    for n in range(count):
        one = type(every)(*(part[n : n + 1] for part in vars(every).values()))
        value, _ = word_vector_loss(before, one)
        before.zero_grad()
        value.backward()
        expected += value.item()
        with torch.no_grad():
            for p in before.parameters():
                p.sub_(rate * p.grad)
    assert count >= 3 and loss == pytest.approx(expected, rel=1e-12)
    for p, q in zip(model.parameters(), before.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_the_readable_loss_has_the_derivative_of_finite_differences(kind):
    config = config_of(kind, width=3, negative=2)
    chances = Chances(COUNTS, config, 0)
    examples, model = chances.examples(block(60)[:20], chances.base(0)), model_of(config, torch.float64)
    loss, count = word_vector_loss(model, examples)
    loss.backward()
    weight, row = model.input.weight, int(examples.context[0, examples.context_keep[0].argmax()])
    with torch.no_grad():
        values = []
        for change in (1e-6, -2e-6):
            weight[row, 1] += change
            values.append(word_vector_loss(model, examples)[0].item())
    assert count == len(examples.words) and weight.grad[row, 1] != 0
    assert weight.grad[row, 1].item() == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5)


def test_at_the_start_the_loss_is_that_of_guessing():
    chances = Chances(COUNTS, config_of("skipgram", sample=0.0), 0)
    model = config_of("skipgram").build()
    examples = chances.examples(block(), chances.base(0))
    loss, _ = word_vector_loss(model, examples)
    assert loss.item() == pytest.approx(np.log(2) * examples.words_keep.sum(), rel=1e-6)
    all_words = config_of("cbow", negative=0)
    loss, count = word_vector_loss(all_words.build(), Chances(COUNTS, all_words, 0).examples(block(), 5))
    assert loss.item() / count == pytest.approx(np.log(40), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_reported_does_not_depend_on_the_number_of_threads(kind):
    """gensim#2617: with learning rate 0 all see the same examples and the same weights."""
    config = config_of(kind, sample=0.02)
    chances, model = Chances(COUNTS, config, 7), model_of(config)
    found = [Workers(model, chances, lambda n: block(seed=n), threads).learn(range(9), 0.0) for threads in (1, 2, 5)]
    assert found[0] == found[1] == found[2] and found[0].examples > 1000
    examples = [chances.examples(block(seed=n), chances.base(n)) for n in range(9)]
    expected = sum(word_vector_loss(model.double(), one)[0].item() for one in examples)
    assert found[0].loss == pytest.approx(expected, rel=1e-6)
    assert found[0].words == sum(int((block(seed=n) != DOCUMENT_BORDER).sum()) for n in range(9))


def test_many_threads_learn_what_one_learns():
    config = config_of("skipgram", sample=0.0)
    chances, ends = Chances(COUNTS, config, 7), []
    for threads in (1, 4):
        model = config.build().lined_up()
        workers = Workers(model, chances, lambda n: block(2000, seed=n % 4), threads)
        workers.learn(range(40), 0.05)
        ends.append(workers.learn(range(4), 0.0))
    first, second = (end.loss / end.examples for end in ends)
    assert first == pytest.approx(second, rel=0.01) and first < 0.95 * 5 * np.log(2)


def test_draws_are_by_frequency_to_the_power():
    chances = Chances(COUNTS, config_of("cbow"), 0)
    drawn = chances.drawn(hash_many(chances.base(1), np.arange(400_000)))
    weights = COUNTS**0.75
    shares = np.bincount(drawn, minlength=40) / 400_000
    expected = weights / weights.sum()
    assert np.abs(shares - expected).max() < 5 * np.sqrt(0.1 / 400_000)
    table = alias_table(np.array([1.0, 0.0, 3.0]))
    sums = np.zeros(3)
    for place, (height, other) in enumerate(table.tolist()):
        sums[place] += (height + (other == place)) / 2**32
        sums[other] += (1 - height / 2**32) * (other != place)
    assert sums / 3 == pytest.approx([0.25, 0, 0.75], abs=1e-8)


def test_frequent_words_are_passed_over():
    """word2vec.c's rule: √(t/f) + t/f of a word with share f stay."""
    share, sample = COUNTS / COUNTS.sum(), 0.01
    chances = Chances(COUNTS, config_of("cbow", sample=sample), 0)
    expected = np.minimum(1, np.sqrt(sample / share) + sample / share)
    assert (chances.kept.astype(float) + 1) / 2**32 == pytest.approx(expected, rel=1e-6)
    assert (Chances(COUNTS, config_of("cbow", sample=0.0), 0).kept == 2**32 - 1).all()


def test_one_number_and_many_are_mixed_alike():
    numbers = np.arange(50)
    assert hash_many(12345, numbers).tolist() == [hash_pair(12345, int(n)) for n in numbers]
    assert len({hash_pair(seed, 0) for seed in range(1000)}) == 1000


def test_rows_begin_on_cache_lines_and_nothing_leaks_between_them():
    config = CBOWConfig(vocab_size=40, width=21)
    model = config.build().lined_up()
    array = learning._array(model.input.weight)
    assert array.shape == (40, 32) and array.ctypes.data % 64 == 0
    learning.learner(model, Chances(COUNTS, config, 0))(block(), 0.1, 5)
    assert not array[:, 21:].any() and array[:, :21].any(1).all()
    assert model.input.weight.shape == (40, 21)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_softmax_learns(kind):
    config = config_of(kind, negative=0, window=1, sample=0.0)
    words = np.tile(np.arange(10, dtype=np.int32), 12)  # what follows is certain
    chances, model = Chances(np.full(40, 12), config, 0), config.build().lined_up()
    learn = learning.learner(model, chances)
    losses = [np.divide(*learn(words, rate, chances.base(n))) for n, rate in enumerate([0.0, *[0.3] * 25, 0.0])]
    best = np.log(2) if kind == "skipgram" else 0.0  # the word before or the one after
    assert losses[0] == pytest.approx(np.log(40), rel=1e-3) and best < losses[-1] < best + 0.4


def test_without_numba_it_works_too(monkeypatch):
    monkeypatch.setattr(learning, "has_loop", lambda: False)
    config = config_of("cbow")
    assert isinstance(learning.learner(config.build().lined_up(), Chances(COUNTS, config, 0)), learning._Plain)


def test_every_block_has_draws_of_its_own():
    chances = Chances(np.array([5, 3, 2]), SkipGramConfig(vocab_size=3), 0)
    assert len({chances.base(block) for block in range(100)}) == 100
