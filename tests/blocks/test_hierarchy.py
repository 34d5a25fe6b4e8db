"""Hierarchy attention: against a plain loop; what the summaries see, and what is refused."""

import pytest
import torch

from weft.blocks import CAUSAL, Mask
from weft.blocks.attention import Grid, HierarchyAttention, HierarchyConfig
from weft.blocks.cache import KeyValueCache
from weft.errors import UnsupportedError


def tensors(asking=7, answering=7, groups=2, values=3):
    shapes = (2, asking, 4), (groups, answering, 4), (groups, answering, values)
    return tuple(torch.randn(2, *shape, dtype=torch.float64) for shape in shapes)


def core(summaries=3, **options):
    made = HierarchyAttention(heads=2, head_width=4, summaries=summaries, **options).double()
    with torch.no_grad():
        made.summaries.normal_()
    return made.eval()


def softmax(scores):
    powers = torch.stack(scores).exp()
    return powers / powers.sum()


def by_loop(summaries, q, k, v, keep=None):
    """Row by row, head by head: each summary collects a key and a value, then each token reads them."""
    out = torch.zeros(*q.shape[:3], v.shape[3], dtype=q.dtype)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            g = h * k.shape[1] // q.shape[1]
            real = [s for s in range(k.shape[2]) if keep is None or keep[b, s]]
            keys, values = [], []
            for summary in summaries[h]:
                taken = softmax([summary @ k[b, g, s] / 2 for s in real])
                keys.append(sum(w * k[b, g, s] for w, s in zip(taken, real, strict=True)))
                values.append(sum(w * v[b, g, s] for w, s in zip(taken, real, strict=True)))
            for t in range(q.shape[2]):
                weights = softmax([q[b, h, t] @ key / 2 for key in keys])
                out[b, h, t] = sum(w * value for w, value in zip(weights, values, strict=True))
    return out


@pytest.mark.parametrize("summaries", [1, 3, 9])
@pytest.mark.parametrize(("answering", "groups"), [(7, 2), (7, 1), (11, 2)])
def test_it_is_the_loop_and_the_weights_are_the_product(summaries, answering, groups):
    q, k, v = tensors(7, answering, groups)
    keep = torch.rand(2, answering) < 0.6
    keep[:, 0] = True
    made = core(summaries)
    for mask in (Mask(), Mask(keep=keep), Mask(grid=Grid(1, answering))):
        expected = by_loop(made.summaries, q, k, v, mask.keep)
        assert torch.allclose(made(q, k, v, mask), expected, atol=1e-13)
        weights = made.weights(q, k, mask)
        assert torch.allclose(weights @ v.repeat_interleave(2 // groups, 1), expected, atol=1e-13)
        assert torch.allclose(weights.sum(-1), torch.ones((), dtype=torch.float64))
    assert (made(q, k, v) - made(q, k, v, Mask(keep=keep))).abs().max() > 1e-2


def test_other_summaries_are_another_result():
    q, k, v = tensors()
    made = core()
    before = made(q, k, v)
    with torch.no_grad():
        made.summaries.mul_(-1)
    assert (made(q, k, v) - before).abs().max() > 1e-2


def test_at_most_as_many_mixtures_as_summaries():
    q, k, v = tensors(20, 20, values=16)
    received = core(3)(q, k, v)
    assert (torch.linalg.matrix_rank(received) == 3).all()


def test_every_token_reaches_every_other_and_the_summaries_learn():
    module = HierarchyConfig(heads=2, summaries=2).build(8).double()
    x = torch.randn(1, 9, 8, dtype=torch.float64, requires_grad=True)
    module(x)[0, 4].sum().backward()
    assert (x.grad.abs().sum(-1) > 0).all()
    assert (module.core.summaries.grad.abs().sum(-1) > 0).all()
    assert all(p.grad.isfinite().all() for p in module.parameters())
    assert module.core.summaries.shape == (2, 2, 4)


def test_the_order_of_the_tokens_does_not_matter_and_padding_gives_nothing():
    module = HierarchyConfig(heads=2).build(8).double()
    x, order = torch.randn(2, 9, 8, dtype=torch.float64), torch.randperm(9)
    assert torch.allclose(module(x[:, order]), module(x)[:, order], atol=1e-13)
    keep = torch.tensor([[True] * 9, [False] * 9])
    assert torch.allclose(module(x, mask=Mask(keep=keep))[1], module.output.bias.expand(9, 8), atol=1e-14)


def test_dropout_acts_in_training_alone():
    q, k, v = tensors()
    made = core(dropout=0.5)
    assert not torch.equal(made.train()(q, k, v), made(q, k, v))
    assert torch.equal(made.eval()(q, k, v), made(q, k, v))


@pytest.mark.parametrize(
    ("mask", "word"),
    [
        (CAUSAL, "Mask causal"),
        (Mask(allow=torch.ones(7, 7, dtype=torch.bool)), "Mask allow"),
        (Mask(bias=torch.zeros(7, 7)), "Mask bias"),
    ],
)
def test_a_summary_has_seen_everything(mask, word):
    made, (q, k, v) = core(), tensors()
    for ask in (lambda: made(q, k, v, mask), lambda: made.weights(q, k, mask)):
        with pytest.raises(UnsupportedError, match=f"{word} with hierarchy attention"):
            ask()


def test_it_keeps_nothing_between_calls():
    module = HierarchyConfig(heads=2).build(8)
    for ask in (module.new_cache, lambda: module(torch.randn(1, 3, 8), cache=KeyValueCache())):
        with pytest.raises(UnsupportedError, match="a cache with hierarchy attention"):
            ask()
    with pytest.raises(UnsupportedError, match="does not exist without its learned maps"):
        HierarchyConfig().core()
