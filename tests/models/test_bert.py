"""BERT: shapes, heads, padding, sizes, start; packed is the same; the default parts learn."""

import math

import pytest
import torch
import torch.nn.functional as F

from fixtures.weights import move_weights
from weft.blocks import PositionConfig
from weft.errors import ConfigError, DataError, ShapeError, UnsupportedError
from weft.models import BERTConfig, HeadConfig, ModelConfig, PackedTexts, encode, encode_buckets, encode_first, preset
from weft.models.bert.model import ClassesConfig, TokensConfig
from weft.models.capabilities import TagsTokens
from weft.training import AdamWConfig

SMALL = {"vocab_size": 50, "width": 16, "depth": 2, "max_length": 24}
BASE = {**preset("bert-base")[1], **SMALL, "attention": {"kind": "softmax", "heads": 2}, "dropout": 0.0}
STYLES = {
    "default": BERTConfig(**SMALL),
    "bert": BERTConfig(**BASE),
    "untied": BERTConfig(**SMALL, head={"kind": "masked", "tied": False}),
    "learned q/k norm": BERTConfig(**SMALL, qk_norm="learned"),
    **{f"post-norm {kind}": BERTConfig(**BASE | {"position": {"kind": kind}}) for kind in PositionConfig.registry},
}
LENGTHS = (9, 4, 1, 4, 7)


def model(style, dtype=torch.float64, **changes):
    torch.manual_seed(1)
    bert = STYLES[style].override(changes).build().to(dtype).eval()
    move_weights(bert)
    return bert


def ragged():
    torch.manual_seed(2)
    return [torch.randint(1, 50, (n,)) for n in LENGTHS], [torch.arange(n) * 2 // n for n in LENGTHS]


def padded(texts, side="right", fill=0):
    rows, longest = len(texts), max(len(text) for text in texts)
    tokens, keep = torch.full((rows, longest), fill), torch.zeros(rows, longest, dtype=torch.bool)
    for row, text in enumerate(texts):
        place = slice(longest - len(text), longest) if side == "left" else slice(0, len(text))
        tokens[row, place], keep[row, place] = text, True
    return tokens, keep


@pytest.mark.parametrize("style", STYLES)
def test_padding_changes_nothing_on_either_side(style):
    bert, (texts, segments) = model(style), ragged()
    for side in ("left", "right"):
        tokens, keep = padded(texts, side)
        other, _ = padded(texts, side, fill=13)
        told, _ = padded(segments, side)
        states = bert.hidden(tokens, told, keep)
        assert torch.allclose(bert.hidden(other, told, keep)[keep], states[keep], atol=1e-12)
        for row, (text, segment) in enumerate(zip(texts, segments, strict=True)):
            assert torch.allclose(bert.hidden(text[None], segment[None])[0], states[row, keep[row]], atol=1e-12)
    assert (bert.hidden(tokens, told)[keep] - states[keep]).abs().max() > 1e-3  # a negative control: padding is seen


@pytest.mark.parametrize("style", STYLES)
def test_packed_is_padded_with_gradients(style):
    bert, (texts, segments) = model(style), ragged()
    tokens, keep = padded(texts)
    told, _ = padded(segments)
    weights = [torch.randn(n, 16, dtype=torch.float64) for n in LENGTHS]
    results = []
    for states in (
        [states[row] for states, row in zip(bert.hidden(tokens, told, keep), keep, strict=True)],
        encode(bert, texts, segments, tokens=12),
    ):
        loss = sum((state * weight).sum() for state, weight in zip(states, weights, strict=True))
        gradients = torch.autograd.grad(loss, list(bert.parameters()), allow_unused=True)
        results.append((states, gradients))
    (one, one_gradients), (other, other_gradients) = results
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(one, other, strict=True))
    for a, b in zip(one_gradients, other_gradients, strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, atol=1e-9)
    assert sum(s is not None and bool(s.any()) for s in one_gradients) > 10


def test_encoding_takes_lists_and_keeps_the_order():
    bert, (texts, segments) = model("bert", torch.float32), ragged()
    lists = [text.tolist() for text in texts]
    states = encode(bert, lists, [s.tolist() for s in segments])
    assert [tuple(s.shape) for s in states] == [(n, 16) for n in LENGTHS]
    first = encode_first(bert, lists, segments, tokens=5)
    assert torch.allclose(first, torch.stack([s[0] for s in states]), atol=1e-5)
    tokens, keep = padded(texts)
    told, _ = padded(segments)
    assert torch.allclose(
        bert.pair_logits(first[:, None]), bert.pair_logits(bert.hidden(tokens, told, keep)), atol=1e-5
    )
    found = list(encode_buckets(bert, lists, tokens=12))
    assert [bucket.numbers for bucket in found] == [[2, 1, 3], [4], [0]]
    assert encode(bert, []) == []
    with pytest.raises(DataError, match="no texts"):
        encode_first(bert, [])
    with pytest.raises(DataError, match="segments of other lengths"):
        encode(bert, lists, [[0]] * 5)
    with pytest.raises(ShapeError, match="none empty"):
        encode(bert, [[1], []])


def test_segments_and_their_absence():
    bert = model("default", torch.float32)
    tokens = torch.randint(50, (2, 6))
    assert torch.equal(bert.hidden(tokens), bert.hidden(tokens, torch.zeros_like(tokens)))
    assert not torch.equal(bert.hidden(tokens), bert.hidden(tokens, torch.ones_like(tokens)))
    with pytest.raises(ShapeError, match="segments have shape"):
        bert(tokens, torch.zeros(2, 5, dtype=torch.long))
    with pytest.raises(ShapeError, match=r"expected \(B, T\)"):
        bert(tokens[0])


HEADS = {
    "none": set(),
    "pooled": {"pooled"},
    "masked": {"masked_logits"},
    "pairs": {"pooled", "pair_logits"},
    "pretraining": {"pooled", "masked_logits", "pair_logits"},
    "classes": {"pooled", "class_logits"},
    "tokens": {"token_logits"},
}


def test_every_head_is_tested():
    assert set(HEADS) == set(HeadConfig.registry)


@pytest.mark.parametrize("kind", HEADS)
def test_a_model_has_its_head_and_no_other(kind):
    labels = {"labels": ("O", "B", "I")} if kind == "tokens" else {}
    bert = model("default", torch.float32, head={"kind": kind, **labels})
    hidden = bert.hidden(torch.randint(50, (3, 6)))
    shapes = {"pooled": (3, 16), "masked_logits": (3, 6, 50), "pair_logits": (3, 2), "class_logits": (3, 2)}
    shapes |= {"token_logits": (3, 6, 3)}
    for name, shape in shapes.items():
        if name in HEADS[kind]:
            assert getattr(bert, name)(hidden).shape == shape
        else:
            with pytest.raises(UnsupportedError, match=f"has no head for .*: head = {kind}"):
                getattr(bert, name)(hidden)
    if "masked_logits" in HEADS[kind]:
        at = torch.tensor([0, 7, 11])
        some = bert.masked_logits(hidden.flatten(0, 1)[at])
        assert torch.allclose(some, bert.masked_logits(hidden).flatten(0, 1)[at], atol=1e-6)


@pytest.mark.parametrize("pool", ["mean", "first"])
def test_padding_on_either_side_or_none_gives_the_same_pooled_vector(pool):
    bert, (texts, _) = model("default", head=ClassesConfig(classes=3), pool=pool), ragged()
    tokens, keep = padded(texts, "left")
    right, right_keep = padded(texts)
    left_logits = bert(tokens, None, keep)
    assert torch.allclose(left_logits, bert(right, None, right_keep), atol=1e-12)
    row = PackedTexts.of(texts)
    alone = bert.class_logits(row.states(bert), packed=row.packed)
    assert torch.allclose(alone, left_logits, atol=1e-12)
    ignoring = bert.class_logits(bert.hidden(tokens, None, keep))  # what is not told of padding reads it
    assert not torch.allclose(ignoring, left_logits, atol=1e-3)


def test_questions_have_maps_of_their_own():
    head = {"kind": "pretraining", "questions": ["next-sentence", "entailment"], "answers": [2, 3]}
    bert = model("default", torch.float32, head=head, pool="first")
    hidden, (_, keep) = bert.hidden(torch.randint(50, (5, 9))), padded(ragged()[0], "left")
    assert bert.pair_logits(hidden).shape == (5, 2) and bert.pair_logits(hidden, "entailment").shape == (5, 3)
    assert torch.equal(bert.pair_logits(hidden), bert.pair_logits(hidden, "next-sentence"))
    first = hidden[torch.arange(5), keep.int().argmax(1)][:, None]
    assert torch.equal(bert.pair_logits(hidden, "entailment", keep), bert.pair_logits(first, "entailment"))
    assert {name for name, _ in bert.named_parameters() if name.startswith("pairs.") and name.endswith("weight")} == {
        "pairs.next-sentence.weight",
        "pairs.entailment.weight",
    }
    with pytest.raises(UnsupportedError, match=r"no question 'entailmnet'\ndid you mean 'entailment'"):
        bert.pair_logits(hidden, "entailmnet")
    assert ModelConfig.from_dict(bert.config.to_dict()) == bert.config


@pytest.mark.parametrize("kind", ["pairs", "pretraining"])
def test_questions_and_answers_belong_together(kind):
    for fields, words in (
        ({"questions": ("a", "b")}, "2 questions and 1 numbers of answers"),
        ({"questions": (), "answers": ()}, "at least one question"),
        ({"questions": ("a", "a"), "answers": (2, 2)}, "twice"),
        ({"answers": (1,)}, "at least 2"),
        ({"questions": ("a.b",)}, "small letters and hyphens"),
        ({"questions": ("keys",)}, "small letters and hyphens"),
    ):
        with pytest.raises(ConfigError, match=words):
            HeadConfig.from_config({"kind": kind, **fields})


def test_labels_and_classes_belong_together():
    assert ClassesConfig(classes=2, labels=("no", "yes")).labels == ("no", "yes")
    with pytest.raises(ConfigError, match="3 labels for 2 classes"):
        ClassesConfig(labels=("a", "b", "c"))
    with pytest.raises(ConfigError, match="twice"):
        ClassesConfig(labels=("a", "a"))


def test_labels_of_tokens_have_names():
    assert TokensConfig(labels=["O", "B-PER"]).labels == ("O", "B-PER")
    for labels in ((), ("O",), ("O", "O", "B-PER")):
        with pytest.raises(ConfigError, match=r"labels = .*\nexpected two or more different names"):
            TokensConfig(labels=labels)
    with pytest.raises(ConfigError, match="labels"):
        HeadConfig.from_config("tokens")
    bert = model("default", head={"kind": "tokens", "labels": ["O", "B-PER", "I-PER"]})
    assert isinstance(bert, TagsTokens) and ModelConfig.from_dict(bert.config.to_dict()) == bert.config
    fresh = bert.config.build()
    assert not fresh.labels[1].weight.any(), "the head begins at zero, as all heads do"


@pytest.mark.parametrize("style", STYLES)
def test_labels_of_tokens_are_the_same_packed_padded_and_alone(style):
    bert, (texts, _) = model(style, head={"kind": "tokens", "labels": ["O", "B-PER", "I-PER"]}), ragged()
    row, (tokens, keep) = PackedTexts.of(texts), padded(texts)
    packed = bert.token_logits(row.states(bert))[0]
    assert torch.allclose(packed, bert(tokens, None, keep)[keep], atol=1e-12)
    alone = torch.cat([bert(text[None])[0] for text in texts])
    assert torch.allclose(packed, alone, atol=1e-12) and packed.std() > 0.1
    at = torch.tensor([0, 7, 11])
    assert torch.allclose(bert.token_logits(row.states(bert)[0, at]), packed[at], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "head", "count"),
    [
        ("bert-base", "pooled", 109_482_240),
        ("bert-base", "masked", 109_514_298),
        ("bert-base", "pretraining", 110_106_428),
        ("bert-base", "classes", 109_483_778),
        ("bert-large", "pooled", 335_141_888),
    ],
)
def test_presets_have_the_published_sizes(name, head, count):
    family, fields = preset(name)
    shapes = ModelConfig.from_config({"kind": family, **fields, "head": head}).shapes()
    assert sum(math.prod(shape) for shape in shapes.values()) == count


def test_every_preset_builds():
    for name in ("bert", "bert-tiny", "bert-small"):
        family, fields = preset(name)
        assert ModelConfig.from_config({"kind": family, "vocab_size": 50, **fields}).shapes()


@pytest.mark.parametrize("style", ["default", "bert", "untied"])
def test_the_loss_begins_at_ln_of_the_vocabulary(style):
    bert = STYLES[style].build()
    logits = bert(torch.randint(50, (8, 20)))
    loss = F.cross_entropy(logits.flatten(0, 1), torch.randint(50, (160,)))
    assert abs(loss.item() - math.log(50)) < 0.05


@pytest.mark.parametrize("style", ["default", "bert"])
def test_one_batch_can_be_learned_by_heart(style):
    torch.manual_seed(1)
    bert = STYLES[style].build()
    rule, tokens = AdamWConfig(learning_rate=0.01, weight_decay=0.0).build(bert), torch.randint(2, 50, (4, 16))
    hidden = torch.rand(4, 16) < 0.25
    for _ in range(120):
        states = bert.hidden(tokens.masked_fill(hidden, 1))
        loss = F.cross_entropy(bert.masked_logits(states[hidden]), tokens[hidden])
        rule.zero_grad()
        loss.backward()
        rule.step()
    assert loss.item() < 0.1


def test_both_directions_are_read():
    bert = model("default")
    tokens = torch.randint(50, (1, 10))
    for changed in (0, 9):
        other = tokens.clone()
        other[0, changed] = (other[0, changed] + 1) % 50
        assert ((bert.hidden(other) - bert.hidden(tokens)).abs().amax(-1) > 1e-9).all()


@pytest.mark.parametrize("style", STYLES)
def test_with_weights_takes_them_over(style):
    bert, tokens = model(style, torch.float32), torch.randint(50, (2, 20))
    weights = {name: p.detach().clone() for name, p in bert.named_parameters()}
    again = STYLES[style].with_weights(weights).eval()
    assert torch.equal(again(tokens), bert(tokens))
    assert (again.masked.output.weight is again.tokens.weight) == STYLES[style].head.tied


def test_config_round_trips():
    labelled = BERTConfig(**SMALL, head={"kind": "classes", "classes": 2, "labels": ["no", "yes"], "dropout": 0.3})
    for config in (*STYLES.values(), labelled):
        assert ModelConfig.from_dict(config.to_dict()) == config
        assert ModelConfig.from_toml(config.to_toml()) == config
