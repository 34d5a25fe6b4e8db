"""T5: sizes, start, cache, padding, dropout; and the default parts learn."""

import math

import pytest
import torch
import torch.nn.functional as F

from weft.blocks import PositionConfig
from weft.errors import ConfigError, ShapeError, WeightsError
from weft.models import T5, ModelConfig, T5Config, preset
from weft.models.pair_model import padded
from weft.training import AdamWConfig, MuonConfig

SMALL = {"vocab_size": 50, "width": 16, "depth": 2, "decoder_depth": 3, "max_length": 24}


def published(name):
    """A published model's parts in a test's size."""
    config = T5Config(**preset(name)[1] | SMALL)
    return config.override({"attention.heads": 3, "attention.head_width": 4, "feed_forward.ff_width": 24})


STYLES = {
    "default": T5Config(**SMALL),
    "v1.0": published("t5-small"),
    "v1.1": published("t5-v1_1-small"),
    "tied, unscaled": T5Config(**SMALL, tied="unscaled"),
    "few distances": T5Config(**SMALL, position={"kind": "relative", "buckets": 5, "max_distance": 4}),
    **{f"positions {kind}": T5Config(**SMALL, position=kind) for kind in PositionConfig.registry if kind != "relative"},
}
SOURCES, TARGETS = (9, 4, 1, 7), (5, 8, 2, 1)


def model(style, dtype=torch.float64, **changes):
    torch.manual_seed(1)
    return STYLES[style].override(changes).build().to(dtype).eval()


def texts(lengths):
    return [torch.randint(50, (length,)) for length in lengths]


@pytest.mark.parametrize("style", STYLES)
def test_a_batch_is_every_text_alone(style):
    t5, sources, targets = model(style), texts(SOURCES), texts(TARGETS)
    (source, source_keep), (target, keep) = padded(sources), padded(targets)
    logits = t5(source, target, source_keep=source_keep)
    assert torch.allclose(t5(source, target, source_keep=source_keep, keep=keep)[keep], logits[keep], atol=1e-12)
    filled = source.masked_fill(~source_keep, 13)
    assert torch.allclose(t5(filled, target, source_keep=source_keep), logits, atol=1e-12)
    for row, (one, other) in enumerate(zip(sources, targets, strict=True)):
        assert torch.allclose(t5(one[None], other[None])[0], logits[row, : len(other)], atol=1e-12)
    assert (t5(source, target) - logits)[keep].abs().max() > 1e-3  # a negative control: padding is seen


@pytest.mark.parametrize("style", STYLES)
def test_padding_before_a_source_is_padding_behind_it(style):
    t5, sources = model(style), texts(SOURCES)
    source, keep = padded(sources)
    other, before = torch.zeros_like(source), keep.flip(1)
    for row, text in zip(other, sources, strict=True):
        row[len(row) - len(text) :] = text
    target = torch.randint(50, (4, 6))
    found = t5(other, target, source_keep=before)
    assert torch.allclose(found, t5(source, target, source_keep=keep), atol=1e-12)


@pytest.mark.parametrize("style", STYLES)
def test_cached_equals_uncached(style):
    t5, target = model(style), torch.randint(50, (4, 13))
    source, keep = padded(texts(SOURCES))
    memory = t5.encode(source, keep)
    whole = t5.logits(t5.states(target, memory))
    for size in (1, 5):
        caches = t5.new_caches()
        with torch.no_grad():
            parts = [t5.logits(t5.states(piece, memory, caches=caches)) for piece in target.split(size, 1)]
        assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-12)
    with torch.no_grad():  # a negative control: without a cache each piece begins anew
        alone = torch.cat([t5.logits(t5.states(piece, memory)) for piece in target.split(5, 1)], 1)
    assert (alone - whole).abs().max() > 1e-3


def test_beams_share_one_memory():
    t5, (source, keep) = model("v1.1"), padded(texts(SOURCES))
    memory, target = t5.encode(source, keep), torch.randint(50, (12, 6))
    rows = torch.arange(4).repeat_interleave(3)
    whole = t5.states(target, memory.select(rows))
    caches = t5.new_caches()
    with torch.no_grad():
        t5.states(target[::3, :1], memory, caches=caches)
        for cache in caches:
            cache.rewind(0)
            cache.own.select(rows)
        parts = [t5.states(target[:, n : n + 1], memory, caches=caches) for n in range(6)]
    assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-12)


@pytest.mark.parametrize("style", STYLES)
def test_a_later_token_never_reaches_an_earlier_logit(style):
    t5, source, target = model(style, torch.float32), torch.randint(50, (1, 9)), torch.randint(50, (1, 20))
    before, changed = t5(source, target), target.clone()
    changed[0, 11] = (changed[0, 11] + 1) % 50
    assert torch.equal(t5(source, changed)[:, :11], before[:, :11])
    assert not torch.equal(t5(source, changed)[:, 11:], before[:, 11:])
    changed = source.clone()
    changed[0, -1] = (changed[0, -1] + 1) % 50
    assert (t5(changed, target) != before).any(-1).all()  # all of the source reaches every logit


def test_reading_looks_both_ways_and_writing_only_back():
    """One number of each table moves: that of the furthest ahead changes reading, and writing not at all."""
    t5, source, target = model("default"), torch.randint(50, (1, 9)), torch.randint(50, (1, 9))
    assert t5.encoder.position.two_way and not t5.decoder.position.two_way
    memory = t5.encode(source)
    states = t5.states(target, memory)
    with torch.no_grad():
        t5.encoder.position.weight[17:] += 1.0  # buckets 17 and up lie ahead
        t5.decoder.position.weight[17:] += 1.0  # and here far behind, where nothing of nine tokens stands
    assert (t5.encode(source).states - memory.states).abs().max() > 1e-3
    assert torch.equal(t5.states(target, memory), states)
    with torch.no_grad():
        t5.decoder.position.weight[3] += 1.0
    assert (t5.states(target, memory) - states)[:, 3:].abs().max() > 1e-3
    assert torch.equal(t5.states(target, memory)[:, :3], states[:, :3])


@pytest.mark.parametrize("style", STYLES)
def test_the_order_of_a_source_is_told(style):
    """Read backwards, a source gives other states; without positions the same ones backwards."""
    t5, source = model(style), torch.randint(50, (1, 9))
    same = torch.allclose(t5.encode(source.flip(1)).states.flip(1), t5.encode(source).states, atol=1e-9)
    assert same == (style in ("positions none", "positions alibi"))  # ALiBi's distances have no sign


def test_a_head_that_is_tied_and_one_that_is_not():
    states = torch.randn(2, 16, dtype=torch.float64)
    for style, scale in (("v1.0", 1 / 4), ("tied, unscaled", 1.0)):
        t5 = model(style)
        assert t5.head.weight is t5.tokens.weight
        assert torch.allclose(t5.logits(states), states @ t5.tokens.weight.T * scale)
    t5 = model("v1.1")
    assert t5.head.weight is not t5.tokens.weight
    assert torch.allclose(t5.logits(states), states @ t5.head.weight.T)


# -- the start --------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["default", "v1.0", "v1.1", "tied, unscaled"])
def test_the_loss_begins_near_ln_of_the_vocabulary(style):
    """Logits of size 1, as T5 begins, cost a half more than none."""
    torch.manual_seed(0)
    t5 = STYLES[style].override({"vocab_size": 500, "width": 64}).build().eval()
    logits = t5(torch.randint(500, (16, 20)), torch.randint(500, (16, 20)))
    loss = F.cross_entropy(logits.flatten(0, 1), torch.randint(500, (320,)))
    assert abs(loss.item() - math.log(500) - 0.5) < 0.2


def test_weights_begin_as_in_t5():
    t5 = (
        T5Config(**SMALL).override({"width": 128, "attention.heads": 2, "attention.head_width": 32, "depth": 1}).build()
    )
    wanted = {
        "tokens.weight": 1.0,
        "head.weight": 128**-0.5,
        "encoder.position.weight": 128**-0.5,
        "decoder.layers.0.attention.query.weight": (128 * 32) ** -0.5,
        "decoder.layers.0.cross_attention.query.weight": (128 * 32) ** -0.5,
        "decoder.layers.0.cross_attention.key.weight": 128**-0.5,
        "decoder.layers.0.attention.value.weight": 128**-0.5,
        "encoder.layers.0.attention.output.weight": 64**-0.5,
        "encoder.layers.0.feed_forward.gate.weight": 128**-0.5,
        "encoder.layers.0.feed_forward.up.weight": 128**-0.5,
        "encoder.layers.0.feed_forward.down.weight": 512**-0.5,
    }
    weights = dict(t5.named_parameters())
    for name, std in wanted.items():
        share = 0.35 if "position" in name else 0.05
        assert weights[name].std().item() == pytest.approx(std, rel=share), name
    assert all(bool((p == 1).all()) for name, p in weights.items() if "norm" in name)
    assert {name.split(".")[-1] for name in weights} == {"weight"}


def test_dropout_reaches_the_last_states_of_both_stacks():
    t5 = model("default", torch.float32, dropout=0.5).train()
    memory = t5.encode(torch.randint(50, (4, 24)))
    states = t5.states(torch.randint(50, (4, 24)), memory)
    for found in (memory.states, states):
        assert 0.4 < (found == 0).float().mean().item() < 0.6
    assert (t5.eval().encode(torch.randint(50, (4, 24))).states != 0).all()


@pytest.mark.parametrize(
    "optimizer", [MuonConfig(), pytest.param(AdamWConfig(learning_rate=0.01), marks=pytest.mark.slow)]
)
def test_one_batch_can_be_learned_by_heart(optimizer):
    torch.manual_seed(0)
    t5 = STYLES["default"].override({"dropout": 0.0, "depth": 1, "decoder_depth": 1}).build()
    source, target = torch.randint(50, (4, 9)), torch.randint(50, (4, 17))
    rule = optimizer.build(t5)
    for _ in range(80):
        loss = F.cross_entropy(t5(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        rule.zero_grad()
        loss.backward()
        rule.step()
    assert loss.item() < 0.1
    assert all(p.grad is not None and p.grad.isfinite().all() for p in t5.parameters())


# -- settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters"), [("t5-small", 60_506_624), ("t5-base", 222_903_552), ("t5-v1_1-small", 76_961_152)]
)
def test_presets_have_the_published_sizes(name, parameters):
    family, fields = preset(name)
    shapes = ModelConfig.from_config({"kind": family, **fields}).shapes()
    assert sum(math.prod(shape) for shape in shapes.values()) == parameters


def test_a_laptop_can_hold_the_tiny_one():
    family, fields = preset("t5-tiny")
    shapes = ModelConfig.from_config({"kind": family, "vocab_size": 8000, **fields}).shapes()
    assert sum(math.prod(shape) for shape in shapes.values()) < 5e6
    assert preset("t5") == ("t5", {})


WRONG = {
    "start": ({"start": 50}, "start = 50\nexpected a token below 50"),
    "negative start": ({"start": -1}, "start = -1"),
    "no layers": ({"depth": 0}, "depth = 0"),
    "no layers that write": ({"decoder_depth": 0}, "decoder_depth = 0"),
    "one way": ({"position": {"kind": "relative", "two_way": False}}, "position.two_way = False"),
    "half tied": ({"tied": "half"}, "tied = 'half'"),
    "dropout": ({"dropout": 1.5}, "dropout = 1.5"),
    "misspelled": ({"decoder_dept": 2}, "did you mean 'decoder_depth'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_settings_are_refused(what):
    fields, words = WRONG[what]
    with pytest.raises(ConfigError) as caught:
        T5Config(**SMALL | fields)
    assert words in str(caught.value) and len(str(caught.value).splitlines()) <= 3


UNBUILDABLE = {
    "heads that do not divide": ({"attention.heads": 3}, "width 16 with 3 heads"),
    "three buckets": ({"position.buckets": 3}, "3 buckets"),
    "near distances alone": ({"position.buckets": 32, "position.max_distance": 16}, "distances up to 16"),
    "kv_heads": ({"attention.heads": 4, "attention.kv_heads": 3}, "kv_heads that divide heads"),
}


@pytest.mark.parametrize("what", UNBUILDABLE)
def test_sizes_that_cannot_be_together_are_refused(what):
    changes, words = UNBUILDABLE[what]
    with pytest.raises(ConfigError, match=words):
        STYLES["default"].override(changes).shapes()


def test_tokens_of_another_shape_are_refused():
    t5, row = model("default", torch.float32), torch.randint(50, (2, 6))
    for source, target, name in ((row[0], row, "source"), (row, row[0], "target")):
        with pytest.raises(ShapeError, match=f"{name} has shape"):
            t5(source, target)


@pytest.mark.parametrize("style", STYLES)
def test_config_and_weights_round_trip(style):
    config = STYLES[style]
    assert ModelConfig.from_dict(config.to_dict()) == config
    assert ModelConfig.from_toml(config.to_toml()) == config
    t5 = model(style, torch.float32)
    weights = {name: p.detach().clone() for name, p in t5.named_parameters()}
    assert {name: tuple(p.shape) for name, p in weights.items()} == config.shapes()
    again, row = config.with_weights(weights).eval(), torch.randint(50, (2, 6))
    assert isinstance(again, T5) and again.context == 24
    assert torch.equal(again(row, row), t5(row, row))
    with pytest.raises(WeightsError, match=r"no tensor 'tokens.weight'"):
        config.with_weights({name: p for name, p in weights.items() if name != "tokens.weight"})
