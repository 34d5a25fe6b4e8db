"""Channel attention: against a plain loop; padding, and what is refused."""

import pytest
import torch

import weft
from weft.blocks import CAUSAL, Mask
from weft.blocks.attention import ChannelAttention, ChannelConfig, Grid
from weft.blocks.cache import KeyValueCache
from weft.errors import ConfigError, UnsupportedError


def tensors(tokens=7, groups=2):
    return tuple(torch.randn(2, heads, tokens, 4, dtype=torch.float64) for heads in (2, groups, groups))


def by_loop(q, k, v, keep=None):
    """Channel i of a head receives of channel j by how alike they are over all real tokens."""
    out = torch.zeros_like(q)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            g = h * k.shape[1] // q.shape[1]
            real = [t for t in range(q.shape[2]) if keep is None or keep[b, t]]
            for i in range(4):
                scores = torch.stack([sum(q[b, h, t, i] * k[b, g, t, j] for t in real) / 2 for j in range(4)])
                weights = scores.softmax(0)
                for t in real:
                    out[b, h, t, i] = sum(weights[j] * v[b, g, t, j] for j in range(4))
    return out


@pytest.mark.parametrize("tokens", [1, 2, 7, 31])
@pytest.mark.parametrize("groups", [1, 2])
def test_it_is_the_loop(tokens, groups):
    q, k, v = tensors(tokens, groups)
    keep = torch.rand(2, tokens) < 0.6
    keep[:, 0] = True
    for mask in (Mask(), Mask(keep=keep), Mask(grid=Grid(1, tokens))):
        found = ChannelAttention()(q, k, v, mask)
        assert torch.allclose(found, by_loop(q, k, v, mask.keep), atol=1e-12)
        assert torch.equal(found, weft.attention(q, k, v, kind="channel", mask=mask))
    table = ChannelAttention().channel_weights(q, k)
    assert table.shape == (2, 2, 4, 4)
    assert torch.allclose(table.sum(-1), torch.ones((), dtype=torch.float64))


def test_it_mixes_channels_and_not_tokens():
    """A negative control: it is not softmax attention, and the order of tokens says nothing."""
    q, k, v = tensors()
    found, order = ChannelAttention()(q, k, v), torch.randperm(7)
    assert (found - weft.attention(q, k, v)).abs().max() > 0.1
    assert torch.allclose(ChannelAttention()(*(t[:, :, order] for t in (q, k, v))), found[:, :, order], atol=1e-13)
    assert torch.allclose(ChannelAttention(beta=0.0)(q, k, v), v.mean(-1, keepdim=True).expand_as(v), atol=1e-13)
    assert (ChannelAttention(beta=1.0)(q, k, v) - found).abs().max() > 1e-2


def test_every_token_reaches_every_other():
    module = ChannelConfig(heads=2).build(8).double()
    x = torch.randn(1, 9, 8, dtype=torch.float64, requires_grad=True)
    module(x)[0, 4].sum().backward()
    assert (x.grad.abs().sum(-1) > 0).all()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in module.parameters())


def test_padding_of_any_content_changes_nothing_and_gradients_stay_finite():
    module = ChannelConfig(heads=2).build(8).double()
    x = torch.randn(1, 5, 8, dtype=torch.float64)
    alone = module(x)
    keep = torch.tensor([[False, False, True, True, True, True, True, False]])
    for garbage in (torch.nan, 1e30, 0.0):
        padded = torch.full((1, 8, 8), garbage, dtype=torch.float64)
        padded[:, 2:7] = x
        padded.requires_grad_()
        found = module(padded, mask=Mask(keep=keep))
        assert torch.allclose(found[:, 2:7], alone, atol=1e-13)
        assert torch.allclose(found[:, 0], module.output.bias, atol=1e-14)
        (gradient,) = torch.autograd.grad(found.square().sum(), padded)
        assert gradient.isfinite().all() and not gradient[~keep].any()


def test_dropout_acts_in_training_alone():
    q, k, v = tensors()
    made = ChannelAttention(dropout=0.5)
    assert not torch.equal(made.train()(q, k, v), made(q, k, v))
    assert torch.equal(made.eval()(q, k, v), ChannelAttention()(q, k, v))


def test_groups_of_channels():
    assert ChannelConfig().sizes(96) == (3, 32)
    assert ChannelConfig().sizes(33) == (3, 11)
    assert ChannelConfig(heads=4).sizes(96) == (4, 24)
    with pytest.raises(ConfigError, match="width 9 with 2 heads"):
        ChannelConfig(heads=2).build(9)


@pytest.mark.parametrize(
    ("mask", "word"),
    [
        (CAUSAL, "Mask causal"),
        (Mask(allow=torch.ones(7, 7, dtype=torch.bool)), "Mask allow"),
        (Mask(bias=torch.zeros(7, 7)), "Mask bias"),
    ],
)
def test_a_channel_has_seen_everything(mask, word):
    with pytest.raises(UnsupportedError, match=f"{word} with channel attention"):
        ChannelAttention()(*tensors(), mask)


def test_what_cannot_be_is_refused():
    module, x = ChannelConfig(heads=2).build(8), torch.randn(1, 3, 8)
    for ask in (module.new_cache, lambda: module(x, cache=KeyValueCache())):
        with pytest.raises(UnsupportedError, match="a cache with channel attention"):
            ask()
    with pytest.raises(UnsupportedError, match="a memory for ChannelAttention"):
        module(x, x)
    q, k, v = tensors()
    with pytest.raises(UnsupportedError, match="5 queries for 7 keys"):
        ChannelAttention()(q[:, :, :5], k, v)
    with pytest.raises(UnsupportedError, match="values of 3 channels with keys of 4"):
        ChannelAttention()(q, k, v[..., :3])
    with pytest.raises(UnsupportedError, match="no table of attention weights"):
        ChannelAttention().weights(q, k)
