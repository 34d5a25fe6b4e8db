"""Count models: the next token by how often it followed the last n − 1 tokens.

Shannon 1948, "A Mathematical Theory of Communication", wrote English by them; until about 2010 they were what a
language model was. n = 1 is the bag of words: the order of the tokens does not matter to it. Nothing is learned by
gradients: the text is counted (`counts.py`), counts become probabilities (`smoothing.py`), and these are looked up
(`tables.py`). The file format that others use for such models is in `arpa.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.blocks import Cache
from weft.blocks.sight import Recent
from weft.config import Between, Count
from weft.errors import ConfigError, ShapeError, WeightsError
from weft.models.base import LanguageConfig, LayerStack, Model
from weft.models.capabilities import Capability, CausalLM, Ids, LearnsByCounting
from weft.models.decoder import last_real
from weft.models.ngram.counts import Counted, counted
from weft.models.ngram.smoothing import KneserNeyConfig, SmoothingConfig
from weft.models.ngram.tables import Level, NGramTables
from weft.models.sites import ReachLayer, ReachStack, no_part
from weft.models.sizing import Sizing

COUNTED = "By its order: how much of that was ever counted together is up to the text."
MAX_ORDER = 20  # tokens of an n-gram
MAX_VALIDATION_TOKENS = 200_000  # for choosing the open numbers of the smoothing
MAX_TABLE_NUMBERS = 1 << 25  # in a table of probabilities that is computed at once
FIELDS = ("tokens", "starts", "probability", "backoff")
DTYPES = ((torch.int32,), (torch.int32, torch.int64), (torch.float64,), (torch.float64,))


PRESETS: dict[str, dict[str, object]] = {
    "unigram": {"order": 1},
    "bigram": {"order": 2},
    "trigram": {"order": 3},
    **{f"{n}gram": {"order": n} for n in range(1, MAX_ORDER + 1)},
}


class NGramConfig(LanguageConfig, kind="ngram"):
    """`order` is n: how many tokens an n-gram has. `end` is the token that ends a text; no n-gram
    reaches across it."""

    learns: ClassVar = {CausalLM: Sizing(), LearnsByCounting: Sizing(default=True)}
    presets: ClassVar = PRESETS

    order: Annotated[int, Between(1, MAX_ORDER)] = 5
    smoothing: SmoothingConfig = KneserNeyConfig()
    end: Count | None = None

    learned_in_steps = False

    def check(self) -> None:
        super().check()
        self.smoothing.check_order(self.order)
        if self.end is not None and self.end >= self.vocab_size:
            raise ConfigError(f"end = {self.end}", expected=f"a token below vocab_size = {self.vocab_size}")

    @property
    def provides(self) -> frozenset[Capability]:
        return frozenset({CausalLM, LearnsByCounting})

    def build(self) -> NGram:
        """A model that has read nothing: every token is equally likely."""
        return NGram(self)

    def with_tables(self, tables: NGramTables) -> NGram:
        """The model with these tables."""
        levels = [
            {name: torch.from_numpy(np.asarray(getattr(level, name))) for name in FIELDS} for level in tables.levels
        ]
        return self.with_weights({f"levels.{m}.{k}": t for m, level in enumerate(levels) for k, t in level.items()})

    def as_used(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """As they are: whole numbers and float64."""
        return {name: tensor.clone() for name, tensor in tensors.items()}

    def with_weights(self, weights: Mapping[str, Tensor]) -> NGram:
        """The model with these tensors as its tables, whose sizes come with them."""
        expected = {f"levels.{m}.{name}" for m in range(self.order) for name in FIELDS}
        for name in sorted(expected | weights.keys()):
            if name not in weights:
                raise WeightsError(f"there is no tensor {name!r}", expected="every table of the model")
            if name not in expected:
                raise WeightsError(f"the tensor {name!r} has no place in this model")
        model = self.build()
        above = 1
        for m, level in enumerate(model.levels):
            tensors = {name: weights[f"levels.{m}.{name}"] for name in FIELDS}
            _check_level(m, tensors, above, self)
            for name, tensor in tensors.items():
                level.register_buffer(name, tensor)
            above = len(tensors["tokens"])
        return model


def _check_level(m: int, tensors: Mapping[str, Tensor], above: int, config: NGramConfig) -> None:
    """Refuse tables whose parts do not fit together: later they are read without another check."""
    for name, dtypes in zip(FIELDS, DTYPES, strict=True):
        if tensors[name].dim() != 1 or tensors[name].dtype not in dtypes:
            raise WeightsError(f"'levels.{m}.{name}' is {tensors[name].dtype} of {tensors[name].dim()} dimensions")
    tokens, starts, probability, backoff = (tensors[name].numpy() for name in FIELDS)
    sizes = (len(starts), len(probability), len(backoff))
    if sizes != (above + 1, len(tokens), 0 if m == config.order - 1 else len(tokens)):
        raise WeightsError(f"'levels.{m}' has tables of {len(tokens)}, {sizes[0]}, {sizes[1]} and {sizes[2]} entries")
    if starts[0] != 0 or starts[-1] != len(tokens) or (np.diff(starts) < 0).any():
        raise WeightsError(f"'levels.{m}.starts' does not cut its {len(tokens)} entries into parts")
    if len(tokens) and not (0 <= tokens.min() and tokens.max() < config.vocab_size):
        raise WeightsError(f"'levels.{m}.tokens' has tokens from {tokens.min()} to {tokens.max()}")
    rising = np.diff(tokens) > 0
    rising[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(tokens))] - 1] = True
    if not rising.all() or (m == 0 and len(tokens) != config.vocab_size):
        raise WeightsError(f"'levels.{m}.tokens' is not in order, or not complete")
    if not ((probability >= 0) & (probability <= 1 + 1e-6)).all() or not ((backoff >= 0) & np.isfinite(backoff)).all():
        raise WeightsError(f"'levels.{m}' has numbers that are no probabilities")


class LastTokens:
    """The cache of a count model: the tokens themselves, row by row."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []

    def __repr__(self) -> str:
        return f"LastTokens({', '.join(str(len(row)) for row in self.rows)} tokens)"

    @property
    def start(self) -> int | Int[Tensor, "B 1"]:
        return torch.tensor([[len(row)] for row in self.rows]) if self.rows else 0

    def positions(self, device: torch.device) -> Int[Tensor, "*rows S"]:
        return torch.arange(max(map(len, self.rows), default=0), device=device)

    def rewind(self, tokens: int | Int[Tensor, "B"]) -> None:
        kept = [tokens] * len(self.rows) if isinstance(tokens, int) else tokens.tolist()
        self.rows = [row[:count] for row, count in zip(self.rows, kept, strict=True)]

    def select(self, rows: Int[Tensor, "R"]) -> None:
        self.rows = [list(self.rows[row]) for row in rows.tolist()]


class NGram(Model):
    """Tokens in, the logarithms of the probabilities of the next token out, at every position, in float64."""

    def __init__(self, config: NGramConfig) -> None:
        super().__init__()
        self.config = config
        self.levels = nn.ModuleList(nn.Module() for _ in range(config.order))
        size = config.vocab_size
        for m, level in enumerate(self.levels):
            count = 0 if m else size
            level.register_buffer("tokens", torch.arange(count, dtype=torch.int32))
            starts = torch.zeros(size + 1 if m == 1 else 1, dtype=torch.int32) if m else torch.tensor([0, size])
            level.register_buffer("starts", starts.to(torch.int32))
            level.register_buffer("probability", torch.full((count,), 1 / size, dtype=torch.float64))
            last = m == config.order - 1
            level.register_buffer("backoff", torch.ones(0 if last else count, dtype=torch.float64))

    def layers_in_order(self) -> list[LayerStack]:
        return []

    @property
    def tables(self) -> NGramTables:
        """The same memory as numpy reads it."""
        levels = [Level(*(getattr(level, name).cpu().numpy() for name in FIELDS)) for level in self.levels]
        return NGramTables(levels, self.config.end, self.config.smoothing.chained)

    @property
    def context(self) -> int | None:
        """Any number of tokens may be given; it looks at the last n − 1."""
        return None

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        """A table of counts is one layer: the next token depends on the last order − 1."""
        no_part(self, part)
        return [ReachStack([ReachLayer("counts", self, (Recent(self.config.order - 1),))], note=COUNTED)]

    def new_caches(self, capacity: int | None = None) -> list[Cache]:
        """An empty `LastTokens`."""
        return [LastTokens()]

    def count(self, tokens: Ids, validation: Ids, told: Callable[[int], None]) -> dict[str, Any]:
        """Count n-grams of 1 to n tokens (`told` is called with each length), smooth them by the validation tokens, and
        keep the tables. Returns the loss of the text itself, the number of n-grams, and the smoothing."""
        config = self.config
        levels = list(counted(np.asarray(tokens), config.order, config.vocab_size, config.end, told))
        smoothing = config.smoothing.fitted(levels, np.asarray(validation[:MAX_VALIDATION_TOKENS]), config.end)
        tables = smoothing.tables(levels, config.end)
        self.levels = config.with_tables(tables).levels
        return {
            "loss": _nats_of_training(levels, tables) / len(tokens),
            "parameters": tables.size,
            "ngrams": [len(level.tokens) for level in levels],
            "smoothing": smoothing.to_dict(),
        }

    def text_nats(self, ids: NDArray[np.integer[Any]]) -> float:
        """The summed negative log-probability of every token but the first; infinite if one is impossible."""
        if len(ids) and int(ids.max()) >= self.config.vocab_size:
            raise ShapeError(f"the token {int(ids.max())}", expected=f"tokens below {self.config.vocab_size}")
        return self.tables.nats(ids)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Log-probabilities of the next token; at padding (`keep` is False) there are zeros."""
        kept = torch.ones_like(tokens, dtype=torch.bool) if keep is None else keep
        found = self._after(tokens, kept, caches, kept)
        result = torch.zeros(*tokens.shape, self.config.vocab_size, dtype=torch.float64, device=tokens.device)
        result[kept] = found
        return result

    def next_logits(
        self, tokens: Int[Tensor, "B T"], *, keep: Bool[Tensor, "B T"] | None = None, caches: Sequence[Cache]
    ) -> Float[Tensor, "B V"]:
        """Log-probabilities after the last real token of each row alone."""
        kept = torch.ones_like(tokens, dtype=torch.bool) if keep is None else keep
        last = torch.zeros_like(kept)
        last[torch.arange(len(kept)), last_real(kept)] = True
        return self._after(tokens, kept, caches, last)

    def _after(
        self, tokens: Tensor, kept: Tensor, caches: Sequence[Cache] | None, asked: Tensor
    ) -> Float[Tensor, "A V"]:
        """Log-probabilities after the tokens marked by `asked`, row by row; the cache then holds all tokens marked by
        `kept`."""
        if tokens.dim() != 2 or tokens.shape != kept.shape:
            raise ShapeError(f"tokens have shape {tuple(tokens.shape)}", expected="(B, T), as `keep` has")
        if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < self.config.vocab_size:
            raise ShapeError(
                f"tokens from {int(tokens.min())} to {int(tokens.max())}",
                expected=f"tokens below {self.config.vocab_size}",
            )
        cache = caches[0] if caches else None
        before = cache.rows if isinstance(cache, LastTokens) and cache.rows else [[] for _ in tokens]
        if len(before) != len(tokens):
            raise ShapeError(f"{len(tokens)} rows for a cache of {len(before)}", expected="the same batch")
        reach = self.config.order - 1
        rows = [row[-reach:] if reach else [] for row in before]
        new = [row[real].tolist() for row, real in zip(tokens.cpu(), kept.cpu(), strict=True)]
        texts = [np.array(old + more, dtype=np.int64) for old, more in zip(rows, new, strict=True)]
        places = [np.flatnonzero(row[real].numpy()) for row, real in zip(asked.cpu(), kept.cpu(), strict=True)]
        if isinstance(cache, LastTokens):
            cache.rows = [old + more for old, more in zip(before, new, strict=True)]
        starts = np.cumsum([0, *map(len, texts)])[:-1]
        flat = np.concatenate([np.empty(0, dtype=np.int64), *texts])
        at = [start + len(old) + place for start, old, place in zip(starts, rows, places, strict=True)]
        return self._logarithms(flat, starts, np.concatenate([np.empty(0, dtype=np.int64), *at])).to(tokens.device)

    def _logarithms(self, flat: NDArray[np.int64], fresh: NDArray[np.int64], asked: NDArray[np.int64]) -> Tensor:
        tables, result = self.tables, torch.empty(len(asked), self.config.vocab_size, dtype=torch.float64)
        step = max(1, MAX_TABLE_NUMBERS // self.config.vocab_size)
        fresh = fresh[fresh < len(flat)]
        for first in range(0, len(asked), step):
            part = slice(first, first + step)
            torch.log(torch.from_numpy(tables.next_shares(flat, fresh, asked[part])), out=result[part])
        return result


def _nats_of_training(levels: list[Counted], tables: NGramTables) -> float:
    """The loss of the counted text, in nats: each token by the longest of its n-grams."""
    total = 0.0
    for number, (level, table) in enumerate(zip(levels, tables.levels, strict=True)):
        longest = level.counts
        if number + 1 < len(levels):
            above = levels[number + 1]
            longer = np.bincount(above.shorter, weights=above.counts, minlength=len(longest))
            longest = longest - longer.astype(np.int64)
        used = longest > 0
        total -= float((longest[used] * np.log(table.probability[used])).sum())
    return total
