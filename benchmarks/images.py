"""Training steps of our ViT beside timm's of the same size, on the same images, with the same optimizer.

python benchmarks/images.py        one JSON line per size, in images per second; ratio > 1: we are faster

timm imports torchvision for things that are not needed here; an empty stand-in takes its place where it is missing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from side_by_side import compare
from torch import nn
from torch.nn import functional as F

from weft.blocks.attention import SoftmaxConfig
from weft.models import ImageHead, ViTConfig, preset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from fixtures.timm_models import import_timm_or_skip

SIZES = {  # width, depth, heads, patch, rows of the images, images in a step
    "vit-ti": (192, 12, 3, 16, 224, 8),
    "vit-small-images": (192, 6, 3, 4, 32, 64),
    "vit-s": (384, 12, 6, 16, 224, 4),
}
CLASSES = 100


def ours(width: int, depth: int, heads: int, patch: int, size: int) -> nn.Module:
    fields: dict[str, Any] = dict(preset("vit-b")[1])
    fields |= {"width": width, "depth": depth, "patch": patch, "image_size": size}
    fields |= {"attention": SoftmaxConfig(heads=heads), "head": ImageHead(classes=CLASSES)}
    return ViTConfig(**fields).build()


def theirs(width: int, depth: int, heads: int, patch: int, size: int) -> nn.Module:
    import_timm_or_skip()
    from timm.models.vision_transformer import VisionTransformer

    sizes = {"embed_dim": width, "depth": depth, "num_heads": heads, "patch_size": patch, "img_size": size}
    return VisionTransformer(**sizes, num_classes=CLASSES)


def step(model: nn.Module, size: int, batch: int) -> Callable[[], None]:
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    torch.manual_seed(0)
    pixels, labels = torch.randn(batch, 3, size, size), torch.randint(CLASSES, (batch,))

    def work() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(pixels), labels).backward()
        optimizer.step()

    return work


def main() -> None:
    torch.set_num_threads(os.cpu_count() or 1)
    for name, (*sizes, batch) in SIZES.items():
        mine, peer = ours(*sizes), theirs(*sizes)
        counts = [sum(p.numel() for p in model.parameters()) for model in (mine, peer)]
        assert counts[0] == counts[1], counts
        first, second = (step(model, sizes[-1], batch) for model in (mine, peer))
        compare(f"train-{name}/timm", first, second, units=batch)


if __name__ == "__main__":
    main()
