"""Using a model that writes one text from another: the best texts, what they looked at, and how good they are."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import torch
from torch import nn

from weft.blocks import length_buckets
from weft.config import Between, Config, Count, Size
from weft.data.sides import Sides
from weft.errors import DataError
from weft.generation import GenerationConfig
from weft.generation.search import Hypothesis, SearchConfig
from weft.generation.text_to_text import limit_of, write
from weft.models import PairModel
from weft.objectives.text_to_text import TextToText
from weft.tasks.translate.alignment import Link, aligned, check_looks, compute_cross_attention
from weft.tasks.translate.encoded_pairs import EncodedPairs, Ids, TokenizerPair, with_end
from weft.tasks.translate.pair_data import PairConfig, open_pairs, read_pair_data
from weft.tasks.translate.quality import by_length, quality
from weft.text import Tokenizer

if TYPE_CHECKING:
    from weft.data.parallel import Pairs
    from weft.tasks.run import Run

MAX_IMPORTED_TOKENS = 512  # tokens of a text that an imported model reads
EVALUATION_BATCH_TOKENS = 4096  # tokens that are evaluated together


class TranslationConfig(Config):
    """How a text is written from another: by beam search, or drawn if a temperature is given.

    beams        texts that are kept in each step (1: greedy)
    alpha        log-probabilities are divided by length^alpha: more makes longer texts
    best         how many texts are given for each source
    max_tokens   of a text (None: three times as many as the source has, and 20)
    """

    beams: Size = 4
    alpha: Annotated[float, Between(0, 4)] = 1.0
    best: Size = 1
    max_tokens: Size | None = None
    temperature: Annotated[float, Between(0, 100)] | None = None
    top_k: Size | None = None
    top_p: Annotated[float, Between(0, 1)] | None = None
    min_p: Annotated[float, Between(0, 1)] | None = None
    seed: Count = 0

    def search(self, tokenizer: Tokenizer, start: int) -> SearchConfig:
        """For this vocabulary; the token that begins a text is not written inside it."""
        beams, best = (max(self.beams, self.best), self.best) if self.temperature is None else (1, 1)
        suppress = () if start == tokenizer.end else (start,)
        return SearchConfig(beams=beams, alpha=self.alpha, best=best, end=tokenizer.end, suppress=suppress)

    def sampling(self) -> GenerationConfig | None:
        """How a text is drawn, if it is."""
        if self.temperature is None:
            return None
        return GenerationConfig(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            seed=self.seed,
            samples=self.best,
        )


DEFAULT_SEARCH = TranslationConfig()
GREEDY = TranslationConfig(beams=1)


def translated(
    model: nn.Module,
    tokenizer: Tokenizer,
    sources: Sequence[Ids],
    settings: TranslationConfig,
    *,
    start: int,
    limits: Sequence[int],
) -> list[str]:
    """The best text for each source."""
    found = written(model, tokenizer, sources, settings, start=start, limits=limits)
    return [tokenizer.decode(texts[0].tokens) for texts in found]


def written(
    model: nn.Module,
    tokenizer: Tokenizer,
    sources: Sequence[Ids],
    settings: TranslationConfig,
    *,
    start: int,
    limits: Sequence[int],
) -> list[list[Hypothesis]]:
    """The best texts for each source, as tokens."""
    return write(
        cast(PairModel[Any], model),
        cast(Sequence[Sequence[int]], sources),
        settings.search(tokenizer, start),
        start=start,
        limits=limits,
        sampling=settings.sampling(),
    )


def plain_loss(model: nn.Module, pairs: EncodedPairs, start: int, device: torch.device) -> float:
    """Nats for each token of the targets, without smoothing."""
    loss, total, count = TextToText(), 0.0, 0
    model.eval()
    with torch.inference_mode():
        for places in length_buckets(pairs.lengths.sum(1).tolist(), EVALUATION_BATCH_TOKENS):
            summed, terms = loss(cast(PairModel[Any], model), pairs.batch(places, start).to(device))
            total, count = total + summed.item(), count + terms
    return total / count


# -- a run ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Translation:
    """What is written from a source.

    score    log-probability / length^alpha, by which texts are compared
    ended    whether it came to an end; else it was cut at the most tokens
    others   the next best texts, if more than one was requested
    links    which words of the source each word looked at, if requested
    """

    source: str
    text: str
    score: float
    ended: bool = True
    others: tuple[Translation, ...] = ()
    links: tuple[Link, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        told: dict[str, Any] = {"source": self.source, "translation": self.text, "score": self.score}
        if self.others:
            told["others"] = [{"translation": other.text, "score": other.score} for other in self.others]
        if self.links:
            told["alignment"] = [link.to_dict() for link in self.links]
        return told


class TranslationSearch:
    """A run that writes one text from another, opened."""

    def __init__(self, run: Run) -> None:
        run.check_translates()
        self.run, self.tokenizers = run, TokenizerPair(run.source_tokenizer, run.tokenizer)
        config = cast(Any, run.model_config)
        wanted = (
            MAX_IMPORTED_TOKENS if run.is_imported else getattr(run.config.data, "length", None) or MAX_IMPORTED_TOKENS
        )
        self.length, self.start = min(config.max_length, wanted), int(config.start)

    @functools.cached_property
    def model(self) -> PairModel[Any]:
        return cast(PairModel[Any], self.run.model)

    def translate(
        self, texts: Sequence[str], settings: TranslationConfig = DEFAULT_SEARCH, *, align: bool = False
    ) -> list[Translation]:
        """One for each text, in the order given; an empty text gives an empty one."""
        if align:
            check_looks(self.model)
        found = [Translation(text, "", 0.0) for text in texts]
        places = [place for place, text in enumerate(texts) if text.strip()]
        sources, _ = with_end(self.tokenizers.source, [texts[place] for place in places], self.length)
        limits = [min(self.length, settings.max_tokens or limit_of(len(source), self.length)) for source in sources]
        # the same text may be found in several spellings: look for more, and keep each text once
        wider = {"best": 2 * settings.best, "beams": max(settings.beams, 2 * settings.best)}
        search = settings.override(wider) if settings.best > 1 and settings.temperature is None else settings
        hypotheses = written(self.model, self.tokenizers.target, sources, search, start=self.start, limits=limits)
        for place, source, best in zip(places, sources, hypotheses, strict=True):
            given = [self._translation(texts[place], source, hypothesis, align) for hypothesis in best]
            if settings.temperature is None:
                once: dict[str, Translation] = {}
                for one in given:
                    once.setdefault(one.text, one)
                given = list(once.values())[: settings.best]
            first = given[0]
            found[place] = Translation(
                first.source, first.text, first.score, first.ended, tuple(given[1:]), first.links
            )
        return found

    def _translation(self, text: str, source: Ids, hypothesis: Hypothesis, align: bool) -> Translation:
        tokens = np.array(hypothesis.tokens, dtype=np.int64)
        unknown = self.tokenizers.target.special.unknown
        lost = unknown is not None and bool((tokens == unknown).any())
        links: tuple[Link, ...] = ()
        lost = lost and self.model.looks is not None
        weights = (
            compute_cross_attention(self.model, source, tokens, self.start) if (align or lost) and len(tokens) else None
        )
        if weights is not None and align:
            links = tuple(aligned(self.tokenizers, text, tokens, weights))
        if lost:
            assert weights is not None
            pieces = self.tokenizers.source.pieces(text)[: len(source) - 1]
            shown = self._with_copies(tokens, cast(int, unknown), pieces, weights)
        else:
            shown = self.tokenizers.target.decode(tokens)
        return Translation(text, shown, hypothesis.score, hypothesis.ended, (), links)

    def _with_copies(self, tokens: Ids, unknown: int, pieces: Sequence[str], weights: np.ndarray) -> str:
        """An unknown token is replaced by the source word it attends to most: names are mostly kept as they are."""
        parts: list[str] = []
        rest: list[int] = []
        for place, token in enumerate(tokens.tolist()):
            if token != unknown:
                rest.append(token)
                continue
            looked = weights[place, : len(pieces)]
            parts += [
                self.tokenizers.target.decode(rest),
                pieces[int(looked.argmax())].strip() if len(looked) else "",
            ]
            rest = []
        return " ".join(part.strip() for part in [*parts, self.tokenizers.target.decode(rest)] if part.strip())

    # -- how good it is -----------------------------------------------------------------------

    def evaluate(self, *data: str) -> dict[str, Any]:
        """Loss, BLEU, chrF and exact matches: on the run's own test or validation pairs, or on others."""
        pairs, measured_on = self._pairs(data)
        encoded = EncodedPairs.of(pairs, self.tokenizers, self.length)
        texts = [translation.text for translation in self.translate(pairs.sources)]
        loss = plain_loss(self.model, encoded, self.start, self.run.device)
        return {
            "loss": loss,
            **quality(texts, pairs.targets),
            "pairs": len(pairs),
            "measured_on": measured_on,
            "by_length": by_length(pairs.sources, texts, pairs.targets),
        }

    def _pairs(self, data: Sequence[str]) -> tuple[Pairs, str]:
        if data:
            return open_pairs(data, self._sides(), "test")[0], "data"
        if self.run.is_imported:
            raise DataError(
                f"{self.run.directory.path} was not trained here: it has no pairs of its own",
                expected="pairs to measure it on",
                advice=f"weft evaluate {self.run.directory.path} test.tsv",
            )
        config = self.run.config.data
        assert isinstance(config, PairConfig)
        found = read_pair_data(config)
        return (found.validation, "validation") if found.test is None else (found.test, "test")

    def _sides(self) -> Sides | None:
        """The columns it learned from, if it was a table; a model from elsewhere has none."""
        data = None if self.run.is_imported else self.run.config.data
        if not isinstance(data, PairConfig) or data.source is None or data.target is None:
            return None
        return Sides(data.source, data.target)
