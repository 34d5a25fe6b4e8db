"""What `weft.load` gives: an object of the run's task, with its methods and no others."""

import pytest

import weft
from weft.errors import DataError, UnsupportedError, WeftError
from weft.tasks.classify.classifiers import ImageClassifier, TextClassifier
from weft.tasks.embed.text_encoder import TextEncoder
from weft.tasks.embed.vectors_run import WordVectors
from weft.tasks.fill.mask_filler import MaskFiller
from weft.tasks.generate.text_generator import TextGenerator
from weft.tasks.tag.tagger_run import Tagger
from weft.tasks.translate.translator_run import Translator

VERBS = {"generate", "stream", "samples", "classify", "translate", "fill", "tag", "embed", "similar", "analogy"}
COMMON = {"model", "tokenizer", "metrics", "evaluate", "attention", "report", "export"}
CAN = {
    TextGenerator: {"generate", "stream", "samples", "embed"},
    TextClassifier: {"classify", "embed"},
    ImageClassifier: {"classify"},
    Translator: {"translate"},
    MaskFiller: {"fill", "embed"},
    Tagger: {"tag", "embed"},
    TextEncoder: {"embed"},
    WordVectors: {"similar", "analogy", "embed"},
}


@pytest.mark.parametrize("kind", CAN, ids=lambda kind: kind.__name__)
def test_each_has_its_methods_and_no_others(kind):
    assert {name for name in VERBS if hasattr(kind, name)} == CAN[kind]
    assert all(hasattr(kind, name) for name in COMMON)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    rows = [("a fine warm film", "good"), ("a dull cold film", "bad")] * 20
    out = tmp_path_factory.mktemp("opened") / "run"
    small = {"model.width": 16, "model.depth": 1, "model.attention.heads": 2}
    return weft.train(rows, task="classify", model="bert", steps=2, threads=1, set=small, out=str(out))


def test_training_and_loading_give_the_object_of_the_task(run):
    assert type(run) is TextClassifier and type(weft.load(run.directory.path)) is TextClassifier
    shown = repr(run)
    assert shown.startswith(f"TextClassifier({run.directory.path}, bert, 2 classes, accuracy 0.")
    assert shown.endswith(" on validation)")
    assert "<td>TextClassifier</td>" in run._repr_html_()


def test_what_it_cannot_do_is_refused_with_what_it_can(run):
    assert not hasattr(run, "generate")
    with pytest.raises(UnsupportedError, match=r"is a TextClassifier and has no \.generate") as error:
        run.generate("a")
    assert ".classify" in str(error.value)


@pytest.mark.parametrize("given", [3, None, b"bytes", [3], {"text": 1}])
def test_other_types_are_refused(run, given):
    for ask in (run.classify, run.embed):
        with pytest.raises(WeftError, match="expected a text"):
            ask(given)


def test_only_a_path_is_loaded():
    with pytest.raises(DataError, match="expected the path of a run"):
        weft.load(3)


def test_the_report_can_be_written_again(run):
    page = run.directory.path / "report.html"
    page.unlink()
    assert run.report() == page and page.exists()
