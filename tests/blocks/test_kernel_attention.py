"""Kernel attention: its three forms are one, its memory is constant, and random features estimate the softmax."""

import itertools
import math

import pytest
import torch

import weft
from weft.blocks import CAUSAL, AttentionConfig, Mask
from weft.blocks.attention import SoftmaxAttention, kernel
from weft.blocks.attention.random_features import directions
from weft.errors import ConfigError, ShapeError, UnsupportedError

KINDS = [{"kind": "linear"}, {"kind": "random-features", "features": 24}, {"kind": "random-features", "beta": 1.0}]


def random(*shape, seed=1, grad=False):
    made = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return made.requires_grad_(grad)


def core_of(fields, width=8):
    module = AttentionConfig.from_config({**fields, "heads": 4, "kv_heads": 2, "head_width": width}).build(4 * width)
    return module.double().eval().core


@pytest.mark.parametrize("size", [1.0, 30.0])  # features of the larger ones would be far beyond what a float can hold
@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_parallel_chunked_and_recurrent_are_one(fields, size, monkeypatch):
    core = core_of(fields)
    q, k, v = size * random(2, 4, 300, 8), size * random(2, 2, 300, 8, seed=2), random(2, 2, 300, 5, seed=3)
    parallel = core.weights(q, k, CAUSAL) @ v.repeat_interleave(2, 1)
    for chunk in (1, 7, 128, 1000):
        monkeypatch.setattr(kernel, "POSITIONS_PER_CHUNK", chunk)
        torch.testing.assert_close(core(q, k, v, CAUSAL), parallel, atol=1e-10, rtol=0)
    for step in (1, 9, 130):
        cache = core.new_cache()
        parts = [core.recall(*(t[:, :, i : i + step] for t in (q, k, v)), CAUSAL, cache) for i in range(0, 300, step)]
        torch.testing.assert_close(torch.cat(parts, 2), parallel, atol=1e-10, rtol=0)
        assert cache.start == 300
    both_ways = core.weights(q, k) @ v.repeat_interleave(2, 1)
    torch.testing.assert_close(core(q, k, v), both_ways, atol=1e-10, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_gradients_are_those_of_the_table(fields, causal):
    core = core_of(fields)
    q, k, v = random(1, 4, 200, 8, grad=True), random(1, 2, 200, 8, seed=2, grad=True), random(1, 2, 200, 5, grad=True)
    gradient = random(1, 4, 200, 5, seed=4)
    (asked, _), (found, scale) = core.features(q), core.features(k)
    table = asked @ found.repeat_interleave(2, 1).mT
    table = table if scale is None else table * scale.repeat_interleave(2, 1).exp()[:, :, None]
    table = table.tril() if causal else table
    theirs = (table / table.sum(-1, keepdim=True)) @ v.repeat_interleave(2, 1)
    ours = core(q, k, v, Mask(causal=causal))
    for mine, peer in zip(*(torch.autograd.grad(y, (q, k, v), gradient) for y in (ours, theirs)), strict=True):
        torch.testing.assert_close(mine, peer, atol=1e-10, rtol=0)


@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_sums_keep_their_digits_under_autocast(fields):
    core = core_of(fields).float()
    q, k, v = random(1, 4, 600, 8).float(), random(1, 2, 600, 8, seed=2).float(), random(1, 2, 600, 5, seed=3).float()
    plain = core(q, k, v, CAUSAL)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = core(q, k, v, CAUSAL)
    assert torch.equal(cast, plain)


@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_what_is_remembered_does_not_grow(fields):
    core, sizes = core_of(fields), []
    cache = core.new_cache()
    for length in (1, 50, 500):
        q, k, v = random(1, 4, length, 8), random(1, 2, length, 8), random(1, 2, length, 5)
        core.recall(q, k, v, CAUSAL, cache)
        sizes.append(sum(t.numel() for t in cache.sums))
    assert len(set(sizes)) == 1
    with pytest.raises(UnsupportedError, match="rewinding a sum"):
        cache.rewind(3)
    cache.rewind(551)
    assert cache.start == 551
    cache.rewind(0)
    assert cache.start == 0 and cache.sums is None


def test_a_sum_for_other_rows_is_refused():
    core, cache = core_of({"kind": "linear"}), core_of({"kind": "linear"}).new_cache()
    core.recall(random(2, 4, 3, 8), random(2, 2, 3, 8), random(2, 2, 3, 5), CAUSAL, cache)
    with pytest.raises((ShapeError, RuntimeError)):
        core.recall(random(3, 4, 3, 8), random(3, 2, 3, 8), random(3, 2, 3, 5), CAUSAL, cache)
    with pytest.raises(UnsupportedError, match="one sum"):
        core.recall(random(2, 4, 1, 8), None, None, Mask(allow=torch.ones(1, 3, dtype=torch.bool)), cache)
    with pytest.raises(UnsupportedError, match="positions of the tokens"):
        cache.positions(torch.device("cpu"))


@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_a_memory_is_summed_once(fields):
    module = AttentionConfig.from_config({**fields, "heads": 2}).build(8).double().eval()
    x, memory = random(6, 4, 8), random(3, 9, 8, seed=2)
    keep = torch.ones(3, 9, dtype=torch.bool)
    keep[1, 4:] = False
    mask, cache = Mask(keep=keep), module.new_cache()
    with torch.no_grad():
        first = module(x[::2, :1], memory, mask=mask, cache=cache)
        later = module(x[::2, 1:], torch.full_like(memory, torch.nan), mask=mask, cache=cache)
        whole = module(x[::2], memory, mask=mask)
        torch.testing.assert_close(torch.cat([first, later], 1), whole, atol=1e-12, rtol=0)
        beams = module(x, memory, mask=mask, cache=cache)  # two rows of the stream for each of the memory
        for row in range(6):
            alone = module(x[row : row + 1], memory[row // 2, keep[row // 2]][None])
            torch.testing.assert_close(beams[row : row + 1], alone, atol=1e-12, rtol=0)


# -- random features --------------------------------------------------------------------------


def test_directions_are_orthogonal_in_groups_and_normal_alone():
    drawn = directions(5000, 8, seed=0)
    products = drawn.view(-1, 8, 8) @ drawn.view(-1, 8, 8).mT
    products = products - torch.diag_embed(products.diagonal(dim1=1, dim2=2))
    assert products.abs().max() < 1e-12
    assert drawn.mean(0).abs().max() < 4 / math.sqrt(5000)
    assert (drawn.T @ drawn / 5000 - torch.eye(8)).abs().max() < 0.1
    assert abs((drawn**4).mean() - 3) < 0.25  # a normal distribution's, not a uniform one's
    assert torch.equal(drawn[:7], directions(7, 8, seed=0)) and not torch.equal(drawn[:8], directions(8, 8, seed=1))


def test_the_kernel_is_estimated_without_bias():
    """400 draws of 8 features each: the mean of the estimates is within four of its standard errors."""
    q, k = 0.3 * random(1, 1, 6, 8), 0.3 * random(1, 1, 6, 8, seed=2)
    estimates = []
    for seed in range(400):
        fields = {"kind": "random-features", "features": 8, "seed": seed, "beta": 1.0, "heads": 1}
        core = AttentionConfig.from_config(fields).build(8).double().core
        (asked, top), (found, scale) = core.features(q), core.features(k)
        estimates.append((asked * top.exp()[..., None]) @ (found * scale.exp()[..., None]).mT / 8)
    estimates = torch.stack(estimates)
    error = estimates.std(0) / math.sqrt(400)
    exact = (q @ k.mT).exp()
    assert ((estimates.mean(0) - exact).abs() < 4 * error).all()
    assert ((estimates.mean(0) - 1.3 * exact).abs() > 4 * error).any()  # the test would see a bias


def errors(counts, draws):
    """The root of the mean squared error of the output, beside softmax attention, for each number of features."""
    q, k, v = (size * random(1, 1, 32, 16, seed=n) for n, size in enumerate((0.25, 0.25, 1.0)))
    exact = SoftmaxAttention()(q, k, v)
    found = []
    for count in counts:
        squares = []
        for seed in range(draws):
            fields = {"kind": "random-features", "features": count, "seed": seed, "heads": 1}
            core = AttentionConfig.from_config(fields).build(16).double().core
            squares.append((core(q, k, v) - exact).square().mean())
        found.append(torch.stack(squares).mean().sqrt().item())
    return found


def test_the_error_falls_as_the_root_of_the_features():
    few, many = errors((64, 1024), draws=24)
    exponent = math.log(many / few) / math.log(16)
    assert -0.62 < exponent < -0.38
    assert many < 0.05


def test_softmax_weights_can_be_used_directly():
    exact = AttentionConfig.from_config({"kind": "softmax", "heads": 2}).build(32).double()
    close = AttentionConfig.from_config({"kind": "random-features", "heads": 2, "features": 4096}).build(32).double()
    missing, unexpected = close.load_state_dict(exact.state_dict(), strict=False)
    assert missing == ["core.directions"] and not unexpected
    x = 0.5 * random(1, 20, 32)
    for mask in (Mask(), CAUSAL):
        gap = (close(x, mask=mask) - exact(x, mask=mask)).square().mean().sqrt()
        assert gap < 0.05 * exact(x, mask=mask).square().mean().sqrt()


def test_random_features_need_no_maps():
    q = 0.3 * random(20, 8)
    estimate = weft.attention(q, q, q, kind="random-features")
    assert estimate.shape == q.shape
    assert (estimate - weft.attention(q, q, q)).abs().max() < (q - q.mean(0)).abs().max()
    same = AttentionConfig.from_config({"kind": "random-features", "features": 3000})
    torch.testing.assert_close(weft.attention(q, q, q, kind=same), weft.attention(q, q, q), atol=0.02, rtol=0)


def test_features_are_redrawn_after_so_many_calls_in_training_and_the_count_is_saved():
    config = AttentionConfig.from_config({"kind": "random-features", "features": 8, "redraw": 3, "heads": 1})
    module, x, drawn = config.build(8), torch.randn(1, 4, 8), []
    for _ in range(7):
        drawn.append(module.core.directions.clone())
        module(x)
    same = [torch.equal(a, b) for a, b in itertools.pairwise(drawn)]
    assert same == [True, True, False, True, True, False]
    again = config.build(8)
    again.load_state_dict(module.state_dict())
    for _ in range(3):
        module(x), again(x)
        assert torch.equal(module.core.directions, again.core.directions)
    module.eval()
    before = module.core.directions.clone()
    for _ in range(4):
        module(x)
    assert torch.equal(before, module.core.directions)
    assert not any(p.requires_grad for p in module.core.parameters())


def test_every_layer_draws_its_own():
    config = AttentionConfig.from_config("random-features")
    assert [config.for_layer(n).seed for n in range(3)] == [0, 1, 2]


def test_what_a_kernel_has_not_is_refused():
    with pytest.raises(UnsupportedError, match="not of scores"):
        AttentionConfig.from_config("linear").build(8)(torch.zeros(1, 3, 8), mask=Mask(bias=torch.zeros(3, 3)))
    with pytest.raises(ConfigError, match="finite"):
        AttentionConfig.from_config({"kind": "random-features", "beta": math.inf})
