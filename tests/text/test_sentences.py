"""Documents and sentences: where they end, where they do not, and that no character is lost."""

import random
import re
import time

import pytest

from weft.text import Corpus
from weft.text.sentences import MOST_CHARACTERS, MOST_WORDS, joint, read_documents, split_documents, split_sentences


def bare(text):
    return re.sub(r"\s", "", text)


SPLIT = {
    "plain": ["He left.", "She stayed!", "Why?", "Nobody knows…", "So it was."],
    "titles": ["Mr. Lee met Dr. Wu and Prof. St. John.", "They talked."],
    "numbers": ["It costs 3.14 dollars.", "In 1999. 5 more came."],
    "initials": ["J. R. R. Tolkien wrote it.", "I read it."],
    "countries": ["The U.S. Army came to the U.S.", "It stayed until 5 p.m.", "Then it left."],
    "latin": ["Fruit, e.g. Apples, i.e. food etc. and so on.", "More."],
    "before numbers": ["See No. 5, p. 12 and Fig. 3.", "No.", "That is all."],
    "quotes": ['"Why?" he asked.', '"Go!"', "(He went.)", "“Stop.”", "‘Yes.’", "End."],
    "tokenised quotes": ['" It is late . "', "He left .", '" Yes , " she said .'],
    "addresses": ["Visit example.com or mail a.b@c.de today.", "Version 1.2.3 is out."],
    "items": ["1. First thing.", "2. Second thing."],
    "dots": ["He waited... and waited...", "Nothing."],
    "chinese": ["你好。", "我是王先生！", "他说：“好吗？”", "好"],
    "japanese": ["今日は。", "元気ですか？", "はい。"],
    "russian": ["Он ушёл.", "Она осталась!", "Почему?"],
    "arabic": ["كيف حالك؟", "أنا بخير."],
    "hindi": ["यह अच्छा है।", "हाँ।"],
}


@pytest.mark.parametrize("case", SPLIT)
def test_sentences_end_where_they_should(case):
    wanted = SPLIT[case]
    if case == "numbers":  # a number alone does not keep a sentence open
        wanted = ["It costs 3.14 dollars.", "In 1999.", "5 more came."]
    space = "" if case in ("chinese", "japanese") else " "
    text = space.join(wanted)
    assert split_sentences(text) == wanted
    assert split_sentences(f"  {text.replace(' ', '  ')}\t\n") == wanted


def test_a_document_ends_at_a_blank_line():
    text = "One here. Two here.\n\n\n  \t\nThree here.\r\n\r\nFour"
    assert split_documents(text) == [["One here.", "Two here."], ["Three here."], ["Four"]]
    assert split_documents("") == split_documents(" \n\n ") == []


def test_titles_of_wikitext_begin_documents_and_blank_lines_then_do_not():
    text = " \n = One = \n \n It is . Or not . \n \n = = Part = = \n \n More of it . \n \n = Two = \n \n Another . \n"
    assert split_documents(text) == [
        ["= One =", "It is .", "Or not .", "= = Part = =", "More of it ."],
        ["= Two =", "Another ."],
    ]
    inside = "The sum\n = x = \nis wrong.\n\nNext document."  # a line in a paragraph is no title
    assert split_documents(inside) == [["The sum", "= x =", "is wrong."], ["Next document."]]


def test_files_end_documents_and_titles_end_with_their_file():
    files = [(" = A = \n\nOne.\n\nTwo.", True), ("Three.\n\nFour.", True)]
    assert list(read_documents(files)) == [["= A =", "One.", "Two."], ["Three."], ["Four."]]
    corpus = Corpus.of_text("One. Two.", "Three.")
    assert list(read_documents(corpus.marked_pieces())) == [["One.", "Two."], ["Three."]]


WRAPPED = """It was the best of times, it was the worst of times, it was the age of
wisdom, it was the age of foolishness, it was the epoch of belief, it was
the epoch of incredulity. It was the season of Light, it was the season
of Darkness."""


def test_wrapped_lines_are_joined_and_short_lines_are_not():
    (document,) = split_documents(WRAPPED)
    assert document == [" ".join(WRAPPED.split())[: WRAPPED.index("It was the season")].strip(), document[1]]
    assert document[1].startswith("It was the season of Light") and document[1].endswith("Darkness.")
    verse = "roses are red\nviolets are blue\nthis is a line\nand this is too"
    assert split_documents(verse) == [verse.split("\n")]
    long = ["a paragraph without a stop at its end " * 5, "another paragraph on one line " * 6]
    assert split_documents("\n".join(long)) == [[" ".join(line.split()) for line in long]]
    assert split_documents("这是一个很长的句子" * 8 + "\n" + "它在这里继续" * 8) != []
    assert joint("好。", "我") == "" and joint("a.", "B") == " " and joint("好。", "B") == " "


def test_text_without_marks_is_cut():
    words = [f"w{i}" for i in range(3 * MOST_WORDS + 5)]
    found = split_sentences(" ".join(words))
    assert [len(part.split()) for part in found] == [MOST_WORDS] * 3 + [5]
    assert " ".join(found) == " ".join(words)
    blob = split_sentences("x" * (2 * MOST_CHARACTERS + 3))
    assert [len(part) for part in blob] == [MOST_CHARACTERS, MOST_CHARACTERS, 3]
    mixed = split_sentences("a b " + "y" * (MOST_CHARACTERS + 7) + " c d")
    assert bare("".join(mixed)) == "ab" + "y" * (MOST_CHARACTERS + 7) + "cd"
    assert max(map(len, mixed)) <= MOST_CHARACTERS


def test_nothing_is_lost_and_pieces_do_not_matter():
    rng = random.Random(1)
    alphabet = [
        "\n",
        "\n\n",
        " ",
        " ",
        ". ",
        "! ",
        '" ',
        "Mr. ",
        "3.5 ",
        "word ",
        "Word ",
        "。",
        "你",
        "é",
        "= T = ",
        "\r\n",
        "…",
    ]
    for _ in range(300):
        text = "".join(rng.choice(alphabet) for _ in range(rng.randrange(80)))
        documents = split_documents(text)
        assert bare("".join(s for d in documents for s in d)) == bare(text)
        assert all(s and s == s.strip() for d in documents for s in d)
        cuts = sorted(rng.randrange(len(text) + 1) for _ in range(3))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert list(read_documents([(p, False) for p in pieces])) == documents


@pytest.mark.parametrize(
    "text",
    [
        "." * 300_000,
        ". " * 150_000,
        '" . ' * 80_000,
        "a.b." * 80_000,
        "= " * 150_000,
        "\n = x" * 60_000,
        " " * 300_000 + "=",
        "A. " * 100_000,
        "x" * 300_000,
        "\n" * 300_000,
        "a\n" * 150_000,
    ],
)
def test_hostile_text_takes_linear_time(text):
    began = time.process_time()
    found = split_documents(text)
    assert time.process_time() - began < 3
    assert bare("".join(s for d in found for s in d)) == bare(text)
