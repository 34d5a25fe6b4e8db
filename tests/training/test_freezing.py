"""Which parameters do not learn, by family."""

import pytest

from weft.errors import ConfigError
from weft.models import ModelConfig
from weft.training.freezing import freeze

SIZES = {
    "gpt": {"width": 8, "depth": 3, "attention.heads": 2},
    "bert": {"width": 8, "depth": 3, "attention.heads": 2},
    "vit": {"width": 8, "depth": 3, "attention.heads": 2, "stem": (4,), "pool": "class", "head.classes": 2},
    "convnext": {"widths": (8, 12), "depths": (1, 2), "head.classes": 2},
    "davit": {"widths": (8, 16), "depths": (1, 2), "head_width": 4, "head.classes": 2},
    "resnet": {"widths": (8, 16), "depths": (1, 2), "groups": 4, "head.classes": 2},
}
FIRST = {  # the beginnings of the names of what makes vectors of the input
    "gpt": ("tokens.",),
    "bert": ("tokens.", "segments."),
    "vit": ("stem.", "patches.", "positions", "class_token"),
    "convnext": ("patches.", "patches_norm."),
    "davit": ("stem.",),
    "resnet": ("stem.",),
}
LAYERS = ("layers.0.", "layers.1.", "layers.2.")
STAGES = ("stages.0.", ("stages.1.halving.", "stages.1.shrink.", "stages.1.layers.0."), "stages.1.layers.1.")


def frozen_in(family, what):
    """Which parameters are frozen, and all of them."""
    words = {"vocab_size": 9} if family in ("gpt", "bert") else {}
    model = ModelConfig.from_config({"kind": family, **words}).override(SIZES[family]).build()
    freeze(model, what)
    every = dict(model.named_parameters())
    return {name for name, p in every.items() if not p.requires_grad}, set(every)


@pytest.mark.parametrize("family", SIZES)
def test_what_is_frozen(family):
    layers = LAYERS if family in ("gpt", "bert", "vit") else STAGES
    for count in range(4):
        found, every = frozen_in(family, count or "embeddings")
        expected = {name for name in every if name.startswith(FIRST[family])}
        expected |= {name for name in every for layer in layers[:count] if name.startswith(layer)}
        assert found == expected, count
        assert any(name.startswith(FIRST[family][0]) for name in found)
    assert "norm.weight" not in found and (not any("classes" in name for name in found))
    with pytest.raises(ConfigError, match="at most 3"):
        frozen_in(family, 4)


def test_an_encoder_and_a_decoder_are_each_counted_from_the_first():
    sizes = {"width": 8, "depth": 1, "decoder_depth": 3, "attention.heads": 2, "position.kind": "learned"}
    model = ModelConfig.from_config({"kind": "transformer", "vocab_size": 9}).override(sizes).build()
    freeze(model, 2)
    first = ("tokens.", "encoder.position.", "decoder.position.")
    layers = ("encoder.layers.0.", "decoder.layers.0.", "decoder.layers.1.")
    for name, p in model.named_parameters():
        assert p.requires_grad != name.startswith((*first, *layers)), name
    with pytest.raises(ConfigError, match="at most 3"):
        freeze(model, 4)
    with pytest.raises(ConfigError, match="leaves nothing to learn"):
        freeze(model, 3)


@pytest.mark.parametrize("family", SIZES)
def test_nothing_is_frozen_unless_asked_for(family):
    assert not frozen_in(family, None)[0]
