"""timm's folders: which architectures are known, what their settings become, what is refused. No timm is needed."""

import json

import pytest
import torch
from safetensors.torch import save_file

from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.errors import DataError, UnsupportedError
from weft.models import Converter, HuggingFaceConfig, converter_for, converter_of
from weft.models.converter import is_foreign
from weft.models.convnext.model import PRESETS as CONVNEXTS
from weft.models.convnext.model import ConvNeXtConfig
from weft.models.convnext.timm import TimmConvNeXtConverter
from weft.models.vit.converters import ViTConverter
from weft.models.vit.model import PRESETS as VITS
from weft.models.vit.model import ViTConfig
from weft.models.vit.timm import TimmViTConverter

TOLD = {"input_size": [3, 224, 224], "num_classes": 1000}


def config(architecture, **settings):
    theirs = HuggingFaceConfig({"architecture": architecture, "pretrained_cfg": TOLD} | settings)
    return converter_of(theirs).read_config(theirs)


@pytest.mark.parametrize(
    ("architecture", "preset", "patch", "size"),
    [
        ("vit_tiny_patch16_224", "vit-ti", 16, 224),
        ("vit_small_patch32_384.augreg_in21k_ft_in1k", "vit-s", 32, 384),
        ("vit_base_patch8_224.dino", "vit-b", 8, 224),
        ("vit_large_patch14_224", "vit-l", 14, 224),
        ("vit_huge_patch14_224", "vit-h", 14, 224),
        ("deit_base_patch16_384", "vit-b", 16, 384),
    ],
)
def test_vits_have_the_sizes_of_their_names(architecture, preset, patch, size):
    expected = ViTConfig(**VITS[preset] | {"patch": patch, "image_size": size})
    assert config(architecture, pretrained_cfg={"input_size": [3, size, size]}) == expected
    assert config(architecture, pretrained_cfg={}) == expected
    assert isinstance(converter_of(HuggingFaceConfig({"architecture": architecture})), TimmViTConverter)


@pytest.mark.parametrize("name", ["tiny", "small", "base"])
def test_convnexts_have_the_sizes_of_their_names(name):
    assert config(f"convnext_{name}.fb_in1k") == ConvNeXtConfig(**CONVNEXTS[f"convnext-{name}"])


@pytest.mark.parametrize(
    ("name", "millions"),
    [("atto", 3.7), ("femto", 5.2), ("pico", 9.0), ("nano", 15.6), ("large", 197.8), ("xlarge", 350.2)],
)
def test_other_convnexts_have_the_sizes_that_timm_prints(name, millions):
    skeleton = config(f"convnext_{name}").skeleton()
    assert sum(p.numel() for p in skeleton.parameters()) / 1e6 == pytest.approx(millions, abs=0.06)


def test_what_was_given_besides_is_read():
    found = config("vit_base_patch16_224", num_classes=7, model_args={"img_size": [64, 64], "drop_rate": 0.1})
    assert (found.image_size, found.head.classes, found.head.dropout) == (64, 7, 0.1)
    found = config("vit_base_patch16_224", pretrained_cfg={"input_size": [1, 96, 96], "num_classes": 0})
    assert (found.image_size, found.channels, found.head.classes) == (96, 1, 0)
    found = config("convnext_tiny", model_args={"kernel_sizes": 5, "drop_path_rate": 0.3})
    assert (found.kernel, found.drop_path) == (5, 0.3)
    names = ["a", "b", "b"]
    assert config("convnext_tiny", num_classes=3, label_names=names).head.labels == ("a", "b", "b (2)")
    assert config("convnext_tiny", num_classes=3, label_names=dict(enumerate(names))).head.labels == ()
    assert config("convnext_tiny", num_classes=2, label_names={"0": "x", "1": "y"}).head.labels == ("x", "y")
    assert config("convnext_tiny", num_classes=4, label_names=names).head.labels == ()


@pytest.mark.parametrize(
    ("architecture", "settings", "message"),
    [
        ("vit_base_patch16_clip_224", {}, "architecture = 'vit_base_patch16_clip_224'"),
        ("vit_base_patch16_224_miil", {}, "can read from timm: convnext, davit, vit"),
        ("vit_base_patch14_reg4_dinov2", {}, "architecture"),
        ("deit3_base_patch16_224", {}, "architecture"),
        ("convnext_tiny_hnf", {}, "architecture"),
        ("resnet50.a1_in1k", {}, "architecture"),
        (17, {}, "architecture = 17"),
        ("vit_base_patch16_224", {"global_pool": "avg"}, "global_pool = 'avg'"),
        ("vit_base_patch16_224", {"model_args": {"global_pool": "map"}}, "global_pool = 'map'"),
        ("convnext_tiny", {"global_pool": "max"}, "global_pool = 'max'"),
        ("convnext_tiny", {"model_args": {"patch_size": 2}}, "patch_size = 2"),
        ("convnext_tiny", {"model_args": {"act_layer": "silu"}}, "act_layer = silu"),
        ("vit_base_patch16_224", {"model_args": {"depth": "3"}}, "depth = '3'\nexpected a whole number"),
        ("vit_base_patch16_224", {"pretrained_cfg": {"input_size": [3, 224]}}, "channels, rows, columns"),
        ("vit_base_patch16_224", {"pretrained_cfg": {"input_size": [3, 224, 196]}}, "as many rows as columns"),
        ("vit_base_patch16_224", {"num_classes": -1}, "num_classes = -1"),
        ("vit_base_patch16_224", {"auto_map": {"AutoModel": "x.py"}}, "Weft runs no such code"),
    ],
)
def test_what_cannot_be_honoured_is_refused(architecture, settings, message):
    with pytest.raises((UnsupportedError, DataError), match=message):
        config(architecture, **settings)


def test_absurd_sizes_are_refused_before_memory_is_taken(tmp_path):
    told = {"architecture": "vit_base_patch16_224", "model_args": {"depth": 10**9}}
    (tmp_path / "config.json").write_text(json.dumps(told))
    save_file({"pos_embed": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match="depth = 1000000000"):
        HuggingFaceFolder(tmp_path).config  # noqa: B018


def test_timm_is_read_only():
    assert not any(
        isinstance(converter, TimmViTConverter | TimmConvNeXtConverter) for converter in Converter.registry.values()
    )
    assert converter_for(config("convnext_tiny")).name == "convnext"
    assert isinstance(converter_for(config("vit_base_patch16_224")), ViTConverter)


def test_what_is_from_elsewhere_is_told_from_a_run():
    assert is_foreign({"model_type": "vit"}) and is_foreign({"architecture": "vit_base_patch16_224"})
    assert not is_foreign({"format": 1, "architecture": "x"}) and not is_foreign({}) and not is_foreign([])
