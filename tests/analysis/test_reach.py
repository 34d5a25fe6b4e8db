"""Reach: what the pattern predicts is what gradients find, for every kind and model; and a wrong pattern is found."""

import numpy as np
import pytest
import torch

from weft.analysis.model_reach import model_reach
from weft.analysis.patterns import pattern_of, small
from weft.analysis.reach import Reach, composed, reach, seen_pairs
from weft.blocks import CAUSAL, EVERYTHING, AttentionConfig
from weft.blocks.attention import LocalConfig, SoftmaxConfig
from weft.blocks.attention.base import Grid
from weft.errors import ConfigError, UnsupportedError
from weft.models import (
    BERTConfig,
    DaViTConfig,
    GPTConfig,
    GRUConfig,
    LSTMConfig,
    ResNetConfig,
    T5Config,
    TransformerConfig,
    ViTConfig,
)

LENGTH = 20
KINDS = [kind for kind in AttentionConfig.menu if kind != AttentionConfig.several]


def drawn(model):
    """The model with weights that are all drawn: at the start, branches may give zero."""
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(std=0.3 if p.dim() > 1 else 0.1)
    return model


def tokens(length=LENGTH, vocab=9):
    def call(model, seed):
        return model(torch.randint(vocab, (1, length), generator=torch.Generator().manual_seed(seed)))

    return call


def pixels(size, channels=1):
    def call(model, seed):
        return model(torch.randn(1, channels, size, size, generator=torch.Generator().manual_seed(seed)).double())

    return call


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "softmax,local", "local,strided"])
def test_every_kind_sees_what_its_pattern_says(kind, causal):
    config = small(kind)
    if causal and not config.writes:
        with pytest.raises(UnsupportedError):
            reach(config, LENGTH, 12, causal=True)
        return
    found = reach(config, LENGTH, 12, causal=causal, depth=3)
    assert found.agrees, found.predicted.astype(int) - found.measured
    assert found.counts == sorted(found.counts)
    assert not causal or not found.predicted[:, 13:].any()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("hard",)])
def test_the_rule_is_what_trying_finds(kind):
    config = small(kind)
    for causal in (False, True) if config.writes else (False,):
        module = config.build(16)
        rule = seen_pairs(module, LENGTH, CAUSAL if causal else EVERYTHING)
        tried = pattern_of(config, LENGTH, causal)
        if kind == "hard":
            assert (tried <= rule).all()
        else:
            assert (rule == tried).all()


def test_hard_attention_without_a_slope_sees_less_than_it_may():
    """Which key is chosen is chance: what is measured is a part of what is predicted."""
    found = reach(AttentionConfig.pick({"kind": "hard", "learning": "argmax"}), LENGTH, 12)
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


def test_a_picture_by_rows_and_columns():
    found = reach(LocalConfig(window=2), 30, 14, grid=Grid(5, 6), depth=2)
    near = found.predicted[0].reshape(5, 6)
    assert found.agrees and found.counts == [9, 25]
    assert near[1:4, 1:4].all() and near.sum() == 9
    windows = reach(AttentionConfig.pick({"kind": "window", "window": 3}), 36, 14, grid=Grid(6, 6), depth=2)
    assert windows.agrees and windows.counts[0] == 9 < windows.counts[1]


def test_positions_that_are_not_there_are_refused():
    with pytest.raises(ConfigError, match="from 0 to 4"):
        reach(SoftmaxConfig(), 5, 5)
    assert reach(SoftmaxConfig(), 5, -1).position == 4


# -- whole models -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["softmax", "local", "strided", "dilated", "global", "linear", "local,softmax", "hard"]
)
@pytest.mark.parametrize("depth", [1, 3])
def test_a_gpt_of_any_kind(kind, depth):
    model = drawn(GPTConfig(vocab_size=9, width=16, depth=depth, attention=small(kind)).build())
    found = model_reach(model, tokens(), 14)
    assert found.agrees and len(found.layers) == depth and not found.predicted[:, 15:].any()
    assert found.predicted.shape == (depth, LENGTH)


def test_a_bert_in_windows():
    model = drawn(BERTConfig(vocab_size=9, width=16, depth=3, attention=small("window")).build())
    found = model_reach(model, tokens(), 4)
    assert found.agrees and found.counts == [6, 12, 12]


@pytest.mark.parametrize("pool", ["mean", "class"])
def test_a_vit(pool):
    kind = "local" if pool == "mean" else "softmax"
    model = drawn(
        ViTConfig(channels=1, image_size=24, patch=4, width=16, depth=2, pool=pool, attention=small(kind)).build()
    )
    found = model_reach(model, pixels(24), 0)
    assert found.agrees and found.grid == Grid(6, 6)
    assert found.counts == ([16, 36] if pool == "mean" else [37, 37])


def test_a_davit_by_places_of_its_first_grid():
    config = DaViTConfig(channels=1, widths=(8, 8), depths=(1, 1), strides=(2, 2), stem=3, head_width=4, window=3)
    model = drawn(config.build())
    found = model_reach(model, pixels(18), 40)
    assert found.agrees and found.grid == Grid(9, 9)
    assert found.layers[0] == "stage 1: windows 1" and found.layers[2] == "stage 2: shrunk"
    # the middle of a window of 3 × 3, whose places have seen one place further before they look at each other
    assert found.counts == [25, 81, 81, 81, 81]
    corner = model_reach(model, pixels(18), 30)  # (3, 3) is told by its neighbours in three more windows
    assert corner.agrees and corner.counts[0] == 49


@pytest.mark.parametrize("memory", ["last", "same", "joint"])
def test_a_transformer_sees_the_source_and_what_it_has_written(memory):
    two = {"width": 16, "depth": 2, "memory": memory}
    model = drawn(TransformerConfig(vocab_size=9, source_vocab_size=9, **two).build())

    def call(model, seed):
        chance = torch.Generator().manual_seed(seed)
        return model(torch.randint(9, (1, 7), generator=chance), torch.randint(9, (1, 5), generator=chance))

    decoder = model_reach(model, call, 2)
    assert decoder.agrees and decoder.sources == 7 and decoder.counts == [10, 10]
    encoder = model_reach(model, call, 2, part="encoder")
    assert encoder.agrees and encoder.counts == [7, 7] and encoder.sources == 0


def test_the_memory_of_the_same_layer_has_seen_less():
    config = TransformerConfig(vocab_size=9, width=16, depth=2, memory="same", attention=LocalConfig(window=2))
    found = model_reach(drawn(config.build()), lambda model, seed: model(*_pair(seed)), 2)
    assert found.agrees


def _pair(seed):
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(9, (1, 9), generator=chance), torch.randint(9, (1, 5), generator=chance)


def test_t5_and_recurrent_models():
    t5 = drawn(T5Config(vocab_size=9, width=16, depth=1).build())
    assert model_reach(t5, lambda model, seed: model(*_pair(seed)), -1).agrees
    for config in (LSTMConfig(vocab_size=9, width=8, depth=2), GRUConfig(vocab_size=9, width=8, depth=2)):
        found = model_reach(config.build(), tokens(), 9)
        assert found.agrees and found.counts == [10, 10], "all that came before"


def test_a_leak_in_a_model_is_found():
    """Negative control: a layer that looks ahead, against a pattern that does not."""
    model = drawn(GPTConfig(vocab_size=9, width=16, depth=2, attention=LocalConfig(window=3, heads=2)).build())

    def leak(module, given, output):
        return output + given[0].roll(-1, 1)

    model.layers[0].register_forward_hook(leak)
    found = model_reach(model, tokens(), 9)
    assert not found.agrees and found.measured[0, 10] and not found.predicted[0, 10]


def test_models_without_layers_of_tokens_are_refused():
    with pytest.raises(UnsupportedError, match="reach of a ResNet"):
        model_reach(ResNetConfig(channels=1).build(), pixels(16), 0)
    model = GPTConfig(vocab_size=9, width=16, depth=1).build()
    with pytest.raises(ConfigError, match="no part"):
        model_reach(model, tokens(), 0, part="encoder")


def test_the_model_is_as_it_was():
    model = GPTConfig(vocab_size=9, width=16, depth=1).build().train()
    before = {name: p.clone() for name, p in model.state_dict().items()}
    state = torch.random.get_rng_state()
    model_reach(model, tokens(), 3)
    assert model.training and all(torch.equal(p, before[name]) for name, p in model.state_dict().items())
    assert torch.equal(state, torch.random.get_rng_state())
    assert next(model.parameters()).dtype == torch.float32 and next(model.parameters()).requires_grad


def test_patterns_multiply():
    step = np.eye(6, k=-1, dtype=bool)
    assert composed([step] * 3, 5).sum(1).tolist() == [2, 3, 4]
