"""The numbers: softmax attention against float64 loops, and what breaks software like this."""

import math
import warnings

import pytest
import torch
import torch.nn.functional as F

import weft
from weft.blocks import CAUSAL, Attention, Mask, SoftmaxAttention, renormalise, softargmax

LENGTHS = (1, 2, 3, 31, 97, 257)


def loop_attention(q, k, v, beta, allowed=None, bias=None):
    """Attention in float64, one query at a time, with nothing but sums and exponentials."""
    q, k, v = q.double(), k.double(), v.double()
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=torch.float64)
    for index in torch.cartesian_prod(*[torch.arange(n) for n in q.shape[:-1]]).tolist():
        b, h, t = index
        scores = beta * (k[b, h] @ q[b, h, t])
        if bias is not None:
            scores = scores + bias.double()[t]
        row = torch.ones_like(scores, dtype=torch.bool) if allowed is None else allowed[t]
        if row.any():
            e = torch.exp(scores[row] - scores[row].max())
            out[b, h, t] = (e / e.sum()) @ v[b, h][row]
    return out


# -- A1: softargmax ------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "slack"), [(torch.float32, 1e-6), (torch.float64, 1e-12), (torch.bfloat16, 1e-2)])
@pytest.mark.parametrize("beta", [0.0, 1e-3, 1.0, 100.0, math.inf])
def test_rows_sum_to_one_at_huge_scores(dtype, slack, beta):
    scores = (torch.randn(50, 97) * 1e4).to(dtype)
    weights = softargmax(scores, beta)
    assert weights.dtype == dtype
    assert not weights.isnan().any()
    assert (weights.double().sum(-1) - 1).abs().max() <= slack


def test_beta_zero_averages_and_infinity_takes_the_best():
    scores = torch.tensor([1.0, 3.0, 2.0, 3.0])
    assert softargmax(scores, 0.0).tolist() == [0.25] * 4
    assert softargmax(scores, math.inf).tolist() == [0.0, 0.5, 0.0, 0.5]
    assert torch.allclose(softargmax(scores, 1e3), softargmax(scores, math.inf))


def test_infinite_scores_never_give_nan():
    scores = torch.tensor([[torch.inf, 0.0, torch.inf], [-torch.inf, -torch.inf, -torch.inf], [-torch.inf, 0.0, 1.0]])
    for beta in (0.0, 1.0, 30.0, math.inf):
        weights = softargmax(scores, beta)
        assert not weights.isnan().any()
        assert torch.allclose(weights.sum(-1), torch.ones(3))


def test_infinite_beta_respects_the_mask_and_empty_rows():
    scores, allowed = torch.tensor([[5.0, 1.0, 2.0]] * 2), torch.tensor([[False, True, True], [False] * 3])
    assert softargmax(scores, math.inf, allowed).tolist() == [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


def test_softargmax_passes_gradcheck_with_a_mask():
    scores = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    allowed = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    assert torch.autograd.gradcheck(lambda s: softargmax(s, 0.7, allowed), scores)


# -- A2: any queries, keys, values ----------------------------------------------------------------


@pytest.mark.parametrize("asking", LENGTHS)
@pytest.mark.parametrize("answering", [1, 3, 97])
def test_attention_equals_a_float64_loop(asking, answering):
    for width, value_width in ((4, 4), (33, 7), (64, 64)):
        q, k = torch.randn(1, 2, asking, width), torch.randn(1, 2, answering, width)
        v = torch.randn(1, 2, answering, value_width)
        expected = loop_attention(q, k, v, 1 / math.sqrt(width))
        assert (weft.attention(q.double(), k.double(), v.double()) - expected).abs().max() < 1e-12
        assert (weft.attention(q, k, v).double() - expected).abs().max() < 2e-5


def test_masked_attention_equals_a_float64_loop():
    q, k, v = torch.randn(2, 3, 9, 8), torch.randn(2, 3, 13, 8), torch.randn(2, 3, 13, 5)
    allow = torch.rand(9, 13) > 0.5
    allow[4] = False
    bias = torch.randn(9, 13)
    expected = loop_attention(q, k, v, 0.3, allow, bias)
    ours = weft.attention(q, k, v, mask=Mask(allow=allow, bias=bias), beta=0.3)
    assert (ours.double() - expected).abs().max() < 2e-6
    assert (ours[:, :, 4] == 0).all()


def test_the_parameter_free_case_is_softmax_of_x_xt_times_x():
    x = torch.randn(6, 4, dtype=torch.float64)
    assert torch.allclose(weft.attention(x, x, x, beta=1.0), (x @ x.T).softmax(-1) @ x, atol=1e-14)


def test_leading_axes_are_optional():
    q, k, v = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 6, 4), torch.randn(2, 3, 6, 7)
    whole = weft.attention(q, k, v)
    assert torch.allclose(weft.attention(q[:, 0], k[:, 0], v[:, 0]), whole[:, 0], atol=1e-6)
    assert torch.allclose(weft.attention(q[1, 2], k[1, 2], v[1, 2]), whole[1, 2], atol=1e-6)


# -- FlashAttention's rule: error ≤ 2 × that of plain torch in the same dtype + one rounding unit -------
#
# Measured over 12 seeds: the output of the fused kernel keeps the rule everywhere, and so does everything
# of the explicit path. The float32 *gradients* of torch's fused CPU kernel do not always (up to 4 × plain
# torch: it takes its row sums from the rounded output), so those are held to that kernel called directly.
# Likewise in bf16 at length 1, where queries and keys have no gradient: plain torch gives 0, the kernel 5e-7.

MASKS = ["everything", "causal", "allow", "bias"]


def flash_case(length, mask_name):
    gen = torch.Generator().manual_seed(length)
    tensors = [torch.randn(2, 2, length, 33, generator=gen) for _ in range(4)]
    allow = torch.rand(length, length, generator=gen) > 0.4
    bias = torch.randn(length, length, generator=gen)
    masks = {"everything": Mask(), "causal": CAUSAL, "allow": Mask(allow=allow), "bias": Mask(bias=bias)}
    return tensors, masks[mask_name]


def plain_torch(mask):
    def attend(q, k, v):
        scores = q @ k.transpose(-1, -2) / math.sqrt(33)
        scores = scores if mask.bias is None else scores + mask.bias.to(q.dtype)
        allowed = mask.allowed(q.shape[2], k.shape[2], q.device)
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -torch.inf)
        return scores.softmax(-1).nan_to_num(0.0) @ v

    return attend


def fused_torch(mask):
    def attend(q, k, v):
        allowed = mask.allowed(q.shape[2], k.shape[2], q.device) if mask.bias is None else mask.bias.to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)

    return attend


def results(function, tensors):
    """Output and the three gradients."""
    q, k, v, upstream = (t.detach().clone().requires_grad_() for t in tensors)
    out = function(q, k, v)
    return [out.detach(), *torch.autograd.grad(out, (q, k, v), upstream.detach())]


def assert_rule(ours, peers, reference, dtype):
    for mine, theirs, ref in zip(ours, peers, reference, strict=True):
        unit = torch.finfo(dtype).eps * ref.abs().max()
        assert (mine.double() - ref).abs().max() <= 2 * (theirs.double() - ref).abs().max() + unit


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mask_name", MASKS)
@pytest.mark.parametrize("length", [1, 2, 3, 31, 97, 257])
def test_fused_path_errs_at_most_twice_as_much_as_plain_torch(length, mask_name, dtype):
    tensors, mask = flash_case(length, mask_name)
    cast = [t.to(dtype) for t in tensors]
    reference = results(plain_torch(mask), [t.double() for t in tensors])
    plain, fused = results(plain_torch(mask), cast), results(fused_torch(mask), cast)
    ours = results(lambda q, k, v: weft.attention(q, k, v, mask=mask), cast)
    assert_rule(ours[:1], plain[:1], reference[:1], dtype)
    assert_rule(ours[1:], (fused if dtype == torch.float32 or length == 1 else plain)[1:], reference[1:], dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mask_name", MASKS)
@pytest.mark.parametrize("length", [1, 2, 3, 31, 97, 257])
def test_explicit_path_errs_at_most_twice_as_much_as_plain_torch(length, mask_name, dtype):
    tensors, mask = flash_case(length, mask_name)
    cast = [t.to(dtype) for t in tensors]
    reference = results(plain_torch(mask), [t.double() for t in tensors])
    ours = results(lambda q, k, v: SoftmaxAttention().weights(q, k, mask) @ v, cast)
    assert_rule(ours, results(plain_torch(mask), cast), reference, dtype)


# -- masks -----------------------------------------------------------------------------------------


def test_a_row_with_nothing_to_attend_to_is_zero_with_finite_gradients():
    q, k, v = (torch.randn(2, 2, 5, 4, requires_grad=True) for _ in range(3))
    allow = torch.ones(5, 5, dtype=torch.bool).tril(-1)  # the first row sees nothing
    masks = [
        Mask(allow=allow),
        Mask(allow=allow, bias=torch.randn(5, 5)),
        Mask(bias=torch.zeros(5, 5).masked_fill(~allow, -torch.inf)),
        Mask(keep=torch.zeros(2, 5, dtype=torch.bool)),
    ]
    # anomaly mode: not even on its way may a gradient be NaN
    with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
        for mask in masks:
            out = weft.attention(q, k, v, mask=mask)
            assert (out[:, :, 0] == 0).all()
            assert all(g.isfinite().all() for g in torch.autograd.grad(out.square().sum(), (q, k, v)))
            weights = SoftmaxAttention().weights(q, k, mask)
            assert (weights[:, :, 0] == 0).all()
            assert all(g.isfinite().all() for g in torch.autograd.grad(weights.square().sum(), (q, k)))


@pytest.mark.parametrize("garbage", [torch.nan, torch.inf, 1e30, 1e10])
@pytest.mark.parametrize("causal", [False, True])
def test_garbage_in_padded_keys_and_values_changes_nothing(garbage, causal):
    q, k, v = (torch.randn(2, 3, 9, 4) for _ in range(3))
    keep = torch.ones(2, 9, dtype=torch.bool)
    keep[0, 6:] = False
    keep[1, :2] = False
    clean = weft.attention(q, k, v, mask=Mask(causal=causal, keep=keep))
    k, v = (t.masked_fill(~keep[:, None, :, None], garbage) for t in (k, v))
    assert torch.equal(weft.attention(q, k, v, mask=Mask(causal=causal, keep=keep)), clean)


def test_causal_stands_at_the_last_key_when_queries_are_fewer():
    """SDPA's own flag aligns top-left: query 0 would see key 0 alone."""
    q, k, v = (torch.randn(1, 1, 6, 4, dtype=torch.float64) for _ in range(3))
    full = weft.attention(q, k, v, mask=CAUSAL)
    last = weft.attention(q[:, :, -2:], k, v, mask=CAUSAL)
    assert torch.allclose(last, full[:, :, -2:], atol=1e-14)
    wrong = F.scaled_dot_product_attention(q[:, :, -2:], k, v, is_causal=True)
    assert not torch.allclose(wrong, last)


def test_causal_with_more_queries_than_keys_leaves_the_first_with_nothing():
    q, k = torch.randn(1, 1, 5, 4), torch.randn(1, 1, 3, 4)
    out = weft.attention(q, k, k, mask=CAUSAL)
    assert (out[:, :, :2] == 0).all()
    assert torch.allclose(out[:, :, 2], k[:, :, 0])


def test_the_two_ways_to_mask_agree_until_weights_underflow():
    scores = torch.randn(64, 33)
    allowed = torch.rand(64, 33) > 0.5
    before, after = softargmax(scores, 1.0, allowed), renormalise(softargmax(scores), allowed)
    assert (before - after).abs().max() < 1e-6
    lead = torch.tensor([[200.0, 0.0, 1.0]])
    one = torch.tensor([[False, True, True]])
    assert softargmax(lead, 1.0, one).sum() == 1
    assert renormalise(softargmax(lead), one).sum() == 0  # nothing left to renormalise, and no NaN


def test_dropout_drops_in_training_only():
    core = SoftmaxAttention(dropout=0.5)
    q = torch.randn(1, 2, 8, 4)
    assert not torch.equal(core(q, q, q), core(q, q, q))
    core.eval()
    assert torch.equal(core(q, q, q), core(q, q, q))


def test_the_map_shown_in_half_precision_is_as_exact_as_the_kernel():
    q, k, v = (6 * torch.randn(2, 2, 33, 64) for _ in range(3))
    for dtype in (torch.bfloat16, torch.float16):
        half = [t.to(dtype) for t in (q, k, v)]
        exact = weft.attention(*[t.double() for t in half])
        used = weft.attention(*half).double()
        shown = SoftmaxAttention().weights(*half[:2]).double() @ half[2].double()
        assert (shown - exact).abs().max() <= 4 * (used - exact).abs().max()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("low", [-1e9, torch.finfo(torch.float32).min, -1e300])
def test_a_very_negative_bias_is_no_prohibition_in_any_type(dtype, low):
    """A whole row of it leaves the row as it was: only −∞ forbids."""
    q, k, v = (torch.randn(1, 1, 4, 8).to(dtype) for _ in range(3))
    bias = torch.zeros(4, 4, dtype=torch.float64)
    bias[1] = low
    bias[2, 0] = low
    out, shown = weft.attention(q, k, v, mask=Mask(bias=bias)), SoftmaxAttention().weights(q, k, Mask(bias=bias))
    assert out[0, 0, 1].abs().max() > 0
    assert (shown.float().sum(-1) - 1).abs().max() < 1e-2
    assert shown[0, 0, 2, 0] == 0
    assert torch.allclose(out.float(), (shown.float() @ v.float()), atol=2e-2)


@pytest.mark.parametrize("beta", [1e30, 1e38, math.inf])
def test_a_huge_beta_takes_the_best(beta):
    assert softargmax(torch.tensor([1.0, 5.0, 9.0]), beta).tolist() == [0.0, 0.0, 1.0]
    q, k, v = (torch.randn(1, 1, 5, 4) for _ in range(3))
    assert torch.allclose(weft.attention(q, k, v, beta=beta), weft.attention(q, k, v, kind="hard"))


def test_garbage_in_padding_does_not_reach_gradients_of_the_function():
    x = torch.randn(1, 4, 8)
    keep = torch.tensor([[True, True, True, False]])
    x[0, 3] = torch.nan
    x.requires_grad_()
    weft.attention(x, x, x, mask=Mask(causal=True, keep=keep))[keep].sum().backward()
    assert x.grad[keep].isfinite().all()


# -- A3, A5: maps and heads ------------------------------------------------------------------------


@pytest.mark.parametrize(("heads", "kv_heads", "head_width", "value_width"), [(4, 4, 8, 8), (4, 2, 8, 8), (6, 1, 5, 3)])
def test_parameters_are_as_many_as_they_should_be(heads, kv_heads, head_width, value_width):
    width = 32
    module = Attention(
        width,
        heads=heads,
        kv_heads=kv_heads,
        head_width=head_width,
        value_width=value_width,
        core=SoftmaxAttention(),
    )
    inner = heads * head_width + kv_heads * (head_width + value_width)
    weights = width * inner + heads * value_width * width
    assert sum(p.numel() for p in module.parameters()) == weights + inner + width


def test_self_attention_maps_have_3d2_weights_and_3d_biases():
    module = Attention(24, heads=3, core=SoftmaxAttention())
    maps = [module.query, module.key, module.value]
    assert sum(m.weight.numel() for m in maps) == 3 * 24**2
    assert sum(m.bias.numel() for m in maps) == 3 * 24


def test_fewer_key_value_heads_equal_the_same_heads_repeated():
    few = Attention(16, heads=4, kv_heads=2, core=SoftmaxAttention()).double()
    many = Attention(16, heads=4, core=SoftmaxAttention()).double()
    state = few.state_dict()
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        state[name] = state[name].unflatten(0, (2, 4)).repeat_interleave(2, 0).flatten(0, 1)
    many.load_state_dict(state)
    x = torch.randn(2, 7, 16, dtype=torch.float64)
    assert torch.allclose(few(x, mask=CAUSAL), many(x, mask=CAUSAL), atol=1e-12)


def test_permuting_the_inputs_permutes_the_outputs():
    module = Attention(16, heads=4, core=SoftmaxAttention()).double()
    x, order = torch.randn(1, 9, 16, dtype=torch.float64), torch.randperm(9)
    assert torch.allclose(module(x[:, order]), module(x)[:, order], atol=1e-14)
