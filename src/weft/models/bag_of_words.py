"""A bag of words: which tokens a text has, and nothing of their order. Each token has a weight for each class, and
the class of a text follows from the sum: logistic regression, the baseline that every classifier of texts has to beat.

Pang, Lee & Vaithyanathan 2002, "Thumbs up?", found for film reviews that the presence of a word says more than its
count; Wang & Manning 2012, "Baselines and Bigrams", that such models are hard to beat on short texts. Dropping tokens
at random while it learns keeps rare ones from being learned by heart (Wager, Wang & Liang 2013).
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.blocks.roles import LABEL_HEAD, by_name
from weft.config import Choice, Share, Size
from weft.models.base import LayerStack, Maker, Model, ModelConfig
from weft.models.capabilities import Capability, ClassifiesText
from weft.models.classes import Classes
from weft.models.encoding import PackedTexts
from weft.models.example_step import example_cross_entropy, example_row
from weft.models.sites import ReachStack, without_layers
from weft.models.sizing import SizePreset, Sizing

PARTS_OF_A_PAIR = 3  # the tokens of the first text, of the second, and those that both have


class BagHeadConfig(Choice):
    """The head of a bag of words."""


class BagClassesConfig(Classes, BagHeadConfig, kind="classes"):
    """A score for each class of text."""

    classes: Size = 2


class BagOfWordsConfig(ModelConfig, kind="bag-of-words", aliases=("bow",)):
    """A weight for each token and class.

    repeats    what a token counts that a text has several times: "once", or "each" time
    pairs      two texts have a bag each, and a third for what they share
    dropout    share of the tokens that are left out in training; the others count for more
    """

    learns: ClassVar = {
        ClassifiesText: Sizing(
            [SizePreset({"dropout": 0.0})],
            head={"head": {"kind": "classes"}},
            training={
                "optimizer": {"kind": "adamw", "learning_rate": 0.005, "weight_decay": 0.1},
                "warmup": 0.05,
                "decay": 0.95,
            },
            objective={"word_dropout": 0.0, "respelling": 0.2},  # a mask token would be a word of its own
            pairs={"pairs": True},
        )
    }
    needs_numbers = True  # a token counts once in a text, however often that has it

    vocab_size: Size
    repeats: Literal["once", "each"] = "once"
    pairs: bool = False
    dropout: Share = 0.0
    head: BagHeadConfig = BagClassesConfig()

    @property
    def features(self) -> int:
        """The number of binary features of a text."""
        return self.vocab_size * (PARTS_OF_A_PAIR if self.pairs else 1)

    @property
    def width(self) -> int:
        """Weights of a token: one for each class."""
        assert isinstance(self.head, BagClassesConfig)
        return self.head.classes

    @property
    def depth(self) -> int:
        """0: there is no layer between the tokens and the classes."""
        return 0

    @property
    def provides(self) -> frozenset[Capability]:
        return frozenset({ClassifiesText})

    def build(self) -> BagOfWords:
        return BagOfWords(self)


class BagOfWords(Model):
    """Texts in, a score for each class out."""

    roles = by_name(classes=LABEL_HEAD)

    def __init__(self, config: BagOfWordsConfig) -> None:
        super().__init__()
        self.config = config
        self.classes = nn.Sequential(nn.Linear(config.features, config.width))
        for p in self.classes.parameters():
            nn.init.zeros_(p)  # the loss is convex: the minimum does not depend on the start

    def __repr__(self) -> str:
        return f"BagOfWords({self.config.features:,} features, {self.config.width} classes)"

    def layers_in_order(self) -> list[LayerStack]:
        return []

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        raise without_layers(self.config.kind)

    def example_inputs(self, batch: int, length: int, make: Maker) -> tuple[Tensor, ...]:
        tokens = make((batch, length), self.config.vocab_size)
        return (tokens, make((batch, length), 2)) if self.config.pairs else (tokens,)

    def example_loss(self, batch: int, length: int, make: Maker) -> Tensor:
        segments = 2 if self.config.pairs else 0
        row = example_row(make, self.config.vocab_size, batch, length, segments=segments)
        return example_cross_entropy(self.text_logits(row), make)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        keep: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B C"]:
        """A logit for each class; each row is a text, of which `keep` marks the real tokens."""
        given = [tokens] if segments is None else [tokens, segments]
        rows = [
            list(one) if keep is None else [row[real] for row, real in zip(one, keep, strict=True)] for one in given
        ]
        return self.text_logits(PackedTexts.of(*rows))

    def text_logits(self, row: PackedTexts) -> Float[Tensor, "N C"]:
        """The summed weights of the tokens of each text; added up in the order of their ids, so that texts with the
        same tokens have the same logits to the last bit."""
        texts, features = self._bags(row)
        last = self.classes[0]
        assert isinstance(last, nn.Linear)
        said = F.embedding(features, last.weight.t())
        if self.training and self.config.dropout:
            said = said * F.dropout(torch.ones_like(said[:, :1]), self.config.dropout)
        counts = torch.bincount(texts, minlength=len(row.packed.lengths))
        return torch.segment_reduce(said, "sum", lengths=counts, axis=0) + last.bias

    def _bags(self, row: PackedTexts) -> tuple[Tensor, Tensor]:
        """The contents of the bags as indices of texts and of features, both in rising order."""
        device = row.tokens.device
        lengths = torch.tensor(row.packed.lengths, device=device)
        texts = torch.repeat_interleave(torch.arange(len(lengths), device=device), lengths)
        features = row.tokens[0]
        if self.config.pairs and row.segments is not None:
            features = features + row.segments[0] * self.config.vocab_size
        found = (texts * self.config.features + features).sort().values
        if self.config.repeats == "once":
            found = torch.unique(found)
        if self.config.pairs and row.segments is not None:
            found = torch.cat([found, self._shared(found)]).sort().values
        return found // self.config.features, found % self.config.features

    def _shared(self, found: Tensor) -> Tensor:
        """The features for tokens that both texts of a pair have."""
        first = torch.unique(found)
        beside = first + self.config.vocab_size  # the same token in the second text
        in_first = first % self.config.features < self.config.vocab_size
        return beside[in_first & torch.isin(beside, first)] + self.config.vocab_size
