"""Sentences as tokens: what they spell, where they begin, and that documents are kept apart."""

import numpy as np
import pytest

from weft.data import tokenise_sentences
from weft.errors import DataError
from weft.text import Corpus, TokenizerConfig
from weft.text.sentences import split_documents

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
TEXT = "One cat sat. Two dogs ran! Why?\n\nThree birds.\n\n你好。我是王。 Four mice hid. " * 3
KINDS = ("wordpiece", "bpe", "words", "characters", "bytes")


def tokenizer(kind, text=TEXT):
    return TokenizerConfig.from_config(kind).train([text] * 2, special=SPECIAL)


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_those_of_the_text(kind):
    made = tokenizer(kind)
    found = tokenise_sentences(Corpus.of_text(TEXT), made)
    wanted = split_documents(TEXT)
    assert found.document_count == len(wanted) and len(found) == sum(map(len, wanted))
    assert np.diff(found.documents).tolist() == [len(document) for document in wanted]
    assert found.sentences[0] == 0 and found.sentences[-1] == len(found.ids) == len(found.words)
    assert found.words[found.sentences[:-1]].all()
    flat = [sentence for document in wanted for sentence in document]
    for number, sentence in enumerate(flat):
        spelled = made.decode(found.tokens(number))
        if kind == "wordpiece":
            assert found.tokens(number).tolist() == made.encode(sentence).tolist()
        else:
            assert spelled.strip() == sentence
    if kind != "wordpiece":  # the spaces between sentences are there, and none between Chinese ones
        first = found.sentences[found.documents[:-1]].tolist()
        spelled = [made.decode(part) for part in np.split(found.ids, first[1:])]
        assert spelled[0] == "One cat sat. Two dogs ran! Why?"
        assert spelled[2].startswith("你好。我是王。 Four mice hid.")


def test_files_are_documents_and_progress_is_told():
    told = []
    corpus = Corpus.of_text("One. Two.", "Three.")
    found = tokenise_sentences(corpus, tokenizer("words"), progress=lambda *numbers: told.append(numbers))
    assert found.documents.tolist() == [0, 2, 3]
    assert told[-1] == (corpus.characters, corpus.characters) and told == sorted(told)


def test_what_has_no_tokens_is_no_sentence():
    made = tokenizer("wordpiece")
    found = tokenise_sentences(Corpus.of_text("One cat.\n\n\x00\x01\n\nTwo dogs."), made)
    assert found.document_count == 2 and len(found) == 2
    with pytest.raises(DataError, match="no sentence"):
        tokenise_sentences(Corpus.of_text("\x00\x01"), made)
