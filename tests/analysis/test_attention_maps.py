"""The maps of every family are the weights in use: A·V·W_o is each layer's own output, and nothing changes by it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fixtures.attention_maps import check_maps, rebuild_output, record_outputs, relative_gap
from fixtures.families import ATTENDING, CASES, FAMILIES, Case, run_model
from weft.analysis import attention_maps, capture, rollout
from weft.analysis.maps import looked_at
from weft.blocks.attention import EVERYTHING, Mask
from weft.errors import ShapeError, UnsupportedError
from weft.models import PairModel
from weft.models.sites import attentions

ROUNDING = {torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.mark.parametrize("dtype", ROUNDING, ids=["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_weights_times_values_are_the_layers_own_output(name, dtype):
    case = CASES[name]
    model = case.model(dtype)
    check_maps(model, *case.inputs(model), ROUNDING[dtype])


@pytest.mark.parametrize("name", CASES)
def test_looking_changes_nothing(name):
    case = CASES[name]
    model = case.model()
    inputs, options = case.inputs(model)
    plain = run_model(model, inputs, options)
    with capture(model):
        assert torch.equal(run_model(model, inputs, options), plain)
    attention_maps(model, inputs, **options)
    assert torch.equal(run_model(model, inputs, options), plain)
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())


@pytest.mark.parametrize("name", CASES)
def test_rows_add_up_to_one_and_what_is_hidden_is_exactly_zero(name):
    case = CASES[name]
    model = case.model()
    inputs, options = case.inputs(model)
    maps = attention_maps(model, inputs, **options)
    kept = {part: options[part].numpy() for part in ("keep", "source_keep") if part in options}
    for layer, weights in maps.items():
        real = np.ones(weights.shape[:3:2], dtype=bool)
        causal = ".attention" in layer and (case.family == "gpt" or layer.startswith("decoder")) and weights.ndim == 4
        channels = "channel" in layer or case.changes.get("attention.kind") == "channel"
        if kept and not channels:
            own = (
                kept["source_keep" if layer.startswith("encoder") else "keep"]
                if isinstance(model, PairModel)
                else kept["keep"]
            )
            joint = case.changes.get("memory") == "joint" and layer.startswith("decoder")
            cross = "cross" in layer or case.family == "bahdanau"
            columns = kept["source_keep"] if cross else own
            columns = np.concatenate([kept["source_keep"], own], 1) if joint else columns
            assert (np.moveaxis(weights, 3, 1)[~columns] == 0).all(), layer
            real = own
        sums = np.moveaxis(weights.sum(-1), 2, 1)
        assert np.allclose(sums[real] if sums.shape[:2] == real.shape else sums, 1, atol=1e-5), layer
        assert (weights >= 0).all(), layer
        if causal and "cross" not in layer and case.family != "bahdanau":
            asking, answering = weights.shape[2:]
            assert (weights[..., ~np.tri(asking, answering, answering - asking, dtype=bool)] == 0).all(), layer
            assert (weights[:, :, 0, : answering - asking + 1].sum(-1) > 0.99).all()  # the diagonal itself is seen


def test_every_attending_family_was_looked_at():
    assert set(ATTENDING) >= {"gpt", "bert", "transformer", "t5", "vit", "davit", "bahdanau"}
    assert set(ATTENDING) == {case.family for case in CASES.values()}


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - set(ATTENDING) - {"ngram"}))
def test_families_without_attention_say_so(family):
    model = Case(family).model()
    with pytest.raises(UnsupportedError, match=r"has no attention to look at.*\n?.*gpt, bert"):
        attention_maps(model, torch.ones(1, 3, dtype=torch.long))


# -- a check that could not fail would prove nothing ------------------------------------------


def wrong_scale(seen):
    core = seen.core
    core.beta = 2 * (core.beta or seen.query.shape[-1] ** -0.5)
    return replace(seen)


BROKEN = {
    "the causal mask is lost": ("gpt", lambda seen: replace(seen, mask=EVERYTHING)),
    "padding is seen": ("bert with padding", lambda seen: replace(seen, mask=EVERYTHING)),
    "the bias of distances is lost": ("t5", lambda seen: replace(seen, mask=Mask(causal=seen.mask.causal))),
    "the scale is wrong": ("gpt", wrong_scale),
    "the scale is wrong, channels": ("davit", wrong_scale),
    "windows are not cut": ("davit", lambda seen: replace(seen, core=getattr(seen.core, "inside", None))),
    "keys of another head": ("bert", lambda seen: replace(seen, key=seen.key.flip(1))),
    "texts of a row see each other": (
        "bert row of texts",
        lambda seen: replace(seen, mask=EVERYTHING),
    ),
    "queries one step late": ("bahdanau", lambda seen: replace(seen, query=seen.query.roll(1, 2))),
    "a memory of another source": ("transformer", lambda seen: replace(seen, key=seen.key.flip(0))),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_wrong_map_is_found(what):
    name, broken = BROKEN[what]
    model = CASES[name].model()
    inputs, options = CASES[name].inputs(model)
    theirs = record_outputs(model, inputs, options)
    chosen = {"davit": "stages.0.layers.0.spatial.attention", "transformer": "decoder.layers.1.cross_attention"}
    layer = chosen.get(name, next(iter(theirs)))
    if what.endswith("channels"):
        layer = "stages.0.layers.0.channel.attention"
    seen = looked_at(model, inputs, **options)[layer]
    module = attentions(model)[layer]
    with torch.no_grad():
        assert relative_gap(rebuild_output(module, replace(seen)), theirs[layer]) <= 1e-5
        assert relative_gap(rebuild_output(module, broken(seen)), theirs[layer]) > 1e-3


def test_a_missing_output_bias_is_found():
    model = Case("gpt", {"attention.bias": True}).model()
    inputs, _ = CASES["gpt"].inputs(model)
    theirs, maps = record_outputs(model, inputs, {}), looked_at(model, inputs)
    module = attentions(model)["layers.0.attention"]
    torch.nn.init.zeros_(module.output.bias)
    with torch.no_grad():
        assert relative_gap(rebuild_output(module, maps["layers.0.attention"]), theirs["layers.0.attention"]) > 1e-3


# -- shapes, and what is given ----------------------------------------------------------------


def test_shapes_by_name_in_the_order_they_run():
    case = CASES["transformer"]
    model = case.model()
    maps = attention_maps(model, case.inputs(model)[0])
    assert [*maps][:3] == ["encoder.layers.0.attention", "encoder.layers.1.attention", "decoder.layers.0.attention"]
    assert [*maps][3] == "decoder.layers.0.cross_attention"
    assert {name: weights.shape for name, weights in maps.items() if ".0." in name} == {
        "encoder.layers.0.attention": (2, 2, 11, 11),
        "decoder.layers.0.attention": (2, 2, 7, 7),
        "decoder.layers.0.cross_attention": (2, 2, 7, 11),
    }
    joint = CASES["transformer joint"].model()
    assert attention_maps(joint, case.inputs(joint)[0])["decoder.layers.1.attention"].shape == (2, 2, 7, 18)


def test_the_channels_of_a_davit_have_a_table_of_channels():
    model = CASES["davit"].model()
    pixels, _ = CASES["davit"].inputs(model)
    maps = attention_maps(model, pixels)
    assert maps["stages.0.layers.0.channel.attention"].shape == (2, 2, 8, 8)
    assert maps["stages.1.layers.0.channel.attention"].shape == (2, 4, 8, 8)
    assert maps["stages.0.layers.0.spatial.attention"].shape == (2, 2, 36, 36)
    seen = looked_at(model, pixels)["stages.0.layers.0.channel.attention"]
    assert seen.over == "channels" and repr(seen) == "AttentionMap(2 rows, 2 heads, 8 x 8 channels)"


def test_texts_in_one_row_have_the_weights_they_have_alone():
    model = CASES["bert row of texts"].model()
    row, _ = CASES["bert row of texts"].inputs(model)
    together = attention_maps(model, row)["layers.1.attention"][0]
    start = 0
    for length in row.packed.lengths:
        part = slice(start, start + length)
        alone = attention_maps(model, row.tokens[:, part])["layers.1.attention"][0]
        np.testing.assert_allclose(together[:, part, part], alone, atol=1e-5)
        assert (together[:, part, :start] == 0).all() and (together[:, part, start + length :] == 0).all()
        start += length


def test_numbers_of_any_kind_are_read_and_training_goes_on_as_before():
    model = CASES["gpt"].model().train()
    ids = [[1, 2, 3, 4]]
    assert attention_maps(model, np.array(ids))["layers.0.attention"].shape == (1, 2, 4, 4)
    assert attention_maps(model, torch.tensor(ids), "layers.1.*").keys() == {"layers.1.attention"}
    assert model.training and CASES["gpt"].model().eval().training is False
    half = CASES["gpt"].model(torch.bfloat16)
    assert attention_maps(half, torch.tensor(ids))["layers.0.attention"].dtype == np.float32


def test_a_kind_without_a_table_is_named():
    model = CASES["gpt"].model()
    with pytest.MonkeyPatch.context() as patch:
        from weft.blocks import AttentionCore, SoftmaxAttention

        patch.setattr(SoftmaxAttention, "weights", AttentionCore.weights)
        with pytest.raises(UnsupportedError, match=r"layers\.0\.attention: SoftmaxAttention has no table"):
            attention_maps(model, torch.ones(1, 3, dtype=torch.long))


def test_rollout_by_hand():
    one = np.array([[[1.0, 0.0], [0.5, 0.5]]])
    np.testing.assert_allclose(rollout([one]), [[1, 0], [0.25, 0.75]])
    np.testing.assert_allclose(rollout([one, one]), [[1, 0], [0.4375, 0.5625]])
    empty = np.zeros((1, 2, 2))  # nothing may be looked at
    np.testing.assert_allclose(rollout([empty]), np.eye(2))
    with pytest.raises(ShapeError, match="rollout"):
        rollout([np.zeros((1, 2, 3))])
    with pytest.raises(ShapeError, match="no layers"):
        rollout([])


def test_the_first_layer_acts_first_in_a_rollout():
    model = CASES["bert"].model(torch.float64)
    first, second = (w[0] for w in attention_maps(model, CASES["bert"].inputs(model)[0]).values())
    half = np.eye(11) / 2
    np.testing.assert_allclose(rollout([first, second]), (second.mean(0) / 2 + half) @ (first.mean(0) / 2 + half))
    assert np.allclose(rollout([first, second]).sum(1), 1)
