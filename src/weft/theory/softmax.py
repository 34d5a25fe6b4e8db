"""Claims about softmax: its temperature, its derivatives, and what a changed key does."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import torch
from torch import Tensor

from weft.blocks import HardAttention, SoftmaxAttention, attention, softargmax
from weft.theory.claim import Chart, Evidence, claim, evidence, table, value
from weft.theory.counting import derivatives as derivatives_of
from weft.theory.counting import largest
from weft.theory.prediction import ZERO, AtLeast, AtMost, Near

INPUTS = (-3.0, 1.0, 100.0, 5.0, -1.0)


@claim(
    "T3",
    "25 derivatives of a saturated softmax",
    says="""The derivatives of softmax at (−3, 1, 100, 5, −1) are all very close to zero. Softmax is therefore very
    sensitive: small changes of its input can lead to large changes of its output.""",
    document="000",
    where="problem 12.4",
)
def derivatives() -> Evidence:
    """From the outputs, by autograd, and with sixty digits; and what a step of a tenth does."""
    z = torch.tensor(INPUTS)
    y = softargmax(z)
    rest = [float(sum(y[j] for j in range(5) if j != i)) for i in range(5)]  # 1 − yᵢ, which float64 cannot subtract
    found = [[float(y[i]) * (rest[i] if i == j else -float(y[j])) for j in range(5)] for i in range(5)]
    naive = derivatives_of(softargmax, z)
    steps = [largest(softargmax(z + 0.1 * direction) - y) for direction in (*torch.eye(5), *-torch.eye(5))]
    exact = _largest_derivative()
    rows = [[f"∂y{i + 1}", *(f"{entry:.1e}" for entry in row)] for i, row in enumerate(found)]
    return evidence(
        value(
            "largest of the 25",
            max(abs(d) for row in found for d in row),
            document=AtMost(1e-6),
            right=Near(exact, share=1e-9),
        ),
        value(
            "largest change of the output, an input moved by 0.1",
            max(steps),
            document=AtLeast(1e-3),
            right=AtMost(1e-40),
        ),
        value("∂y3/∂z3 as plain float64 has it", float(naive[2, 2]), right=0.0),
        says="""All 25 are about 0; the largest, ∂y3/∂z3, is 5.6e-42, and plain float64 gives exactly 0 for it, because
        1 − y3 is below its digits. That is the opposite of sensitivity: nothing that is done to the inputs by a little
        changes the output, and so nothing is learned through it.""",
        brief=2,
        show=[table("All 25", ("", *(f"∂z{j + 1}" for j in range(5))), rows)],
    )


def _largest_derivative() -> float:
    """y(1 − y) for the third, with sixty digits."""
    getcontext().prec = 60
    powers = [Decimal(number).exp() for number in INPUTS]
    share = powers[2] / sum(powers)
    return float(share * (1 - share))


@claim(
    "T9",
    "β sharpens or dilutes",
    says="""A smaller β makes smoother weights. To preserve one value, β has to be very cold or very small: then the
    weights are one-hot. To dilute as much as possible, β has to be very big, or hot.""",
    document="001",
    where="1.1 (b) to (d)",
)
def temperature() -> Evidence:
    """One query and twelve keys, at inverse temperatures from 0 to ∞."""
    count, width = 12, 16
    q, k, v = torch.randn(1, width), torch.randn(count, width), torch.randn(count, width)
    best = int((k @ q[0]).argmax())

    def top(beta: float) -> float:
        return float(SoftmaxAttention(beta=beta).weights(q[None, None], k[None, None]).max())

    betas = [10.0**power for power in torch.linspace(-3, 2, 26).tolist()]
    return evidence(
        value("largest weight at β = 0.001", top(0.001), document=Near(1, 0.01), right=Near(1 / count, 0.01)),
        value("largest weight at β = 1000", top(1000.0), document=Near(1 / count, 0.01), right=Near(1, 0.01)),
        value("β = 0: output − mean of the values", largest(attention(q, k, v, beta=0.0) - v.mean(0)), right=ZERO),
        value("β = ∞: output − value of the best key", largest(attention(q, k, v, beta=math.inf) - v[best]), right=0.0),
        says="""β multiplies the scores, so it is an inverse temperature: large is cold and preserves one value, 0 is
        hot and averages. The document says in (b) that a smaller β is smoother, which is right, and in (c) and (d)
        the reverse: it mixes up small and cold.""",
        brief=2,
        show=[
            Chart(
                "The largest of twelve weights", "β", "weight", {"largest weight": [(b, top(b)) for b in betas]}, True
            )
        ],
    )


@claim(
    "T10",
    "A small noise on one key",
    says="""When one key gets a small ε, the output changes linearly: the one entry that belongs to that key gets
    V·softargmax(ε·q) added, and the entries of all other keys stay as they are.""",
    document="001",
    where="1.1 (e)",
)
def noise() -> Evidence:
    """The first order of the change, what is left of it, and whose weights change."""
    queries, keys, width = 5, 7, 8
    q, k, v = torch.randn(queries, width), torch.randn(keys, width), torch.randn(keys, width)
    direction, beta = torch.randn(width), 1 / math.sqrt(width)
    core, h = SoftmaxAttention(), attention(q, k, v)
    a = core.weights(q[None, None], k[None, None])[0, 0]

    def changed(size: float) -> Tensor:
        return torch.cat([k[:1] + size * direction, k[1:]])

    def left(size: float) -> float:
        first = beta * a[:, :1] * (v[0] - h) * (q @ (size * direction))[:, None]
        return largest(attention(q, changed(size), v) - h - first)

    after = core.weights(q[None, None], changed(0.01)[None, None])[0, 0]
    split = softargmax(beta * q @ k.T) + softargmax(torch.eye(keys)[0] * (beta * q @ (0.01 * direction))[:, None])
    sizes = [0.1 / 2**n for n in range(10)]
    points = [(size, left(size)) for size in sizes]
    moved = int((attention(q, changed(0.01), v) - h).abs().amax(-1).gt(1e-9).sum())
    return evidence(
        value(
            "weights of other keys that change",
            int((after - a)[:, 1:].abs().gt(1e-9).sum()),
            document=0,
            right=queries * (keys - 1),
        ),
        value(
            "sum of a query's weights, if softargmax could be split",
            float(after.sum(-1).mean()),
            document=float(split.sum(-1).mean()),
            right=1.0,
        ),
        value("queries whose output changes", moved, right=queries),
        value(
            "remainder after the first order: halving ε divides it by",
            left(1e-3) / left(5e-4),
            right=Near(4, share=0.02),
        ),
        says="""To first order Δh = β·aᵢ·(vᵢ − h)·(ε·q) for every query, and the remainder falls as ε². All weights of a
        query change, because they have to sum to 1: what the changed key gains, the others lose. softargmax of a sum
        is not the sum of two softargmaxes; weights would then sum to 2.""",
        show=[Chart("What the first order leaves", "ε", "largest error", {"remainder": points}, True, True)],
    )


@claim(
    "T11",
    "One key is stretched",
    says="When one key is made longer, αk, the output changes with α, through the weight of that key.",
    document="001",
    where="1.1 (f)",
)
def stretched() -> Evidence:
    """Its weight for queries on its side and on the other."""
    width, keys = 8, 6
    k = torch.randn(keys, width)
    q = torch.stack([k[0] + 0.3 * torch.randn(width), -k[0] + 0.3 * torch.randn(width)])
    assert float(q[0] @ k[0]) > 0 > float(q[1] @ k[0])

    def weights(alpha: float) -> list[float]:
        longer = torch.cat([alpha * k[:1], k[1:]])
        return SoftmaxAttention().weights(q[None, None], longer[None, None])[0, 0, :, 0].tolist()

    alphas = [2.0 ** (n / 2) for n in range(15)]
    values = torch.randn(keys, width)
    apart = largest(attention(q[:1], torch.cat([1000 * k[:1], k[1:]]), values) - values[0])
    same, away = weights(1000.0)
    lines = {name: [(a, weights(a)[n]) for a in alphas] for n, name in enumerate(("k·q > 0", "k·q < 0"))}
    return evidence(
        value("weight at α = 1000 where k·q > 0", same, document=Near(1, 1e-9)),
        value("weight at α = 1000 where k·q < 0", away, document=Near(0, 1e-9)),
        value("α = 1000, k·q > 0: output − the key's value", apart, document=ZERO),
        says="""As α grows, the key's weight goes to 1 for every query with k·q > 0, which then receives its value
        alone, and to 0 for every query with k·q < 0. The document writes the formula down and stops before this.""",
        brief=2,
        show=[Chart("The weight of the stretched key", "α", "weight", lines, True)],
    )


WIDTHS = (4, 16, 64, 256, 1024)


@claim(
    "T16",
    "The variance of q·k",
    says="""If the elements of q and k are independent with mean 0 and variance 1, var(qᵀk) is the width D_k; divided by
    √D_k, the scores have variance 1.""",
    document="002, 003",
    where="slide “Scaled self-attention”; question 1 (a)",
    seconds=0.5,
)
def variance() -> Evidence:
    """Of the scores that the core itself computes, over widths 4 to 1024."""
    count = 1000
    found = []
    for width in WIDTHS:
        q, k = torch.randn(1, 1, count, width), torch.randn(1, 1, count, width)
        plain, scaled = (_scores(q, k, beta).var().item() for beta in (1.0, None))
        found.append((width, plain, plain / width, scaled))
    worst = max(abs(ratio - 1) for _, _, ratio, _ in found)
    return evidence(
        value("var(q·k) at width 64", found[2][1], document=Near(64, share=0.1)),
        value("the same of scaled scores", found[2][3], document=Near(1, share=0.1)),
        value("var(q·k) / width, furthest from 1 of all widths", worst, document=Near(0, 0.1)),
        value("scaled, furthest from 1", max(abs(s - 1) for *_, s in found), document=Near(0, 0.1)),
        says="Measured over widths from 4 to 1024: the variance is the width, and 1 after scaling.",
        brief=2,
        show=[
            table("Normal queries and keys", ("width", "var(q·k)", "over the width", "scaled"), found),
            Chart(
                "Variance of the scores",
                "width",
                "variance",
                {"q·k": [(w, p) for w, p, *_ in found], "scaled": [(w, s) for w, *_, s in found]},
                True,
                True,
            ),
        ],
    )


def _scores(query: Tensor, key: Tensor, beta: float | None) -> Tensor:
    """What the softmax is taken of, read back from the weights: log a less its mean over the row."""
    logs = SoftmaxAttention(beta=beta).weights(query, key).clamp(min=1e-300).log()
    expected = logs - logs.mean(-1, keepdim=True)
    return expected * math.sqrt(key.shape[2] / (key.shape[2] - 1))


@claim(
    "T17",
    "Unscaled softmax loses its gradient",
    says="""If the largest weight is above 1 − ε and all others are below ε, ‖∂a/∂s‖²_F ≤ n²ε². Without scaling, ε can
    be made as small as one likes by a large enough width, so the gradient vanishes.""",
    document="003",
    where="question 1 (a)",
    seconds=0.5,
)
def saturation() -> Evidence:
    """The Jacobian of the package's softargmax on scores of random queries and keys, with and without scaling."""
    count, trials = 16, 400
    found, worst = [], 0.0
    for width in WIDTHS:
        q, k = torch.randn(trials, 1, width), torch.randn(trials, count, width)
        scores = (q @ k.mT)[:, 0]
        norms = {}
        for name, s in (("plain", scores), ("scaled", scores / math.sqrt(width))):
            a = softargmax(s)
            jacobian = torch.func.vmap(torch.func.jacrev(softargmax))(s)
            norms[name] = jacobian.square().sum((1, 2)).sqrt()
            others = a.scatter(1, a.argmax(1, keepdim=True), 0.0)
            epsilon = torch.maximum(others.sum(1), others.amax(1))  # the least that the weights allow
            worst = max(worst, float((norms[name].square() / (count * epsilon).square()).max()))
        found.append((width, *(float(f(norms[n])) for n in ("plain", "scaled") for f in (torch.median, torch.mean))))
    first, last = found[0], found[-1]
    wide = {w: row for w, *row in found}
    lines = {
        name: [(row[0], row[n]) for row in found] for n, name in ((1, "median"), (2, "mean"), (3, "scaled, median"))
    }
    return evidence(
        value("largest ‖∂a/∂s‖² / n²ε²", worst, document=AtMost(1)),
        value("unscaled: median norm at width 1024 over that at 4", last[1] / first[1], document=AtMost(0.01)),
        value(
            "unscaled: mean norm at width 64 over that at 1024", wide[64][1] / wide[1024][1], right=Near(4, share=0.4)
        ),
        value("scaled: median norm at width 1024 over that at 4", last[3] / first[3], document=AtLeast(0.5)),
        says="""The bound holds. Without scaling the median norm collapses with the width; the mean falls only as
        1/√width, because now and then two keys are nearly equal and their gradient is not small. Scaled, neither
        changes with the width.""",
        brief=2,
        show=[
            table("‖∂a/∂s‖, 16 keys", ("width", "unscaled, median", "mean", "scaled, median", "mean"), found),
            Chart("The norm of softmax's derivative", "width", "norm", lines, True, True),
        ],
    )


@claim(
    "T34",
    "Attention is a soft hash table",
    says="""Attention approximates a hash table: for a query, the output is approximately the value of the nearest key,
    measured by inner product.""",
    document="004",
    where="section 1.2",
)
def hash_table() -> Evidence:
    """The error over β, beside the margin between the best key and the next."""
    keys, width = 12, 16
    k = torch.nn.functional.normalize(torch.randn(keys, width), dim=-1)
    q, v = torch.randn(40, width), torch.randn(keys, width)
    ranked = (q @ k.T).sort(-1, descending=True)
    margin = ranked.values[:, 0] - ranked.values[:, 1]
    chosen = HardAttention(learning="argmax")(q[None, None], k[None, None], v[None, None])[0, 0]
    nearest = torch.cdist(q, k).argmin(-1)
    one = int(margin.argmax())  # a query whose answer is clear

    def error(beta: float) -> float:
        return float((attention(q[one : one + 1], k, v, beta=beta) - chosen[one]).norm())

    low, high = 10 / float(margin[one]), 20 / float(margin[one])
    slope = (math.log(error(high)) - math.log(error(low))) / (high - low)
    betas = [n * low / 5 for n in range(11)]
    lines = {
        "error": [(b, error(b)) for b in betas],
        "exp(−β·margin)": [(b, error(betas[-1]) * math.exp(float(margin[one]) * (betas[-1] - b))) for b in betas],
    }
    return evidence(
        value("error at β = 20/margin", error(high), document=Near(0, 1e-6)),
        value("slope of log(error) over β, in margins", slope / float(margin[one]), right=Near(-1, share=0.05)),
        value(
            "of 40 queries, so many take the nearest key's value",
            int((chosen == v[nearest]).all(-1).sum()),
            document=40,
        ),
        says="""With β growing, the output approaches the value of the key with the largest inner product, which is the
        nearest one where all keys are equally long; the error falls as exp(−β·margin), the margin being the lead of the
        best score over the next.""",
        brief=2,
        show=[Chart("How far from the best key's value", "β", "error", lines, False, True)],
    )
