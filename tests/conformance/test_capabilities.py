"""What a family promises, its model has; and a family that nobody lists is planned for, trained and used."""

import json
from typing import ClassVar

import pytest
import torch

import weft.models
from conformance.family_checks import a_model_is_what_its_config_promises
from fixtures.families import Case, find_heads
from weft.blocks import ParallelLayer, PreNorm
from weft.errors import ConfigError, UnsupportedError
from weft.models import (
    CausalLM,
    ClassifiesText,
    DecoderTransformer,
    GPTConfig,
    ModelConfig,
    SizePreset,
    Sizing,
    default_for,
    families_for,
    preset,
)
from weft.models.capabilities import DOES
from weft.tasks.task import find_task

FAMILIES = {kind: cls for kind, cls in ModelConfig.registry.items() if cls.__module__.startswith("weft.")}
LEARNED = [pytest.param(kind, can, id=f"{kind} {can.__name__}") for kind, cls in FAMILIES.items() for can in cls.learns]


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_model_is_what_its_config_promises(kind):
    promised = set()
    for head in find_heads(kind):
        config = Case(kind).config().override(head)
        a_model_is_what_its_config_promises(config)
        promised |= config.provides
    assert set(FAMILIES[kind].learns) <= promised, "what it can be trained for, some head provides"


@pytest.mark.parametrize(("kind", "can"), LEARNED)
def test_a_family_learns_with_the_head_that_it_names(kind, can):
    sizing = FAMILIES[kind].learns[can]
    config = Case(kind).config().override(sizing.head)
    assert can in config.provides
    budget = weft.models.Budget(1e12, image=28)
    assert config.override(sizing.choose(budget).model).override(sizing.pairs)


def test_a_promise_that_is_not_kept_is_found():
    class Empty(ModelConfig):
        provides = frozenset({CausalLM, ClassifiesText})

    assert not isinstance(torch.nn.Linear(2, 2), CausalLM)
    assert not isinstance(GPTConfig(vocab_size=9).build(), ClassifiesText)
    assert next(can for can in DOES if can in Empty.provides) is ClassifiesText


def test_every_capability_that_is_learned_has_one_default():
    for can in {can for cls in FAMILIES.values() for can in cls.learns}:
        assert default_for(can) in families_for(can)
    with pytest.raises(ConfigError, match="0 families are the default for int"):
        default_for(int)


def test_what_nobody_said_is_an_error():
    class Silent(ModelConfig, kind="silent"):
        pass

    try:
        with pytest.raises(UnsupportedError, match="does not say what it can do"):
            Silent().provides  # noqa: B018
    finally:
        del ModelConfig.registry["silent"]


# -- a family that nobody lists ---------------------------------------------------------------


@pytest.fixture
def cousin():
    """A relative of GPT, as a newcomer writes it: which sizes, which layers."""

    class CousinConfig(GPTConfig, kind="cousin"):
        learns: ClassVar = {CausalLM: Sizing([SizePreset({"width": 32, "depth": 1, "max_length": 32}, 0, 32, 4)])}
        presets: ClassVar = {"cousin-tiny": {"width": 16, "depth": 2, "max_length": 16}}

        def build(self):
            return Cousin(self)

    class Cousin(DecoderTransformer):
        def layer(self, number):
            config = self.config
            return ParallelLayer(
                attention=config.attention.build(config.width, qk=self.position.qk),
                attention_residual=PreNorm(config.norm.build(config.width)),
                feed_forward=config.feed_forward.build(config.width),
                feed_forward_residual=PreNorm(config.norm.build(config.width)),
            )

    yield CousinConfig
    del ModelConfig.registry["cousin"]


def test_a_new_family_is_planned_for_without_any_list(cousin):
    from weft.tasks.experiment import Experiment
    from weft.tasks.request import make_request

    assert preset("cousin-tiny")[0] == "cousin" and "cousin" in families_for(CausalLM)
    assert find_task("generate", "cousin") is find_task("generate")
    said = []
    for name, width in (("cousin", 32), ("cousin-tiny", 16)):
        request = make_request(["demo"], {"model": name, "steps": 3, "tokenizer": "characters"}, task="generate")
        model = Experiment.plan(request, said.append).config.model
        assert model.kind == "cousin" and model.width == width
    plan = next(event for event in said if event["event"] == "plan")
    assert plan["model"] == "cousin" and json.dumps(plan)
    request = make_request(["demo"], {"model": "cousin", "steps": 3}, task="classify")
    with pytest.raises(ConfigError, match=r"cousin is a cousin: not for classify"):
        Experiment.plan(request, said.append)


def test_a_new_family_writes(cousin):
    model = cousin(vocab_size=20, width=32, depth=2, max_length=16).build().eval()
    tokens = torch.randint(0, 20, (2, 9))
    with torch.no_grad():
        caches = model.new_caches()
        model.next_logits(tokens[:, :4], caches=caches)
        assert torch.allclose(model.next_logits(tokens[:, 4:], caches=caches), model(tokens)[:, -1], atol=1e-5)
        keep = torch.arange(9) < torch.tensor([[9], [5]])
        last = model.next_logits(tokens, keep=keep, caches=model.new_caches())
        assert torch.allclose(last[1], model(tokens[1:, :5])[0, -1], atol=1e-5)


def test_a_family_is_found_where_it_stands(tmp_path, monkeypatch):
    """A file and a folder with a converter, put beside the others."""
    (tmp_path / "plainest.py").write_text(
        "from weft.models.base import ModelConfig\n\n\nclass PlainestConfig(ModelConfig, kind='plainest'):\n    pass\n"
    )
    folder = tmp_path / "plainer"
    folder.mkdir()
    (folder / "__init__.py").write_text("LATER = ('compiled',)\n")
    (folder / "compiled.py").write_text("raise ImportError\n")
    (folder / "foreign.py").write_text(
        "from weft.models.converter import Converter\n\n\n"
        "class PlainerConverter(Converter, name='plainer', architecture='Plainer', prefix=''):\n    pass\n"
    )
    monkeypatch.setattr(weft.models, "__path__", [*weft.models.__path__, str(tmp_path)])
    try:
        weft.models.find_families([str(tmp_path)])
        assert "plainest" in ModelConfig.registry and "plainer" in weft.models.Converter.registry
    finally:
        ModelConfig.registry.pop("plainest", None)
        weft.models.Converter.registry.pop("plainer", None)
