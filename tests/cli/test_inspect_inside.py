"""`weft inspect RUN --health, --reach, --flow`, as typed."""

import json

import pytest

import weft
from fixtures.commands import generator_command, image_classifier_command, read_error_lines, run_weft, set_flags
from fixtures.images import write_image_folder
from fixtures.texts import make_text


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inside")
    (folder / "book.txt").write_text(make_text(3000))
    run_weft(*generator_command("book.txt", "run", 6, "--set", "training.evaluate_every=3"), cwd=folder)
    return folder


def told_by(place, *words):
    return json.loads(run_weft("inspect", *words, "--json", cwd=place).stdout)


def test_health_of_every_head(place):
    found = told_by(place, "run", "--health")["health"]
    assert found["read"] == "a few validation inputs" and found["sentences"]
    assert [(layer["layer"], len(layer["heads"])) for layer in found["layers"]] == [(1, 2), (2, 2)]
    shown = run_weft("inspect", "run", "--health", cwd=place).stdout
    assert found["sentences"][0] in shown and "1.2" in shown
    head = found["layers"][0]["heads"][1]
    assert f"{head['relative_entropy']:.3g}" in shown


def test_health_of_an_input(place):
    found = told_by(place, "run", "--health", "the cat sat")["health"]
    assert found["read"] == "the input that was given"
    assert found["layers"][0]["heads"][0]["rows"] == len("the cat sat") - 1, "characters; the first sees itself alone"


def test_no_option_gives_a_short_summary(place):
    shown = run_weft("inspect", "run", cwd=place).stdout
    assert "parameters" in shown and "Softmax health" in shown and "relative" not in shown
    found = told_by(place, "run")
    assert found["parameters"]["total"] and list(found["health"]) == ["read", "sentences"]
    assert "health" not in told_by(place, "gpt-tiny")


def test_no_summary_where_the_data_are_gone(tmp_path):
    (tmp_path / "book.txt").write_text(make_text(2000))
    run_weft(*generator_command("book.txt", "run", 2), cwd=tmp_path)
    (tmp_path / "book.txt").unlink()
    assert "health" not in told_by(tmp_path, "run")
    refused = run_weft("inspect", "run", "--health", cwd=tmp_path, check=False)
    assert refused.returncode == 1 and "book.txt does not exist" in refused.stderr


def test_reach_of_a_run_and_of_a_named_size(place):
    found = told_by(place, "run", "--reach", "5")["reach"]
    assert found["seen"] == [6, 6] and found["agrees"] is True and found["position"] == 5
    local = set_flags("model.attention.kind=local", "model.attention.window=3", "model.width=32")
    found = told_by(place, "gpt-tiny", *local, "--reach", "20", "--length", "24")["reach"]
    assert found["seen"] == [3, 5, 7, 9] and found["agrees"] is True
    shown = run_weft("inspect", "gpt-tiny", *local, "--reach", "20", "--length", "24", cwd=place).stdout
    assert "..................##o..." in shown and "Measured by gradients: the same." in shown


def test_reach_of_models_without_attention(place):
    found = told_by(place, "5gram", "--reach", "20", "--length", "24")["reach"]
    assert found["seen"] == [4] and found["predicted"] == ["0" * 17 + "1111" + "000"] and found["measured"] is None
    small = set_flags("model.widths=16,16", "model.depths=1,1", "model.groups=4", "model.channels=1")
    found = told_by(place, "resnet", *small, "--reach", "--length", "14")["reach"]
    assert found["grid"] == [14, 14] and found["seen"] == [25, 121] and found["agrees"] is True
    shown = run_weft("inspect", "resnet", *small, "--reach", "--length", "14", cwd=place).stdout
    assert "Statistics of group norms are held" in shown and "  .....#####....\n" in shown
    found = told_by(place, "bahdanau", *set_flags("model.width=16"), "--reach", "--length", "9")["reach"]
    assert found["seen"] == [18] and found["sources"] == 9 and found["agrees"] is True


@pytest.mark.parametrize(
    ("words", "grid", "middle"),
    [
        (["davit", "--length", "29"], [15, 15], 7 * 15 + 7),
        (["resnet", "--set", "model.stem=large", "--length", "30"], [8, 8], 4 * 8 + 4),
        (["vit-ti", "--set", "model.depth=1", "--length", "80"], [5, 5], 1 + 2 * 5 + 2),
        (["convnext", "--length", "18"], [9, 9], 4 * 9 + 4),
    ],
)
def test_the_middle_of_a_image_is_its_middle(place, words, grid, middle):
    found = told_by(place, *words, "--reach")["reach"]
    assert (found["grid"], found["position"], found["agrees"]) == (grid, middle, True)


def test_a_wide_image_on_a_narrow_terminal(place, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    small = set_flags("model.widths=16", "model.depths=1", "model.groups=4")
    shown = run_weft("inspect", "resnet", *small, "--length", "96", "--reach", cwd=place).stdout
    assert max(map(len, shown.splitlines())) <= 40
    row = next(line for line in shown.splitlines() if "o" in line and line.startswith("  ."))
    assert row == "  " + "." * 15 + "+o" + "." * 15


def test_reach_of_a_model_that_is_too_large_to_be_tried(place):
    """Nothing of its size is made: the pattern is known without weights."""
    found = told_by(place, "gpt2-xl", "--reach", "--length", "12")["reach"]
    assert found["seen"] == [12] * 48 and found["measured"] is None and found["agrees"] is None
    shown = run_weft("inspect", "vit-h", "--reach", cwd=place).stdout
    assert "Too large to be measured by gradients" in shown


def test_flow_of_a_run(place):
    found = told_by(place, "run", "--flow")["flow"]
    (now,) = found["now"]
    assert found["norm"] == "pre" and len(now["stream"]) == 3 and min(now["stream"]) > 0
    assert found["start"][0]["first_to_last"] is None, "the last map begins at zero"
    assert max(found["distance"]) == 1
    assert "At the start nothing passes" in run_weft("inspect", "run", "--flow", cwd=place).stdout


def test_flow_of_a_recurrent_classifier(tmp_path):
    """It reads tokens and says nothing of the next one: there is no distance."""
    rows = [(f"the {word} film", "good" if n % 2 else "bad") for n, word in enumerate("abcdefghijklmnop" * 4)]
    weft.train(rows, task="classify", model="lstm", steps=1, threads=1, out=tmp_path / "run", set={"model.width": 8})
    found = told_by(tmp_path, "run", "--flow")["flow"]
    assert found["now"] and "distance" not in found


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_images(place, ending):
    pytest.importorskip("matplotlib")
    name = f"inside.{ending}"
    run_weft("inspect", "run", "--health", "--reach", "7", "--flow", "--out", name, cwd=place)
    assert (place / name).stat().st_size > 5000
    again = run_weft("inspect", "run", "--flow", "--out", name, cwd=place, check=False)
    assert again.returncode == 1 and "there already" in again.stderr


def test_a_model_of_images(tmp_path):
    write_image_folder(tmp_path / "images")
    run_weft(*image_classifier_command("images", "looks", 2), cwd=tmp_path)
    found = told_by(tmp_path, "looks", "--reach", "--flow", "--health")
    assert found["reach"]["grid"] == [3, 3] and found["reach"]["position"] == 4
    assert found["health"]["layers"][0]["unit"] == "place" and "distance" not in found["flow"]
    shown = run_weft("inspect", "looks", "--reach", cwd=tmp_path).stdout
    assert "  ###\n  #o#\n  ###\n" in shown
    run_weft("inspect", "looks", "--reach", "--out", "reach.png", cwd=tmp_path)
    given = next((tmp_path / "images").rglob("*.png"))
    assert told_by(tmp_path, "looks", "--health", str(given))["health"]["layers"]


def test_what_cannot_be_is_refused(place):
    for words, said, code in (
        (["gpt-tiny", "--health"], "no weights", 2),
        (["gpt-tiny", "--flow"], "no weights", 2),
        (["run", "some text"], "without --health", 2),
        (["run", "5"], "without --reach", 2),
        (["run", "--reach", "--curves"], "one at a time", 2),
        (["run", "--reach", "--set", "model.attention.kind=local"], "the run as it is", 2),
        (["run", "--reach", "--out", "x.gif"], ".png or .svg", 2),
        (["run", "--reach", "99"], "from 0 to 15", 2),
        (["run", "--health", "a", "b"], "one input", 2),
        (["bag-of-words", "--reach"], "no layers and no places", 1),
        (["5gram", "--reach", "999"], "from 0 to 255", 2),
        (["gpt", "--reach", "--length", "30000", *set_flags("model.max_length=30000")], "a shorter text", 1),
        (
            ["resnet", "--reach", "--length", "4", *set_flags("model.widths=16,16,16", "model.depths=1,1,1")],
            "larger ones, fewer stages",
            1,
        ),
    ):
        refused = run_weft("inspect", *words, cwd=place, check=False)
        assert refused.returncode == code and said in refused.stderr, (words, refused.stderr)
        assert len(read_error_lines(refused)) <= 3


def test_narrow_terminals_do_not_break_it(place, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    shown = run_weft("inspect", "run", "--health", "--reach", "--flow", cwd=place).stdout
    assert "Softmax health" in shown and "\x1b" not in shown
