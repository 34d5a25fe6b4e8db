"""The key/value table: grows rarely, forgets exactly, knows which tokens are real."""

import pytest
import torch

from weft.blocks import (
    CAUSAL,
    Attention,
    DecoderCache,
    KeyValueCache,
    Mask,
    QKNorm,
    Rotary,
    SoftmaxAttention,
    all_positions,
    positions,
)
from weft.errors import ShapeError, UnsupportedError

CPU = torch.device("cpu")


def kv(length, rows=1):
    return torch.randn(rows, 2, length, 4), torch.randn(rows, 2, length, 3)


def test_a_step_writes_in_place_and_growth_is_rare():
    cache, moves, place = KeyValueCache(), 0, None
    with torch.no_grad():
        for _ in range(1000):
            cache.extend(*kv(1))
            moves += place != cache.key.data_ptr()
            place = cache.key.data_ptr()
    assert moves <= 6  # 64, 128, … 1024, and the first


def test_a_given_capacity_is_reserved_at_once():
    cache = KeyValueCache(500)
    with torch.no_grad():
        cache.extend(*kv(1))
        place = cache.key.data_ptr()
        for _ in range(499):
            cache.extend(*kv(1))
    assert cache.key.data_ptr() == place
    assert repr(cache) == "KeyValueCache(500 of 500 slots)"


def test_what_went_in_comes_out():
    cache, pieces = KeyValueCache(), [kv(n) for n in (1, 70, 3, 200)]
    for key, value in pieces:
        all_keys, all_values, keep = cache.extend(key, value)
    assert torch.equal(all_keys, torch.cat([p[0] for p in pieces], 2))
    assert torch.equal(all_values, torch.cat([p[1] for p in pieces], 2))
    assert keep is None


def test_gradients_flow_through_a_cache():
    module = Attention(8, heads=2, core=SoftmaxAttention(), qk=Rotary(4)).double()
    x = torch.randn(2, 9, 8, dtype=torch.float64, requires_grad=True)
    (full,) = torch.autograd.grad(module(x, mask=CAUSAL).square().sum(), x)
    cache = module.new_cache()
    parts = [module(piece, mask=CAUSAL, cache=cache) for piece in x.split(4, 1)]
    (cached,) = torch.autograd.grad(torch.cat(parts, 1).square().sum(), x)
    assert torch.allclose(cached, full, atol=1e-12)


def test_a_table_that_autograd_holds_is_not_written_into():
    module = Attention(8, heads=2, core=SoftmaxAttention())
    x, cache = torch.randn(1, 6, 8), module.new_cache()
    loss = module(x, mask=CAUSAL, cache=cache).square().sum()
    cache.rewind(2)
    with torch.no_grad():
        module(x[:, :2], mask=CAUSAL, cache=cache)
    loss.backward()  # would fail: modified by an in-place operation


def test_rewinding_counts_real_tokens_in_each_row():
    cache = KeyValueCache()
    keep = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]], dtype=torch.bool)
    cache.extend(*kv(4, rows=2), keep)
    cache.extend(*kv(2, rows=2))
    assert cache.start.tolist() == [[4], [6]]
    cache.rewind(torch.tensor([3, 2]))
    assert cache.start.tolist() == [[3], [2]]
    assert cache.keep.tolist() == [[False, False, True, True, True], [True, True, False, False, False]]
    cache.rewind(0)
    assert cache.length == 0


def test_rows_rewound_to_different_places_continue_as_alone():
    module = Attention(8, heads=2, core=SoftmaxAttention(), qk=Rotary(4)).double()
    x, more = torch.randn(2, 7, 8, dtype=torch.float64), torch.randn(2, 3, 8, dtype=torch.float64)
    with torch.no_grad():
        cache = module.new_cache()
        module(x, mask=CAUSAL, cache=cache)
        cache.rewind(torch.tensor([2, 5]))
        y = module(more, mask=CAUSAL, cache=cache)
        for row, kept in enumerate((2, 5)):
            alone = module(torch.cat([x[row, :kept], more[row]])[None], mask=CAUSAL)
            assert torch.allclose(y[row], alone[0, kept:], atol=1e-12)


def test_positions_count_real_tokens():
    keep = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]], dtype=torch.bool)
    assert positions(3, CPU).tolist() == [0, 1, 2]
    assert positions(4, CPU, keep=keep).tolist() == [[0, 0, 0, 1], [0, 1, 2, 2]]
    cache = KeyValueCache()
    cache.extend(*kv(4, rows=2), keep)
    asking, answering = all_positions(2, CPU, cache=cache)
    assert asking.tolist() == [[2, 3], [3, 4]]
    assert answering.tolist() == [[0, 0, 0, 1, 2, 3], [0, 1, 2, 2, 3, 4]]


def test_padding_that_comes_later_makes_a_plain_cache_ragged():
    cache = KeyValueCache()
    cache.extend(*kv(2, rows=2))
    _, _, keep = cache.extend(*kv(2, rows=2), torch.tensor([[True, False], [True, True]]))
    assert keep.tolist() == [[True, True, True, False], [True] * 4]


@pytest.mark.parametrize("learning", [["query"], ["value"], ["query", "output"], ["key"]])
def test_gradients_flow_through_a_cache_when_only_some_maps_learn(learning):
    module = Attention(8, heads=2, core=SoftmaxAttention()).double()
    for name, p in module.named_parameters():
        p.requires_grad_(name.split(".")[0] in learning)
    x, gradients = torch.randn(1, 6, 8, dtype=torch.float64), []
    for pieces in ([x], x.split(2, 1)):
        cache = module.new_cache()
        module.zero_grad()
        torch.cat([module(piece, mask=CAUSAL, cache=cache) for piece in pieces], 1).square().sum().backward()
        gradients.append([p.grad for p in module.parameters() if p.requires_grad])
    assert all(torch.allclose(a, b, atol=1e-10) for a, b in zip(*gradients, strict=True))


def test_a_cache_filled_in_inference_mode_can_be_used_outside():
    module, x = Attention(8, heads=2, core=SoftmaxAttention()), torch.randn(1, 6, 8)
    cache = module.new_cache()
    with torch.inference_mode():
        module(x[:, :4], mask=CAUSAL, cache=cache)
    with torch.no_grad():
        last = module(x[:, 4:], mask=CAUSAL, cache=cache)
    assert torch.allclose(last, module(x, mask=CAUSAL)[:, 4:], atol=1e-6)


def test_a_cache_refuses_what_does_not_belong_to_it():
    cache = KeyValueCache()
    cache.extend(*kv(2, rows=2))
    with pytest.raises(ShapeError, match="3 rows"):
        cache.extend(*kv(1, rows=3))
    with pytest.raises(ShapeError, match="another shape"):
        cache.extend(torch.randn(2, 3, 1, 4), torch.randn(2, 3, 1, 3))
    with pytest.raises(ShapeError, match="rewind to -1"):
        cache.rewind(-1)
    KeyValueCache().rewind(torch.tensor([1]))  # nothing to forget
    module, x = Attention(8, heads=2, core=SoftmaxAttention()), torch.randn(1, 3, 8)
    with pytest.raises(UnsupportedError, match="own new_cache"):
        module(x, cache=DecoderCache(cache, cache))


def test_a_mask_that_does_not_fit_leaves_the_cache_as_it_was():
    module, x = Attention(8, heads=2, core=SoftmaxAttention()), torch.randn(1, 4, 8)
    cache = module.new_cache()
    with torch.no_grad():
        module(x[:, :3], mask=CAUSAL, cache=cache)
        with pytest.raises(ShapeError, match=r"\(1, 1\)"):
            module(x[:, 3:], mask=Mask(causal=True, bias=torch.zeros(1, 1)), cache=cache)
    assert cache.length == 3


def test_a_memory_is_read_once():
    module = Attention(8, heads=2, core=SoftmaxAttention(), qk=QKNorm(4)).double()
    x, memory = torch.randn(2, 5, 8, dtype=torch.float64), torch.randn(2, 7, 8, dtype=torch.float64)
    keep = torch.ones(2, 7, dtype=torch.bool)
    keep[1, 4:] = False
    full, cache, calls = module(x, memory, mask=Mask(keep=keep)), module.new_cache(), []
    module.key.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        parts = [module(piece, memory, mask=Mask(keep=keep), cache=cache) for piece in x.split(2, 1)]
    assert torch.allclose(torch.cat(parts, 1), full, atol=1e-12)
    assert len(calls) == 1


def test_a_bias_over_cached_keys_has_their_length():
    module, x = Attention(8, heads=2, core=SoftmaxAttention()), torch.randn(1, 5, 8)
    bias = torch.randn(5, 5)
    full = module(x, mask=Mask(causal=True, bias=bias))
    cache = module.new_cache()
    with torch.no_grad():
        module(x[:, :3], mask=Mask(causal=True, bias=bias[:3, :3]), cache=cache)
        last = module(x[:, 3:], mask=Mask(causal=True, bias=bias[3:]), cache=cache)
    assert torch.allclose(last, full[:, 3:], atol=1e-6)


# -- choosing rows -----------------------------------------------------------------------------


def filled(slots, capacity=64, rows=3, keep=None):
    cache = KeyValueCache(capacity)
    with torch.no_grad():
        cache.extend(*kv(slots, rows=rows), keep)
    return cache


@pytest.mark.parametrize("slots", [0, 1, 20, 32, 33, 64])
@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 1, 0, 2], [0, 1], [2], []], ids=str)
def test_chosen_rows_are_those_of_the_table(slots, rows):
    keep = torch.rand(3, slots) < 0.7
    cache = filled(slots, keep=keep)
    key, value = cache.key.clone(), cache.value.clone()
    with torch.no_grad():
        cache.select(torch.tensor(rows, dtype=torch.long))
        assert torch.equal(cache.key, key[rows]) and torch.equal(cache.value, value[rows])
        assert torch.equal(cache.keep, keep[rows])
        new = kv(1, rows=len(rows))
        all_keys, all_values, kept = cache.extend(*new)
    assert torch.equal(all_keys, torch.cat([key[rows], new[0]], 2))
    assert torch.equal(all_values, torch.cat([value[rows], new[1]], 2))
    assert torch.equal(kept[:, :-1], keep[rows]) and kept[:, -1].all()


def test_chosen_rows_keep_their_room_to_grow():
    cache = filled(20)
    with torch.no_grad():
        cache.select(torch.tensor([1, 0, 0, 2]))
        place = cache.key.data_ptr()
        for _ in range(44):
            cache.extend(*kv(1, rows=4))
    assert cache.key.data_ptr() == place
    assert repr(cache) == "KeyValueCache(64 of 64 slots)"


def test_the_same_rows_cost_nothing_and_others_do():
    cache = filled(20, keep=torch.ones(3, 20, dtype=torch.bool))
    places = [table.data_ptr() for table in (*cache.tables, cache.keep)]
    for rows in (torch.arange(3), torch.arange(3, dtype=torch.int32)):
        cache.select(rows)
        assert [table.data_ptr() for table in (*cache.tables, cache.keep)] == places
    cache.select(torch.arange(2))  # a beginning is not the same
    assert cache.key.shape[0] == 2 and cache.key.data_ptr() != places[0]
    KeyValueCache().select(torch.tensor([0, 0]))  # nothing to choose from


def test_only_slots_in_use_are_moved(monkeypatch):
    moved, plain = [], torch.index_select
    monkeypatch.setattr(torch, "index_select", lambda t, *a, **k: (moved.append(tuple(t.shape)), plain(t, *a, **k))[1])
    monkeypatch.setattr(torch.Tensor, "index_select", lambda t, *a: (moved.append(tuple(t.shape)), plain(t, *a))[1])
    for slots, most in ((20, 20), (40, 64)):  # where most are in use, whole rows are faster
        cache = filled(slots)
        moved.clear()
        with torch.no_grad():
            cache.select(torch.tensor([2, 1, 0]))
        assert moved == [(3, 2, most, 4), (3, 2, most, 3)]


def test_who_holds_the_old_table_is_not_disturbed():
    cache = filled(20)
    held, before = cache.key, cache.key.clone()
    with torch.no_grad():
        for _ in range(3):
            cache.select(torch.tensor([2, 0, 1]))
            cache.extend(*kv(1, rows=3))
    assert torch.equal(held, before)


def test_gradients_flow_through_chosen_rows():
    module = Attention(8, heads=2, core=SoftmaxAttention()).double()
    x = torch.randn(3, 6, 8, dtype=torch.float64, requires_grad=True)
    rows = torch.tensor([2, 2, 0])
    (full,) = torch.autograd.grad(module(x[rows], mask=CAUSAL)[:, 4:].square().sum(), x)
    cache = module.new_cache()
    module(x[:, :4], mask=CAUSAL, cache=cache)
    cache.select(rows)
    (cached,) = torch.autograd.grad(module(x[rows, 4:], mask=CAUSAL, cache=cache).square().sum(), x)
    assert torch.allclose(cached, full, atol=1e-12)


@pytest.mark.parametrize("choosing", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_choosing_does_not_free_a_table_that_autograd_holds(choosing):
    module = Attention(8, heads=2, core=SoftmaxAttention())
    x, cache = torch.randn(2, 6, 8), module.new_cache(40)
    loss = module(x, mask=CAUSAL, cache=cache).square().sum()
    with choosing():
        cache.select(torch.tensor([1, 0]))
    after = module(x[[1, 0]], mask=CAUSAL, cache=cache).square().sum() if choosing is torch.enable_grad else loss
    cache.rewind(2)
    with torch.no_grad():
        y = module(x[[1, 0], 2:], mask=CAUSAL, cache=cache)
    assert torch.allclose(y, module(x, mask=CAUSAL)[[1, 0], 2:], atol=1e-6)
    (loss + after).backward()  # would fail: modified by an in-place operation


def test_chosen_rows_that_autograd_holds_are_not_written_into():
    cache, weight = KeyValueCache(), torch.ones(4, requires_grad=True)
    cache.extend(*kv(6, rows=2))
    cache.select(torch.tensor([1, 0]))
    loss = (cache.key * weight).sum()  # a memory is read without being extended
    cache.rewind(2)
    with torch.no_grad():
        cache.extend(*kv(1, rows=2))
    loss.backward()  # would fail: modified by an in-place operation


def test_chosen_rows_are_a_table_of_their_own():
    cache = KeyValueCache()
    cache.extend(*kv(6, rows=2))  # autograd may hold this one
    cache.rewind(2)
    with torch.no_grad():
        cache.select(torch.tensor([1, 0]))
        place = cache.key.data_ptr()
        cache.extend(*kv(1, rows=2))
    assert cache.key.data_ptr() == place


@pytest.mark.parametrize("outside", [torch.enable_grad, torch.no_grad])
def test_rows_of_a_cache_filled_in_inference_mode_can_be_chosen_outside(outside):
    module, x = Attention(8, heads=2, core=SoftmaxAttention()), torch.randn(2, 6, 8)
    cache, rows = module.new_cache(), torch.tensor([1, 1, 0])
    with torch.inference_mode():
        module(x[:, :4], mask=CAUSAL, cache=cache)
    with outside():
        cache.select(rows)
        last = module(x[rows, 4:], mask=CAUSAL, cache=cache)
    assert torch.allclose(last, module(x, mask=CAUSAL)[rows, 4:], atol=1e-6)
