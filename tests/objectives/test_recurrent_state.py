"""Truncated back-propagation through time: the state crosses from stretch to stretch, the gradient does not."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from weft.data import ContiguousStreams
from weft.errors import DataError
from weft.models import ModelConfig
from weft.objectives import RecurrentLoss, StretchBatch

KINDS = ["rnn", "gru", "lstm"]
STREAMS, LENGTH = 4, 6


def model(kind, dropout=0.0):
    torch.manual_seed(0)
    made = ModelConfig.from_config({"kind": kind, "vocab_size": 11, "width": 8, "depth": 2, "dropout": dropout}).build()
    torch.nn.init.normal_(made.head.weight)
    return made.double()


def batches(steps, streams=STREAMS):
    tokens = np.random.default_rng(0).integers(0, 11, 200)
    read = ContiguousStreams(tokens, LENGTH, streams, seed=0)
    assert read.steps >= 5
    return [StretchBatch(*map(torch.from_numpy, read.batch(np.arange(streams) + n * streams))) for n in range(steps)]


def part(batch, rows):
    return StretchBatch(batch.windows[rows], batch.streams[rows], batch.fresh[rows])


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_crosses_and_the_gradient_does_not(kind):
    one, steps = model(kind), batches(3)
    whole = torch.cat([steps[0].windows[:, :-1], steps[1].windows[:, :-1]], 1)
    targets = steps[1].windows[:, 1:].flatten()
    expected = F.cross_entropy(one(whole)[:, LENGTH:].flatten(0, 1), targets, reduction="sum")
    loss = RecurrentLoss(STREAMS)
    loss(one, steps[0])
    before = [table.clone() for table in loss.tensors().values()]
    found, count = loss(one, steps[1])
    assert count == STREAMS * LENGTH and torch.allclose(found, expected, atol=1e-12)
    forgetful, _ = RecurrentLoss(STREAMS)(one, steps[1])
    assert (forgetful - found).abs() > 1e-3  # a negative control: the state matters
    crossing = torch.autograd.grad(expected, one.tokens.weight)[0]
    ends = torch.autograd.grad(found, one.tokens.weight)[0]
    caches = one.new_caches()
    parts = len(before) // len(caches)
    for number, cache in enumerate(caches):
        cache.begin(tuple(before[number * parts : (number + 1) * parts]))
    fixed = F.cross_entropy(one(steps[1].windows[:, :-1], caches=caches).flatten(0, 1), targets, reduction="sum")
    assert torch.allclose(ends, torch.autograd.grad(fixed, one.tokens.weight)[0], atol=1e-12)
    assert (ends - crossing).abs().max() > 1e-3
    assert not any(table.requires_grad for table in loss.tensors().values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 3])
def test_micro_batches_are_the_batch(kind, size):
    one, steps = model(kind), batches(7)
    whole, cut = RecurrentLoss(STREAMS), RecurrentLoss(STREAMS)
    for batch in steps:
        one.zero_grad()
        total, count = whole(one, batch)
        total.backward()
        expected = [p.grad.clone() for p in one.parameters()]
        one.zero_grad()
        terms = 0
        for rows in torch.arange(STREAMS).split(size):
            summed, n = cut(one, part(batch, rows))
            summed.backward()
            terms += n
        assert terms == count
        for p, gradient in zip(one.parameters(), expected, strict=True):
            assert (p.grad - gradient).abs().max() < 1e-10
    for name, table in whole.tensors().items():
        assert (table - cut.tensors()[name]).abs().max() < 1e-12


def test_an_epoch_begins_with_nothing():
    one = model("lstm")
    steps = batches(20)
    loss, again = RecurrentLoss(STREAMS), RecurrentLoss(STREAMS)
    begins = [n for n, batch in enumerate(steps) if batch.fresh.all()]
    assert len(begins) >= 3
    for batch in steps[: begins[1]]:
        loss(one, batch)
    first, _ = loss(one, steps[begins[1]])
    assert torch.equal(first, again(one, steps[begins[1]])[0])
    assert (loss(one, steps[begins[1] + 1])[0] - RecurrentLoss(STREAMS)(one, steps[begins[1] + 1])[0]).abs() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_all_lanes_is_the_same_as_one_that_names_them(kind):
    one, named, whole = model(kind), RecurrentLoss(STREAMS), RecurrentLoss(STREAMS)
    read = ContiguousStreams(np.random.default_rng(0).integers(0, 11, 200), LENGTH, STREAMS, seed=0)
    fresh = 0
    for n, batch in enumerate(batches(20)):
        together = StretchBatch.of(read.batch(np.arange(STREAMS) + n * STREAMS), STREAMS)
        assert together.streams is None and (together.fresh is None) == (not batch.fresh.any())
        fresh += together.fresh is not None
        losses = [loss(one, given)[0] for loss, given in ((named, batch), (whole, together.to("cpu")))]
        gradients = [torch.autograd.grad(loss, list(one.parameters())) for loss in losses]
        assert torch.equal(*losses) and all(map(torch.equal, *gradients))
    assert 2 <= fresh < 20
    for name, table in named.tensors().items():
        assert torch.equal(table, whole.tensors()[name])
    turned = StretchBatch.of(read.batch(np.arange(STREAMS)[::-1]), STREAMS)
    assert turned.streams is not None and StretchBatch.of(read.batch(np.arange(2)), STREAMS).streams is not None


def test_it_goes_on_from_what_was_saved():
    one, steps = model("lstm"), batches(4)
    loss, again = RecurrentLoss(STREAMS), RecurrentLoss(STREAMS)
    assert loss.tensors() == {}
    for batch in steps[:3]:
        loss(one, batch)
    again.load({name: table.clone() for name, table in reversed(loss.tensors().items())})
    assert list(again.tensors()) == ["0/0", "0/1", "1/0", "1/1"]
    assert torch.equal(loss(one, steps[3])[0], again(one, steps[3])[0])
    with pytest.raises(DataError, match="5 streams"):
        RecurrentLoss(5).load(loss.tensors())


def test_states_are_kept_in_float32_at_least():
    one, loss = model("gru").bfloat16(), RecurrentLoss(STREAMS)
    for batch in batches(2):
        loss(one, batch)
    assert {table.dtype for table in loss.tensors().values()} == {torch.float32}


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_under_autocast(kind):
    one, loss = model(kind).float(), RecurrentLoss(STREAMS)
    for batch in batches(2):
        with torch.autocast("cpu", torch.bfloat16):
            summed, _ = loss(one, batch)
        summed.backward()
    assert all(p.grad.isfinite().all() for p in one.parameters())
