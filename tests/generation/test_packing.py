"""Packed models: the same numbers in float32, close ones in bf16 and int8, and nothing changed in the original."""

import subprocess
import sys

import pytest
import torch

from weft.errors import ConfigError
from weft.generation import GenerationConfig, generate, packed
from weft.generation.packing import Arena, BFloat16Map, Float32Map, Int8Map, JoinedAttention
from weft.models import GPTConfig
from weft.models.gpt.model import gpt2
from weft.text import TokenizerConfig

numba = pytest.importorskip("numba")
STYLES = {
    "default": {"width": 64, "depth": 2, "max_length": 64},
    "gpt2": gpt2(2, 64, 4),
    "few key heads": {"width": 64, "depth": 2, "attention": {"kind": "softmax", "heads": 4, "kv_heads": 2}},
    "hard": {"width": 64, "depth": 1, "attention": {"kind": "hard", "heads": 2}},
    "alibi": {"width": 64, "depth": 1, "position": {"kind": "alibi"}},
    "flat": {"width": 64, "depth": 1, "attention": {"kind": "softmax", "beta": 0.0}},
}


def small(style):
    torch.manual_seed(1)
    model = GPTConfig(**STYLES[style] | {"vocab_size": 97}).build()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.2)
    return model.eval()


@torch.no_grad()
def logits_of(model, rows=2, steps=12, ragged=False):
    """A prompt and some single steps, as in decoding."""
    torch.manual_seed(0)
    tokens = torch.randint(0, 97, (rows, 5 + steps))
    keep = torch.ones(rows, 5, dtype=torch.bool)
    keep[0, 3:] = not ragged
    caches = model.new_caches(64)
    out = [model.next_logits(tokens[:, :5], keep=keep if ragged else None, caches=caches)]
    out += [model.next_logits(tokens[:, 5 + i : 6 + i], caches=caches) for i in range(steps)]
    return torch.stack(out)


@pytest.mark.parametrize("rows", [1, pytest.param(3, marks=pytest.mark.slow), 20])
@pytest.mark.parametrize("style", sorted(STYLES))
def test_float32_is_the_same_model(style, rows):
    model = small(style)
    plain = logits_of(model, rows)
    assert (logits_of(packed(model), rows) - plain).abs().max() <= 1e-5 * plain.abs().max().clamp(min=1)
    ragged = logits_of(model, rows, ragged=True)
    assert (logits_of(packed(model), rows, ragged=True) - ragged).abs().max() <= 1e-5 * ragged.abs().max().clamp(min=1)


@pytest.mark.parametrize(("weights", "unit"), [("bf16", 2**-8), ("int8", 0.5 / 127)])
@pytest.mark.parametrize("rows", [1, 3, 20])
def test_rounded_matrices_are_used_exactly(weights, unit, rows):
    """The loop and torch give the product with the rounded matrix, which is as near as its form allows."""
    torch.manual_seed(2)
    plain = torch.nn.Linear(33, 70)
    form = {"bf16": BFloat16Map, "int8": Int8Map}[weights](plain, Arena())
    wanted = plain.weight.abs() if weights == "bf16" else plain.weight.abs().amax(1, keepdim=True)
    assert ((form.matrix() - plain.weight).abs() <= wanted * unit * 1.001).all()
    x = torch.randn(rows, 1, 33)
    reference = x.double() @ form.matrix().double().t() + plain.bias.double()
    assert (form(x) - reference).abs().max() < 1e-5
    assert (form(x) - plain(x)).abs().max() > 1e-5  # rounded it is


@pytest.mark.parametrize("weights", ["float32", "bf16", "int8"])
def test_the_original_stays_as_it_is(weights):
    model = small("gpt2")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    quick = packed(model, weights)
    assert isinstance(quick.layers[0].attention, JoinedAttention)
    assert quick.tokens.weight is model.tokens.weight  # shared, not copied
    assert list(model.state_dict()) == list(before)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_quality_is_close():
    model = small("gpt2")
    plain = logits_of(model).log_softmax(-1)
    for weights, limit in (("bf16", 0.02), ("int8", 0.05)):
        ours = logits_of(packed(model, weights)).log_softmax(-1)
        divergence = (plain.exp() * (plain - ours)).sum(-1).mean()
        assert 0 < divergence < limit


def test_packed_models_write():
    tokenizer = TokenizerConfig.from_config("bytes").train(["abc"])
    torch.manual_seed(0)
    model = GPTConfig(vocab_size=tokenizer.vocab_size, width=64, depth=2, max_length=16, zero_outputs=False).build()
    config = GenerationConfig(temperature=0.0, max_tokens=40)
    texts = [generate(m, tokenizer, ["ab", "c"], config) for m in (model, packed(model))]
    assert [s.tokens for s in texts[0]] == [s.tokens for s in texts[1]]
    assert len(generate(packed(model, "int8"), tokenizer, ["ab"], config)[0].tokens) == 40


def test_float64_and_other_modules_are_left_to_torch():
    model = small("gpt2").double()
    assert (logits_of(packed(model)) - logits_of(model)).abs().max() < 1e-12


def test_unknown_forms_are_refused():
    with pytest.raises(ConfigError, match="int8"):
        packed(small("gpt2"), "int9")


def test_without_numba_the_same_numbers_are_used():
    """In a process of its own, where importing numba fails."""
    script = """
import sys
sys.modules["numba"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "numba" else find(name, *rest)
import torch
from weft.generation.packing import Arena, Int8Map, packed
from weft.models import GPTConfig
torch.manual_seed(1)
model = GPTConfig(vocab_size=50, width=32, depth=1, zero_outputs=False).build().eval()
quick = packed(model, "int8")
tokens = torch.randint(0, 50, (2, 7))
with torch.no_grad():
    rounded = Int8Map(model.head, Arena()).matrix()
    assert torch.equal(quick.head.weight, rounded)
    assert 0 < (quick(tokens) - model(tokens)).abs().max() < 0.1
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr
    assert "weft[fast]" in done.stderr


def test_float32_maps_in_all_sizes():
    torch.manual_seed(0)
    for inputs, outputs in ((1, 1), (3, 7), (64, 200)):
        for bias in (True, False):
            plain = torch.nn.Linear(inputs, outputs, bias=bias)
            for rows in (1, 2, 8, 9, 64, 65):
                x = torch.randn(rows, 1, inputs)
                torch.testing.assert_close(Float32Map(plain, Arena())(x), plain(x).detach(), atol=1e-5, rtol=1e-5)
