"""Filling in with a T5: each gap is a sentinel, and the contents of all gaps are written as one text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from weft.data.spans import Ids, SpanMarks, written_in
from weft.errors import DataError
from weft.generation.gaps import GapDecoding
from weft.generation.search import Hypothesis, SearchConfig, beam_search
from weft.generation.text_to_text import batches
from weft.models import EncoderDecoder
from weft.tasks.fill.results import Candidate, Filled, with_words

if TYPE_CHECKING:
    from weft.tasks.run import Run

MIN_BEAMS = 8  # of the beam search; it has two for each requested candidate if that is more
MAX_GAP_TOKENS = 16  # tokens of a gap


class SpanFiller:
    """A model with sentinels in its vocabulary, such as a T5: trained here, or from Hugging Face."""

    def __init__(self, run: Run) -> None:
        self.run, self.marks = run, SpanMarks.of(run.tokenizer)
        self.config: Any = run.model_config

    def filled(self, texts: Sequence[str], top: int, mask: str) -> list[Filled]:
        """What fits in place of `mask`, in each text: the likeliest answers that beam search finds, gap by gap.

        The probability of a candidate is the share of the answers that have it there, each counted by exp of its
        log-probability; what was not found counts as impossible, and so does an answer that leaves a gap blank, unless
        all do. The best text has the likeliest answer as a whole in its gaps, because the content of one depends on
        the others.
        """
        sources = [self.source(text, mask).tolist() for text in texts]
        counts = [text.count(mask) for text in texts]
        found: list[list[Hypothesis]] = [[] for _ in texts]
        beams = max(MIN_BEAMS, 2 * top)
        search = SearchConfig(beams=beams, best=beams, alpha=0.0, end=self.marks.end)  # by probability alone
        for places in batches([len(source) for source in sources], beams):
            decoding = self._decoding([sources[place] for place in places], [counts[place] for place in places])
            starts = torch.full((len(places),), self.config.start, device=decoding.device)
            limits = [counts[place] * (MAX_GAP_TOKENS + 1) + 2 for place in places]
            for place, hypotheses in zip(places, beam_search(decoding, starts, search, limits), strict=True):
                found[place] = hypotheses
        return [self._filled(text, mask, answers, top) for text, answers in zip(texts, found, strict=True)]

    def source(self, text: str, mask: str) -> Ids:
        """The tokens of a text with a sentinel for each gap, and its end."""
        tokenizer, pieces = self.run.tokenizer, text.split(mask)
        gaps, room = len(pieces) - 1, len(self.marks.sentinels) - 1
        if gaps > room:
            raise DataError(f"a text with {gaps} gaps", expected=f"at most {room}", advice="give a shorter text")
        if tokenizer.kind not in ("characters", "bytes"):  # the content of the gap has the space before it
            pieces[:-1] = [piece.removesuffix(" ") for piece in pieces[:-1]]
        first, *rest = (ids.astype(np.int64) for ids in tokenizer.encode_batch(pieces))
        parts = [part for gap, ids in zip(self.marks.sentinels[:gaps], rest, strict=True) for part in ([gap], ids)]
        source = np.concatenate([first, *parts, [self.marks.end]]).astype(np.int64)
        if len(source) > self.config.max_length:
            raise DataError(
                f"a text of {len(source)} tokens",
                expected=f"at most {self.config.max_length}",
                advice="give a shorter text",
            )
        return source

    def _decoding(self, sources: list[list[int]], counts: list[int]) -> GapDecoding:
        tokenizer, special = self.run.tokenizer, self.run.tokenizer.special
        given = (special.unknown, special.classify, special.separate, special.mask, special.pad, self.config.start)
        never = [number for number in given if number is not None and number != self.marks.end]
        never += range(tokenizer.vocab_size, self.config.vocab_size)  # a table may have more rows than there are tokens
        model, sentinels = cast(EncoderDecoder, self.run.model.eval()), self.marks.sentinels.tolist()
        with torch.inference_mode():
            return GapDecoding(model, sources, counts, sentinels=sentinels, end=self.marks.end, never=never)

    def _filled(self, text: str, mask: str, found: Sequence[Hypothesis], top: int) -> Filled:
        pieces = text.split(mask)
        answers = [(self._read(hypothesis, pieces), hypothesis.log_probability) for hypothesis in found]
        answers = [answer for answer in answers if all(word.strip() for word in answer[0])] or answers
        answers.sort(key=lambda answer: -answer[1])
        weights = [math.exp(log_probability - answers[0][1]) for _, log_probability in answers]
        candidates = []
        for gap in range(len(pieces) - 1):
            shares: dict[str, float] = {}
            for (words, _), weight in zip(answers, weights, strict=True):
                shares[words[gap]] = shares.get(words[gap], 0.0) + weight / sum(weights)
            likeliest = sorted(shares.items(), key=lambda item: -item[1])[:top]
            candidates.append([Candidate(word, share) for word, share in likeliest])
        best = answers[0][0] if answers else [""] * (len(pieces) - 1)
        return Filled(text, candidates, with_words(text, mask, best))

    def _read(self, hypothesis: Hypothesis, pieces: Sequence[str]) -> list[str]:
        """What an answer says of each gap, without the space that the text around it has already."""
        said = written_in(np.array(hypothesis.tokens, dtype=np.int64), self.marks)
        words = []
        for mark, before, after in zip(self.marks.sentinels.tolist(), pieces, pieces[1:], strict=False):
            word = self.run.tokenizer.decode(said.get(mark, []))
            word = word.removeprefix(" ") if not before or before.endswith(" ") else word
            words.append(word.rstrip(" ") if not after or after.startswith(" ") else word)
        return words
