"""`weft tokens`: how each scheme cuts a text, side by side; and byte-pair merges in slow motion."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from weft.text import Corpus, Tokenizer
    from weft.text.replay import Replay

LARGE = 100_000  # characters: a text with so many can teach its own schemes
LEARNED = 1_000_000  # characters of the beginning that are learned from; more hardly changes which pieces are frequent
DEMO_LENGTH = 400_000
SENTENCE = 1000  # characters that can be watched being merged
DEMO = "demo"
FILES = (".txt", ".md", ".csv", ".tsv", ".json", ".jsonl", ".gz")

Texts = Annotated[
    list[str] | None,
    typer.Argument(metavar="TEXT…", help="Words, in quotes; or files. - is stdin."),
]
Schemes = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Which, with commas: characters, words, bytes, bpe, wordpiece, unigram, or paths of a run or a "
        "tokenizer.json. Default: all six; with --run, only that",
    ),
]
Runs = Annotated[list[str] | None, typer.Option(metavar="RUN", help="The tokenizer of a run; several times for more.")]
TrainedOn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE", help=f"Text to learn from. Default: TEXT from {LARGE:,} characters on, else the demo text"
    ),
]


def tokens(
    text: Texts = None,
    schemes: Schemes = None,
    run: Runs = None,
    train: TrainedOn = None,
    vocab_size: Annotated[
        int | None, typer.Option(metavar="N", help="Most tokens of schemes that learn. Default: 8192")
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Merge one sentence step by step (BPE).")] = False,
    ids: Annotated[bool, typer.Option("--ids", help="With the number of each token.")] = False,
    show: Annotated[int, typer.Option(metavar="N", help="Characters of the text that are shown cut.")] = 200,
    width: Annotated[int, typer.Option(metavar="D", help="Numbers of a vector in the embedding table.")] = 256,
    input_: Annotated[str | None, typer.Option("--input", help="A file with a text on each line; - is stdin.")] = None,
    as_json: options.OneObject = False,
) -> None:
    """Show how texts become tokens: every scheme side by side, what each lacks, and what its length costs.

    Example:  weft tokens "Peter Piper picked a peck of pickled peppers"

    Example:  weft tokens book.txt --schemes characters,bpe --vocab-size 1024

    Example:  weft tokens --replay "Peter Piper picked a peck of pickled peppers"
    """
    for name, value, least in (("show", show, 0), ("width", width, 1)):
        if value < least:
            raise ConfigError(f"--{name} {value}", expected=f"{least} or more")
    chosen = Chosen.of("bpe" if replay and schemes is None and not run else schemes, run or [])
    texts = read_texts(text, input_)
    learning = TokenizerTrainingText(texts, train or [], vocab_size)
    if replay:
        from weft.cli.tokens_shown import replay_to_dict, show_replay

        found = _replay(texts, chosen, learning)
        typer.echo(json.dumps(replay_to_dict(found), ensure_ascii=False)) if as_json else show_replay(found, ids=ids)
        return
    cut = TokenisedTexts(texts, chosen.open(learning), learning.told if chosen.kinds else "", show, width)
    if as_json:
        from weft.cli.tokens_shown import cut_to_dict

        typer.echo(json.dumps(cut_to_dict(cut), ensure_ascii=False))
    else:
        from weft.cli.tokens_shown import show_cut

        show_cut(cut, ids=ids)


# -- what was given ---------------------------------------------------------------------------


def read_texts(words: Sequence[str] | None, path: str | None) -> list[Corpus]:
    """Each argument is a text: a file if there is one of this name, all of stdin for -, else the words themselves."""
    from weft.text import Corpus

    if words and path is not None:
        raise ConfigError("texts and --input", expected="one of them")
    if path is not None:
        return [Corpus.of_text(_stdin(), name="stdin") if path == "-" else Corpus.of_files(path)]
    if words:
        return [_text(word) for word in words]
    if sys.stdin.isatty():
        raise ConfigError("no text was given", expected="words in quotes, files, --input FILE, or - for stdin")
    return [Corpus.of_text(_stdin(), name="stdin")]


def _text(word: str) -> Corpus:
    from weft.text import Corpus

    if word == "-":
        return Corpus.of_text(_stdin(), name="stdin")
    if len(word) < 1000 and "\n" not in word and "\0" not in word and os.path.isfile(word):
        return Corpus.of_files(word)
    if " " not in word and word.endswith(FILES):  # meant as a file, it seems
        place = Path(word)
        near = did_you_mean(place.name, [p.name for p in place.parent.iterdir()] if place.parent.is_dir() else [])
        hint = f"; {near}" if "did you" in near else ""
        typer.echo(f"There is no file {word}: it is read as a word{hint}", err=True)
    return Corpus.of_text(word, name="words")


def _stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise DataError("stdin is not valid UTF-8", expected="text") from None


@dataclass(frozen=True)
class Chosen:
    """What to cut with: schemes that are still to be learned, and paths of tokenizers, in the order given."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, schemes: str | None, runs: Sequence[str]) -> Chosen:
        from weft.text import TokenizerConfig
        from weft.text.schemes import SCHEMES, is_path

        given = [word.strip() for word in schemes.split(",")] if schemes is not None else [] if runs else [*SCHEMES]
        if "" in given:
            raise ConfigError(f"--schemes {schemes!r}", expected="names with commas between them: characters,bpe")
        words = [word if is_path(word) else TokenizerConfig.from_config(word).kind for word in given]
        return cls(tuple(dict.fromkeys([*words, *runs])))

    @property
    def kinds(self) -> list[str]:
        """The schemes that learn; a byte is a byte."""
        return [word for word in self.words if self._learns(word) and word != "bytes"]

    @staticmethod
    def _learns(word: str) -> bool:
        from weft.text import TokenizerConfig

        return word in TokenizerConfig.registry

    def open(self, learning: TokenizerTrainingText) -> dict[str, Tokenizer]:
        """The tokenizers by name."""
        from weft.text.schemes import open_tokenizers

        found: dict[str, Tokenizer] = {}
        for word in self.words:
            found |= {word: learning.learn(word)} if self._learns(word) else open_tokenizers(word)
        return found


class TokenizerTrainingText:
    """What schemes learn from: the text that was named, else the text itself if it is large, else the demo text."""

    def __init__(self, texts: Sequence[Corpus], train: Sequence[str], vocab_size: int | None) -> None:
        from weft.text.schemes import VOCAB_SIZE

        self.texts, self.train, self.named_size = texts, train, vocab_size
        self.vocab_size = VOCAB_SIZE if vocab_size is None else vocab_size
        self._found: tuple[list[str], str] | None = None

    def learn(self, kind: str) -> Tokenizer:
        """The scheme with its vocabulary."""
        from weft.text.schemes import learn_scheme

        return learn_scheme(kind, self.pieces if kind != "bytes" else [], self.vocab_size)

    @property
    def pieces(self) -> list[str]:
        """The text to learn from."""
        return self._read()[0]

    @property
    def told(self) -> str:
        """Which text that is, in words."""
        return self._read()[1]

    def _read(self) -> tuple[list[str], str]:
        if self._found is None:
            self._found = self._choose()
        return self._found

    def _choose(self) -> tuple[list[str], str]:
        from weft.text import Corpus, demo_text

        if self.train == [DEMO]:
            return [text := demo_text()], f"the demo text ({len(text):,} characters)"
        if self.train:
            pieces = list(Corpus.of_files(*self.train).pieces(stop=LEARNED))
            return pieces, f"{', '.join(self.train)} ({_characters(pieces)})"
        pieces = list(_first(self.texts, LEARNED))
        if sum(map(len, pieces)) >= LARGE:
            return pieces, f"the text itself ({_characters(pieces)})"
        text = demo_text(DEMO_LENGTH)
        return [text], f"the demo text ({len(text):,} characters of Python's documentation)"


def _first(texts: Sequence[Corpus], most: int) -> Iterator[str]:
    """The beginning of texts that follow each other."""
    for text in texts:
        for piece in text.pieces(stop=max(0, most)):
            most -= len(piece)
            yield piece


def _characters(pieces: Sequence[str]) -> str:
    count = sum(map(len, pieces))
    return f"its first {count:,} characters" if count >= LEARNED else f"{count:,} characters"


@dataclass(frozen=True)
class TokenisedTexts:
    """Texts, what cuts them, what that has learned from, and how much of it is shown."""

    texts: list[Corpus]
    tokenizers: dict[str, Tokenizer]
    learned_from: str
    show: int
    width: int


# -- slow motion ------------------------------------------------------------------------------


def _replay(texts: Sequence[Corpus], chosen: Chosen, learning: TokenizerTrainingText) -> tuple[Replay, str]:
    """The merges, and whose they are; "" for those that the sentence itself teaches."""
    from weft.text.replay import learn, replay
    from weft.text.schemes import open_tokenizers

    word = chosen.words[0]
    if len(chosen.words) > 1 or chosen.kinds not in ([], ["bpe"]) or word == "bytes":
        raise ConfigError(f"--replay with {', '.join(chosen.words)}", expected="bpe, or the path of one tokenizer")
    if len(texts) != 1:
        raise ConfigError(f"{len(texts)} texts to replay", expected="one sentence, in quotes")
    text = "".join(texts[0].pieces(stop=SENTENCE + 1))
    if len(text) > SENTENCE:
        raise DataError(
            f"more than {SENTENCE:,} characters to replay",
            expected="a sentence",
            advice="--train FILE learns the merges from a longer text",
        )
    if not chosen.kinds:
        if learning.train or learning.named_size is not None:
            raise ConfigError(f"--train or --vocab-size with {word}", expected="neither: it has learned already")
        name, tokenizer = next(iter(open_tokenizers(word).items()))
        return replay(tokenizer, text), name
    if learning.train:
        return replay(learning.learn("bpe"), text), f"bpe learned from {learning.told}"
    return replay(learn(text, learning.vocab_size), text), ""
