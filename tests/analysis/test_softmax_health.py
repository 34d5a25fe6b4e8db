"""Softmax health: every number against a brute force in float64, every sentence against the numbers."""

import math

import numpy as np
import pytest
import torch

from weft.analysis import AttentionMap, capture, health_sentences, softmax_health
from weft.analysis.softmax_health import MEASURES, HeadHealth, LayerHealth, row_measures
from weft.blocks import CAUSAL, EVERYTHING, AttentionConfig, Mask, SoftmaxAttention
from weft.blocks.attention import SoftmaxConfig
from weft.blocks.attention.additive import AdditiveCore
from weft.blocks.attention.base import Grid
from weft.errors import ConfigError
from weft.models import BERTConfig, GPTConfig, TransformerConfig
from weft.models.sites import AttentionSite, Place

NAMES = ("entropy", "relative_entropy", "largest", "saturated", "score_variance", "gradient", "uniform_gradient")


def brute(rows):
    """The means of a list of rows, each the scores of its allowed keys, entry by entry."""
    found = []
    for row in rows:
        if len(row) < 2:
            continue
        scores = np.asarray(row, dtype=np.float64)
        weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        entropy = -sum(w * math.log(w) for w in weights if w > 0)
        count = len(scores)

        def norm(a):
            jacobian = np.diag(a) - np.outer(a, a)
            return float(np.sqrt((jacobian**2).sum()))

        found.append(
            (
                entropy,
                entropy / math.log(count),
                weights.max(),
                float(weights.max() > 0.98),
                scores.var(),
                norm(weights),
                norm(np.full(count, 1 / count)),
            )
        )
    return dict(zip(NAMES, np.mean(found, 0), strict=True)) | {"rows": len(found)}


def assert_same(head, wanted):
    for name, value in wanted.items():
        assert getattr(head, name) == pytest.approx(value, rel=1e-9, abs=1e-12), name


OWN = AttentionSite("layers.0.attention", Place("", 1), "text", "text")
ACROSS = AttentionSite("decoder.layers.0.cross_attention", Place("decoder → encoder", 1), "next", "source")


def looked(core, query, key, mask=EVERYTHING, site=OWN):
    return softmax_health([{site.name: AttentionMap(core, query, key, key, mask, site)}])[0]


@pytest.mark.parametrize("sharp", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("causal", [False, True])
def test_numbers_are_those_of_a_brute_force(sharp, causal):
    query, key = torch.randn(2, 3, 7, 4, dtype=torch.float64), torch.randn(2, 3, 7, 4, dtype=torch.float64)
    layer = looked(SoftmaxAttention(beta=sharp), query, key, Mask(causal=causal))
    for number, head in enumerate(layer.heads):
        scores = (sharp * query[:, number] @ key[:, number].mT).numpy()
        rows = [row[: t + 1 if causal else None] for table in scores for t, row in enumerate(table)]
        assert_same(head, brute(rows))


def test_bias_padding_and_patterns_count_as_the_model_counts_them():
    length = 9
    query, key = (torch.randn(2, 2, length, 4, dtype=torch.float64) for _ in range(2))
    keep = torch.arange(length).expand(2, -1) < torch.tensor([[9], [5]])
    bias = torch.randn(2, length, length, dtype=torch.float64)[None]
    core = AttentionConfig.from_config({"kind": "local", "window": 3}).core()
    layer = looked(core, query, key, Mask(causal=True, keep=keep, bias=bias))
    for number, head in enumerate(layer.heads):
        rows = []
        for text in range(2):
            for t in range(int(keep[text].sum())):
                seen = range(max(0, t - 2), t + 1)
                rows.append(
                    [
                        float(query[text, number, t] @ key[text, number, s]) / 2 + float(bias[0, number, t, s])
                        for s in seen
                    ]
                )
        assert_same(head, brute(rows))
        assert head.rows == 8 + 4  # a first token sees itself alone: nothing to choose


def test_a_count_of_padding_would_be_found():
    """Negative control: with padding in it, the numbers are others."""
    query, key = (torch.randn(1, 1, 9, 4, dtype=torch.float64) for _ in range(2))
    keep = torch.arange(9)[None] < 5
    short = looked(SoftmaxAttention(), query[:, :, :5], key[:, :, :5])
    assert looked(SoftmaxAttention(), query, key, Mask(keep=keep)).heads == short.heads
    assert looked(SoftmaxAttention(), query, key).heads[0].entropy != pytest.approx(short.heads[0].entropy, rel=1e-3)
    cross = looked(SoftmaxAttention(), query, key, Mask(keep=keep), site=ACROSS)
    assert cross.heads[0].rows == 9, "who asks another text has no padding there"


def test_rows_with_nothing_to_look_at_do_not_count():
    query, key = torch.randn(1, 1, 4, 4), torch.randn(1, 1, 4, 4)
    allow = torch.ones(4, 4, dtype=torch.bool)
    allow[1], allow[2, 1:] = False, False
    layer = looked(SoftmaxAttention(), query, key, Mask(allow=allow))
    assert layer.heads[0].rows == 2
    nothing = looked(SoftmaxAttention(), query, key, Mask(allow=torch.eye(4, dtype=torch.bool)))
    assert nothing.without == "no row has two keys to choose between" and not nothing.heads


def test_channels_and_additive_scores():
    query, key = (torch.randn(2, 2, 5, 3, dtype=torch.float64) for _ in range(2))
    channels = looked(AttentionConfig.from_config("channel").core(), query, key)
    assert channels.unit == "channel"
    for number, head in enumerate(channels.heads):
        tables = query[:, number].mT @ key[:, number] / math.sqrt(3)
        assert_same(head, brute([row for table in tables.numpy() for row in table]))
    core = AdditiveCore(3).double().requires_grad_(False)
    query, key = query[:, :1], torch.randn(2, 1, 6, 3, dtype=torch.float64)
    scores = [[float((torch.tanh(q + k) * core.score).sum()) for k in key[b, 0]] for b in range(2) for q in query[b, 0]]
    found = looked(core, query, key, site=ACROSS)
    assert_same(found.heads[0], brute(scores))
    assert found.place == Place("decoder → encoder", 1)


def test_summaries_and_learned_tokens_are_looked_at_by_their_own_keys():
    x = torch.randn(1, 6, 16, dtype=torch.float64)
    for kind, fields, count in (("hierarchy", {"summaries": 3}, 3), ("global", {"tokens": 0, "learned": 2}, 3)):
        module = AttentionConfig.from_config({"kind": kind, "heads": 2, **fields}).build(16).double()
        with capture(module) as maps:
            module(x)
        (found,) = maps.values()
        scores, allowed = found.core.scored(found.query, found.key, found.mask)
        every = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
        assert every.isfinite().sum(-1).unique().tolist() == [count]
        collected = (
            found.core._collected(found.key, found.mask)
            if kind == "hierarchy"
            else torch.cat([torch.eye(6).expand(1, 2, 6, 6), found.core._collected(found.key, found.mask)], 2)
        )
        assert torch.allclose(every.softmax(-1) @ collected, found.weights, atol=1e-12)


def test_the_gradient_is_that_of_autograd():
    scores = torch.randn(5, 8, dtype=torch.float64) * torch.tensor([[0.1], [1], [5], [20], [60]])
    measures, _ = row_measures(scores, torch.ones_like(scores, dtype=torch.bool))
    for row, found in zip(scores, measures[:, MEASURES.index("gradient")], strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row)
        assert float(found) == pytest.approx(float(jacobian.norm()), rel=1e-6, abs=1e-14)


def test_a_gradient_far_below_a_rounding_of_one_is_still_a_number():
    measures, _ = row_measures(torch.tensor([[0.0, 60.0]]), torch.ones(1, 2, dtype=torch.bool))
    assert float(measures[0, MEASURES.index("gradient")]) == pytest.approx(2 * math.exp(-60), rel=1e-9)


def test_equal_scores_are_everything_alike():
    head = looked(SoftmaxAttention(), torch.zeros(1, 1, 4, 2), torch.randn(1, 1, 6, 2)).heads[0]
    assert head.relative_entropy == pytest.approx(1) and head.relative_gradient == pytest.approx(1)
    assert head.largest == pytest.approx(1 / 6) and head.saturated == 0 and head.score_variance == 0


@pytest.mark.parametrize("kind", ["linear", "random-features", "hard"])
def test_kinds_without_a_softmax_say_so(kind):
    model = GPTConfig(vocab_size=9, width=16, depth=1, attention={"kind": kind, "heads": 2}).build().eval()
    with capture(model) as maps:
        model(torch.randint(9, (1, 6)))
    (layer,) = softmax_health([maps])
    assert not layer.heads and "Attention gives no scores that a softmax is taken of" in layer.without
    assert health_sentences([layer]) == [f"layer 1: {layer.without}"]


def test_several_looks_are_one():
    model = GPTConfig(vocab_size=9, width=16, depth=2, max_length=8, attention=SoftmaxConfig(heads=2)).build().eval()
    tokens = torch.randint(9, (3, 8))
    looks = []
    for rows in (tokens, tokens[:1], tokens[1:]):
        with capture(model) as maps:
            model(rows)
        looks.append(dict(maps))
    whole, parts = softmax_health(looks[:1]), softmax_health(looks[1:])
    for one, other in zip(whole, parts, strict=True):
        for a, b in zip(one.heads, other.heads, strict=True):
            assert_same(a, {name: getattr(b, name) for name in (*NAMES, "rows")})


def test_every_attention_of_a_model_is_there():
    model = (
        TransformerConfig(vocab_size=9, source_vocab_size=7, width=16, depth=2, attention=SoftmaxConfig(heads=2))
        .build()
        .eval()
    )
    with capture(model) as maps:
        model(torch.randint(7, (2, 5)), torch.randint(9, (2, 4)))
    places = [layer.place for layer in softmax_health([maps])]
    assert places.count(Place("encoder", 2)) == places.count(Place("decoder → encoder", 2)) == 1 and len(places) == 6


def test_places_in_words():
    assert Place("", 4).head(5) == "head 4.5" and Place("", 4).layer == "layer 4"
    assert Place("encoder", 1).layer == "encoder, layer 1" and Place("encoder", 1).head(2) == "encoder, head 1.2"


def test_a_map_that_nobody_placed_is_refused():
    query = torch.randn(1, 1, 4, 2)
    with pytest.raises(ConfigError, match=r"the model of blocks\.0 does not say where it stands"):
        softmax_health([{"blocks.0": AttentionMap(SoftmaxAttention(), query, query, query, EVERYTHING)}])


# -- in words ---------------------------------------------------------------------------------


def layer_with(number, *heads):
    usual = {"rows": 10, "entropy": 1.0, "relative_entropy": 0.5, "largest": 0.4, "saturated": 0.0}
    usual |= {"score_variance": 1.0, "gradient": 0.3, "uniform_gradient": 0.3}
    return LayerHealth(
        f"layers.{number - 1}.attention", Place("", number), "token", tuple(HeadHealth(**usual | h) for h in heads)
    )


def test_sentences_say_what_the_numbers_say():
    stuck = {"saturated": 0.83, "score_variance": 60.2, "gradient": 0.01, "largest": 0.97}
    layers = [
        layer_with(1, {}, {"relative_entropy": 0.99}),
        layer_with(2, {"relative_entropy": 0.999}, {"relative_entropy": 0.985}),
        layer_with(3, {"largest": 0.989}, {"largest": 0.93}),
        layer_with(4, stuck, stuck),
    ]
    assert health_sentences(layers) == [
        "layer 4: scores have a variance of 60, 83 % of the rows are saturated: little can be learned through them",
        "head 3.1 puts 98 % on one token",
        "head 3.2 puts 93 % on one token",
        "layer 2: all 2 heads look at everything alike",
        "head 1.2 looks at everything alike",
    ]
    assert health_sentences(layers, 3)[-1] == "and 3 more"
    assert health_sentences(layers[:1])[-1] == "head 1.2 looks at everything alike"
    calm = health_sentences([layer_with(1, {}, {})])
    assert calm == ["2 heads, nothing stands out: entropy 50 % of the largest possible, 0 % of the rows saturated"]
    assert health_sentences([]) == []


def test_saturated_rows_through_which_something_passes_are_no_alarm():
    passing = {"saturated": 0.83, "gradient": 0.2}
    assert "nothing stands out" in health_sentences([layer_with(1, passing)])[0]


def test_sentences_are_true_of_a_model():
    """Weights that are made large make scores large: the sentence must come then, and name the layer."""
    model = BERTConfig(vocab_size=9, width=16, depth=2, qk_norm=False, attention=SoftmaxConfig(heads=2)).build().eval()
    tokens = torch.randint(9, (2, 12))

    def told():
        with capture(model) as maps:
            model(tokens)
        return health_sentences(softmax_health([maps]))

    assert not any("little can be learned" in line for line in told())
    with torch.no_grad():
        model.layers[1].attention.query.weight *= 300
    assert told()[0].startswith("layer 2: scores have a variance of") and "little can be learned" in told()[0]


def test_places_of_a_image_are_called_so():
    query, key = torch.zeros(1, 1, 6, 4), torch.randn(1, 1, 6, 4)
    assert looked(SoftmaxAttention(), query, key, Mask(grid=Grid(2, 3))).unit == "place"
    assert looked(SoftmaxAttention(), query, key, CAUSAL).unit == "token"
