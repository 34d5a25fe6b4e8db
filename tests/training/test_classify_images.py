"""`weft train classify` on images: what it learns and refuses, and that a stopped run ends with the same bytes."""

import json
import shutil

import numpy as np
import pytest

import weft as package
from fixtures.commands import image_classifier_command, read_last_event, run_until_crash, run_weft, set_flags
from fixtures.images import make_bars, write_image_folder
from fixtures.runs import hash_run, read_metrics
from fixtures.tables import write_table
from weft.checkpoints import checkpoint
from weft.data.augmentation import Augmentation
from weft.tasks.classify import evaluator
from weft.training.trainer import Trainer

pytest.importorskip("PIL", reason="images need Pillow (the extra `vision`)")
STEPS = 60
MIXED = (
    "objective.augment.strength=1",
    "objective.augment.mixup=0.3",
    "objective.augment.cutmix=0.3",
    "objective.augment.erase=0.3",
)
EVERY = ("training.evaluate_every=7", "training.checkpoint_every=5", "model.dropout=0.1", *MIXED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of images with its own test, and a run that learned from it."""
    path = tmp_path_factory.mktemp("images")
    write_image_folder(path / "bars" / "train", 50)
    write_image_folder(path / "bars" / "test", 16, seed=9)
    run_weft(*image_classifier_command("bars", "run", STEPS), cwd=path)
    return path


def config_of(run):
    return json.loads((run / "config.json").read_text())


# -- learning ---------------------------------------------------------------------------------


def test_what_is_easily_told_apart_is_learned(folder):
    test = json.loads((folder / "run" / "test.json").read_text())
    assert test["accuracy"] > 0.9
    assert abs(read_metrics(folder / "run")[0]["loss"] - np.log(2)) < 0.05
    config = config_of(folder / "run")
    assert config["task"] == "classify" and config["model"]["kind"] == "vit"
    assert config["data"]["size"] == 12 and config["data"]["channels"] == 1 and config["tokenizer"] is None
    assert config["model"]["head"]["labels"] == ["lying", "standing"] and config["model"]["image_size"] == 12
    assert not (folder / "run" / "tokenizer.json").exists()
    assert "image.png" in (folder / "run" / "README.md").read_text()
    assert (folder / "run" / "report.html").exists()


def test_negative_control_shuffled_labels_stay_near_chance(tmp_path):
    pixels, labels = make_bars(80)
    np.random.default_rng(1).shuffle(labels)
    np.savez(tmp_path / "bars.npz", x_train=pixels[:60], y_train=labels[:60], x_test=pixels[60:], y_test=labels[60:])
    found = read_last_event(run_weft(*image_classifier_command("bars.npz", "run", STEPS, "--json"), cwd=tmp_path))
    assert found["measured_on"] == "test" and 0.2 < found["accuracy"] < 0.8


def test_images_and_arrays_are_classified(folder):
    run = package.load(folder / "run")
    pixels, labels = make_bars(8, seed=4)
    assert [answer.label for answer in run.classify(list(pixels))] == labels
    assert run.classify(pixels[0]).probabilities.keys() == {"lying", "standing"}
    path = next((folder / "bars" / "test" / "lying").iterdir())
    assert run.classify(str(path)).label == run.classify(path).label == "lying"
    assert run.classify([]) == []


def test_evaluation_again_gives_the_same(folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = package.load(folder / "run").evaluate()
    test = json.loads((folder / "run" / "test.json").read_text())
    assert found["measured_on"] == "test" and found["accuracy"] == test["accuracy"]
    assert found["loss"] == pytest.approx(test["test_loss"], rel=1e-4)
    other = package.load(folder / "run").evaluate(str(write_image_folder(folder / "more", 12, seed=3)))
    assert other["measured_on"] == "data" and other["examples"] == 12 and other["accuracy"] > 0.9


SMALL = {
    "davit": ("model.widths=16,16", "model.depths=1,1", "model.strides=2,2", "model.head_width=8", "model.window=3"),
    "convnext": ("model.patch=2", "model.widths=8,16", "model.depths=1,1", "model.layer_scale=0.1"),
    "resnet": ("model.widths=8,16", "model.depths=1,1", "model.groups=4"),
}


@pytest.mark.parametrize("model", SMALL)
def test_the_other_families_learn_too(folder, model):
    words = [
        "train",
        "classify",
        "bars",
        "--model",
        model,
        "--steps",
        "120",
        "--threads",
        "1",
        "--out",
        model,
        "--json",
    ]
    found = read_last_event(run_weft(*words, *set_flags(*SMALL[model], "training.batch=16"), cwd=folder))
    assert found["accuracy"] > 0.8
    assert config_of(folder / model)["model"]["kind"] == model
    assert package.load(folder / model).classify(make_bars(2)[0][1]).label == "lying"


@pytest.mark.parametrize("kind", ["window", "hierarchy"])
def test_other_attention_learns_too(folder, kind):
    more = set_flags(f"model.attention.kind={kind}", *(["model.attention.window=2"] if kind == "window" else []))
    words = image_classifier_command("bars", f"run-{kind}", STEPS, "--json", *more)
    assert read_last_event(run_weft(*words, cwd=folder))["accuracy"] > 0.8


def test_a_table_of_paths_and_numbers(folder, tmp_path):
    """A label that measures something is learned as a number."""
    pixels, _ = make_bars(60)
    bright = (pixels // 2 + np.linspace(0, 120, 60).astype(np.uint8)[:, None, None]).astype(np.uint8)
    from PIL import Image

    (tmp_path / "p").mkdir()
    for n, image in enumerate(bright):
        Image.fromarray(image).save(tmp_path / "p" / f"{n}.png")
    rows = [(f"p/{n}.png", f"{image.mean():.2f}") for n, image in enumerate(bright)]
    write_table(tmp_path / "t.csv", ("file", "brightness"), rows)
    plain = set_flags("objective.augment.colour=0", "objective.augment.shift=0")
    found = read_last_event(run_weft(*image_classifier_command("t.csv", "run", 60, "--json", *plain), cwd=tmp_path))
    assert found["pearson"] > 0.8
    answer = package.load(tmp_path / "run").classify(bright[50])
    assert abs(answer.label - bright[50].mean()) < 30


@pytest.mark.parametrize("listed", [False, True])
def test_arrays_from_python(tmp_path, monkeypatch, listed):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    pixels, labels = make_bars(40)
    data = list(zip(pixels, labels, strict=True)) if listed else (pixels, labels)
    run = package.train(data, task="classify", steps=2, threads=1, out=str(tmp_path / "run"), set={"training.batch": 8})
    assert run.model_config.kind == "vit" and run.model_config.head.labels == ("lying", "standing")
    assert len(list((tmp_path / "cache" / "images").iterdir())) == 1


def test_training_goes_on_from_another_run(folder):
    write_image_folder(folder / "small", 24, seed=5)
    words = ["train", "classify", "small", "--from", "run", "--steps", "2", "--out", "further", "--threads", "1"]
    run_weft(*words, "--set", "training.batch=8", cwd=folder)
    assert config_of(folder / "further")["start"] == "run"
    assert config_of(folder / "further")["model"]["width"] == 16


def test_deterministic_and_another_seed_is_another_run(folder):
    for name, seed in (("one", "3"), ("two", "3"), ("three", "4")):
        run_weft(*image_classifier_command("bars", name, 4, "--seed", seed, *set_flags(*EVERY)), cwd=folder)
    assert hash_run(folder / "one") == hash_run(folder / "two")
    assert hash_run(folder / "one")["model.safetensors"] != hash_run(folder / "three")["model.safetensors"]


# -- stopping and going on --------------------------------------------------------------------

POINTS = {
    "after step 2": (Trainer, "_step", 2, True),
    "after step 9": (Trainer, "_step", 9, True),
    "in an evaluation": (evaluator.Evaluator, "measure", 2, True),
    "in a save": (checkpoint, "save_file", 4, True),
    "before the temperature is fitted": (evaluator.Evaluator, "fit_temperature", 1, False),
    "before the test": (Trainer, "load_best", 1, False),
}


def everything(run):
    return hash_run(run) | {name: (run / name).read_text() for name in ("calibration.json", "test.json")}


@pytest.fixture(scope="module")
def undisturbed(folder):
    run_weft(*image_classifier_command("bars", "alone", 12, *set_flags(*EVERY)), cwd=folder)
    return folder


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_changes_nothing(undisturbed, point):
    """Augmentation, mixing, dropout, averaging and the order: all go on where they were."""
    out = undisturbed / point.replace(" ", "-")
    run_until_crash(POINTS[point], *image_classifier_command("bars", out, 12, *set_flags(*EVERY)), cwd=undisturbed)
    run_weft("resume", str(out), cwd=undisturbed)
    assert everything(out) == everything(undisturbed / "alone")


def test_negative_control_other_changes_of_images_give_other_bytes(undisturbed, monkeypatch):
    run_until_crash(
        (Trainer, "_step", 9, True),
        *image_classifier_command("bars", "shifted", 12, *set_flags(*EVERY)),
        cwd=undisturbed,
    )
    drawn = Augmentation._draws
    monkeypatch.setattr(Augmentation, "_draws", lambda self, numbers, purpose: drawn(self, numbers + 1, purpose))
    run_weft("resume", "shifted", cwd=undisturbed)
    assert everything(undisturbed / "shifted") != everything(undisturbed / "alone")


def test_other_images_are_not_gone_on_with(folder, tmp_path):
    shutil.copytree(folder / "bars", tmp_path / "bars")
    run_until_crash(
        (Trainer, "_step", 3, True), *image_classifier_command("bars", "run", 6, *set_flags(*EVERY)), cwd=tmp_path
    )
    next((tmp_path / "bars" / "train" / "lying").iterdir()).unlink()
    found = run_weft("resume", "run", cwd=tmp_path, check=False)
    assert found.returncode == 1 and "have changed since this run began" in found.stderr


def test_a_finished_run_is_trained_further(folder, tmp_path):
    shutil.copytree(folder / "bars", tmp_path / "bars")
    run_weft(*image_classifier_command("bars", "run", 4), cwd=tmp_path)
    run_weft("resume", "run", "--steps", "3", cwd=tmp_path)
    assert read_metrics(tmp_path / "run")[-1]["step"] == 7


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (("--tokenizer", "bpe"), 2, "tokenizer"),
        (("--model", "vit-b", "--set", "data.size=8"), 2, "smaller patches"),
        (("--set", "objective.augment.mixup=2"), 2, "mixup"),
        (("--set", "model.patch=5"), 2, "multiple"),
        (("--set", "data.pixel_mean=1"), 2, "found out"),
        (("--sample", "x"), 2, "sample"),
        (("--set", "data.validation_share=0"), 2, "validation_share"),
    ],
)
def test_refused_before_anything_is_written(folder, tmp_path, more, code, told):
    shutil.copytree(folder / "bars" / "train", tmp_path / "bars")
    words = ["train", "classify", "bars", "--steps", "2", "--out", "run", "--threads", "1"]
    found = run_weft(*words, "--set", "model.stem=4", *more, cwd=tmp_path, check=False)
    assert found.returncode == code, found.stderr
    assert told in found.stderr and "Traceback" not in found.stderr
    assert not (tmp_path / "run").exists()


def test_a_model_for_texts_does_not_look_at_images(folder):
    found = run_weft("train", "classify", "bars", "--model", "bert", "--steps", "1", cwd=folder, check=False)
    assert found.returncode == 2 and "bars holds images" in found.stderr and "vit" in found.stderr


def test_a_model_for_texts_is_no_beginning(folder, desk):
    words = ["train", "classify", str(folder / "bars"), "--from", str(desk.run("single")), "--steps", "1"]
    found = run_weft(*words, cwd=folder, check=False)
    assert found.returncode != 0 and "does not look at images" in found.stderr


def test_few_images_are_warned_of(folder):
    words = ["train", "classify", "bars", "--dry-run", "--steps", "2", "--set", "data.validation_share=0.5"]
    assert "very little to learn from" in run_weft(*words, cwd=folder).stderr
