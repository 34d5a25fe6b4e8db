"""Muon for matrices, AdamW for everything else, as one optimizer in float32.

Muon (Jordan et al. 2024) takes the momentum of a matrix to the nearest matrix with all singular values
near 1, so that every direction learns equally fast. torch's own casts to bfloat16 for that, which is
thirty times slower than float32 on a CPU without bf16 units.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from weft.blocks.roles import MapsByHead
from weft.config import Amount, Choice, Share, Size
from weft.errors import ConfigError
from weft.models.base import Model

# The quintic a·x + b·x³ + c·x⁵, applied five times, takes singular values from (0, 1] to about 1.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonalise(batch: Tensor, steps: int = 5) -> Tensor:
    """Matrices (…, rows, columns) → nearly (semi-)orthogonal ones with the same singular directions."""
    a, b, c = NEWTON_SCHULZ
    tall = batch.shape[-2] > batch.shape[-1]
    x = batch.mT if tall else batch
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


def _by_heads(batch: Tensor, heads: int, steps: int) -> Tensor:
    """Each head's rows (heads > 1) or columns (heads < −1) as a matrix of its own; 1: the whole matrix."""
    if abs(heads) == 1:
        return orthogonalise(batch, steps)
    by_rows = batch if heads > 0 else batch.mT
    split = by_rows.reshape(*by_rows.shape[:-2], abs(heads), -1, by_rows.shape[-1])
    turned = orthogonalise(split, steps).flatten(-3, -2)
    return turned if heads > 0 else turned.mT


class AdamW(torch.optim.Optimizer):
    """Loshchilov and Hutter 2019, by torch's fused kernel. torch's own class asks so much before each step that it
    costs a small model several percent of its time."""

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        *,
        lr: float = 0.001,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.95),
        **defaults: Any,
    ) -> None:
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": 1e-8, **defaults})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """torch's own without its wrapper, which loads torch's compiler to say that it is not to be used here: a second
        at the start of every training."""
        own = torch.optim.Optimizer.add_param_group
        getattr(own, "__wrapped__", own)(self, param_group)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if params:
                self._update(group, params)

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        for p in params:
            if not self.state[p]:
                self.state[p] = {
                    "step": torch.zeros((), device=p.device),
                    "first": torch.zeros_like(p),
                    "second": torch.zeros_like(p),
                }
        states = [self.state[p] for p in params]
        torch._fused_adamw_(
            params,
            [p.grad for p in params if p.grad is not None],
            [s["first"] for s in states],
            [s["second"] for s in states],
            [],
            [s["step"].add_(1) for s in states],
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )


class Muon(AdamW):
    """Groups with `muon=True` hold matrices; the others are updated by AdamW.

    Matrices of the same shape are orthogonalised together, as one batch. A group's `lr` is the size of a
    step: for a matrix, the root mean square of the change of its entries times √(larger side).
    """

    def __init__(self, groups: Iterable[dict[str, Any]], *, lr: float = 0.01, weight_decay: float = 0.0) -> None:
        of_matrices: dict[str, Any] = {"momentum": 0.95, "steps": 5, "muon": False, "heads": 1}
        super().__init__(groups, lr=lr, weight_decay=weight_decay, **of_matrices)

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        if group["muon"]:
            self._muon(group, params)
        else:
            super()._update(group, params)

    def _muon(self, group: dict[str, Any], params: list[Tensor]) -> None:
        by_shape: dict[torch.Size, list[Tensor]] = {}
        for p in params:
            by_shape.setdefault(p.shape, []).append(p)
        beta = group["momentum"]
        for shape, same in by_shape.items():
            gradients = [p.grad for p in same if p.grad is not None]
            for p in same:
                if "momentum" not in self.state[p]:
                    self.state[p]["momentum"] = torch.zeros_like(p)
            momenta = [self.state[p]["momentum"] for p in same]
            torch._foreach_lerp_(momenta, gradients, 1 - beta)
            ahead = torch._foreach_lerp(gradients, momenta, beta)  # Nesterov: one step ahead of the average
            flat = torch.stack(ahead).flatten(2)  # a convolution is a matrix: outputs by what each of them sees
            turned = _by_heads(flat, group["heads"], group["steps"]).view(len(same), *shape)
            scale = max(1.0, shape[0] / flat.shape[2]) ** 0.5
            if group["weight_decay"]:
                torch._foreach_mul_(same, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(same, list(turned.unbind()), alpha=-group["lr"] * scale)


class OptimizerConfig(Choice):
    """Which optimizer: `muon`, `adamw` or `sgd`. `learning_rate` is the largest of the run."""

    learning_rate: Amount = 0.001
    weight_decay: Amount = 0.0

    def build(self, model: Model) -> torch.optim.Optimizer:
        """The optimizer over all parameters of the model that learn."""
        raise ConfigError(f"optimizer {self.kind!r} cannot be built")


class MuonConfig(OptimizerConfig, kind="muon"):
    """Muon for the matrices of the layers; AdamW for embeddings, head, biases and norms.

    `embedding_rate` and `head_rate` are AdamW's learning rates for embeddings and all else; `rounds` of Newton–Schulz.
    """

    learning_rate: Amount = 0.02
    embedding_rate: Amount = 0.2
    head_rate: Amount = 0.015
    momentum: Share = 0.9
    rounds: Size = 5

    def build(self, model: Model) -> Muon:
        heads = _heads_of(model)
        group_of = {p: group for group, members in model.parameter_groups().items() for p in members.values()}
        rates = {"matrices": self.learning_rate, "embeddings": self.embedding_rate, "head": self.head_rate}
        groups: dict[tuple[str, int], list[nn.Parameter]] = {}
        for p in model.parameters():
            if p.requires_grad:
                place = "head" if group_of[p] == "vectors" else group_of[p]
                groups.setdefault((place, heads.get(p, 1)), []).append(p)
        return Muon(
            [
                {
                    "params": params,
                    "lr": rates[place],
                    "muon": place == "matrices",
                    "heads": count,
                    "momentum": self.momentum,
                    "steps": self.rounds,
                    "weight_decay": self.weight_decay if place == "matrices" else 0.0,
                }
                for (place, count), params in groups.items()
            ]
        )


def _heads_of(model: nn.Module) -> dict[Tensor, int]:
    """How many heads the rows (+) or columns (−) of a map belong to. Each head is a map of its own, and
    orthogonalising small matrices is cheap. The gates of a recurrent layer are maps of their own too."""
    heads: dict[Tensor, int] = {}
    for module in model.modules():
        if isinstance(module, MapsByHead):
            heads |= module.maps_by_head()
        elif isinstance(module, nn.RNNBase):
            heads |= {p: len(p) // module.hidden_size for p in module.parameters() if p.dim() == 2}
    return heads


class AdamWConfig(OptimizerConfig, kind="adamw"):
    """AdamW by torch's fused kernel; only matrices decay."""

    learning_rate: Amount = 0.001
    weight_decay: Amount = 0.1
    beta1: Share = 0.9
    beta2: Share = 0.99

    def build(self, model: nn.Module) -> AdamW:
        params = [p for p in model.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in params if p.dim() >= 2], "weight_decay": self.weight_decay},
            {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
        ]
        return AdamW(
            [group for group in groups if group["params"]], lr=self.learning_rate, betas=(self.beta1, self.beta2)
        )


class SGDConfig(OptimizerConfig, kind="sgd"):
    """Plain steps down the gradient; word vectors learn by it, a word at a time."""

    learning_rate: Amount = 0.025

    def build(self, model: nn.Module) -> torch.optim.SGD:
        params = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(params, lr=self.learning_rate, weight_decay=self.weight_decay)
