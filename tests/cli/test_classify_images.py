"""Images on the command line: `weft classify`, `weft check`, `weft evaluate` and which task a folder is for."""

import csv
import json

import pytest

from fixtures.commands import image_classifier_command, run_weft
from fixtures.images import make_bars, write_image_folder
from fixtures.tables import write_table

pytest.importorskip("PIL", reason="images need Pillow (the extra `vision`)")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of images and a run that learned from it."""
    path = tmp_path_factory.mktemp("place")
    write_image_folder(path / "bars", 60)
    write_image_folder(path / "new", 8, seed=7)
    run_weft(*image_classifier_command("bars", "run", 60), cwd=path)
    return path


def test_one_image_with_all_its_classes(place):
    image = next((place / "new" / "lying").iterdir())
    told = run_weft("classify", "run", str(image), cwd=place).stdout.splitlines()
    assert told[0].startswith("lying") and told[0].endswith("%") and len(told) == 2


def test_files_and_folders_in_order(place):
    told = run_weft("classify", "run", "new/standing", "new/lying", "--json", cwd=place).stdout.splitlines()
    answers = [json.loads(line) for line in told]
    assert [answer["label"] for answer in answers] == ["standing"] * 4 + ["lying"] * 4
    names = [answer["path"] for answer in answers]
    assert names[:4] == sorted(names[:4]) and names[0].startswith("new/standing")


def test_a_list_of_paths_into_a_table(place, tmp_path):
    paths = sorted(str(path) for path in (place / "new").rglob("*.png"))
    (tmp_path / "paths.txt").write_text("\n".join(paths) + "\n")
    run_weft(
        "classify", "run", "--input", str(tmp_path / "paths.txt"), "--output", str(tmp_path / "out.csv"), cwd=place
    )
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [row["path"] for row in rows] == paths
    assert all(row["predicted"] in row["path"] for row in rows)


def test_a_table_of_paths(place):
    rows = [(f"new/{label}/{n:03}.png", n) for n, label in enumerate(make_bars(8, seed=7)[1])]
    write_table(place / "table.csv", ("file", "note"), rows)
    told = run_weft("classify", "run", "--input", "table.csv", "--json", cwd=place).stdout.splitlines()
    assert [json.loads(line)["note"] for line in told] == [str(n) for n in range(8)]
    assert all(json.loads(line)["predicted"] in json.loads(line)["file"] for line in told)


def test_a_broken_image_is_named_and_the_others_are_answered(place, tmp_path):
    for file in (place / "new" / "lying").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "000.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    found = run_weft("classify", "run", str(tmp_path), "--json", cwd=place, check=False)
    assert found.returncode == 1 and len(found.stdout.splitlines()) == 4
    assert "000.png" in found.stderr and "could not be read" in found.stderr


@pytest.mark.parametrize(("given", "told"), [("nothing.png", "nothing.png"), ("empty", "holds no images")])
def test_what_is_not_there(place, given, told):
    (place / "empty").mkdir(exist_ok=True)
    found = run_weft("classify", "run", given, cwd=place, check=False)
    assert found.returncode == 1 and told in found.stderr and "Traceback" not in found.stderr


def test_check_tells_what_is_there(place):
    told = run_weft("check", "bars", cwd=place).stdout
    assert "2 classes" in told and "12 × 12 pixels, grey" in told and "standing" in told
    found = json.loads(run_weft("check", "bars", "--test", "new", "--json", cwd=place).stdout)
    assert found["train"]["images"] + found["validation"]["images"] == 60 and found["test"]["images"] == 8
    assert found["train"]["classes"] == {"lying": 27, "standing": 27}


def test_check_warns_of_few_and_of_copies(place, tmp_path):
    write_image_folder(tmp_path / "few", 12)
    first = next((tmp_path / "few" / "lying").iterdir())
    for n in range(3):
        (tmp_path / "few" / "lying" / f"copy{n}.png").write_bytes(first.read_bytes())
    told = run_weft("check", "few", cwd=tmp_path).stdout
    assert "fewer than 20" in told and "equal an earlier one" in told


def test_check_refuses_what_means_nothing(place):
    found = run_weft("check", "bars", "--tokenizer", "bpe", cwd=place, check=False)
    assert found.returncode == 2 and "no text" in found.stderr
    found = run_weft("check", "bars", "--pair", "x", cwd=place, check=False)
    assert found.returncode == 2 and "--pair" in found.stderr


def test_a_folder_of_images_is_classified_without_being_told(place):
    told = run_weft("train", "bars", "--dry-run", "--steps", "1", cwd=place)
    assert "Learning 2 classes from 54 grey images" in told.stdout + told.stderr


def test_evaluate(place):
    found = json.loads(run_weft("evaluate", "run", "--json", cwd=place).stdout)
    assert found["measured_on"] == "validation" and found["accuracy"] > 0.8
    assert json.loads(run_weft("evaluate", "run", "new", "--json", cwd=place).stdout)["examples"] == 8


def test_runs_lists_it(place):
    assert "run" in run_weft("runs", ".", cwd=place).stdout
