"""Several processes on one global batch: gradients are summed, so the result is that of one process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

import torch
import torch.distributed as dist
from torch import Tensor

from weft.models.base import Model

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


@dataclass(frozen=True)
class Ranks:
    """Which process this is, and how the processes speak; one alone needs no words."""

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, count: int) -> slice:
        """This rank's part of a batch of `count` samples; parts differ by at most one."""
        return slice(count * self.rank // self.world, count * (self.rank + 1) // self.world)

    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Replace every tensor by its sum over all ranks, as one message."""
        if self.world == 1:
            return
        flat = torch.cat([t.flatten() for t in tensors])
        dist.all_reduce(flat)
        for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def agree(self, value: float, device: torch.device) -> float:
        """Rank 0's value, on every rank: decisions by the clock must be one decision."""
        if self.world == 1:
            return value
        message = torch.tensor([value], dtype=torch.float64, device=device)
        dist.broadcast(message, 0)
        return float(message)

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether any rank says so."""
        if self.world == 1:
            return flag
        message = torch.tensor([float(flag)], device=device)
        dist.all_reduce(message)
        return bool(message > 0)

    def wait(self) -> None:
        if self.world > 1:
            dist.barrier()


ALONE = Ranks()


def ranks_from_environment(device: str) -> Ranks:
    """Under `torchrun`, join the others (gloo on CPU, nccl on GPU); otherwise this process is alone."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return ALONE
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    return Ranks(dist.get_rank(), world)


CALLED = ("hidden", "text_logits", "encode", "states")  # what objectives call instead of the model


def shard(model: Model, ranks: Ranks, device: torch.device) -> None:
    """Each rank keeps a part of every parameter, and gathers a layer only while it runs (FSDP2)."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method  # slow to import

    mesh = init_device_mesh(device.type, (ranks.world,))
    for stack in model.layers_in_order():
        for site in stack.layers:
            fully_shard(site.module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for name in CALLED:
        if hasattr(model, name):
            register_fsdp_forward_method(model, name)


def gather(tensor: Tensor) -> Tensor:
    """A sharded tensor put together (all ranks must ask); another one as it is."""
    return tensor.full_tensor() if _is_sharded(tensor) else tensor


def shard_like(tensor: Tensor, like: Tensor) -> Tensor:
    """A whole tensor where another one lives: on its device, cut as it is cut."""
    moved = tensor.to(like.device)
    if not _is_sharded(like):
        return moved
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(moved, like.device_mesh, like.placements)


def _is_sharded(tensor: Tensor) -> TypeGuard[DTensor]:
    """Whether it is a `DTensor`, asked without the import that nobody needs who has none."""
    return hasattr(tensor, "full_tensor")
