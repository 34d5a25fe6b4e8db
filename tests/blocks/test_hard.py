"""Hard attention: one value per query, and what learns through the choice."""

import math

import pytest
import torch

import weft
from weft.blocks import CAUSAL, HardAttention, Mask
from weft.errors import UnsupportedError


def tensors(requires_grad=True):
    q, k, v = (torch.randn(1, 2, n, 4, dtype=torch.float64, requires_grad=requires_grad) for n in (5, 7, 7))
    return q, k, v


@pytest.mark.parametrize("learning", ["argmax", "straight-through", "gumbel"])
def test_each_query_takes_exactly_one_value(learning):
    q, k, v = tensors()
    out = HardAttention(learning=learning).eval()(q, k, v)
    best = (q @ k.transpose(-1, -2)).argmax(-1)
    expected = torch.stack([v[0, h, best[0, h]] for h in range(2)])[None]
    assert torch.allclose(out, expected, atol=1e-14)


def test_it_is_the_limit_of_softmax_attention():
    q, k, v = tensors(requires_grad=False)
    hard = weft.attention(q, k, v, kind="hard")
    assert torch.allclose(weft.attention(q, k, v, beta=1e4), hard, atol=1e-9)
    assert torch.equal(weft.attention(q, k, v, beta=math.inf), hard)


def test_argmax_passes_no_gradient_to_queries_and_keys():
    q, k, v = tensors()
    out = HardAttention(learning="argmax")(q, k, v)
    grads = torch.autograd.grad(out.sum(), (q, k, v), allow_unused=True, materialize_grads=True)
    assert (grads[0] == 0).all()
    assert (grads[1] == 0).all()  # the selected key too
    chosen = torch.zeros(1, 2, 7, dtype=torch.float64)
    for h in range(2):
        for best in (q @ k.transpose(-1, -2)).argmax(-1)[0, h]:
            chosen[0, h, best] += 1
    assert torch.equal(grads[2], chosen[..., None].expand_as(v))


def test_straight_through_learns_as_the_softmax_would():
    q, k, v = tensors()
    upstream = torch.randn(1, 2, 5, 4, dtype=torch.float64)
    hard = torch.autograd.grad(HardAttention(learning="straight-through")(q, k, v), (q, k), upstream)
    soft = torch.autograd.grad(weft.attention(q, k, v), (q, k), upstream)
    for ours, expected in zip(hard, soft, strict=True):
        assert torch.allclose(ours, expected, atol=1e-12)


def test_gumbel_draws_with_the_softmax_probabilities():
    q, k = torch.randn(1, 1, 1, 4, dtype=torch.float64), torch.randn(1, 1, 5, 4, dtype=torch.float64)
    core = HardAttention(learning="gumbel").train()
    one_hot = torch.eye(5, dtype=torch.float64)[None, None]
    draws = 4000
    counts = core(q.expand(1, 1, draws, 4), k, one_hot)[0, 0].detach().round().mean(0)
    expected = (q @ k.transpose(-1, -2) / 2).softmax(-1)[0, 0, 0]
    assert ((counts - expected).abs() < 4 * (expected * (1 - expected) / draws).sqrt()).all()


def test_gumbel_in_training_never_draws_what_is_forbidden():
    core = HardAttention(learning="gumbel").train()
    q = torch.randn(4, 2, 6, 4)
    one_hot = torch.eye(6).expand(4, 2, 6, 6)
    for _ in range(20):
        drawn = core(q, q, one_hot, CAUSAL).detach()
        assert (drawn.triu(1).abs() < 1e-6).all()
        assert torch.allclose(drawn.sum(-1), torch.ones(4, 2, 6), atol=1e-6)


def test_nothing_to_choose_from_gives_zero():
    q = torch.randn(1, 1, 3, 4, requires_grad=True)
    for learning in ("argmax", "straight-through", "gumbel"):
        out = HardAttention(learning=learning)(q, q, q, Mask(keep=torch.zeros(1, 3, dtype=torch.bool)))
        assert (out == 0).all()
        (gradient,) = torch.autograd.grad(out.sum(), q)
        assert gradient.isfinite().all()


@pytest.mark.parametrize("learning", ["argmax", "straight-through", "gumbel"])
@pytest.mark.parametrize("beta", [0.0, 1e-3, 1e38, math.inf])
def test_the_choice_does_not_depend_on_beta(learning, beta):
    q, k, v = tensors()
    out = HardAttention(learning=learning, beta=beta).eval()(q, k, v)
    assert torch.equal(out, HardAttention(learning="argmax").eval()(q, k, v))
    grads = torch.autograd.grad(out.sum(), (q, k, v), allow_unused=True, materialize_grads=True)
    assert all(g.isfinite().all() for g in grads)


def test_half_precision_chooses_as_float32_does():
    q, k, v = (100 * torch.randn(1, 4, 16, 64) for _ in range(3))
    for dtype in (torch.float16, torch.bfloat16):
        half = [t.to(dtype) for t in (q, k, v)]
        wide = [t.float() for t in half]
        assert torch.equal(weft.attention(*half, kind="hard").float(), weft.attention(*wide, kind="hard"))


def test_what_a_drawn_choice_cannot_show_it_refuses():
    q = torch.randn(1, 1, 3, 4)
    with pytest.raises(UnsupportedError, match="drawn"):
        HardAttention(learning="gumbel").train().weights(q, q)
    with pytest.raises(UnsupportedError, match="infinite beta"):
        HardAttention(beta=math.inf)(q, q, q, Mask(bias=torch.zeros(3, 3)))
