"""Claims about cost: multiplications, counted while the modules run."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from weft.blocks import Attention, Mask, SoftmaxAttention
from weft.blocks.attention import AttentionConfig, AttentionCore, Grid
from weft.blocks.attention.channel import ChannelAttention
from weft.models import DaViTConfig, preset
from weft.theory.claim import Evidence, claim, evidence, table, value
from weft.theory.counting import largest, multiplications
from weft.theory.prediction import ZERO, AtMost, Near


def _heads(length: int, width: int, heads: int = 1) -> Tensor:
    """Queries, keys or values without numbers."""
    return torch.empty(1, heads, length, width // heads, device="meta")


def _pairs(core: AttentionCore, length: int, width: int, heads: int = 1, mask: Mask | None = None) -> int:
    """Multiplications of scores and mixing."""
    x = _heads(length, width, heads)
    return multiplications(lambda: core.to("meta")(x, x, x, mask or Mask()))["pairs"]


@claim(
    "T5",
    "One more token into masked attention",
    says="""A new token needs its own key, query and value; then the dot products of the new token's key with all other
    tokens' queries; the attention matrix grows to (N + 1) × (N + 1), and outputs are recalculated.""",
    document="000",
    where="problem 12.7",
)
def one_more() -> Evidence:
    """A token into a cache of N, beside all N + 1 from the beginning."""
    width, length = 64, 256
    module = Attention(width, heads=4, core=SoftmaxAttention())
    x, mask = torch.randn(1, length + 1, width), Mask(causal=True)
    before, after = module(x[:, :-1], mask=mask), module(x, mask=mask)
    cache = module.new_cache()
    with torch.no_grad():
        module(x[:, :-1], mask=mask, cache=cache)
        step = multiplications(lambda: module(x[:, -1:], mask=mask, cache=cache))
        again = multiplications(lambda: module(x, mask=mask))
        cache.rewind(length)
        last = module(x[:, -1:], mask=mask, cache=cache)
    q, k = (torch.randn(1, 1, length + 1, width) for _ in range(2))
    weights = SoftmaxAttention().weights(q, k, mask)[0, 0]
    new = length + 1
    return evidence(
        value(
            "weights of the new key for other tokens' queries",
            int((weights[:-1, -1] > 0).sum()),
            document=length,
            right=0,
        ),
        value("weights of the new query for all keys", int((weights[-1] > 0).sum()), right=new),
        value("earlier outputs, before − after", largest(after[:, :-1] - before), right=ZERO),
        value("the new output, by cache − from the beginning", largest(last - after[:, -1:]), right=ZERO),
        value("multiplications with a cache", sum(step.values()), right=4 * width**2 + 2 * new * width),
        value("multiplications from the beginning", sum(again.values()), right=4 * new * width**2 + 2 * new**2 * width),
        says=f"""One new query, key and value, and one new row of N + 1 scores: the new query against all keys. The new
        key against earlier queries is just what the mask forbids, so earlier rows stay as they are, and so do their
        outputs. That is O(D² + ND) instead of O(ND² + N²D); here N = {length}, D = {width}.""",
    )


@claim(
    "T6",
    "Local and global attention cut the cost",
    says="""The computation grows quadratically with the number of patches. Attention to neighbours only, or by way of
    global tokens that see all patches, reduces it.""",
    document="000",
    where="problem 12.8",
    seconds=0.5,
)
def cheaper() -> Evidence:
    """Pairs that have a weight, for images of 16 × 16 and 32 × 32 patches."""
    window, tokens, summaries, width = 3, 4, 8, 16
    kinds = {
        "softmax": AttentionConfig.from_config("softmax"),
        "local": AttentionConfig.from_config({"kind": "local", "window": window}),
        "global": AttentionConfig.from_config({"kind": "global", "tokens": tokens}),
    }
    seen = {name: [_seen(config.core(), side, width) for side in (16, 32)] for name, config in kinds.items()}
    hierarchy: Any = AttentionConfig.from_config({"kind": "hierarchy", "summaries": summaries, "heads": 1}).build(width)
    spent = [_pairs(hierarchy.core, side**2, width) // width for side in (16, 32)]
    seen["hierarchy"] = spent
    sides = [side * (2 * window - 1) - window * (window - 1) for side in (16, 32)]
    growth = {name: pairs[1] / pairs[0] for name, pairs in seen.items()}
    rows = [(name, few, many, growth[name]) for name, (few, many) in seen.items()]
    n = 32**2
    return evidence(
        value("full, pairs for 1,024 patches", seen["softmax"][1], document=n**2),
        value("local, 5 × 5 around each", seen["local"][1], document=sides[1] ** 2),
        value("4 global tokens", seen["global"][1], document=n * (2 * tokens + 1) - tokens * (tokens + 1)),
        value("8 summaries, pairs of all their five products", spent[1], right=5 * summaries * n),
        value("four times the patches: full costs times", growth["softmax"], document=Near(16, share=0.01)),
        value("local", growth["local"], document=AtMost(5)),
        value("global", growth["global"], document=AtMost(5)),
        value("summaries", growth["hierarchy"], document=AtMost(5)),
        says="""N·w pairs with w neighbours, N·g with g global tokens or summaries, instead of N²: with four times the
        patches, four times the pairs instead of sixteen.""",
        brief=3,
        show=[table("Pairs", ("attention", "256 patches", "1,024 patches", "times"), rows)],
    )


def _seen(core: Any, side: int, width: int) -> int:
    """How many pairs have a weight."""
    x = torch.randn(1, 1, side**2, width)
    weights: Tensor = core.weights(x, x, Mask(grid=Grid(side, side)))
    return int((weights > 0).sum())


@claim(
    "T7",
    "DaViT: patches against channels",
    says="""In DaViT on 16 × 16 patches with 512 channels, attention between the patches takes 33,554,432
    multiplications, and between the channels 67,108,864: channels cost about double.""",
    document="000",
    where="problem 12.9",
)
def davit() -> Evidence:
    """Scores of full attention both ways, and of DaViT's own layers."""
    side, width = 16, 512
    tokens = side**2
    full = _pairs(SoftmaxAttention(), tokens, width) // 2  # scores; mixing costs the same again
    channels = _pairs(ChannelAttention(), tokens, width) // 2
    model: Any = DaViTConfig(**preset("davit-base")[1]).skeleton()
    stage = model.stages[2].layers[0]
    x, grid = torch.empty(1, tokens, width, device="meta"), Grid(side, side)
    parts: dict[str, Any] = dict(stage.named_children())
    own = {name: multiplications(functools.partial(part.attend, x, grid))["pairs"] // 2 for name, part in parts.items()}
    window, group = model.config.window, model.config.head_width
    padded = -(-side // window) * window
    return evidence(
        value("between patches", full, document=tokens**2 * width),
        value("between channels", channels, document=width**2 * tokens),
        value(
            "channels over patches in DaViT itself",
            own["channel"] / own["spatial"],
            document=Near(2, share=0.1),
            right=Near(group * tokens * width / (padded**2 * window**2 * width), share=1e-9),
        ),
        value("DaViT's windows, filled up to 21 × 21", own["spatial"], right=padded**2 * window**2 * width),
        value(
            "of these, for patches that are there",
            own["spatial"] * tokens // padded**2,
            right=tokens * window**2 * width,
        ),
        value("DaViT's channel groups", own["channel"], right=width * group * tokens),
        says=f"""The two numbers are right for attention between all patches and between all channels, scores alone.
        DaViT computes neither: its patches look around in windows of {window} × {window}, which takes 6.4 M (11.1 M as
        the border is filled up), and its channels attend in groups of {group}, 4.2 M. So the order turns round:
        channels are the cheaper half.""",
        brief=3,
    )


@claim(
    "T8",
    "Kernel attention is linear in N",
    says="""Replacing exp(k·q) by g(k)·g(q) lets the sum over keys be computed first, which reduces the cost from O(N²D)
    to O(ND).""",
    document="000, 004",
    where="problem 12.10; section 6",
)
def kernel() -> Evidence:
    """Multiplications at twice the length and twice the width; the same result in another order."""
    linear: Any = AttentionConfig.from_config("linear").core()
    cost = {(n, d): _pairs(linear, n, d) for n in (512, 1024) for d in (64, 128)}
    full = _pairs(SoftmaxAttention(), 512, 64)
    features = 256
    random = AttentionConfig.from_config({"kind": "random-features", "features": features}).core_for_keys(64)
    spent = _random_feature_cost(random, 512, 64)
    q, k, v = (torch.randn(1, 1, 40, 8) for _ in range(3))
    apart = largest(linear(q, k, v) - linear.weights(q, k) @ v)
    causal = Mask(causal=True)
    summed = largest(linear(q, k, v, causal) - linear.weights(q, k, causal) @ v)
    rows = [("linear", n, d, c) for (n, d), c in cost.items()] + [("softmax", 512, 64, full)]
    return evidence(
        value(
            "twice the width costs times",
            cost[512, 128] / cost[512, 64],
            document=Near(2, share=0.05),
            right=Near(4, share=0.05),
        ),
        value("twice the length costs times", cost[1024, 64] / cost[512, 64], document=Near(2, share=0.01)),
        value("N = 512, D = 64", cost[512, 64], right=2 * 512 * 64 * 65),
        value("the same with 256 random features", spent, right=4 * 512 * features * 64 + 2 * 512 * features),
        value("sums first − pairs first", apart, document=ZERO),
        value("the same without the future", summed, right=ZERO),
        says="""O(N·M·D) with M features, which is O(ND²) for M = D, as with elu + 1: each key adds a table of M × D
        numbers, and each query reads one. O(ND) forgets that table. It is linear in N, and an exact re-association:
        both orders give the same to rounding.""",
        brief=2,
        show=[table("Multiplications", ("attention", "tokens", "width", "multiplications"), rows)],
    )


def _random_feature_cost(core: AttentionCore, length: int, width: int) -> int:
    """Features of queries and keys, and their products with values."""
    x = torch.randn(1, 1, length, width)
    return sum(multiplications(lambda: core(x, x, x)).values())


@claim(
    "T19",
    "Θ(n_t d² + n_s d² + n_t n_s d)",
    says="""Multi-head attention of n_t queries to n_s keys costs Θ(n_t d² + n_s d² + n_t n_s d). For short sequences
    the projections are the bottleneck, for long ones the scores and the mixing.""",
    document="003, 002",
    where="question 2 (c), (d); slide “Computational complexity”",
    seconds=0.3,
)
def complexity() -> Evidence:
    """Of a module that reads another stream, at several sizes."""
    ratios, rows = [], []
    for asking, answering, width in ((16, 16, 256), (64, 512, 64), (512, 64, 64), (1024, 1024, 32), (1, 4096, 128)):
        spent = _read(asking, answering, width)
        total = asking * width**2 + answering * width**2 + asking * answering * width
        ratios.append(sum(spent.values()) / total)
        rows.append((asking, answering, width, spent["maps"], spent["pairs"], ratios[-1]))
    width = 64
    turn = 0
    low, high = 1, 4096
    while low < high:  # the first length at which pairs cost as much as maps
        turn = (low + high) // 2
        spent = _read(turn, turn, width)
        low, high = (low, turn) if spent["pairs"] >= spent["maps"] else (turn + 1, high)
    return evidence(
        value("multiplications over the formula: most / least of five sizes", max(ratios) / min(ratios), document=1.0),
        value("multiplications over the formula", max(ratios), right=2.0),
        value(f"length at which projections stop being the bottleneck, d = {width}", low, right=2 * width),
        says="""The formula holds on the real module, with the factor 2 everywhere: two maps on each side, scores and
        mixing. In self-attention the projections are the larger part up to n = 2d.""",
        brief=2,
        show=[
            table("Multiplications", ("n_t", "n_s", "d", "projections", "scores and mixing", "over the formula"), rows)
        ],
    )


def _read(asking: int, answering: int, width: int) -> dict[str, int]:
    with torch.device("meta"):
        module = Attention(width, heads=4, core=SoftmaxAttention())
        x, memory = torch.empty(1, asking, width), torch.empty(1, answering, width)
    return multiplications(lambda: module(x, memory))
