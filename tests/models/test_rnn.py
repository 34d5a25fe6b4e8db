"""Recurrent models: state, padding, start, whole texts; and they learn."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fixtures.weights import move_weights
from weft.blocks import Cache
from weft.cost import cost_of
from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.generation import Reading
from weft.models import ClassifiesText, ModelConfig, PackedTexts, preset
from weft.models import rnn as module
from weft.models.rnn import RecurrentConfig
from weft.training import AdamWConfig

KINDS = ["rnn", "gru", "lstm"]
POOLS = ["mean", "max", "last"]


def config(kind, **fields):
    return ModelConfig.from_config({"kind": kind, "vocab_size": 50, "width": 16, "depth": 2, **fields})


def model(kind, **fields):
    torch.manual_seed(1)
    made = config(kind, **fields).build().double().eval()
    move_weights(made)
    return made


def reader(kind, pool="mean", **fields):
    return model(kind, both_ways=True, head={"kind": "classes", "classes": 3, "pool": pool}, **fields)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("garbage", [0, 49, -1, 10**6])
def test_cached_equals_uncached_with_padding(kind, garbage):
    rnn = model(kind)
    texts = [torch.randint(50, (n,)) for n in (9, 4, 1)]
    more = torch.randint(50, (3, 5))
    for side in ("left", "right"):
        tokens, keep = torch.full((3, 9), garbage), torch.zeros(3, 9, dtype=torch.bool)
        for row, text in enumerate(texts):
            place = slice(9 - len(text), 9) if side == "left" else slice(0, len(text))
            tokens[row, place], keep[row, place] = text, True
        caches = rnn.new_caches(64)
        with torch.no_grad():
            first = rnn(tokens, keep=keep, caches=caches)
            assert torch.allclose(rnn(tokens, keep=keep), first, atol=1e-12)
            parts = torch.cat([rnn(piece, caches=caches) for piece in more.split(2, 1)], 1)
            for row, text in enumerate(texts):
                alone = rnn(torch.cat([text, more[row]])[None])
                assert torch.allclose(first[row, keep[row]], alone[0, : len(text)], atol=1e-12)
                assert torch.allclose(parts[row], alone[0, len(text) :], atol=1e-12)
        assert all(isinstance(cache, Cache) for cache in caches)
        assert caches[0].start.flatten().tolist() == [14, 9, 6]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_grow_together_are_read_as_alone(kind):
    rnn, device = model(kind), torch.device("cpu")
    prompts = [[3, 4, 5, 6], [7], [8, 9]]
    with torch.no_grad():
        reading = Reading(rnn, prompts, device=device, room=8)
        reading.append([1, 2, 3])
        reading.select([2, 0, 2])
        reading.append([10, 11, 12])
        for row, logits in zip(reading.rows, reading.logits, strict=True):
            assert torch.allclose(logits, rnn(torch.tensor([row]))[0, -1], atol=1e-12)
    assert reading.rows == [[8, 9, 3, 10], [3, 4, 5, 6, 1, 11], [8, 9, 3, 12]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_token_never_reaches_an_earlier_logit(kind):
    rnn, tokens = model(kind), torch.randint(50, (1, 20))
    before = rnn(tokens)
    changed = tokens.clone()
    changed[0, 11] = (changed[0, 11] + 1) % 50
    after = rnn(changed)
    assert torch.equal(before[:, :11], after[:, :11]) and (before[:, 11:] - after[:, 11:]).abs().amax(-1).min() > 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [False, True])
def test_the_loss_begins_at_that_of_a_guess_and_one_batch_is_learned_by_heart(kind, tied):
    torch.manual_seed(0)
    rnn = config(kind, depth=1, width=32, head={"kind": "next", "tied": tied}).build()
    tokens = torch.randint(50, (4, 17))
    rule = AdamWConfig(learning_rate=0.02, weight_decay=0.0).build(rnn)
    losses = []
    for _ in range(80):
        loss = F.cross_entropy(rnn(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        rule.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(rnn.parameters(), 1.0)
        rule.step()
        losses.append(loss.item())
    assert abs(losses[0] - math.log(50)) < 0.2 and losses[-1] < 0.2
    assert (rnn.head.weight is rnn.tokens.weight) == tied


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_judged_as_a_whole(kind):
    rnn, ids = model(kind), np.random.default_rng(0).integers(0, 50, 700)
    logits = rnn(torch.from_numpy(ids)[None, :-1])[0]
    expected = F.cross_entropy(logits, torch.from_numpy(ids[1:]), reduction="sum").item()
    assert math.isclose(rnn.text_nats(ids), expected, rel_tol=1e-12)
    assert math.isclose(rnn.text_nats(ids[:2]), F.cross_entropy(logits[:1], torch.from_numpy(ids[1:2])).item())


@pytest.mark.parametrize(("size", "streams"), [(701, 7), (700, 6), (699, 6), (403, 4)])
def test_lanes_count_every_token_once(monkeypatch, size, streams):
    """With a warm-up that reaches the beginning it is exact; with none, each stream but the first knows less."""
    rnn, ids = model("lstm"), np.random.default_rng(0).integers(0, 50, size)
    exact = rnn.text_nats(ids)
    monkeypatch.setattr(module, "MIN_STREAM_TOKENS", 100)
    monkeypatch.setattr(module, "TOKENS_PER_CALL", 37)
    monkeypatch.setattr(module, "WARM_UP_TOKENS", 90)
    asked = size - 1
    assert asked // 100 == streams
    span = -(-asked // streams)
    expected = 0.0
    for stream in range(streams):
        begin, end = max(0, stream * span - 90), min(asked, (stream + 1) * span)
        if stream * span < asked:
            nats = F.cross_entropy(
                rnn(torch.from_numpy(ids[begin:end])[None])[0],
                torch.from_numpy(ids[begin + 1 : end + 1]),
                reduction="none",
            )
            expected += nats[stream * span - begin :].sum().item()
    assert math.isclose(rnn.text_nats(ids), expected, rel_tol=1e-12)
    assert expected != exact and math.isclose(expected, exact, rel_tol=0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pool", POOLS)
def test_texts_in_a_row_are_read_as_alone(kind, pool):
    one = reader(kind, pool)
    texts = [torch.randint(50, (n,)) for n in (3, 9, 1, 4)]
    together = one.text_logits(PackedTexts.of(texts))
    assert together.shape == (4, 3) and isinstance(one, ClassifiesText)
    for number, text in enumerate(texts):
        assert torch.allclose(together[number], one.text_logits(PackedTexts.of([text]))[0], atol=1e-12)
    states = one.hidden(texts[1][None])[0]
    half = torch.cat([states[-1, :8], states[0, 8:]])
    pooled = {"mean": states.mean(0), "max": states.amax(0), "last": half}[pool]
    assert torch.allclose(one.classes(pooled), together[1], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pool", POOLS)
def test_padded_texts_have_the_classes_they_have_alone(kind, pool):
    one = reader(kind, pool)
    texts = [torch.randint(50, (n,)) for n in (3, 9, 1, 4)]
    alone = one.text_logits(PackedTexts.of(texts))
    for side in ("left", "right"):
        tokens, keep = torch.full((4, 9), 7), torch.zeros(4, 9, dtype=torch.bool)
        for row, text in enumerate(texts):
            place = slice(9 - len(text), 9) if side == "left" else slice(0, len(text))
            tokens[row, place], keep[row, place] = text, True
        assert torch.allclose(one(tokens, keep=keep), alone, atol=1e-12)
    assert torch.allclose(one(texts[1][None])[0], alone[1], atol=1e-12)
    assert (one(tokens) - alone).abs().max() > 1e-3  # a negative control: padding is read


@pytest.mark.parametrize("kind", KINDS)
def test_both_directions_are_read(kind):
    one = reader(kind, "last", depth=1)
    text = torch.randint(50, (1, 8))
    states = one.hidden(text)
    for place, seen in ((0, slice(8, 16)), (7, slice(0, 8))):
        changed = text.clone()
        changed[0, 7 - place] = (changed[0, 7 - place] + 1) % 50
        moved = (one.hidden(changed) - states)[0, place].abs() > 1e-12
        assert moved[seen].all() and moved.sum() == 8  # the half that comes from there, and no other


def test_what_cannot_be():
    with pytest.raises(ConfigError, match="would see the token that it predicts"):
        config("lstm", both_ways=True)
    with pytest.raises(ConfigError, match="even"):
        config("lstm", both_ways=True, width=9, head={"kind": "classes"})
    rnn, tokens = model("gru"), torch.randint(50, (2, 3))
    for given in (tokens[0], tokens[:, :0]):
        with pytest.raises(ShapeError, match="tokens have shape"):
            rnn(given)
    with pytest.raises(ShapeError, match="keep has shape"):
        rnn(tokens, keep=torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(UnsupportedError, match="no head for classes"):
        rnn.text_logits(PackedTexts.of(list(tokens)))
    one = reader("gru")
    with pytest.raises(UnsupportedError, match="no head for the next token"):
        one.logits(one.hidden(tokens))
    with pytest.raises(UnsupportedError, match="no head for the next token"):
        one.next_logits(tokens, caches=None)
    with pytest.raises(UnsupportedError, match="caches for whole texts"):
        one(tokens, caches=one.new_caches())
    with pytest.raises(UnsupportedError, match="both ways"):
        one.hidden(tokens, caches=one.new_caches())


@pytest.mark.parametrize("kind", KINDS)
def test_names_sizes_and_weights(kind):
    assert preset(kind) == (kind, {})
    made = config(kind)
    assert isinstance(made, RecurrentConfig) and made.context is None and made.build().context is None
    rnn = model(kind)
    weights = {name: p.detach().clone() for name, p in rnn.named_parameters()}
    again = made.with_weights(weights).eval()
    tokens = torch.randint(50, (2, 5))
    assert torch.equal(again(tokens), rnn(tokens))
    assert ModelConfig.from_config(made.to_dict()) == made
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    maps = 2 * 2 * gates * 16 * 16 + 50 * 16
    cost = cost_of(made, batch=3, length=7)
    assert cost.parameters == sum(p.numel() for p in rnn.parameters())
    first = 2 * 3 * 2 * gates * 16 * 16  # nothing comes before the first state of a layer
    assert cost.flops == 6 * 21 * maps - first and cost.memory().total > 2 * 4 * cost.parameters
