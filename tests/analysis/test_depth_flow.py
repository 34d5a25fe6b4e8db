"""Gradients through depth, on stacks of which they are known."""

import pytest
import torch
from torch import nn

from weft.analysis import gradient_through_depth
from weft.analysis.gradient_flow import layers_of
from weft.errors import UnsupportedError
from weft.models import BERTConfig, GPTConfig, LSTMConfig, TransformerConfig
from weft.models.sites import Place


class Scaled(nn.Module):
    """Layers that each multiply by a number: the gradient grows or shrinks by it."""

    def __init__(self, factors):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6, bias=False) for _ in factors)
        for layer, factor in zip(self.layers, factors, strict=True):
            layer.weight.data = factor * torch.eye(6)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_a_stack_that_scales(factor):
    x = torch.randn(2, 5, 6)
    (flow,) = gradient_through_depth(Scaled([factor] * 4), lambda model: model(x).sum())
    expected = [(60**0.5) * factor ** (4 - n) for n in range(5)]
    assert flow.stream == pytest.approx(expected, rel=1e-5)
    assert flow.first_to_last == pytest.approx(factor**4, rel=1e-5)


def test_several_texts_count_together():
    """Whatever their order; two that are alike give the curve of one, longer by √2."""
    model = GPTConfig(vocab_size=9, width=16, depth=2, zero_outputs=False).build()
    texts = torch.randint(9, (2, 1, 8))

    def flow(*numbers):
        (found,) = gradient_through_depth(model, lambda m: sum(m(texts[n]).square().sum() for n in numbers))
        return found

    one, other = flow(0), flow(1)
    together = [(a**2 + b**2) ** 0.5 for a, b in zip(one.stream, other.stream, strict=True)]
    assert flow(0, 1).stream == pytest.approx(together, rel=1e-4)
    assert flow(1, 0).stream == pytest.approx(together, rel=1e-4)
    assert flow(0, 0).first_to_last == pytest.approx(one.first_to_last, rel=1e-4)


def test_norms_are_those_of_autograd():
    model = GPTConfig(vocab_size=9, width=16, depth=3, zero_outputs=False).build()
    tokens = torch.randint(9, (2, 8))

    def loss(model):
        return nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.roll(-1).flatten())

    (flow,) = gradient_through_depth(model, loss)
    assert all(p.grad is None for p in model.parameters()), "nothing is left in the model"
    kept = []
    handles = [layer.register_forward_pre_hook(lambda _, given: kept.append(given[0])) for layer in model.layers]
    value = loss(model)
    for handle in handles:
        handle.remove()
    wanted = torch.autograd.grad(value, kept, retain_graph=True)
    assert flow.stream[:-1] == pytest.approx([float(g.norm()) for g in wanted], rel=1e-5)
    value.backward()
    for number, layer in enumerate(model.layers):
        parts = torch.cat([p.grad.flatten() for p in layer.attention.parameters()])
        assert flow.groups["attention"][number] == pytest.approx(float(parts.norm()), rel=1e-5)
    assert set(flow.groups) == {"attention", "feed_forward"}
    assert flow.layers[2] == Place("", 3)


def test_a_layer_behind_a_wall_gets_nothing():
    """Negative control: a factor of zero is a wall."""
    x = torch.randn(2, 5, 6)
    (flow,) = gradient_through_depth(Scaled([1.0, 0.0, 1.0]), lambda model: model(x).sum())
    assert flow.stream[:2] == (0.0, 0.0) and min(flow.stream[2:]) > 0


def test_pre_norm_passes_more_than_post_norm():
    found = {}
    for first in (True, False):
        torch.manual_seed(0)
        model = BERTConfig(vocab_size=9, width=32, depth=24, norm_first=first, zero_outputs=False).build()
        for p in model.layers.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        tokens = torch.randint(9, (2, 8))
        (flow,) = gradient_through_depth(model, lambda m, t=tokens: m(t).logsumexp(-1).sum())
        found[first] = flow.first_to_last
    assert found[True] > 1.5 and found[False] < 0.5 * found[True]


def test_models_with_two_stacks_and_recurrent_ones():
    model = TransformerConfig(vocab_size=9, width=16, depth=2).build().eval()
    source, target = torch.randint(9, (1, 6)), torch.randint(9, (1, 4))
    encoder, decoder = gradient_through_depth(model, lambda m: m(source, target).logsumexp(-1).sum())
    assert encoder.layers[0] == Place("encoder", 1) and decoder.layers[1] == Place("decoder", 2)
    assert "cross_attention" in decoder.groups and "cross_attention" not in encoder.groups
    lstm = LSTMConfig(vocab_size=9, width=8, depth=2).build()
    (flow,) = gradient_through_depth(lstm, lambda m: m.hidden(source).sum())
    assert len(flow.stream) == 3 and min(flow.stream) > 0


def test_a_model_without_layers_is_refused():
    with pytest.raises(UnsupportedError, match="no stack of layers"):
        layers_of(nn.Linear(2, 2))
