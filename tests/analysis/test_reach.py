"""Reach: what the pattern predicts is what gradients find, for every kind; and a wrong pattern is found."""

import numpy as np
import pytest

from weft.analysis.patterns import pattern_of, patterns_of, small
from weft.analysis.reach import Reach, composed, reach, seen_pairs
from weft.blocks import CAUSAL, EVERYTHING, AttentionConfig
from weft.blocks.attention import LocalConfig, SoftmaxConfig
from weft.blocks.attention.base import Grid
from weft.errors import ConfigError, UnsupportedError

LENGTH = 20
KINDS = [kind for kind in AttentionConfig.registry if kind != AttentionConfig.several]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "softmax,local", "local,strided"])
def test_every_kind_sees_what_its_pattern_says(kind, causal):
    config = small(kind)
    if causal and not config.writes:
        with pytest.raises(UnsupportedError):
            reach(config, LENGTH, 12, causal=True)
        return
    found = reach(config, LENGTH, 12, causal=causal, depth=3)
    chosen = any(p.by_chance for p in patterns_of(config, LENGTH)) and kind != "hard"  # whose gradients reach all keys
    assert found.agrees or (chosen and (found.measured <= found.predicted).all())
    assert found.counts == sorted(found.counts)
    assert not causal or not found.predicted[:, 13:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_rule_is_what_trying_finds(kind):
    config = small(kind)
    for causal in (False, True) if config.writes else (False,):
        module = config.build(16)
        rule = seen_pairs(module, LENGTH, CAUSAL if causal else EVERYTHING)
        tried = pattern_of(config, LENGTH, causal)
        if any(p.by_chance for p in patterns_of(config, LENGTH)):
            assert (tried <= rule).all() and tried.sum() < rule.sum()
        else:
            assert (rule == tried).all()


def test_hard_attention_without_a_slope_sees_less_than_it_may():
    """Which key is chosen is chance: what is measured is a part of what is predicted."""
    found = reach(AttentionConfig.from_config({"kind": "hard", "learning": "argmax"}), LENGTH, 12)
    assert (found.measured <= found.predicted).all() and found.measured.sum() < found.predicted.sum()


def test_local_attention_widens_its_view_with_every_layer():
    assert reach(LocalConfig(window=3), 30, 20, causal=True, depth=4).counts == [3, 5, 7, 9]
    assert reach(LocalConfig(window=3), 30, 15, depth=4).counts == [5, 9, 13, 17]
    assert reach(SoftmaxConfig(), 30, 20, causal=True, depth=2).counts == [21, 21]


def test_a_wrong_window_is_found():
    """Negative control: modules that look one place less far than the pattern says."""
    narrow = [LocalConfig(window=3).build(8) for _ in range(2)]
    found = reach(narrow, LENGTH, 12, causal=True)
    assert found.agrees
    wrong = composed([seen_pairs(LocalConfig(window=4).build(8), LENGTH, CAUSAL)] * 2, 12)
    assert not Reach(12, ("1", "2"), wrong, found.measured).agrees
    leaky = composed([seen_pairs(SoftmaxConfig().build(8), LENGTH, EVERYTHING)] * 2, 12)
    assert leaky.sum() > found.measured.sum()


def test_a_image_by_rows_and_columns():
    found = reach(LocalConfig(window=2), 30, 14, grid=Grid(5, 6), depth=2)
    near = found.predicted[0].reshape(5, 6)
    assert found.agrees and found.counts == [9, 25]
    assert near[1:4, 1:4].all() and near.sum() == 9
    windows = reach(AttentionConfig.from_config({"kind": "window", "window": 3}), 36, 14, grid=Grid(6, 6), depth=2)
    assert windows.agrees and windows.counts[0] == 9 < windows.counts[1]


def test_positions_that_are_not_there_are_refused():
    with pytest.raises(ConfigError, match="from 0 to 4"):
        reach(SoftmaxConfig(), 5, 5)
    assert reach(SoftmaxConfig(), 5, -1).position == 4


def test_patterns_multiply():
    step = np.eye(6, k=-1, dtype=bool)
    assert composed([step] * 3, 5).sum(1).tolist() == [2, 3, 4]
