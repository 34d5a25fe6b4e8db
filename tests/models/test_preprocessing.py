"""What images go through before a model from elsewhere reads them: from files, and into files that others open."""

import json

import numpy as np
import pytest

from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models import HuggingFaceConfig
from weft.models.preprocessing import (
    PREPROCESSOR,
    Preprocessing,
    preprocessing_settings,
    read_preprocessing,
    read_timm_preprocessing,
)

VIT = {  # as google/vit-base-patch16-224 has it
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_processor_type": "ViTFeatureExtractor",
    "image_std": [0.5, 0.5, 0.5],
    "resample": 2,
    "rescale_factor": 0.00392156862745098,
    "size": {"height": 224, "width": 224},
}
CONVNEXT = {  # as facebook/convnext-tiny-224 has it
    "crop_pct": 0.875,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "ConvNextFeatureExtractor",
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
    "resample": 3,
    "size": 224,
}


def read(settings):
    return read_preprocessing(HuggingFaceConfig(settings, PREPROCESSOR))


def test_files_of_the_hub():
    assert read(VIT) == Preprocessing()
    means = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
    assert read(CONVNEXT) == Preprocessing(**means, resample="bicubic", crop=0.875)
    assert read(CONVNEXT | {"size": 384}) == Preprocessing(**means, resample="bicubic", image_size=384)
    assert read(CONVNEXT | {"size": {"shortest_edge": 256}}).image_size == 256
    assert read(VIT | {"size": 384}).image_size == 384
    bare = read(VIT | {"do_normalize": False})
    assert bare.mean == (0.0, 0.0, 0.0) and bare.std == (1.0, 1.0, 1.0)
    cut = read(
        VIT | {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": {"height": 224, "width": 224}}
    )
    assert cut.image_size == 224 and cut.crop == 0.875


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"do_resize": False}, "do_resize"),
        ({"do_rescale": False}, "do_rescale"),
        ({"rescale_factor": 1 / 127.5}, "expected 1/255"),
        ({"resample": 9}, "from 0 to 5"),
        ({"resample": True}, "from 0 to 5"),
        ({"size": {"height": 224, "width": 196}}, "as many rows as columns"),
        ({"size": {}}, "height"),
        ({"do_center_crop": True, "crop_size": 200}, "the middle is cut out"),
        ({"image_mean": 0.5}, "a number for each channel"),
        ({"image_mean": [0.5]}, "1 means and 3 deviations"),
        ({"image_std": [0.5, 0.0, 0.5]}, "numbers above 0"),
        ({"image_std": [0.5, "x", 0.5]}, "a number"),
    ],
)
def test_what_would_give_other_pixels_is_refused(changes, message):
    with pytest.raises((UnsupportedError, DataError), match=message):
        read(VIT | changes)


def test_timm():
    told = {
        "input_size": [3, 96, 96],
        "interpolation": "bilinear",
        "crop_pct": 0.9,
        "mean": [0.1] * 3,
        "std": [0.2] * 3,
    }

    def timm(**changes):
        return read_timm_preprocessing(HuggingFaceConfig({"pretrained_cfg": told | changes}))

    expected = Preprocessing(image_size=96, mean=(0.1,) * 3, std=(0.2,) * 3, crop=0.9)
    assert timm() == expected
    assert timm(crop_mode="squash") == expected.override({"crop": None})
    for changes, message in (
        ({"crop_mode": "border"}, "crop_mode"),
        ({"interpolation": "random"}, "one of nearest"),
        ({"input_size": [3, 96, 64]}, "as many rows as columns"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            timm(**changes)


CASES = {
    "pressed": Preprocessing(image_size=20, resample="bicubic", mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6)),
    "cut": Preprocessing(image_size=20, resample="bilinear", crop=0.75),
    "large": Preprocessing(image_size=400),
}


@pytest.mark.parametrize("case", CASES)
def test_there_and_back(case, tmp_path):
    (tmp_path / PREPROCESSOR).write_text(json.dumps(preprocessing_settings(CASES[case])))
    assert HuggingFaceFolder(tmp_path).preprocessing == CASES[case]


@pytest.mark.parametrize("case", CASES)
def test_transformers_opens_what_is_written(case, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
    pil = pytest.importorskip("PIL.Image")
    given = CASES[case]
    (tmp_path / PREPROCESSOR).write_text(json.dumps(preprocessing_settings(given)))
    theirs = transformers.AutoImageProcessor.from_pretrained(tmp_path)
    image = pil.fromarray(np.random.default_rng(0).integers(0, 256, (37, 52, 3), dtype=np.uint8))
    found = np.asarray(theirs(image, return_tensors="np")["pixel_values"])[0]
    side, way = given.image_size, getattr(pil.Resampling, given.resample.upper())
    if given.crop is None:
        ready = image.resize((side, side), way)
    else:
        edge = int(side / given.crop)
        larger = image.resize((int(edge * 52 / 37), edge), way)
        left, top = (larger.width - side) // 2, (larger.height - side) // 2
        ready = larger.crop((left, top, left + side, top + side))
    expected = (np.asarray(ready) / 255 - np.array(given.mean)) / np.array(given.std)
    assert found.shape == (3, side, side)
    assert np.abs(found - expected.transpose(2, 0, 1)).max() < 1e-5


def test_what_cannot_be_written_is_refused():
    with pytest.raises(UnsupportedError, match="cut out of larger ones"):
        preprocessing_settings(Preprocessing(image_size=384, crop=0.9))
    with pytest.raises(ConfigError, match="crop = 0"):
        Preprocessing(crop=0.0)


def test_a_folder_that_says_nothing(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit"}))
    assert HuggingFaceFolder(tmp_path).preprocessing is None
    (tmp_path / PREPROCESSOR).write_text("[]")
    with pytest.raises(DataError, match="no table"):
        HuggingFaceFolder(tmp_path).preprocessing  # noqa: B018
