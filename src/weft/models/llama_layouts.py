"""How Hugging Face stores Llama, Qwen3 and NanoChat: GPTs with rotary positions and RMS norms."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import GatedConfig, PlainConfig
from weft.blocks.norm import RMSNormConfig
from weft.blocks.position import RotaryConfig
from weft.errors import DataError, UnsupportedError
from weft.models.base import ModelConfig
from weft.models.gpt import GPTConfig
from weft.models.gpt_layouts import (
    ACTIVATIONS,
    LAYER,
    THEIR_WORD,
    attention_reason,
    head_row,
    pair,
    reasons,
    softmax_of,
)
from weft.models.layouts import Foreign, Layout
from weft.weights import Change, Ignored, Row, Tied, WeightTable

QK_EPS = 1e-6  # of our q/k norm; theirs shares the eps of the other norms


def _rotary(theirs: Foreign) -> RotaryConfig:
    """The base of plain rotary positions, where new and where old files say it."""
    rope = theirs.table("rope_parameters") or theirs.table("rope_scaling")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise UnsupportedError(f"{theirs.where}: rotary positions scaled by {str(kind)[:40]!r}", expected="plain ones")
    for place in (Foreign(rope, theirs.where), theirs):
        place.must_be("partial_rotary_factor", 1.0, 1, None, why="Weft turns all of each head")
    base = Foreign({"rope_theta": theirs.values.get("rope_theta"), **rope}, theirs.where).number("rope_theta", 1e4)
    return RotaryConfig(base=base)


class _RotaryLayout(Layout):
    """What Llama, Qwen3 and NanoChat share: rotary positions, RMS norms, key/value heads."""

    def _shared(self, theirs: Foreign, head_width: int | None) -> dict[str, Any]:
        heads, width = theirs.size("num_attention_heads"), theirs.size("hidden_size")
        if head_width is None and width % heads:
            raise DataError(f"{theirs.where}: {width} features in {heads} heads", expected="heads that divide them")
        theirs.must_be("is_encoder_decoder", False, why="a GPT has no encoder")
        return {
            "vocab_size": theirs.size("vocab_size"),
            "max_length": theirs.size("max_position_embeddings"),
            "width": width,
            "depth": theirs.size("num_hidden_layers"),
            "attention": SoftmaxConfig(
                heads=heads,
                kv_heads=theirs.size("num_key_value_heads", heads),
                head_width=head_width,
                bias=theirs.flag("attention_bias", False),
                dropout=theirs.number("attention_dropout", 0.0),
            ),
            "position": _rotary(theirs),
            "tied": theirs.flag("tie_word_embeddings", False),
            "zero_outputs": False,
        }

    def _reason(self, config: GPTConfig) -> str:
        if reason := attention_reason(config):
            return reason
        return reasons(
            (config.position.kind != "rotary", f"positions are rotary there, not {config.position.kind}"),
            (config.norm.kind != "rms", "norms are RMS norms there"),
            (softmax_of(config).beta is not None, "scores are scaled by 1/√head width there"),
        )

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        assert isinstance(config, GPTConfig) and isinstance(config.position, RotaryConfig)
        attention, (heads, head_width) = softmax_of(config), config.attention.sizes(config.width)
        assert isinstance(config.feed_forward, PlainConfig | GatedConfig)
        base = config.position.base
        return {
            "vocab_size": config.vocab_size,
            "max_position_embeddings": config.max_length,
            "hidden_size": config.width,
            "num_hidden_layers": config.depth,
            "num_attention_heads": heads,
            "num_key_value_heads": attention.kv_heads or heads,
            "head_dim": head_width,
            "intermediate_size": config.feed_forward.hidden(config.width),
            "hidden_act": THEIR_WORD[config.feed_forward.activation],
            "rms_norm_eps": config.norm.eps,
            "rope_parameters": {"rope_type": "default", "rope_theta": base},
            "rope_theta": base,  # where older versions look
            "attention_bias": attention.bias,
            "attention_dropout": attention.dropout,
            "tie_word_embeddings": config.tied,
        }

    def losses(self, config: ModelConfig) -> list[str]:
        assert isinstance(config, GPTConfig)
        left_out = {"dropout": config.dropout, "feed_forward.dropout": config.feed_forward.dropout}
        return [f"{name} = {value} (used in training only)" for name, value in left_out.items() if value]

    def _rows(self, config: GPTConfig, prefix: str, change: Change | None = None) -> list[Row | Tied | Ignored]:
        block, attention = prefix + "layers.{layer}.self_attn.", LAYER + "attention."
        return [
            Row(prefix + "embed_tokens.weight", "tokens.weight"),
            *pair(block + "q_proj", attention + "query", change=change),
            *pair(block + "k_proj", attention + "key", change=change),
            *pair(block + "v_proj", attention + "value"),
            *pair(block + "o_proj", attention + "output"),
            head_row(config, prefix + "embed_tokens.weight"),
            Ignored(block + "rotary_emb.inv_freq"),  # the angles, stored by older versions
        ]


class LlamaLayout(_RotaryLayout, name="llama", architecture="LlamaForCausalLM", prefix="model."):
    """Touvron et al. 2023: RMS norms with weights and a gated feed-forward."""

    def read_config(self, theirs: Foreign) -> GPTConfig:
        given = theirs.values.get("head_dim")
        return GPTConfig(
            **self._shared(theirs, None if given is None else theirs.size("head_dim")),
            **self._parts(theirs),
            qk_norm=False,
        )

    def _parts(self, theirs: Foreign) -> dict[str, Any]:
        return {
            "feed_forward": GatedConfig(
                ff_width=theirs.size("intermediate_size"),
                activation=theirs.word("hidden_act", ACTIVATIONS, "silu"),
                bias=theirs.flag("mlp_bias", False),
            ),
            "norm": RMSNormConfig(eps=theirs.number("rms_norm_eps", 1e-6)),
            "embedding_norm": False,
        }

    def why_not(self, config: ModelConfig) -> str:
        if not isinstance(config, GPTConfig):
            return super().why_not(config)
        return (
            self._reason(config)
            or self._parts_reason(config)
            or reasons(
                (config.qk_norm is not False, "there is no q/k norm"),
                (config.width % config.attention.sizes(config.width)[0] != 0, "heads divide the width there"),
            )
        )

    def _parts_reason(self, config: GPTConfig) -> str:
        learned = isinstance(config.norm, RMSNormConfig) and config.norm.learned
        return reasons(
            (not learned, "norms have weights there"),
            (config.feed_forward.kind != "gated", "the feed-forward is gated there"),
            (config.embedding_norm, "there is no norm of the embeddings"),
        )

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        assert isinstance(config, GPTConfig) and isinstance(config.feed_forward, GatedConfig)
        return super().settings(config) | {"mlp_bias": config.feed_forward.bias}

    def table(self, config: ModelConfig, *, prefix: str) -> WeightTable:
        assert isinstance(config, GPTConfig)
        return WeightTable(*self._rows(config, prefix), *self._part_rows(prefix))

    def _part_rows(self, prefix: str) -> list[Row]:
        block = prefix + "layers.{layer}."
        parts = [pair(f"{block}mlp.{part}_proj", f"{LAYER}feed_forward.{part}") for part in ("gate", "up", "down")]
        return [
            Row(block + "input_layernorm.weight", LAYER + "attention_residual.norm.weight"),
            Row(block + "post_attention_layernorm.weight", LAYER + "feed_forward_residual.norm.weight"),
            Row(prefix + "norm.weight", "norm.weight"),
            *(row for part in parts for row in part),
        ]


class Qwen3Layout(LlamaLayout, name="qwen3", architecture="Qwen3ForCausalLM", prefix="model."):
    """Yang et al. 2025: Llama with a learned norm of queries and keys."""

    def read_config(self, theirs: Foreign) -> GPTConfig:
        theirs.must_be("use_sliding_window", False, why="Weft's softmax attention looks at everything before")
        kinds = theirs.values.get("layer_types") or []
        if not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds):
            raise UnsupportedError(f"{theirs.where}: layer_types", expected="full_attention in every layer")
        if theirs.number("rms_norm_eps", 1e-6) != QK_EPS:
            raise UnsupportedError(f"{theirs.where}: rms_norm_eps", expected=f"{QK_EPS}, as in Weft's q/k norm")
        return GPTConfig(**self._shared(theirs, theirs.size("head_dim", 128)), **self._parts(theirs), qk_norm="learned")

    def why_not(self, config: ModelConfig) -> str:
        if not isinstance(config, GPTConfig):
            return Layout.why_not(self, config)
        biased = isinstance(config.feed_forward, GatedConfig) and config.feed_forward.bias
        return (
            self._reason(config)
            or self._parts_reason(config)
            or reasons(
                (config.qk_norm != "learned", "the q/k norm has weights there"),
                (config.norm.eps != QK_EPS, f"all norms share one eps there, and ours is {QK_EPS}"),
                (biased, "the feed-forward has no biases there"),
            )
        )

    def table(self, config: ModelConfig, *, prefix: str) -> WeightTable:
        assert isinstance(config, GPTConfig)
        block, ours = prefix + "layers.{layer}.self_attn.", LAYER + "attention.qk.0."
        return WeightTable(
            *self._rows(config, prefix),
            *self._part_rows(prefix),
            Row(block + "q_norm.weight", ours + "query_norm.weight"),
            Row(block + "k_norm.weight", ours + "key_norm.weight"),
        )


# -- NanoChat: what our default is ------------------------------------------------------------


def _other_way_round(head_width: int) -> Change:
    """Rotary positions turn the other way there: negate the second half of every head, in queries and keys
    alike, and all products between them stay the same."""

    def negate(rows: Tensor) -> Tensor:
        halves = rows.reshape(-1, 2, head_width // 2, *rows.shape[1:])
        return torch.stack([halves[:, 0], -halves[:, 1]], 1).flatten(0, 2)

    return Change(negate, negate)


class NanoChatLayout(_RotaryLayout, name="nanochat", architecture="NanoChatForCausalLM", prefix="model."):
    """Karpathy 2025: norms without weights, also of queries and keys and of the embeddings.

    Queries and keys are normed after they were turned there, and before in Weft: without weights that is the same.
    """

    def read_config(self, theirs: Foreign) -> GPTConfig:
        given = theirs.values.get("final_logit_softcapping", 15.0)  # what their class takes if nothing is said
        if given is not None:
            shown = str(given)[:40]
            raise UnsupportedError(f"{theirs.where}: final_logit_softcapping = {shown}", expected="null: no cap")
        if theirs.number("rms_norm_eps", 1e-6) != QK_EPS:
            raise UnsupportedError(f"{theirs.where}: rms_norm_eps", expected=f"{QK_EPS}, as in Weft's q/k norm")
        width, heads = theirs.size("hidden_size"), theirs.size("num_attention_heads")
        theirs.must_be("head_dim", width // heads, None, why="heads share the width there")
        return GPTConfig(
            **self._shared(theirs, None),
            feed_forward=PlainConfig(
                ff_width=theirs.size("intermediate_size"),
                activation=theirs.word("hidden_act", ACTIVATIONS, "relu2"),
                bias=False,
            ),
            norm=RMSNormConfig(learned=False, eps=QK_EPS),
            qk_norm=True,
            embedding_norm=True,
        )

    def why_not(self, config: ModelConfig) -> str:
        if not isinstance(config, GPTConfig):
            return super().why_not(config)
        norm, plain = config.norm, config.feed_forward
        heads, head_width = config.attention.sizes(config.width)
        return self._reason(config) or reasons(
            (not isinstance(norm, RMSNormConfig) or norm.learned, "norms have no weights there"),
            (not isinstance(plain, PlainConfig) or plain.bias, "the feed-forward is plain, without biases there"),
            (config.qk_norm is not True, "there is a q/k norm without weights"),
            (not config.embedding_norm, "embeddings are normed there"),
            (heads * head_width != config.width, "heads × head width is the width there"),
            (norm.eps != QK_EPS, f"all norms share one eps there, and ours is {QK_EPS}"),
        )

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        return super().settings(config) | {"final_logit_softcapping": None}

    def table(self, config: ModelConfig, *, prefix: str) -> WeightTable:
        assert isinstance(config, GPTConfig)
        _, head_width = config.attention.sizes(config.width)
        block = prefix + "layers.{layer}.mlp."
        return WeightTable(
            *self._rows(config, prefix, _other_way_round(head_width)),
            Row(block + "fc1.weight", LAYER + "feed_forward.up.weight"),
            Row(block + "fc2.weight", LAYER + "feed_forward.down.weight"),
        )
