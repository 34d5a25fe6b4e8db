"""ViT against Hugging Face's and timm's own code, tiny and random: states, logits, gradients, sizes, and folders."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from fixtures.timm_models import import_timm_or_skip, make_timm_model, write_timm_folder
from fixtures.weights import move_weights
from parity.peers import compute_gradients, largest_difference, read_model
from weft.checkpoints.hugging_face import HuggingFaceFolder, write_folder
from weft.errors import DataError, UnsupportedError, WeightsError
from weft.models import converter_for
from weft.models.vit.converters import ViTConverter
from weft.models.vit.model import PRESETS, ViTConfig
from weft.models.vit.timm import TimmViTConverter
from weft.tasks.run import Run

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 24,
    "patch_size": 4,
}
NAMES = {"id2label": {0: "cat", 1: "dog", 2: "owl"}, "label2id": {"cat": 0, "dog": 1, "owl": 2}}
CASES = {
    "trunk": ("ViTModel", {}),
    "wide pooler": ("ViTModel", {"pooler_output_size": 40, "hidden_act": "relu"}),
    "classes": ("ViTForImageClassification", NAMES),
    "grey": (
        "ViTForImageClassification",
        {"num_labels": 5, "num_channels": 1, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3, "image_size": 22},
    ),
    "dropout": ("ViTForImageClassification", {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.2}),
    "regression": ("ViTForImageClassification", {"num_labels": 1}),
}


def theirs(case):
    """A model of theirs, with every parameter moved away from zeros and ones."""
    name, fields = CASES[case]
    torch.manual_seed(1)
    model = getattr(transformers, name)(transformers.ViTConfig(**SIZES | fields)).eval()
    move_weights(model)
    return model


def pixels_for(model, size=None):
    torch.manual_seed(3)
    size = size or (model.config.image_size, model.config.image_size)
    return torch.randn(3, model.config.channels, *size, dtype=torch.float64, requires_grad=True)


def our_results(model, pixels):
    states = model.hidden(pixels)
    if model.config.head.classes:
        return {"states": states, "classes": model(pixels)}
    return {"states": states} | ({"pooled": model.classes(model.pooled(states))} if model.config.head.hidden else {})


def their_results(model, pixels, **options):
    if type(model).__name__ == "ViTModel":
        found = model(pixels, **options)
        return {"states": found.last_hidden_state, "pooled": found.pooler_output}
    return {"states": model.vit(pixels, **options).last_hidden_state, "classes": model(pixels, **options).logits}


@pytest.mark.parametrize("case", CASES)
def test_states_logits_and_gradients_are_theirs(case, tmp_path):
    model = theirs(case)
    model.save_pretrained(tmp_path / "hf")
    ours, model = read_model(tmp_path / "hf").double(), model.double()
    pixels = pixels_for(ours)
    results, expected = our_results(ours, pixels), their_results(model, pixels)
    assert largest_difference(results, expected) < 1e-10
    assert all(value.abs().max() > 0.1 for value in expected.values())  # it is not all zeros that agree
    (gradient,), (wanted,) = compute_gradients(results, [pixels]), compute_gradients(expected, [pixels])
    assert (gradient - wanted).abs().max() < 1e-10 and wanted.abs().max() > 1e-4

    with torch.no_grad():
        ours.layers[1].attention.key.weight[0] += 0.5  # a negative control: one row of one map
    assert largest_difference(our_results(ours, pixels), expected) > 1e-4


@pytest.mark.parametrize("size", [(24, 40), (36, 36), (16, 36), (33, 21), (4, 4)])
def test_images_of_another_size_have_their_positions(size, tmp_path):
    model = theirs("classes")
    model.save_pretrained(tmp_path / "hf")
    ours, model = read_model(tmp_path / "hf").double(), model.double()
    pixels = pixels_for(ours, size)
    expected = their_results(model, pixels, interpolate_pos_encoding=True)
    assert largest_difference(our_results(ours, pixels), expected) < 1e-10
    with torch.no_grad():
        ours.positions[15, ::2] += 0.5  # the third patch of the third row
    assert largest_difference(our_results(ours, pixels), expected) > 1e-4


@pytest.mark.parametrize("case", CASES)
def test_there_and_back_gives_the_same_bits(case, tmp_path):
    model = theirs(case)
    model.save_pretrained(tmp_path / "hf")
    ours = read_model(tmp_path / "hf")
    converter = converter_for(ours.config)
    assert isinstance(converter, ViTConverter)
    (tmp_path / "back").mkdir()
    write_folder(tmp_path / "back", converter, ours.config, dict(ours.named_parameters()), None)
    auto = getattr(transformers, converter.auto_class(ours.config))
    again, report = auto.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert type(again) is type(model) and not report["missing_keys"] and not report["unexpected_keys"]
    state, expected = again.state_dict(), model.state_dict()
    assert state.keys() == expected.keys() and all(torch.equal(state[name], expected[name]) for name in state)
    assert again.config.id2label == model.config.id2label
    assert read_model(tmp_path / "back").config == ours.config


def test_our_own_models_open_there(tmp_path):
    sizes = {"image_size": 16, "patch": 8, "width": 48, "depth": 2, "head": {"classes": 3, "labels": ("a", "b", "c")}}
    ours = ViTConfig(**PRESETS["vit-ti"] | sizes).build().eval()
    converter = converter_for(ours.config)
    write_folder(tmp_path, converter, ours.config, dict(ours.named_parameters()), None)
    model = transformers.AutoModelForImageClassification.from_pretrained(tmp_path).eval()
    pixels = torch.randn(2, 3, 16, 16)
    assert (model(pixels).logits - ours(pixels)).abs().max() < 1e-5
    assert model.config.id2label == {0: "a", 1: "b", 2: "c"} and model.config.label2id == {"a": 0, "b": 1, "c": 2}


# -- files as they are found ------------------------------------------------------------------


def change(path, **settings):
    found = json.loads((path / "config.json").read_text()) | settings
    (path / "config.json").write_text(json.dumps({k: v for k, v in found.items() if v != "gone"}))


def rename(path, edit):
    save_file(edit(load_file(path / "model.safetensors")), path / "model.safetensors", {"format": "pt"})


def test_the_names_that_transformers_has_in_memory_are_read_too(tmp_path):
    model = theirs("classes")
    model.save_pretrained(tmp_path)
    before = read_model(tmp_path)
    rename(tmp_path, lambda tensors: {name: tensor.contiguous() for name, tensor in model.state_dict().items()})
    assert any("mlp.fc1" in name for name in load_file(tmp_path / "model.safetensors"))
    after = read_model(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(before.parameters(), after.parameters(), strict=True))


def test_a_trunk_without_pooler_and_one_with_a_prefix(tmp_path):
    theirs("trunk").save_pretrained(tmp_path)
    expected = dict(read_model(tmp_path).named_parameters())
    rename(
        tmp_path, lambda tensors: {f"vit.{name}": tensor for name, tensor in tensors.items() if "pooler" not in name}
    )
    ours = read_model(tmp_path)
    assert not ours.config.head.hidden and ours.classes is None
    assert all(torch.equal(p, expected[name]) for name, p in ours.named_parameters())
    with pytest.raises(UnsupportedError, match="vit: a trunk has its pooler there"):
        converter_for(ours.config)


@pytest.mark.parametrize("case", ["trunk", "classes"])
def test_without_a_class_the_tensors_say_what_there_is(case, tmp_path):
    theirs(case).save_pretrained(tmp_path)
    expected = read_model(tmp_path).config
    change(tmp_path, architectures="gone")
    assert read_model(tmp_path).config == expected


def test_a_pooler_that_nothing_reads_is_left_out(tmp_path):
    theirs("classes").save_pretrained(tmp_path)
    rename(
        tmp_path,
        lambda tensors: (
            tensors | {"vit.pooler.dense.weight": torch.zeros(32, 32), "vit.pooler.dense.bias": torch.zeros(32)}
        ),
    )
    assert read_model(tmp_path).config.head.hidden == 0
    rename(tmp_path, lambda tensors: {name: t for name, t in tensors.items() if not name.startswith("classifier")})
    with pytest.raises(WeightsError, match=r"nothing in the file fills 'classes.1.weight'"):
        read_model(tmp_path)  # it says that it has classes


def test_two_classes_of_one_name_are_told_apart(tmp_path):
    theirs("classes").save_pretrained(tmp_path)
    change(tmp_path, id2label={"0": "crane", "1": "owl", "2": "crane"})
    assert read_model(tmp_path).config.head.labels == ("crane", "owl", "crane (2)")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qkv_bias": False}, "qkv_bias = False"),
        ({"pooler_act": "relu"}, "pooler_act"),
        ({"image_size": [24, 32]}, "as many rows as columns"),
        ({"image_size": 2}, "smaller patches"),
        ({"hidden_size": 33}, "33"),
        ({"architectures": ["ViTForMaskedImageModeling"]}, "ViTModel, ViTForImageClassification"),
        ({"image_size": 48}, r"'vit.embeddings.position_embeddings' has shape \(1, 37, 32\)\nexpected \(1, 145, 32\)"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(changes, message, tmp_path):
    theirs("classes").save_pretrained(tmp_path)
    change(tmp_path, **changes)
    with pytest.raises((UnsupportedError, DataError, WeightsError), match=message):
        HuggingFaceFolder(tmp_path).check_weights()


BASE = {**PRESETS["vit-ti"], "width": 48, "depth": 2, "image_size": 16, "head": {"classes": 2}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool": "mean"}, "pool is class there"),
        ({"stem": (8,)}, "stem is empty"),
        ({"qk_norm": True}, "qk_norm is off there"),
        ({"norm": {"kind": "rms"}}, "norm is layer with biases there"),
        ({"feed_forward": {"kind": "gated"}}, "feed_forward is plain there"),
        ({"feed_forward": {"kind": "plain", "bias": False}}, "feed_forward.bias is on there"),
        ({"attention": {"kind": "hard", "heads": 2}}, "attention is softmax there"),
        ({"attention": {"kind": "softmax", "heads": 2, "bias": False}}, "attention.bias is on there"),
        ({"attention": {"kind": "softmax", "heads": 2, "beta": 1.0}}, "attention.beta"),
        ({"head": {"classes": 2, "hidden": 8}}, "head.hidden is 0 there"),
        ({"head": {}}, "a trunk has its pooler there"),
    ],
)
def test_what_their_class_cannot_say_is_refused(changes, message):
    converter_for(ViTConfig(**BASE))
    with pytest.raises(UnsupportedError, match=f"vit: .*{message}"):
        converter_for(ViTConfig(**BASE | changes))


def test_what_only_training_uses_is_said_to_be_left_out():
    config = ViTConfig(**BASE | {"head": {"classes": 2, "dropout": 0.5}})
    assert converter_for(config).losses(config) == ["head.dropout = 0.5 (used in training only)"]


# -- timm -------------------------------------------------------------------------------------

TINY = {"embed_dim": 32, "depth": 2, "num_heads": 4, "img_size": 32, "patch_size": 8}
TIMM = {
    "classes": ("vit_tiny_patch16_224.augreg_in21k", {**TINY, "num_classes": 5}),
    "trunk": ("vit_base_patch8_224.dino", {**TINY, "num_classes": 0, "in_chans": 1}),
    "deit": ("deit_small_patch16_224", {**TINY, "num_classes": 3}),
}


@pytest.mark.parametrize("case", TIMM)
def test_timm_is_read_as_it_computes(case, tmp_path):
    import_timm_or_skip()
    architecture, arguments = TIMM[case]
    model = make_timm_model(architecture, **arguments)
    run = Run(write_timm_folder(tmp_path / "timm", model, architecture, arguments, global_pool="token"))
    assert isinstance(run.folder.converter, TimmViTConverter)
    ours, model = run.model.double(), model.double()
    pixels = pixels_for(ours)
    results, expected = our_results(ours, pixels), {"states": model.forward_features(pixels)}
    expected |= {"classes": model(pixels)} if arguments["num_classes"] else {}
    assert largest_difference(results, expected) < 1e-10
    (gradient,), (wanted,) = compute_gradients(results, [pixels]), compute_gradients(expected, [pixels])
    assert (gradient - wanted).abs().max() < 1e-10 and wanted.abs().max() > 1e-4


def test_timm_becomes_a_model_of_transformers(tmp_path):
    """timm's eps is not Hugging Face's, and its maps are joined; what is written says both."""
    import_timm_or_skip()
    architecture, arguments = TIMM["classes"]
    model = make_timm_model(architecture, **arguments)
    ours = Run(write_timm_folder(tmp_path / "timm", model, architecture, arguments)).model
    (tmp_path / "hf").mkdir()
    write_folder(tmp_path / "hf", converter_for(ours.config), ours.config, dict(ours.named_parameters()), None)
    again = transformers.AutoModelForImageClassification.from_pretrained(tmp_path / "hf").eval()
    pixels = torch.randn(2, 3, 32, 32)
    assert (again(pixels).logits - model(pixels)).abs().max() < 1e-4 * model(pixels).abs().max()


OTHERS = {
    "norm_pre": {"pre_norm": True},
    "fc_norm": {"fc_norm": True},
    "reg_token": {"reg_tokens": 2},
    "ls1": {"init_values": 0.1},
    "q_norm": {"qk_norm": True},
    "pos_embed": {"pos_embed": "none"},
}


@pytest.mark.parametrize("part", OTHERS)
def test_another_kind_of_vit_is_refused(part, tmp_path):
    import_timm_or_skip()
    model = make_timm_model("vit_tiny_patch16_224", **TINY, **OTHERS[part])
    path = write_timm_folder(tmp_path / "timm", model, "vit_tiny_patch16_224", TINY)  # which hides what it has
    with pytest.raises(UnsupportedError, match=part):
        HuggingFaceFolder(path).check_weights()
    path = write_timm_folder(tmp_path / "told", model, "vit_tiny_patch16_224", TINY | OTHERS[part])
    with pytest.raises(UnsupportedError, match=next(iter(OTHERS[part]))):
        HuggingFaceFolder(path).config  # noqa: B018


def test_positions_without_the_class_token_are_refused(tmp_path):
    import_timm_or_skip()
    model = make_timm_model("vit_tiny_patch16_224", **TINY, no_embed_class=True)
    with pytest.raises(WeightsError, match=r"'pos_embed' has shape \(1, 16, 32\)\nexpected \(1, 17, 32\)"):
        HuggingFaceFolder(write_timm_folder(tmp_path / "timm", model, "vit_tiny_patch16_224", TINY)).check_weights()
