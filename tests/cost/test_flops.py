"""Operations by rules against operations counted in a real run: for every family and every kind of attention."""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from fixtures.operations import (
    LEARNED_FAMILIES,
    check_operations,
    count_operations,
    make_numbers,
    make_small_config,
    usual_length,
)
from weft.blocks import EVERYTHING, Attention, AttentionConfig, AttentionCore
from weft.cost.curves import crossing, over_lengths, over_widths, wider
from weft.cost.flops import walk
from weft.cost.learning import PLAIN, Learning
from weft.errors import UnsupportedError
from weft.models import BagOfWordsConfig, ImageConfig, ModelConfig, NGramConfig
from weft.models.base import Model
from weft.models.presets import preset, presets
from weft.training.freezing import freeze

KINDS = [  # of attention, in families that take them: what cannot be kept from looking ahead does not write
    (family, kind)
    for family in ("gpt", "bert", "vit")
    for kind in AttentionConfig.registry
    if kind != AttentionConfig.several and (family != "gpt" or AttentionConfig.from_config(kind).writes)
]
WALKED = [  # not the deepest, which are as the others, nor what is counted
    name for name in sorted(presets()) if preset(name)[0] != "ngram" and int(str(preset(name)[1].get("depth", 0))) <= 12
]


@pytest.mark.parametrize("family", LEARNED_FAMILIES)
def test_every_family_as_counted(family):
    """At three lengths."""
    config = make_small_config(family)
    for length in (16, 32, 48) if isinstance(config, ImageConfig) else (7, 40, 57):
        check_operations(config, 2, length)


@pytest.mark.parametrize("family", LEARNED_FAMILIES)
def test_example_inputs_are_what_a_model_is_called_with(family):
    model = make_small_config(family).build()
    found = model(*model.example_inputs(2, usual_length(model.config), make_numbers))
    assert torch.isfinite(found).all()


def test_what_counts_has_no_step():
    model = NGramConfig(vocab_size=9).build()
    with pytest.raises(UnsupportedError, match="NGram has no example"):
        model.example_loss(1, 9, make_numbers)


# -- blocks that nobody has a rule for --------------------------------------------------------


class _Unknown(nn.Module):
    """Multiplies matrices in ways of its own, in no block that says so; one of them is frozen."""

    def __init__(self):
        super().__init__()
        self.weight, self.fixed = (nn.Parameter(torch.randn(16, 16)) for _ in range(2))
        self.vector = nn.Parameter(torch.randn(16))
        self.fixed.requires_grad_(False)

    def forward(self, x):
        pairs = torch.einsum("bti,ij,bsj->bts", x, self.weight, x)
        told = pairs.softmax(-1) @ (x @ self.fixed)
        with torch.no_grad():
            aside = x @ self.weight
        return x + (told + aside) * (x @ self.vector)[..., None]


class _NewCore(AttentionCore):
    """A kind of attention without weights of its own, of which no rule is known."""

    def forward(self, query, key, value, mask=EVERYTHING):
        return (query @ key.transpose(-2, -1)).relu() @ value


class _Stepwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(16, 16)

    def forward(self, x):
        state, states = None, []
        for token in x.unbind(1):
            state = self.cell(token, state)
            states.append(state[0])
        return torch.stack(states, 1)


class _Twice(nn.Bilinear):
    def forward(self, x):
        return super().forward(x, x)


class _Strange(Model):
    """A family of a newcomer, who says nothing of its cost."""

    def __init__(self, inside):
        super().__init__()
        self.tokens, self.inside, self.head = nn.Embedding(32, 16), inside, nn.Linear(16, 32)

    def example_loss(self, batch, length, make):
        return self.head(self.inside(self.tokens(make((batch, length), 32)))).logsumexp(-1).sum()


@dataclass(frozen=True)
class _StrangeConfig:
    inside: Callable[[], nn.Module]
    learned_in_steps = True
    needs_numbers = False

    def build(self):
        return _Strange(self.inside())

    def skeleton(self):
        with torch.device("meta"):
            return self.build()


@pytest.mark.parametrize("inside", [_Unknown, lambda: Attention(16, heads=2, core=_NewCore()), _Stepwise])
def test_what_nobody_says_is_counted(inside):
    config = _StrangeConfig(inside)
    for length in (2, 7, 12):
        found, real = walk(config, batch=3, length=length).total, count_operations(config, 3, length)
        assert found.forward == real[0] > 2 * 3 * length * 16 * 32, "more than the head"
        assert found.backward == pytest.approx(real[1], rel=0.01), "torch counts no outer products"


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(UnsupportedError, match="_trilinear"):
        walk(_StrangeConfig(lambda: _Twice(16, 16, 16)), batch=1, length=3)


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_every_kind_of_attention_as_counted(family, kind):
    config = make_small_config(family, attention={"kind": kind})
    check_operations(config, 1, 32 if family == "vit" else 150)


@pytest.mark.parametrize(
    ("family", "fields"),
    [
        ("gpt", {"attention": {"kind": "softmax", "heads": 4, "kv_heads": 2}}),
        ("gpt", {"position": {"kind": "learned"}, "tied": True}),
        ("gpt", {"position": {"kind": "alibi"}}),
        ("gpt", {"feed_forward": {"kind": "gated"}}),
        ("gpt", {"attention": [{"kind": "softmax"}, {"kind": "linear"}]}),
        ("gpt", {"attention": {"kind": "hard", "learning": "argmax"}}),
        ("bert", {"head": {"kind": "pretraining"}, "pool": "first"}),
        ("bert", {"head": {"kind": "classes", "classes": 3}, "position": {"kind": "relative"}}),
        ("transformer", {"memory": "joint"}),
        ("transformer", {"memory": "same", "source_vocab_size": 50}),
        ("lstm", {"head": {"kind": "classes"}, "both_ways": True}),
        ("bahdanau", {"depth": 2, "attention_width": 32}),
        ("vit", {"stem": [16], "pool": "class"}),
        ("cbow", {"negative": 0}),
    ],
)
def test_other_parts_as_counted(family, fields):
    config = make_small_config(family, **fields)
    check_operations(config, 2, usual_length(config))


FROZEN = [
    ("gpt", {"depth": 3, "tied": True}, 1),
    ("gpt", {"depth": 3, "attention": {"kind": "local", "window": 8}}, 2),
    ("gpt", {"depth": 2, "position": {"kind": "learned"}}, "embeddings"),
    ("bert", {"depth": 3}, 2),
    ("transformer", {"depth": 2}, 1),
    ("vit", {"depth": 3}, 1),
    ("davit", {}, 1),
    ("resnet", {}, 2),
    ("lstm", {"depth": 2}, 1),
    ("seq2seq", {"depth": 2}, 1),
    ("bahdanau", {}, 1),
    ("bahdanau", {"depth": 2}, 1),
    ("t5", {"depth": 2}, 1),
    ("convnext", {}, 1),
]


@pytest.mark.parametrize(("family", "fields", "what"), FROZEN)
def test_what_is_frozen_has_no_slope(family, fields, what):
    config = make_small_config(family, **fields)
    learning = Learning(freeze=functools.partial(freeze, what=what))
    check_operations(config, 2, usual_length(config), learning)
    plain, frozen = (walk(config, batch=2, length=usual_length(config), learning=one) for one in (PLAIN, learning))
    assert frozen.total.forward == plain.total.forward
    assert frozen.total.backward < plain.total.backward or what == "embeddings"


def test_what_a_fast_kernel_leaves_out_is_never_more_than_there_is():
    config = make_small_config("gpt", depth=3)
    for what in (None, 2, 3):
        learning = Learning(freeze=functools.partial(freeze, what=what))
        found = walk(config, batch=1, length=200, learning=learning).parts["attention scores"]
        assert found.unseen == pytest.approx(found.total * 199 / 400)


def test_scores_overtake_elsewhere_if_not_all_learns():
    config = make_small_config("gpt", depth=3)
    learning = Learning(freeze=functools.partial(freeze, what=2))
    plain, frozen = (crossing(config, length=64, learning=one).everything for one in (PLAIN, learning))
    before, after = (walk(config, batch=1, length=round(f * frozen), learning=learning) for f in (0.9, 1.1))
    assert frozen != plain
    for walked, more in ((before, False), (after, True)):
        scores = walked.of("attention scores")
        assert (scores > walked.total.total - scores) is more


def test_parts_are_told_apart():
    """By hand: width 64, 2 layers, 3 texts of 40 tokens; a map has 2 operations for each weight and token."""
    found = walk(make_small_config("gpt", depth=2), batch=3, length=40)
    tokens = 3 * 40
    assert found.parts["attention maps"].forward == 2 * tokens * 2 * 4 * 64 * 64
    assert found.parts["feed-forward"].forward == 2 * tokens * 2 * 8 * 64 * 64
    assert found.parts["head"].forward == 2 * tokens * 96 * 64
    assert found.parts["attention scores"].forward == 2 * 4 * tokens * 40 * 64
    seen = found.parts["attention scores"].forward - found.parts["attention scores"].unseen / 3
    assert seen == 2 * 4 * 3 * (40 * 41 / 2) * 64, "a causal mask leaves a triangle with its diagonal"


def test_frozen_weights_have_no_slope_of_their_own():
    """By hand: a map of 3 tokens from 16 to 16, then the head from 16 to 32."""
    one, head = 2 * 3 * 16 * 16, 2 * 3 * 16 * 32
    maps = (lambda: nn.Linear(16, 16), lambda: nn.Linear(16, 16).requires_grad_(False))
    free, fixed = (walk(_StrangeConfig(made), batch=1, length=3).total for made in maps)
    assert (free.forward, free.backward) == (one + head, 2 * (one + head))
    assert (fixed.forward, fixed.backward) == (one + head, one + 2 * head)


@pytest.mark.parametrize("name", ["gpt", "bert", "t5", "vit-b", "gpt2"])
def test_scores_overtake_maps_where_it_says(name):
    family, fields = preset(name)
    config = ModelConfig.from_config(
        {"kind": family, **({} if "vocab_size" in fields or "vit" in name else {"vocab_size": 512}), **fields}
    )
    found = crossing(config, length=64)
    for at, maps in ((found.maps, "attention maps"), (found.everything, "")):
        before, after = (walk(config, batch=1, length=n) for n in (int(0.9 * at), int(1.1 * at)))
        for walked, more in ((before, False), (after, True)):
            scores = walked.of("attention scores")
            assert (scores > (walked.of(maps) if maps else walked.total.total - scores)) is more


def test_linear_attention_never_overtakes():
    config = make_small_config("bert", attention={"kind": "linear"})
    assert crossing(config, length=64).everything is None
    assert crossing(make_small_config("lstm"), length=64) is None


def test_curves():
    config = make_small_config("gpt")
    lengths = [one.point() for one in over_lengths(config, batch=1, length=64)]
    assert [point.length for point in lengths] == [16, 32, 64, 128, 256]
    assert all(a.flops < b.flops and a.scores < b.scores for a, b in itertools.pairwise(lengths))
    widths = [one.point() for one in over_widths(config, batch=1, length=64)]
    assert [point.width for point in widths] == [16, 32, 64, 128, 256]
    assert all(a.parameters < b.parameters for a, b in itertools.pairwise(widths))
    assert lengths[0].memory is None and lengths[0].seconds is None
    priced = [one.point(lambda model, at: (at, 1.0 * model.width)) for one in over_lengths(config, batch=1, length=64)]
    assert [(point.memory, point.seconds) for point in priced] == [(point.length, 64.0) for point in lengths]
    assert wider(BagOfWordsConfig(vocab_size=9), 2.0) is None
    assert walk(NGramConfig(vocab_size=9), batch=1, length=9).total.total == 0


def test_learned_positions_grow_with_the_length():
    config = make_small_config("gpt", position={"kind": "learned"}, max_length=64)
    points = [one.point() for one in over_lengths(config, batch=1, length=64)]
    assert [point.length for point in points] == [16, 32, 64, 128, 256]
    assert [point.parameters - points[0].parameters for point in points] == [0, 0, 0, 64 * 64, 192 * 64]


@pytest.mark.parametrize("name", WALKED)
def test_every_preset_can_be_walked_through(name):
    family, fields = preset(name)
    known = (
        {}
        if "vocab_size" in fields or "vocab_size" not in ModelConfig.registry.find(family).__dataclass_fields__
        else {"vocab_size": 512}
    )
    config = ModelConfig.from_config({"kind": family, **known, **fields})
    assert walk(config, batch=1, length=64 if isinstance(config, ImageConfig) else 8).total.total > 0
