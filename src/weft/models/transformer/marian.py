"""How Hugging Face stores a Transformer: as Marian, its class of translation models (Junczys-Dowmunt et al. 2018).

Marian lays the sines of a position first and then the cosines, where the paper takes them in turn. That is one fixed
order of the channels: moved in every weight that touches the stream, it is the same model, so the paper's own presets
can be written in this format too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from weft.blocks.position import SinusoidalConfig
from weft.blocks.position.sinusoidal import sinusoids
from weft.errors import UnsupportedError
from weft.models.base import ModelConfig
from weft.models.converter import TEXT_TO_TEXT, Converter
from weft.models.field_table import ByTensors, Field, FieldTable, Fixed, Only, Together, Unread
from weft.models.gpt.converters import LAYER, UNREAD_SETTINGS
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.models.transformer.model import TransformerConfig
from weft.models.usual_parts import (
    ACTIVATIONS,
    LAYER_NORM,
    PLAIN_ATTENTION,
    PLAIN_FEED_FORWARD,
    ff_width,
    heads,
    writing,
)
from weft.weights import AnyRow, Change, Computed, Row, Tied, WeightTable

EPS, BASE = 1e-5, 10_000.0  # of norms and of sinusoids; their config has no setting for either
READS = "Weft's Transformer reads before it writes"
ATTENTION = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
READER = {"self_attn_layer_norm": "attention_residual.norm", "final_layer_norm": "feed_forward_residual.norm"}
WRITER = READER | {"encoder_attn_layer_norm": "cross_residual.norm"}


# -- settings that go together ----------------------------------------------------------------


def _read_vocabularies(theirs: HuggingFaceConfig) -> dict[str, Any]:
    source = theirs.size("vocab_size")
    target = theirs.size("decoder_vocab_size", source)
    shared = theirs.flag("share_encoder_decoder_embeddings", True)
    if shared and target != source:
        given = f"{theirs.where}: one table of tokens for {source} of the source and {target} of the target"
        raise UnsupportedError(given, expected="share_encoder_decoder_embeddings = false, or equal sizes")
    return {"vocab_size": target, "source_vocab_size": None if shared else source}


def _write_vocabularies(config: TransformerConfig) -> dict[str, Any]:
    shared = config.source_vocab_size is None
    return {
        "vocab_size": config.vocab_size if shared else config.source_vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "share_encoder_decoder_embeddings": shared,
    }


VOCABULARIES = Together(
    ("vocab_size", "decoder_vocab_size", "share_encoder_decoder_embeddings"),
    ("vocab_size", "source_vocab_size"),
    _read_vocabularies,
    _write_vocabularies,
)


class MarianConverter(Converter, name="marian", architecture="MarianMTModel", prefix="model."):
    """Sinusoids, post-norm, biases everywhere, token vectors times √width, which are the map to the logits too."""

    family = TransformerConfig
    fields = FieldTable(
        VOCABULARIES,
        Field("max_position_embeddings", "max_length"),
        Field("d_model", "width"),
        Field("encoder_layers", "depth"),
        Field("decoder_layers", "decoder_depth", resolve=writing),
        Field(("encoder_attention_heads", "decoder_attention_heads"), "attention.heads", resolve=heads, alike=True),
        Field(("encoder_ffn_dim", "decoder_ffn_dim"), "feed_forward.ff_width", resolve=ff_width, alike=True),
        Field("activation_function", "feed_forward.activation", words=ACTIVATIONS, default="gelu"),
        Field("dropout", "dropout", "number", default=0.1),
        Field("attention_dropout", "attention.dropout", "number", default=0.0),
        Field("activation_dropout", "feed_forward.dropout", "number", default=0.0),
        Only(
            "scale_embedding", True, absent=False, why="true where norms come last: vectors times √width", written=True
        ),
        Only("static_position_embeddings", True, None, why="positions are sinusoids in Marian", written=True),
        Only("is_encoder_decoder", True, why=READS, written=True),
        Only("tie_word_embeddings", True, why="logits are read with the table of tokens", written=True),
        Field("decoder_start_token_id", "start", "token"),
        Unread("forced_eos_token_id", written=None),  # which is token 0 unless it is said
        Fixed("position.kind", "sinusoidal"),
        Fixed("position.base", BASE),
        ByTensors("position.halves", True, why="the channels of the stream are moved"),
        Fixed("norm_first", False),
        *LAYER_NORM,
        Fixed("norm.eps", EPS),
        Fixed("qk_norm", False),
        Fixed("memory", "last"),
        *PLAIN_FEED_FORWARD,
        *PLAIN_ATTENTION,
        ByTensors("head_bias", True, why="without final_logits_bias there is none"),
        Only("normalize_before", False, None, why="norms come after each part in Marian"),
        Only("normalize_embedding", False, None, why="token vectors have no norm in Marian"),
        Only("add_final_layer_norm", False, None, why="the stacks end without a norm in Marian"),
        Only("is_decoder", False, None, why=READS),
        Unread("encoder_layerdrop", "decoder_layerdrop", "init_std", *UNREAD_SETTINGS),
    )

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> ModelConfig:
        """Whether the logits have biases follows from the tensors: without any they are zero there."""
        return config.override({"head_bias": "final_logits_bias" in set(names())})

    def auto_class(self, config: ModelConfig) -> str:
        return TEXT_TO_TEXT

    def advice(self, config: ModelConfig) -> str:
        return "train with the paper's parts: --model transformer-base, made smaller by model.width, model.depth"

    def table_for(self, config: ModelConfig, names: Iterable[str]) -> WeightTable:
        there = set(names)
        prefix = self.prefix if any(name.startswith(self.prefix) for name in there) else ""
        return self.table(config, prefix=prefix, there=there)

    def table(self, config: ModelConfig, *, prefix: str, there: Iterable[str] = ()) -> WeightTable:
        assert isinstance(config, TransformerConfig) and isinstance(config.position, SinusoidalConfig)
        move = not config.position.halves
        rows = [*_token_rows(config, prefix, set(there), move)]
        for stack, norms in (("encoder", READER), ("decoder", WRITER)):
            theirs, ours = f"{prefix}{stack}.", f"{stack}.{LAYER}"
            rows += _layer_rows(f"{theirs}layers.{{layer}}.", ours, norms, move)
            shape = (config.max_length, config.width)
            rows.append(Computed(theirs + "embed_positions.weight", shape, lambda: _positions(config)))
        return WeightTable(*rows, Row("final_logits_bias", "head.bias", ones=(1, 0)))


# -- tensors ----------------------------------------------------------------------------------


def _positions(config: TransformerConfig) -> Tensor:
    return sinusoids(torch.arange(config.max_length), config.width, BASE, halves=True).float()


def _moved(axis: int, move: bool) -> Change | None:
    """Channels along an axis: sines and cosines in turn here, in halves there."""

    def order(size: int) -> Tensor:
        return torch.cat([torch.arange(0, size, 2), torch.arange(1, size, 2)])

    if not move:
        return None
    return Change(
        read=lambda t: t.index_select(axis, order(t.shape[axis]).argsort().to(t.device)),
        write=lambda t: t.index_select(axis, order(t.shape[axis]).to(t.device)),
    )


def _token_rows(config: TransformerConfig, prefix: str, there: set[str], move: bool) -> Iterator[AnyRow]:
    """The tables of token vectors. One that is stored under several names has one of them, and not always the same."""
    columns = _moved(1, move)
    own = {name: f"{prefix}{name}.weight" for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens")}
    names = [own["shared"], own["decoder.embed_tokens"], own["encoder.embed_tokens"], "lm_head.weight"]
    if config.source_vocab_size is not None:
        names = [own["decoder.embed_tokens"], "lm_head.weight"]
        yield Row(own["encoder.embed_tokens"], "source_tokens.weight", change=columns)
    home = next((name for name in names if name in there), names[0])
    yield Row(home, "tokens.weight", change=columns)
    yield from (Tied(name, home) for name in names if name != home)


def _layer_rows(theirs: str, ours: str, norms: dict[str, str], move: bool) -> Iterator[Row]:
    """One layer: maps that read the stream have its channels in their columns, all that write it in their rows."""
    reads, writes = _moved(1, move), _moved(0, move)
    attentions = {"self_attn": "attention"} | ({"encoder_attn": "cross_attention"} if len(norms) > 2 else {})
    maps = {f"{a}.{m}": f"{b}.{n}" for a, b in attentions.items() for m, n in ATTENTION.items()}
    for foreign, name in (maps | {"fc1": "feed_forward.up", "fc2": "feed_forward.down"} | norms).items():
        is_reader = foreign.endswith(("q_proj", "k_proj", "v_proj", "fc1"))
        yield Row(f"{theirs}{foreign}.weight", f"{ours}{name}.weight", change=reads if is_reader else writes)
        yield Row(f"{theirs}{foreign}.bias", f"{ours}{name}.bias", change=None if is_reader else writes)
