"""From a run and what a person types: every map with words for its rows and columns, or a reason why not."""

from pathlib import Path

import numpy as np
import pytest

from fixtures.families import ATTENDING, FAMILIES, Case
from weft.analysis import attention_maps
from weft.analysis.view import AttentionView
from weft.blocks.attention import Grid
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.tasks.run import Run, load
from weft.tasks.use import has_attention

INPUTS = {
    "writer": ("The cat sat", {}),
    "single": ("a fine story", {}),
    "pairs": ("the film was icy", {"pair": "frost in the house"}),
    "masked": ("The [MASK] sat on a mat", {}),
    "questions": ("The cat sat", {"pair": "on a mat"}),
    "translator": ("film the", {}),
    "reads the same layer": ("film the", {}),
    "reads one table": ("film the", {}),
    "t5": ("film the", {"target": "the film"}),
    "bahdanau": ("film the", {}),
    "vit": (None, {}),
    "vit-class": (None, {}),
    "davit": (None, {}),
}


@pytest.fixture
def looks(desk):
    """`looks("vit")`: the run of this name, opened."""
    return lambda name: load(desk.run(name))


@pytest.fixture
def view(desk, looks):
    def make(name) -> tuple[Run, AttentionView]:
        given, more = INPUTS[name]
        run = looks(name)
        return run, run.attention(str(desk.image()) if given is None else given, **more)

    return make


@pytest.mark.parametrize("name", INPUTS)
def test_every_map_has_labels_and_rows_that_add_up(name, view):
    run, found = view(name)
    assert found.family == run.model_config.kind and found.title and found.facts
    assert len({one.name for one in found.maps}) == len(found.maps) > 0
    for one in found.maps:
        heads, asking, answering = one.weights.shape
        assert heads >= 1 and len(one.asking.labels) == asking and len(one.answering.labels) == answering
        assert all(one.asking.labels) and all(label.isprintable() for label in one.answering.labels)
        np.testing.assert_allclose(one.weights.sum(-1), 1, atol=1e-5)
        for side in (one.asking, one.answering):
            assert side.grid is None or side.labels[-1] == f"row {side.grid.rows}, column {side.grid.columns}"
    for part, rolled in found.rollouts.items():
        layers = found.parts[part]
        assert rolled.shape == layers[0].weights.shape[1:]
        np.testing.assert_allclose(rolled.sum(1), 1, atol=1e-6)
    assert len(repr(found)) < 200 and "<table>" in found._repr_html_()


def test_the_maps_are_those_of_the_model(view):
    run, found = view("writer")
    ids = run.tokenizer.encode("The cat sat").astype(np.int64)
    theirs = attention_maps(run.model, ids[None])
    assert [one.name for one in found.maps] == list(theirs) and len(found.maps) == 2
    for one in found.maps:
        np.testing.assert_array_equal(one.weights, theirs[one.name][0])
    assert found.maps[0].asking.labels == tuple("The␣cat␣sat")
    assert found.facts["tokens"] == "11" and "%" in found.facts["what follows"]
    causal = found.rollouts["layers"]
    assert (np.triu(causal, 1) == 0).all() and np.isclose(causal[0, 0], 1)


def test_pairs_are_read_with_their_marks_and_segments(view):
    run, found = view("pairs")
    ids, segments = run.tokenizer.encode_pair(*("the film was icy", "frost in the house"))
    theirs = attention_maps(run.model, (ids.astype(np.int64)[None], segments.astype(np.int64)[None]))
    np.testing.assert_allclose(found.maps[0].weights, theirs[found.maps[0].name][0], atol=1e-6)
    labels = found.maps[0].answering.labels
    assert labels[0] == "[CLS]" and labels.count("[SEP]") == 2 and "|" in found.title
    answer = run.classify(("the film was icy", "frost in the house"))
    assert found.facts["answer"].startswith(answer.label)


def test_a_gap_is_a_token_and_the_answer_is_told(view):
    run, found = view("masked")
    assert "[MASK]" in found.maps[0].asking.labels
    assert found.facts["fills in"].split()[0] == run.fill("The [MASK] sat on a mat").gaps[0][0].text


def test_what_is_written_is_what_the_run_finds_itself(view):
    run, found = view("translator")
    text = run.translate("film the").text
    assert found.facts["writes"] == text
    assert list(found.parts) == ["encoder", "decoder", "decoder → encoder"]
    assert list(found.rollouts) == ["encoder", "decoder"]
    own, across = found.parts["decoder"][0], found.parts["decoder → encoder"][0]
    assert own.asking.labels[0] == "[start]" and across.asking.labels[-1] == "→ [end]"
    assert across.answering == found.parts["encoder"][0].asking and across.answering.labels[-1] == "[end]"
    assert own.asking.labels[1:] == tuple(label.removeprefix("→ ") for label in across.asking.labels[:-1])
    given = run.attention("film the", target="the film of it")
    assert given.facts["writes"] == "the film of it (given)"
    other = given.parts["decoder → encoder"][0]
    assert other.asking.labels != across.asking.labels and other.answering == across.answering


def test_a_given_target_is_read_from_its_start(looks):
    run = looks("t5")
    found = run.attention("film the", target="the house")
    source, tokens = (run.tokenizer.encode(text).astype(np.int64) for text in ("film the", "the house"))
    source = np.append(source, run.tokenizer.end)
    theirs = attention_maps(run.model, (source[None], np.concatenate([[run.model_config.start], tokens])[None]))
    for one in found.maps:
        np.testing.assert_allclose(one.weights, theirs[one.name][0], atol=1e-6)


def test_a_t5_reads_its_marks_for_gaps(looks):
    found = looks("t5-fill").attention("The [MASK] sat on a [MASK]")
    labels = found.maps[0].answering.labels
    assert "<extra_id_0>" in labels and "<extra_id_1>" in labels and "writes" in found.facts


def test_one_table_of_source_and_target(view):
    _, found = view("reads one table")
    (encoder, *_), (decoder, *_) = found.parts["encoder"], found.parts["decoder"]
    assert decoder.answering.labels[: len(encoder.asking.labels)] == encoder.asking.labels
    assert decoder.answering.labels[len(encoder.asking.labels)] == "[start]"
    assert list(found.rollouts) == ["encoder"]


def test_a_recurrent_translator_looks_at_the_source(view):
    _, found = view("bahdanau")
    assert [(one.part, one.weights.shape[0]) for one in found.maps] == [("decoder → encoder", 1)]
    assert found.maps[0].answering.labels[-1] == "[end]" and not found.rollouts


def test_images_are_shown_as_the_model_saw_them(view):
    run, found = view("vit-class")
    assert found.image.shape == (12, 12, 1) and found.image.dtype == np.uint8 and found.image.max() > 200
    side = found.maps[0].asking
    assert side.labels[:2] == ("[CLS]", "row 1, column 1") and side.grid == Grid(3, 3) and len(side.labels) == 10
    assert "layers" in found.rollouts and "standing" in found.facts["answer"] and "%" in found.facts["answer"]
    run, found = view("vit")
    assert found.maps[0].asking.labels[0] == "row 1, column 1"
    (pixels,) = [np.asarray(found.image).transpose(2, 0, 1)]
    np.testing.assert_allclose(run.attention(pixels).maps[0].weights, found.maps[0].weights, atol=1e-6)


def test_windows_at_the_edge_of_a_image_have_a_border(view):
    _, found = view("davit")
    assert list(found.parts) == [f"stage {n}, {what}" for n in (1, 2) for what in ("windows", "channels")]
    first, channels = found.maps[0], found.maps[1]
    assert first.answering.grid == Grid(6, 6) and first.answering.labels[0] == "border" and "border" in found.facts
    assert first.weights.shape == (2, 36, 37) and first.weights[:, -1, 0].min() > 0  # 6 x 6 places in windows of 4
    assert (
        first.asking.labels == first.answering.labels[1:] and (first.weights[:, 0, 0] == 0).all()
    )  # a place in a whole window sees no border
    assert channels.answering.labels == tuple(f"channel {n}" for n in range(1, 5)) and channels.answering.grid is None
    assert not found.rollouts


def test_a_long_text_is_cut_and_that_is_told(looks):
    run = looks("writer")
    found = run.attention("The cat sat. " * 20)
    assert found.facts["tokens"] == "the first 16 of 260 tokens: more do not fit"
    assert len(found.maps[0].asking.labels) == 16
    found = looks("translator").attention("film the " * 30)
    assert found.facts["source"].startswith("the first 24 of")


def test_letters_that_are_torn_apart_are_shown_by_their_bytes(looks):
    labels = looks("writer").attention("a\n\x1b🦊").maps[0].asking.labels
    assert labels[:2] == ("a", "⏎") and "<F0>" in labels and not any("\x1b" in label for label in labels)


def test_only_one_layer_and_head(view):
    _, found = view("writer")
    one = found.only(layer=2, head=1)
    assert [m.name for m in one.maps] == ["layers.1.attention"] and not one.rollouts
    assert one.facts["shown"] == "layer 2, head 1 alone" and one.facts["tokens"] == found.facts["tokens"]
    np.testing.assert_array_equal(one.maps[0].weights, found.maps[1].weights[:1])
    assert found.only() is found
    for wrong in ({"layer": 99}, {"head": 99}, {"layer": 0}):
        with pytest.raises(ConfigError, match="expected from 1 to 2"):
            found.only(**wrong)


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_which_families_look(family):
    assert has_attention(Case(family).config()) == (family in ATTENDING)


@pytest.mark.parametrize("name", ["seq2seq", "resnet", "lstm", "bigram", "bag-of-words"])
def test_models_without_attention_are_refused(name, desk, looks):
    run = looks(name)
    assert not has_attention(run.model_config)
    with pytest.raises(UnsupportedError, match="has no attention to look at") as told:
        run.attention(str(desk.image()) if name == "resnet" else "the house")
    assert "expected one with attention: gpt, bert" in str(told.value) and len(str(told.value).splitlines()) <= 3


@pytest.mark.parametrize(
    ("name", "given", "more", "error", "told"),
    [
        ("writer", " ", {}, DataError, "an empty text"),
        ("single", "", {}, DataError, "an empty text"),
        ("translator", "\n", {}, DataError, "an empty text"),
        ("writer", "IMAGE", {}, DataError, "an image, for a gpt: it continues a text"),
        ("single", np.zeros((3, 3)), {}, DataError, "a ndarray, for a bert"),
        ("single", Path("book.txt"), {}, DataError, "for a bert: it reads text"),
        ("vit", "a text", {}, DataError, "reads no text"),
        ("writer", "a", {"pair": "b"}, UnsupportedError, "a pair of texts for a gpt"),
        ("vit", "IMAGE", {"pair": "b"}, UnsupportedError, "a pair of texts for a vit"),
        ("masked", "a", {"target": "b"}, UnsupportedError, "a target for a bert"),
        ("pairs", "a", {}, DataError, "1 text to classify together"),
        ("single", "a", {"pair": "b"}, DataError, "2 texts to classify together"),
    ],
)
def test_what_cannot_be_looked_at_is_said(name, given, more, error, told, desk, looks):
    given = str(desk.image()) if isinstance(given, str) and given == "IMAGE" else given
    with pytest.raises(error, match=told) as said:
        looks(name).attention(given, **more)
    assert len(str(said.value).splitlines()) <= 3
