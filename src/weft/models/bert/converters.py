"""How Hugging Face stores a BERT: one `model_type`, and a class for each kind of head."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft.models.base import ModelConfig
from weft.models.bert.model import BERTConfig, ClassesConfig, HeadConfig, MaskedConfig, QuestionsConfig, TokensConfig
from weft.models.class_converter import CLASS_SETTINGS, class_settings, read_classes
from weft.models.converter import Converter
from weft.models.field_table import Field, FieldTable, Fixed, Only, StartOnly, Together, TrainingOnly, Unread
from weft.models.gpt.converters import LAYER, UNREAD_SETTINGS, pair
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.models.usual_parts import ACTIVATIONS, LAYER_NORM, PLAIN_ATTENTION, PLAIN_FEED_FORWARD, ff_width, heads
from weft.weights import Ignored, Row, Tied, WeightTable

CLASSES = {
    "BertModel": "pooled",
    "BertForMaskedLM": "masked",
    "BertForNextSentencePrediction": "pairs",
    "BertForPreTraining": "pretraining",
    "BertForSequenceClassification": "classes",
    "BertForTokenClassification": "tokens",
}
CLASS_OF = {ours: theirs for theirs, ours in CLASSES.items()}
AUTO_CLASSES = {
    "BertModel": "AutoModel",
    "BertForMaskedLM": "AutoModelForMaskedLM",
    "BertForNextSentencePrediction": "AutoModelForNextSentencePrediction",
    "BertForPreTraining": "AutoModelForPreTraining",
    "BertForSequenceClassification": "AutoModelForSequenceClassification",
    "BertForTokenClassification": "AutoModelForTokenClassification",
}
QUESTION = "next-sentence"  # the only one about pairs that their classes have a map for
BOTH_WAYS = "Weft's BERT reads in both directions, and nothing else"
NO_POOLER = "a trunk has its pooler there: head is pooled"
NEW_NORM, OLD_NORM = ("weight", "bias"), ("gamma", "beta")  # names of weight and bias of a norm in the first BERT


# -- heads in settings ------------------------------------------------------------------------


def _read_head(theirs: HuggingFaceConfig) -> dict[str, Any]:
    """The head that their class has; without a class, `fitted` reads it from the tensors."""
    kind = theirs.architecture(CLASSES, "pretraining")
    if kind not in ("classes", "tokens"):
        return {"head.kind": kind}
    given = theirs.values.get("classifier_dropout")
    dropout = None if given is None else theirs.number("classifier_dropout")
    if kind == "tokens":  # labels without names keep those that their class gives them: LABEL_0, LABEL_1, …
        found = read_classes(HuggingFaceConfig({**theirs.values, "problem_type": None}, theirs.where))
        labels = found["labels"] or tuple(f"LABEL_{number}" for number in range(found["classes"]))
        fields = {"kind": kind, "labels": labels, "dropout": dropout}
    else:
        fields = {"kind": kind, **read_classes(theirs), "dropout": dropout}
    return {f"head.{name}": value for name, value in fields.items()}


def _write_head(config: BERTConfig) -> dict[str, Any]:
    head = config.head
    if isinstance(head, TokensConfig):
        names = {str(number): label for number, label in enumerate(head.labels)}
        ids = {label: number for number, label in enumerate(head.labels)}
        return {"id2label": names, "label2id": ids, "classifier_dropout": head.dropout}
    return {**class_settings(head), "classifier_dropout": head.dropout} if isinstance(head, ClassesConfig) else {}


def _against_head(config: BERTConfig) -> Iterator[str]:
    head = config.head
    if isinstance(head, MaskedConfig) and not head.tied:
        yield "head.tied is on there"
    if head.kind not in CLASS_OF:
        yield NO_POOLER
    if isinstance(head, QuestionsConfig) and (head.questions, head.answers) != ((QUESTION,), (2,)):
        yield f"head.questions is {QUESTION} with 2 answers there, not {', '.join(head.questions)}"


HEAD = Together(
    ("architectures", *CLASS_SETTINGS, "classifier_dropout"),
    tuple(
        f"head.{name}"
        for name in ("kind", "tied", "questions", "answers", "classes", "labels", "multilabel", "dropout")
    ),
    _read_head,
    _write_head,
    _against_head,
)


class BertConverter(Converter, name="bert", architecture="BertForMaskedLM", prefix="bert."):
    """Devlin et al. 2019: learned positions, segments, post-norm, biases everywhere, a tied map to the vocabulary."""

    family = BERTConfig
    fields = FieldTable(
        Field("vocab_size", "vocab_size"),
        Field("max_position_embeddings", "max_length"),
        Field("hidden_size", "width"),
        Field("num_hidden_layers", "depth"),
        Field("type_vocab_size", "segments", default=2),
        Field("num_attention_heads", "attention.heads", resolve=heads),
        Field("intermediate_size", "feed_forward.ff_width", resolve=ff_width),
        Field("hidden_act", "feed_forward.activation", words=ACTIVATIONS, default="gelu"),
        Field("layer_norm_eps", "norm.eps", "number", default=1e-12),
        Field("hidden_dropout_prob", "dropout", "number", default=0.1),
        Field("attention_probs_dropout_prob", "attention.dropout", "number", default=0.1),
        Fixed("position.kind", "learned"),
        Only("position_embedding_type", "absolute", None, why="positions are added to the token vectors", written=True),
        Only("tie_word_embeddings", True, why="the masked-token head reads with the table of tokens", written=True),
        Only("pruned_heads", None, {}, why="every layer has the same heads in Weft"),
        Only("is_decoder", False, why=BOTH_WAYS),
        Only("add_cross_attention", False, why=BOTH_WAYS),
        Fixed("norm_first", False),
        *LAYER_NORM,
        Fixed("qk_norm", False),
        Fixed("pool", "first", unless=lambda config: not config.head.pooled),
        *PLAIN_FEED_FORWARD,
        *PLAIN_ATTENTION,
        HEAD,
        StartOnly("zero_outputs", False),
        TrainingOnly("feed_forward.dropout"),
        Unread(*UNREAD_SETTINGS),
    )

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> BERTConfig:
        """The heads follow from the tensors: `bert-base-uncased` calls itself BertForMaskedLM and has more."""
        assert isinstance(config, BERTConfig)
        if isinstance(config.head, ClassesConfig | TokensConfig):
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

    def advice(self, config: ModelConfig) -> str:
        if self.why_not(config) == NO_POOLER:
            return "train it for a task: the head that it gets can be exported with it"
        return "train with BERT's own parts: --model bert-base, made smaller by model.width, depth, attention.heads"

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
    if isinstance(head, TokensConfig):
        yield from pair("classifier", "labels.1")
