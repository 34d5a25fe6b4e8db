"""Every attention kind, found by itself, against the whole list of checks."""

import contextlib
import math
import re

import pytest
import torch

from conformance import attention_checks
from weft.analysis import capture, health_sentences, softmax_health
from weft.blocks import AttentionConfig, AttentionCore, Mask, SoftmaxAttention
from weft.blocks.attention import HeadsConfig, LinearAttention
from weft.blocks.attention.base import EVERYTHING, spread
from weft.blocks.attention.softmax import softargmax
from weft.blocks.work import Work, counted
from weft.cli.attention_text import drawn
from weft.cost.flops import walk
from weft.errors import UnsupportedError
from weft.models import ModelConfig
from weft.tasks.attention_view.maps import Side, map_views, rollouts_of

# A kind in other dress is another thing to check: fewer key/value heads, free widths, other options.
DRESSES = [{}, {"heads": 4, "kv_heads": 2, "head_width": 4}, {"heads": 3, "head_width": 6, "value_width": 5}]
MORE = {
    "softmax": [{"beta": 1.0}, {"beta": 0.0}, {"beta": float("inf")}],
    "hard": [{"learning": "argmax"}, {"learning": "gumbel"}],
    "window": [{"window": 4, "shift": 3}, {"window": 2}, {"window": 5, "shift": 2, "beta": float("inf")}],
    "hierarchy": [{"summaries": 1}, {"beta": 0.0}, {"summaries": 40, "beta": float("inf")}],
    "local": [{"window": 3}, {"window": 5, "beta": float("inf")}],
    "dilated": [{"window": 3, "dilation": 2}],
    "strided": [{"stride": 3}],
    "global": [{"places": [5, 2]}, {"tokens": 0, "learned": 2}],
    "union": [{"of": [{"kind": "local", "window": 2}, {"kind": "global", "places": [3]}, "strided"]}],
    "random-features": [{"features": 5, "beta": 1.0, "redraw": 1}],
    "channel": [{"heads": 1, "bias": False}, {"beta": 0.0}, {"beta": float("inf")}],
}


def variants():
    for kind, config in AttentionConfig.registry.items():
        for fields in DRESSES + MORE.get(kind, []):
            if set(fields) <= set(config().to_dict()) and kind != AttentionConfig.several:  # has no module of its own
                yield pytest.param(AttentionConfig.from_config({"kind": kind, **fields}), id=f"{kind}{fields or ''}")


@pytest.mark.parametrize("name", attention_checks.ALL)
@pytest.mark.parametrize("config", list(variants()))
def test_attention(config, name):
    try:
        attention_checks.ALL[name](config)
    except attention_checks.Refused as refusal:
        assert str(refusal), "a refusal must say why"


def test_a_kind_that_ignores_its_mask_is_found_out():
    """Negative control: the suite must fail for an attention that leaks."""

    class Leaky(type(AttentionConfig.from_config("softmax"))):
        def build(self, width, *, qk=None):
            module = super().build(width, qk=qk)
            core = module.core.forward
            module.core.forward = lambda q, k, v, mask: core(q, k, v)
            return module

    failed = set()
    for name, function in attention_checks.ALL.items():
        try:
            function(Leaky(heads=2, head_width=8))
        except (AssertionError, attention_checks.Refused):
            failed.add(name)
    assert {
        "a_later_token_never_reaches_an_earlier_one",
        "causal_gradients_to_the_future_are_exactly_zero",
        "padding_changes_nothing_whatever_stands_in_it",
        "no_part_of_a_mask_is_ignored",
        "nothing_to_look_at_gives_nothing",
        "the_map_shown_is_the_map_in_use",
        "packed_documents_do_not_see_each_other",
        "a_bias_of_minus_infinity_forbids",
    } <= failed


# -- a kind from elsewhere, as a plugin defines it --------------------------------------------


class Sigmoid(AttentionCore):
    """σ(q·k/√K) as weights: each key alone decides. It says nothing about itself."""

    def forward(self, query, key, value, mask=EVERYTHING):
        return self.weights(query, key, mask) @ spread(value, query.shape[1])

    def weights(self, query, key, mask=EVERYTHING):
        scores = query @ spread(key, query.shape[1]).mT / math.sqrt(query.shape[-1])
        scores = scores if mask.bias is None else scores + mask.bias.to(scores.dtype)
        allowed = mask.allowed(query.shape[2], key.shape[2], query.device)
        return scores.sigmoid() if allowed is None else scores.sigmoid().masked_fill(~allowed, 0.0)


@contextlib.contextmanager
def plugged_in(core_class, **words):
    """A kind by this core, for as long as the block lasts."""

    class OwnConfig(HeadsConfig, kind="own"):
        """As a plugin defines it."""

        def core(self):
            return core_class()

    for name, said in words.items():
        setattr(OwnConfig, name, said)
    try:
        yield OwnConfig(heads=2, head_width=8)
    finally:
        del AttentionConfig.registry["own"]


WORDS = {"description": "Each key decides alone how much it is listened to", "cost": "N² pairs"}


def model_of(kind):
    return ModelConfig.from_config({"kind": "gpt", "vocab_size": 50, "width": 32, "depth": 2, "attention": kind})


def failures(config):
    found = {}
    for name, check in attention_checks.ALL.items():
        try:
            check(config)
        except attention_checks.Refused:
            pass
        except AssertionError as error:
            found[name] = str(error)
    return found


def test_a_kind_from_elsewhere_passes():
    with plugged_in(Sigmoid, **WORDS) as config:
        assert failures(config) == {}


def test_what_it_does_not_say_is_counted_and_never_nothing():
    with plugged_in(Sigmoid):
        own, full = (walk(model_of(kind), batch=3, length=70).parts["attention scores"] for kind in ("own", "softmax"))
    assert (own.forward, own.backward) == (full.forward, full.backward) and own.forward > 0


def test_what_it_does_not_promise_is_not_shown():
    with plugged_in(Sigmoid):
        model = model_of("own").build().eval()
    with capture(model) as maps, torch.no_grad():
        model(torch.randint(50, (1, 7)))
    layers = softmax_health([maps])
    assert [layer.heads for layer in layers] == [(), ()]
    told = "Sigmoid promises nothing of a row of its weights: entropy would mean nothing"
    assert health_sentences(layers) == [f"layer 1, layer 2: {told}"]
    side = Side(tuple("abcdefg"))
    views = map_views(maps, lambda *_: side)
    assert [view.are_shares for view in views] == [False, False] and rollouts_of(views, maps) == {}
    assert views[0].weights.sum(-1).max() > 1.5
    from weft.analysis.view import AttentionView

    lines = "\n".join(drawn(AttentionView("x", "gpt", views[:1]), (1, 1)))
    assert "without % are no shares" in lines and not re.search(r"\d%", lines)


class Asking(Sigmoid):
    """What it computes depends on the numbers it is given."""

    def weights(self, query, key, mask=EVERYTHING):
        return super().weights(query, key, mask) * (2 if float(query.detach().sum()) > 0 else 1)


class Averaging(AttentionCore):
    """The mean of all values, without a product of matrices."""

    def forward(self, query, key, value, mask=EVERYTHING):
        return value.cumsum(2) / torch.arange(1, value.shape[2] + 1)[:, None]


@pytest.mark.parametrize(("core", "why"), [(Asking, "cannot be counted"), (Averaging, "no product of matrices")])
def test_what_cannot_be_counted_is_refused_by_name(core, why):
    inputs = [torch.zeros(1, 2, 5, 4, requires_grad=True) for _ in range(3)]
    with pytest.raises(UnsupportedError, match=f"{core.__name__} does not define its operations.*{why}"):
        list(core().operations(*inputs))


def test_a_derived_kind_does_not_inherit_what_is_said_of_operations_and_rows():
    class Twice(SoftmaxAttention):
        def forward(self, query, key, value, mask=EVERYTHING):
            return super().forward(query, key, value, mask) + super().forward(query, key, value, mask)

    class Slow(LinearAttention):
        pass

    inputs = [torch.zeros(1, 2, 5, 4, requires_grad=True) for _ in range(3)]
    (plain,), (twice,) = (list(core.operations(*inputs)) for core in (SoftmaxAttention(), Twice()))
    assert (twice.forward, twice.backward) == (2 * plain.forward, 2 * plain.backward)
    assert Twice.rows == Slow.rows == "nothing" and SoftmaxAttention.rows == LinearAttention.rows == "sums to one"


def test_blocks_that_are_alike_are_counted_once_and_others_not():
    class Best(Sigmoid):
        def __init__(self, times):
            super().__init__()
            self._times = times

        def forward(self, query, key, value, mask=EVERYTHING):
            return sum(super(Best, self).forward(query, key, value, mask) for _ in range(self._times))

    inputs = [torch.zeros(1, 2, 5, 4, requires_grad=True) for _ in range(3)]
    one, same, three = (counted(Best(times), *inputs) for times in (1, 1, 3))
    assert one is same and three.forward == 3 * one.forward
    assert counted(Best(1), *(t.detach() for t in inputs)).backward == 0
    padded = counted(Best(1), *inputs, Mask(keep=torch.ones(1, 5, dtype=torch.bool)))
    assert padded.forward == one.forward


class Half(Sigmoid):
    def operations(self, query, key, value, mask=EVERYTHING):
        yield Work(1.0 * query.numel() * key.shape[2], 2.0 * query.numel() * key.shape[2])


class Boasting(Sigmoid):
    rows = "sums to one"


class Sharp(SoftmaxAttention):
    rows = "one-hot"


class Untaught(Sigmoid):
    """A choice: no gradient reaches queries and keys, but it does not say so."""

    def forward(self, query, key, value, mask=EVERYTHING):
        return softargmax(self.weights(query, key, mask).detach(), math.inf) @ spread(value, query.shape[1])


@pytest.mark.parametrize(
    ("core", "words", "check"),
    [
        (Half, WORDS, "operations_are_those_of_a_run"),
        (Untaught, WORDS, "operations_are_those_of_a_run"),
        (Half, WORDS, "operations_can_be_counted_without_numbers"),
        (Boasting, WORDS, "rows_keep_what_they_promise"),
        (Sharp, WORDS, "rows_keep_what_they_promise"),
        (Sigmoid, {}, "it_says_what_it_does_in_a_sentence"),
        (Sigmoid, WORDS | {"description": "Each key decides. Alone, that is"}, "it_says_what_it_does_in_a_sentence"),
        (
            Sigmoid,
            WORDS | {"description": "Each key decides alone, that is it."},
            "it_says_what_it_does_in_a_sentence",
        ),
    ],
)
def test_wrong_words_about_oneself_are_found_out(core, words, check):
    with plugged_in(core, **words) as config, pytest.raises(AssertionError):
        attention_checks.ALL[check](config)
