"""The one layer, its residuals, feed-forward parts and norms."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from weft.analysis.capturing import capture
from weft.blocks import (
    CAUSAL,
    Attention,
    Chain,
    FeedForward,
    FeedForwardConfig,
    GatedFeedForward,
    LayerNorm,
    Layers,
    Mask,
    NormConfig,
    ParallelLayer,
    PostNorm,
    PreNorm,
    QKNorm,
    RMSNorm,
    Rotary,
    SoftmaxAttention,
    TransformerLayer,
)
from weft.errors import ConfigError, ShapeError


def layer(residual=PreNorm, cross=False, width=16):
    def attention():
        return Attention(width, heads=2, core=SoftmaxAttention())

    return TransformerLayer(
        attention=attention(),
        attention_residual=residual(LayerNorm(width)),
        feed_forward=FeedForward(width, 32),
        feed_forward_residual=residual(LayerNorm(width)),
        cross_attention=attention() if cross else None,
        cross_residual=residual(LayerNorm(width)) if cross else None,
    )


def test_the_layer_is_its_parts():
    x = torch.randn(2, 5, 16)
    pre, post = layer(PreNorm), layer(PostNorm)
    h = x + pre.attention(pre.attention_residual.norm(x))
    assert torch.equal(pre(x), h + pre.feed_forward(pre.feed_forward_residual.norm(h)))
    h = post.attention_residual.norm(x + post.attention(x))
    assert torch.equal(post(x), post.feed_forward_residual.norm(h + post.feed_forward(h)))


def parallel(shared=False, width=16, make=PreNorm):
    norms = [LayerNorm(width)] * 2 if shared else [LayerNorm(width), LayerNorm(width)]
    made = ParallelLayer(
        attention=Attention(width, heads=2, core=SoftmaxAttention()),
        attention_residual=make(norms[0]),
        feed_forward=FeedForward(width, 32, activation="gelu"),
        feed_forward_residual=make(norms[1]),
    )
    for norm in norms:
        nn.init.normal_(norm.weight)
    return made.double()


def by_loops(one, x):
    """x + attention(norm(x)) + feed_forward(norm(x)), number by number, each place looking back."""

    def normed(norm, row):
        mean = sum(row) / len(row)
        deviation = (sum((v - mean) ** 2 for v in row) / len(row) + norm.eps) ** 0.5
        return [(v - mean) / deviation * w + b for v, w, b in zip(row, norm.weight, norm.bias, strict=True)]

    def mapped(linear, row):
        return [
            sum(w * v for w, v in zip(ws, row, strict=True)) + b
            for ws, b in zip(linear.weight, linear.bias, strict=True)
        ]

    attention, feed = one.attention, one.feed_forward
    rows = [normed(one.attention_residual.norm, row) for row in x.tolist()]
    query, key, value = ([mapped(m, row) for row in rows] for m in (attention.query, attention.key, attention.value))
    found = []
    for t, row in enumerate(x.tolist()):
        mixed = []
        for head in (slice(0, 8), slice(8, 16)):
            scores = [
                sum(a * b for a, b in zip(query[t][head], key[s][head], strict=True)) / 8**0.5 for s in range(t + 1)
            ]
            weights = torch.stack(scores).softmax(0)
            mixed += [sum(w * value[s][head][d] for s, w in enumerate(weights)) for d in range(8)]
        inner = [F.gelu(v) for v in mapped(feed.up, normed(one.feed_forward_residual.norm, row))]
        added = zip(row, mapped(attention.output, mixed), mapped(feed.down, inner), strict=True)
        found.append([float(a + b + c) for a, b, c in added])
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("shared", [False, True])
def test_a_parallel_layer_is_two_branches_of_one_stream(shared):
    one = parallel(shared)
    x = torch.randn(1, 5, 16, dtype=torch.float64)
    with torch.no_grad():
        found = one(x, mask=CAUSAL)
        assert torch.allclose(found[0], by_loops(one, x[0]), atol=1e-12)
        in_turn = TransformerLayer(**{name: getattr(one, name) for name in PARTS})(x, mask=CAUSAL)
    assert not torch.allclose(found, in_turn)


PARTS = ("attention", "attention_residual", "feed_forward", "feed_forward_residual")


def test_parallel_layers_cache_mask_and_are_captured():
    stack = Layers(parallel() for _ in range(2))
    x, keep = torch.randn(2, 9, 16, dtype=torch.float64), torch.arange(9) < torch.tensor([[9], [6]])
    with torch.no_grad():
        full, caches = stack(x, mask=CAUSAL), stack.new_caches()
        parts = [stack(piece, mask=CAUSAL, caches=caches) for piece in x.split(3, 1)]
        assert torch.allclose(torch.cat(parts, 1), full, atol=1e-12)
        padded = stack(x, mask=Mask(causal=True, keep=keep))
        assert torch.allclose(padded[1, :6], stack(x[1:, :6], mask=CAUSAL)[0], atol=1e-12)
        with capture(stack) as seen:
            stack(x, mask=CAUSAL)
    assert len(seen) == 2
    with pytest.raises(ShapeError, match="a memory was given"):
        stack(x, memory=x)
    with pytest.raises(ConfigError, match="PreNorm"):
        parallel(make=PostNorm)
    assert stack.state_dict().keys() == Layers(layer() for _ in range(2)).state_dict().keys()


def test_parameter_names_do_not_depend_on_where_the_norm_stands():
    assert layer(PreNorm).state_dict().keys() == layer(PostNorm).state_dict().keys()


def test_layers_stack_and_cache():
    stack = Layers(layer() for _ in range(3)).double()
    x = torch.randn(2, 11, 16, dtype=torch.float64)
    full = stack(x, mask=CAUSAL)
    assert full.shape == x.shape
    caches = stack.new_caches()
    with torch.no_grad():
        parts = [stack(piece, mask=CAUSAL, caches=caches) for piece in x.split(3, 1)]
    assert torch.allclose(torch.cat(parts, 1), full, atol=1e-12)
    assert "2.attention.query.weight" in stack.state_dict()
    with pytest.raises(ShapeError, match="2 caches for 3 layers"):
        stack(x, caches=caches[:2])


def test_a_decoder_can_read_the_encoder_layer_by_layer():
    encoder, decoder = Layers(layer() for _ in range(3)), Layers(layer(cross=True) for _ in range(3))
    source, x = torch.randn(2, 6, 16), torch.randn(2, 4, 16)
    memories = list(encoder.outputs(source))
    assert torch.equal(memories[-1], encoder(source))
    y = decoder(x, memory=memories)
    assert not torch.allclose(y, decoder(x, memory=memories[-1]))
    y.sum().backward()
    assert all(p.grad is not None for p in [*encoder.parameters(), *decoder.parameters()])
    with pytest.raises(ShapeError, match="2 memories for 3 layers"):
        decoder(x, memory=memories[:2])


def test_self_and_cross_attention_over_one_joint_table():
    """Memory and own tokens side by side: all of the memory, and the past of oneself."""
    module = Attention(16, heads=2, core=SoftmaxAttention())
    x, memory = torch.randn(2, 4, 16), torch.randn(2, 6, 16)
    allow = torch.cat([torch.ones(4, 6, dtype=torch.bool), torch.ones(4, 4, dtype=torch.bool).tril()], 1)
    y = module(x, torch.cat([memory, x], 1), mask=Mask(allow=allow))
    changed = x.clone()
    changed[:, 2] += 1
    again = module(changed, torch.cat([memory, changed], 1), mask=Mask(allow=allow))
    assert torch.equal(again[:, :2], y[:, :2])
    assert not torch.allclose(again[:, 2:], y[:, 2:])


@pytest.mark.parametrize("padded", [False, True])
def test_a_cached_decoder_equals_an_uncached_one(padded):
    decoder = Layers(layer(cross=True) for _ in range(2)).double()
    x, memory = torch.randn(3, 7, 16, dtype=torch.float64), torch.randn(3, 5, 16, dtype=torch.float64)
    keep = torch.ones(3, 5, dtype=torch.bool)
    keep[1, 3:] = not padded
    read = {"mask": CAUSAL, "memory": memory, "memory_mask": Mask(keep=keep)}
    full = decoder(x, **read)
    caches = decoder.new_caches()
    with torch.no_grad():
        parts = [decoder(piece, caches=caches, **read) for piece in x[:, :4].split(3, 1)]
        assert torch.allclose(torch.cat(parts, 1), full[:, :4], atol=1e-12)
        order = torch.tensor([2, 0])
        for cache in caches:
            cache.rewind(3)
            cache.select(order)
        read = {"mask": CAUSAL, "memory": memory[order], "memory_mask": Mask(keep=keep[order])}
        assert torch.allclose(decoder(x[order, 3:], caches=caches, **read), full[order, 3:], atol=1e-12)


def test_garbage_in_padding_does_not_reach_the_gradients_of_a_stack():
    stack, x = Layers(layer() for _ in range(2)), torch.randn(2, 5, 16)
    keep = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    x[1, 3:] = torch.nan
    stack(x, mask=Mask(causal=True, keep=keep))[keep].square().sum().backward()
    assert all(p.grad.isfinite().all() for p in stack.parameters())


def test_a_layer_compiles_to_the_same_numbers():
    """In a process of its own: the shape checks of the test run cannot be traced."""
    code = """
import torch
from weft.blocks import *
layer = TransformerLayer(
    attention=Attention(16, heads=2, core=SoftmaxAttention(), qk=Rotary(8)),
    attention_residual=PreNorm(RMSNorm(16)),
    feed_forward=FeedForward(16, 32),
    feed_forward_residual=PreNorm(RMSNorm(16)),
)
x, keep = torch.randn(2, 5, 16), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
compiled = torch.compile(layer, backend="eager", fullgraph=True)
for mask in (CAUSAL, Mask(keep=keep), Mask(bias=torch.randn(5, 5), bias_forbids=False)):
    assert torch.equal(compiled(x, mask=mask), layer(x, mask=mask))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_decoder_layer_reads_its_memory():
    decoder, x, memory = layer(cross=True), torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    y = decoder(x, memory=memory)
    assert y.shape == x.shape
    assert not torch.allclose(decoder(x, memory=memory.flip(0)), y)


def test_memory_and_cross_attention_belong_together():
    x = torch.randn(1, 3, 16)
    with pytest.raises(ShapeError, match="no memory was given to a layer with cross-attention"):
        layer(cross=True)(x)
    with pytest.raises(ShapeError, match="a memory was given to a layer without cross-attention"):
        layer()(x, memory=x)
    with pytest.raises(ConfigError, match="both or neither"):
        TransformerLayer(
            attention=nn.Identity(),
            attention_residual=PreNorm(nn.Identity()),
            feed_forward=nn.Identity(),
            feed_forward_residual=PreNorm(nn.Identity()),
            cross_attention=nn.Identity(),
        )


def test_residual_dropout_acts_on_the_branch_alone():
    residual, x = PreNorm(nn.Identity(), dropout=0.5), torch.ones(1, 1, 1000)
    y = residual(x, lambda h: h)
    assert set(y.unique().tolist()) == {1.0, 3.0}
    assert torch.equal(residual.eval()(x, lambda h: h), 2 * x)


@pytest.mark.parametrize("activation", ["relu", "squared-relu", "gelu", "gelu-tanh", "silu"])
def test_feed_forward_is_its_formula(activation):
    act = {
        "relu": F.relu,
        "squared-relu": lambda z: F.relu(z) ** 2,
        "gelu": F.gelu,
        "gelu-tanh": lambda z: F.gelu(z, approximate="tanh"),
        "silu": F.silu,
    }[activation]
    x = torch.randn(2, 3, 8)
    plain = FeedForward(8, 20, activation=activation)
    assert torch.allclose(plain(x), plain.down(act(plain.up(x))))
    gated = GatedFeedForward(8, 20, activation=activation)
    assert torch.allclose(gated(x), gated.down(act(gated.gate(x)) * gated.up(x)))


def test_feed_forward_acts_on_each_position_alone():
    x = torch.randn(1, 6, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(FeedForward(8, 32)(x)[0, 2].sum(), x)
    assert (gradient[0, [0, 1, 3, 4, 5]] == 0).all()
    assert gradient[0, 2].abs().max() > 0


def test_norms_are_their_formulas():
    x = torch.randn(4, 9, dtype=torch.float64) * 3 + 1
    ours, theirs = LayerNorm(9).double(), nn.LayerNorm(9).double()
    theirs.load_state_dict(ours.state_dict())
    assert torch.equal(ours(x), theirs(x))
    assert "bias" not in LayerNorm(9, bias=False).state_dict()
    rms = RMSNorm(9, eps=1e-6).double()
    assert torch.allclose(rms(x), x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt())
    assert torch.allclose(rms(x), nn.RMSNorm(9, eps=1e-6).double()(x))


def test_rms_norm_squares_half_precision_in_float32():
    x = torch.full((1, 4), 300.0, dtype=torch.float16)  # 300² is beyond float16
    assert torch.allclose(RMSNorm(4).half()(x).float(), torch.ones(1, 4), atol=1e-3)


def test_configs_build_their_modules():
    assert isinstance(NormConfig.from_config("rms").build(8), RMSNorm)
    assert NormConfig.from_config({"kind": "layer", "bias": False}).build(8).bias is None
    assert FeedForwardConfig.from_config("plain").build(8).up.out_features == 32
    gated = FeedForwardConfig.from_config({"kind": "gated", "ff_width": 20, "activation": "gelu"}).build(8)
    assert (gated.gate.out_features, gated.activation) == (20, "gelu")


def test_qk_modules_chain_in_their_order():
    x = torch.randn(2, 6, 16)
    chain = Attention(16, heads=2, core=SoftmaxAttention(), qk=Chain([QKNorm(8), Rotary(8)]))
    plain = Attention(16, heads=2, core=SoftmaxAttention())
    plain.load_state_dict(chain.state_dict(), strict=False)
    assert not torch.allclose(chain(x), plain(x))
    q = torch.randn(1, 2, 6, 8)
    at = torch.arange(6)
    norm, rotary = QKNorm(8), Rotary(8)
    expected = rotary(*norm(q, q, at), at)
    assert all(torch.equal(a, b) for a, b in zip(Chain([norm, rotary])(q, q, at), expected, strict=True))
    assert torch.allclose(norm(q, q, None)[0].square().mean(-1), torch.ones(1, 2, 6), atol=1e-4)
