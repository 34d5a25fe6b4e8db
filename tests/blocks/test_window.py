"""Window attention: against a plain loop, on rows and on images, shifted or not, and nothing from other windows."""

from dataclasses import replace

import pytest
import torch

import weft
from weft.blocks import CAUSAL, EVERYTHING, AttentionConfig, Mask, SoftmaxAttention
from weft.blocks.attention import Grid, WindowAttention, WindowConfig
from weft.blocks.cache import JointCache
from weft.errors import ConfigError, ShapeError, UnsupportedError

GRIDS = [Grid(1, 1), Grid(6, 6), Grid(5, 9), Grid(13, 4), Grid(3, 2)]
SIZES = [(3, 0), (3, 1), (4, 0), (4, 2), (4, 3), (1, 0)]  # window, shift


def tensors(count, keys=None, heads=2):
    return tuple(torch.randn(2, heads, n, 4, dtype=torch.float64) for n in (count, keys or count, keys or count))


def number(place, size, window, shift):
    """Which window a place is in: how many borders lie before it or at it."""
    return sum(border <= place for border in range(shift or window, size, window))


def own_window(grid, length, window, shift):
    """The window of each token, as a plain list."""
    if grid is None:
        return [number(t, length, window, shift) for t in range(length)]
    return [
        (number(y, grid.rows, window, shift), number(x, grid.columns, window, shift))
        for y in range(grid.rows)
        for x in range(grid.columns)
    ]


def by_loop(q, k, v, own, may=lambda b, t, s: True):
    """What each query receives, one by one; nothing where it may see nothing."""
    out = torch.zeros_like(v)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for t in range(q.shape[2]):
                seen = [s for s in range(k.shape[2]) if own[s] == own[t] and may(b, t, s)]
                if seen:
                    scores = torch.stack([q[b, h, t] @ k[b, h, s] / 2 for s in seen]).exp()
                    out[b, h, t] = sum(w * v[b, h, s] for w, s in zip(scores / scores.sum(), seen, strict=True))
    return out


@pytest.mark.parametrize(("window", "shift"), SIZES)
@pytest.mark.parametrize("grid", [*GRIDS, None], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_both_roads_are_the_loop(grid, window, shift, causal):
    length = 11 if grid is None else grid.places
    q, k, v = tensors(length)
    expected = by_loop(q, k, v, own_window(grid, length, window, shift), lambda b, t, s: s <= t or not causal)
    core, mask = WindowAttention(window=window, shift=shift), Mask(causal=causal, grid=grid)
    spelled = replace(mask, allow=torch.ones(length, length, dtype=torch.bool))
    for found in (core(q, k, v, mask), core(q, k, v, spelled), core.weights(q, k, mask) @ v):
        assert torch.allclose(found, expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize("grid", [Grid(5, 7), None], ids=str)
def test_another_window_or_shift_is_another_result(grid):
    q, k, v = tensors(35)
    results = [WindowAttention(window=w, shift=s)(q, k, v, Mask(grid=grid)) for w, s in SIZES]
    for i, one in enumerate(results):
        assert all((one - other).abs().max() > 0.1 for other in results[:i])


def test_every_part_of_a_mask_holds_inside_the_windows_of_a_image():
    grid = Grid(4, 5)
    q, k, v = tensors(20)
    keep, allow, bias = torch.rand(2, 20) < 0.7, torch.rand(20, 20) < 0.8, torch.randn(20, 20, dtype=torch.float64)
    own = own_window(grid, 20, 3, 1)
    core = WindowAttention(window=3, shift=1)
    expected = by_loop(q, k, v, own, lambda b, t, s: keep[b, s] and allow[t, s])
    assert torch.allclose(core(q, k, v, Mask(grid=grid, keep=keep, allow=allow)), expected, atol=1e-13)
    same = torch.tensor([[a == b for b in own] for a in own])
    expected = SoftmaxAttention()(q, k, v, Mask(bias=bias.masked_fill(~same, -torch.inf)))
    assert torch.allclose(core(q, k, v, Mask(grid=grid, bias=bias)), expected, atol=1e-13)


@pytest.mark.parametrize("grid", [Grid(6, 5), None], ids=str)
def test_no_gradient_comes_from_another_window(grid):
    own = own_window(grid, 30, 4, 2)
    module = WindowConfig(window=4, shift=2, heads=2).build(8).double()
    x = torch.randn(1, 30, 8, dtype=torch.float64, requires_grad=True)
    y = module(x, mask=Mask(grid=grid))
    for t in (0, 7, 13, 29):
        (gradient,) = torch.autograd.grad(y[0, t].sum(), x, retain_graph=True)
        assert [bool(row.any()) for row in gradient[0]] == [window == own[t] for window in own]


def test_the_first_and_the_last_column_do_not_meet():
    """Swin rolls the image round and masks; without the mask they would."""
    own = own_window(Grid(4, 8), 32, 4, 2)
    assert own[0] != own[7] and own[0] == own[1] != own[2]
    weights = WindowAttention(window=4, shift=2).weights(*tensors(32)[:2], Mask(grid=Grid(4, 8)))
    assert (weights[..., 0, 7] == 0).all() and (weights[..., 0, 1] > 0).all()


def test_a_window_of_one_is_oneself_and_a_large_one_is_full_attention():
    q, k, v = tensors(12)
    for mask in (EVERYTHING, Mask(grid=Grid(3, 4))):
        assert torch.allclose(WindowAttention(window=1)(q, k, v, mask), v, atol=1e-14)
        for window in (12, 40):
            assert torch.allclose(
                WindowAttention(window=window)(q, k, v, mask), SoftmaxAttention()(q, k, v), atol=1e-13
            )
    assert torch.allclose(
        weft.attention(q, k, v, kind="window", mask=CAUSAL), WindowAttention(window=7)(q, k, v, CAUSAL)
    )


def test_a_window_much_larger_than_the_text_costs_the_text():
    q, k, v = tensors(3)
    for shift in (0, 2**30):
        core = WindowAttention(window=2**31, shift=shift)
        assert core._cut(EVERYTHING, 3).window == (1, 3)  # before anything of the other size is allocated
        assert torch.allclose(core(q, k, v), SoftmaxAttention()(q, k, v), atol=1e-13)


def test_rows_are_not_images():
    """A negative control: without the grid, the same tokens are cut elsewhere."""
    q, k, v = tensors(36)
    core = WindowAttention(window=3)
    assert (core(q, k, v, Mask(grid=Grid(6, 6))) - core(q, k, v)).abs().max() > 0.1
    assert (core(q, k, v, Mask(grid=Grid(4, 9))) - core(q, k, v, Mask(grid=Grid(6, 6)))).abs().max() > 0.1


def test_every_second_layer_crosses_the_borders():
    config = WindowConfig(window=6)
    assert [config.for_layer(n).shift for n in range(4)] == [0, 3, 0, 3]
    assert config.for_layer(0) is config
    assert [WindowConfig(window=6, shift=4).for_layer(n).shift for n in range(2)] == [4, 1]
    assert [WindowConfig(window=6, alternate=False).for_layer(n).shift for n in range(2)] == [0, 0]
    for kind in set(AttentionConfig.registry) - {AttentionConfig.several}:
        assert AttentionConfig.from_config(kind).for_layer(0) == AttentionConfig.from_config(kind)
    x = torch.randn(1, 12, 8, dtype=torch.float64, requires_grad=True)
    layers = [config.for_layer(n).build(8).double() for n in range(2)]
    for stack, reached in ((layers[:1] * 2, 6), (layers, 12)):
        y = x
        for layer in stack:
            y = layer(y)
        (gradient,) = torch.autograd.grad(y[0, 5].sum(), x)
        assert int(gradient[0].any(-1).sum()) == reached


def test_dropout_acts_in_training_alone():
    q, k, v = tensors(12)
    core = WindowAttention(window=4, dropout=0.5)
    assert not torch.equal(core.train()(q, k, v), core(q, k, v))
    assert torch.equal(core.eval()(q, k, v), WindowAttention(window=4)(q, k, v))


def test_a_grid_forbids_nothing_and_stays():
    mask = Mask(grid=Grid(2, 3))
    assert mask.is_everything and replace(mask, causal=True).is_causal_only
    assert replace(mask, causal=True).grid == Grid(2, 3)
    assert mask.allowed(6, 6, torch.device("cpu")) is None
    assert repr(mask) == "Mask(Grid(rows=2, columns=3))"
    q, k, v = tensors(6)
    assert torch.equal(SoftmaxAttention()(q, k, v, mask), SoftmaxAttention()(q, k, v))


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="shift = 7\nexpected less than the window of 7"):
        WindowConfig(shift=7)
    core, module = WindowAttention(window=3), WindowConfig(window=3).build(8)
    for mask in (Mask(grid=Grid(2, 3)), Mask(grid=Grid(2, 3), keep=torch.ones(2, 7, dtype=torch.bool))):
        with pytest.raises(ShapeError, match="7 tokens\nexpected 6"):
            core(*tensors(7), mask)
    with pytest.raises(UnsupportedError, match="5 queries for 4 keys"):
        core(*tensors(5, 4))
    with pytest.raises(UnsupportedError, match="a memory for WindowAttention"):
        module(torch.randn(1, 4, 8), torch.randn(1, 4, 8))
    with pytest.raises(UnsupportedError, match="a memory for WindowAttention"):
        module.remember(torch.randn(1, 4, 8), JointCache())
