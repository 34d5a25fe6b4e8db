"""How Hugging Face stores Llama, Qwen3 and NanoChat: GPTs with rotary positions and RMS norms."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.errors import UnsupportedError
from weft.models.base import ModelConfig
from weft.models.converter import Converter
from weft.models.field_table import (
    Field,
    FieldRow,
    FieldTable,
    Fixed,
    Only,
    Relation,
    StartOnly,
    Together,
    TrainingOnly,
    Unread,
)
from weft.models.gpt.converters import LAYER, UNREAD_SETTINGS, head_row, pair
from weft.models.gpt.model import GPTConfig
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.models.usual_parts import (
    ACTIVATIONS,
    HEADS_SHARE_WIDTH,
    SOFTMAX,
    USUAL_SCALE,
    VALUES_LIKE_KEYS,
    ff_width,
    head_width,
    heads,
)
from weft.weights import Change, Ignored, Row, Tied, WeightTable

QK_EPS = 1e-6  # of our q/k norm; theirs shares the eps of the other norms


def _read_rotary(theirs: HuggingFaceConfig) -> dict[str, Any]:
    """The base of plain rotary positions, in new files and in old ones."""
    rope = theirs.table("rope_parameters") or theirs.table("rope_scaling")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise UnsupportedError(f"{theirs.where}: rotary positions scaled by {str(kind)[:40]!r}", expected="plain ones")
    for place in (HuggingFaceConfig(rope, theirs.where), theirs):
        place.must_be("partial_rotary_factor", 1.0, 1, None, why="Weft rotates all features of each head")
    both = HuggingFaceConfig({"rope_theta": theirs.values.get("rope_theta"), **rope}, theirs.where)
    return {"position.base": both.number("rope_theta", 1e4)}


def _write_rotary(config: GPTConfig) -> dict[str, Any]:
    base = getattr(config.position, "base")  # noqa: B009
    return {"rope_parameters": {"rope_type": "default", "rope_theta": base}, "rope_theta": base}


def _rotary_fields(*, eps: FieldRow, head_dim: FieldRow, activation: str) -> tuple[FieldRow, ...]:
    """What Llama, Qwen3 and NanoChat share: rotary positions, RMS norms, key/value heads."""
    rope = ("rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor")
    return (
        Field("vocab_size", "vocab_size"),
        Field("max_position_embeddings", "max_length"),
        Field("hidden_size", "width"),
        Field("num_hidden_layers", "depth"),
        Field("num_attention_heads", "attention.heads", resolve=heads),
        Field("num_key_value_heads", "attention.kv_heads", default=_their_heads, resolve=heads),
        head_dim,
        Field("intermediate_size", "feed_forward.ff_width", resolve=ff_width),
        Field("hidden_act", "feed_forward.activation", words=ACTIVATIONS, default=activation),
        eps,
        Together(rope, ("position.base",), _read_rotary, _write_rotary),
        Field("attention_bias", "attention.bias", "flag", default=False),
        Field("attention_dropout", "attention.dropout", "number", default=0.0),
        Field("tie_word_embeddings", "tied", "flag", default=False),
        SOFTMAX,
        VALUES_LIKE_KEYS,
        Fixed("position.kind", "rotary"),
        Fixed("norm.kind", "rms"),
        USUAL_SCALE,
        StartOnly("zero_outputs", False),
        TrainingOnly("dropout"),
        TrainingOnly("feed_forward.dropout"),
        Only("is_encoder_decoder", False, why="a GPT has no encoder"),
        Unread("pretraining_tp", *UNREAD_SETTINGS),
    )


def _their_heads(theirs: HuggingFaceConfig) -> int:
    return theirs.size("num_attention_heads")


LEARNED_NORMS = Fixed("norm.learned", True)
GATED = Fixed("feed_forward.kind", "gated")
NO_EMBEDDING_NORM = Fixed("embedding_norm", False)
ONE_EPS = Only(
    "rms_norm_eps", QK_EPS, None, why="Weft's q/k norm has 1e-06, and all norms share one there", written=True
)
OUR_EPS = Fixed("norm.eps", QK_EPS, why=f"all norms share one eps there, and ours is {QK_EPS}")


class _RotaryConverter(Converter):
    """What Llama, Qwen3 and NanoChat share of their tensors."""

    family = GPTConfig

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


class LlamaConverter(_RotaryConverter, name="llama", architecture="LlamaForCausalLM", prefix="model."):
    """Touvron et al. 2023: RMS norms with weights and a gated feed-forward."""

    fields = FieldTable(
        *_rotary_fields(
            eps=Field("rms_norm_eps", "norm.eps", "number", default=1e-6),
            head_dim=Field("head_dim", "attention.head_width", default=None, resolve=head_width),
            activation="silu",
        ),
        Field("mlp_bias", "feed_forward.bias", "flag", default=False),
        LEARNED_NORMS,
        GATED,
        NO_EMBEDDING_NORM,
        Fixed("qk_norm", False),
        Relation(lambda config: config.width % heads(config) == 0, "heads divide the width there"),
    )

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


def _full_layers(theirs: HuggingFaceConfig) -> list[str]:
    return ["full_attention"] * theirs.size("num_hidden_layers")


class Qwen3Converter(LlamaConverter, name="qwen3", architecture="Qwen3ForCausalLM", prefix="model."):
    """Yang et al. 2025: Llama with a learned norm of queries and keys."""

    fields = FieldTable(
        *_rotary_fields(
            eps=ONE_EPS,
            head_dim=Field("head_dim", "attention.head_width", default=128, resolve=head_width),
            activation="silu",
        ),
        OUR_EPS,
        LEARNED_NORMS,
        GATED,
        Fixed("feed_forward.bias", False),
        NO_EMBEDDING_NORM,
        Fixed("qk_norm", "learned"),
        Only("mlp_bias", False, why="the feed-forward has no biases there", written=True),
        Only("use_sliding_window", False, why="Weft's softmax attention attends to all earlier tokens"),
        Only("layer_types", None, _full_layers, why="Weft's softmax attention attends to all earlier tokens"),
        Unread("sliding_window", "max_window_layers"),
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
    """Rotary positions rotate the other way there: negate the second half of every head, in queries and keys
    alike, and all products between them stay the same."""

    def negate(rows: Tensor) -> Tensor:
        halves = rows.reshape(-1, 2, head_width // 2, *rows.shape[1:])
        return torch.stack([halves[:, 0], -halves[:, 1]], 1).flatten(0, 2)

    return Change(negate, negate)


def _shared_width(theirs: HuggingFaceConfig) -> int:
    return theirs.size("hidden_size") // theirs.size("num_attention_heads")


class NanoChatConverter(_RotaryConverter, name="nanochat", architecture="NanoChatForCausalLM", prefix="model."):
    """Karpathy 2025: norms without weights, also of queries and keys and of the embeddings.

    Queries and keys are normed after rotation there, and before it in Weft: without weights that is the same.
    """

    fields = FieldTable(
        *_rotary_fields(
            eps=ONE_EPS,
            head_dim=Only("head_dim", None, _shared_width, why="heads share the width there", written=head_width),
            activation="relu2",
        ),
        HEADS_SHARE_WIDTH,
        OUR_EPS,
        Fixed("norm.learned", False),
        Fixed("feed_forward.kind", "plain"),
        Fixed("feed_forward.bias", False),
        Fixed("qk_norm", True),
        Fixed("embedding_norm", True),
        Only("final_logit_softcapping", None, absent=15.0, why="Weft's logits have no cap: null", written=True),
    )

    def table(self, config: ModelConfig, *, prefix: str) -> WeightTable:
        assert isinstance(config, GPTConfig)
        _, head_width = config.attention.sizes(config.width)
        block = prefix + "layers.{layer}.mlp."
        return WeightTable(
            *self._rows(config, prefix, _other_way_round(head_width)),
            Row(block + "fc1.weight", LAYER + "feed_forward.up.weight"),
            Row(block + "fc2.weight", LAYER + "feed_forward.down.weight"),
        )
