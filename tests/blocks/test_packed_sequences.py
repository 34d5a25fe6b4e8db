"""Texts in one row without padding: the same numbers and gradients as each alone, for every attention kind."""

import pytest
import torch

from weft.blocks import (
    AttentionConfig,
    FeedForward,
    LayerNorm,
    Layers,
    Mask,
    PackedSequences,
    PositionConfig,
    PostNorm,
    PreNorm,
    TransformerLayer,
    length_buckets,
)
from weft.errors import ShapeError, UnsupportedError

LENGTHS = (3, 3, 1, 7, 7, 7, 2)
WHOLE = {"hierarchy", "channel"}  # kinds in which every token has seen every other


def stack(kind="softmax", residual=PreNorm, position="none"):
    torch.manual_seed(1)
    where = PositionConfig.from_config(position).build(width=16, heads=2, head_width=8, max_length=20).double()
    layers = Layers(
        TransformerLayer(
            attention=AttentionConfig.from_config({"kind": kind, "heads": 2}).build(16, qk=where.qk),
            attention_residual=residual(LayerNorm(16)),
            feed_forward=FeedForward(16, 32),
            feed_forward_residual=residual(LayerNorm(16)),
        )
        for _ in range(2)
    ).double()
    return layers.eval(), where


def alone(layers, where, texts, causal=False):
    """Each text in a row of its own."""
    found = []
    for text in texts:
        at = torch.arange(text.shape[0])
        x = where.at_input(text[None], at)
        found.append(layers(x, mask=Mask(causal=causal, bias=where.at_scores(at, at)))[0])
    return found


def together(layers, where, texts, causal=False):
    row = PackedSequences.of(texts)
    at, places = row.positions(torch.device("cpu")), torch.arange(row.longest)
    x = where.at_input(torch.cat(texts)[None], at)
    mask = Mask(causal=causal, bias=where.at_scores(places, places), packed=row)
    return row.split(layers(x, mask=mask))


def texts_of(lengths=LENGTHS):
    torch.manual_seed(2)
    return [torch.randn(n, 16, dtype=torch.float64, requires_grad=True) for n in lengths]


KINDS = [kind for kind in AttentionConfig.registry if kind != AttentionConfig.several]  # which has no module of its own
CASES = [
    *(("softmax", PostNorm, position, causal) for position in PositionConfig.registry for causal in (False, True)),
    *((kind, PreNorm, "none", causal) for kind in KINDS for causal in (False, True)),
]


@pytest.mark.parametrize(("kind", "residual", "position", "causal"), CASES)
def test_a_row_of_texts_is_each_text_alone(kind, residual, position, causal):
    layers, where = stack(kind, residual, position)
    texts = texts_of()
    if causal and kind in WHOLE:
        with pytest.raises(UnsupportedError, match="Mask causal"):
            together(layers, where, texts, causal)
        return
    ways = []
    for way in (alone, together):
        states = way(layers, where, texts, causal)
        loss = sum((state**3).sum() * (i + 1) for i, state in enumerate(states))
        learned = [p for p in (*layers.parameters(), *where.parameters()) if p.requires_grad]
        inputs = [*texts, *learned]
        ways.append((states, torch.autograd.grad(loss, inputs, allow_unused=True)))
    (one, one_gradients), (other, other_gradients) = ways
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(one, other, strict=True))
    for a, b in zip(one_gradients, other_gradients, strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, atol=1e-9, rtol=1e-9)


def test_texts_do_not_see_each_other():
    layers, where = stack()
    texts = texts_of()
    states = together(layers, where, texts)
    changed = [t if i != 3 else t + 1 for i, t in enumerate(texts)]
    after = together(layers, where, changed)
    assert [torch.equal(a, b) for a, b in zip(states, after, strict=True)] == [i != 3 for i in range(7)]
    gradients = torch.autograd.grad(states[3].sum(), texts)
    assert [bool(s.any()) for s in gradients] == [i == 3 for i in range(7)]


def test_without_cuts_it_would_be_another_computation():
    """A negative control: the same row as one long text."""
    layers, where = stack()
    texts = texts_of()
    states = torch.cat(together(layers, where, texts))
    assert (layers(torch.cat(texts)[None])[0] - states).abs().max() > 1e-2


def test_patterns_and_biases_speak_of_positions_in_a_text():
    layers, _ = stack()
    texts = texts_of()
    allow, bias = torch.rand(7, 7) < 0.6, torch.randn(1, 2, 7, 7, dtype=torch.float64)
    row = PackedSequences.of(texts)
    states = row.split(layers(torch.cat(texts)[None], mask=Mask(allow=allow, bias=bias, packed=row)))
    for text, state in zip(texts, states, strict=True):
        n = len(text)
        mask = Mask(allow=allow[:n, :n], bias=bias[..., :n, :n])
        assert torch.allclose(layers(text[None], mask=mask)[0], state, atol=1e-12)


def test_what_cannot_be_is_refused():
    layers, _ = stack()
    row, x = PackedSequences((3, 2)), torch.randn(1, 5, 16, dtype=torch.float64)
    with pytest.raises(ShapeError, match="none empty"):
        PackedSequences((3, 0))
    with pytest.raises(ShapeError, match="at least one text"):
        PackedSequences(())
    with pytest.raises(ShapeError, match="keep and packed"):
        Mask(keep=torch.ones(1, 5, dtype=torch.bool), packed=row)
    with pytest.raises(ShapeError, match="1 rows of 4 tokens"):
        layers(x[:, :4], mask=Mask(packed=row))
    with pytest.raises(ShapeError, match="2 rows of 5 tokens"):
        layers(x.expand(2, -1, -1), mask=Mask(packed=row))
    with pytest.raises(ShapeError, match=r"bias has shape \(5, 5\)"):
        layers(x, mask=Mask(bias=torch.zeros(5, 5, dtype=torch.float64), packed=row))
    with pytest.raises(UnsupportedError, match="with a cache"):
        layers(x, mask=Mask(packed=row), caches=layers.new_caches())
    with pytest.raises(UnsupportedError, match="with a memory"):
        layers[0].attention(x, x, mask=Mask(packed=row))
    heads = torch.randn(1, 2, 5, 8)
    with pytest.raises(UnsupportedError, match="a kind that cannot cut them"):
        layers[0].attention.core(heads, heads, heads, Mask(packed=row))


def test_runs_are_neighbours_of_equal_length():
    row = PackedSequences(LENGTHS)
    assert list(row.runs()) == [(0, 2, 3), (6, 1, 1), (7, 3, 7), (28, 1, 2)]
    assert (row.total, row.longest) == (30, 7)
    assert row.starts(torch.device("cpu")).tolist() == [0, 3, 6, 7, 14, 21, 28]
    assert row.positions(torch.device("cpu"))[:8].tolist() == [0, 1, 2, 0, 1, 2, 0, 0]


def test_bunches_hold_every_text_once_by_length():
    lengths = [5, 1, 9, 2, 2, 30, 5, 4]
    found = length_buckets(lengths, 10)
    assert sorted(n for bucket in found for n in bucket) == list(range(8))
    assert [[lengths[n] for n in bucket] for bucket in found] == [[1, 2, 2, 4], [5, 5], [9], [30]]
    assert length_buckets([], 10) == []
