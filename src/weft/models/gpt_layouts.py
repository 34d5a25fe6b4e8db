"""How other programs write a GPT down: here GPT-2 as Hugging Face stores it, and what its layouts share.

Llama, Qwen3 and NanoChat are in `llama_layouts.py`. Between them they say: GPT-2 the old parts, Llama gated
feed-forwards and RMS norms with weights, Qwen3 also a learned q/k norm, NanoChat our default. Other mixtures
have no name elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import Activation, PlainConfig
from weft.blocks.norm import LayerNormConfig
from weft.blocks.position import LearnedConfig
from weft.models.base import ModelConfig
from weft.models.gpt import GPTConfig
from weft.models.layouts import Foreign, Layout
from weft.weights import Change, Ignored, Row, Tied, WeightTable

ACTIVATIONS: dict[str, Activation] = {
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu": "gelu",
    "relu": "relu",
    "relu2": "squared-relu",
    "silu": "silu",
    "swish": "silu",
}
THEIR_WORD = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
LAYER = "layers.{layer}."


def reasons(*facts: tuple[bool, str]) -> str:
    """The first thing that is in the way."""
    return next((reason for fact, reason in facts if fact), "")


def attention_reason(config: GPTConfig) -> str:
    """What is in the way in every layout."""
    attention = config.attention
    if type(attention) is not SoftmaxConfig:
        return f"it has no {attention.kind} attention"
    _, head_width = attention.sizes(config.width)
    return reasons(
        (attention.value_width not in (None, head_width), "values have the width of keys there"),
        (config.feed_forward.kind not in ("plain", "gated"), f"it has no {config.feed_forward.kind} feed-forward"),
    )


def softmax_of(config: GPTConfig) -> SoftmaxConfig:
    """Its attention, after `attention_reason` found nothing against it."""
    assert isinstance(config.attention, SoftmaxConfig)
    return config.attention


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


class GPT2Layout(Layout, name="gpt2", architecture="GPT2LMHeadModel", prefix="transformer."):
    """Radford et al. 2019: learned positions, layer norm, biases everywhere; maps stored as (inputs, outputs)."""

    def read_config(self, theirs: Foreign) -> GPTConfig:
        why = "Weft's attention is the same in every layer"
        theirs.must_be("scale_attn_by_inverse_layer_idx", False, why=why)
        theirs.must_be("add_cross_attention", False, why="there is nothing else to read for a GPT")
        width = theirs.size("n_embd")
        return GPTConfig(
            vocab_size=theirs.size("vocab_size"),
            max_length=theirs.size("n_positions"),
            width=width,
            depth=theirs.size("n_layer"),
            attention=SoftmaxConfig(
                heads=theirs.size("n_head"),
                beta=None if theirs.flag("scale_attn_weights", True) else 1.0,
                dropout=theirs.number("attn_pdrop", 0.1),
            ),
            feed_forward=PlainConfig(
                ff_width=theirs.size("n_inner", 4 * width),
                activation=theirs.word("activation_function", ACTIVATIONS, "gelu_new"),
            ),
            norm=LayerNormConfig(eps=theirs.number("layer_norm_epsilon", 1e-5)),
            position=LearnedConfig(),
            qk_norm=False,
            embedding_norm=False,
            tied=theirs.flag("tie_word_embeddings", True),
            zero_outputs=False,
            dropout=theirs.number("resid_pdrop", 0.1),
        )

    def why_not(self, config: ModelConfig) -> str:
        if not isinstance(config, GPTConfig):
            return super().why_not(config)
        if reason := attention_reason(config):
            return reason
        attention, (heads, head_width) = softmax_of(config), config.attention.sizes(config.width)
        plain, norm = config.feed_forward, config.norm
        return reasons(
            (config.position.kind != "learned", f"positions are learned there, not {config.position.kind}"),
            (not isinstance(norm, LayerNormConfig) or not norm.bias, "norms are layer norms with biases there"),
            (not isinstance(plain, PlainConfig), "the feed-forward is plain there"),
            (not attention.bias or not getattr(plain, "bias", False), "all maps have biases there"),
            (attention.kv_heads not in (None, heads), "every head has keys and values of its own there"),
            (heads * head_width != config.width, "heads × head width is the width there"),
            (attention.beta not in (None, 1.0), "scores are scaled by 1/√head width or not at all there"),
            (config.qk_norm is not False, "there is no q/k norm"),
            (config.embedding_norm, "there is no norm of the embeddings"),
        )

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        assert isinstance(config, GPTConfig) and isinstance(config.feed_forward, PlainConfig)
        attention = softmax_of(config)
        return {
            "vocab_size": config.vocab_size,
            "n_positions": config.max_length,
            "n_embd": config.width,
            "n_layer": config.depth,
            "n_head": attention.sizes(config.width)[0],
            "n_inner": config.feed_forward.hidden(config.width),
            "activation_function": THEIR_WORD[config.feed_forward.activation],
            "layer_norm_epsilon": config.norm.eps,
            "scale_attn_weights": attention.beta is None,
            "attn_pdrop": attention.dropout,
            "resid_pdrop": config.dropout,
            "embd_pdrop": config.dropout,
            "tie_word_embeddings": config.tied,
        }

    def losses(self, config: ModelConfig) -> list[str]:
        assert isinstance(config, GPTConfig)
        inner = config.feed_forward.dropout
        return [f"feed_forward.dropout = {inner} (used in training only)"] if inner else []

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
