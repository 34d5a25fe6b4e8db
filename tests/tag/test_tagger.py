"""Using a tagger: words, tags, spans and probabilities; one at a time or many; foreign labels."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from fixtures.weights import move_weights
from weft.errors import DataError, UnsupportedError
from weft.models import BERTConfig
from weft.tasks.tag.alignment import encode_labels, encode_words
from weft.tasks.tag.baseline import MostFrequentTag
from weft.tasks.tag.demo import demo_sentences
from weft.tasks.tag.metrics import tag_scores
from weft.tasks.tag.tagger import WordTagger
from weft.text import WordPieceConfig

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
LOOKUP = {"ada": "B-PER", "lovelace": "I-PER", "london": "B-LOC", "new": "B-LOC", "york": "I-LOC"}


class Lookup(nn.Module):
    """A stand-in that knows the tags of words by their first subword, each with a probability of 0.9."""

    context = 16

    def __init__(self, tokenizer, labels, tags):
        super().__init__()
        self.table = nn.Embedding(tokenizer.vocab_size, len(labels))
        even = math.log(0.1 / (len(labels) - 1))
        weights = torch.full_like(self.table.weight, even)
        first = {int(tokenizer.encode(word)[0]): labels.index(tag) for word, tag in tags.items()}
        for token in range(tokenizer.vocab_size):
            weights[token, first.get(token, labels.index("O"))] = math.log(0.9)
        self.table.weight = nn.Parameter(weights)

    def hidden(self, tokens, segments=None, keep=None, *, packed=None):
        return self.table(tokens)

    def token_logits(self, hidden):
        return hidden


@pytest.fixture(scope="module")
def tokenizer():
    texts = [" ".join(words) for words in demo_sentences("train").words]
    known = ["ada lovelace lived in london and new york"] * 50
    return WordPieceConfig(vocab_size=900).train([*texts, *known])


@pytest.fixture(scope="module")
def tagger(tokenizer):
    return WordTagger(Lookup(tokenizer, LABELS, LOOKUP), tokenizer, LABELS)


def test_a_text_has_words_and_spans(tagger):
    text = "  Ada Lovelace lived in London,\nnot in New  York."
    found = tagger.tag(text)
    assert found.tags == ["B-PER", "I-PER", "O", "O", "B-LOC", "O", "O", "O", "B-LOC", "I-LOC", "O"]
    assert [(span.text, span.type) for span in found.spans] == [
        ("Ada Lovelace", "PER"),
        ("London", "LOC"),
        ("New  York", "LOC"),
    ]
    for part in (*found.words, *found.spans):
        assert text[part.start : part.end] == part.text
    assert found.words[0].probability == pytest.approx(0.9, abs=1e-6)
    assert [span.probability for span in found.spans] == pytest.approx([0.81, 0.9, 0.81], abs=1e-6)
    assert repr(found) == "TaggedText(11 words; 'Ada Lovelace': PER, 'London': LOC, 'New  York': LOC)"
    assert found.to_dict()["entities"][1] == {
        "text": "London",
        "type": "LOC",
        "probability": found.spans[1].probability,
        "start": 24,
        "end": 30,
    }


def test_several_texts_and_given_words(tagger):
    texts = ["Ada lived.", "", "  ", "London"]
    found = tagger.tag(texts)
    assert [each.tags for each in found] == [["B-PER", "O", "O"], [], [], ["B-LOC"]]
    assert [tagger.tag(text) for text in texts] == found and tagger.tag([]) == []
    given = tagger.tag_words(["Ada", "Lovelace", "lived"])
    assert given == tagger.tag("Ada Lovelace lived") and given.spans[0].text == "Ada Lovelace"
    assert tagger.tag_words([["Ada"], ["in", "London"]]) == [tagger.tag("Ada"), tagger.tag("in London")]
    assert tagger.tag_words([]).words == []
    assert tagger.predict([["Ada"], ["in", "London"]]) == [["B-PER"], ["O", "B-LOC"]]


def test_long_texts_are_read_in_windows(tagger):
    text = "in London and Ada Lovelace lived " * 40
    found = tagger.tag(text)
    assert len(found.words) == 240 and found.tags == ["O", "B-LOC", "O", "B-PER", "I-PER", "O"] * 40
    assert len(found.spans) == 80 and all(text[span.start : span.end] == span.text for span in found.spans)


def test_many_texts_are_the_same_as_each_alone(tokenizer):
    torch.manual_seed(0)
    head = {"kind": "tokens", "labels": LABELS}
    model = BERTConfig(vocab_size=tokenizer.vocab_size, width=16, depth=2, max_length=20, head=head).build().double()
    move_weights(model, 0.3)
    tagger = WordTagger(model, tokenizer, LABELS)
    texts = [" ".join(words) for words in demo_sentences("test").words[:40]] + ["word " * 100]
    together = tagger.tag(texts)
    assert len({tag for each in together for tag in each.tags}) > 2  # they say something
    for text, found in zip(texts, together, strict=True):
        alone = tagger.tag(text)
        assert alone.tags == found.tags
        gap = [a.probability - b.probability for a, b in zip(alone.words, found.words, strict=True)]
        assert np.abs(gap).max() < 1e-9


def test_labels_of_strangers(tokenizer):
    bioes = ("O", "S-PER", "B-LOC", "E-LOC")
    tags = {"ada": "S-PER", "new": "B-LOC", "york": "E-LOC", "london": "E-LOC"}
    tagger = WordTagger(Lookup(tokenizer, bioes, tags), tokenizer, bioes)
    found = tagger.tag("Ada Ada lived in New York and London")
    assert [span.text for span in found.spans] == ["Ada", "Ada", "New York", "London"]
    assert repr(tagger) == "WordTagger(Lookup, entities: LOC, PER, max_length=16)"
    plain = WordTagger(Lookup(tokenizer, ("O", "NN"), {"london": "NN"}), tokenizer, ("X", "NN"), max_length=8)
    assert plain.tag("in London").tags == ["X", "NN"] and plain.tag("in London").spans == []
    assert repr(plain) == "WordTagger(Lookup, 2 plain tags, max_length=8)"
    assert repr(plain.tag("London")) == "TaggedText(1 words; no entities)"


def test_what_cannot_tag_is_refused(tagger, tokenizer):
    with pytest.raises(UnsupportedError, match="Linear does not tag words"):
        WordTagger(nn.Linear(2, 2), tokenizer, LABELS)
    with pytest.raises(DataError, match=r"a list to tag\nexpected .*tag_words"):
        tagger.tag([["Ada", "lived"]])
    with pytest.raises(DataError, match="for a text, tag"):
        tagger.tag_words("Ada lived")
    for words in (["Ada", ""], [["Ada", 3]]):
        with pytest.raises(DataError, match="empty or no text"):
            tagger.tag_words(words)
    with pytest.raises(DataError, match="3 names for 5 labels"):
        WordTagger(tagger.model, tokenizer, LABELS[:3]).tag("Ada")


def test_a_small_model_learns_the_demo_beyond_the_simplest_answer(tokenizer):
    """The parts together: words to windows, labels to loss, logits to tags, tags to scores."""
    from weft.objectives import TokenClassification

    train, test = demo_sentences("train").part(range(600)), demo_sentences("test").part(range(100))
    labels = train.labels()
    encoded, wanted = encode_words(tokenizer, train.words, 48), encode_labels(train.tags, labels)
    torch.manual_seed(0)
    head = {"kind": "tokens", "labels": labels}
    model = BERTConfig(vocab_size=tokenizer.vocab_size, width=48, depth=2, max_length=48, head=head).build()
    special = tokenizer.special
    loss = TokenClassification(word_dropout=0.1, hidden=special.mask, whole=[special.classify, special.separate])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    order = torch.Generator().manual_seed(0)
    for _ in range(120):
        numbers = torch.randint(len(encoded.windows), (24,), generator=order).tolist()
        summed, count = loss(model, encoded.tagged_row(numbers, wanted))
        optimizer.zero_grad()
        (summed / count).backward()
        optimizer.step()
    told = WordTagger(model, tokenizer, labels).predict(test.words)
    simplest = MostFrequentTag(train.words, train.tags).predict(test.words)
    scores, baseline = (tag_scores(test.tags, side, plain=False) for side in (told, simplest))
    assert baseline["f1"] < 0.35 and scores["f1"] > baseline["f1"] + 0.3
