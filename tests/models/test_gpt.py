"""GPT: shapes, presets, start, cache, padding; and the default parts learn."""

import math

import pytest
import torch
import torch.nn.functional as F

from fixtures.weights import move_weights
from weft.blocks import PositionConfig
from weft.errors import ConfigError, WeightsError
from weft.models import GPT, GPTConfig, ModelConfig, preset
from weft.training import AdamWConfig, MuonConfig

GPT2 = {**preset("gpt2")[1], "vocab_size": 50, "width": 16, "depth": 2, "max_length": 24}
GPT2["attention"] = {"kind": "softmax", "heads": 2}
STYLES = {
    "default": GPTConfig(vocab_size=50, width=16, depth=2, max_length=24),
    "gpt2": GPTConfig(**GPT2),
    "learned q/k norm": GPTConfig(vocab_size=50, width=16, depth=2, max_length=24, qk_norm="learned"),
    **{
        kind: GPTConfig(vocab_size=50, width=16, depth=2, max_length=24, position={"kind": kind})
        for kind in PositionConfig.registry
    },
}


def model(style, dtype=torch.float64):
    torch.manual_seed(1)
    gpt = STYLES[style].build().to(dtype).eval()
    move_weights(gpt)
    return gpt


@pytest.mark.parametrize("style", STYLES)
def test_cached_equals_uncached_with_padding(style):
    gpt = model(style)
    texts = [torch.randint(50, (n,)) for n in (9, 4, 1)]
    more = torch.randint(50, (3, 5))
    for side in ("left", "right"):
        tokens, keep = torch.zeros(3, 9, dtype=torch.long), torch.zeros(3, 9, dtype=torch.bool)
        for row, text in enumerate(texts):
            place = slice(9 - len(text), 9) if side == "left" else slice(0, len(text))
            tokens[row, place], keep[row, place] = text, True
        caches = gpt.new_caches()
        with torch.no_grad():
            gpt(tokens, keep=keep, caches=caches)
            parts = torch.cat([gpt(piece, caches=caches) for piece in more.split(2, 1)], 1)
            for row, text in enumerate(texts):
                alone = gpt(torch.cat([text, more[row]])[None])
                assert torch.allclose(parts[row], alone[0, len(text) :], atol=1e-12)


@pytest.mark.parametrize("style", STYLES)
def test_a_later_token_never_reaches_an_earlier_logit(style):
    gpt, tokens = model(style, torch.float32), torch.randint(50, (1, 20))
    before = gpt(tokens)
    changed = tokens.clone()
    changed[0, 11] = (changed[0, 11] + 1) % 50
    assert torch.equal(gpt(changed)[:, :11], before[:, :11])


def test_the_loss_begins_at_ln_of_the_vocabulary():
    for style in ("default", "gpt2"):
        torch.manual_seed(0)
        logits = STYLES[style].build()(torch.randint(50, (8, 20)))
        loss = F.cross_entropy(logits.flatten(0, 1), torch.randint(50, (160,)))
        assert abs(loss.item() - math.log(50)) < 0.05


@pytest.mark.parametrize("optimizer", [MuonConfig(), AdamWConfig(learning_rate=0.01)])
def test_one_batch_can_be_learned_by_heart(optimizer):
    torch.manual_seed(0)
    gpt = STYLES["default"].build()
    rule, tokens = optimizer.build(gpt), torch.randint(50, (4, 17))
    for _ in range(150):
        loss = F.cross_entropy(gpt(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        rule.zero_grad()
        loss.backward()
        rule.step()
    assert loss.item() < 0.1


@pytest.mark.parametrize(
    ("name", "millions"), [("gpt2", 124.44), ("gpt2-medium", 354.82), ("gpt2-large", 774.03), ("gpt2-xl", 1557.61)]
)
def test_gpt2_presets_have_the_published_sizes(name, millions):
    family, fields = preset(name)
    with torch.device("meta"):
        gpt = ModelConfig.from_config({"kind": family, **fields}).build()
    assert sum(p.numel() for p in gpt.parameters()) / 1e6 == pytest.approx(millions, abs=0.01)


def test_tied_weights_are_one_tensor():
    gpt = STYLES["gpt2"].build()
    assert gpt.head.weight is gpt.tokens.weight
    assert isinstance(gpt, GPT)


@pytest.mark.parametrize("style", STYLES)
def test_with_weights_takes_them_over(style):
    gpt, tokens = model(style, torch.float32), torch.randint(50, (2, 20))
    weights = {name: p.detach().clone() for name, p in gpt.named_parameters()}
    again = STYLES[style].with_weights(weights).eval()
    assert torch.equal(again(tokens), gpt(tokens))
    assert [name for name, _ in again.named_parameters()] == [name for name, _ in gpt.named_parameters()]
    assert all(p.requires_grad and p.is_leaf and not p.is_meta for p in again.parameters())
    assert (again.head.weight is again.tokens.weight) == STYLES[style].tied
    shapes = {name: tuple(p.shape) for name, p in gpt.named_parameters()}
    assert STYLES[style].shapes() == shapes


def test_with_weights_names_what_does_not_fit():
    config = STYLES["default"]
    weights = {name: torch.zeros(shape) for name, shape in config.shapes().items()}
    with pytest.raises(WeightsError, match=r"no tensor 'head.weight'"):
        config.with_weights({k: v for k, v in weights.items() if k != "head.weight"})
    with pytest.raises(WeightsError, match="'extra' has no place"):
        config.with_weights(weights | {"extra": torch.ones(1)})
    with pytest.raises(WeightsError, match=r"shape \(50, 17\)"):
        config.with_weights(weights | {"head.weight": torch.ones(50, 17)})
    with pytest.raises(ConfigError, match="more bytes than can be counted"):
        GPTConfig(vocab_size=2**31, width=2**31, attention={"kind": "softmax", "heads": 1}).shapes()


def test_config_round_trips():
    for config in STYLES.values():
        assert ModelConfig.from_dict(config.to_dict()) == config
        assert ModelConfig.from_toml(config.to_toml()) == config
