"""How far back a gradient reaches, on readings of which it is known."""

import pytest
import torch
from torch import nn

from weft.analysis import gradient_by_distance, gradient_of_loss_by_distance
from weft.blocks import AttentionConfig, Mask
from weft.models import GPTConfig


def inputs(length=12, width=6, rows=32):
    torch.manual_seed(0)
    return torch.randn(rows, length, width, dtype=torch.float64)


def recurrence(factor):
    """h_t = factor · h_{t−1} + x_t, whose gradient at distance d is factor^d."""

    def read(x):
        states, state = [], torch.zeros_like(x[:, 0])
        for place in range(x.shape[1]):
            state = factor * state + x[:, place]
            states.append(state)
        return torch.stack(states, 1)

    return read


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5])
def test_a_linear_recurrence_shrinks_or_grows_with_every_place(factor):
    found = gradient_by_distance(recurrence(factor), inputs())
    expected = found[0] * factor ** torch.arange(12, dtype=torch.float64)
    torch.testing.assert_close(found, expected)
    assert 0.8 < found[0] < 1.2  # the identity gives 1, up to the directions that were drawn


def test_an_average_reaches_everywhere_alike():
    found = gradient_by_distance(lambda x: x.mean(1, keepdim=True), inputs())
    torch.testing.assert_close(found, found[:1].expand(12))
    assert abs(float(found[0]) - 1 / 12) < 0.2 / 12


def test_the_estimate_is_the_norm_of_the_jacobian():
    torch.manual_seed(1)
    module = AttentionConfig.from_config({"kind": "softmax", "heads": 2}).build(6).double()
    x = inputs(5, rows=1)
    jacobian = torch.autograd.functional.jacobian(lambda x: module(x, mask=Mask(causal=True))[0, -1], x)[:, 0]
    exact = (jacobian.square().sum((0, 2)) / 6).sqrt().flip(0)
    many = [gradient_by_distance(lambda x: module(x, mask=Mask(causal=True)), x, seed=seed) for seed in range(400)]
    torch.testing.assert_close(torch.stack(many).square().mean(0).sqrt(), exact, rtol=0.15, atol=0)


class Bag(nn.Module):
    """Logits from the sum of weighted token vectors: the gradient at each place is its weight."""

    def __init__(self, weights):
        super().__init__()
        self.tokens, self.head, self.weights = nn.Embedding(9, 4), nn.Linear(4, 9), weights

    def forward(self, tokens):
        return self.head((self.tokens(tokens) * self.weights[:, None]).cumsum(1))


def test_the_gradient_of_a_loss_is_relative_to_the_largest_and_leaves_no_trace():
    torch.manual_seed(0)
    weights = torch.tensor([1.0, 0.5, 4.0, 2.0])
    model = Bag(weights)
    with torch.no_grad():
        found = gradient_of_loss_by_distance(model, torch.randint(9, (3, 5)))
    torch.testing.assert_close(found, weights.flip(0) / 4)
    assert all(p.grad is None for p in model.parameters())
    assert not model.tokens._forward_hooks


def test_a_model_that_sees_four_tokens_hears_of_no_more():
    torch.manual_seed(0)
    local = {"kind": "local", "window": 2, "heads": 2, "bias": False}
    config = GPTConfig(vocab_size=11, width=8, depth=3, max_length=16, attention=local, zero_outputs=False)
    found = gradient_of_loss_by_distance(config.build(), torch.randint(11, (2, 13)))
    assert (found[:4] > 0).all() and (found[4:] == 0).all()  # each layer reaches one place further
