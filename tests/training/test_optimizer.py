"""Muon, AdamW and the schedule against what they should be."""

import itertools

import pytest
import torch
from torch import nn

from weft.blocks import Attention, SoftmaxAttention
from weft.blocks.roles import CONVOLUTIONS, by_name
from weft.models import GPTConfig
from weft.models.base import Model
from weft.training import AdamWConfig, Muon, MuonConfig, Schedule, orthogonalise
from weft.training.pace import Pace


@pytest.mark.parametrize("shape", [(8, 8), (4, 16), (16, 4), (3, 8, 5)])
def test_singular_values_come_near_one_and_directions_stay(shape):
    matrix = torch.randn(*shape, dtype=torch.float64)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    turned = orthogonalise(matrix)
    values = torch.linalg.svdvals(turned)
    assert values.min() > 0.3
    assert values.max() < 1.3
    polar = u @ v
    assert ((turned * polar).sum() / turned.norm() / polar.norm()) > 0.97


def test_heads_are_orthogonalised_one_by_one():
    module = Model()
    module.layers = nn.ModuleList([Attention(8, heads=2, core=SoftmaxAttention(), bias=False)])
    rule = MuonConfig(momentum=0.0, learning_rate=1.0).build(module)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    gradients = {}
    for name, p in module.named_parameters():
        p.grad = gradients[name] = torch.randn_like(p)
    rule.step()
    for name, p in module.named_parameters():
        change, gradient = before[name] - p.detach(), gradients[name]
        if "output" in name:
            change, gradient = change.mT, gradient.mT
        for rows in (slice(0, 4), slice(4, 8)):
            assert torch.allclose(change[rows], orthogonalise(gradient[rows]), atol=1e-5), name


class Convolutions(Model):
    roles = by_name(stem=CONVOLUTIONS, depthwise=CONVOLUTIONS)


def test_a_convolution_is_a_matrix_of_what_its_outputs_see():
    module = Convolutions()
    module.stem, module.depthwise = nn.Conv2d(3, 8, 3, bias=False), nn.Conv2d(8, 8, 3, groups=8, bias=False)
    rule = MuonConfig(momentum=0.0, learning_rate=1.0).build(module)
    muon = {id(p) for group in rule.param_groups if group["muon"] for p in group["params"]}
    assert muon == {id(module.stem.weight)}, "channels that are not mixed are no matrix"
    before = module.stem.weight.detach().clone()
    module.stem.weight.grad = torch.randn_like(before)
    rule.step()
    wanted = orthogonalise(module.stem.weight.grad.flatten(1)).view_as(before)
    assert torch.allclose(before - module.stem.weight.detach(), wanted, atol=1e-5)


def test_the_adamw_part_is_torchs_adamw():
    ours, theirs = nn.Linear(5, 3), nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    rule = Muon([{"params": list(ours.parameters()), "lr": 0.01, "weight_decay": 0.1}])
    peer = torch.optim.AdamW(theirs.parameters(), lr=0.01, weight_decay=0.1, betas=(0.9, 0.95))
    for _ in range(5):
        x = torch.randn(4, 5)
        for module, optimizer in ((ours, rule), (theirs, peer)):
            optimizer.zero_grad()
            module(x).square().sum().backward()
            optimizer.step()
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))


def test_every_parameter_has_one_group():
    model = GPTConfig(vocab_size=20, width=16, depth=2, position={"kind": "learned"}).build()
    for config in (MuonConfig(), AdamWConfig()):
        grouped = [p for group in config.build(model).param_groups for p in group["params"]]
        assert len(grouped) == len(list(model.parameters()))
        assert {id(p) for p in grouped} == {id(p) for p in model.parameters()}


def test_the_schedule_rises_stays_and_falls():
    schedule = Schedule(100, warmup=0.1, decay=0.5)
    factors = [schedule.factor(step) for step in range(100)]
    assert factors[0] == pytest.approx(0.1)
    assert factors[10:50] == [1.0] * 40
    assert all(a >= b for a, b in itertools.pairwise(factors[50:]))
    assert 0 < factors[99] < 0.03


def test_a_changed_plan_stretches_the_rest_of_the_curve():
    schedule = Schedule(100, warmup=0.0, decay=1.0)
    schedule.apply([{"event": "plan", "step": 40, "steps": 70}, {"event": "nan", "step": 41}])
    assert schedule.total == 70
    assert schedule.factor(39) == pytest.approx(0.61)
    assert schedule.factor(40) == pytest.approx(0.6)
    assert schedule.factor(55) == pytest.approx(0.3)
    assert schedule.progress(70) == 1.0


def test_training_further_draws_a_new_curve():
    schedule = Schedule(10, warmup=0.0, decay=1.0)
    schedule.apply([{"event": "extend", "step": 10, "steps": 30}])
    assert schedule.total == 30
    assert schedule.factor(9) == pytest.approx(0.1)
    assert schedule.factor(10) == 1.0
    assert schedule.factor(20) == pytest.approx(0.5)


def test_pace_fits_the_rest_into_the_time(monkeypatch):
    from weft.training import pace as module

    now = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    pace = Pace(deadline=100.0, began=0.0)
    now[0] = 20.0  # ten steps took 2 s each; 80 s are left
    assert pace.due(10, 100)
    assert pace.new_total(10, 100) == 50
    assert not pace.due(11, 50)
    assert Pace(deadline=100.0, most=40, began=0.0).new_total(10, 100) == 40  # more is not worth it
    assert Pace(deadline=100.0, most=5, began=0.0).new_total(10, 100) == 11


def test_adamw_is_that_of_torch():
    torch.manual_seed(0)
    ours, theirs = (nn.Linear(5, 3, dtype=torch.float64) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    rule = AdamWConfig(learning_rate=0.01, weight_decay=0.3).build(ours)
    groups = [{"params": [theirs.weight], "weight_decay": 0.3}, {"params": [theirs.bias], "weight_decay": 0.0}]
    peer = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.99), foreach=False)
    for _ in range(7):
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            a.grad = torch.randn_like(a)
            b.grad = a.grad.clone()
        rule.step()
        peer.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (a - b).abs().max() < 1e-12
