"""What is done with word vectors: neighbours, analogies, the vectors themselves, and how good they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models import WordVectorTable
from weft.objectives.metrics import spearman
from weft.tasks.embed.word_list import WordList, words_of

if TYPE_CHECKING:
    from weft.tasks.run import Run

QUESTIONS_PER_BATCH = 256  # questions that are answered at once
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Neighbour:
    """A word and its cosine similarity to the query."""

    word: str
    similarity: float


class NearestWords:
    """A run of word vectors. Similar means: the same direction, in the first of its two matrices."""

    def __init__(self, run: Run) -> None:
        if WordVectorTable not in run.model_config.provides:
            raise UnsupportedError(
                f"{run.directory.path} is a {run.model_config.kind}: it has no word vectors",
                expected="a run of weft train embed, or imported vectors",
            )
        assert isinstance(run.model, WordVectorTable)
        self.run = run
        self.words: WordList = words_of(run)
        self.vectors: Floats = run.model.word_vectors.detach().cpu().numpy()
        lengths = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        self.directions: Floats = self.vectors / np.maximum(lengths, 1e-12)

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return self.vectors.shape[1]

    def of(self, words: Sequence[str]) -> Floats:
        """(N, width): the vectors of these words."""
        return self.vectors[[self.words.row(word) for word in words]]

    def similar(self, word: str, top: int = 10) -> list[Neighbour]:
        """The words nearest to this one, which is left out."""
        row = self.words.row(word)
        return self._nearest(self.directions[row], {row}, top)

    def analogy(self, a: str, b: str, c: str, top: int = 10) -> list[Neighbour]:
        """a is to b as c is to …: nearest to b − a + c, the three left out (3CosAdd, Mikolov et al. 2013)."""
        rows = [self.words.row(word) for word in (a, b, c)]
        first, second, third = self.directions[rows]
        return self._nearest(second - first + third, set(rows), top)

    def _nearest(self, direction: Floats, left_out: set[int], top: int) -> list[Neighbour]:
        if top < 1:
            raise ConfigError(f"top = {top}", expected="1 or more")
        scores = self.directions @ (direction / max(float(np.linalg.norm(direction)), 1e-12))
        scores[list(left_out)] = -np.inf
        count = min(top, len(scores) - len(left_out))
        best = np.argpartition(-scores, max(0, count - 1))[:count]
        best = best[np.lexsort((best, -scores[best]))]
        return [Neighbour(self.words.words[row], float(scores[row])) for row in best]

    # -- how good they are --------------------------------------------------------------------

    def evaluate(self, *files: str) -> dict[str, Any]:
        """Files of word pairs with a score (Spearman's correlation), or of analogies (how many are right)."""
        found: dict[str, Any] = {}
        for path in files:
            lines = _lines(path)
            analogies = lines[0][1].startswith(":") or len(lines[0][1].split()) == 4
            told = self.analogies(lines, path) if analogies else self.pairs(lines, path)
            for name, value in told.items():
                if name in found:
                    raise ConfigError(f"two files of the same kind, the second {path}", expected="one of each")
                found[name] = value
        return found | {"measured_on": "data"}

    def pairs(self, lines: list[tuple[int, str]], path: str) -> dict[str, Any]:
        """word, word, score with tabs (or spaces) between them; pairs with an unknown word do not count."""
        ours, theirs, given = [], [], 0
        for number, line in lines:
            cells = line.split("\t") if "\t" in line else line.split()
            try:
                first, second, score = cells[0], cells[1], float(cells[2])
            except (IndexError, ValueError):
                if number == lines[0][0]:
                    continue  # names of columns
                raise DataError(
                    f"{path}, line {number}: {line[:40]!r}", expected="word, word and a number, with tabs between them"
                ) from None
            given += 1
            rows = [self._known(first), self._known(second)]
            if rows[0] is not None and rows[1] is not None:
                ours.append(float(self.directions[rows[0]] @ self.directions[rows[1]]))
                theirs.append(score)
        if len(ours) < 2:
            raise DataError(f"{len(ours)} of the {given} pairs in {path} are known", expected="two at least")
        return {"spearman": spearman(np.array(ours), np.array(theirs)), "pairs": given, "known_pairs": len(ours)}

    def analogies(self, lines: list[tuple[int, str]], path: str) -> dict[str, Any]:
        """Lines of four words, `: name` before each section; questions with an unknown word do not count."""
        sections: dict[str, list[list[int]]] = {}
        name, given = "", 0
        for number, line in lines:
            if line.startswith(":"):
                name = line[1:].strip()
                continue
            words = line.split()
            if len(words) != 4:
                raise DataError(f"{path}, line {number}: {line[:40]!r}", expected="four words, or `: section`")
            given += 1
            rows = [self._known(word) for word in words]
            if all(row is not None for row in rows):
                sections.setdefault(name, []).append([row for row in rows if row is not None])
        right = {name: self._right(np.array(asked)) for name, asked in sections.items()}
        known = sum(len(asked) for asked in sections.values())
        if not known:
            raise DataError(f"none of the {given} questions in {path} has only known words", expected="one at least")
        told = {
            section: {"accuracy": count / len(sections[section]), "questions": len(sections[section])}
            for section, count in right.items()
        }
        return {
            "accuracy": sum(right.values()) / known,
            "questions": given,
            "known_questions": known,
            "sections": told,
        }

    def _right(self, asked: NDArray[np.int64]) -> int:
        """How many of the questions (N, 4) are answered with their last word."""
        right = 0
        for start in range(0, len(asked), QUESTIONS_PER_BATCH):
            part = asked[start : start + QUESTIONS_PER_BATCH]
            first, second, third = (self.directions[part[:, n]] for n in range(3))
            scores = (second - first + third) @ self.directions.T
            np.put_along_axis(scores, part[:, :3], -np.inf, axis=1)
            right += int((scores.argmax(1) == part[:, 3]).sum())
        return right

    def _known(self, word: str) -> int | None:
        """As it is written, else in small letters, as most lists of words are used."""
        rows = self.words.rows
        return rows.get(word, rows.get(word.lower()))


def _lines(path: str) -> list[tuple[int, str]]:
    """The lines of a file that hold something, with their numbers."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", expected="a text file") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not valid UTF-8", expected="a text file") from None
    found = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not found:
        raise DataError(f"{path} is empty", expected="word pairs with scores, or analogies")
    return found
