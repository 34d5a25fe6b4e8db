"""How Hugging Face stores a T5 of either generation: one `model_type`, and few settings that distinguish them.

Whether the head is tied is said twice there. Until version 4 of transformers `tie_word_embeddings` says it, and
whether states are divided by √width with it. Since version 5 that setting is always true in files, and
`scale_decoder_outputs` sets the division alone: then the head is tied if the file holds no tensor for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft.blocks.feedforward import GatedConfig
from weft.models.base import ModelConfig
from weft.models.converter import TEXT_TO_TEXT, Converter
from weft.models.field_table import Field, FieldTable, Fixed, Only, Together, TrainingOnly, Unread
from weft.models.gpt.converters import UNREAD_SETTINGS
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.models.t5.model import T5Config
from weft.models.usual_parts import (
    ACTIVATIONS,
    ONE_KEY_PER_HEAD,
    SOFTMAX,
    VALUES_LIKE_KEYS,
    ff_width,
    head_width,
    heads,
    writing,
)
from weft.weights import Ignored, Row, Tied, WeightTable

CLASSES = {"T5ForConditionalGeneration": True, "T5WithLMHeadModel": True}  # the latter is its name of 2019
GATED = "gated-"
GATED_GELU = GATED + "gelu"  # means GELU by tanh, unlike "gelu" alone
RMS_NORM = "norm is rms with weights there"
HEAD = "lm_head.weight"
# one table of token vectors, which a file may hold once or several times
TABLES = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


# -- settings that go together ----------------------------------------------------------------


def _read_inner(theirs: HuggingFaceConfig) -> dict[str, Any]:
    """`gated-` before the activation, and two later settings that overrule it where they are given."""
    kinds = {GATED + name: (True, activation) for name, activation in ACTIVATIONS.items()}
    kinds |= {name: (False, activation) for name, activation in ACTIVATIONS.items()}
    gated, activation = theirs.word("feed_forward_proj", kinds | {GATED_GELU: (True, "gelu-tanh")}, "relu")
    if theirs.values.get("dense_act_fn") is not None:
        activation = theirs.word("dense_act_fn", ACTIVATIONS)
    kind = "gated" if theirs.flag("is_gated_act", gated) else "plain"
    return {"feed_forward.kind": kind, "feed_forward.activation": activation}


def _write_inner(config: T5Config) -> dict[str, Any]:
    word = next(word for word, ours in ACTIVATIONS.items() if ours == config.feed_forward.activation)
    gated = isinstance(config.feed_forward, GatedConfig)
    told = (GATED_GELU if word == "gelu_new" else GATED + word) if gated else word
    return {"feed_forward_proj": told, "dense_act_fn": word, "is_gated_act": gated}


def _against_inner(config: T5Config) -> Iterator[str]:
    if (kind := config.feed_forward.kind) not in ("plain", "gated"):
        yield f"feed_forward is plain or gated there, not {kind}"


def _read_tied(theirs: HuggingFaceConfig) -> dict[str, Any]:
    ties = theirs.flag("tie_word_embeddings", True)
    scales = theirs.flag("scale_decoder_outputs", ties)
    return {"tied": True if scales else "unscaled" if ties else False}


def _write_tied(config: T5Config) -> dict[str, Any]:
    return {"tie_word_embeddings": config.tied is not False, "scale_decoder_outputs": config.tied is True}


INNER = Together(
    ("feed_forward_proj", "dense_act_fn", "is_gated_act"),
    ("feed_forward.kind", "feed_forward.activation"),
    _read_inner,
    _write_inner,
    _against_inner,
)
TIED = Together(("tie_word_embeddings", "scale_decoder_outputs"), ("tied",), _read_tied, _write_tied)


class T5Converter(Converter, name="t5", architecture="T5ForConditionalGeneration", prefix=""):
    """Raffel et al. 2020: relative biases in the first block of a stack, RMS norms, no biases, unscaled scores."""

    family = T5Config
    fields = FieldTable(
        Only("is_encoder_decoder", True, why="Weft's T5 reads and writes", written=True),
        Field("vocab_size", "vocab_size"),
        Field("n_positions", "max_length", default=512),
        Field("d_model", "width"),
        Field("d_kv", "attention.head_width", resolve=head_width),
        Field("d_ff", "feed_forward.ff_width", resolve=ff_width),
        Field("num_layers", "depth"),
        Field("num_decoder_layers", "decoder_depth", default=lambda theirs: theirs.size("num_layers"), resolve=writing),
        Field("num_heads", "attention.heads", resolve=heads),
        Field("relative_attention_num_buckets", "position.buckets", default=32),
        Field("relative_attention_max_distance", "position.max_distance", default=128),
        INNER,
        Field("layer_norm_epsilon", "norm.eps", "number", default=1e-6),
        Field("dropout_rate", "dropout", "number", default=0.1),
        TIED,
        Field("decoder_start_token_id", "start", "token", default=lambda theirs: theirs.token("pad_token_id", 0)),
        Fixed("position.kind", "relative"),
        Fixed("position.two_way", True),
        Fixed("norm.kind", "rms", why=RMS_NORM),
        Fixed("norm.learned", True, why=RMS_NORM),
        Fixed("feed_forward.bias", False),
        SOFTMAX,
        Fixed("attention.bias", False),
        ONE_KEY_PER_HEAD,
        VALUES_LIKE_KEYS,
        Fixed("attention.beta", 1.0),
        TrainingOnly("attention.dropout", like="dropout"),
        TrainingOnly("feed_forward.dropout", like="dropout"),
        Only("is_decoder", False, why="Weft's T5 reads and writes"),
        Only("tie_encoder_decoder", False, why="reading and writing layers have weights of their own in Weft"),
        Only("pruned_heads", None, {}, why="every layer has the same heads in Weft"),
        Unread("initializer_factor", "classifier_dropout", *UNREAD_SETTINGS),
    )

    def read_config(self, theirs: HuggingFaceConfig) -> T5Config:
        theirs.architecture(CLASSES, True)  # refuses parts of a T5
        return self.fields.read(theirs, T5Config)

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> T5Config:
        """Where states are not divided, a tensor for the head means that it is not tied."""
        assert isinstance(config, T5Config)
        own = config.tied == "unscaled" and HEAD in set(names())
        return config.override({"tied": False}) if own else config

    def auto_class(self, config: ModelConfig) -> str:
        return TEXT_TO_TEXT

    def advice(self, config: ModelConfig) -> str:
        return "train with T5's own parts: --model t5, in any size" if isinstance(config, T5Config) else ""

    def table_for(self, config: ModelConfig, names: Iterable[str]) -> WeightTable:
        """The token table is read from the first of its names that the file has; the others must repeat it."""
        assert isinstance(config, T5Config)
        there = set(names)
        places = (*TABLES, HEAD) if config.tied else TABLES
        return self.table(config, prefix="", tokens=next((name for name in places if name in there), TABLES[0]))

    def table(self, config: ModelConfig, *, prefix: str, tokens: str = TABLES[0]) -> WeightTable:
        assert isinstance(config, T5Config)
        places = (*TABLES, HEAD) if config.tied else TABLES
        return WeightTable(
            Row(tokens, "tokens.weight"),
            *(Tied(name, tokens) for name in places if name != tokens),
            *([] if config.tied else [Row(HEAD, "head.weight")]),
            *_stack_rows(config, writes=False),
            *_stack_rows(config, writes=True),
            # first checkpoints have one here too, which nothing reads
            Ignored("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"),
        )


def _stack_rows(config: T5Config, *, writes: bool) -> Iterator[Row]:
    """The tensors of one stack. Each branch of a layer is a numbered layer there, with a norm of its own."""
    stack = "decoder." if writes else "encoder."
    block, layer = stack + "block.{layer}.layer.", stack + "layers.{layer}."
    maps = {"q": "query", "k": "key", "v": "value", "o": "output"}
    inner = {"wi_0": "gate", "wi_1": "up"} if isinstance(config.feed_forward, GatedConfig) else {"wi": "up"}
    branches = [
        ("SelfAttention", "attention", "attention_residual", maps),
        *([("EncDecAttention", "cross_attention", "cross_residual", maps)] if writes else []),
        ("DenseReluDense", "feed_forward", "feed_forward_residual", inner | {"wo": "down"}),
    ]
    for number, (theirs, ours, residual, names) in enumerate(branches):
        for their_map, our_map in names.items():
            yield Row(f"{block}{number}.{theirs}.{their_map}.weight", f"{layer}{ours}.{our_map}.weight")
        yield Row(f"{block}{number}.layer_norm.weight", f"{layer}{residual}.norm.weight")
    yield Row(f"{stack}block.0.layer.0.SelfAttention.relative_attention_bias.weight", f"{stack}position.weight")
    yield Row(f"{stack}final_layer_norm.weight", f"{stack}norm.weight")
