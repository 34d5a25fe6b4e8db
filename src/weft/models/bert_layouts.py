"""How Hugging Face stores a BERT: one `model_type`, and a class for each kind of head."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import PlainConfig
from weft.blocks.norm import LayerNormConfig
from weft.blocks.position import LearnedConfig
from weft.models.base import ModelConfig
from weft.models.bert import BERTConfig, ClassesConfig, HeadConfig, MaskedConfig, QuestionsConfig
from weft.models.class_layouts import class_settings, read_classes
from weft.models.gpt_layouts import ACTIVATIONS, LAYER, THEIR_WORD, pair
from weft.models.layouts import Foreign, Layout
from weft.models.usual_parts import unusual_attention, unusual_feed_forward, unusual_norm
from weft.weights import Ignored, Row, Tied, WeightTable

CLASSES = {
    "BertModel": "pooled",
    "BertForMaskedLM": "masked",
    "BertForNextSentencePrediction": "pairs",
    "BertForPreTraining": "pretraining",
    "BertForSequenceClassification": "classes",
}
CLASS_OF = {ours: theirs for theirs, ours in CLASSES.items()}
AUTO_CLASSES = {
    "BertModel": "AutoModel",
    "BertForMaskedLM": "AutoModelForMaskedLM",
    "BertForNextSentencePrediction": "AutoModelForNextSentencePrediction",
    "BertForPreTraining": "AutoModelForPreTraining",
    "BertForSequenceClassification": "AutoModelForSequenceClassification",
}
QUESTION = "next-sentence"  # the only one about pairs that their classes have a map for
NO_POOLER = "a trunk has its pooler there"
NEW_NORM, OLD_NORM = ("weight", "bias"), ("gamma", "beta")  # what the first BERT called weight and bias of a norm


class BertLayout(Layout, name="bert", architecture="BertForMaskedLM", prefix="bert."):
    """Devlin et al. 2019: learned positions, segments, post-norm, biases everywhere, a tied map to the vocabulary."""

    def read_config(self, theirs: Foreign) -> BERTConfig:
        theirs.must_be(
            "position_embedding_type", "absolute", None, why="positions are added to the tokens in Weft's BERT"
        )
        theirs.must_be("tie_word_embeddings", True, why="the masked-token head reads with the table of tokens")
        theirs.must_be("pruned_heads", None, {}, why="every layer has the same heads in Weft")
        for key in ("is_decoder", "add_cross_attention"):
            theirs.must_be(key, False, why="Weft's BERT reads in both directions, and nothing else")
        dropout = theirs.number("hidden_dropout_prob", 0.1)
        return BERTConfig(
            vocab_size=theirs.size("vocab_size"),
            max_length=theirs.size("max_position_embeddings"),
            width=theirs.size("hidden_size"),
            depth=theirs.size("num_hidden_layers"),
            segments=theirs.size("type_vocab_size", 2),
            attention=SoftmaxConfig(
                heads=theirs.size("num_attention_heads"), dropout=theirs.number("attention_probs_dropout_prob", 0.1)
            ),
            feed_forward=PlainConfig(
                ff_width=theirs.size("intermediate_size"), activation=theirs.word("hidden_act", ACTIVATIONS, "gelu")
            ),
            norm=LayerNormConfig(eps=theirs.number("layer_norm_eps", 1e-12)),
            position=LearnedConfig(),
            qk_norm=False,
            norm_first=False,
            zero_outputs=False,
            dropout=dropout,
            pool="first",
            head=_head(theirs),
        )

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> BERTConfig:
        """Which heads there are, the tensors say: `bert-base-uncased` calls itself BertForMaskedLM and has more."""
        assert isinstance(config, BERTConfig)
        if isinstance(config.head, ClassesConfig):
            return config
        there = set(names())
        masked, pairs = (f"cls.{part}" in there for part in ("predictions.bias", "seq_relationship.weight"))
        pooled = any(name.endswith("pooler.dense.weight") for name in there)
        kind = {(True, True): "pretraining", (True, False): "masked", (False, True): "pairs"}.get((masked, pairs))
        return config.override({"head": kind or ("pooled" if pooled else "none")})

    def architecture_of(self, config: ModelConfig) -> str:
        assert isinstance(config, BERTConfig)
        return CLASS_OF[config.head.kind]

    def auto_class(self, config: ModelConfig) -> str:
        return AUTO_CLASSES[self.architecture_of(config)]

    def why_not(self, config: ModelConfig) -> str:
        if not isinstance(config, BERTConfig):
            return super().why_not(config)
        return "; ".join(reason for fact, reason in _in_the_way(config) if fact)

    def advice(self, config: ModelConfig) -> str:
        if self.why_not(config) == NO_POOLER:
            return "train it for a task: the head that it gets can be exported with it"
        return "train with BERT's own parts: --model bert-base, made smaller by model.width, depth, attention.heads"

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        assert isinstance(config, BERTConfig) and isinstance(config.attention, SoftmaxConfig)
        return {
            "vocab_size": config.vocab_size,
            "max_position_embeddings": config.max_length,
            "hidden_size": config.width,
            "num_hidden_layers": config.depth,
            "type_vocab_size": config.segments,
            "num_attention_heads": config.attention.sizes(config.width)[0],
            "intermediate_size": config.feed_forward.hidden(config.width),
            "hidden_act": THEIR_WORD[config.feed_forward.activation],
            "layer_norm_eps": config.norm.eps,
            "hidden_dropout_prob": config.dropout,
            "attention_probs_dropout_prob": config.attention.dropout,
            "position_embedding_type": "absolute",
            "tie_word_embeddings": True,
            **(_class_settings(config.head) if isinstance(config.head, ClassesConfig) else {}),
        }

    def losses(self, config: ModelConfig) -> list[str]:
        assert isinstance(config, BERTConfig)
        inner = config.feed_forward.dropout
        return [f"feed_forward.dropout = {inner} (used in training only)"] if inner else []

    def table_for(self, config: ModelConfig, names: Iterable[str]) -> WeightTable:
        names = list(names)
        whole = any(name.startswith(self.prefix) for name in names)
        old = any(name.endswith(".gamma") for name in names)
        return self.table(config, prefix=self.prefix if whole else "", norm=OLD_NORM if old else NEW_NORM)

    def table(self, config: ModelConfig, *, prefix: str, norm: tuple[str, str] = NEW_NORM) -> WeightTable:
        assert isinstance(config, BERTConfig)
        embeddings, block = prefix + "embeddings.", prefix + "encoder.layer.{layer}."
        return WeightTable(
            Row(embeddings + "word_embeddings.weight", "tokens.weight"),
            Row(embeddings + "token_type_embeddings.weight", "segments.weight"),
            Row(embeddings + "position_embeddings.weight", "position.weight"),
            *_norm(embeddings + "LayerNorm", "embedding_norm", norm),
            *pair(block + "attention.self.query", LAYER + "attention.query"),
            *pair(block + "attention.self.key", LAYER + "attention.key"),
            *pair(block + "attention.self.value", LAYER + "attention.value"),
            *pair(block + "attention.output.dense", LAYER + "attention.output"),
            *_norm(block + "attention.output.LayerNorm", LAYER + "attention_residual.norm", norm),
            *pair(block + "intermediate.dense", LAYER + "feed_forward.up"),
            *pair(block + "output.dense", LAYER + "feed_forward.down"),
            *_norm(block + "output.LayerNorm", LAYER + "feed_forward_residual.norm", norm),
            *_head_rows(config.head, prefix, norm),
            Ignored(embeddings + "position_ids"),  # 0, 1, 2, …, stored by older versions
            Ignored(embeddings + "token_type_ids"),
        )


def _in_the_way(config: BERTConfig) -> Iterator[tuple[bool, str]]:
    """What a model may have that BERT's class cannot say, by the field that says it."""
    head = config.head
    yield config.position.kind != "learned", f"position is learned there, not {config.position.kind}"
    yield config.norm_first, "norm_first is off there"
    yield from unusual_norm(config.norm)
    yield config.qk_norm is not False, "qk_norm is off there"
    yield config.head.pooled and config.pool != "first", f"pool is first there, not {config.pool}"
    yield from unusual_feed_forward(config.feed_forward)
    yield from unusual_attention(config.attention, config.width)
    yield isinstance(head, MaskedConfig) and not head.tied, "head.tied is on there"
    yield head.kind not in CLASS_OF, NO_POOLER
    if isinstance(head, QuestionsConfig):
        theirs = head.questions == (QUESTION,) and head.answers == (2,)
        yield not theirs, f"head.questions is {QUESTION} with 2 answers there, not {', '.join(head.questions)}"


def _norm(foreign: str, ours: str, words: tuple[str, str]) -> Iterator[Row]:
    """A layer norm, whose weight and bias have other names in old files."""
    for theirs, part in zip(words, ("weight", "bias"), strict=True):
        yield Row(f"{foreign}.{theirs}", f"{ours}.{part}")


def _head_rows(head: HeadConfig, prefix: str, norm: tuple[str, str]) -> Iterator[Row | Tied | Ignored]:
    if head.pooled:
        yield from pair(prefix + "pooler.dense", "pooler")
    else:  # a masked-token model may have kept one that nothing reads
        yield from (Ignored(f"{prefix}pooler.dense.{part}") for part in ("weight", "bias"))
    if isinstance(head, MaskedConfig):
        yield from pair("cls.predictions.transform.dense", "masked.map")
        yield from _norm("cls.predictions.transform.LayerNorm", "masked.norm", norm)
        yield Row("cls.predictions.bias", "masked.output.bias")
        yield Tied("cls.predictions.decoder.bias", "cls.predictions.bias")
        yield Tied("cls.predictions.decoder.weight", prefix + "embeddings.word_embeddings.weight")
    if head.pairs:
        yield from pair("cls.seq_relationship", f"pairs.{QUESTION}")
    if isinstance(head, ClassesConfig):
        yield from pair("classifier", "classes.1")


# -- heads in settings ------------------------------------------------------------------------


def _head(theirs: Foreign) -> HeadConfig:
    """The head that their class has; without a class, the tensors will say."""
    given = theirs.values.get("architectures")
    names = given if isinstance(given, list) else [given]
    if given is None or not names:
        return HeadConfig.pick("pretraining")
    kind = Foreign({"architectures": names[0]}, theirs.where).word("architectures", CLASSES)
    return _classes(theirs) if kind == "classes" else HeadConfig.pick(kind)


def _classes(theirs: Foreign) -> ClassesConfig:
    own = theirs.values.get("classifier_dropout")
    return ClassesConfig(**read_classes(theirs), dropout=None if own is None else theirs.number("classifier_dropout"))


def _class_settings(head: ClassesConfig) -> dict[str, Any]:
    return {**class_settings(head), "classifier_dropout": head.dropout}
