"""What every position kind must do, as functions of its config. `ALL` is the list."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from conformance.attention_checks import assert_close, padded_batch, random
from weft.blocks import Attention, KeyValueCache, Mask, PositionConfig, SoftmaxAttention, all_positions
from weft.errors import ShapeError

ALL: dict[str, Callable[[PositionConfig], None]] = {}
WIDTH, HEADS, LENGTH = 16, 2, 48


def check(function: Callable[[PositionConfig], None]) -> Callable[[PositionConfig], None]:
    ALL[function.__name__] = function
    return function


class Reader(nn.Module):
    """One attention that is told the positions in all three places, as a model does it."""

    def __init__(self, config: PositionConfig) -> None:
        super().__init__()
        self.position = config.build(width=WIDTH, heads=HEADS, head_width=WIDTH // HEADS, max_length=LENGTH)
        self.attention = Attention(WIDTH, heads=HEADS, core=SoftmaxAttention(), qk=self.position.qk)

    def forward(
        self, x: Tensor, *, keep: Tensor | None = None, cache: KeyValueCache | None = None, causal: bool = True
    ) -> Tensor:
        asking, answering = all_positions(x.shape[1], x.device, keep=keep, cache=cache)
        x = self.position.at_input(x, asking)
        bias = self.position.at_scores(asking, answering)
        return self.attention(x, mask=Mask(causal=causal, keep=keep, bias=bias), cache=cache)


def reader(config: PositionConfig, dtype: torch.dtype = torch.float64) -> Reader:
    torch.manual_seed(3)
    module = Reader(config).to(dtype).eval()
    with torch.no_grad():
        for p in module.position.parameters():
            p.normal_()
    return module


@check
def order_matters(config: PositionConfig) -> None:
    module, x = reader(config), random(1, 12, WIDTH)
    order = torch.tensor([3, 0, 7, 11, 1, 9, 2, 10, 5, 8, 6, 4])
    gap = (module(x[:, order], causal=False) - module(x, causal=False)[:, order]).abs().max()
    assert gap < 1e-12 if config.kind == "none" else gap > 1e-3


@check
def padding_left_and_right_equal_none(config: PositionConfig) -> None:
    module = reader(config)
    for side in ("left", "right"):
        for causal in (True, False):
            x, padded, keep = padded_batch(side, 0.0)
            wide = module(padded, keep=keep, causal=causal)
            for row, text in enumerate(x):
                assert_close(wide[row, keep[row]][None], module(text[None], causal=causal))


@check
def cached_equals_uncached_in_any_chunks(config: PositionConfig) -> None:
    for dtype in (torch.float32, torch.float64):
        module, x = reader(config, dtype), random(2, 24, WIDTH, dtype=dtype)
        full = module(x)
        for chunk in (1, 2, 3, 5, 24):
            cache = KeyValueCache()
            with torch.no_grad():
                parts = [module(piece, cache=cache) for piece in x.split(chunk, 1)]
            assert_close(torch.cat(parts, 1), full, dtype)


@check
def cached_with_padding_equals_alone(config: PositionConfig) -> None:
    module = reader(config)
    for side in ("left", "right"):
        texts, padded, keep = padded_batch(side, 0.0)
        more = random(3, 6, WIDTH, seed=8)
        for chunk in (1, 2, 3, 5):
            cache = KeyValueCache()
            with torch.no_grad():
                module(padded, keep=keep, cache=cache)
                parts = torch.cat([module(piece, cache=cache) for piece in more.split(chunk, 1)], 1)
            for row, text in enumerate(texts):
                alone = module(torch.cat([text, more[row]])[None])
                assert_close(parts[row][None], alone[:, len(text) :])


@check
def relative_kinds_do_not_see_where_the_text_starts(config: PositionConfig) -> None:
    """Kinds that act inside attention depend on distances alone; those at the input on places."""
    position = reader(config).position
    inside = position.qk is not None or position.at_scores(torch.arange(3), torch.arange(3)) is not None
    near, far = torch.arange(8), torch.arange(8) + 30
    q, k = random(1, HEADS, 8, WIDTH // HEADS), random(1, HEADS, 8, WIDTH // HEADS, seed=4)
    x = random(1, 8, WIDTH)

    def scores(positions: Tensor) -> Tensor:
        a, b = (q, k) if position.qk is None else position.qk(q, k, positions)
        bias = position.at_scores(positions, positions)
        return a @ b.transpose(-1, -2) + (0.0 if bias is None else bias)

    assert (scores(near) - scores(far)).abs().max() < 1e-12
    moved = (position.at_input(x, near) - position.at_input(x, far)).abs().max()
    assert moved < 1e-12 if inside or config.kind == "none" else moved > 1e-3


@check
def positions_of_a_row_are_its_own(config: PositionConfig) -> None:
    """(B, T) positions with equal rows are the same as (T,) positions."""
    position, x = reader(config).position, random(3, 7, WIDTH)
    one, many = torch.arange(7) + 2, (torch.arange(7) + 2).expand(3, 7)
    assert torch.equal(position.at_input(x, one), position.at_input(x, many))
    bias = position.at_scores(one, one)
    if bias is not None:
        assert bias.shape == (1, HEADS, 7, 7)
        assert torch.equal(bias.expand(3, -1, -1, -1), position.at_scores(many, many))
    if position.qk is not None:
        q, k = random(3, HEADS, 7, 8), random(3, HEADS, 7, 8, seed=4)
        for a, b in zip(position.qk(q, k, one), position.qk(q, k, many), strict=True):
            assert torch.equal(a, b)


@check
def beyond_the_trained_length_it_works_or_says_so(config: PositionConfig) -> None:
    module, x = reader(config), random(1, LENGTH + 5, WIDTH)
    try:
        assert module(x).isfinite().all()
    except ShapeError as error:
        assert str(LENGTH) in str(error)
        assert module(x[:, :LENGTH]).isfinite().all()


@check
def precision_follows_the_stream(config: PositionConfig) -> None:
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        y = reader(config, dtype)(random(1, 9, WIDTH).to(dtype))
        assert y.dtype == dtype
        assert y.isfinite().all()


@check
def casting_does_not_blur_far_positions(config: PositionConfig) -> None:
    """At position 100 000, in float32, still what float64 gives (where the kind has such positions)."""
    module = reader(config)
    far = torch.arange(4) + 100_000
    x, q, k = random(1, 4, WIDTH), random(1, HEADS, 4, 8), random(1, HEADS, 4, 8, seed=4)
    try:
        precise = module.position.at_input(x, far)
    except ShapeError:
        return
    module = module.float()
    assert (module.position.at_input(x.float(), far) - precise).abs().max() < 1e-5
    if module.position.qk is not None:
        exact = module.position.qk(q, k, far)
        rough = module.position.qk(q.float(), k.float(), far)
        assert all((a - b).abs().max() < 1e-5 for a, b in zip(rough, exact, strict=True))


@check
def gradients_are_finite(config: PositionConfig) -> None:
    module = reader(config)
    module(random(2, 9, WIDTH)).square().sum().backward()
    for name, p in module.named_parameters():
        assert p.grad.isfinite().all(), name
    for name, p in module.position.named_parameters():
        assert p.grad.abs().max() > 0, name


@check
def state_round_trips(config: PositionConfig) -> None:
    module, x = reader(config), random(2, 9, WIDTH)
    again = Reader(PositionConfig.from_dict(config.to_dict())).double()
    again.load_state_dict({name: t.clone() for name, t in module.state_dict().items()})
    assert torch.equal(module(x), again(x))
    assert PositionConfig.from_toml(config.to_toml()) == config
