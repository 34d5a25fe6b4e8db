"""Sentences whose words have tags, read from files as people have them: CoNLL columns and JSON lines.

CoNLL: a word on each line with its columns, separated by tabs or spaces, and a blank line after each sentence. The
first column holds the word and the last one the tag, unless `text` and `label` name others. CoNLL-U is recognised by
its ten columns. JSON: {"tokens": ["Ada", "left"], "tags": ["B-PER", "O"]} on each line.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.data import examples
from weft.data.column_names import plain
from weft.data.split import stratified_split
from weft.data.table_files import foreign_encoding, read_lines
from weft.data.tables import NAMED, TOLERATED, head_of, read_table
from weft.errors import ConfigError, DataError, did_you_mean
from weft.tasks.tag.schemes import (
    OUTSIDE,
    Entity,
    Scheme,
    find_entities,
    find_scheme,
    ill_formed,
    marks_entity,
    write_iob2,
)
from weft.text.files import find_documents

log = logging.getLogger(__name__)

TEXT_NAMES = ("tokens", "words", "token", "word", "form", "text")
LABEL_NAMES = (
    *("tags", "labels", "ner_tags", "ner", "pos_tags", "pos", "upos", "xpos", "chunk_tags", "chunk"),
    *("tag", "label", "ner_tag", "pos_tag", "entity", "entities", "iob", "bio"),
)
CONLL_U = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
DOCUMENT_START = "-DOCSTART-"
SUFFIXES = {".conll", ".conll03", ".conllu", ".iob", ".iob1", ".iob2", ".bio", ".bioes", ".bilou"}
JSON_SUFFIXES = {".json", ".jsonl", ".ndjson"}
MAX_TAGS = 20  # different tags that any file may have; beyond, the column may be no tags at all
MAX_TAG_SHARE = 0.1  # of the words: so many different tags are free text
_GAP = re.compile(r"[ \t]+")  # other white space of Unicode may be part of a word
_NUMBER = re.compile(r"\d+")
_RANGE = re.compile(r"\d+[-.]\d+")  # CoNLL-U: a word that is written as one and read as several, or none at all
_Cutter = Callable[[str], list[str]]


@dataclass(frozen=True)
class TaggedSentences:
    """Words and their tags, by sentence. Tags that mark entities are IOB2 here, whatever scheme the file has.

    scheme       how the tags are written in the file
    ill_formed   places where they break the rules of that scheme; they are read as conlleval reads them
    columns      where words and tags were found
    left_out     sentences with a line that cannot be read
    """

    name: str
    words: list[list[str]]
    tags: list[list[str]]
    lines: list[int]
    scheme: Scheme
    ill_formed: int = 0
    columns: tuple[str, str] = ("", "")
    left_out: int = 0
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"TaggedSentences({self.name!r}, {len(self)} sentences, {self.word_count} words, {self.scheme})"

    @property
    def word_count(self) -> int:
        return sum(map(len, self.words))

    @property
    def plain(self) -> bool:
        """Whether every word has a tag of its own, such as its part of speech, and there are no entities."""
        return self.scheme == "plain"

    def entities(self) -> list[list[Entity]]:
        """The entities of each sentence."""
        return [[] for _ in self.tags] if self.plain else [find_entities(tags) for tags in self.tags]

    def kinds(self) -> Counter[str]:
        """How many entities there are of each type, or words of each plain tag; the most frequent first."""
        if self.plain:
            found = Counter(tag for tags in self.tags for tag in tags)
        else:
            found = Counter(entity.type for entities in self.entities() for entity in entities)
        return Counter(dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))))

    def labels(self) -> tuple[str, ...]:
        """What a model that learns from these sentences chooses between, in a fixed order: O, then B- and I- of each
        type, also where one of them does not occur; or the plain tags."""
        kinds = sorted(self.kinds())
        if self.plain:
            return tuple(kinds)
        marked = (write_iob2([Entity(kind, 0, 1)], 2) for kind in kinds)
        return (OUTSIDE, *(tag for both in marked for tag in both))

    def unknown_tags(self, labels: Sequence[str]) -> Counter[str]:
        """Tags that these labels do not have, and how often they occur: no prediction of them can be right."""
        known = set(labels)
        return Counter(tag for tags in self.tags for tag in tags if tag not in known)

    def as_examples(self) -> examples.Examples:
        """Each sentence as a text with its tags as the label: to find duplicates, contradictions and leaks."""
        texts, labels = ([" ".join(parts) for parts in side] for side in (self.words, self.tags))
        return examples.Examples(self.name, texts, None, labels, self.lines)

    def part(self, places: NDArray[np.integer] | Sequence[int]) -> TaggedSentences:
        """The sentences at these places, in this order; what was counted in the file is not counted again."""
        words, tags = ([side[place] for place in places] for side in (self.words, self.tags))
        lines = [self.lines[place] for place in places]
        return TaggedSentences(self.name, words, tags, lines, self.scheme, columns=self.columns)


def read_tagged(path: str | Path, *, text: str | None = None, label: str | None = None) -> TaggedSentences:
    """Read a CoNLL or JSON file, plain or gzip. `text` and `label`: names or numbers (from 1; -1 is the last) of the
    columns that hold words and tags."""
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder", expected="a CoNLL file, or JSON lines")
    find_documents([path])  # missing, empty, binary: reported in the same words as for texts
    encoding = foreign_encoding(path)
    first = next((line for line in read_lines(path, encoding) if line.strip()), "")
    if not first:
        raise DataError(f"{path} holds nothing but blank lines", expected="a word and its tag on each line")
    names = {suffix.lower() for suffix in path.suffixes}
    if names & JSON_SUFFIXES or first.lstrip().startswith('{"'):
        found = _read_json(path, text, label)
    else:
        found = _read_columns(path, encoding, text, label)
    return _finished(found)


def are_tagged(paths: Sequence[str], columns: Collection[str] = ()) -> bool:
    """Whether these are tagged sentences: by the endings of their names, or JSON with a list of words and one of tags;
    `columns` are options that were given. A plain .txt is never."""
    others = {"pair", "pairs", "source", "target"} & set(columns)
    return bool(paths) and not others and all(_is_tagged(Path(path)) for path in paths)


def _is_tagged(path: Path) -> bool:
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in JSON_SUFFIXES:
        return suffix in SUFFIXES
    try:
        table = head_of(path, rows=5)
    except DataError:  # which is reported when it is read
        return False
    named = [next((name for name in names if name in table.columns), None) for names in (TEXT_NAMES, LABEL_NAMES)]
    places = [table.place(name) for name in named if name is not None]
    cells = [row.cells[place] for row in table.rows() for place in places]
    return len(places) == 2 and bool(cells) and all(cell.lstrip().startswith("[") for cell in cells)


def join_sentences(parts: Sequence[TaggedSentences]) -> TaggedSentences:
    """Several files as one; all of them must mark entities, or none."""
    kinds = {part.plain: part for part in parts if part.scheme != "none"}
    if len(kinds) > 1:
        given = f"{kinds[True].name} has plain tags, {kinds[False].name} marks entities"
        raise DataError(given, expected="the same kind of tags in all files")
    if len(parts) == 1:
        return parts[0]
    schemes = {part.scheme for part in parts} - {"none"}
    return TaggedSentences(
        name=", ".join(part.name for part in parts),
        words=[words for part in parts for words in part.words],
        tags=[tags for part in parts for tags in part.tags],
        lines=[line for part in parts for line in part.lines],
        scheme="none" if not schemes else schemes.pop() if len(schemes) == 1 else "iob2",
        ill_formed=sum(part.ill_formed for part in parts),
        columns=parts[0].columns,
        left_out=sum(part.left_out for part in parts),
        notes=tuple(note for part in parts for note in part.notes),
    )


def split_sentences(sentences: TaggedSentences, share: float, seed: int) -> tuple[TaggedSentences, TaggedSentences]:
    """A training part and a validation part (about `share` of the sentences of every type).

    Sentences that differ in nothing but case and spaces stay together, so that none of the second part was learned.
    """
    kinds = sorted(sentences.kinds())
    number = {kind: place for place, kind in enumerate(kinds)}
    there = np.zeros((len(sentences), max(len(kinds), 1)), dtype=np.int8)
    for place, (tags, entities) in enumerate(zip(sentences.tags, sentences.entities(), strict=True)):
        found = tags if sentences.plain else [entity.type for entity in entities]
        there[place, [number[kind] for kind in found]] = 1
    learn, judge = stratified_split(there, share, seed, groups=sentences.as_examples().keys())
    return sentences.part(learn), sentences.part(judge)


# -- columns ----------------------------------------------------------------------------------


class _Found:
    """What was read so far: sentences with the line where each begins, and what is wrong with others."""

    def __init__(self, path: Path, columns: tuple[str, str], notes: Iterable[str] = ()) -> None:
        self.path, self.columns, self.notes = path, columns, list(notes)
        self.words: list[list[str]] = []
        self.tags: list[list[str]] = []
        self.lines: list[int] = []
        self.problems: list[str] = []
        self.left_out = 0
        self.doubtful = 0  # lines that could be words and are read as comments

    def add(self, line: int, words: list[str], tags: list[str], problem: str = "") -> None:
        if problem:
            self.left_out += 1
            if len(self.problems) < NAMED:
                self.problems.append(problem)
        elif words:
            self.words.append(words)
            self.tags.append(tags)
            self.lines.append(line)


def _read_columns(path: Path, encoding: str, text: str | None, label: str | None) -> _Found:
    lines = [line.rstrip() for line in read_lines(path, encoding)]
    rows = [line for line in lines if line and not line.startswith(("#", DOCUMENT_START))]
    tabbed = sum("\t" in line for line in rows)
    separator = "\t" if tabbed == len(rows) else None

    def cells_of(line: str) -> list[str]:
        return [cell.strip(" ") for cell in line.split(separator)] if separator else _GAP.split(line.lstrip(" \t"))

    notes = []
    if encoding:
        notes.append(f"{path} is not UTF-8; it is read as {_ENCODINGS[encoding]} (Western European)")
    if 0 < tabbed < len(rows):
        notes.append(f"{path} has tabs in {tabbed} of {len(rows)} lines: columns are separated by tabs or spaces")
    if not rows:
        raise DataError(f"{path} has no words", expected="a word and its tag on each line")
    split = [cells_of(line) for line in rows]
    width = Counter(map(len, split)).most_common(1)[0][0]
    if width == 1:
        commas = sum("," in line for line in rows) > len(rows) / 2
        raise DataError(
            f"{path} has one column: words without tags",
            expected="a word and its tag on each line, separated by a tab or spaces",
            advice="commas do not separate columns here" if commas else "",
        )
    good = [cells for cells in split if len(cells) == width]
    numbered = _is_numbered(good)
    names: tuple[str, ...] = CONLL_U if numbered and width == len(CONLL_U) else ()
    header = _is_header(split[0]) and not numbered
    if header:
        names = tuple(split[0])
    if numbered and not names and text is None:
        raise DataError(
            f"the first column of {path} counts the words",
            expected="--text with the number of the column that holds them",
            advice=f"its first line is: {' | '.join(good[0])}"[:200],
        )
    usual = (1, 3) if names is CONLL_U else (0, width - 1)
    word, tag = (_place(path, given, names, width, place) for given, place in zip((text, label), usual, strict=True))
    if word == tag:
        raise ConfigError(f"words and tags of {path} in the same column {word + 1}", expected="two columns")
    shown = [names[place] if names else f"column {place + 1} of {width}" for place in (word, tag)]
    found = _Found(path, (shown[0], shown[1]), notes)
    if names is CONLL_U:
        found.notes.append(f"{path} is read as CoNLL-U: words from {shown[0]}, tags from {shown[1]}")
    known = {cells[tag] for cells in good}
    for block in _blocks(lines, rows[0] if header else None):
        _add_sentence(found, block, cells_of, (word, tag, width), known, numbered)
    if found.doubtful:
        found.notes.append(f"lines of {path} that begin with # and are read as comments, not words: {found.doubtful}")
    return found


_ENCODINGS = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}


def _blocks(lines: Sequence[str], header: str | None) -> Iterator[list[tuple[int, str]]]:
    """The lines of each sentence with their numbers."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if header is not None and line == header:
            header = None
        elif line and not line.startswith(DOCUMENT_START):
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _add_sentence(
    found: _Found,
    block: Sequence[tuple[int, str]],
    cells_of: _Cutter,
    places: tuple[int, int, int],
    known: set[str],
    numbered: bool,
) -> None:
    """The words of one sentence. A line that begins with # is a comment, unless it is the word # with a known tag."""
    word, tag, width = places
    words, tags, start, problem = [], [], 0, ""
    for number, line in block:
        cells = cells_of(line)
        if line[0] == "#" and (len(cells) != width or not (cells[tag] in known or marks_entity(cells[tag]))):
            found.doubtful += len(cells) == width
            continue
        if numbered and _RANGE.fullmatch(cells[0]):
            continue
        start = start or number
        if len(cells) != width:
            has = f"{len(cells)} column{'s' if len(cells) != 1 else ''}"
            problem = problem or f"line {number} has {has} where {width} belong"
        elif not cells[word] or not cells[tag]:
            problem = problem or f"line {number} has no {'tag' if cells[word] else 'word'}"
        else:
            words.append(cells[word])
            tags.append(cells[tag])
    found.add(start, words, tags, problem)


def _is_numbered(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first column counts the words of each sentence."""
    counted = sum(_NUMBER.fullmatch(cells[0]) is not None or _RANGE.fullmatch(cells[0]) is not None for cells in rows)
    starts = any(cells[0] in ("0", "1") for cells in rows[:2])  # a range may come before the first
    return starts and counted == len(rows) and (len(rows) > 1 or len(rows[0]) == len(CONLL_U))


def _is_header(cells: Sequence[str]) -> bool:
    names = [plain(cell) for cell in cells]
    words, tags = ({plain(name) for name in names} for names in (TEXT_NAMES, LABEL_NAMES))
    return any(name in words for name in names) and any(name in tags for name in names)


def _place(path: Path, given: str | None, names: Sequence[str], width: int, usual: int) -> int:
    """The place of a column, from 0."""
    if given is None:
        return usual
    if given in names:
        return list(names).index(given)
    if re.fullmatch(r"-?\d+", given) and 1 <= abs(int(given)) <= width:
        return int(given) - 1 if int(given) > 0 else width + int(given)
    expected = f"a number from 1 to {width}" + (f", or a name: {', '.join(names)}" if names else "")
    advice = did_you_mean(given, names) if names else f"{path} has no line with names of columns"
    raise ConfigError(f"{path} has no column {given!r}", expected=expected, advice=advice)


# -- JSON -------------------------------------------------------------------------------------


def _read_json(path: Path, text: str | None, label: str | None) -> _Found:
    table = read_table(path)
    word, tag = (
        _named(path, given, table.columns, usual) for given, usual in ((text, TEXT_NAMES), (label, LABEL_NAMES))
    )
    if word == tag:
        raise ConfigError(f"words and tags of {path} both in {word!r}", expected="two names")
    others = [name for name in table.columns if name in LABEL_NAMES and name != tag]
    found = _Found(path, (word, tag), table.notes)
    if others and label is None:
        found.notes.append(f"{path} has tags in {tag!r}, which are read, and in {', '.join(map(repr, others))}")
    places = table.place(word), table.place(tag)
    for line, cells in table.rows():
        words, tags = (_list_of(cells[place]) for place in places)
        problem = ""
        if words is None or tags is None:
            problem = f"line {line} has no list of words in {(word if words is None else tag)!r}"
        elif len(words) != len(tags):
            problem = f"line {line} has {len(words)} words and {len(tags)} tags"
        elif not all(words) or not all(tags):
            problem = f"line {line} has an empty {'tag' if all(words) else 'word'}"
        found.add(line, words or [], tags or [], problem)
    return found


def _named(path: Path, given: str | None, columns: Sequence[str], usual: Sequence[str]) -> str:
    if given is not None:
        if given not in columns:
            raise ConfigError(f"{path} has no {given!r}", advice=did_you_mean(given, columns))
        return given
    for name in usual:
        if name in columns:
            return name
    what = "words" if usual is TEXT_NAMES else "tags"
    expected = f"{what} in {', '.join(map(repr, usual[:3]))}: " + '{"tokens": ["Ada", "left"], "tags": ["B-PER", "O"]}'
    given = f"the objects of {path} have {', '.join(map(repr, columns[:8]))}, and no {what}"
    raise DataError(given, expected=expected)


def _list_of(cell: str) -> list[str] | None:
    """The strings of a JSON list; None if it is something else."""
    try:
        found = json.loads(cell)
    except ValueError:
        return None
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        return None
    return [item.strip() for item in found]


# -- what the tags mean -----------------------------------------------------------------------


def _finished(found: _Found) -> TaggedSentences:
    """The sentences with their scheme recognised and their tags in IOB2; what cannot be tags is refused."""
    name, total = str(found.path), len(found.words) + found.left_out
    if found.left_out:
        shown = "; ".join(found.problems) + ("; …" if found.left_out > len(found.problems) else "")
        given = f"{found.left_out} of {total} sentences of {name} cannot be read: {shown}"
        if found.left_out > TOLERATED * total:
            raise DataError(given, expected=f"at most {TOLERATED:.0%}", advice="every line needs a word and its tag")
        found.notes.append(f"{given}; they are left out")
    if not found.words:
        raise DataError(f"{name} has no words", expected="a word and its tag on each line")
    _refuse_free_text(found, name)
    scheme = find_scheme(found.tags, name)
    broken = [len(ill_formed(tags, scheme)) for tags in found.tags]
    if any(broken):
        lines = [line for line, count in zip(found.lines, broken, strict=True) if count]
        places = f"{sum(broken)} tag{'s' if sum(broken) > 1 else ''} of {name}"
        found.notes.append(
            f"{places} break{'' if sum(broken) > 1 else 's'} the rules of {scheme.upper()}, in the sentences at "
            f"{examples.named_lines(lines)}: entities are read from them as conlleval does"
        )
    tags = found.tags
    if scheme not in ("plain", "none"):
        tags = [write_iob2(find_entities(row), len(row)) for row in tags]
    for note in found.notes:
        log.warning("%s", note)
    columns, notes = found.columns, tuple(found.notes)
    return TaggedSentences(name, found.words, tags, found.lines, scheme, sum(broken), columns, found.left_out, notes)


def _refuse_free_text(found: _Found, name: str) -> None:
    counts = Counter(tag for tags in found.tags for tag in tags)
    words = counts.total()
    where = f"{found.columns[1]!r} of {name}"
    if len(counts) > max(MAX_TAGS, MAX_TAG_SHARE * words):
        given = f"{where} has {len(counts)} different tags for {words} words"
        raise DataError(given, expected="tags that occur again and again", advice="name another column with --label")
    if all(_NUMBER.fullmatch(tag) for tag in counts):
        raise DataError(f"the tags in {where} are numbers: {', '.join(sorted(counts)[:5])}", expected="their names")
    if len(counts) == 1 < words and not any(tag == OUTSIDE or marks_entity(tag) for tag in counts):
        given = f"every word of {name} has the tag {next(iter(counts))!r}"
        raise DataError(given, expected="at least two different tags", advice="name another column with --label")
