"""Count models beside a plain implementation with dictionaries, and what must hold for each of them."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from weft.errors import ConfigError, DataError, ShapeError, WeightsError
from weft.models import ModelConfig, NGramConfig, preset
from weft.models.ngram import tables as ngram_tables
from weft.models.ngram.counts import count
from weft.models.ngram.smoothing import DEFAULT_DISCOUNTS, SmoothingConfig, discounts

V, END = 9, 8
SMOOTHINGS = {
    "maximum-likelihood": {},
    "add-k": {"k": 0.3},
    "jelinek-mercer": {"weights": (0.9, 0.6, 0.4, 0.3)},
    "witten-bell": {},
    "kneser-ney": {},
}


def text(length=400, seed=0, below=7):
    """Tokens that depend on each other, some ends of texts, and one token (7) that never comes."""
    rng = np.random.default_rng(seed)
    ids = (rng.integers(0, below, length) * rng.integers(0, 3, length)) % below
    ids[1::2] = (ids[::2][: len(ids[1::2])] + rng.integers(0, 2, len(ids[1::2]))) % below
    ids[rng.random(length) < 0.04] = END
    return ids


def smoothing(kind, order):
    fields = {k: v[:order] if isinstance(v, tuple) else v for k, v in SMOOTHINGS[kind].items()}
    return SmoothingConfig.from_config({"kind": kind, **fields})


def counted_model(kind, order, ids=None, *, end=END):
    config = NGramConfig(vocab_size=V, order=order, smoothing=smoothing(kind, order), end=end)
    counts = count(text() if ids is None else ids, order, V, end)
    return config.with_tables(config.smoothing.tables(counts, end))


# -- the same with dictionaries ---------------------------------------------------------------


class Plain:
    """Counts of (history, token) in dictionaries, and each formula as the papers write it."""

    def __init__(self, ids, order, kind):
        self.order, self.kind, self.fields = order, kind, SMOOTHINGS[kind]
        self.counts = Counter()
        stream = [END, *ids]
        for place in range(1, len(stream)):
            history = self.history(stream[:place])
            for length in range(len(history) + 1):
                self.counts[(*history[len(history) - length :], stream[place])] += 1
        if kind == "kneser-ney":
            before = defaultdict(set)
            for ngram in self.counts:
                before[ngram[1:]].add(ngram[0])
            plain = dict(self.counts)
            for ngram in plain:
                if len(ngram) < order and before[ngram]:
                    self.counts[ngram] = len(before[ngram])
            self.discounts = {m: self.discount(m) for m in range(1, order + 1)}
        self.followers = defaultdict(list)
        for ngram, number in self.counts.items():
            self.followers[ngram[:-1]].append(number)

    def history(self, before):
        ends = [place for place, token in enumerate(before) if token == END]
        return tuple(before[max(len(before) - self.order + 1, ends[-1] if ends else 0, 0) :]) if self.order > 1 else ()

    def discount(self, length):
        n = [sum(c == k for g, c in self.counts.items() if len(g) == length) for k in range(5)]
        if 0 in n[1:4]:
            return (0, *DEFAULT_DISCOUNTS)
        y = n[1] / (n[1] + 2 * n[2])
        found = [k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3)]
        return (0, *(found if all(0 < d <= k for k, d in enumerate(found, 1)) else DEFAULT_DISCOUNTS))

    def p(self, token, history):
        numbers, c = self.followers[history], self.counts[(*history, token)]
        total, kinds = sum(numbers), len(numbers)
        if self.kind == "add-k":
            return (c + self.fields["k"]) / (total + self.fields["k"] * V)
        shorter = self.p(token, history[1:]) if history else 1 / V
        if not total:
            return shorter
        if self.kind == "maximum-likelihood":
            return c / total
        if self.kind == "jelinek-mercer":
            weight = self.fields["weights"][len(history)]
            return weight * c / total + (1 - weight) * shorter
        if self.kind == "witten-bell":
            return (c + kinds * shorter) / (total + kinds)
        taken = self.discounts[len(history) + 1]
        left = sum(taken[min(number, 3)] for number in numbers) / total
        return max(c - taken[min(c, 3)], 0) / total + left * shorter


@pytest.mark.parametrize("kind", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_every_token_as_dictionaries_say(kind, order):
    ids, other = text(), text(300, seed=1, below=8)
    plain, model = Plain(ids, order, kind), counted_model(kind, order, ids)
    expected = [plain.p(other[i], plain.history(list(other[:i]))) for i in range(1, len(other))]
    found = model.tables.probabilities(other)[1:]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    loss = math.inf if min(expected) == 0 else -np.log(expected).sum()
    assert model.text_nats(other) == pytest.approx(loss, rel=1e-12)
    assert kind == "maximum-likelihood" or math.isfinite(loss)


# -- what holds for all of them ---------------------------------------------------------------


@pytest.mark.parametrize("kind", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 3])
def test_shares_add_up_to_one_after_every_history(kind, order):
    model = counted_model(kind, order)
    histories = torch.tensor(list(itertools.product(range(V), repeat=3)))  # seen and unseen, with ends in them
    sums = model(histories).exp().sum(-1)
    assert sums.dtype == torch.float64
    assert (sums - 1).abs().max() < 1e-12
    untrained = NGramConfig(vocab_size=V, order=order, end=END).build()(histories).exp()
    assert torch.allclose(untrained, torch.full_like(untrained, 1 / V))


def test_what_never_came_has_a_share_but_under_maximum_likelihood():
    for kind in SMOOTHINGS:
        shares = counted_model(kind, 3)(torch.tensor([[1, 2]])).exp()
        assert (shares[..., 7] > 0).all() == (kind != "maximum-likelihood")


@pytest.mark.parametrize("kind", SMOOTHINGS)
def test_logits_and_look_ups_are_the_same_numbers(kind):
    model, ids = counted_model(kind, 4), torch.from_numpy(text(200, seed=2))
    logits = model(ids[None])[0, :-1]
    alone = -logits.gather(-1, ids[1:, None]).sum()
    assert float(alone) == pytest.approx(model.text_nats(ids.numpy()), rel=1e-12)


def test_long_texts_are_looked_up_in_blocks(monkeypatch):
    model, ids = counted_model("kneser-ney", 4), text(500, seed=3)
    whole = model.text_nats(ids)
    monkeypatch.setattr(ngram_tables, "TOKENS_PER_LOOKUP", 7)
    assert model.text_nats(ids) == pytest.approx(whole, rel=1e-12)


def test_the_future_is_not_seen():
    model, ids = counted_model("kneser-ney", 4), torch.from_numpy(text(40, seed=4))[None]
    changed = ids.clone()
    changed[:, 25:] = (changed[:, 25:] + 1) % V
    assert torch.equal(model(ids)[:, :25], model(changed)[:, :25])
    assert not torch.equal(model(ids)[:, 25:], model(changed)[:, 25:])


def test_it_looks_back_no_further_than_it_says():
    model, ids = counted_model("kneser-ney", 3), torch.from_numpy(text(40, seed=4))[None]
    changed = ids.clone()
    changed[:, :10] = (changed[:, :10] + 1) % V
    assert torch.equal(model(ids)[:, 11:], model(changed)[:, 11:])
    assert not torch.equal(model(ids)[:, 10], model(changed)[:, 10])


def test_padding_and_company_change_nothing():
    model = counted_model("kneser-ney", 4)
    rows = [text(9, seed=5), text(4, seed=6), text(7, seed=7)]
    tokens, keep = torch.zeros(3, 9, dtype=torch.long), torch.zeros(3, 9, dtype=torch.bool)
    for number, row in enumerate(rows):
        place = 9 - len(row) if number == 1 else 0  # padded on the left, and on the right
        tokens[number, place : place + len(row)] = torch.from_numpy(row)
        keep[number, place : place + len(row)] = True
    together = model(tokens, keep=keep)
    after = model.next_logits(tokens, keep=keep, caches=model.new_caches())
    for number, row in enumerate(rows):
        alone = model(torch.from_numpy(row)[None])[0]
        assert torch.equal(together[number, keep[number]], alone)
        assert torch.equal(after[number], alone[-1])


@pytest.mark.parametrize("order", [1, 2, 5])
def test_cached_is_full(order):
    model, ids = counted_model("witten-bell", order), torch.from_numpy(np.stack([text(12, seed=8), text(12, seed=9)]))
    caches = model.new_caches()
    parts = [model(part, caches=caches) for part in ids.split([5, 1, 6], dim=1)]
    assert torch.equal(torch.cat(parts, 1), model(ids))
    caches[0].rewind(6)
    assert torch.equal(model(ids[:, 6:], caches=caches), model(ids)[:, 6:])
    caches[0].select(torch.tensor([1, 1, 0]))
    assert caches[0].start.tolist() == [[12]] * 3
    with pytest.raises(ShapeError):
        model(ids, caches=caches)


def test_a_bag_of_words_ignores_order_and_pairs_do_not():
    ids = text(60, seed=10)
    ids[ids == END] = 0
    mixed = np.concatenate([ids[:1], np.random.default_rng(0).permutation(ids[1:])])
    bag, pairs = counted_model("kneser-ney", 1), counted_model("kneser-ney", 2)
    assert bag.text_nats(ids) == pytest.approx(bag.text_nats(mixed), rel=1e-12)
    assert abs(pairs.text_nats(ids) - pairs.text_nats(mixed)) > 1


def test_the_chain_rule_makes_a_distribution_over_texts():
    model = counted_model("kneser-ney", 3)
    texts = np.array(list(itertools.product(range(V), repeat=3)))
    shares = [math.exp(-model.text_nats(np.concatenate([[2], row]))) for row in texts]
    assert sum(shares) == pytest.approx(1, abs=1e-9)


def test_over_the_end_of_a_text_nothing_reaches():
    model = counted_model("kneser-ney", 4)
    one, other = torch.tensor([[1, 2, END, 3, 4]]), torch.tensor([[5, 0, END, 3, 4]])
    assert torch.equal(model(one)[:, 2:], model(other)[:, 2:])
    without = counted_model("kneser-ney", 4, end=None)
    assert not torch.equal(without(one)[:, 2:], without(other)[:, 2:])


def test_without_an_end_it_still_adds_up():
    model = counted_model("kneser-ney", 3, end=None)
    assert (model(torch.from_numpy(text(50))[None]).exp().sum(-1) - 1).abs().max() < 1e-12


# -- fast and plain ---------------------------------------------------------------------------


def test_compiled_loops_give_the_same_numbers(monkeypatch):
    pytest.importorskip("numba", reason="numba is not installed: the compiled loops are not tested")
    ids, other = text(3000), text(2000, seed=1)
    plain = counted_model("kneser-ney", 4, ids)
    plain_nats = plain.text_nats(other)
    monkeypatch.setattr(ngram_tables, "MIN_TOKENS_FOR_LOOPS", 1)
    fast = counted_model("kneser-ney", 4, ids)
    assert {name: t.tolist() for name, t in plain.state_dict().items()} == {
        name: t.tolist() for name, t in fast.state_dict().items()
    }
    assert fast.text_nats(other) == plain_nats
    monkeypatch.setattr(ngram_tables, "has_loops", lambda: False)
    assert ngram_tables.loops(10) is None


def test_keys_of_many_bits_are_sorted_like_numpy_does():
    pytest.importorskip("numba", reason="numba is not installed: the compiled loops are not tested")
    from weft.models.ngram import loops as ngram_loops

    keys = np.random.default_rng(0).integers(0, 2**45, 5000) // 2**30 * 2**30 + np.arange(5000) % 3
    found, places = ngram_loops.sort_places(keys, int(keys.max()))
    assert np.array_equal(places, np.argsort(keys, kind="stable"))
    assert np.array_equal(found, np.sort(keys))


# -- numbers that are chosen ------------------------------------------------------------------


def test_discounts_follow_from_counts_of_counts():
    counts = np.repeat([1, 2, 3, 4, 9], [40, 15, 8, 5, 2])
    share = 40 / 70
    assert discounts(counts) == pytest.approx((1 - 2 * share * 15 / 40, 2 - 3 * share * 8 / 15, 3 - 4 * share * 5 / 8))
    assert discounts(np.array([5, 6, 7])) == DEFAULT_DISCOUNTS  # nothing to estimate from
    assert discounts(np.repeat([1, 2, 3], [3, 1, 9])) == DEFAULT_DISCOUNTS  # less than nothing would be taken


def test_k_and_weights_are_chosen_on_held_out_text():
    ids, held_out = text(), text(300, seed=1, below=8)
    counts = count(ids, 2, V, END)

    def loss(way):
        config = NGramConfig(vocab_size=V, order=2, smoothing=way, end=END)
        return config.with_tables(way.tables(counts, END)).text_nats(held_out)

    chosen = SmoothingConfig.from_config("add-k").fitted(counts, held_out, END)
    assert all(
        loss(chosen) <= loss(SmoothingConfig.from_config({"kind": "add-k", "k": k})) for k in (0.01, 0.1, 1.0, 3.0)
    )
    mixed = SmoothingConfig.from_config("jelinek-mercer").fitted(counts, held_out, END)
    near = [
        tuple(min(0.999, max(0.001, w + d)) for w, d in zip(mixed.weights, (a, b), strict=True))
        for a, b in ((0.05, 0), (-0.05, 0), (0, 0.05), (0, -0.05))
    ]
    others = [loss(SmoothingConfig.from_config({"kind": "jelinek-mercer", "weights": weights})) for weights in near]
    assert loss(mixed) < min(others)


# -- what is refused --------------------------------------------------------------------------


def test_names():
    assert preset("unigram") == preset("1gram") == ("ngram", {"order": 1})
    assert preset("trigram")[1] == preset("3gram")[1] == {"order": 3}
    assert preset("ngram") == ("ngram", {})
    assert ModelConfig.from_config({"kind": "ngram", "vocab_size": 5}).order == 5
    with pytest.raises(ConfigError, match="10gram"):
        preset("1000gram")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"order": 0}, "from 1 to 20"),
        ({"order": 1000}, "from 1 to 20"),
        ({"smoothing": "kneserney"}, "did you mean 'kneser-ney'"),
        ({"smoothing": {"kind": "add-k", "k": 0.0}}, "above 0"),
        ({"smoothing": {"kind": "jelinek-mercer", "weights": (0.5,)}}, "expected 5"),
        ({"smoothing": {"kind": "jelinek-mercer", "weights": (0.5, 0.5, 0.5, 0.5, 1.0)}}, "less than 1"),
        ({"end": 9}, "below vocab_size"),
    ],
)
def test_settings_that_cannot_be(fields, words):
    with pytest.raises(ConfigError, match=words) as error:
        NGramConfig(**{"vocab_size": V} | fields)
    assert len(str(error.value).splitlines()) <= 3


def test_tokens_that_cannot_be():
    model = counted_model("kneser-ney", 2)
    for call in (
        lambda: model(torch.tensor([[V]])),
        lambda: model.text_nats(np.array([1, V])),
        lambda: model(torch.zeros(3)),
    ):
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(DataError):
        count(np.array([V]), 2, V)


def broken(name, change):
    tensors = {key: value.clone() for key, value in counted_model("kneser-ney", 3).state_dict().items()}
    tensors[name] = change(tensors[name])
    return tensors


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("levels.1.starts", lambda t: t + 1),
        ("levels.1.starts", lambda t: t.flip(0)),
        ("levels.2.starts", lambda t: t[:-1]),
        ("levels.1.tokens", lambda t: t + V),
        ("levels.1.tokens", lambda t: t - 3),
        ("levels.1.tokens", lambda t: t.flip(0)),
        ("levels.0.tokens", lambda t: t[:-1]),
        ("levels.2.probability", lambda t: t * 0 + 2),
        ("levels.2.probability", lambda t: t * torch.nan),
        ("levels.2.probability", lambda t: t.float()),
        ("levels.0.backoff", lambda t: -t),
        ("levels.1.backoff", lambda t: t[:-1]),
        ("levels.2.backoff", lambda t: torch.ones(1, dtype=torch.float64)),
        ("levels.7.tokens", lambda t: t),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(name, change):
    config = NGramConfig(vocab_size=V, order=3, end=END)
    if name == "levels.7.tokens":
        tensors = counted_model("kneser-ney", 3).state_dict() | {name: torch.zeros(1)}
    else:
        tensors = broken(name, change)
    with pytest.raises(WeightsError):
        config.with_weights(tensors)
    del tensors[name]
    with pytest.raises(WeightsError):
        config.with_weights(tensors | {"other": torch.zeros(1)})
