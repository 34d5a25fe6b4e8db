"""Every attention kind in every family: it works as it does with softmax, or is refused with a reason."""

import pytest
import torch

from weft.blocks import AttentionConfig
from weft.blocks.attention import SoftmaxConfig
from weft.cost import cost_of
from weft.errors import ConfigError
from weft.models import ModelConfig

SMALL = {"width": 16, "depth": 3, "attention.heads": 2}
TEXT = {**SMALL, "vocab_size": 20, "max_length": 512}
KINDS = list(AttentionConfig.registry)
BLIND = {kind for kind in KINDS if not AttentionConfig.from_config(kind).writes}  # they see the future too


def config_of(family, kind, **changes):
    sizes = {"vit": {**SMALL, "image_size": 32, "patch": 4, "head.classes": 3}}.get(family, TEXT)
    small = {f"attention.{name}": value for name, value in AttentionConfig.from_config(kind).small_fields.items()}
    changes = {"attention.kind": kind} | small | changes
    required = {"vocab_size": 20} if family != "vit" else {}
    base = ModelConfig.registry[family](**required)
    sizes = {key: value for key, value in sizes.items() if key != "head.classes"}
    return base.override(sizes).override(changes)


def texts(rows=2, length=30, seed=0):
    return torch.randint(1, 20, (rows, length), generator=torch.Generator().manual_seed(seed))


def shaken(model):
    """Outputs that begin at zero would hide what attention does."""
    torch.manual_seed(3)
    for p in model.parameters():
        if p.requires_grad and p.dim() > 1:
            torch.nn.init.normal_(p, std=0.3)
    return model.double().eval()


@pytest.mark.parametrize("kind", KINDS)
def test_gpt(kind):
    if kind in BLIND:
        with pytest.raises(ConfigError, match="in a model that writes"):
            config_of("gpt", kind)
        return
    model = shaken(config_of("gpt", kind).build())
    tokens = texts()
    whole = model(tokens)
    changed = tokens.clone()
    changed[:, 20] = (changed[:, 20] + 1) % 20
    assert torch.equal(model(changed)[:, :20], whole[:, :20])
    for step in (1, 7):
        caches = model.new_caches()
        with torch.no_grad():
            parts = [model(tokens[:, i : i + step], caches=caches) for i in range(0, 30, step)]
        torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_bert(kind):
    model = shaken(config_of("bert", kind, **{"head.kind": "none"}).build())
    tokens, keep = texts(), torch.ones(2, 30, dtype=torch.bool)
    keep[0, 17:] = False
    together = model(tokens, keep=keep)
    torch.testing.assert_close(together[:1, :17], model(tokens[:1, :17]), atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(together[1:], model(tokens[1:]), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("family", ["transformer", "t5"])
@pytest.mark.parametrize("kind", KINDS)
def test_text_to_text(family, kind):
    biased = {"position.kind": "rotary"} if family == "t5" else {}
    if kind in BLIND:
        with pytest.raises(ConfigError, match="in a model that writes"):
            config_of(family, kind, **biased)
        return
    if family == "t5" and not config_of("t5", kind, **biased).attention.takes_bias:
        with pytest.raises(ConfigError, match="has no scores to add that to"):
            config_of("t5", kind)
    model = shaken(config_of(family, kind, **biased).build())
    source, target = texts(), texts(length=11, seed=1)
    keep = torch.ones(2, 30, dtype=torch.bool)
    keep[0, 12:] = False
    whole = model(source, target, source_keep=keep)
    alone = model(source[:1, :12], target[:1])
    torch.testing.assert_close(whole[:1], alone, atol=1e-9, rtol=1e-9)
    with torch.no_grad():
        memory, caches = model.encode(source, keep), model.new_caches()
        parts = [model.logits(model.states(target[:, i : i + 1], memory, caches=caches)) for i in range(11)]
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["gpt", "vit"])
def test_the_cost_of_a_plan(family, kind):
    """By a walk without numbers, on a device that has none."""
    if family == "gpt" and kind in BLIND:
        return
    config = config_of(family, kind)
    cost = cost_of(config, batch=2, length=32 if family == "vit" else 30)
    maps = sum(p.numel() for p in config.skeleton().parameters() if p.dim() == 2)
    assert cost.flops > 6 * maps and cost.memory().total > 4 * cost.parameters > 0


@pytest.mark.parametrize("kind", KINDS)
def test_vit(kind):
    model = shaken(config_of("vit", kind).build())
    pixels = torch.randn(2, 3, 32, 32, dtype=torch.float64)[:, : model.config.channels]
    together = model.hidden(pixels)
    torch.testing.assert_close(together[1:], model.hidden(pixels[1:]), atol=1e-9, rtol=1e-9)


def test_a_model_with_relative_positions_can_still_be_local():
    config = config_of("t5", "local")
    assert config.position.kind == "relative"
    model = shaken(config.build())
    source, target = texts(), texts(length=9, seed=1)
    whole = model(source, target)
    with torch.no_grad():
        memory, caches = model.encode(source), model.new_caches()
        parts = [model.logits(model.states(target[:, i : i + 1], memory, caches=caches)) for i in range(9)]
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-9, rtol=1e-9)


def test_kinds_take_turns_through_the_depth():
    config = config_of("gpt", "softmax, local")
    kinds = [type(layer.attention.core).__name__ for layer in config.build().layers]
    assert kinds == ["SoftmaxAttention", "PatternAttention", "SoftmaxAttention"]
    assert config.attention.heads == 2 and not config.attention.bias
    assert config.build().layers[1].attention.heads == 2 and config.build().layers[1].attention.query.bias is None
    assert ModelConfig.from_toml(config.to_toml()) == config
    listed = ModelConfig.from_config(
        {"kind": "gpt", "vocab_size": 5, "attention": ["softmax", {"kind": "local", "window": 3}]}
    )
    assert [part.kind for part in listed.attention.of] == ["softmax", "local"]
    assert listed.build().layers[1].attention.core.pattern.window == 3
    spelled = listed.override({"attention": '["hard", {kind = "local", window = 7}]'})
    assert spelled.attention.of[1].window == 7


def test_windows_shift_in_every_second_of_their_own_turns():
    config = config_of("gpt", "window", **{"attention.window": 4})
    assert [layer.attention.core.shift for layer in config.build().layers] == [0, 2, 0]
    turns = AttentionConfig.from_config(["softmax", {"kind": "window", "window": 4}])
    assert [turns.for_layer(n).shift for n in (1, 3, 5)] == [0, 2, 0]


def test_a_memory_is_read_by_softmax_where_places_mean_nothing():
    local = AttentionConfig.from_config({"kind": "local", "window": 3, "heads": 4, "beta": 1.0, "dropout": 0.1})
    assert local.for_memory() == SoftmaxConfig(heads=4, beta=1.0, dropout=0.1)
    assert AttentionConfig.from_config("linear").for_memory().kind == "linear"
    model = config_of("transformer", "local").build()
    assert type(model.decoder.layers[0].cross_attention.core).__name__ == "SoftmaxAttention"
    assert type(model.decoder.layers[0].attention.core).__name__ == "PatternAttention"


def test_a_joint_table_has_no_places():
    with pytest.raises(ConfigError, match="memory = joint"):
        config_of("transformer", "local", memory="joint")


def test_directions_are_not_drawn_over_when_a_model_begins():
    from weft.blocks.attention.random_features import directions

    for family in ("gpt", "bert", "transformer", "t5", "vit"):
        rotary = {"position.kind": "rotary"} if family == "t5" else {}
        model = config_of(family, "random-features", **{"attention.features": 12}, **rotary).build()
        found = {name: p for name, p in model.named_parameters() if name.endswith("core.directions")}
        assert found
        for name, p in found.items():
            number = int(name.split("layers.")[1].split(".")[0])
            assert torch.equal(p, directions(12, 8, seed=number).float()), name


def test_directions_do_not_learn_however_a_model_came_about():
    config = config_of("gpt", "random-features")
    weights = {name: p.detach().clone() for name, p in config.build().named_parameters()}
    model = config.with_weights(weights)
    learns = {name for name, p in model.named_parameters() if p.requires_grad}
    assert "layers.0.attention.query.weight" in learns
    assert not any("core" in name for name in learns)


def test_layers_that_take_turns_draw_their_own_directions():
    config = config_of("gpt", "softmax").override({"attention.kind": "random-features, random-features"})
    first, second, third = (layer.attention.core.directions for layer in config.build().layers)
    assert not torch.equal(first, second) and not torch.equal(first, third)


def test_learned_tokens_begin_at_the_size_of_keys():
    for count in (1, 64):
        model = config_of("bert", "global", **{"attention.learned": count, "width": 128}).build()
        learned = model.layers[0].attention.core.learned
        assert learned.shape == (2, count, 64) and 0.7 < learned.std() * 8 < 1.3


def test_a_class_token_has_no_place_in_a_image():
    for kind in ("local", "window", "softmax, window", "union"):
        with pytest.raises(ConfigError, match="a class token has no place"):
            config_of("vit", kind, pool="class")
    config_of("vit", "linear", pool="class")


def test_a_refusal_names_the_kind_that_is_to_blame():
    with pytest.raises(ConfigError, match="kind = channel in a model"):
        config_of("gpt", "softmax, channel")
    with pytest.raises(ConfigError, match="by their places"):
        config_of("gpt", "global", **{"attention.learned": 2})
    assert AttentionConfig.from_config({"kind": "softmax,local", "heads": 2}).heads == 2
