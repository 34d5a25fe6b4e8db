"""Our attention module against torch's fused kernel with the same four linear maps, forward and backward.

python benchmarks/attention.py          one JSON line per comparison; ratio > 1: we are faster
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from side_by_side import compare
from torch import Tensor, nn

from weft.blocks import CAUSAL, EVERYTHING, Attention, Mask, SoftmaxAttention

SIZES = [(8, 256, 384, 6), (1, 2048, 768, 12)]


class Peer(nn.Module):
    """The least that can be written: four maps around F.scaled_dot_product_attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, causal: bool) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (m(x).view(batch, length, self.heads, -1).transpose(1, 2) for m in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.output(y.transpose(1, 2).reshape(batch, length, width))


def step(run: Callable[[Tensor], Tensor], x: Tensor, upstream: Tensor, module: nn.Module) -> Callable[[], None]:
    def work() -> None:
        module.zero_grad()
        run(x).backward(upstream)

    return work


def main() -> None:
    torch.manual_seed(0)
    for batch, length, width, heads in SIZES:
        ours, peer = Attention(width, heads=heads, core=SoftmaxAttention()), Peer(width, heads)
        peer.load_state_dict(ours.state_dict())
        x = torch.randn(batch, length, width, requires_grad=True)
        upstream = torch.randn(batch, length, width)
        masks: dict[str, Mask] = {"full": EVERYTHING, "causal": CAUSAL}
        for name, mask in masks.items():
            gap = (ours(x, mask=mask) - peer(x, mask.causal)).abs().max().item()
            assert gap < 1e-5, f"not the same computation: {gap}"
            label = f"attention/{name}/B{batch}-T{length}-D{width}"
            mine = step(lambda x, run=ours, m=mask: run(x, mask=m), x, upstream, ours)
            theirs = step(lambda x, run=peer, m=mask: run(x, m.causal), x, upstream, peer)
            compare(label, mine, theirs)


if __name__ == "__main__":
    main()
