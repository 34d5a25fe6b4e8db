"""Each position kind against its formula, written out."""

import math

import pytest
import torch

from weft.blocks import ALiBi, Learned, RelativeBias, Rotary, sinusoids
from weft.blocks.position.alibi import slopes
from weft.blocks.position.relative import buckets_of
from weft.errors import ConfigError, ShapeError, UnsupportedError


@pytest.mark.parametrize("width", [4, 33, 64])
def test_sinusoids_are_the_papers(width):
    table = sinusoids(torch.arange(50), width)
    for n in (0, 1, 17, 49):
        for i in range(width):
            angle = n / 10_000 ** ((i - i % 2) / width)
            assert table[n, i].item() == pytest.approx(math.cos(angle) if i % 2 else math.sin(angle), abs=1e-12)


def test_a_shift_of_sinusoids_is_one_rotation():
    table = sinusoids(torch.arange(40), 8, base=100.0)
    pairs = torch.view_as_complex(table.view(40, 4, 2).flip(-1).contiguous())  # cos + i sin
    turn = pairs[5] / pairs[0]
    assert (pairs[:-5] * turn - pairs[5:]).abs().max() < 1e-12


def test_rotary_is_complex_multiplication():
    rotary, q = Rotary(8, base=50.0), torch.randn(2, 3, 6, 8, dtype=torch.float64)
    turned, _ = rotary(q, q, torch.arange(6))
    pairs = torch.complex(q[..., :4], q[..., 4:])
    angle = torch.arange(6)[:, None] * 50.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
    expected = pairs * torch.polar(torch.ones_like(angle), angle)
    assert (torch.complex(turned[..., :4], turned[..., 4:]) - expected).abs().max() < 1e-12


def test_rotary_refuses_odd_heads_and_cross_attention():
    with pytest.raises(ConfigError, match="even"):
        Rotary(7)
    q = torch.randn(1, 1, 2, 4)
    with pytest.raises(UnsupportedError, match="cross-attention"):
        Rotary(4)(q, q, None)


def test_alibi_slopes_are_the_papers():
    assert slopes(8) == [2.0**-n for n in range(1, 9)]
    assert slopes(1) == [2.0**-8]
    expected_12 = [2.0**-n for n in range(1, 9)] + [2 ** -(n + 0.5) for n in range(4)]
    assert slopes(12) == pytest.approx(expected_12)


def test_alibi_falls_linearly_with_distance():
    bias = ALiBi(8).at_scores(torch.arange(4), torch.arange(4))
    assert bias[0, 0, 3].tolist() == [-1.5, -1.0, -0.5, 0.0]


@pytest.mark.parametrize("two_way", [True, False])
def test_relative_buckets_cover_near_and_far(two_way):
    ahead = torch.arange(-400, 401)
    bucket = buckets_of(ahead, buckets=32, max_distance=128, two_way=two_way)
    assert bucket.min() == 0
    assert bucket.max() == 31
    behind = bucket[ahead <= 0].flip(0)  # by growing distance
    assert (behind.diff() >= 0).all()
    near = 8 if two_way else 16
    assert behind[:near].tolist() == list(range(near))
    assert len(set(behind[128:].tolist())) == 1
    if two_way:
        assert (bucket[ahead > 0] == bucket[ahead < 0].flip(0) + 16).all()
    else:
        assert (bucket[ahead >= 0] == 0).all()


def test_relative_bias_reads_its_table():
    bias = RelativeBias(2, buckets=8, max_distance=16)
    at = bias.at_scores(torch.arange(5), torch.arange(5))
    assert at.shape == (1, 2, 5, 5)
    assert torch.equal(at[0, :, 2, 2], bias.weight[0])
    assert torch.equal(at[0, :, 2, 3], bias.weight[5])


def test_relative_bias_refuses_sizes_that_make_no_sense():
    with pytest.raises(ConfigError, match="buckets"):
        RelativeBias(2, buckets=64, max_distance=8)


def test_learned_positions_end_where_they_end_and_stretch():
    learned = Learned(5, 4)
    with pytest.raises(ShapeError, match=r"6 tokens(.|\n)*at most 5(.|\n)*stretched"):
        learned.at_input(torch.zeros(1, 6, 4), torch.arange(6))
    longer = learned.stretched(9)
    assert longer.weight.shape == (9, 4)
    assert torch.allclose(longer.weight[::2], learned.weight, atol=1e-7)
    assert torch.allclose(longer.weight[1], (learned.weight[0] + learned.weight[1]) / 2, atol=1e-7)
    assert longer.weight.requires_grad
    assert torch.equal(learned.stretched(5).weight, learned.weight)
