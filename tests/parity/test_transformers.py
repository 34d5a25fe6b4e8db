"""Position kinds against the code of Hugging Face's models."""

import pytest
import torch

from weft.blocks import Rotary
from weft.blocks.position.alibi import slopes
from weft.blocks.position.relative import buckets_of

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")


@pytest.mark.parametrize("two_way", [True, False])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (16, 40), (64, 500)])
def test_t5_buckets(two_way, buckets, max_distance):
    from transformers.models.t5.modeling_t5 import T5Attention

    ahead = torch.arange(-1000, 1001)
    theirs = T5Attention._relative_position_bucket(ahead, two_way, buckets, max_distance)
    assert torch.equal(buckets_of(ahead, buckets=buckets, max_distance=max_distance, two_way=two_way), theirs)


def test_llama_rotary():
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = LlamaConfig(hidden_size=64, num_attention_heads=4, max_position_embeddings=128)
    q, k = torch.randn(2, 4, 50, 16), torch.randn(2, 2, 50, 16)
    at = torch.arange(50)
    cos, sin = LlamaRotaryEmbedding(config)(q, at[None])
    ours, theirs = Rotary(16)(q, k, at), apply_rotary_pos_emb(q, k, cos, sin)
    assert all((a - b).abs().max() < 1e-5 for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("heads", [1, 2, 3, 8, 12, 20, 71])
def test_bloom_alibi_slopes(heads):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    theirs = build_alibi_tensor(torch.ones(1, 5), heads, torch.float32)[:, 0, 1]
    assert torch.allclose(torch.tensor(slopes(heads)), theirs, rtol=1e-6)
