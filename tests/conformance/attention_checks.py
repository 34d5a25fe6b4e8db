"""What every attention kind must do, as functions of its config. `ALL` is the list.

A kind may refuse (`UnsupportedError`) what it cannot honour; it may never ignore it silently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from weft.analysis import capture, softmax_health
from weft.blocks import CAUSAL, EVERYTHING, AttentionConfig, AttentionCore, Mask, Mixer
from weft.blocks.attention import tiles
from weft.blocks.work import Work, counted
from weft.cost.rules import work_of
from weft.errors import UnsupportedError

ALL: dict[str, Callable[[AttentionConfig], None]] = {}
LENGTHS = (1, 2, 3, 31, 97, 257)
WIDTH = 16
# of the largest output; float32 differs by how the matrix products are blocked, not by the formula
ROUNDING = {torch.float32: 1e-6, torch.float64: 1e-12}


def check(function: Callable[[AttentionConfig], None]) -> Callable[[AttentionConfig], None]:
    ALL[function.__name__] = function
    return function


class Refused(Exception):
    """The kind said that it cannot do this; the runner reports it as such."""


def build(config: AttentionConfig, width: int = WIDTH, dtype: torch.dtype = torch.float64) -> nn.Module:
    torch.manual_seed(1)
    return config.build(width).to(dtype).eval()


def run(module: nn.Module, *args: Tensor, **options: object) -> Tensor:
    try:
        return module(*args, **options)
    except UnsupportedError as error:
        raise Refused(str(error)) from None


def random(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 2) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def assert_close(ours: Tensor, theirs: Tensor, dtype: torch.dtype = torch.float64) -> None:
    assert ours.shape == theirs.shape
    gap = (ours - theirs).abs().max().item()
    assert gap <= ROUNDING[dtype] * max(theirs.abs().max().item(), 1e-30), f"gap {gap}"


@check
def is_a_mixer(config: AttentionConfig) -> None:
    assert isinstance(build(config), Mixer)
    assert len(repr(config)) < 200


@check
def keeps_the_shape_at_odd_lengths_and_widths(config: AttentionConfig) -> None:
    for width in (4, 33, 64):
        module = build(config, width, torch.float32)
        for length in LENGTHS:
            y = run(module, random(2, length, width, dtype=torch.float32))
            assert y.shape == (2, length, width)
            assert y.isfinite().all()


@check
def every_precision_stays_itself(config: AttentionConfig) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        y = run(build(config, dtype=dtype), random(2, 7, WIDTH).to(dtype))
        assert y.dtype == dtype
        assert y.isfinite().all()


@check
def float32_agrees_with_float64(config: AttentionConfig) -> None:
    module = build(config)
    x = random(2, 31, WIDTH)
    precise = run(module, x)
    rough = run(module.float(), x.float()).double()
    assert (rough - precise).abs().max() < 1e-5 * precise.abs().max()


@check
def a_later_token_never_reaches_an_earlier_one(config: AttentionConfig) -> None:
    module = build(config, dtype=torch.float32)
    x = random(1, 31, WIDTH, dtype=torch.float32)
    before = run(module, x, mask=CAUSAL)
    moved = 0
    for t in range(31):
        changed = x.clone()
        changed[:, t] += 3.0
        after = run(module, changed, mask=CAUSAL)
        assert torch.equal(after[:, :t], before[:, :t])
        moved += not torch.equal(after[:, t:], before[:, t:])
    assert moved > 15  # hard attention may not look at a changed token at all


@check
def causal_gradients_to_the_future_are_exactly_zero(config: AttentionConfig) -> None:
    module = build(config)
    x = random(1, 9, WIDTH).requires_grad_()
    y = run(module, x, mask=CAUSAL)
    for i in range(9):
        (gradient,) = torch.autograd.grad(y[0, i].sum(), x, retain_graph=True)
        assert (gradient[0, i + 1 :] == 0).all()


@check
def causal_equals_the_same_pattern_spelled_out(config: AttentionConfig) -> None:
    module = build(config)
    x = random(2, 13, WIDTH)
    pattern = torch.ones(13, 13, dtype=torch.bool).tril()
    assert_close(run(module, x, mask=CAUSAL), run(module, x, mask=Mask(allow=pattern)))


@check
def padding_changes_nothing_whatever_stands_in_it(config: AttentionConfig) -> None:
    module = build(config)
    for causal in (False, True):
        for side in ("left", "right"):
            for garbage in (torch.nan, 1e30, 0.0):
                x, padded, keep = padded_batch(side, garbage)
                wide = run(module, padded, mask=Mask(causal=causal, keep=keep))
                for row, text in enumerate(x):
                    alone = run(module, text[None], mask=Mask(causal=causal))
                    assert_close(wide[row, keep[row]][None], alone)


@check
def garbage_in_padding_does_not_reach_gradients(config: AttentionConfig) -> None:
    module = build(config)
    gradients = []
    for garbage in (0.0, torch.nan, 1e30):
        _, padded, keep = padded_batch("left", garbage)
        y = run(module, padded, mask=Mask(causal=True, keep=keep))
        module.zero_grad()
        y[keep].square().sum().backward()
        gradients.append([torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in module.parameters()])
    for other in gradients[1:]:
        for ours, clean in zip(other, gradients[0], strict=True):
            assert torch.equal(ours, clean)


@check
def rows_of_a_batch_do_not_meet(config: AttentionConfig) -> None:
    module = build(config)
    x = random(3, 12, WIDTH)
    together = run(module, x)
    for row in range(3):
        assert_close(together[row : row + 1], run(module, x[row : row + 1]))


@check
def cached_equals_uncached_in_any_chunks(config: AttentionConfig) -> None:
    for dtype in ROUNDING:
        module = build(config, dtype=dtype)
        x = random(2, 30, WIDTH, dtype=dtype)
        full = run(module, x, mask=CAUSAL)
        for chunk in (1, 2, 3, 5, 30):
            assert_close(in_chunks(module, x, chunk), full, dtype)


@check
def cached_equals_uncached_with_padding_left_and_right(config: AttentionConfig) -> None:
    for dtype in ROUNDING:
        module = build(config, dtype=dtype)
        for side in ("left", "right"):
            x, padded, keep = padded_batch(side, torch.nan, dtype)
            more = random(len(x), 6, WIDTH, dtype=dtype, seed=7)
            stream = torch.cat([padded, more], 1)
            kept = torch.cat([keep, torch.ones(len(x), 6, dtype=torch.bool)], 1)
            for chunk in (1, 2, 3, 5):
                y = in_chunks(module, stream, chunk, kept)
                for row, text in enumerate(x):
                    alone = run(module, torch.cat([text, more[row]])[None], mask=CAUSAL)
                    assert_close(y[row, kept[row]][None], alone, dtype)


@check
def a_cache_can_be_rewound_and_its_rows_picked(config: AttentionConfig) -> None:
    with torch.no_grad():
        module = build(config)
        x = random(2, 12, WIDTH)
        full = run(module, x, mask=CAUSAL)
        cache = new_cache(module)
        run(module, x[:, :7], mask=CAUSAL, cache=cache)
        run(module, random(2, 4, WIDTH, seed=9), mask=CAUSAL, cache=cache)
        try:
            cache.rewind(7)
        except UnsupportedError as error:
            raise Refused(str(error)) from None
        assert_close(run(module, x[:, 7:9], mask=CAUSAL, cache=cache), full[:, 7:9])
        cache.select(torch.tensor([1, 0, 1]))
        assert_close(run(module, x[[1, 0, 1], 9:], mask=CAUSAL, cache=cache), full[[1, 0, 1], 9:])


@check
def nothing_to_look_at_gives_nothing(config: AttentionConfig) -> None:
    module = build(config)
    x = random(2, 6, WIDTH).requires_grad_()
    allow = torch.ones(6, 6, dtype=torch.bool)
    allow[2] = False
    y = run(module, x, mask=Mask(allow=allow))
    assert_close(y[:, 2], module.output.bias.expand(2, WIDTH))  # zero, then the output map's bias
    y.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in [x, *module.parameters()] if p.grad is not None)
    keep = torch.ones(2, 6, dtype=torch.bool)
    keep[1] = False
    y = run(module, x, mask=Mask(keep=keep))
    assert_close(y[1], module.output.bias.expand(6, WIDTH))


@check
def packed_documents_do_not_see_each_other(config: AttentionConfig) -> None:
    module = build(config)
    whole = getattr(config, "window", 1) if config.by_rows else 1  # windows are counted from the beginning of the row
    texts = [random(1, n * whole, WIDTH, seed=n) for n in (3, 5, 2)]
    document = torch.cat([torch.full((t.shape[1],), i) for i, t in enumerate(texts)])
    mask = Mask(causal=True, allow=document[:, None] == document[None, :])
    packed = run(module, torch.cat(texts, 1), mask=mask)
    alone = torch.cat([run(module, text, mask=CAUSAL) for text in texts], 1)
    first = texts[0].shape[1]
    if counts_from_the_beginning(config):
        packed, alone = packed[:, :first], alone[:, :first]
        other = torch.cat([random(1, first, WIDTH, seed=11), *texts[1:]], 1)
        assert_close(run(module, other, mask=mask)[:, first:], run(module, torch.cat(texts, 1), mask=mask)[:, first:])
    assert_close(packed, alone)


def counts_from_the_beginning(config: AttentionConfig) -> bool:
    """Whether places are told by their number in the row, so that a text in its middle is another text."""
    return config.kind == "global" or any(counts_from_the_beginning(part) for part in getattr(config, "of", ()))


@check
def a_bias_of_minus_infinity_forbids(config: AttentionConfig) -> None:
    module = build(config)
    x = random(2, 8, WIDTH)
    allow = random(8, 8, seed=5) > -0.5
    allow[3] = False
    bias = torch.zeros(8, 8, dtype=x.dtype).masked_fill(~allow, -torch.inf)
    biased = run(module, x, mask=Mask(bias=bias))
    assert_close(biased, run(module, x, mask=Mask(allow=allow)))
    assert not torch.equal(biased, run(module, x))


@check
def cross_attention_reads_the_memory_alone(config: AttentionConfig) -> None:
    module = build(config)
    x, memory = random(2, 5, WIDTH), random(2, 9, WIDTH, seed=3)
    keep = torch.ones(2, 9, dtype=torch.bool)
    keep[0, 4:] = False
    memory[0, 4:] = torch.nan
    y = run(module, x, memory, mask=Mask(keep=keep))
    assert_close(y[:1], run(module, x[:1], memory[:1, :4]))
    assert_close(y[:, 2:3], run(module, x[:, 2:3], memory, mask=Mask(keep=keep)))


@check
def no_part_of_a_mask_is_ignored(config: AttentionConfig) -> None:
    """Honoured or refused: a mask that forbids half of what a row sees must show."""
    module = build(config)
    x = random(2, 10, WIDTH)
    plain = run(module, x)
    half = torch.ones(10, 10, dtype=torch.bool).tril(-3) | torch.eye(10, dtype=torch.bool)
    keep = torch.ones(2, 10, dtype=torch.bool)
    keep[:, ::2] = False
    for mask in (CAUSAL, Mask(allow=half), Mask(keep=keep), Mask(bias=9 * random(10, 10, seed=4))):
        try:
            masked = module(x, mask=mask)
        except UnsupportedError:
            continue
        assert (masked - plain).abs().max() > 1e-3


@check
def gradients_are_finite_and_reach_every_value_map(config: AttentionConfig) -> None:
    module = build(config).train()
    x = random(2, 11, WIDTH).requires_grad_()
    run(module, x, mask=CAUSAL).square().sum().backward()
    assert x.grad.abs().max() > 0
    for name, p in module.named_parameters():
        assert p.grad is None or p.grad.isfinite().all(), name
    assert module.value.weight.grad.abs().max() > 0
    assert module.output.weight.grad.abs().max() > 0


@check
def state_round_trips(config: AttentionConfig) -> None:
    module = build(config)
    again = AttentionConfig.from_dict(config.to_dict()).build(WIDTH).double().eval()
    again.load_state_dict({name: t.clone() for name, t in module.state_dict().items()})
    x = random(2, 6, WIDTH)
    assert torch.equal(run(module, x), run(again, x))
    assert AttentionConfig.from_toml(config.to_toml()) == config


@check
def the_map_shown_is_the_map_in_use(config: AttentionConfig) -> None:
    module = build(config)
    x = random(2, 9, WIDTH)
    keep = torch.ones(2, 9, dtype=torch.bool)
    keep[1, 6:] = False
    mask = Mask(causal=True, keep=keep, bias=random(9, 9, seed=6))
    plain = run(module, x, mask=mask)
    with capture(module) as maps:
        watched = run(module, x, mask=mask)
    assert torch.equal(watched, plain)
    seen = maps[""]
    try:
        weights = seen.weights
    except UnsupportedError as error:
        raise Refused(str(error)) from None
    assert (weights >= 0).all()
    groups = weights.shape[1] // seen.value.shape[1]
    heads = weights @ seen.value.repeat_interleave(groups, 1)
    assert_close(module.output(heads.transpose(1, 2).flatten(2)), plain)


@check
def scores_that_are_shown_are_those_in_use(config: AttentionConfig) -> None:
    """The softmax of what `scored` gives looks values up as the module does; kinds without one refuse."""
    module, cores = build(config), []
    handle = module.core.register_forward_pre_hook(lambda _, inputs: cores.append(inputs))
    run(module, random(2, 31, WIDTH), mask=Mask(keep=torch.arange(31).expand(2, -1) < torch.tensor([[31], [9]])))
    handle.remove()
    query, key, value, mask = cores[0]
    try:
        scores, allowed = module.core.scored(query, key, mask)
    except UnsupportedError as error:
        raise Refused(str(error)) from None
    if module.core.unit == "summary" or getattr(module.core, "learned", None) is not None:
        return  # more than one softmax: tests/analysis/test_softmax_health.py
    weights = (scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)).softmax(-1).nan_to_num(0.0)
    if module.core.unit == "channel":
        assert_close(weights, module.core.table(query, key, mask))
    else:
        spread = value.repeat_interleave(query.shape[1] // value.shape[1], 1)
        found = module.core(query, key, value, mask)
        padding = ~mask.keep[:, None, :, None]  # what stands there means nothing
        assert_close((weights @ spread).masked_fill(padding, 0.0), found.masked_fill(padding, 0.0))


@check
def nobody_looks_where_it_may_not(config: AttentionConfig) -> None:
    """`allowed` tells who may look at whom, and the weights keep to it: exactly zero everywhere else."""
    module, tried = build(config), 0
    for mask in (Mask(), CAUSAL, Mask(keep=torch.arange(31).expand(2, -1) < torch.tensor([[31], [9]]))):
        cores = []
        handle = module.core.register_forward_pre_hook(lambda _, inputs, kept=cores: kept.append(inputs))
        try:
            run(module, random(2, 31, WIDTH), mask=mask)
            query, key, _, given = cores[0]
            weights = module.core.weights(query, key, given)
        except (Refused, UnsupportedError):
            continue
        finally:
            handle.remove()
        tried += 1
        allowed = module.core.allowed(given, 31, 31, query.device)
        assert allowed is not None or (mask.keep is None and not mask.causal)
        if allowed is not None:
            assert not weights.masked_fill(allowed, 0.0).any()
    if not tried:
        raise Refused("no table of weights")


# -- what a kind says about itself ------------------------------------------------------------


def said(module: nn.Module, x: Tensor, mask: Mask) -> tuple[float, float]:
    """Operations forward and backward as the maps, the core and the module around them say them."""
    found, blocks = [], (module, module.core, *(part for part in module.children() if isinstance(part, nn.Linear)))

    def note(block: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Any]) -> None:
        if isinstance(block, nn.Linear):  # the engine counts its product as it is made
            forward = 2.0 * args[0].numel() * block.out_features
            found.append(Work(forward, forward * (args[0].requires_grad + block.weight.requires_grad)))
        else:
            found.extend(work_of(block, args, kwargs))

    handles = [block.register_forward_pre_hook(note, with_kwargs=True) for block in blocks]
    try:
        run(module, x, mask=mask)
    finally:
        for handle in handles:
            handle.remove()
    return sum(work.forward for work in found), sum(work.backward for work in found)


def ran(module: nn.Module, x: Tensor, mask: Mask) -> tuple[float, float]:
    """The same as torch sees them in a real step by the plain kernels, which it can count."""
    counter = FlopCounterMode(display=False)
    with mock.patch.object(tiles, "FUSED", None), sdpa_kernel(SDPBackend.MATH):
        with counter:
            y = run(module, x, mask=mask)
        forward = counter.get_total_flops()
        with counter:
            y.sum().backward()
    return forward, counter.get_total_flops()


def assert_within(ours: tuple[float, float], theirs: tuple[float, float], what: str) -> None:
    for direction, one, other in zip(("forward", "backward"), ours, theirs, strict=True):
        assert abs(one - other) <= 0.01 * other, f"{what}, {direction}: {one:,.0f} operations, {other:,.0f} in a run"


@check
def operations_are_those_of_a_run(config: AttentionConfig) -> None:
    """Said or counted without numbers, at three lengths; the smallest tensors that can tell a wrong rule."""
    module = build(config, dtype=torch.float32).train()
    for length in (5, 97, 300):
        for mask in (EVERYTHING, CAUSAL) if config.writes else (EVERYTHING,):
            x = random(2, length, WIDTH, dtype=torch.float32).requires_grad_()
            assert_within(said(module, x, mask), ran(module, x, mask), f"{config.kind}, {length} tokens, {mask}")


@check
def operations_can_be_counted_without_numbers(config: AttentionConfig) -> None:
    """What is done for a kind that does not say them gives what the others say."""
    module, cores = build(config, dtype=torch.float32), []
    handle = module.core.register_forward_pre_hook(lambda _, inputs: cores.append(inputs))
    run(module, random(1, 40, WIDTH, dtype=torch.float32).requires_grad_())
    handle.remove()
    works = list(module.core.operations(*cores[0]))
    found = counted(module.core, *cores[0])
    theirs = (sum(work.forward for work in works), sum(work.backward for work in works))
    assert_within((found.forward, found.backward), theirs, config.kind)


@check
def rows_keep_what_they_promise(config: AttentionConfig) -> None:
    """A row that sums to one does, of a one-hot one a single weight is 1; of others no entropy is shown."""
    module = build(config)
    with capture(module) as maps:
        run(module, random(2, 17, WIDTH))
    (health,) = softmax_health([maps])
    assert health.heads or health.without, "nothing is shown, and nothing is said"
    promise = module.core.rows
    if promise == "nothing":
        assert not health.heads and "promises nothing" in health.without
        return
    try:
        weights = maps[""].weights
    except UnsupportedError as error:
        raise Refused(str(error)) from None
    assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    if promise == "one-hot":
        assert ((weights == 0) | (weights == 1)).all()


@check
def it_says_what_it_does_in_a_sentence(config: AttentionConfig) -> None:
    description, cost = config.description, config.cost
    assert description != AttentionConfig.description and cost != AttentionConfig.cost, "it does not say it"
    assert 20 < len(description) < 130 and "\n" not in description
    assert ". " not in description and not description.endswith("."), "more than a sentence, or with its full stop"
    assert description[:1] == description[:1].upper() or not description[:1].isascii()
    assert 3 < len(cost) < 80 and not cost.endswith(".")


@check
def the_lookup_alone_aligns_fewer_queries_with_the_last_keys(config: AttentionConfig) -> None:
    try:
        core: AttentionCore = config.core().eval()
    except UnsupportedError as error:
        raise Refused(str(error)) from None
    q, k, v = random(2, 2, 9, 8), random(2, 2, 9, 8, seed=3), random(2, 2, 9, 6, seed=4)
    full = run(core, q, k, v, CAUSAL)
    for asking in (1, 2, 5):
        assert_close(run(core, q[:, :, -asking:], k, v, CAUSAL), full[:, :, -asking:])


def padded_batch(side: str, garbage: float, dtype: torch.dtype = torch.float64) -> tuple[list[Tensor], Tensor, Tensor]:
    """Texts of 9, 4 and 1 tokens, the same in one padded tensor, and which of its places are real."""
    texts = [random(n, WIDTH, dtype=dtype, seed=n) for n in (9, 4, 1)]
    padded = torch.full((3, 9, WIDTH), garbage, dtype=dtype)
    keep = torch.zeros(3, 9, dtype=torch.bool)
    for row, text in enumerate(texts):
        place = slice(9 - len(text), 9) if side == "left" else slice(0, len(text))
        padded[row, place] = text
        keep[row, place] = True
    return texts, padded, keep


def new_cache(module: nn.Module) -> object:
    try:
        return module.new_cache()
    except UnsupportedError as error:
        raise Refused(str(error)) from None


def in_chunks(module: nn.Module, x: Tensor, chunk: int, keep: Tensor | None = None) -> Tensor:
    """The stream through a cache, a few tokens at a time."""
    cache = new_cache(module)
    parts = []
    with torch.no_grad():
        for start in range(0, x.shape[1], chunk):
            mask = CAUSAL if keep is None else replace(CAUSAL, keep=keep[:, start : start + chunk])
            parts.append(run(module, x[:, start : start + chunk], mask=mask, cache=cache))
    return torch.cat(parts, 1)
