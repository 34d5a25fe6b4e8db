"""What weights are for, in every family of the registry: who learns how, which layers there are, what is refused."""

import re

import pytest
import torch
from torch import nn

from conformance.family_checks import every_parameter_is_in_one_group, layers_hold_all_matrices_between_input_and_head
from fixtures.families import CASES, FAMILIES, Case
from weft.blocks import Attention, LayerNorm, PreNorm, SoftmaxAttention, TransformerLayer
from weft.blocks.roles import CROSS_MAPS, FEED_FORWARD, by_name, module_roles, weight_roles
from weft.cost.parts import parameters_by_part
from weft.errors import UnsupportedError, WeightsError
from weft.models import GPTConfig
from weft.models.base import Model
from weft.training import MuonConfig
from weft.training.freezing import freeze

FIRST = {"pool": "first", "position.kind": "learned"}
IMAGE = {"channels": 1, "head.classes": 4, "head.hidden": 6}
LEARNS = {
    # A family's settings; its embeddings; what else has two axes or more and is not Muon's, but learns as the head
    # does; and how many matrices have rows of so many heads (or columns, below zero). This is how they learned when
    # names of parameters decided, but for word vectors, which are learned by another rule alone.
    ("bag-of-words",): ("", "classes.*.weight", {}),
    ("bert",): ("segments.weight tokens.weight", "masked.map.weight", {2: 6, -2: 2, 1: 4}),
    ("bert", ("head.tied", False)): (
        "segments.weight tokens.weight",
        "masked.map.weight masked.output.weight",
        {2: 6, -2: 2, 1: 4},
    ),
    ("bert", ("head.kind", "pretraining"), *FIRST.items()): (
        "position.weight segments.weight tokens.weight",
        "masked.map.weight pairs.next-sentence.weight pooler.weight",
        {2: 6, -2: 2, 1: 4},
    ),
    ("bert", ("head.kind", "pairs"), *FIRST.items()): (
        "position.weight segments.weight tokens.weight",
        "pairs.next-sentence.weight pooler.weight",
        {2: 6, -2: 2, 1: 4},
    ),
    ("bert", ("head.kind", "classes"), *FIRST.items()): (
        "position.weight segments.weight tokens.weight",
        "classes.*.weight pooler.weight",
        {2: 6, -2: 2, 1: 4},
    ),
    ("bert", ("attention.kind", "hierarchy")): (
        "segments.weight tokens.weight",
        "layers.*.attention.core.summaries masked.map.weight",
        {2: 6, -2: 2, 1: 4},
    ),
    ("gpt",): ("tokens.weight", "head.weight", {2: 6, -2: 2, 1: 4}),
    ("gpt", ("tied", True)): ("tokens.weight", "", {2: 6, -2: 2, 1: 4}),
    ("gpt", ("position.kind", "learned")): ("position.weight tokens.weight", "head.weight", {2: 6, -2: 2, 1: 4}),
    ("gpt", ("attention.heads", 4), ("attention.kv_heads", 2)): (
        "tokens.weight",
        "head.weight",
        {4: 2, 2: 4, -4: 2, 1: 4},
    ),
    ("convnext",): ("", "stages.*.layers.*.depthwise.weight", {1: 6}),
    ("convnext", *IMAGE.items()): ("", "classes.*.weight patches.weight stages.*.layers.*.depthwise.weight", {1: 5}),
    ("davit", ("head.classes", 4)): (
        "",
        "classes.*.weight "
        "stages.*.layers.*.channel.attention_positions.map.weight "
        "stages.*.layers.*.channel.feed_forward_positions.map.weight "
        "stages.*.layers.*.spatial.attention_positions.map.weight "
        "stages.*.layers.*.spatial.feed_forward_positions.map.weight",
        {1: 10, 2: 6, -2: 2, 4: 6, -4: 2},
    ),
    ("resnet",): ("", "", {1: 6}),
    ("rnn",): ("tokens.weight", "head.weight", {1: 4}),
    ("gru", ("head.tied", True)): ("tokens.weight", "", {3: 4}),
    ("lstm", ("head.kind", "classes"), ("both_ways", True)): ("tokens.weight", "classes.*.weight", {4: 8}),
    ("seq2seq",): ("tokens.weight", "", {3: 8}),
    ("bahdanau", ("source_vocab_size", 11)): (
        "source_tokens.weight tokens.weight",
        "first.weight readout.weight",
        {3: 13, 1: 2},
    ),
    ("t5",): (
        "decoder.position.weight encoder.position.weight tokens.weight",
        "head.weight",
        {2: 18, -2: 6, 1: 12},
    ),
    ("t5", ("tied", True)): (
        "decoder.position.weight encoder.position.weight tokens.weight",
        "",
        {2: 18, -2: 6, 1: 12},
    ),
    ("transformer",): ("tokens.weight", "", {2: 18, -2: 6, 1: 8}),
    ("transformer", ("source_vocab_size", 11), ("head_bias", True), ("position.kind", "relative")): (
        "decoder.position.weight encoder.position.weight source_tokens.weight tokens.weight",
        "",
        {2: 18, -2: 6, 1: 8},
    ),
    ("transformer", ("memory", "joint")): ("tokens.weight", "", {2: 12, -2: 4, 1: 8}),
    ("vit", ("stem", (4,)), ("pool", "class")): ("", "positions", {1: 6, 2: 6, -2: 2}),
    ("vit", *IMAGE.items()): ("", "classes.*.weight patches.weight positions", {2: 6, -2: 2, 1: 4}),
    ("cbow",): ("input.weight", "output.weight", {}),
    ("ngram",): ("", "", {}),
}
EVERY = {" ".join(map(str, (family, *more))): Case(family, dict(more)) for family, *more in LEARNS}
EVERY |= CASES | {family: Case(family) for family in FAMILIES}


@pytest.mark.parametrize("case", EVERY.values(), ids=EVERY)
def test_every_parameter_is_in_one_group(case):
    every_parameter_is_in_one_group(case.config())


@pytest.mark.parametrize("settings", LEARNS, ids=str)
def test_how_each_parameter_learns(settings):
    family, *changes = settings
    embeddings, plain, heads = LEARNS[settings]
    model = Case(family, dict(changes)).config().skeleton()
    names = {p: name for name, p in model.named_parameters()}
    if not names:
        assert family == "ngram"
        return
    rule = MuonConfig(learning_rate=1.0, embedding_rate=2.0, head_rate=3.0, weight_decay=0.5).build(model)
    rates, found = {1.0: set(), 2.0: set(), 3.0: set()}, {}
    for group in rule.param_groups:
        assert group["muon"] == (group["lr"] == 1.0) and group["weight_decay"] == 0.5 * group["muon"]
        rates[group["lr"]] |= {(re.sub(r"\d+", "*", names[p]), p.dim() > 1) for p in group["params"]}
        if group["muon"]:
            found[group["heads"]] = len(group["params"])
        else:
            assert group["heads"] == 1
    assert {name for name, _ in rates[2.0]} == set(embeddings.split())
    assert {name for name, wide in rates[3.0] if wide} == set(plain.split())
    assert all(wide for _, wide in rates[1.0]) and found == heads


def test_every_family_stands_in_the_table():
    assert {family for family, *_ in LEARNS} >= {*FAMILIES} - {"skipgram"}  # which is built as cbow is


@pytest.mark.parametrize("case", EVERY.values(), ids=EVERY)
def test_layers_hold_all_matrices_between_input_and_head(case):
    layers_hold_all_matrices_between_input_and_head(case.config())


# -- negative controls ------------------------------------------------------------------------


def with_a_stranger(where):
    model = GPTConfig(vocab_size=9, width=8, depth=1, attention={"kind": "softmax", "heads": 2}).build()
    holder = model.get_submodule(where)
    holder.stranger = nn.Linear(8, 8, bias=False) if where else nn.Parameter(torch.zeros(8, 8))
    return model, f"{where}.stranger.weight" if where else "stranger"


@pytest.mark.parametrize("where", ["", "layers.0", "layers.0.attention_residual"])
@pytest.mark.parametrize(
    "ask",
    [Model.parameter_groups, MuonConfig().build, lambda model: freeze(model, "embeddings"), parameters_by_part],
    ids=["groups", "optimizer", "freezing", "inspect"],
)
def test_a_weight_without_a_role_is_named(ask, where):
    model, name = with_a_stranger(where)
    with pytest.raises(WeightsError, match=re.escape(f"the weight {name!r} of GPT")):
        ask(model)
    assert all(p.requires_grad for p in model.parameters())


def test_a_model_that_does_not_name_its_layers_is_not_frozen():
    class Silent(Model):
        roles = by_name(map=FEED_FORWARD)

    model = Silent()
    model.map = nn.Linear(2, 2)
    with pytest.raises(UnsupportedError, match="Silent does not say which layers"):
        freeze(model, 1)


# -- the mechanism ----------------------------------------------------------------------------


def attention():
    return Attention(8, heads=2, core=SoftmaxAttention())


def test_a_layer_says_which_attention_crosses():
    layer = TransformerLayer(
        attention=attention(),
        attention_residual=PreNorm(LayerNorm(8)),
        cross_attention=attention(),
        cross_residual=PreNorm(LayerNorm(8)),
        feed_forward=nn.Identity(),
        feed_forward_residual=PreNorm(LayerNorm(8)),
    )
    parts = {name: role and role.part for name, role in module_roles(layer).items()}
    assert parts["attention.query"] == "attention maps" and parts["attention.core"] == "attention scores"
    assert parts["cross_attention.query"] == "cross-attention maps"
    assert parts["cross_attention.core"] == "cross-attention scores"
    assert parts["cross_residual.norm"] == "norms" and parts["cross_residual"] is parts[""] is None


def test_names_say_nothing():
    class Named(nn.Module):
        roles = by_name(reader=CROSS_MAPS)

    model = Named()
    model.cross_attention, model.reader = attention(), nn.ModuleList([attention()])
    parts = {name: role and role.part for name, role in module_roles(model).items()}
    assert parts["cross_attention.core"] == "attention scores" and parts["cross_attention.key"] == "attention maps"
    assert parts["reader.0.core"] == "cross-attention scores" and parts["reader.0.key"] == "cross-attention maps"


def test_the_nearest_word_counts_and_keeps_where_it_stands():
    """The norm inside a head for masked tokens is a norm, and goes with that head."""
    roles = weight_roles(Case("bert").config().skeleton())
    assert roles["masked.norm.weight"].part == "norms" and roles["masked.norm.weight"].stands == "exchanged"
    assert roles["norm.weight"].stands == "trunk" and roles["masked.map.weight"].part == "head"
    stem = weight_roles(Case("davit").config().skeleton())["stem.norm.weight"]
    assert (stem.part, stem.stands) == ("norms", "input")


def test_a_class_adds_to_what_its_base_says():
    model = Case("vit", {"head.classes": 2, "pool": "class"}).config().skeleton()
    parts = {name: role.part for name, role in weight_roles(model).items()}
    assert parts["classes.1.weight"] == "head" and parts["positions"] == "positions"
    assert parts["class_token"] == "class token" and parts["patches.weight"] == "convolutions"
