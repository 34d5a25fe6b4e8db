"""ConvNeXt against Hugging Face's and timm's own code, tiny and random: states, logits, gradients, and folders."""

import json

import pytest
import torch

from fixtures.timm_models import import_timm_or_skip, make_timm_model, write_timm_folder
from fixtures.weights import move_weights
from parity.peers import compute_gradients, largest_difference, read_model
from weft.checkpoints.hugging_face import HuggingFaceFolder, write_folder
from weft.errors import DataError, UnsupportedError, WeightsError
from weft.models import converter_for
from weft.models.convnext.converters import ConvNextConverter
from weft.models.convnext.model import ConvNeXtConfig
from weft.models.convnext.timm import TimmConvNeXtConverter
from weft.models.preprocessing import Preprocessing
from weft.tasks.run import Run

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SIZES = {"hidden_sizes": [8, 12, 16], "depths": [1, 2, 1], "num_stages": 3}
NAMES = {"id2label": {0: "cat", 1: "dog", 2: "owl"}, "label2id": {"cat": 0, "dog": 1, "owl": 2}}
CASES = {
    "trunk": ("ConvNextModel", {}),
    "classes": ("ConvNextForImageClassification", NAMES),
    "others": (
        "ConvNextForImageClassification",
        {"num_labels": 5, "patch_size": 2, "num_channels": 1, "hidden_act": "relu", "layer_norm_eps": 1e-3},
    ),
    "no scale": ("ConvNextForImageClassification", {"layer_scale_init_value": 0.0, "drop_path_rate": 0.2}),
    "several": ("ConvNextForImageClassification", {**NAMES, "problem_type": "multi_label_classification"}),
}


def theirs(case):
    """A model of theirs, with every parameter moved away from zeros and ones."""
    name, fields = CASES[case]
    torch.manual_seed(1)
    model = getattr(transformers, name)(transformers.ConvNextConfig(**SIZES | fields)).eval()
    move_weights(model)
    return model


def pixels_for(model, size=(37, 50)):
    torch.manual_seed(3)
    return torch.randn(3, model.config.channels, *size, dtype=torch.float64, requires_grad=True)


def our_results(model, pixels):
    states = model.hidden(pixels)
    results = {"states": states, "pooled": model.pooled(states)}
    return results | ({"classes": model(pixels)} if model.config.head.classes else {})


def their_results(model, pixels):
    trunk = model if type(model).__name__ == "ConvNextModel" else model.convnext
    found = trunk(pixels)
    results = {"states": found.last_hidden_state.flatten(2).transpose(1, 2), "pooled": found.pooler_output}
    return results | ({} if trunk is model else {"classes": model(pixels).logits})


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

    folder = HuggingFaceFolder(tmp_path / "hf")
    table = folder.converter.table_for(folder.config, folder.entries)
    parameters = dict(ours.named_parameters())
    found = dict(zip(parameters, compute_gradients(our_results(ours, pixels), list(parameters.values())), strict=True))
    written = table.write(found)
    names = dict(model.named_parameters())
    for name, wanted in zip(names, compute_gradients(their_results(model, pixels), list(names.values())), strict=True):
        assert (written[name] - wanted).abs().max() < 1e-10, name

    with torch.no_grad():
        ours.stages[1].layers[0].depthwise.weight[0, 0, 0, 0] += 0.5  # a negative control: one number
    assert largest_difference(our_results(ours, pixels), expected) > 1e-5


@pytest.mark.parametrize("case", CASES)
def test_there_and_back_gives_the_same_bits(case, tmp_path):
    model = theirs(case)
    model.save_pretrained(tmp_path / "hf")
    ours = read_model(tmp_path / "hf")
    assert isinstance(converter_for(ours.config), ConvNextConverter)
    (tmp_path / "back").mkdir()
    write_folder(tmp_path / "back", converter_for(ours.config), ours.config, dict(ours.named_parameters()), None)
    auto = getattr(transformers, converter_for(ours.config).auto_class(ours.config))
    again, report = auto.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert type(again) is type(model) and not report["missing_keys"] and not report["unexpected_keys"]
    state, expected = again.state_dict(), model.state_dict()
    assert state.keys() == expected.keys() and all(torch.equal(state[name], expected[name]) for name in state)
    assert again.config.id2label == model.config.id2label and again.config.drop_path_rate == model.config.drop_path_rate
    assert read_model(tmp_path / "back").config == ours.config
    assert "pad_token_id" not in json.loads((tmp_path / "back" / "config.json").read_text())


def test_labels_are_the_names_of_the_classes(tmp_path):
    theirs("classes").save_pretrained(tmp_path / "hf")
    assert read_model(tmp_path / "hf").config.head.labels == ("cat", "dog", "owl")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": 5}, "kernel is 7 there"),
        ({"ff_ratio": 2}, "ff_ratio is 4 there"),
        ({"eps": 1e-5}, "eps is 1e-06 there"),
        ({"head": {"classes": 2, "hidden": 3}}, "head.hidden is 0 there"),
    ],
)
def test_what_their_class_cannot_say_is_refused(changes, message):
    with pytest.raises(UnsupportedError, match=f"convnext: {message}"):
        converter_for(ConvNeXtConfig(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["ConvNextBackbone"]}, "ConvNextModel, ConvNextForImageClassification"),
        ({"num_stages": 4}, "num_stages = 4"),
        ({"hidden_sizes": 8}, "a list of whole numbers"),
        ({"depths": [1, 2]}, "3 widths and 2 depths"),
        ({"patch_size": [4, 2]}, "as many rows as columns"),
        ({"drop_path_rate": 1.5}, "drop_path"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(changes, message, tmp_path):
    theirs("classes").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises((UnsupportedError, DataError), match=message):
        HuggingFaceFolder(tmp_path).check_weights()


# -- timm -------------------------------------------------------------------------------------

TINY = {"dims": [8, 12, 16, 24], "depths": [1, 1, 2, 1]}
TIMM = {
    "linear maps": ("convnext_tiny.fb_in22k", {**TINY, "num_classes": 5}),
    "maps by convolution": ("convnext_atto.d2_in1k", {**TINY, "num_classes": 5, "in_chans": 1}),
    "trunk": ("convnext_base", {**TINY, "num_classes": 0, "kernel_sizes": 5, "norm_eps": 1e-3}),
}


@pytest.mark.parametrize("case", TIMM)
def test_timm_is_read_as_it_computes(case, tmp_path):
    import_timm_or_skip()
    architecture, arguments = TIMM[case]
    model = make_timm_model(architecture, **arguments)
    run = Run(write_timm_folder(tmp_path / "timm", model, architecture, arguments))
    assert isinstance(run.folder.converter, TimmConvNeXtConverter)
    ours, model = run.model.double(), model.double()
    pixels = pixels_for(ours, (67, 75))
    expected = {"states": model.forward_features(pixels).flatten(2).transpose(1, 2)}
    expected["pooled"] = model.forward_head(model.forward_features(pixels), pre_logits=True)
    expected |= {"classes": model(pixels)} if arguments["num_classes"] else {}
    results = our_results(ours, pixels)
    assert largest_difference(results, expected) < 1e-10
    (gradient,), (wanted,) = compute_gradients(results, [pixels]), compute_gradients(expected, [pixels])
    assert (gradient - wanted).abs().max() < 1e-10 and wanted.abs().max() > 1e-5


def test_timm_says_how_images_are_prepared(tmp_path):
    import_timm_or_skip()
    architecture, arguments = TIMM["linear maps"]
    model = make_timm_model(architecture, **arguments)
    folder = HuggingFaceFolder(write_timm_folder(tmp_path / "timm", model, architecture, arguments))
    expected = Preprocessing(image_size=32, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4), resample="bicubic", crop=0.9)
    assert folder.preprocessing == expected


def test_another_kind_of_convnext_is_refused(tmp_path):
    import_timm_or_skip()
    arguments = {**TINY, "num_classes": 5}
    model = make_timm_model("convnextv2_atto", **arguments)
    path = write_timm_folder(tmp_path / "two", model, "convnextv2_atto", arguments)
    with pytest.raises(UnsupportedError, match="architecture = 'convnextv2_atto'"):
        Run(path).model  # noqa: B018
    path = write_timm_folder(tmp_path / "one", model, "convnext_atto", arguments)
    with pytest.raises(WeightsError, match="grn"):
        Run(path).model  # noqa: B018
