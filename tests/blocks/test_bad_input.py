"""What a user meets who passes something wrong: a WeftError with what was given and what was expected."""

import pytest
import torch

import weft
from weft.blocks import (
    Attention,
    AttentionConfig,
    FeedForward,
    LayerNorm,
    Learned,
    Mask,
    PreNorm,
    QKNorm,
    Rotary,
    SoftmaxAttention,
    TransformerLayer,
    softargmax,
)
from weft.errors import ConfigError, ShapeError

pytestmark = pytest.mark.usefixtures("as_a_user")

X = torch.randn(2, 5, 8)
Q4 = torch.randn(2, 4, 5, 8)


def module(**parts):
    return Attention(8, heads=2, core=SoftmaxAttention(), **parts)


def layer():
    return TransformerLayer(
        attention=module(),
        attention_residual=PreNorm(LayerNorm(8)),
        feed_forward=FeedForward(8, 8),
        feed_forward_residual=PreNorm(LayerNorm(8)),
    )


def boolean(*shape):
    return torch.ones(*shape, dtype=torch.bool)


CASES = {
    "wrong width": (lambda: module()(torch.randn(2, 5, 9)), ["x has shape (2, 5, 9)", "(B, T, 8)"]),
    "no batch axis": (lambda: module()(torch.randn(5, 8)), ["x has shape (5, 8)", "(B, T, 8)"]),
    "wrong memory width": (lambda: module()(X, torch.randn(2, 5, 9)), ["memory has shape (2, 5, 9)"]),
    "another batch": (lambda: module()(X, torch.randn(3, 5, 8)), ["memory has 3 rows", "2"]),
    "keep of the wrong length": (lambda: module()(X, mask=Mask(keep=boolean(2, 4))), ["(2, 4)", "(2, 5)"]),
    "keep of the wrong rank": (lambda: Mask(keep=boolean(2, 5, 5)), ["Mask keep", "(2, 5, 5)", "(B, S)"]),
    "keep as numbers": (lambda: Mask(keep=torch.ones(2, 5)), ["Mask keep", "float32", "bool"]),
    "allow of the wrong shape": (lambda: module()(X, mask=Mask(allow=boolean(5, 4))), ["(5, 4)", "(5, 5)"]),
    "allow of the wrong rank": (lambda: Mask(allow=boolean(2, 5, 5)), ["(2, 5, 5)", "(T, S) or (B, H, T, S)"]),
    "allow for other heads": (lambda: module()(X, mask=Mask(allow=boolean(2, 3, 5, 5))), ["(2, 3, 5, 5)"]),
    "bias of the wrong shape": (lambda: module()(X, mask=Mask(bias=torch.ones(4, 5))), ["(4, 5)", "(5, 5)"]),
    "bias as bool": (lambda: Mask(bias=boolean(5, 5)), ["Mask bias", "bool", "floating point"]),
    "a tensor as mask": (lambda: module()(X, mask=boolean(5, 5)), ["mask is a Tensor", "Mask(allow=…)"]),
    "a tensor as mask of the function": (lambda: weft.attention(X, X, X, mask=boolean(5, 5)), ["Mask(allow=…)"]),
    "wrong width into a layer": (lambda: layer()(torch.randn(2, 5, 9)), ["x has shape (2, 5, 9)", "(B, T, 8)"]),
    "rotary of another head width": (lambda: module(qk=Rotary(2))(X), ["queries of width 4", "head width 2"]),
    "q/k norm of another head width": (lambda: module(qk=QKNorm(1))(X), ["queries of width 4", "head width 1"]),
    "learned positions of another width": (
        lambda: Learned(9, 4).at_input(X, torch.arange(5)),
        ["x has width 8", "4"],
    ),
    "zero heads": (lambda: Attention(8, heads=0, core=SoftmaxAttention()), ["0 heads", "at least one"]),
    "negative infinite beta": (lambda: softargmax(X, -float("inf")), ["beta = -inf"]),
    "heads that do not divide": (
        lambda: Attention(10, heads=4, core=SoftmaxAttention()),
        ["width 10 with 4 heads", "divide", "head_width"],
    ),
    "key heads that do not divide": (
        lambda: Attention(8, heads=4, kv_heads=3, core=SoftmaxAttention()),
        ["4 heads with 3 kv_heads", "divide"],
    ),
    "config heads that do not divide": (
        lambda: AttentionConfig.registry["softmax"](heads=3).build(8),
        ["width 8 with 3 heads"],
    ),
    "no heads": (lambda: AttentionConfig.registry["softmax"](heads=0), ["heads = 0", "from 1"]),
    "unknown kind": (lambda: weft.attention(X, X, X, kind="sofmax"), ["'sofmax'", "did you mean 'softmax'?"]),
    "unknown field": (lambda: AttentionConfig.registry["hard"](lerning="argmax"), ["did you mean 'learning'?"]),
    "unknown activation": (lambda: FeedForward(8, 8, activation="rleu"), ["did you mean 'relu'?"]),
    "query and key width": (lambda: weft.attention(X, X[..., :4], X), ["same width", "(2, 5, 4)"]),
    "values for other keys": (lambda: weft.attention(X, X, X[:, :3]), ["one value for each key"]),
    "other batches": (lambda: weft.attention(X, X[:1], X[:1]), ["same batch"]),
    "ranks mixed": (lambda: weft.attention(X, X[0], X[0]), ["all (T, K)"]),
    "ranks too high": (lambda: weft.attention(*[X[None, None]] * 3), ["all (T, K)"]),
    "query heads": (lambda: weft.attention(Q4, Q4[:, :3], Q4[:, :3]), ["4 query heads with 3 key heads"]),
    "negative beta": (lambda: weft.attention(X, X, X, beta=-1.0), ["beta = -1.0", "at least 0"]),
    "mask for other lengths": (
        lambda: weft.attention(X, X, X, mask=Mask(keep=boolean(2, 9))),
        ["(2, 9)", "(2, 5)"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_answered(case):
    make, words = CASES[case]
    with pytest.raises(weft.WeftError) as error:
        make()
    assert isinstance(error.value, (ShapeError, ConfigError))
    assert all(word in str(error.value) for word in words), str(error.value)
    assert len(str(error.value).splitlines()) <= 3
