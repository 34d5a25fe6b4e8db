"""A run that tags words, opened: its tagger, and how good it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from weft.errors import DataError, UnsupportedError
from weft.models.capabilities import TagsTokens
from weft.tasks.data_facts import evaluation_part
from weft.tasks.tag.alignment import encode_words
from weft.tasks.tag.baseline import MostFrequentTag
from weft.tasks.tag.data import read_tag_data
from weft.tasks.tag.evaluation import measured
from weft.tasks.tag.files import TagConfig, open_tagged
from weft.tasks.tag.metrics import tag_scores
from weft.tasks.tag.sentences import TaggedSentences
from weft.tasks.tag.tagger import WordTagger
from weft.tasks.tag.words import BASELINE

if TYPE_CHECKING:
    from weft.tasks.run import Run

LONGEST = 512  # tokens that an imported model reads at a time


def tagger_of(run: Run) -> WordTagger:
    """What tags texts with a run, or with a model from elsewhere."""
    if TagsTokens not in run.model_config.provides:
        raise UnsupportedError(
            f"{run.directory.path} does not tag words",
            expected="a run of weft train tag, or a model for token classification from Hugging Face",
        )
    labels = run.model_config.head.labels  # type: ignore[attr-defined]
    return WordTagger(run.model, run.tokenizer, labels, max_length=_recorded(run).length or LONGEST)


def evaluate(run: Run, *files: str) -> dict[str, Any]:
    """All metrics: on the run's own test or validation sentences, or on other files."""
    tagger, simplest = tagger_of(run), {}
    if files:
        sentences, measured_on = open_tagged(files, _recorded(run), "test"), "data"
    elif run.is_imported:
        raise DataError(
            f"{run.directory.path} was not trained here: it has no sentences of its own",
            expected="a file to measure it on",
            advice=f"weft evaluate {run.directory.path} test.conll",
        )
    else:
        data = read_tag_data(_recorded(run))
        measured_on, sentences = evaluation_part(data)
        metric = "accuracy" if data.plain else "f1"
        told = MostFrequentTag(data.train.words, data.train.tags).predict(sentences.words)
        simplest = {BASELINE + metric: tag_scores(sentences.tags, told, plain=data.plain)[metric]}
    _check_kind(run, tagger, sentences)
    words = encode_words(tagger.tokenizer, sentences.words, tagger.max_length)
    found = measured(run.model, words, sentences.tags, tagger.labels, plain=tagger.plain, whole=True)
    loss = {"loss": found.pop("validation_loss")} if "validation_loss" in found else {}
    return {**loss, **found, **simplest, "sentences": len(sentences), "measured_on": measured_on}


def _recorded(run: Run) -> TagConfig:
    """The data that it learned from; a model from elsewhere has none."""
    return TagConfig(train=()) if run.is_imported else cast("TagConfig", run.config.data)


def _check_kind(run: Run, tagger: WordTagger, sentences: TaggedSentences) -> None:
    """Entities are not compared with plain tags."""
    if sentences.scheme != "none" and sentences.plain != tagger.plain:
        kinds = ["plain tags" if plain else "entities" for plain in (sentences.plain, tagger.plain)]
        given = f"{sentences.name} has {kinds[0]}, {run.directory.path} knows {kinds[1]}"
        raise DataError(given, expected="sentences with tags of the same kind")
