"""The names that people usually give to the columns of labelled texts, best first."""

from __future__ import annotations

import re

PAIRS = (
    ("sentence1", "sentence2"),
    ("sentence_A", "sentence_B"),
    ("#1 String", "#2 String"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("s1", "s2"),
    ("question", "sentence"),
    ("question", "passage"),
    ("query", "passage"),
    ("context", "response"),
    ("question", "answer"),
)
SIDES = (  # a text and what becomes of it
    ("source", "target"),
    ("src", "tgt"),
    ("src", "trg"),
    ("input", "output"),
    ("prompt", "completion"),
    ("prompt", "response"),
    ("original", "translation"),
    ("text", "translation"),
    ("question", "answer"),
)
_TEXTS = (
    "text sentence review comment content body message tweet post utterance question query document description "
    "abstract phrase headline title subject prompt input string sms reviewText review_text comment_text text_en source"
)
_LABELS = (
    "label labels class classes category categories sentiment target quality entailment_judgment gold_label "
    "is_duplicate duplicate polarity topic intent emotion genre genres tag tags rating stars relatedness_score "
    "similarity score answer output y label_text coarse_label fine_label spam toxic language lang author"
)
TEXTS, LABELS = tuple(_TEXTS.split()), tuple(_LABELS.split())


def plain(name: str) -> str:
    """A column name without case, spaces and signs: `Sentence_A` and `sentence a` are the same."""
    return re.sub(r"[\W_]+", "", name.casefold())


USUAL = frozenset(plain(name) for name in (*TEXTS, *LABELS, *(name for pair in PAIRS for name in pair)))
