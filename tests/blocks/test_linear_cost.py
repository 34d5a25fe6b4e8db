"""Kinds whose cost grows with the length and not with its square: no tensor in them has a place for each pair."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from weft.blocks import CAUSAL, EVERYTHING, AttentionConfig, Mask
from weft.blocks.attention import Grid


class Largest(TorchDispatchMode):
    """The largest tensor that anything inside the block computes."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        sizes = [t.numel() for t in tree_leaves(found) if isinstance(t, torch.Tensor)]
        self.numbers = max([self.numbers, *sizes])
        return found


def largest(config, side, mask):
    module = config.build(8)
    x = torch.randn(1, side * side, 8, requires_grad=True)
    with Largest() as seen:
        module(x, mask=mask(side)).sum().backward()
    return seen.numbers


CASES = {
    "window of a row": ({"kind": "window", "window": 5, "shift": 2}, lambda side: EVERYTHING),
    "window of a row, causal": ({"kind": "window", "window": 5}, lambda side: CAUSAL),
    "window of an image": ({"kind": "window", "window": 5}, lambda side: Mask(grid=Grid(side, side))),
    "hierarchy": ({"kind": "hierarchy"}, lambda side: EVERYTHING),
    "channel": ({"kind": "channel"}, lambda side: EVERYTHING),
    "local": ({"kind": "local", "window": 5}, lambda side: EVERYTHING),
    "local, causal": ({"kind": "local", "window": 5}, lambda side: CAUSAL),
    "local in an image": ({"kind": "local", "window": 2}, lambda side: Mask(grid=Grid(side, side))),
    "local, padded": ({"kind": "local", "window": 5}, lambda side: Mask(causal=True, keep=padded(side))),
    "dilated": ({"kind": "dilated", "window": 3, "dilation": 4}, lambda side: CAUSAL),
    "global": ({"kind": "global", "tokens": 2}, lambda side: EVERYTHING),
    "learned": ({"kind": "global", "learned": 2}, lambda side: EVERYTHING),
    "union": ({"kind": "union", "of": [{"kind": "local", "window": 5}, "global"]}, lambda side: CAUSAL),
    "linear": ({"kind": "linear"}, lambda side: EVERYTHING),
    "linear, causal": ({"kind": "linear"}, lambda side: CAUSAL),
    "linear, padded": ({"kind": "linear"}, lambda side: Mask(causal=True, keep=padded(side))),
    "random features, causal": ({"kind": "random-features", "features": 8}, lambda side: CAUSAL),
}


def padded(side):
    keep = torch.ones(1, side * side, dtype=torch.bool)
    keep[:, :5] = False
    return keep


@pytest.mark.parametrize("case", CASES)
def test_twice_the_side_is_four_times_the_cost(case):
    fields, mask = CASES[case]
    config = AttentionConfig.from_config({**fields, "heads": 2})
    assert largest(config, 64, mask) <= 4.4 * largest(config, 32, mask)  # a border that is padded is a little more


def test_a_table_of_all_pairs_is_found_out():
    """A negative control: hard attention compares every query with every key."""
    config = AttentionConfig.from_config({"kind": "hard", "heads": 2})
    assert largest(config, 24, lambda side: EVERYTHING) > 15 * largest(config, 12, lambda side: EVERYTHING)
