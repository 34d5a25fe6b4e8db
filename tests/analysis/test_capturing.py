"""Looking inside changes nothing and shows what is in use."""

import pytest
import torch

from weft.analysis import capture
from weft.blocks import (
    CAUSAL,
    Attention,
    AttentionConfig,
    FeedForward,
    LayerNorm,
    Layers,
    PreNorm,
    SoftmaxAttention,
    TransformerLayer,
)
from weft.errors import ConfigError, UnsupportedError


def stack():
    def layer():
        return TransformerLayer(
            attention=Attention(16, heads=4, kv_heads=2, core=SoftmaxAttention()),
            attention_residual=PreNorm(LayerNorm(16)),
            feed_forward=FeedForward(16, 32),
            feed_forward_residual=PreNorm(LayerNorm(16)),
        )

    return Layers(layer() for _ in range(3))


def test_output_is_bit_equal_with_and_without_capture():
    model, x = stack(), torch.randn(2, 7, 16)
    plain = model(x, mask=CAUSAL)
    with capture(model) as maps:
        assert torch.equal(model(x, mask=CAUSAL), plain)
    assert list(maps) == ["0.attention", "1.attention", "2.attention"]
    for seen in maps.values():
        assert seen.weights.shape == (2, 4, 7, 7)
        assert (seen.weights.triu(1) == 0).all()  # the causal mask is not lost (transformers#30652)
        assert torch.allclose(seen.weights.sum(-1), torch.ones(2, 4, 7))
    assert repr(maps["0.attention"]) == "AttentionMap(2 rows, 4 heads, 7 x 7)"
    assert torch.equal(model(x, mask=CAUSAL), plain)


def test_patterns_choose_modules_and_unknown_ones_are_named():
    model = stack()
    with capture(model, "1.*") as maps:
        model(torch.randn(1, 3, 16))
    assert list(maps) == ["1.attention"]
    with pytest.raises(ConfigError, match=r"no attention matches 'layer.\*'"), capture(model, "layer.*"):
        pass


def test_hooks_are_gone_after_an_error():
    model = stack()
    with pytest.raises(RuntimeError, match="boom"), capture(model):
        raise RuntimeError("boom")
    assert not any(m._forward_pre_hooks for m in model.modules())


def test_a_map_of_a_cached_step_is_not_changed_by_later_steps():
    model, x = stack(), torch.randn(1, 9, 16)
    caches = model.new_caches()
    with torch.no_grad():
        model(x[:, :5], mask=CAUSAL, caches=caches)
        with capture(model) as maps:
            model(x[:, 5:6], mask=CAUSAL, caches=caches)
        for cache in caches:
            cache.rewind(3)
        model(x[:, 6:], mask=CAUSAL, caches=caches)
        with capture(model) as full:
            model(x[:, :6], mask=CAUSAL)
    for name, seen in maps.items():
        assert torch.allclose(seen.weights[:, :, 0], full[name].weights[:, :, 5], atol=1e-6)


def test_a_shared_lookup_shows_each_attention_its_own_map():
    core, x = SoftmaxAttention(), torch.randn(1, 5, 8)
    model = torch.nn.Sequential(*[Attention(8, heads=2, core=core) for _ in range(3)])
    with capture(model) as maps:
        model(x)
    with capture(model, "1") as alone:
        model(x)
    assert torch.equal(alone["1"].weights, maps["1"].weights)
    assert not torch.equal(maps["0"].weights, maps["1"].weights)
    for name, module in model.named_children():
        with capture(module) as again:
            module(x)
        x = module(x)
        assert torch.equal(maps[name].weights, again[""].weights)


@pytest.mark.parametrize("kind", ["local", "linear"])
def test_a_map_that_is_not_there_says_why(kind):
    attention = AttentionConfig.from_config(kind).build(16)
    model, cache = torch.nn.ModuleDict({"attention": attention}), attention.new_cache()
    attention(torch.randn(1, 5, 16), mask=CAUSAL, cache=cache)
    with capture(model) as maps:
        attention(torch.randn(1, 1, 16), mask=CAUSAL, cache=cache)
    with pytest.raises(UnsupportedError, match="does not keep every token"):
        maps["attention"]
    with pytest.raises(ConfigError, match="did you mean 'attention'"):
        maps["atention"]
    with capture(model) as maps:
        attention(torch.randn(1, 5, 16), mask=CAUSAL)
    assert maps["attention"].weights.shape[2:] == (5, 5)
