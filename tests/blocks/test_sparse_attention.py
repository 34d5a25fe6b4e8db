"""Patterns of places: what they let be seen, that tiles compute just that, and that caches forget what they may."""

import itertools

import pytest
import torch

import weft
from weft.blocks import CAUSAL, AttentionConfig, Mask, PackedSequences
from weft.blocks.attention import Grid, SoftmaxAttention, pattern, tiles
from weft.blocks.attention.tiles import Tiling, attend
from weft.blocks.cache import RollingCache
from weft.errors import ConfigError, UnsupportedError

PATTERNS = {
    "local": ({"window": 5}, lambda t, s: abs(t - s) < 5),
    "local-wide": ({"kind": "local", "window": 150}, lambda t, s: abs(t - s) < 150),
    "dilated": ({"window": 3, "dilation": 4}, lambda t, s: (t - s) % 4 == 0 and abs(t - s) < 12),
    "strided": ({"stride": 9}, lambda t, s: abs(t - s) < 9 or (t - s) % 9 == 0),
    "global": ({"tokens": 2}, lambda t, s: t < 2 or s < 2 or t == s),
    "global-places": ({"kind": "global", "places": [140, 3]}, lambda t, s: t in (3, 140) or s in (3, 140) or t == s),
    "union": (
        {"of": [{"kind": "local", "window": 4}, {"kind": "global", "places": [7]}, {"kind": "dilated", "window": 2}]},
        lambda t, s: abs(t - s) < 4 or 7 in (t, s) or abs(t - s) in (0, 4),
    ),
}


def config_of(name):
    fields, _ = PATTERNS[name]
    return AttentionConfig.from_config({"kind": name, **fields})


def random(*shape, seed=1, grad=False):
    made = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return made.requires_grad_(grad)


def spelled_out(name, asking, answering):
    """The pattern by its plain definition, pair by pair."""
    _, rule = PATTERNS[name]
    pairs = [[rule(t, s) for s in range(answering)] for t in range(answering - asking, answering)]
    return torch.tensor(pairs)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_sees_what_its_definition_says(name):
    places = torch.arange(160)
    seen = config_of(name).pattern().sees(places[:, None], places[None, :])
    assert torch.equal(seen, spelled_out(name, 160, 160))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
def test_tiles_hold_each_pair_once(name, causal):
    for first, length in ((0, 1), (0, 7), (0, 160), (0, 301), (33, 160), (159, 160)):
        cut, area = pattern.tiles_of(config_of(name).pattern(), first, length, causal, torch.device("cpu"))
        count = torch.zeros(length - first, length, dtype=torch.long)
        for tile in cut:
            inside = torch.ones(1, dtype=torch.long) if tile.forbidden is None else (~tile.forbidden.pairs).long()
            rows = torch.arange(length - first)[tile.query]
            columns = torch.arange(length)[tile.key]
            assert tile.last == columns.max()
            count[rows[:, None], columns[None, :]] += inside
        wanted = spelled_out(name, length - first, length)
        wanted = wanted & torch.ones_like(wanted).tril(first) if causal else wanted
        assert torch.equal(count, wanted.long()), (first, length)
        assert area >= wanted.sum()


@pytest.mark.parametrize("way", ["fused", "plain"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
def test_tiles_equal_the_masked_table_and_its_gradients(name, causal, way, monkeypatch):
    assert tiles.FUSED is not None  # this version of torch has it
    if way == "plain":
        monkeypatch.setattr(tiles, "FUSED", None)
    monkeypatch.setattr(pattern, "MAX_TILED_SHARE", float("inf"))  # never the table itself
    core = config_of(name).core()
    for asking, answering in ((300, 300), (40, 300), (1, 1), (3, 130)):
        width = 8 if way == "fused" else 6
        q, k, v = (random(2, n, length, w, seed=w, grad=True) for n, length, w in
                   ((4, asking, 8), (2, answering, 8), (2, answering, width)))  # fmt: skip
        gradient = random(2, 4, asking, width, seed=5)
        ours = core(q, k, v, Mask(causal=causal))
        theirs = SoftmaxAttention()(q, k, v, Mask(causal=causal, allow=spelled_out(name, asking, answering)))
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)
        for mine, peer in zip(*(torch.autograd.grad(y, (q, k, v), gradient) for y in (ours, theirs)), strict=True):
            torch.testing.assert_close(mine, peer, atol=1e-11, rtol=0)


@pytest.mark.parametrize("name", PATTERNS)
def test_long_rows_with_padding_equal_rows_without(name, monkeypatch):
    monkeypatch.setattr(pattern, "MAX_TILED_SHARE", float("inf"))
    module = AttentionConfig.from_config({**config_of(name).to_dict(), "heads": 2}).build(8).double()
    texts = [random(n, 8, seed=n) for n in (290, 131, 5)]
    keep = torch.zeros(3, 300, dtype=torch.bool)
    padded = torch.full((3, 300, 8), torch.nan, dtype=torch.float64)
    for row, (text, start) in enumerate(zip(texts, (10, 0, 150), strict=True)):
        keep[row, start : start + len(text)] = True
        padded[row, start : start + len(text)] = text
    for causal in (False, True):
        together = module(padded, mask=Mask(causal=causal, keep=keep))
        for row, text in enumerate(texts):
            alone = module(text[None], mask=Mask(causal=causal))
            torch.testing.assert_close(together[row, keep[row]], alone[0], atol=1e-12, rtol=0)


def test_no_table_of_all_pairs_is_ever_made(monkeypatch):
    """The scores of all tiles together are few, and none of them is large."""
    core = AttentionConfig.from_config({"kind": "local", "window": 2}).core()
    shapes = []
    scores = Tiling.scores
    monkeypatch.setattr(tiles, "FUSED", None)
    monkeypatch.setattr(Tiling, "scores", lambda *args: shapes.append(found := scores(*args)) or found)
    q = torch.randn(1, 1, 20_000, 2, requires_grad=True)
    core(q, q, q, CAUSAL).sum().backward()
    assert max(s.numel() for s in shapes) < 50_000 and sum(s.numel() for s in shapes) < 2 * 20_000 * 300


def test_dropout_is_the_same_backward_as_forward():
    cut, _ = pattern.tiles_of(config_of("strided").pattern(), 0, 12, True, torch.device("cpu"))
    tiling = Tiling(cut, 0.7, dropout=0.4, seed=3)
    q, k, v = (random(1, 2, 12, 3, seed=n, grad=True) for n in range(3))
    assert torch.autograd.gradcheck(lambda *qkv: attend(*qkv, tiling), (q, k, v))
    plain = attend(q, k, v, Tiling(cut, 0.7))
    many = attend(*(t.expand(5000, -1, -1, -1) for t in (q, k, v)), tiling)
    mean = many.mean(0, keepdim=True)
    assert not torch.equal(many[:1], plain)
    torch.testing.assert_close(mean, plain, atol=0.15, rtol=0)


def test_dropout_is_drawn_anew_in_training_and_off_in_use(monkeypatch):
    monkeypatch.setattr(pattern, "MAX_TILED_SHARE", float("inf"))
    core = AttentionConfig.from_config({"kind": "local", "window": 4, "dropout": 0.5}).core()
    q = random(1, 1, 200, 4)
    assert not torch.equal(core(q, q, q), core(q, q, q))
    core.eval()
    assert torch.equal(core(q, q, q), core(q, q, q))


# -- images ---------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 3])
def test_local_in_a_image_looks_around_in_two_directions(window, monkeypatch):
    monkeypatch.setattr(pattern, "MAX_TILED_SHARE", float("inf"))
    grid = Grid(13, 17)
    at = list(itertools.product(range(13), range(17)))
    allow = torch.tensor([[abs(a - c) < window and abs(b - d) < window for c, d in at] for a, b in at])
    q, k, v = (random(2, 1, 221, 4, seed=n) for n in range(3))
    ours = AttentionConfig.from_config({"kind": "local", "window": window}).core()(q, k, v, Mask(grid=grid))
    torch.testing.assert_close(ours, SoftmaxAttention()(q, k, v, Mask(allow=allow)), atol=1e-12, rtol=0)


# -- caches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PATTERNS)
def test_a_long_text_read_through_a_cache_equals_the_whole(name):
    module = AttentionConfig.from_config({**config_of(name).to_dict(), "heads": 2}).build(8).double().eval()
    x = random(2, 330, 8)
    whole = module(x, mask=CAUSAL)
    for chunk in (1, 7, 100):
        cache = module.new_cache()
        with torch.no_grad():
            parts = [module(x[:, i : i + chunk], mask=CAUSAL, cache=cache) for i in range(0, 330, chunk)]
        torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-12, rtol=0)
        assert cache.start == 330
        reach = module.core.pattern.reach()
        assert reach is None or cache.length < 2 * (reach + RollingCache.SPARE) + chunk


def test_a_cache_forgets_in_ragged_rows_too_and_its_rows_can_be_picked():
    module = AttentionConfig.from_config({"kind": "local", "window": 6, "heads": 2}).build(8).double().eval()
    texts = [random(1, n, 8, seed=n) for n in (9, 4)]
    later = random(2, 200, 8, seed=3)
    keep = torch.tensor([[True] * 9, [True] * 4 + [False] * 5])
    prompt = torch.cat([torch.nn.functional.pad(text, (0, 0, 0, 9 - text.shape[1])) for text in texts])
    cache = module.new_cache()
    with torch.no_grad():
        module(prompt, mask=Mask(causal=True, keep=keep), cache=cache)
        parts = [module(later[:, i : i + 1], mask=CAUSAL, cache=cache) for i in range(150)]
        assert cache.length < 80 and cache.start.tolist() == [[159], [154]]
        cache.select(torch.tensor([1, 1, 0]))
        assert cache.start.tolist() == [[154], [154], [159]]
        parts = torch.cat(parts, 1)
        rest = module(later[[1, 1, 0], 150:], mask=CAUSAL, cache=cache)
    for row, text in enumerate(texts):
        alone = module(torch.cat([text[0], later[row]])[None], mask=CAUSAL)[0, text.shape[1] :]
        torch.testing.assert_close(parts[row], alone[:150], atol=1e-12, rtol=0)
        torch.testing.assert_close(rest[2 - row], alone[150:], atol=1e-12, rtol=0)


def test_what_is_forgotten_cannot_be_asked_for_again():
    module = AttentionConfig.from_config({"kind": "local", "window": 3}).build(8).eval()
    cache, x = module.new_cache(), torch.randn(1, 200, 8)
    with torch.no_grad():
        whole = module(x, mask=CAUSAL)
        for i in range(200):
            module(x[:, i : i + 1], mask=CAUSAL, cache=cache)
        assert cache.length < 100
        with pytest.raises(UnsupportedError, match="forgotten"):
            cache.rewind(10)
        with pytest.raises(UnsupportedError, match="forgotten"):
            cache.rewind(cache.forgotten + 1)
        cache.rewind(180)
        torch.testing.assert_close(module(x[:, 180:], mask=CAUSAL, cache=cache), whole[:, 180:])


def test_gradients_flow_through_a_cache_that_forgets():
    module = AttentionConfig.from_config({"kind": "local", "window": 3}).build(8).double()
    x = random(1, 150, 8, grad=True)
    gradient = random(1, 150, 8, seed=9)
    cache = module.new_cache()
    parts = [module(x[:, i : i + 5], mask=CAUSAL, cache=cache) for i in range(0, 150, 5)]
    assert cache.length < 100
    (ours,) = torch.autograd.grad(torch.cat(parts, 1), x, gradient)
    (theirs,) = torch.autograd.grad(module(x, mask=CAUSAL), x, gradient)
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


@pytest.mark.parametrize("lengths", [(200, 100), (200, 20), (20, 200, 3)])
def test_very_unequal_texts_can_be_side_by_side_in_a_cache(lengths):
    module = AttentionConfig.from_config({"kind": "local", "window": 4, "heads": 2}).build(8).double().eval()
    texts = [random(n, 8, seed=n) for n in lengths]
    later = random(len(texts), 120, 8, seed=1)
    keep = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    prompt = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
    cache = module.new_cache()
    with torch.no_grad():
        module(prompt, mask=Mask(causal=True, keep=keep), cache=cache)
        parts = torch.cat([module(later[:, i : i + 1], mask=CAUSAL, cache=cache) for i in range(120)], 1)
    for row, text in enumerate(texts):
        alone = module(torch.cat([text, later[row]])[None], mask=CAUSAL)[0, len(text) :]
        torch.testing.assert_close(parts[row], alone, atol=1e-12, rtol=0)


# -- half precision ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["fused", "plain"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scores_of_half_precision_keep_their_digits(way, dtype, monkeypatch):
    if way == "plain":
        monkeypatch.setattr(tiles, "FUSED", None)
    core = AttentionConfig.from_config({"kind": "local", "window": 20}).core()
    q, k, v = (size * random(1, 2, 300, 64, seed=n).to(dtype) for n, size in enumerate((4, 4, 1)))
    exact = core(q.double(), k.double(), v.double(), CAUSAL)
    assert (core(q, k, v, CAUSAL).double() - exact).abs().max() < 0.03
    large = 40 * random(1, 2, 300, 64).to(dtype)
    assert core(large, large, v, CAUSAL).isfinite().all()


def test_what_autocast_leaves_in_different_types_is_computed_alike():
    core = AttentionConfig.from_config({"kind": "local", "window": 20}).core()
    q, k, v = (random(1, 2, 300, 16, seed=n).float().requires_grad_() for n in range(3))
    exact = torch.autograd.grad(core(q, k, v, CAUSAL).sum(), q)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = core(q, k, v.bfloat16(), CAUSAL)
        (gradient,) = torch.autograd.grad(found.float().sum(), q)
    assert found.dtype == torch.bfloat16
    assert (gradient - exact).norm() < 0.05 * exact.norm()


def test_several_texts_in_a_row_are_refused_by_a_lookup():
    q = random(1, 1, 20, 4)
    for kind in ("local", "linear", "softmax"):
        with pytest.raises(UnsupportedError, match="cannot cut them"):
            weft.attention(q, q, q, mask=Mask(causal=True, packed=PackedSequences((10, 10))), kind=kind)


def test_nothing_read_is_nothing_received():
    for kind in ("local", "linear", "random-features"):
        module = AttentionConfig.from_config({"kind": kind, "heads": 2}).build(8)
        for mask in (Mask(), CAUSAL):
            assert module(torch.zeros(2, 0, 8), mask=mask).shape == (2, 0, 8)
    linear = AttentionConfig.from_config({"kind": "linear", "heads": 2}).build(8)
    assert torch.equal(linear(torch.randn(2, 3, 8), torch.zeros(2, 0, 8))[0, 0], linear.output.bias)


# -- learned global tokens --------------------------------------------------------------------


def test_learned_global_tokens_have_read_everything(monkeypatch):
    monkeypatch.setattr(pattern, "MAX_TILED_SHARE", float("inf"))
    fields = {"kind": "union", "of": [{"kind": "local", "window": 3}, {"kind": "global", "learned": 2}], "heads": 2}
    module = AttentionConfig.from_config(fields).build(8).double()
    x = random(1, 200, 8)
    far = x.clone()
    far[:, 150] += 1
    assert not torch.equal(module(x)[:, 3], module(far)[:, 3])
    near = AttentionConfig.from_config({"kind": "local", "window": 3, "heads": 2}).build(8).double()
    assert torch.equal(near(x)[:, 3], near(far)[:, 3])
    q, k, v = (random(2, 2, 200, 4, seed=n) for n in range(3))
    keep = torch.ones(2, 200, dtype=torch.bool)
    keep[0, :60] = False
    for mask in (Mask(), Mask(keep=keep)):
        real = keep if mask.keep is not None else torch.ones_like(keep)
        ours = module.core(q, k, v, mask).transpose(1, 2)[real]
        shown = (module.core.weights(q, k, mask) @ v).transpose(1, 2)[real]
        torch.testing.assert_close(ours, shown, atol=1e-12, rtol=0)
    alone = module.core(*(t[:1, :, 60:] for t in (q, k, v)))
    torch.testing.assert_close(module.core(q, k, v, Mask(keep=keep))[:1, :, 60:], alone, atol=1e-12, rtol=0)
    for refused in (lambda: module(x, mask=CAUSAL), module.new_cache):
        with pytest.raises(UnsupportedError, match="learned global tokens"):
            refused()


# -- settings ---------------------------------------------------------------------------------


def test_banded_is_local():
    assert AttentionConfig.from_config("banded") == AttentionConfig.from_config("local")


def test_what_cannot_be_joined_or_take_turns_is_refused():
    with pytest.raises(ConfigError, match="patterns of places"):
        AttentionConfig.from_config({"kind": "union", "of": ["local", "linear"]})
    with pytest.raises(ConfigError, match="share one softmax"):
        AttentionConfig.from_config({"kind": "union", "of": [{"kind": "local", "heads": 3}]})
    with pytest.raises(ConfigError, match="no kinds"):
        AttentionConfig.from_config({"kind": "union", "of": []})
    with pytest.raises(ConfigError, match="each place once"):
        AttentionConfig.from_config({"kind": "global", "places": [1, 1]})
    with pytest.raises(ConfigError, match="one of the two"):
        AttentionConfig.from_config({"kind": "global", "places": [1], "tokens": 2})
    with pytest.raises(ConfigError, match="no global tokens"):
        AttentionConfig.from_config({"kind": "global", "tokens": 0})
    with pytest.raises(ConfigError, match="once for all"):
        AttentionConfig.from_config([{"kind": "softmax", "heads": 2}, {"kind": "local", "heads": 4}])
    with pytest.raises(UnsupportedError, match="memory"):
        AttentionConfig.from_config("local").build(8)(torch.zeros(1, 2, 8), torch.zeros(1, 2, 8))


def test_how_many_keys_a_query_sees():
    def seen(kind, length, causal=True):
        return AttentionConfig.from_config(kind).seen(length, 256, causal=causal)

    assert seen("softmax", 1000) == 500 and seen("softmax", 1000, causal=False) == 1000
    for kind in ("local", "dilated", "linear", "random-features", "global", "union", "window"):
        assert seen(kind, 2**17) < 700, kind
    assert seen(["softmax", "linear"], 1000) == (500 + seen("linear", 1000)) / 2
