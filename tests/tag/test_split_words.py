"""Plain text as words, with their places."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.tasks.tag.split_words import place_words, split_words

TEXTS = {
    "Ada Lovelace lived in London.": "Ada|Lovelace|lived|in|London|.",
    'She said: "No, it isn\'t!"': 'She|said|:|"|No|,|it|isn\'t|!|"',
    "Germany's and James' well-known O'Brien": "Germany|'s|and|James|'|well-known|O'Brien",
    "the dog’s tail": "the|dog|’s|tail",
    "It's 3.14, 10:30, 1,000,000 or 5.": "It|'s|3.14|,|10:30|,|1,000,000|or|5|.",
    "U.S. and U.K.-based e.g. this. J. Smith": "U.S.|and|U.K.|-|based|e.g.|this|.|J|.|Smith",
    "a\u0301ngel नमस्ते दुनिया": "a\u0301ngel|नमस्ते|दुनिया",
    "東京に行く。": "東|京|に|行|く|。",
    "50% of $20 (about 18€) #tag @me": "50|%|of|$|20|(|about|18|€|)|#|tag|@|me",
    "wait... what?!": "wait|.|.|.|what|?|!",
    "snake_case a-  -b 'quoted'": "snake_case|a|-|-|b|'|quoted|'",
    "👩‍👩‍👧 e": "👩‍|👩‍|👧|e",
    "   ": "",
    "": "",
}


@pytest.mark.parametrize("text", TEXTS)
def test_words_of_texts(text):
    assert [word.text for word in split_words(text)] == [part for part in TEXTS[text].split("|") if part]


@given(st.text(max_size=60))
def test_nothing_is_lost_but_white_space(text):
    words = split_words(text)
    assert "".join(word.text for word in words) == "".join(text.split())
    assert all(text[word.start : word.end] == word.text and word.text for word in words)
    assert all(a.end <= b.start for a, b in pairwise(words))
    assert not any(any(character.isspace() for character in word.text) for word in words)


def test_given_words_stand_in_the_text_that_they_make():
    words = ["Ada", "is", "New York", "."]
    text = " ".join(words)
    assert [text[word.start : word.end] for word in place_words(words)] == words
    assert place_words([]) == []
