"""Recurrent layers: torch's kernels say what the plain equations say, and padding and pieces change nothing."""

import pytest
import torch
from torch import nn

from weft.blocks import Cache
from weft.blocks.recurrent import CELLS, KERNELS, BothWays, RecurrentLayer, StateCache, real_first, turned
from weft.errors import ShapeError, UnsupportedError

KINDS = list(KERNELS)


def layer(kind, inputs=5, width=4, home=RecurrentLayer):
    torch.manual_seed(0)
    made = home(kind, inputs, width).double()
    for p in made.parameters():
        nn.init.normal_(p, std=0.5)  # also the biases, of which torch has two
    return made


def rows(count=3, length=7, inputs=5):
    return torch.randn(count, length, inputs, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", KINDS)
def test_the_readable_cell_is_the_kernel(kind):
    kernel = layer(kind).kernel
    cell = CELLS[kind].of(kernel)
    wanted = torch.randn(3, 7, 4, dtype=torch.float64)
    found = []
    for run in (kernel, cell):
        x = rows().requires_grad_()
        kernel.zero_grad()
        out, state = run(x)
        last = [part.squeeze(0) for part in (state if isinstance(state, tuple) else (state,))]
        ((out * wanted).sum() + sum(part.square().sum() for part in last)).backward()
        gradients = [p.grad.clone() for p in (kernel.weight_ih_l0, kernel.weight_hh_l0, kernel.bias_ih_l0)]
        found.append([out, *last, x.grad, *gradients, kernel.bias_hh_l0.grad.clone()])
    assert len(found[0]) == len(found[1]) == (8 if kind == "lstm" else 7)
    for theirs, ours in zip(*found, strict=True):
        assert (theirs - ours).abs().max() <= 1e-12
    assert all(part.abs().max() > 1e-3 for part in found[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_cell_goes_on_from_a_state(kind):
    cell = CELLS[kind].of(layer(kind).kernel)
    x = rows()
    whole, end = cell(x)
    first, state = cell(x[:, :3])
    second, state = cell(x[:, 3:], state)
    assert torch.equal(torch.cat([first, second], 1), whole)
    assert all(torch.equal(a, b) for a, b in zip(state, end, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_in_pieces_it_is_the_same(kind, size):
    one, x = layer(kind), rows()
    cache = StateCache()
    pieces = torch.cat([one(piece, cache=cache) for piece in x.split(size, 1)], 1)
    assert (pieces - one(x)).abs().max() < 1e-12
    assert cache.start == 7 and isinstance(cache, Cache)
    assert (one(x[:, :size]) - one(x[:, -size:])).abs().max() > 1e-3 or size == 7  # a negative control


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_different_lengths_leave_their_own_states(kind):
    one, x = layer(kind), rows(4)
    lengths = torch.tensor([7, 2, 0, 5])
    cache = StateCache()
    one(x[:, :2], cache=cache)
    before = [part.clone() for part in cache.state]
    out = one(x, lengths=lengths, cache=cache)
    assert cache.start.flatten().tolist() == [9, 4, 2, 7]
    for row, length in enumerate(lengths.tolist()):
        alone = StateCache()
        one(x[row : row + 1, :2], cache=alone)
        if length:
            expected = one(x[row : row + 1, :length], cache=alone)
            assert (out[row, :length] - expected[0]).abs().max() < 1e-12
        for part, expected, old in zip(cache.state, alone.state, before, strict=True):
            assert (part[row] - expected[0]).abs().max() < 1e-12
            assert torch.equal(part[row], old[row]) == (length == 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("home", [RecurrentLayer, BothWays])
def test_padding_changes_nothing(kind, home):
    one, x = layer(kind, home=home), rows(3)
    lengths = torch.tensor([7, 3, 1])
    out = one(x, lengths=lengths)
    spoiled = x.clone()
    spoiled[1, 3:], spoiled[2, 1:] = 1e6, -1e6
    again = one(spoiled, lengths=lengths)
    for row, length in enumerate(lengths.tolist()):
        assert torch.equal(out[row, :length], again[row, :length])
        alone = one(x[row : row + 1, :length])
        assert (out[row, :length] - alone[0]).abs().max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_that_reads_both_ways_has_two_halves(kind):
    both, x = layer(kind, home=BothWays), rows()
    out = both(x)
    assert torch.equal(out[..., :2], both.forwards(x))
    assert (out[..., 2:] - both.backwards(x.flip(1)).flip(1)).abs().max() < 1e-12
    with pytest.raises(UnsupportedError, match="both ways"):
        both(x, cache=StateCache())
    with pytest.raises(ShapeError, match="even"):
        BothWays(kind, 4, 3)


def test_rows_are_turned_within_their_lengths():
    x = torch.arange(8.0).reshape(2, 4, 1)
    assert turned(x, torch.tensor([4, 2]))[..., 0].tolist() == [[3, 2, 1, 0], [5, 4, 6, 7]]
    assert torch.equal(turned(x, None), x.flip(1))


def test_real_tokens_come_first():
    keep = torch.tensor([[False, True, False, True], [True, False, False, False]])
    order, lengths = real_first(keep)
    assert order.tolist() == [[1, 3, 0, 2], [0, 1, 2, 3]] and lengths.tolist() == [2, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_no_token_sees_a_later_one(kind):
    one, x = layer(kind), rows().requires_grad_()
    one(x)[:, 3].sum().backward()
    assert x.grad[:, 4:].abs().max() == 0 and x.grad[:, :4].abs().amax((0, 2)).min() > 0


def test_an_lstm_begins_by_keeping_what_it_has():
    gates = RecurrentLayer("lstm", 8, 8).kernel.bias_ih_l0.detach().chunk(4)
    assert [gate.mean().item() for gate in gates] == [0, 1, 0, 0]
    matrix = RecurrentLayer("gru", 8, 8).kernel.weight_hh_l0.detach()[8:16]
    assert (matrix @ matrix.T - torch.eye(8)).abs().max() < 1e-5


def test_a_state_is_forgotten_as_a_whole_or_not_at_all():
    one, x, cache = layer("lstm"), rows(), StateCache()
    one(x, cache=cache)
    cache.rewind(7)
    assert cache.start == 7
    with pytest.raises(UnsupportedError, match="rewinding a recurrent state"):
        cache.rewind(3)
    with pytest.raises(ShapeError):
        cache.rewind(-1)
    cache.select(torch.tensor([2, 0, 0]))
    assert torch.equal(cache.state[1][1], cache.state[1][2]) and len(cache.state[0]) == 3
    with pytest.raises(ShapeError, match="2 rows for a cache of 3"):
        one(x[:2], cache=cache)
    cache.rewind(0)
    assert cache.state is None and cache.start == 0
    with pytest.raises(UnsupportedError):
        cache.positions(torch.device("cpu"))
    assert repr(cache) == "StateCache(0 tokens)"
