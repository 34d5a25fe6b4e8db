"""Documents and sentences in raw text, found by rules that need no language model and no second look.

    for document in read_documents(corpus.marked_pieces()):      # a stream; each document is a list of sentences
        ...
    split_sentences("Mr. Lee paid 3.14 dollars. He left.")       # ['Mr. Lee paid 3.14 dollars.', 'He left.']

A document ends at a blank line and at the end of a file. Where a file has titles as wikitext writes them
(` = Title = `), each title begins a document instead, and blank lines only end paragraphs. No character is lost or
added but white space, and the time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from weft.text.abbreviations import BEFORE_NAMES, BEFORE_NUMBERS, MAY_END, OPENERS

MOST_WORDS = 60  # in a sentence; where no mark ends one, it is cut here
MOST_CHARACTERS = 1000  # likewise for scripts without spaces, and for what is no language
NARROW, WIDE = 55, 120  # nobody wraps lines narrower or wider than that: there, a line end means something
BLOCK = 4096  # lines without a blank one between them that are looked at together
REACH = 24  # characters before a full stop in which an abbreviation is looked for

_HARD = "。！？｡．"  # end a sentence with no space after them
_ENDS = re.compile(rf"[.!?…؟۔।॥።։{_HARD}]+")
_CLOSING = frozenset("\"'”’»›)]}」』）】〉》")
_OPENING = frozenset("\"'“‘„«‹([{「『（【〈《¿¡-–—•*")
_TITLE = re.compile(r"\s*= [^=\n]{1,200} =\s*")
_HEADING = re.compile(r"(= )+[^=\n]{1,200}( =)+")
_GAP = re.compile(r"\s+")

Document = list[str]


def joint(before: str, after: str) -> str:
    """What stands between two sentences or lines: a space, or nothing in scripts that have none."""
    return "" if _unspaced(before[-1:]) and _unspaced(after[:1]) else " "


def _unspaced(character: str) -> bool:
    """Whether it belongs to Chinese or Japanese writing, its punctuation included."""
    return "\u2e80" <= character <= "\u9fff" or "\uff00" <= character <= "\uffef" or "\U00020000" <= character


# -- documents --------------------------------------------------------------------------------


def split_documents(text: str) -> list[Document]:
    """The documents of one text, each as its sentences."""
    return list(read_documents([(text, True)]))


def read_documents(pieces: Iterable[tuple[str, bool]]) -> Iterator[Document]:
    """Documents from a stream of pieces, each with whether a file ends after it, as a `Corpus` gives them."""
    document: Document = []
    block: list[str] = []
    titled, after_blank = False, True
    for line, ended in _lines(pieces):
        blank = not line or line.isspace()
        title = after_blank and not blank and _TITLE.fullmatch(line) is not None
        if blank or title or len(block) == BLOCK:
            document += _sentences_of(block)
            block = []
        if document and (title or (blank and not titled)):
            yield document
            document = []
        titled = titled or title
        if not blank:
            block.append(line)
        after_blank = blank
        if ended:
            document += _sentences_of(block)
            if document:
                yield document
            document, block, titled, after_blank = [], [], False, True
    document += _sentences_of(block)
    if document:
        yield document


def _lines(pieces: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Whole lines, each with whether a file ends after it, wherever the pieces were cut."""
    begun: list[str] = []
    for piece, ended in pieces:
        first, *more = piece.split("\n")
        begun.append(first)
        if more:
            yield "".join(begun), False
            for line in more[:-1]:
                yield line, False
            begun = [more[-1]]
        if ended:
            yield "".join(begun), True
            begun = []
    if begun:
        yield "".join(begun), False


def _sentences_of(lines: Sequence[str]) -> Iterator[str]:
    """The sentences of lines that follow each other, first made into stretches in which line ends mean nothing."""
    if not lines:
        return
    lines = [line.strip() for line in lines]
    width = max(NARROW, *map(len, lines))
    stretch = [lines[0]]
    for line, following in pairwise(lines):
        if _ends_here(line, following, width):
            yield from split_sentences("".join(stretch))
            stretch = [following]
        else:
            stretch += [joint(line, following), following]
    yield from split_sentences("".join(stretch))


def _ends_here(line: str, following: str, width: int) -> bool:
    """Whether a line was ended on purpose: nothing wraps so wide, or the next word would still have fitted."""
    if width > WIDE or _is_heading(line) or _is_heading(following):
        return True
    word = following[: width + 1].split(None, 1)[0]
    return len(line) + 1 + (1 if _unspaced(word[0]) else len(word)) <= width


def _is_heading(line: str) -> bool:
    """A title or heading of wikitext."""
    return line[0] == "=" and _HEADING.fullmatch(line) is not None


# -- sentences --------------------------------------------------------------------------------


def split_sentences(text: str) -> list[str]:
    """The sentences of a paragraph, without space around them; runs of white space become one space."""
    text = _GAP.sub(" ", text).strip()
    found: list[str] = []
    start = after = 0
    for match in _ENDS.finditer(text):
        if match.start() < after:  # a mark that already belongs to the sentence before
            continue
        end = _sentence_end(text, start, match.start(), match.end())
        if end:
            found += _short(text[start:end])
            start = after = end + (text[end : end + 1] == " ")
    if start < len(text):
        found += _short(text[start:])
    return found


def _sentence_end(text: str, start: int, mark: int, end: int) -> int:
    """Where the sentence from `start` ends if the marks at [mark, end) end it, else 0."""
    marks = text[mark:end]
    while end < len(text) and text[end] in _CLOSING:
        end += 1
    if end == len(text):
        return end
    if marks[-1] in _HARD:
        return end
    if text[end] != " ":
        return 0
    if text[end + 1 : end + 3] in ('" ', "” ") and _is_open(text, start, mark, text[end + 1]):
        end += 2  # a closing quote that a tokenizer has set apart
    place = end + 1
    while place < len(text) and (text[place] in _OPENING or text[place] == " "):
        place += 1
    if place == len(text):
        return end
    following = text[place]
    if following.islower() or following in ",;:":
        return 0
    return 0 if marks == "." and _is_abbreviation(text, start, mark, place) else end


def _is_open(text: str, start: int, mark: int, quote: str) -> bool:
    """Whether a quotation has begun in this sentence and not ended."""
    low = max(start, mark - MOST_CHARACTERS)
    return text.count(quote, low, mark) % 2 == 1 if quote == '"' else text.count("“", low, mark) > 0


def _is_abbreviation(text: str, start: int, mark: int, place: int) -> bool:
    """Whether the full stop at `mark` shortens the word before it and the sentence goes on at `place`."""
    low = max(start, mark - REACH)
    begin = max(text.rfind(" ", low, mark) + 1, low)
    word = text[begin:mark].lstrip("\"'“‘„«‹([{")
    if not word:
        return False
    plain = word.lower()
    if plain.isdecimal():  # "1. First": a number that counts items
        return begin == start
    if plain in BEFORE_NUMBERS and text[place].isdecimal():
        return True
    if len(word) == 1:
        return word.isupper()
    if plain in BEFORE_NAMES:
        return True
    dotted = "." in word and all(len(part) <= 2 for part in word.split("."))
    if not dotted and plain not in MAY_END:
        return False
    following = re.match(r"\w+", text[place : place + 20])
    return following is None or following[0] not in OPENERS


def _short(sentence: str) -> list[str]:
    """The sentence, in parts if it is longer than any: of so many words, or so many characters."""
    if len(sentence) <= MOST_WORDS:  # the usual case without counting
        return [sentence]
    words = sentence.split(" ")
    if len(words) <= MOST_WORDS and len(sentence) <= MOST_CHARACTERS:
        return [sentence]
    found: list[str] = []
    ends = [0]
    for word in words:
        ends.append(ends[-1] + len(word) + 1)
    place = 0
    while place < len(words):
        stop = min(place + MOST_WORDS, bisect_right(ends, ends[place] + MOST_CHARACTERS + 1) - 1)
        if stop <= place:  # one endless word
            word, stop = words[place], place + 1
            found += [word[at : at + MOST_CHARACTERS] for at in range(0, len(word), MOST_CHARACTERS)]
        else:
            found.append(" ".join(words[place:stop]))
        place = stop
    return found
