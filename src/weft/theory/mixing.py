"""Claims about what attention does with its inputs: it permutes, mixes, copies and convolves."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.blocks import (
    Attention,
    FeedForward,
    LayerNorm,
    Mask,
    PreNorm,
    Sinusoidal,
    SoftmaxAttention,
    TransformerLayer,
    attention,
)
from weft.blocks.attention import AttentionConfig
from weft.theory.claim import Chart, Evidence, claim, evidence, value
from weft.theory.counting import derivatives, largest
from weft.theory.prediction import ZERO, AtLeast, Near


def _layer(width: int, heads: int) -> TransformerLayer:
    return TransformerLayer(
        attention=AttentionConfig.from_config({"kind": "softmax", "heads": heads}).build(width),
        attention_residual=PreNorm(LayerNorm(width)),
        feed_forward=FeedForward(width, 4 * width),
        feed_forward_residual=PreNorm(LayerNorm(width)),
    )


@claim(
    "T2",
    "Permuted inputs, permuted outputs",
    says="""Self-attention is equivariant to permutations, Sa[XP] = Sa[X]P, because PᵀP = I turns
    softmax[PᵀKᵀQP] into softmax[KᵀQ]. A whole Transformer is, too.""",
    document="000, 002",
    where="problem 12.3, equations 11 and 12; slide “Positional encoding”",
)
def permuted() -> Evidence:
    """One layer, its weights, and the same with positions."""
    width, length = 32, 12
    layer, order = _layer(width, 4), torch.randperm(length)
    x = torch.randn(1, length, width)
    apart = largest(layer(x[:, order]) - layer(x)[:, order])
    q, k = torch.randn(1, 1, length, width), torch.randn(1, 1, length, width)
    plain, moved = (SoftmaxAttention().weights(q[:, :, o], k[:, :, o])[0, 0] for o in (torch.arange(length), order))
    position, places = Sinusoidal(width), torch.arange(length)
    placed, shuffled = (layer(position.at_input(t, places)) for t in (x, x[:, order]))
    return evidence(
        value("softmax[PᵀKᵀQP] − softmax[KᵀQ]", largest(moved - plain), document=ZERO, right=AtLeast(0.01)),
        value("a layer: f(XP) − f(X)P", apart, document=ZERO),
        value("softmax[PᵀKᵀQP] − Pᵀ softmax[KᵀQ] P", largest(moved - plain[order][:, order]), right=ZERO),
        value("a layer with positions: f(XP) − f(X)P", largest(shuffled - placed[:, order]), right=AtLeast(0.01)),
        says="""The result is true to rounding, and false as soon as positions are added. The proof drops a step:
        softmax[PᵀKᵀQP] is Pᵀ softmax[KᵀQ] P, rows and columns in the new order. VP · Pᵀ softmax[KᵀQ] P is then
        Sa[X]P; with the document's equation 12 it would be VP softmax[KᵀQ], which is something else.""",
        brief=2,
    )


@claim(
    "T12",
    "Multi-head attention as a grouped convolution",
    says="""Multi-head attention resembles a convolution whose groups are as many as its input channels: each input is
    convolved with filters of its own.""",
    document="001",
    where="1.2 (b)",
)
def grouped() -> Evidence:
    """Which channels a head's maps read, and which channels its mixing keeps apart."""
    width, heads, length = 24, 4, 6
    module = Attention(width, heads=heads, core=SoftmaxAttention())
    x = torch.randn(1, length, width, requires_grad=True)
    first_head = module.query(x)[..., : width // heads]
    (gradient,) = torch.autograd.grad(first_head.square().sum(), x)
    read = int((gradient.abs().amax((0, 1)) > 0).sum())
    q, k, v = (torch.randn(1, heads, length, width // heads) for _ in range(3))
    core = SoftmaxAttention()
    a = core.weights(q, k)[0]
    convolved = F.conv1d(v.flatten(1, 2), a.flatten(0, 1)[..., None], groups=heads)
    apart = largest(convolved.view_as(v) - core(q, k, v))
    return evidence(
        value("channels that one head's query map reads", read, document=1, right=width),
        value(
            "different filters that A·V applies to the channels", _filters(core, q, k, v), document=width, right=heads
        ),
        value("A·V − conv1d(groups = heads)", apart, right=ZERO),
        says=f"""Two parts behave differently. The query, key and value maps are not grouped at all: each head reads
        all {width} channels. The mixing A·V is: it is a convolution with one group for each head, in which the tokens
        are the channels and A holds the weights. So there are {heads} filters, one for each head and shared by its
        channels, and not one for each of the {width} channels.""",
        brief=2,
    )


def _filters(core: SoftmaxAttention, q: Tensor, k: Tensor, v: Tensor) -> int:
    """How many different filters over the tokens the channels of all heads have."""

    def mixed(values: Tensor) -> Tensor:
        return core(q, k, values)[0].transpose(0, 1).flatten(1)

    slopes = derivatives(mixed, v)[:, :, 0]  # T, channel; head, S, channel of the head
    own = slopes.transpose(3, 4).flatten(2, 3).diagonal(dim1=1, dim2=2)  # T, S, channel
    return len({tuple(own[..., c].flatten().round(decimals=9).tolist()) for c in range(own.shape[-1])})


@claim(
    "T13",
    "Attention as identity and permutation",
    says="""With X = Q = K = V and orthogonal X, softargmax(KᵀQ) is the identity matrix, so attention returns its input.
    When all scores are zero, the output is a permutation of the input.""",
    document="001",
    where="1.3 (c)",
)
def copies() -> Evidence:
    """Orthonormal inputs at several temperatures; scores of zero."""
    count = 8
    x = torch.linalg.qr(torch.randn(count, count)).Q
    core = SoftmaxAttention(beta=1.0)
    diagonal = core.weights(x[None, None], x[None, None])[0, 0].diagonal()
    predicted = torch.e / (torch.e + count - 1)
    order, values = torch.randperm(count), torch.randn(count, count)
    same = attention(torch.zeros(count, count), x, values, beta=1.0)
    copied = int((torch.cdist(same, values) < 1e-6).any(1).sum())
    betas = [2.0**power for power in range(-2, 7)]
    points = [(b, float(SoftmaxAttention(beta=b).weights(x[None, None], x[None, None])[0, 0, 0, 0])) for b in betas]
    return evidence(
        value("diagonal of A, orthonormal X, β = 1", float(diagonal.mean()), document=1, right=Near(predicted, 1e-9)),
        value("outputs at scores of 0 that are an input", copied, document=count, right=0),
        value("those outputs − the mean of the inputs", largest(same - values.mean(0)), right=ZERO),
        value("β = 40: output − input", largest(attention(x, x, values, beta=40.0) - values), right=ZERO),
        value(
            "β = 40, queries in another order: output − permuted input",
            largest(attention(x[order], x, values, beta=40.0) - values[order]),
            right=ZERO,
        ),
        says=f"""Orthonormal inputs give scores of 1 and 0, and softargmax makes e/(e + n − 1) = {predicted:.2f} of them
        for n = {count}, not 1: it takes a large β to make that the identity. Queries in another order then make a
        permutation. Scores that are all zero give every output the mean of the values.""",
        brief=2,
        show=[Chart("A token's weight for itself", "β", "weight", {"orthonormal, n = 8": points}, log_across=True)],
    )


@claim(
    "T14",
    "Attention as a 1×1 convolution",
    says="""Self-attention is a running linear layer, a convolution of kernel size 1, when the biases of the attention
    are all set to 1.""",
    document="001",
    where="1.3 (d)",
)
def pointwise() -> Evidence:
    """A bias of one on every score, and a mask that leaves each position itself."""
    width, heads, length = 16, 2, 9
    module = Attention(width, heads=heads, core=SoftmaxAttention())
    x = torch.randn(1, length, width)
    convolution = nn.Conv1d(width, width, kernel_size=1)
    with torch.no_grad():
        convolution.weight.copy_((module.output.weight @ module.value.weight)[..., None])
        convolution.bias.copy_(module.output(module.value.bias))  # type: ignore[union-attr]
    local = convolution(x.mT).mT
    ones = module(x, mask=Mask(bias=torch.ones(length, length)))
    alone = module(x, mask=Mask(allow=torch.eye(length, dtype=torch.bool)))
    return evidence(
        value("biases of 1: attention − 1×1 convolution", largest(ones - local), document=ZERO, right=AtLeast(0.01)),
        value("biases of 1: attention − attention without them", largest(ones - module(x)), right=ZERO),
        value("each attends to itself alone: attention − 1×1 convolution", largest(alone - local), right=ZERO),
        says="""It is a convolution of kernel size 1 when each position attends to itself alone: then it is the output
        map after the value map, at every place. A bias that is 1 for all scores changes nothing, because softmax does
        not notice what is added to all.""",
    )


@claim(
    "T15",
    "Attention as a k×k convolution",
    says="""With positional encoding, self-attention can behave like a convolution with a kernel larger than 1 when the
    input has patterns that repeat, such as phrases.""",
    document="001",
    where="1.3 (e)",
    seconds=0.3,
)
def convolution() -> Evidence:
    """Nine heads, each of which looks at one neighbour, beside Conv2d; and what repeats in ordinary attention."""
    side, channels, kernel = 6, 4, 3
    conv = nn.Conv2d(channels, channels, kernel, padding=1, bias=False)
    image = torch.randn(1, channels, side, side)  # nothing repeats in it
    wanted = conv(image)
    plain, ringed = _by_heads(conv, image), _by_heads(conv, F.pad(image, (1, 1, 1, 1)))[..., 1:-1, 1:-1]
    inside = (..., slice(1, -1), slice(1, -1))
    ordinary, length, period = Attention(16, heads=2, core=SoftmaxAttention()), 24, 6
    repeated = torch.randn(1, period, 16).repeat(1, length // period, 1)
    out = ordinary(Sinusoidal(16).at_input(repeated, torch.arange(length)))
    return evidence(
        value(
            "what repeats, with ordinary attention and positions: output − output one period later",
            largest(out[:, period:] - out[:, :-period]),
            document=ZERO,
            right=AtLeast(1e-3),
        ),
        value("nine heads − Conv2d, inside, nothing repeats", largest(plain[inside] - wanted[inside]), right=ZERO),
        value("the same at the border", largest(plain - wanted), right=AtLeast(0.01)),
        value("the same at the border, zero tokens around", largest(ringed - wanted), right=ZERO),
        says="""It takes relative positions and k² heads: each head looks at one neighbour, and its value and output map
        are that neighbour's piece of the kernel (Cordonnier, Loukas and Jaggi 2020). Then attention equals Conv2d to
        rounding inside an image in which nothing repeats, and at the border too when zero tokens stand around it.
        What repeats does not make a convolution: of an input that repeats, a convolution gives an output that
        repeats, and ordinary attention with positions does not.""",
    )


def _by_heads(conv: nn.Conv2d, image: Tensor) -> Tensor:
    """The convolution as attention: a head for each place of the kernel, which its relative bias makes it look at."""
    _, channels, rows, columns = image.shape
    kernel = conv.kernel_size[0]
    module = Attention(
        channels, heads=kernel**2, head_width=1, value_width=channels, bias=False, core=SoftmaxAttention()
    )
    with torch.no_grad():
        module.query.weight.zero_()  # content has no say in where a head looks
        module.value.weight.copy_(torch.eye(channels).repeat(kernel**2, 1))
        module.output.weight.copy_(conv.weight.permute(0, 2, 3, 1).flatten(1))
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    ahead = places[None] - places[:, None]  # how far each place lies from each
    wanted = torch.cartesian_prod(torch.arange(kernel), torch.arange(kernel)) - kernel // 2
    distance = (ahead[None] - wanted[:, None, None]).square().sum(-1)
    out = module(image.flatten(2).mT, mask=Mask(bias=-50.0 * distance[None].to(image.dtype)))
    return out.mT.view(1, channels, rows, columns)


@claim(
    "T35",
    "Without a feed-forward part, attention only mixes",
    says="""Until a nonlinear network follows, the output of attention is a linear transformation of its input X, which
    limits what the layer can express (002); the nonlinearity of attention is too weak (004).""",
    document="002, 004",
    where="slide “Transformer layers”; section 3, step 8",
)
def mixes() -> Evidence:
    """Weights, values and what becomes of twice the input."""
    width, heads, length = 16, 2, 8
    module = Attention(width, heads=heads, core=SoftmaxAttention(), bias=False)
    q, k, v = (torch.randn(1, heads, length, width // heads) for _ in range(3))
    core = module.core
    weights = SoftmaxAttention().weights(q, k)
    outside = torch.relu(core(q, k, v) - v.amax(2, keepdim=True)) + torch.relu(v.amin(2, keepdim=True) - core(q, k, v))
    other = torch.randn_like(v)
    in_values = core(q, k, 2 * v - 3 * other) - 2 * core(q, k, v) + 3 * core(q, k, other)
    x, y = torch.randn(1, length, width), torch.randn(1, length, width)
    in_x = largest(module(x + y) - module(x) - module(y)) / largest(module(x + y))
    hull = largest(weights.sum(-1) - 1) + float(torch.relu(-weights).max())
    return evidence(
        value("f(X + Y) − f(X) − f(Y), relative", in_x, document=ZERO, right=AtLeast(0.01)),
        value("weights: how far from at least 0 with the sum 1", hull, right=ZERO),
        value("A·V − what a head gives", largest(weights @ v - core(q, k, v)), right=ZERO),
        value("how far a head's output lies outside of the range of its values", largest(outside), right=ZERO),
        value("fixed weights: f(2V − 3W) − 2f(V) + 3f(W)", largest(in_values), right=ZERO),
        says="""In each head, before the output map and the residual, every output lies in the convex hull of the
        mapped values: it can mix, and make nothing that lies outside. This is linear in the values as long as the
        weights stay; but the weights depend on X, so attention is not linear in X.""",
    )


@claim(
    "T36",
    "Heads differ only by their start",
    says="""Across different heads, the only thing that distinguishes them is the random initialization of their key,
    query and value maps.""",
    document="004",
    where="section 2.2",
    seconds=0.5,
)
def heads_differ() -> Evidence:
    """Two heads that begin alike, and two that do not, learn the same task."""
    equal, before_equal = _trained_heads(alike=True)
    drawn, before = _trained_heads(alike=False)
    return evidence(
        value("equal heads, difference after 60 steps", equal, document=ZERO),
        value("how far these heads moved from their start", before_equal, right=AtLeast(0.05)),
        value("random heads, difference after 60 steps", drawn, document=AtLeast(0.05)),
        value("how far those moved", before, right=AtLeast(0.05)),
        says="""Heads with equal maps receive equal gradients, so they stay equal however long they learn; heads that
        are drawn differ, and go on differing.""",
        brief=1,
    )


def _trained_heads(*, alike: bool) -> tuple[float, float]:
    """The difference of two heads after they learned, and how far they moved."""
    width, wide = 12, 6
    torch.manual_seed(1)
    module = Attention(width, heads=2, core=SoftmaxAttention())
    if alike:
        with torch.no_grad():
            for map_ in (module.query, module.key, module.value):
                map_.weight[wide:] = map_.weight[:wide]
                map_.bias[wide:] = map_.bias[:wide]
            module.output.weight[:, wide:] = module.output.weight[:, :wide]
    start = module.query.weight.detach().clone()
    x, wanted = torch.randn(8, 10, width), torch.randn(8, 10, width)
    steps = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.9)
    for _ in range(60):
        loss = (module(x) - wanted).square().mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
    maps = [m.weight for m in (module.query, module.key, module.value)]
    apart = max(largest(weight[wide:] - weight[:wide]) for weight in maps)
    return apart, largest(module.query.weight - start)
