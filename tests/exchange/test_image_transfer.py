"""Models of images from Hugging Face and timm into Weft and back: the same pixels, numbers, labels, and a proof."""

import json
import os

import numpy as np
import pytest
import torch

import weft
from fixtures.commands import run_weft, set_flags
from fixtures.images import make_bars, write_image_folder
from fixtures.runs import read_metrics
from fixtures.timm_models import import_timm_or_skip, make_timm_model, write_timm_folder
from fixtures.weights import move_weights
from weft.errors import DataError, UnsupportedError, WeftError
from weft.exchange.probes import ImageProbe
from weft.exchange.transfer import export_run, import_model
from weft.images.arrays import ResizeCrop, fit
from weft.images.decode import decode
from weft.models import ConvNextConverter, ViTConverter
from weft.models.preprocessing import PREPROCESSOR, Preprocessing
from weft.tasks.classify.image_data import as_input, read_data
from weft.tasks.classify.image_form import form_of, preprocessing_of
from weft.tasks.classify.prepared_pixels import compare_pixels
from weft.weights import Change, Row, WeightTable

pil = pytest.importorskip("PIL.Image", reason="images need Pillow (the extra `vision`)")
transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

VIT = {"image_size": 16, "patch_size": 4, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
VIT |= {"intermediate_size": 24}
CONVNEXT = {"hidden_sizes": [8, 12], "depths": [1, 2], "num_stages": 2}
NAMES = {"id2label": {0: "lying", 1: "standing"}, "label2id": {"lying": 0, "standing": 1}}
THREE = {"id2label": {0: "a", 1: "b", 2: "c"}, "label2id": {"a": 0, "b": 1, "c": 2}}
SEVERAL = {"problem_type": "multi_label_classification"}
CASES = {
    "vit": ("ViTForImageClassification", "ViTConfig", VIT | NAMES),
    "vit, several": ("ViTForImageClassification", "ViTConfig", VIT | THREE | SEVERAL),
    "vit, a number": ("ViTForImageClassification", "ViTConfig", VIT | {"num_labels": 1}),
    "vit, grey": ("ViTForImageClassification", "ViTConfig", VIT | NAMES | {"num_channels": 1}),
    "vit, trunk": ("ViTModel", "ViTConfig", VIT),
    "convnext": ("ConvNextForImageClassification", "ConvNextConfig", CONVNEXT | NAMES),
    "convnext, trunk": ("ConvNextModel", "ConvNextConfig", CONVNEXT),
}
MEANS = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4]}
PROCESSORS = {
    "pressed": {"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 16}, "resample": 2},
    "cut": {
        "image_processor_type": "ConvNextImageProcessor",
        "size": {"shortest_edge": 16},
        "crop_pct": 0.75,
        "resample": 3,
    },
    "whole": {
        "image_processor_type": "ConvNextImageProcessor",
        "size": {"shortest_edge": 16},
        "crop_pct": 1.0,
        "resample": 3,
    },
}


def model_of(case):
    """A model of theirs, with every parameter moved away from zeros and ones."""
    name, config, fields = CASES[case]
    torch.manual_seed(1)
    model = getattr(transformers, name)(getattr(transformers, config)(**fields)).eval()
    move_weights(model)
    return model


def a_folder(path, case="vit", processor="pressed"):
    """Their folder, with its settings for images."""
    model = model_of(case)
    model.save_pretrained(path)
    if processor is not None:
        means = MEANS if model.config.num_channels == 3 else {"image_mean": [0.4], "image_std": [0.2]}
        (path / PREPROCESSOR).write_text(json.dumps(PROCESSORS[processor] | means))
    return model


def a_image(path, shape=(37, 52), mode="RGB", seed=0):
    """Noise that is smooth enough to be an image, as a file."""
    drawn = np.random.default_rng(seed).integers(0, 256, (shape[0] // 4 + 1, shape[1] // 4 + 1, 3), dtype=np.uint8)
    pil.fromarray(drawn).resize(shape[::-1], pil.Resampling.BICUBIC).convert(mode).save(path)
    return path


def their_pixels(folder, path, mode="RGB"):
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    return processor(pil.open(path).convert(mode), return_tensors="pt")["pixel_values"]


def our_pixels(run, path):
    form = form_of(run)
    pixels = decode(path, channels=form.channels, size=form.size, cut=form.cut)
    return as_input(pixels[None], form.pixel_mean, form.pixel_deviation)


# -- pixels -----------------------------------------------------------------------------------


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(
    ("shape", "name"), [((37, 52), "a.png"), ((53, 34), "a.png"), ((16, 16), "a.png"), ((300, 410), "a.jpg")]
)
def test_images_are_prepared_as_there(processor, shape, name, tmp_path):
    a_folder(tmp_path / "hf", processor=processor)
    path, run = a_image(tmp_path / name, shape), weft.load(tmp_path / "hf")
    expected = their_pixels(tmp_path / "hf", path)
    assert (our_pixels(run, path) - expected).abs().max() < 1e-5
    form = form_of(run)
    plain = as_input(decode(path, channels=3, size=16)[None], form.pixel_mean, form.pixel_deviation)
    if shape != (16, 16) or processor == "cut":  # negative control: our own way gives other pixels
        assert (plain - expected).abs().max() > 0.01


@pytest.mark.parametrize("shape", [(37, 52), (53, 34), (16, 16), (9, 7)])
@pytest.mark.parametrize(
    "cut", [ResizeCrop(None, "bilinear"), ResizeCrop(0.75, "bicubic"), ResizeCrop(1.0, "bilinear")]
)
def test_arrays_become_what_files_become(cut, shape, tmp_path):
    path = a_image(tmp_path / "a.png", shape)
    pixels = np.asarray(pil.open(path)).transpose(2, 0, 1)[None]
    found = fit(pixels, channels=3, size=16, cut=cut)[0]
    expected = decode(path, channels=3, size=16, cut=cut)
    assert found.shape == expected.shape and np.abs(found.astype(int) - expected.astype(int)).max() <= 1


def test_a_filter_that_arrays_do_not_have_is_refused():
    with pytest.raises(UnsupportedError, match="arrays resized by lanczos"):
        fit(np.zeros((1, 3, 20, 20), dtype=np.uint8), channels=3, size=16, cut=ResizeCrop(None, "lanczos"))


def test_a_image_like_a_thread_takes_no_memory(tmp_path):
    pil.new("L", (40_000, 2), 7).save(tmp_path / "thread.png")
    assert (decode(tmp_path / "thread.png", channels=1, size=64, cut=ResizeCrop(0.5, "bilinear")) == 7).all()
    assert ResizeCrop(0.5).resized(8, 2, 64) == (512, 128) and ResizeCrop(None).resized(8, 2, 64) == (64, 64)


# -- using what comes from elsewhere ----------------------------------------------------------


@pytest.mark.parametrize("processor", ["pressed", "cut"])
def test_a_folder_classifies_as_there(processor, tmp_path):
    model = a_folder(tmp_path / "hf", processor=processor)
    import_model(tmp_path / "hf", tmp_path / "run")
    paths = [a_image(tmp_path / f"{n}.png", (30 + n, 41), seed=n) for n in range(3)]
    for place in ("hf", "run"):
        run = weft.load(tmp_path / place)
        assert run.task == "classify" and "2" in run._repr_html_() and "vocabulary" not in run._repr_html_()
        for path, answer in zip(paths, run.classify(paths), strict=True):
            with torch.no_grad():
                shares = model(their_pixels(tmp_path / "hf", path)).logits.softmax(-1)[0]
            assert answer.label == NAMES["id2label"][int(shares.argmax())]
            for label, number in NAMES["label2id"].items():
                assert abs(answer.probabilities[label] - float(shares[number])) < 1e-5
        pixels = np.asarray(pil.open(paths[0]))
        assert run.classify(pixels).probability == pytest.approx(run.classify(paths[0]).probability, abs=0.02)


def test_a_folder_of_timm_classifies(tmp_path):
    import_timm_or_skip()
    arguments = {"img_size": 16, "patch_size": 4, "embed_dim": 16, "depth": 1, "num_heads": 2, "num_classes": 2}
    model = make_timm_model("vit_tiny_patch16_224", **arguments)
    write_timm_folder(tmp_path / "timm", model, "vit_tiny_patch16_224", arguments, label_names=["lying", "standing"])
    path, run = a_image(tmp_path / "a.png", (40, 40)), weft.load(tmp_path / "timm")
    larger = np.asarray(pil.open(path).resize((17, 17), pil.Resampling.BICUBIC))[:16, :16]  # 16 / 0.9, to the letter
    pixels = as_input(larger.transpose(2, 0, 1)[None], (0.5, 0.4, 0.3), (0.2, 0.3, 0.4))
    with torch.no_grad():
        shares = model(pixels).softmax(-1)[0]
    assert run.classify(path).probabilities["lying"] == pytest.approx(float(shares[0]), abs=1e-5)
    made = import_model(tmp_path / "timm", tmp_path / "run")
    assert made["converter"] == "timm-vit" and made["notes"] == [] and made["image_size"] == 16
    certificate = export_run(tmp_path / "run", tmp_path / "hf")  # out by the other door
    assert certificate["architecture"] == "ViTForImageClassification"
    assert weft.load(tmp_path / "hf").classify(path).probability == pytest.approx(run.classify(path).probability)


def test_a_folder_that_does_not_say_how_is_trained_further_and_not_guessed(tmp_path):
    a_folder(tmp_path / "hf", processor=None)
    made = import_model(tmp_path / "hf", tmp_path / "run")
    assert made["use"] == "begin" and "nothing says how images are prepared" in made["notes"][0]
    assert "weft train classify FOLDER --from" in (tmp_path / "run" / "README.md").read_text()
    path = a_image(tmp_path / "a.png")
    for place in ("hf", "run"):
        run = weft.load(tmp_path / place)
        assert preprocessing_of(run) is None
        with pytest.raises(DataError, match=f"expected {PREPROCESSOR}"):
            run.classify(path)
        assert run.model.hidden(torch.zeros(1, 3, 16, 16)).shape == (1, 17, 16)
    certificate = export_run(tmp_path / "run", tmp_path / "out")
    assert "pixel_difference" not in certificate["transformers"] and not (tmp_path / "out" / PREPROCESSOR).exists()
    assert "AutoImageProcessor" not in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": {"shortest_edge": 2_000_000}, "do_center_crop": True, "crop_size": 16}, "crop|rows"),
        ({"size": {"height": 9000, "width": 9000}}, "at most 8192"),
        ({"image_mean": [0.1, 0.2], "image_std": [1, 1]}, "2 means or deviations for 3 channels"),
    ],
)
def test_hostile_settings_are_refused_before_any_memory_is_taken(changes, words, tmp_path):
    a_folder(tmp_path / "hf")
    (tmp_path / "hf" / PREPROCESSOR).write_text(json.dumps(PROCESSORS["pressed"] | MEANS | changes))
    with pytest.raises(WeftError, match=words):
        weft.load(tmp_path / "hf").classify(a_image(tmp_path / "a.png"))


def test_damaged_settings_of_a_run_are_named(tmp_path):
    a_folder(tmp_path / "hf")
    import_model(tmp_path / "hf", tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert Preprocessing.from_dict(config["origin"]["preprocessing"]) == weft.load(tmp_path / "hf").folder.preprocessing
    config["origin"]["preprocessing"]["resample"] = "by hand"
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match=r"origin\.preprocessing: resample"):
        form_of(weft.load(tmp_path / "run"))


def test_one_number_for_all_channels_will_do(tmp_path):
    a_folder(tmp_path / "hf", "vit, grey")
    (tmp_path / "hf" / PREPROCESSOR).write_text(json.dumps(PROCESSORS["pressed"]))  # three halves, if nothing is said
    assert form_of(weft.load(tmp_path / "hf")).pixel_mean == (0.5,)


# -- both ways --------------------------------------------------------------------------------


@pytest.mark.parametrize("processor", ["pressed", "cut"])
@pytest.mark.parametrize("case", CASES)
def test_in_and_out_again(case, processor, tmp_path):
    model = a_folder(tmp_path / "hf", case, processor)
    made = import_model(tmp_path / "hf", tmp_path / "run")
    sorts, grey = "trunk" not in case, "grey" in case
    assert made["task"] == ("classify" if sorts else "read") and made["use"] == ("look" if sorts else "begin")
    certificate = export_run(tmp_path / "run", tmp_path / "back")
    auto = "AutoModelForImageClassification" if sorts else "AutoModel"
    assert certificate["architecture"] == CASES[case][0] and certificate["auto_class"] == auto
    assert certificate["images_compared"] == 3 and "tokens_compared" not in certificate
    assert list(certificate["compared"]) == ["states", "class_logits" if sorts else "pooled"]
    assert min(certificate["compared"].values()) > 0.1
    found = certificate["transformers"]
    assert found["difference"] < 1e-5 and found["pixel_difference"] < 1e-6
    again = getattr(transformers, auto).from_pretrained(tmp_path / "back").eval()
    state, wanted = again.state_dict(), model.state_dict()
    assert type(again) is type(model) and state.keys() == wanted.keys()
    assert all(torch.equal(state[name], wanted[name]) for name in state)
    if sorts:
        assert again.config.id2label == model.config.id2label
        assert again.config.problem_type == (model.config.problem_type or again.config.problem_type)
    mode = "L" if grey else "RGB"
    path = a_image(tmp_path / "a.png", mode=mode)
    same = their_pixels(tmp_path / "back", path, mode) - their_pixels(tmp_path / "hf", path, mode)
    assert same.abs().max() < 1e-6
    card = (tmp_path / "back" / "README.md").read_text()
    assert f"pipeline_tag: image-{'classification' if sorts else 'feature-extraction'}\n" in card
    assert f"import {auto}, AutoImageProcessor\n" in card and f'convert("{mode}")' in card
    assert not (tmp_path / "back" / "generation_config.json").exists()
    import_model(tmp_path / "back", tmp_path / "twice")
    twice = weft.load(tmp_path / "twice")
    assert twice.model_config == weft.load(tmp_path / "run").model_config and form_of(twice) == form_of(
        weft.load(tmp_path / "run")
    )


def test_the_words_on_the_card_can_be_typed(tmp_path, monkeypatch):
    a_folder(tmp_path / "hf")
    import_model(tmp_path / "hf", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    export_run("run", "out")
    a_image(tmp_path / "image.png")
    card = (tmp_path / "out" / "README.md").read_text()
    lines = [line[4:] for line in card.splitlines() if line.startswith("    ")]
    names = {}
    exec("\n".join([*lines[:-1], f"said = {lines[-1]}"]), names)
    assert names["said"] == weft.load("run").classify("image.png").label


FLIP = Change(lambda rows: rows.flip(0), lambda rows: rows.flip(0))
WRONG = {
    "positions": ("vit", ViTConverter, "position_embeddings", "states"),
    "patches": ("vit", ViTConverter, "patch_embeddings.projection.weight", "states"),
    "classes": ("vit", ViTConverter, "classifier.weight", "class_logits"),
    "the pooler": ("vit, trunk", ViTConverter, "pooler.dense.bias", "pooled"),
    "the last norm": ("convnext, trunk", ConvNextConverter, "convnext.layernorm.weight", "pooled"),
    "depthwise": ("convnext", ConvNextConverter, "dwconv.bias", "states"),
}


@pytest.mark.parametrize("what", WRONG)
def test_rows_in_the_wrong_place_are_caught(what, tmp_path, monkeypatch):
    """Changed in both directions alike: Weft reads back what it wrote, others read it wrongly."""
    case, converter, name, part = WRONG[what]
    a_folder(tmp_path / "hf", case)
    import_model(tmp_path / "hf", tmp_path / "run")
    real = converter.table

    def flipped(row):
        hit = isinstance(row, Row) and row.foreign.endswith(name)
        return Row(row.foreign, row.ours, row.transposed, FLIP, ones=row.ones) if hit else row

    def table(self, config, **options):
        return WeightTable(*map(flipped, real(self, config, **options).rows))

    monkeypatch.setattr(converter, "table", table)
    with pytest.raises(DataError, match=f"opened by transformers, the folder gives {part} that differ"):
        export_run(tmp_path / "run", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["hf", "run"]


@pytest.mark.parametrize(
    "damage", [{"image_mean": [0.4, 0.5, 0.7]}, {"size": {"height": 20, "width": 20}}, {"resample": 3}]
)
def test_other_settings_for_images_are_caught(damage, tmp_path, monkeypatch):
    a_folder(tmp_path / "hf")
    import_model(tmp_path / "hf", tmp_path / "run")
    write = weft.exchange.transfer.write_json

    def write_wrongly(path, values):
        write(path, values | damage if path.name == PREPROCESSOR else values)

    monkeypatch.setattr("weft.exchange.transfer.write_json", write_wrongly)
    with pytest.raises(DataError, match="the folder prepares images in another way"):
        export_run(tmp_path / "run", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["hf", "run"]


@pytest.mark.parametrize("changes", [{"mean": (0.4, 0.5, 0.62)}, {"std": (0.2, 0.3, 0.41)}, {"resample": "bicubic"}])
def test_pixels_of_a_processor_that_does_something_else_are_caught(changes, tmp_path):
    a_folder(tmp_path / "hf")
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path / "hf")
    right = weft.load(tmp_path / "hf").folder.preprocessing
    assert compare_pixels(right, processor) < 1e-6
    with pytest.raises(DataError, match="prepares images that differ"):
        compare_pixels(right.override(changes), processor)
    with pytest.raises(DataError, match="images become"):
        compare_pixels(right.override({"image_size": 20}), processor)


def test_the_probe_shows_many_images_and_channels(tmp_path):
    a_folder(tmp_path / "hf")
    probe = ImageProbe(weft.load(tmp_path / "hf").model_config)
    assert probe.pixels.shape == (3, 3, 16, 16) and len(probe.pixels.unique()) > 2000
    assert torch.equal(probe.pixels, ImageProbe(weft.load(tmp_path / "hf").model_config).pixels)


# -- our own runs -----------------------------------------------------------------------------

TINY = ["model.width=16", "model.depth=1", "model.attention.heads=2", "model.patch=4", "training.batch=16"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder of images, runs that learned from it, and a folder of theirs that knows the same classes."""
    path = tmp_path_factory.mktemp("desk")
    write_image_folder(path / "bars" / "train", 50)
    write_image_folder(path / "bars" / "test", 16, seed=9)
    words = ["train", "classify", "bars", "--steps", "6", "--threads", "1"]
    run_weft(*words, "--model", "vit-ti", "--out", "vit", *set_flags(*TINY), cwd=path)
    stages = ("model.widths=8,12", "model.depths=1,1", "training.batch=16")
    run_weft(*words, "--model", "convnext-tiny", "--out", "convnext", *set_flags(*stages), cwd=path)
    a_folder(path / "hf")
    return path


@pytest.mark.parametrize("kind", ["vit", "convnext"])
def test_a_run_is_taken_away(kind, desk, tmp_path):
    found = run_weft("export", kind, str(tmp_path / "hf"), cwd=desk)
    assert "prepared pixels by 0" in found.stdout and "Left out" not in found.stdout
    run, path = weft.load(desk / kind), next((desk / "bars" / "test" / "lying").iterdir())
    data = run.config.data
    settings = json.loads((tmp_path / "hf" / PREPROCESSOR).read_text())
    assert settings["image_mean"] == list(data.pixel_mean) and settings["image_std"] == list(data.pixel_deviation)
    assert settings["size"] == {"shortest_edge": 12} and settings["crop_pct"] == 1.0 and settings["resample"] == 3
    model = transformers.AutoModelForImageClassification.from_pretrained(tmp_path / "hf").eval()
    with torch.no_grad():
        shares = model(their_pixels(tmp_path / "hf", path, "L")).logits.softmax(-1)[0]
    answer = run.classify(path)
    assert model.config.id2label == {0: "lying", 1: "standing"}
    assert answer.probabilities["lying"] == pytest.approx(float(shares[0]), abs=1e-5)
    assert weft.load(tmp_path / "hf").classify(path).probability == pytest.approx(answer.probability, abs=1e-5)
    assert f"weft export {kind} DIR" in (desk / kind / "README.md").read_text()


def test_the_size_that_a_model_is_made_for_is_that_of_its_images(desk):
    words = ["train", "classify", "bars", "--steps", "1", "--threads", "1", "--model", "vit-ti", "--out", "sized"]
    run_weft(*words, *set_flags(*TINY, "model.image_size=16"), cwd=desk)
    assert weft.load(desk / "sized").config.data.size == 16 == weft.load(desk / "sized").model_config.image_size
    run_weft(*words[:-1], "other", *set_flags(*TINY, "model.image_size=16", "data.size=12"), cwd=desk)
    found = json.loads(run_weft("export", "other", "other-hf", "--json", cwd=desk).stdout)
    assert weft.load(desk / "other").config.data.size == 12 and "interpolate_pos_encoding" in found["left_out"][0]
    path = next((desk / "bars" / "test" / "lying").iterdir())
    theirs = transformers.AutoModelForImageClassification.from_pretrained(desk / "other-hf").eval()
    with torch.no_grad():
        pixels = their_pixels(desk / "other-hf", path, "L")
        shares = theirs(pixels, interpolate_pos_encoding=True).logits.softmax(-1)[0]
    assert weft.load(desk / "other").classify(path).probabilities["lying"] == pytest.approx(float(shares[0]), abs=1e-4)


@pytest.mark.parametrize(("kind", "reason"), [("vit", "stem is empty"), ("resnet", "not resnet")])
def test_what_they_have_no_word_for_is_refused_and_not_offered(kind, reason, desk, tmp_path):
    words = ["train", "classify", "bars", "--steps", "1", "--threads", "1", "--model", kind, "--out"]
    run = tmp_path / "run"
    found = run_weft(*words, str(run), *set_flags("training.batch=16"), cwd=desk)
    assert "weft export" not in found.stderr and "weft export" not in (run / "README.md").read_text()
    found = run_weft("export", str(run), str(tmp_path / "out"), cwd=desk, check=False)
    assert found.returncode == 1 and reason in found.stderr and len(found.stderr.splitlines()) <= 3
    assert not (tmp_path / "out").exists()


# -- training that begins with it -------------------------------------------------------------

STILL = ["objective.augment.strength=0", "objective.augment.mirror=0"]


def further(start, out, *more):
    """Two steps with all images at once, none of them changed."""
    words = ["train", "classify", "bars/train", "--validation", "bars/test", "--from", str(start), "--out", str(out)]
    return [*words, "--steps", "2", "--threads", "1", *set_flags("training.batch=50", *STILL), *more]


def first_loss(model, pixels, labels):
    with torch.no_grad():
        return float(torch.nn.functional.cross_entropy(model(pixels).logits, torch.tensor(labels)))


def test_training_begins_with_their_weights_and_their_pixels(desk, tmp_path):
    run_weft(*further("hf", tmp_path / "run"), cwd=desk)
    log, data = read_metrics(tmp_path / "run"), weft.load(tmp_path / "run").config.data
    assert (data.size, data.channels, data.crop, data.resample) == (16, 3, None, "bilinear")
    assert data.pixel_mean == (0.4, 0.5, 0.6) and data.pixel_deviation == (0.2, 0.3, 0.4)
    files = [path for name in ("lying", "standing") for path in sorted((desk / "bars" / "train" / name).iterdir())]
    model = model_of("vit")  # its classes are the same, so its head stays too
    pixels = torch.cat([their_pixels(desk / "hf", path) for path in files])
    labels = [int(path.parent.name == "standing") for path in files]
    expected = first_loss(model, pixels, labels)
    assert log[0]["loss"] == pytest.approx(expected, abs=1e-4) and len(log) == 2
    assert abs(first_loss(model, pixels + 0.2, labels) - expected) > 1e-3  # negative control: other pixels tell
    certificate = export_run(tmp_path / "run", tmp_path / "out")  # and their settings go back with it
    assert certificate["transformers"]["pixel_difference"] < 1e-6
    found = json.loads((tmp_path / "out" / PREPROCESSOR).read_text())
    assert found["image_processor_type"] == "ViTImageProcessor" and found["image_mean"] == [0.4, 0.5, 0.6]


def test_training_begins_with_a_trunk_a_bare_folder_timm_and_a_run(desk, tmp_path, monkeypatch):
    a_folder(tmp_path / "trunk", "vit, trunk", "cut")
    run_weft(*further(tmp_path / "trunk", tmp_path / "one"), cwd=desk)
    assert weft.load(tmp_path / "one").model_config.head.classes == 2
    assert weft.load(tmp_path / "one").config.data.crop == 0.75
    a_folder(tmp_path / "bare", "convnext", None)
    run_weft(*further(tmp_path / "bare", tmp_path / "two"), cwd=desk)
    data = weft.load(tmp_path / "two").config.data
    assert data.channels == 3 and data.size == 12 and data.resample is None and data.pixel_mean[0] < 0.4
    import_timm_or_skip()
    arguments = {"dims": [8, 8, 8, 8], "depths": [1, 1, 1, 1], "num_classes": 5}
    write_timm_folder(tmp_path / "timm", make_timm_model("convnext_tiny", **arguments), "convnext_tiny", arguments)
    run_weft(*further(tmp_path / "timm", tmp_path / "three"), cwd=desk)
    data = weft.load(tmp_path / "three").config.data
    assert (data.size, data.crop, data.resample, data.pixel_mean) == (32, 0.9, "bicubic", (0.5, 0.4, 0.3))
    run_weft(*further("vit", tmp_path / "four"), cwd=desk)
    before, after = (weft.load(path).config.data for path in (desk / "vit", tmp_path / "four"))
    assert after.pixel_mean == before.pixel_mean and after.cut is None
    monkeypatch.chdir(desk)
    measured = read_data(after.override({"pixel_mean": (), "pixel_deviation": ()})).config
    assert measured.pixel_mean != before.pixel_mean  # which the images themselves would have said


def test_the_digits_are_brought_to_the_form_that_is_known(desk, tmp_path):
    words = [
        "train",
        "classify",
        "demo",
        "--from",
        "hf",
        "--steps",
        "1",
        "--threads",
        "1",
        "--out",
        str(tmp_path / "run"),
    ]
    run_weft(*words, *set_flags("training.batch=16"), cwd=desk)
    data = weft.load(tmp_path / "run").config.data
    assert (data.size, data.channels, data.pixel_mean) == (16, 3, (0.4, 0.5, 0.6))
    assert weft.load(tmp_path / "run").model_config.head.classes == 10


def test_what_the_user_says_of_the_images_wins_but_for_the_channels(desk, tmp_path):
    run_weft(*further("hf", tmp_path / "run", *set_flags("data.size=12", "data.crop=1")), cwd=desk)
    data = weft.load(tmp_path / "run").config.data
    assert (data.size, data.crop, data.resample) == (12, 1.0, "bilinear")
    found = run_weft(*further("hf", tmp_path / "grey", *set_flags("data.channels=1")), cwd=desk, check=False)
    assert found.returncode == 2 and "which knows 3" in found.stderr and not (tmp_path / "grey").exists()


def test_a_run_that_began_elsewhere_goes_on_after_a_stop(desk, tmp_path):
    run_weft(*further("hf", tmp_path / "run"), cwd=desk)
    run_weft("resume", str(tmp_path / "run"), "--steps", "1", cwd=desk)
    assert read_metrics(tmp_path / "run")[-1]["step"] == 3
    assert weft.load(tmp_path / "run").config.data.pixel_mean == (0.4, 0.5, 0.6)


@pytest.mark.parametrize("what", ["1", "embeddings"])
def test_frozen_parts_stay(what, desk, tmp_path):
    run_weft(*further("hf", tmp_path / "run", "--freeze", what), cwd=desk)
    before, after = (dict(weft.load(path).model.named_parameters()) for path in (desk / "hf", tmp_path / "run"))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    first = {"patches.weight", "patches.bias", "positions", "class_token"}
    still = {name for name in before if name in first or (what == "1" and name.startswith("layers.0."))}
    assert still.isdisjoint(changed) and "layers.1.attention.query.weight" in changed
    assert ("layers.0.attention.query.weight" in changed) == (what == "embeddings")
    found = run_weft(*further("hf", tmp_path / "more", "--freeze", "3"), cwd=desk, check=False)
    assert found.returncode == 2 and "at most 2" in found.stderr


# -- as people type it ------------------------------------------------------------------------


def test_import_and_use_as_people_type_it(desk, tmp_path):
    found = run_weft("import", "hf", "--out", str(tmp_path / "run"), cwd=desk)
    assert "vit, 0.01 M parameters, images of 16 × 16, 2 classes" in found.stdout
    assert found.stdout.splitlines()[-1] == f"Try:  weft classify {tmp_path / 'run'} image.png"
    path = next((desk / "bars" / "test" / "lying").iterdir())
    said = [run_weft("classify", str(place), str(path), cwd=desk).stdout for place in ("hf", tmp_path / "run")]
    assert said[0] == said[1] and "standing" in said[0]
    found = json.loads(run_weft("evaluate", "hf", "bars/test", "--json", cwd=desk).stdout)
    labels = ["lying", "standing"]
    files = [(path, name) for name in labels for path in (desk / "bars" / "test" / name).iterdir()]
    right = [weft.load(desk / "hf").classify(path).label == name for path, name in files]
    assert found["examples"] == 16 and found["accuracy"] == pytest.approx(np.mean(right))
    found = run_weft("evaluate", "hf", cwd=desk, check=False)
    assert found.returncode == 1 and "weft evaluate hf FOLDER" in found.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["embed", "hf", "a text"], "it looks at images, and gives no vectors"),
        (["generate", "hf", "a text"], "it looks at images"),
        (["fill", "hf", "a [MASK]"], "does not fill in"),
        (["translate", "hf", "a text"], "weft classify hf image.png"),
        (["train", "generate", "demo", "--from", "hf"], "it looks at images"),
        (["classify", "vit", "a text of mine"], "expected the path of an image"),
        (["classify", "hf", "long " * 200], "expected the path of an image"),
        (["export", "vit", "bars"], "bars is there already"),
    ],
)
def test_a_model_of_images_does_nothing_else(words, told, desk):
    found = run_weft(*words, cwd=desk, check=False)
    assert found.returncode != 0 and told in found.stderr and "Traceback" not in found.stderr
    assert found.stdout == ""


def test_a_number_comes_out_as_a_number(tmp_path):
    model = a_folder(tmp_path / "hf", "vit, a number")
    path = a_image(tmp_path / "a.png")
    with torch.no_grad():
        expected = float(model(their_pixels(tmp_path / "hf", path)).logits)
    assert weft.load(tmp_path / "hf").classify(path).label == pytest.approx(expected, abs=1e-4)
    assert make_bars(2)[1] == ["standing", "lying"]
