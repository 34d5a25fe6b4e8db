"""A small model of every family that attends, and what it reads: the families come from the registry."""

import functools
import inspect
from dataclasses import dataclass, field, fields

import torch

from weft.analysis.maps import looked_at
from weft.analysis.model_reach import model_reach
from weft.blocks import Attention, AttentionConfig, PositionConfig
from weft.blocks.roles import weight_roles
from weft.cost.parts import parameters_by_part
from weft.models import ModelConfig, PairModel, PairModelConfig, TextRow
from weft.models.capabilities import DOES
from weft.models.images import ImageConfig, ImageModel
from weft.models.sites import attentions
from weft.tasks.task import find_use

TEXT = {"vocab_size": 20, "max_length": 64}
SIZES = {  # of whatever a family has
    **TEXT,
    "width": 16,
    "depth": 2,
    "attention.heads": 2,
    "widths": (16, 32),
    "depths": (1, 1),
    "strides": (2, 2),
    "head_width": 8,
    "window": 3,
    "image_size": 12,
    "patch": 4,
    "channels": 3,
}


@dataclass
class Case:
    """A model's settings and how they differ from its family's own; `row`: several texts in one row."""

    family: str
    changes: dict[str, object] = field(default_factory=dict)
    padded: bool = False
    row: bool = False
    pair: bool = False

    def config(self):
        entry = ModelConfig.registry[self.family]
        own = {f.name for f in fields(entry)}
        required = {"vocab_size": 20} if "vocab_size" in own else {}
        sizes = {name: value for name, value in SIZES.items() if name.partition(".")[0] in own}
        if self.family in ("cbow", "skipgram"):
            sizes = {}
        return entry(**required).override(sizes).override(self.changes)

    def model(self, dtype=torch.float32):
        """With weights at random everywhere, biases too: a map that begins at zero would hide the rest."""
        torch.manual_seed(1)
        model = self.config().build()
        if not hasattr(model, "parameters"):
            return model
        for name, p in model.named_parameters():
            if p.dim() > 1 or name.endswith("bias"):
                torch.nn.init.normal_(p, std=0.3)
        return model.to(dtype).eval()

    def inputs(self, model):
        """What it reads, and the options of the call."""
        chance = torch.Generator().manual_seed(2)
        if isinstance(model, ImageModel):
            dtype = next(model.parameters()).dtype
            return torch.randn(2, 3, 12, 12, generator=chance, dtype=torch.float64).to(dtype), {}
        first, second = (torch.randint(1, 20, (2, n), generator=chance) for n in (11, 7))
        keep = {name: torch.arange(n) < torch.tensor([[n], [n - 3]]) for name, n in (("first", 11), ("second", 7))}
        if isinstance(model, PairModel):
            options = {"source_keep": keep["first"], "keep": keep["second"]} if self.padded else {}
            return (first, second), options
        if self.row:
            lengths = (3, 5, 5, 2)
            texts = [torch.randint(1, 20, (n,), generator=chance) for n in lengths]
            return TextRow.of(texts, [torch.arange(n) // 2 % 2 for n in lengths] if self.pair else None), {}
        options = {"keep": keep["first"]} if self.padded else {}
        return ((first, torch.arange(11).expand(2, 11) // 6) if self.pair else first), options


def run(model, inputs, options):
    """What a person gets: logits, or states of a trunk and of texts in one row."""
    with torch.no_grad():
        if isinstance(inputs, TextRow):
            return inputs.states(model)
        return model(*(inputs if isinstance(inputs, tuple) else (inputs,)), **options)


def heads_of(kind):
    """The heads that a family can have, as changes of its settings."""
    entry = {f.name: f for f in fields(ModelConfig.registry[kind])}.get("head")
    if entry is None:
        return [{}]
    base = next((cls for cls in type(entry.default).__mro__ if "registry" in vars(cls)), None)
    if base is None:
        return [{}, {"head.classes": 3}]
    needed = {"labels": ("O", "B-X", "I-X")}
    return [
        {"head": {"kind": head} | {f.name: needed[f.name] for f in fields(cls) if f.default is f.default_factory}}
        for head, cls in base.registry.items()
    ]


def drawn(model):
    """The model with weights that are all drawn: at the start, branches may give zero."""
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(std=0.3 if p.dim() > 1 else 0.1)
    return model


# -- checks of several suites -----------------------------------------------------------------


def check_promises(config):
    """A model has what its config promises."""
    model = config.build()
    for can in config.provides:
        assert isinstance(model, can), f"{config} promises {can.__name__}"
    assert config.mostly in DOES and find_use(config)[1].first


def check_parameter_groups(model):
    """Every parameter is in one group, and has a part."""
    groups = model.parameter_groups()
    assert list(groups) == ["embeddings", "matrices", "head", "vectors"]
    grouped = [p for members in groups.values() for p in members.values()]
    assert len(grouped) == len(set(grouped)) == len(list(model.parameters()))
    assert all(p is model.get_parameter(name) for members in groups.values() for name, p in members.items())
    assert set(parameters_by_part(model)) <= {role.part for role in weight_roles(model).values()}


def check_layers(model):
    """Layers hold all matrices between input and head, each once."""
    sites = [site for stack in model.layers_in_order() for site in stack.layers]
    assert all(model.get_submodule(site.name) is site.module for site in sites)
    inside = [p for site in sites for module in (*site.before, site.module) for p in module.parameters()]
    assert len(inside) == len(set(inside)), "a weight in two layers"
    roles, matrices = weight_roles(model), model.parameter_groups()["matrices"]
    assert {name for name, p in matrices.items() if p not in set(inside)} == {
        name for name in matrices if roles[name].stands == "input"
    }
    names = [stack.name for stack in model.layers_in_order()]
    assert names in ([], [""], ["encoder", "decoder"])


def called(config, model, seed):
    """One call with random inputs."""
    chance = torch.Generator().manual_seed(seed)
    like = next(model.parameters())
    if isinstance(config, ImageConfig):
        return model(torch.randn(1, config.channels, 12, 12, generator=chance).to(like))
    lengths = (11, 7) if isinstance(config, PairModelConfig) else (11,)
    return model(*(torch.randint(1, 20, (1, n), generator=chance).to(like.device) for n in lengths))


def check_reach(config, model):
    """What is said of its layers, with and without numbers, is what gradients find."""
    call = functools.partial(called, config)
    for part in (None, "encoder") if isinstance(config, PairModelConfig) else (None,):
        for position in (0, 4, -1):
            found = model_reach(model, call, position, part=part)
            assert found.agrees, found.predicted.astype(int) - found.measured
            without = model_reach(config.skeleton(), call, position, part=part, measure=False)
            assert (without.predicted == found.predicted).all() and without.measured is None
            assert without.grid == found.grid and without.layers == found.layers


def outputs_of(model, inputs, options):
    """What each attention gave, by a plain run."""
    found = {}
    modules = attentions(model)
    hooks = [
        module.register_forward_hook(lambda _, __, output, name=name: found.__setitem__(name, output))
        for name, module in modules.items()
    ]
    try:
        run(model, inputs, options)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def rebuilt(module, seen):
    """The output that these weights and values make."""
    if not isinstance(module, Attention):  # additive attention gives the values' average itself
        return seen.received[:, 0]
    return module.output(seen.received.transpose(1, 2).flatten(2))


def gap(ours, theirs):
    return (ours - theirs).abs().max().item() / max(1.0, theirs.abs().max().item())


def check_maps(model, inputs, options, rounding=1e-12):
    """Weights times values are each attention's own output."""
    theirs = outputs_of(model, inputs, options)
    maps = looked_at(model, inputs, **options)
    assert set(maps) == set(theirs) == set(attentions(model))
    for layer, seen in maps.items():
        assert theirs[layer].abs().max() > 0.01, layer  # there is something to compare
        with torch.no_grad():
            assert gap(rebuilt(attentions(model)[layer], seen), theirs[layer]) <= rounding, layer


def attends(family):
    try:
        return bool(attentions(Case(family).config().skeleton()))
    except Exception:  # counted models have no modules
        return False


FAMILIES = list(ModelConfig.registry)
ATTENDING = [family for family in FAMILIES if attends(family)]
CASES = {family: Case(family) for family in ATTENDING}
for _family in ATTENDING:
    if "keep" in inspect.signature(Case(_family).model().forward).parameters:
        CASES[f"{_family} with padding"] = Case(_family, padded=True)
CASES |= {f"gpt positions {kind}": Case("gpt", {"position.kind": kind}) for kind in PositionConfig.registry}
CASES |= {
    f"{family} {kind}": Case(
        family, {"attention.kind": kind} | {f"attention.{name}": value for name, value in entry.small_fields.items()}
    )
    for family in ("gpt", "bert", "vit")
    for kind, entry in AttentionConfig.registry.items()
    if family != "gpt" or entry().writes
}
CASES |= {
    "gpt shared keys": Case("gpt", {"attention.heads": 4, "attention.kv_heads": 2}, padded=True),
    "gpt temperature": Case("gpt", {"attention.beta": 2.0}),
    "bert pair": Case("bert", pair=True),
    "bert row of texts": Case("bert", row=True),
    "bert row of pairs, biased": Case("bert", {"position.kind": "alibi"}, row=True, pair=True),
    "bert row, channels": Case("bert", {"attention.kind": "channel"}, row=True),
    "bert channels, padded": Case("bert", {"attention.kind": "channel", "attention.bias": True}, padded=True),
    "transformer same": Case("transformer", {"memory": "same"}, padded=True),
    "transformer joint": Case("transformer", {"memory": "joint"}),
    "transformer joint with padding": Case("transformer", {"memory": "joint"}, padded=True),
    "transformer paper": Case("transformer", {"norm_first": False, "qk_norm": False, "position.kind": "sinusoidal"}),
    "vit class token": Case("vit", {"pool": "class"}),
    "davit border": Case("davit", {"window": 4}),
}
