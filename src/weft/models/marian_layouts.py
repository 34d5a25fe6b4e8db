"""How Hugging Face stores a Transformer: as Marian, its class of translation models (Junczys-Dowmunt et al. 2018).

Marian lays the sines of a position first and then the cosines, where the paper takes them in turn. That is one fixed
order of the channels: moved in every weight that touches the stream, it is the same model, so the paper's own presets
can be said there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import PlainConfig
from weft.blocks.norm import LayerNormConfig
from weft.blocks.position import SinusoidalConfig
from weft.blocks.position.sinusoidal import sinusoids
from weft.errors import UnsupportedError
from weft.models.base import ModelConfig
from weft.models.gpt_layouts import ACTIVATIONS, LAYER, THEIR_WORD
from weft.models.layouts import TEXT_TO_TEXT, Foreign, Layout
from weft.models.transformer import TransformerConfig
from weft.models.usual_parts import unusual_attention, unusual_feed_forward, unusual_norm
from weft.weights import AnyRow, Change, Computed, Row, Tied, WeightTable

EPS, BASE = 1e-5, 10_000.0  # of norms and of sinusoids; their config has no word for either
ATTENTION = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
READER = {"self_attn_layer_norm": "attention_residual.norm", "final_layer_norm": "feed_forward_residual.norm"}
WRITER = READER | {"encoder_attn_layer_norm": "cross_residual.norm"}


class MarianLayout(Layout, name="marian", architecture="MarianMTModel", prefix="model."):
    """Sinusoids, post-norm, biases everywhere, token vectors times √width, which are the map to the logits too."""

    def read_config(self, theirs: Foreign) -> TransformerConfig:
        _refuse(theirs)
        vocab_size = theirs.size("vocab_size")
        target_size = theirs.size("decoder_vocab_size", vocab_size)
        shared = theirs.flag("share_encoder_decoder_embeddings", True)
        if shared and target_size != vocab_size:
            given = (
                f"{theirs.where}: one table of tokens for {vocab_size} of the source and {target_size} of the target"
            )
            raise UnsupportedError(given, expected="share_encoder_decoder_embeddings = false, or equal sizes")
        depth, decoder_depth = theirs.size("encoder_layers"), theirs.size("decoder_layers")
        return TransformerConfig(
            vocab_size=target_size,
            source_vocab_size=None if shared else vocab_size,
            max_length=theirs.size("max_position_embeddings"),
            width=theirs.size("d_model"),
            depth=depth,
            decoder_depth=None if decoder_depth == depth else decoder_depth,
            attention=SoftmaxConfig(
                heads=_same(theirs, "attention_heads"), dropout=theirs.number("attention_dropout", 0.0)
            ),
            feed_forward=PlainConfig(
                ff_width=_same(theirs, "ffn_dim"),
                activation=theirs.word("activation_function", ACTIVATIONS, "gelu"),
                dropout=theirs.number("activation_dropout", 0.0),
            ),
            norm=LayerNormConfig(eps=EPS),
            position=SinusoidalConfig(base=BASE, halves=True),
            qk_norm=False,
            norm_first=False,
            head_bias=True,
            dropout=theirs.number("dropout", 0.1),
            start=theirs.token("decoder_start_token_id"),
        )

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> ModelConfig:
        """Whether the logits have biases, the tensors say: without any they are zero there."""
        return config.override({"head_bias": "final_logits_bias" in set(names())})

    def auto_class(self, config: ModelConfig) -> str:
        return TEXT_TO_TEXT

    def why_not(self, config: ModelConfig) -> str:
        if not isinstance(config, TransformerConfig):
            return super().why_not(config)
        return "; ".join(reason for fact, reason in _in_the_way(config) if fact)

    def advice(self, config: ModelConfig) -> str:
        return "train with the paper's parts: --model transformer-base, made smaller by model.width, model.depth"

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        assert isinstance(config, TransformerConfig) and isinstance(config.attention, SoftmaxConfig)
        heads, ff_width = config.attention.sizes(config.width)[0], config.feed_forward.hidden(config.width)
        shared = config.source_vocab_size is None
        return {
            "vocab_size": config.vocab_size if shared else config.source_vocab_size,
            "decoder_vocab_size": config.vocab_size,
            "share_encoder_decoder_embeddings": shared,
            "max_position_embeddings": config.max_length,
            "d_model": config.width,
            "encoder_layers": config.depth,
            "decoder_layers": config.writing,
            **{f"{stack}_attention_heads": heads for stack in ("encoder", "decoder")},
            **{f"{stack}_ffn_dim": ff_width for stack in ("encoder", "decoder")},
            "activation_function": THEIR_WORD[config.feed_forward.activation],
            "dropout": config.dropout,
            "attention_dropout": config.attention.dropout,
            "activation_dropout": config.feed_forward.dropout,
            "scale_embedding": True,
            "static_position_embeddings": True,
            "is_encoder_decoder": True,
            "tie_word_embeddings": True,
            "decoder_start_token_id": config.start,
            "forced_eos_token_id": None,  # which is token 0 unless it is said
        }

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


# -- settings ---------------------------------------------------------------------------------


def _refuse(theirs: Foreign) -> None:
    """What Marian's class has no place for either, or we could not honour."""
    for key, why in (
        ("normalize_before", "norms stand behind each part in Marian"),
        ("normalize_embedding", "token vectors have no norm in Marian"),
        ("add_final_layer_norm", "the stacks end without a norm in Marian"),
        ("is_decoder", "Weft's Transformer reads before it writes"),
    ):
        theirs.must_be(key, False, None, why=why)
    theirs.must_be("static_position_embeddings", True, None, why="positions are sinusoids in Marian")
    theirs.must_be("is_encoder_decoder", True, why="Weft's Transformer reads before it writes")
    theirs.must_be("tie_word_embeddings", True, why="logits are read with the table of tokens")
    if not theirs.flag("scale_embedding", False):
        given = f"{theirs.where}: scale_embedding = False"
        raise UnsupportedError(given, expected="true: token vectors are multiplied by √width where norms come last")


def _same(theirs: Foreign, what: str) -> int:
    """A size that both stacks must have alike."""
    found, other = (theirs.size(f"{stack}_{what}") for stack in ("encoder", "decoder"))
    if found != other:
        given = f"{theirs.where}: encoder_{what} = {found}, decoder_{what} = {other}"
        raise UnsupportedError(given, expected="equal ones: Weft's stacks differ in depth alone")
    return found


def _in_the_way(config: TransformerConfig) -> Iterator[tuple[bool, str]]:
    """What a model may have that Marian's class cannot say, by the field that says it."""
    norm, position = config.norm, config.position
    yield position.kind != "sinusoidal", f"position is sinusoidal there, not {position.kind}"
    yield isinstance(position, SinusoidalConfig) and position.base != BASE, f"position.base is {BASE:g} there"
    yield config.norm_first, "norm_first is off there"
    yield from unusual_norm(config.norm)
    yield isinstance(norm, LayerNormConfig) and norm.eps != EPS, f"norm.eps is {EPS:g} there"
    yield config.qk_norm, "qk_norm is off there"
    yield config.memory != "last", f"memory is last there, not {config.memory}"
    yield from unusual_feed_forward(config.feed_forward)
    yield from unusual_attention(config.attention, config.width)


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
