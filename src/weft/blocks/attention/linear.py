"""Linear attention: φ(x) = elu(x) + 1 as features, so cost grows with the length and memory of the past is constant.

Katharopoulos et al. 2020, "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention". Its weights
are broader than softmax's: what it holds of the past is one table of head width × head width, so it cannot recall more
keys exactly than that has room for.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from weft.blocks.attention.kernel import KernelAttention, KernelConfig


class LinearAttention(KernelAttention):
    """(elu(q) + 1)·(elu(k) + 1) as weights."""

    rows = "sums to one"
    operations = KernelAttention.operations

    def features(self, x: Tensor) -> tuple[Tensor, None]:
        return F.elu(x) + 1, None


class LinearConfig(KernelConfig, kind="linear"):
    """Kernel attention with elu + 1."""

    description = "φ(x) = elu(x) + 1 as features, so cost grows with the length and memory of the past is constant"
    cost = "N·K² for sums over keys, no pairs"

    def core(self) -> LinearAttention:
        return LinearAttention()
