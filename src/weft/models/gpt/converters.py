"""Converters of GPT: here GPT-2 as Hugging Face stores it, and what its converters share.

Llama, Qwen3 and NanoChat are in `llama.py`. GPT-2 has the old parts, Llama gated feed-forwards and RMS
norms with weights, Qwen3 also a learned q/k norm, NanoChat our default. Other combinations have no format there.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.models.base import ModelConfig
from weft.models.converter import Converter
from weft.models.field_table import Field, FieldTable, Fixed, Only, StartOnly, TrainingOnly, Unread
from weft.models.gpt.model import GPTConfig
from weft.models.usual_parts import (
    ACTIVATIONS,
    HEADS_SHARE_WIDTH,
    LAYER_NORM,
    ONE_KEY_PER_HEAD,
    PLAIN_FEED_FORWARD,
    SOFTMAX,
    VALUES_LIKE_KEYS,
    ff_width,
    heads,
)
from weft.weights import Change, Ignored, Row, Tied, WeightTable

UNREAD_SETTINGS = ("initializer_range", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id")
SUMMARY_SETTINGS = tuple(
    f"summary_{name}" for name in ("type", "use_proj", "activation", "proj_to_labels", "first_dropout")
)
LAYER = "layers.{layer}."


def pair(
    foreign: str, ours: str | tuple[str, ...], *, transposed: bool = False, change: Change | None = None
) -> Iterator[Row]:
    """A map or norm: its weight, and its bias if it has one."""
    names = (ours,) if isinstance(ours, str) else ours
    for part in ("weight", "bias"):
        yield Row(f"{foreign}.{part}", tuple(f"{name}.{part}" for name in names), transposed, change)


def head_row(config: GPTConfig, tokens: str) -> Row | Tied:
    """The map to logits: its own, or the token vectors again."""
    return Tied("lm_head.weight", tokens) if config.tied else Row("lm_head.weight", "head.weight")


# -- GPT-2 ------------------------------------------------------------------------------------


class GPT2Converter(Converter, name="gpt2", architecture="GPT2LMHeadModel", prefix="transformer."):
    """Radford et al. 2019: learned positions, layer norm, biases everywhere; maps stored as (inputs, outputs)."""

    family = GPTConfig
    fields = FieldTable(
        Field("vocab_size", "vocab_size"),
        Field("n_positions", "max_length"),
        Field("n_embd", "width"),
        Field("n_layer", "depth"),
        Field("n_head", "attention.heads", resolve=heads),
        Field("n_inner", "feed_forward.ff_width", default=lambda theirs: 4 * theirs.size("n_embd"), resolve=ff_width),
        Field("activation_function", "feed_forward.activation", words=ACTIVATIONS, default="gelu_new"),
        Field("layer_norm_epsilon", "norm.eps", "number", default=1e-5),
        Field("scale_attn_weights", "attention.beta", "flag", words={True: None, False: 1.0}, default=True),
        Field("attn_pdrop", "attention.dropout", "number", default=0.1),
        Field(("resid_pdrop", "embd_pdrop"), "dropout", "number", default=0.1),
        Field("tie_word_embeddings", "tied", "flag", default=True),
        Fixed("position.kind", "learned"),
        *LAYER_NORM,
        *PLAIN_FEED_FORWARD,
        SOFTMAX,
        Fixed("attention.bias", True),
        ONE_KEY_PER_HEAD,
        VALUES_LIKE_KEYS,
        HEADS_SHARE_WIDTH,
        Fixed("qk_norm", False),
        Fixed("embedding_norm", False),
        StartOnly("zero_outputs", False),
        TrainingOnly("feed_forward.dropout"),
        Only("scale_attn_by_inverse_layer_idx", False, why="Weft's attention is the same in every layer"),
        Only("add_cross_attention", False, why="a GPT has no encoder to attend to"),
        Unread("reorder_and_upcast_attn", *SUMMARY_SETTINGS, *UNREAD_SETTINGS),
    )

    def table(self, config: ModelConfig, *, prefix: str) -> WeightTable:
        assert isinstance(config, GPTConfig)
        block, attention = prefix + "h.{layer}.", LAYER + "attention."
        maps = tuple(f"{attention}{name}" for name in ("query", "key", "value"))
        return WeightTable(
            Row(prefix + "wte.weight", "tokens.weight"),
            Row(prefix + "wpe.weight", "position.weight"),
            *pair(block + "ln_1", LAYER + "attention_residual.norm"),
            *pair(block + "attn.c_attn", maps, transposed=True),
            *pair(block + "attn.c_proj", attention + "output", transposed=True),
            *pair(block + "ln_2", LAYER + "feed_forward_residual.norm"),
            *pair(block + "mlp.c_fc", LAYER + "feed_forward.up", transposed=True),
            *pair(block + "mlp.c_proj", LAYER + "feed_forward.down", transposed=True),
            *pair(prefix + "ln_f", "norm"),
            head_row(config, prefix + "wte.weight"),
            Ignored(block + "attn.bias"),  # the causal mask, stored by older versions
            Ignored(block + "attn.masked_bias"),
        )
