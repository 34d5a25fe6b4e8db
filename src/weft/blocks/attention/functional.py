"""`weft.attention`: any kind of attention as a plain function of queries, keys and values."""

from __future__ import annotations

from torch import Tensor

from weft.blocks.attention.base import EVERYTHING, AttentionConfig, Mask
from weft.errors import ShapeError


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Mask = EVERYTHING,
    beta: float | None = None,
    kind: str | AttentionConfig = "softmax",
) -> Tensor:
    """The output of attention for each query.

    query (…, T, K), key (…, S, K), value (…, S, W) → (…, T, W), with up to two leading axes: batch, and
    heads, where keys and values may have fewer heads, a divisor. The key width may differ from the value
    width and T from S. `beta` is the inverse temperature: 0 averages, ∞ takes the best, the default is
    1/√K. Without maps or scale, softmax(X·Xᵀ)·X is `attention(X, X, X, beta=1)`.
    """
    _check(query, key, value, mask)
    lead, self_attention = query.dim(), query is key
    query, key, value = (_with_batch_and_heads(t) for t in (query, key, value))
    if query.shape[1] % key.shape[1]:
        given = f"{query.shape[1]} query heads with {key.shape[1]} key heads"
        raise ShapeError(given, expected="key heads that divide the query heads")
    mask.check(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    if mask.keep is not None:  # values at padding must not reach a product, not even NaN
        padding = ~mask.keep[:, None, :, None]
        key, value = key.masked_fill(padding, 0.0), value.masked_fill(padding, 0.0)
        query = query.masked_fill(padding, 0.0) if self_attention else query
    config = AttentionConfig.from_config(kind).override({} if beta is None else {"beta": beta})
    heads: Tensor = config.core_for_keys(key.shape[3]).eval()(query, key, value, mask)
    return heads if lead == 4 else heads[:, 0] if lead == 3 else heads[0, 0]


def _with_batch_and_heads(t: Tensor) -> Tensor:
    return t if t.dim() == 4 else t[:, None] if t.dim() == 3 else t[None, None]


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> None:
    if not isinstance(mask, Mask):
        raise ShapeError(f"mask is a {type(mask).__name__}", expected="a Mask, such as Mask(allow=…)")
    shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    if not (query.dim() == key.dim() == value.dim() in (2, 3, 4)):
        raise ShapeError(shapes, expected="all (T, K), all (B, T, K) or all (B, H, T, K)")
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(shapes, expected="queries and keys of the same width (their last axis)")
    if key.shape[:-1] != value.shape[:-1]:
        raise ShapeError(shapes, expected="one value for each key")
    if query.dim() > 2 and query.shape[0] != key.shape[0]:
        raise ShapeError(shapes, expected="the same batch (first axis) for queries and keys")
