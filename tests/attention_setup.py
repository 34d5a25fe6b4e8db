"""A small model of every family that attends, and what it reads: the families come from the menu."""

import inspect
from dataclasses import dataclass, field, fields

import torch

from weft.analysis.capturing import attentions
from weft.blocks import AttentionConfig, PositionConfig
from weft.models import ModelConfig, PairModel, TextRow
from weft.models.pictures import PictureModel

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
KINDS = {  # small enough that something is out of sight in a text of 11 tokens
    "local": {"window": 3},
    "dilated": {"window": 2, "dilation": 2},
    "strided": {"stride": 3},
    "global": {"tokens": 2},
    "window": {"window": 4},
    "union": {"of": ("local", {"kind": "global", "tokens": 1})},
    "alternating": {"of": ("softmax", {"kind": "local", "window": 3})},
    "random-features": {"features": 12},
    "hierarchy": {"summaries": 3},
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
        entry = ModelConfig.menu[self.family]
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
        if isinstance(model, PictureModel):
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
    """What a person gets: logits, or states where a model gives these."""
    with torch.no_grad():
        if isinstance(inputs, TextRow):
            return inputs.states(model)
        found = model(*(inputs if isinstance(inputs, tuple) else (inputs,)), **options)
        return model.class_logits(found) if getattr(model, "classes", None) is not None else found


def attends(family):
    try:
        return bool(attentions(Case(family).config().skeleton()))
    except Exception:  # counted models have no modules
        return False


FAMILIES = list(ModelConfig.menu)
ATTENDING = [family for family in FAMILIES if attends(family)]
CASES = {family: Case(family) for family in ATTENDING}
for _family in ATTENDING:
    if "keep" in inspect.signature(Case(_family).model().forward).parameters:
        CASES[f"{_family} with padding"] = Case(_family, padded=True)
CASES |= {f"gpt positions {kind}": Case("gpt", {"position.kind": kind}) for kind in PositionConfig.menu}
CASES |= {
    f"{family} {kind}": Case(
        family, {"attention.kind": kind} | {f"attention.{name}": value for name, value in KINDS.get(kind, {}).items()}
    )
    for family, kinds in (
        ("gpt", [kind for kind in AttentionConfig.menu if kind not in ("channel", "hierarchy")]),
        ("bert", list(AttentionConfig.menu)),
        ("vit", list(AttentionConfig.menu)),
    )
    for kind in kinds
}
CASES |= {
    "gpt shared keys": Case("gpt", {"attention.heads": 4, "attention.kv_heads": 2}, padded=True),
    "gpt temperature": Case("gpt", {"attention.beta": 2.0}),
    "bert pair": Case("bert", pair=True),
    "bert row of texts": Case("bert", row=True),
    "bert row of pairs, biased": Case("bert", {"position.kind": "alibi"}, row=True, pair=True),
    "bert row, channels": Case("bert", {"attention.kind": "channel"}, row=True),
    "bert channels, padded": Case("bert", {"attention.kind": "channel"}, padded=True),
    "transformer same": Case("transformer", {"memory": "same"}, padded=True),
    "transformer joint": Case("transformer", {"memory": "joint"}),
    "transformer joint with padding": Case("transformer", {"memory": "joint"}, padded=True),
    "transformer paper": Case("transformer", {"norm_first": False, "qk_norm": False, "position.kind": "sinusoidal"}),
    "vit class token": Case("vit", {"pool": "class"}),
    "davit border": Case("davit", {"window": 4}),
}
