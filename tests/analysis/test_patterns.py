"""What is drawn of an attention kind is what its module does."""

import contextlib

import numpy as np
import pytest
import torch
from torch import nn

from weft.analysis.capturing import capture
from weft.analysis.patterns import HEAD_WIDTH, pattern_of, patterns_of, small
from weft.analysis.reach import seen_pairs
from weft.blocks.attention import CAUSAL, EVERYTHING, AttentionConfig, PatternConfig
from weft.errors import ConfigError, UnsupportedError

SPARSE = sorted(kind for kind, entry in AttentionConfig.registry.items() if issubclass(entry, PatternConfig))
DENSE = ["softmax", "linear", "random-features"]
WHOLE = ["channel", "hierarchy"]  # each token learns of all others, and so cannot be kept from the future


def rule(config, length, causal):
    """Who sees whom by the kind's own rule about places."""
    at = torch.arange(length)
    seen = config.pattern().sees(at[:, None], at[None, :]).numpy()
    return np.tril(seen) if causal else seen


@contextlib.contextmanager
def registry_with(kind, module):
    """A kind whose whole module is this one."""

    class OwnConfig(AttentionConfig, kind=kind):
        def build(self, width, *, qk=None):
            return module

    try:
        yield OwnConfig()
    finally:
        del AttentionConfig.registry[kind]


class Mirror(nn.Module):
    """Each place receives what stands as far from the other end, whatever the mask says."""

    def forward(self, x, *, mask):
        return x.flip(1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", SPARSE)
def test_a_pattern_is_drawn_as_its_rule_says(kind, causal):
    config = small(kind)
    drawn, wanted = pattern_of(config, 24, causal), rule(config, 24, causal)
    assert drawn.dtype == bool and drawn.shape == (24, 24)
    assert (drawn == wanted).all()
    assert 0 < wanted.sum() < 24 * 24  # something is seen, and something is not


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["local", "dilated", "union"])
def test_long_rows_which_are_computed_in_tiles(kind, causal):
    assert (pattern_of(small(kind), 160, causal) == rule(small(kind), 160, causal)).all()


@pytest.mark.parametrize("fields", [{"window": 2}, {"window": 9}, {"window": 30}, {"window": 3, "heads": 3}])
def test_fields_change_the_pattern(fields):
    config = small("local", fields)
    assert (pattern_of(config, 24) == rule(config, 24, False)).all()
    assert (pattern_of(config, 24) != pattern_of(small("local"), 24)).any()


@pytest.mark.parametrize("kind", [*DENSE, *WHOLE])
def test_everybody_sees_everybody(kind):
    assert pattern_of(small(kind), 24).all()


@pytest.mark.parametrize("kind", DENSE)
def test_nobody_sees_the_future(kind):
    assert (pattern_of(small(kind), 24, causal=True) == np.tri(24, dtype=bool)).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["softmax", "hard", "local", "window", "strided"])
def test_who_is_seen_has_a_weight(kind, causal):
    """The same draw again: `weights` is the other way to find out; the own token counts as the one that asks too."""
    config = small(kind)
    torch.manual_seed(5)
    module = config.build(HEAD_WIDTH).double().eval()
    tokens, _ = torch.randn(2, 24, HEAD_WIDTH, dtype=torch.float64)
    with capture(module) as maps, torch.no_grad():
        module(tokens[None], mask=CAUSAL if causal else EVERYTHING)
    assert (pattern_of(config, 24, causal, seed=5) == (maps[""].weights[0, 0] > 0).numpy()).all()


def test_windows_stand_side_by_side():
    places = np.arange(20) // 6
    assert (pattern_of(small("window"), 20) == (places[:, None] == places)).all()


@pytest.mark.parametrize("causal", [False, True])
def test_hard_attention_sees_one_token(causal):
    config = small("hard")
    drawn = pattern_of(config, 24, causal)
    assert (drawn.sum(1) == 1).all()
    assert (drawn != pattern_of(config, 24, causal, seed=1)).any()
    assert (drawn == pattern_of(config, 24, causal)).all()  # the same draw is the same
    learning = small("hard", {"learning": "argmax"})
    assert (drawn == pattern_of(learning, 24, causal)).all()  # how it learns is not what it does


def test_what_a_module_does_counts_and_not_what_it_should_do():
    with registry_with("mirror", Mirror()) as config:
        for causal in (False, True):  # it leaks, and that is seen
            assert (pattern_of(config, 9, causal) == np.eye(9, dtype=bool)[::-1]).all()


@pytest.mark.parametrize("config", [*map(small, WHOLE), small("global", {"learned": 2})], ids=lambda c: c.kind)
def test_a_kind_that_cannot_be_causal_says_why(config):
    assert pattern_of(config, 12).all()
    with pytest.raises(UnsupportedError, match="every token"):
        pattern_of(config, 12, causal=True)
    (found,) = patterns_of(config, 12)
    assert found.encoder.all() and "every token" in found.decoder and "\n" not in found.decoder


def test_one_pattern_for_all_layers_or_one_for_each_turn():
    assert [p.layers for p in patterns_of(small("local"), 12)] == [()]
    window = patterns_of(small("window"), 24)
    assert [(p.config.shift, p.layers) for p in window] == [(0, (1, 3)), (3, (2, 4))]
    assert (window[0].encoder != window[1].encoder).any()
    assert len(patterns_of(small("window", {"alternate": False}), 24)) == 1
    turns = patterns_of(small("softmax,local"), 24)
    assert [(p.asked.kind, p.config.kind, p.layers[:2]) for p in turns] == [
        ("alternating", "softmax", (1, 3)),
        ("alternating", "local", (2, 4)),
    ]
    assert (turns[1].decoder == rule(small("local"), 24, True)).all()
    both = patterns_of(small("window,channel"), 24)
    assert [(p.config.kind, p.layers[:2]) for p in both] == [
        ("window", (1, 5)),
        ("channel", (2, 4)),
        ("window", (3, 7)),
    ]
    with pytest.raises(UnsupportedError, match="for_layer"):
        pattern_of(small("alternating"), 12)


@pytest.mark.parametrize("kind", list(AttentionConfig.registry))
def test_chance_is_told_of_and_is_nobody_elses(kind):
    before = torch.random.get_rng_state()
    found = patterns_of(small(kind), 24)
    assert torch.equal(before, torch.random.get_rng_state())
    for p in found:  # what a kind leaves out of what it may see, it leaves out by what the tokens are
        assert p.by_chance == (p.encoder != seen_pairs(p.config.build(HEAD_WIDTH), 24, EVERYTHING)).any()
    assert kind != "hard" or found[0].by_chance


def test_small_fields_and_other_ones():
    assert small("banded") == small("local") == AttentionConfig.from_config({"kind": "local", "window": 4})
    assert small("local", {"window": "7"}).window == 7
    assert [member.window for member in small("union").of if member.kind == "local"] == [4]
    assert small("union", {"of": "dilated, global"}).of == (small("dilated"), small("global"))
    assert small("union", {"of": '[{kind="local", window=9}]'}).of[0].window == 9
    assert small("union", {"of": "local", "heads": "2"}).heads == 2
    with pytest.raises(ConfigError, match="did you mean 'local'"):
        small("locl")
    with pytest.raises(ConfigError, match="unknown field 'windw'"):
        small("local", {"windw": 3})


def test_a_row_of_one_and_of_none():
    assert pattern_of(small("local"), 1, causal=True).tolist() == [[True]]
    with pytest.raises(ConfigError, match="at least 1"):
        pattern_of(small("local"), 0)
