"""Reach in whole models: what is predicted is what gradients find, for every family; and a leak is found."""

import numpy as np
import pytest
import torch
from torch import nn

from fixtures.families import FAMILIES, Case, draw_weights
from fixtures.reach import check_reach
from weft.analysis.model_reach import HELD, _held_norm, model_reach, reach_as_said
from weft.analysis.patterns import small
from weft.blocks.attention import LocalConfig
from weft.blocks.attention.base import Grid
from weft.errors import ConfigError, UnsupportedError
from weft.models import (
    BahdanauConfig,
    BERTConfig,
    ConvNeXtConfig,
    DaViTConfig,
    GPTConfig,
    GRUConfig,
    ModelConfig,
    NGramConfig,
    ResNetConfig,
    Seq2SeqConfig,
    T5Config,
    TransformerConfig,
    ViTConfig,
)
from weft.models.ngram.counts import count

LENGTH = 20
LAYERLESS = ("bag-of-words", "cbow", "skipgram")
COUNTING = [family for family in FAMILIES if not ModelConfig.registry[family].learned_in_steps]


def tokens(length=LENGTH, vocab=9):
    def call(model, seed):
        return model(torch.randint(vocab, (1, length), generator=torch.Generator().manual_seed(seed)))

    return call


def pixels(size, channels=1):
    def call(model, seed):
        return model(torch.randn(1, channels, size, size, generator=torch.Generator().manual_seed(seed)).double())

    return call


@pytest.mark.parametrize(
    "kind", ["softmax", "local", "strided", "dilated", "global", "linear", "local,softmax", "hard"]
)
@pytest.mark.parametrize("depth", [1, 3])
def test_a_gpt_of_any_kind(kind, depth):
    model = draw_weights(GPTConfig(vocab_size=9, width=16, depth=depth, attention=small(kind)).build())
    found = model_reach(model, tokens(), 14)
    assert found.agrees and len(found.layers) == depth and not found.predicted[:, 15:].any()
    assert found.predicted.shape == (depth, LENGTH)


def test_a_bert_in_windows():
    model = draw_weights(BERTConfig(vocab_size=9, width=16, depth=3, attention=small("window")).build())
    found = model_reach(model, tokens(), 4)
    assert found.agrees and found.counts == [6, 12, 12]


@pytest.mark.parametrize("pool", ["mean", "class"])
def test_a_vit(pool):
    kind = "local" if pool == "mean" else "softmax"
    model = draw_weights(
        ViTConfig(channels=1, image_size=24, patch=4, width=16, depth=2, pool=pool, attention=small(kind)).build()
    )
    found = model_reach(model, pixels(24), 0)
    assert found.agrees and found.grid == Grid(6, 6)
    assert found.counts == ([16, 36] if pool == "mean" else [37, 37])


def test_a_davit_by_places_of_its_first_grid():
    config = DaViTConfig(channels=1, widths=(8, 8), depths=(1, 1), strides=(2, 2), stem=3, head_width=4, window=3)
    model = draw_weights(config.build())
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
    model = draw_weights(TransformerConfig(vocab_size=9, source_vocab_size=9, **two).build())

    def call(model, seed):
        rng = torch.Generator().manual_seed(seed)
        return model(torch.randint(9, (1, 7), generator=rng), torch.randint(9, (1, 5), generator=rng))

    decoder = model_reach(model, call, 2)
    assert decoder.agrees and decoder.sources == 7 and decoder.counts == [10, 10]
    assert model_reach(model, call, None).position == 4, "the last: no state of what is written sees ahead"
    encoder = model_reach(model, call, 2, part="encoder")
    assert encoder.agrees and encoder.counts == [7, 7] and encoder.sources == 0
    assert model_reach(model, call, None, part="encoder").position == 3, "the middle"


def test_the_memory_of_the_same_layer_has_seen_less():
    config = TransformerConfig(vocab_size=9, width=16, depth=2, memory="same", attention=LocalConfig(window=2))
    found = model_reach(draw_weights(config.build()), lambda model, seed: model(*_pair(seed)), 2)
    assert found.agrees


def _pair(seed):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(9, (1, 9), generator=rng), torch.randint(9, (1, 5), generator=rng)


def test_t5():
    t5 = draw_weights(T5Config(vocab_size=9, width=16, depth=1).build())
    assert model_reach(t5, lambda model, seed: model(*_pair(seed)), -1).agrees


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_a_recurrent_model_sees_all_that_came_before(kind):
    model = ModelConfig.from_config({"kind": kind, "vocab_size": 9, "width": 8, "depth": 2}).build()
    found = model_reach(model, tokens(), 9)
    assert found.agrees and found.counts == [10, 10] and not found.predicted[:, 10:].any()


def test_one_that_reads_both_ways_sees_all():
    config = GRUConfig(vocab_size=9, width=8, depth=2, both_ways=True, head={"kind": "classes"})

    def call(model, seed):
        return model.hidden(torch.randint(9, (1, LENGTH), generator=torch.Generator().manual_seed(seed)))

    found = model_reach(config.build(), call, 9)
    assert found.agrees and found.counts == [LENGTH, LENGTH]


# -- one vector between two recurrences, or a look back ---------------------------------------


@pytest.mark.parametrize("reverse", [True, False])
def test_seq2seq_reads_from_its_end_if_it_is_told_to(reverse):
    model = draw_weights(Seq2SeqConfig(vocab_size=9, width=8, depth=2, reverse=reverse).build())
    encoder = model_reach(model, lambda model, seed: model(*_pair(seed)), 2, part="encoder")
    expected = [place >= 2 if reverse else place <= 2 for place in range(9)]
    assert encoder.agrees and encoder.position == 2
    assert encoder.predicted.tolist() == [expected, expected]
    decoder = model_reach(model, lambda model, seed: model(*_pair(seed)), 2)
    assert decoder.agrees and decoder.sources == 9 and decoder.counts == [12, 12]
    assert not decoder.predicted[:, 12:].any()


def test_bahdanau_sees_the_source_and_what_it_has_written():
    model = draw_weights(BahdanauConfig(vocab_size=9, source_vocab_size=9, width=8, depth=2).build())
    decoder = model_reach(model, lambda model, seed: model(*_pair(seed)), 3)
    assert decoder.agrees and decoder.sources == 9 and decoder.counts == [13, 13]
    assert model_reach(model, lambda model, seed: model(*_pair(seed)), 3, part="encoder").counts == [9, 9]


def test_a_vector_that_does_not_arrive_is_found():
    """Negative control: the writer begins with zeros instead of what was read."""
    model = draw_weights(Seq2SeqConfig(vocab_size=9, width=8).build())
    model.decoder.layers[0].register_forward_pre_hook(lambda _, given: (given[0], torch.zeros_like(given[1])))
    found = model_reach(model, lambda model, seed: model(*_pair(seed)), 2)
    assert not found.agrees and not found.measured[:, :9].any() and found.predicted[:, :9].all()


# -- convolutions -----------------------------------------------------------------------------


def test_a_resnet_sees_two_places_further_with_every_layer():
    model = draw_weights(ResNetConfig(channels=1, widths=(16, 16), depths=(2, 2), groups=4).build())
    found = model_reach(model, pixels(31), 31 * 15 + 15)
    assert found.agrees and found.grid == Grid(31, 31) and found.note == HELD
    assert found.layers[0] == "stage 1: layer 1" and found.layers[-1] == "stage 2: layer 2"
    # two convolutions of 3 × 3 a layer; the third takes every second place, whose neighbours are then two apart.
    # (15, 15) is between two of those: it becomes (7, 7), which stands at (14, 14), and 31 places end at 30
    assert found.counts == [5**2, 9**2, 15**2, 23**2]
    corner = model_reach(model, pixels(31), 0)
    assert corner.agrees and corner.counts == [3**2, 5**2, 8**2, 12**2]
    assert model_reach(model, pixels(31), -1).agrees


def test_a_resnet_whose_stem_halves_twice():
    model = draw_weights(ResNetConfig(channels=1, stem="large", widths=(16,), depths=(1,), groups=4).build())
    found = model_reach(model, pixels(40), 0)
    assert found.agrees and found.grid == Grid(10, 10) and found.counts == [9]


def test_group_norm_tells_of_the_whole_image():
    """Its statistics are those of all places: unless they are held, all see all."""
    model = draw_weights(ResNetConfig(channels=1, widths=(16, 16), depths=(1, 1), groups=4).build())
    found = model_reach(model, pixels(14), 30, hold=False)
    assert found.agrees and found.counts == [14**2, 14**2] and not found.note
    held = model_reach(model, pixels(14), 30)
    assert held.agrees and held.counts[0] < 14**2


def test_held_statistics_change_no_number():
    norm = draw_weights(nn.GroupNorm(4, 16)).double()
    x = torch.randn(2, 16, 5, 7, dtype=torch.float64)
    assert torch.allclose(_held_norm(norm, x), norm(x), rtol=0, atol=1e-13)


def test_a_convnext_by_the_width_of_its_kernel():
    config = ConvNeXtConfig(channels=1, patch=2, widths=(8, 8), depths=(2, 1), kernel=5)
    model = draw_weights(config.build())
    found = model_reach(model, pixels(54), 27 * 13 + 13)
    assert found.agrees and found.grid == Grid(27, 27) and not found.note
    assert found.layers == ("stage 1: layer 1", "stage 1: layer 2", "stage 2: halved", "stage 2: layer 1")
    assert found.counts == [5**2, 9**2, 10**2, 18**2]
    border = model_reach(model, pixels(54), -1)  # 27 places are 13 pairs: the last one belongs to none
    assert border.agrees


def test_a_leak_beside_a_convolution_is_found():
    """Negative control: a layer that hears of a place far away."""
    model = draw_weights(ConvNeXtConfig(channels=1, patch=2, widths=(8,), depths=(1,), kernel=3).build())
    model.stages[0].layers[0].register_forward_hook(lambda _, given, output: output + given[0].roll(4, 2))
    found = model_reach(model, pixels(32), 16 * 8 + 8)
    assert not found.agrees and found.measured.sum() == found.predicted.sum() + 1


# -- all of them ------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in (*LAYERLESS, *COUNTING)])
def test_every_family_sees_what_is_predicted_with_and_without_numbers(family):
    """The families come from the registry: one that is new has to say what its layers are."""
    check_reach(Case(family).config(), draw_weights(Case(family).model()))


@pytest.mark.parametrize("order", [1, 2, 4])
def test_a_table_of_counts_depends_on_the_tokens_that_it_says(order):
    """Each token is changed in turn: the shares of the next token after a position are others, or the same."""
    config = NGramConfig(vocab_size=4, order=order, end=3)
    ids = np.random.default_rng(0).integers(0, 3, 3000)
    model = config.with_tables(config.smoothing.tables(count(ids, order, 4, 3), 3))
    found = reach_as_said(model, LENGTH, 9)
    row = torch.from_numpy(ids[:LENGTH])[None]
    changed = []
    for place in range(LENGTH):
        others = [row.clone() for _ in range(2)]
        for step, other in enumerate(others, 1):
            other[0, place] = (other[0, place] + step) % 3
        changed.append(any(not torch.equal(model(other)[0, 9], model(row)[0, 9]) for other in others))
    assert found.predicted.tolist() == [changed] and found.counts == [order - 1]
    assert found.layers == ("counts",) and found.note and found.measured is None
    assert reach_as_said(model, LENGTH, None).position == LENGTH - 1
    with pytest.raises(ConfigError, match="position 20 of 20"):
        reach_as_said(model, LENGTH, LENGTH)


@pytest.mark.parametrize("family", LAYERLESS)
def test_what_has_no_layers_is_refused(family):
    with pytest.raises(UnsupportedError, match="the reach of a"):
        model_reach(Case(family).config().build(), tokens(), 0)


def test_a_leak_in_a_model_is_found():
    """Negative control: a layer that looks ahead, against a pattern that does not."""
    model = draw_weights(GPTConfig(vocab_size=9, width=16, depth=2, attention=LocalConfig(window=3, heads=2)).build())

    def leak(module, given, output):
        return output + given[0].roll(-1, 1)

    model.layers[0].register_forward_hook(leak)
    found = model_reach(model, tokens(), 9)
    assert not found.agrees and found.measured[0, 10] and not found.predicted[0, 10]


def test_parts_that_are_not_there_are_refused():
    for config, call in ((GPTConfig(vocab_size=9, width=16, depth=1), tokens()), (ResNetConfig(channels=1), pixels(8))):
        with pytest.raises(ConfigError, match="no part"):
            model_reach(config.build(), call, 0, part="encoder")
    with pytest.raises(ConfigError, match="encoder or decoder"):
        model_reach(T5Config(vocab_size=9, width=16, depth=1).build(), tokens(), 0, part="middle")


def test_the_model_is_as_it_was():
    model = GPTConfig(vocab_size=9, width=16, depth=1).build().train()
    before = {name: p.clone() for name, p in model.state_dict().items()}
    state = torch.random.get_rng_state()
    model_reach(model, tokens(), 3)
    assert model.training and all(torch.equal(p, before[name]) for name, p in model.state_dict().items())
    assert torch.equal(state, torch.random.get_rng_state())
    assert next(model.parameters()).dtype == torch.float32 and next(model.parameters()).requires_grad
