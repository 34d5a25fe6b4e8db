"""Every attention kind, found by itself, against the whole list of checks."""

import pytest

from conformance import attention_checks
from weft.blocks import AttentionConfig

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
    "channel": [{"heads": 1, "bias": False}, {"beta": 0.0}],
}


def variants():
    for kind, config in AttentionConfig.menu.items():
        for fields in DRESSES + MORE.get(kind, []):
            if set(fields) <= set(config().to_dict()) and kind != AttentionConfig.several:  # has no module of its own
                yield pytest.param(AttentionConfig.pick({"kind": kind, **fields}), id=f"{kind}{fields or ''}")


@pytest.mark.parametrize("name", attention_checks.ALL)
@pytest.mark.parametrize("config", list(variants()))
def test_attention(config, name):
    try:
        attention_checks.ALL[name](config)
    except attention_checks.Refused as refusal:
        assert str(refusal), "a refusal must say why"


def test_a_kind_that_ignores_its_mask_is_found_out():
    """Negative control: the suite must fail for an attention that leaks."""

    class Leaky(type(AttentionConfig.pick("softmax"))):
        def build(self, width, *, qk=None):
            module = super().build(width, qk=qk)
            lookup = module.lookup.forward
            module.lookup.forward = lambda q, k, v, mask: lookup(q, k, v)
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
