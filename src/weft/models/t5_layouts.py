"""How Hugging Face stores a T5 of either generation: one `model_type`, and few settings that tell them apart.

Whether the head is tied is said twice there. Until version 4 of transformers `tie_word_embeddings` says it, and
whether states are divided by √width with it. Since version 5 that setting is always true in files, and
`scale_decoder_outputs` speaks of the division alone: then the head is tied if the file holds no tensor for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import FeedForwardConfig, GatedConfig, PlainConfig
from weft.blocks.norm import RMSNormConfig
from weft.blocks.position import RelativeConfig
from weft.errors import DataError
from weft.models.base import ModelConfig
from weft.models.gpt_layouts import ACTIVATIONS, THEIR_WORD
from weft.models.layouts import Foreign, Layout
from weft.models.t5 import T5Config
from weft.weights import Ignored, Row, Tied, WeightTable

CLASSES = {"T5ForConditionalGeneration": True, "T5WithLMHeadModel": True}  # the latter is its name of 2019
GATED = "gated-"
GATED_GELU = GATED + "gelu"  # means GELU by tanh, unlike "gelu" alone
HEAD = "lm_head.weight"
# one table of token vectors, which a file may hold once or several times
TABLES = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


class T5Layout(Layout, name="t5", architecture="T5ForConditionalGeneration", prefix=""):
    """Raffel et al. 2020: relative biases in the first block of a stack, RMS norms, no biases, unscaled scores."""

    def read_config(self, theirs: Foreign) -> T5Config:
        _refuse_other_models(theirs)
        rate = theirs.number("dropout_rate", 0.1)
        depth = theirs.size("num_layers")
        ties = theirs.flag("tie_word_embeddings", True)
        scales = theirs.flag("scale_decoder_outputs", ties)
        return T5Config(
            vocab_size=theirs.size("vocab_size"),
            max_length=theirs.size("n_positions", 512),
            width=theirs.size("d_model"),
            depth=depth,
            decoder_depth=theirs.size("num_decoder_layers", depth),
            attention=SoftmaxConfig(
                heads=theirs.size("num_heads"), head_width=theirs.size("d_kv"), beta=1.0, bias=False, dropout=rate
            ),
            feed_forward=_feed_forward(theirs, rate),
            norm=RMSNormConfig(eps=theirs.number("layer_norm_epsilon", 1e-6)),
            position=RelativeConfig(
                buckets=theirs.size("relative_attention_num_buckets", 32),
                max_distance=theirs.size("relative_attention_max_distance", 128),
            ),
            tied=True if scales else "unscaled" if ties else False,
            dropout=rate,
            start=_start(theirs),
        )

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> T5Config:
        """Where states are not divided, a tensor for the head says that it is not tied."""
        assert isinstance(config, T5Config)
        own = config.tied == "unscaled" and HEAD in set(names())
        return config.override({"tied": False}) if own else config

    def auto_class(self, config: ModelConfig) -> str:
        return "AutoModelForSeq2SeqLM"

    def why_not(self, config: ModelConfig) -> str:
        if not isinstance(config, T5Config):
            return super().why_not(config)
        return "; ".join(reason for fact, reason in _in_the_way(config) if fact)

    def advice(self, config: ModelConfig) -> str:
        return "train with T5's own parts: --model t5, in any size" if isinstance(config, T5Config) else ""

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        assert isinstance(config, T5Config) and isinstance(config.position, RelativeConfig)
        heads, head_width = config.attention.sizes(config.width)
        word, gated = THEIR_WORD[config.feed_forward.activation], isinstance(config.feed_forward, GatedConfig)
        return {
            "is_encoder_decoder": True,
            "vocab_size": config.vocab_size,
            "n_positions": config.max_length,
            "d_model": config.width,
            "d_kv": head_width,
            "d_ff": config.feed_forward.hidden(config.width),
            "num_layers": config.depth,
            "num_decoder_layers": config.writing,
            "num_heads": heads,
            "relative_attention_num_buckets": config.position.buckets,
            "relative_attention_max_distance": config.position.max_distance,
            "feed_forward_proj": (GATED_GELU if word == "gelu_new" else GATED + word) if gated else word,
            "dense_act_fn": word,
            "is_gated_act": gated,
            "layer_norm_epsilon": config.norm.eps,
            "dropout_rate": config.dropout,
            "tie_word_embeddings": config.tied is not False,
            "scale_decoder_outputs": config.tied is True,
            "decoder_start_token_id": config.start,
        }

    def losses(self, config: ModelConfig) -> list[str]:
        assert isinstance(config, T5Config) and isinstance(config.attention, SoftmaxConfig)
        rates = {"attention.dropout": config.attention.dropout, "feed_forward.dropout": config.feed_forward.dropout}
        return [
            f"{name} = {rate:g} (used in training only; there it is dropout's {config.dropout:g})"
            for name, rate in rates.items()
            if rate != config.dropout
        ]

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


def _refuse_other_models(theirs: Foreign) -> None:
    """A T5 in settings only, or parts of one."""
    given = theirs.values.get("architectures")
    names = given if isinstance(given, list) else [given]
    if given is not None and names:
        Foreign({"architectures": names[0]}, theirs.where).word("architectures", CLASSES)
    theirs.must_be("is_encoder_decoder", True, why="Weft's T5 reads and writes")
    theirs.must_be("is_decoder", False, why="Weft's T5 reads and writes")
    theirs.must_be("tie_encoder_decoder", False, why="reading and writing layers have weights of their own in Weft")
    theirs.must_be("pruned_heads", None, {}, why="every layer has the same heads in Weft")


def _feed_forward(theirs: Foreign, dropout: float) -> FeedForwardConfig:
    """`gated-` before the activation, and two later settings that overrule it where they are given."""
    kinds = {GATED + name: (True, activation) for name, activation in ACTIVATIONS.items()}
    kinds |= {name: (False, activation) for name, activation in ACTIVATIONS.items()}
    gated, activation = theirs.word("feed_forward_proj", kinds | {GATED_GELU: (True, "gelu-tanh")}, "relu")
    if theirs.values.get("dense_act_fn") is not None:
        activation = theirs.word("dense_act_fn", ACTIVATIONS)
    ff_width = theirs.size("d_ff")
    if theirs.flag("is_gated_act", gated):
        return GatedConfig(ff_width=ff_width, activation=activation, dropout=dropout)
    return PlainConfig(ff_width=ff_width, activation=activation, bias=False, dropout=dropout)


def _start(theirs: Foreign) -> int:
    """The token a target begins with: where nothing is said it is the padding, as in all that was published."""
    start = theirs.number("decoder_start_token_id", theirs.number("pad_token_id", 0))
    if not start.is_integer() or start < 0:
        raise DataError(f"{theirs.where}: decoder_start_token_id = {start:g}", expected="a token")
    return int(start)


def _in_the_way(config: T5Config) -> Iterator[tuple[bool, str]]:
    """What a model may have that T5's class cannot say, by the field that says it."""
    attention, inner, norm = config.attention, config.feed_forward, config.norm
    yield config.position.kind != "relative", f"position is relative there, not {config.position.kind}"
    yield not isinstance(norm, RMSNormConfig) or not norm.learned, "norm is rms with weights there"
    yield inner.kind not in ("plain", "gated"), f"feed_forward is plain or gated there, not {inner.kind}"
    yield getattr(inner, "bias", False), "feed_forward.bias is off there"
    if type(attention) is not SoftmaxConfig:
        yield True, f"attention is softmax there, not {attention.kind}"
    else:
        heads, head_width = attention.sizes(config.width)
        yield attention.bias, "attention.bias is off there"
        yield attention.kv_heads not in (None, heads), "attention.kv_heads is heads there"
        yield attention.value_width not in (None, head_width), "attention.value_width is head_width there"
        yield attention.beta != 1.0, "attention.beta is 1 there"


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
