"""Every position kind, found by itself, against the whole list of checks."""

import pytest

from conformance import position_checks
from weft.blocks import Position, PositionConfig

MORE = {"relative": [{"two_way": False}, {"buckets": 8, "max_distance": 20}], "rotary": [{"base": 100.0}]}
VARIANTS = [
    pytest.param(config(**fields), id=f"{kind}{fields or ''}")
    for kind, config in PositionConfig.registry.items()
    for fields in [{}, *MORE.get(kind, [])]
]


def test_all_kinds_are_there():
    assert set(PositionConfig.registry) == {"sinusoidal", "learned", "relative", "rotary", "alibi", "none"}


@pytest.mark.parametrize("name", position_checks.ALL)
@pytest.mark.parametrize("config", VARIANTS)
def test_position(config, name):
    position_checks.ALL[name](config)


def test_a_kind_that_counts_slots_instead_of_tokens_is_found_out():
    """Negative control: positions that ignore padding must fail."""

    class Slots(Position):
        def at_input(self, x, positions):
            return x + 0.1 * __import__("torch").arange(x.shape[1])[:, None]

    class SlotsConfig(type(PositionConfig.from_config("none"))):
        def build(self, **sizes):
            return Slots()

    for name in ("padding_left_and_right_equal_none", "cached_equals_uncached_in_any_chunks"):
        with pytest.raises(AssertionError):
            position_checks.ALL[name](SlotsConfig())
