"""Where words begin, in every scheme."""

from itertools import pairwise

import numpy as np
import pytest

from weft.text import TokenizerConfig
from weft.text.word_edges import WordEdges

TEXT = "The unbelievable cat, naïve as ever, sat on 42 mats. " * 40
WANTED = ["The", " unbelievable", " cat", ",", " naïve", " as", " ever", ",", " sat", " on", " 42", " mats", "."]
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")


def words(tokenizer, text):
    ids = tokenizer.encode(text)
    begins = WordEdges.of(tokenizer).begins(ids, np.array([0]))
    assert begins[0]
    edges = [*np.flatnonzero(begins), len(ids)]
    return [tokenizer.decode(ids[a:b]) for a, b in pairwise(edges)]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words", "characters", "bytes"])
def test_words_are_put_together(kind):
    tokenizer = TokenizerConfig.from_config(kind).train([TEXT], special=SPECIAL)
    assert words(tokenizer, TEXT[: TEXT.index(".") + 1]) == WANTED
    unseen = words(tokenizer, "A zzyzx. Ok")  # spelled in pieces, and still one word
    assert unseen == ["A", " zzyzx", ".", " Ok"]


def test_word_pieces_say_it_themselves():
    tokenizer = TokenizerConfig.from_config({"kind": "wordpiece", "vocab_size": 60}).train([TEXT])
    found = words(tokenizer, "unbelievable mats.")
    assert len(tokenizer.encode("unbelievable")) > 1
    assert found[0] == "unbelievable" and found[-1] == "."


def test_scripts_without_spaces_have_short_words():
    text = "我是王先生。今日は good。" * 20
    for kind in ("characters", "bytes"):
        found = words(TokenizerConfig.from_config(kind).train([text], special=SPECIAL), "我是王。 good day")
        assert found == ["我", "是", "王", "。", " good", " day"]


def test_a_token_at_the_beginning_loses_its_space():
    tokenizer = TokenizerConfig.from_config("words").train(["cat cat\ncat cat\n"] * 3, special=SPECIAL)
    edges = WordEdges.of(tokenizer)
    (bare,), (_, spaced) = tokenizer.encode("cat"), tokenizer.encode("cat cat")
    assert edges.bare[spaced] == bare
    assert bare != spaced and edges.bare[bare] == bare
    special = tokenizer.special.mask
    assert edges.bare[special] == special and not edges.inside[special]
