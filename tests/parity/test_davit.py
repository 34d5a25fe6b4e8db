"""DaViT against timm's own code, tiny and random: attention, stages, logits, gradients, folders, numbers of weights."""

import pytest
import torch

from fixtures.timm_models import import_timm_or_skip, make_timm_model, write_timm_folder
from weft.blocks.attention import ChannelConfig
from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.errors import UnsupportedError, WeightsError
from weft.models.davit.converters import DaViTConverter
from weft.models.davit.model import PRESETS, DaViTConfig

import_timm_or_skip()
SIZES = {"embed_dims": (8, 16, 24, 32), "depths": (1, 2, 1, 1), "num_heads": (1, 2, 3, 4), "num_classes": 5}
CASES = {
    "davit_tiny": SIZES,
    "davit_base": SIZES | {"window_size": 3, "in_chans": 1, "norm_eps": 1e-2, "num_classes": 0},
}


def both(tmp_path, name="davit_tiny", dtype=torch.float64):
    theirs = make_timm_model(name, **CASES[name])
    folder = HuggingFaceFolder(write_timm_folder(tmp_path / name, theirs, name, CASES[name]))
    ours = folder.config.with_weights(folder.read_weights()).eval()
    return theirs.to(dtype), ours.to(dtype)


def gap(ours, theirs):
    assert ours.shape == theirs.shape
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


@pytest.mark.parametrize("size", [(45, 61), (64, 64), (33, 7), (1, 1), (100, 30)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_stages_logits_and_gradients_are_timms(name, size, tmp_path):
    theirs, ours = both(tmp_path, name)
    pixels = torch.randn(2, ours.config.channels, *size, dtype=torch.float64, requires_grad=True)
    _, stages = theirs.forward_intermediates(pixels)
    found = list(ours.pyramid(pixels))
    assert len(found) == len(stages) == 4
    for (states, grid), stage in zip(found, stages, strict=True):
        assert (grid.rows, grid.columns) == stage.shape[2:]
        assert gap(states, stage.flatten(2).transpose(1, 2)) < 1e-12
    result = ours(pixels) if ours.classes is not None else ours.pooled(ours(pixels))
    expected = theirs(pixels)
    assert gap(result, expected) < 1e-12
    weights = torch.randn_like(expected)
    gradients = [torch.autograd.grad((logits * weights).sum(), pixels)[0] for logits in (result, expected)]
    assert gap(*gradients) < 1e-9


def test_float32_is_as_near_as_float32_can_be(tmp_path):
    theirs, ours = both(tmp_path, dtype=torch.float32)
    pixels = torch.randn(2, 3, 45, 61)
    assert gap(ours(pixels), theirs(pixels)) < 1e-5


def test_channel_attention_is_timms():
    from timm.models.davit import ChannelAttention

    theirs = ChannelAttention(24, num_heads=3, qkv_bias=True).double()
    ours = ChannelConfig(heads=3).build(24).double()
    for name, parts in (("weight", theirs.qkv.weight.chunk(3)), ("bias", theirs.qkv.bias.chunk(3))):
        for map_, part in zip((ours.value, ours.query, ours.key), parts, strict=True):
            setattr(map_, name, torch.nn.Parameter(part.detach().clone()))
    ours.output.load_state_dict(theirs.proj.state_dict())
    for tokens in (1, 7, 50):
        x = torch.randn(2, tokens, 24, dtype=torch.float64)
        assert gap(ours(x), theirs(x)) < 1e-12
    ours.query, ours.key = ours.key, ours.query  # a negative control
    assert gap(ours(x), theirs(x)) > 1e-3


def test_our_own_windows_would_be_another_model(tmp_path):
    """A negative control: timm sees the zeros around the image, and window attention by itself does not."""
    theirs, ours = both(tmp_path)
    pixels = torch.randn(1, 3, 45, 61, dtype=torch.float64)
    for stage in ours.stages:
        for layer in stage.layers:
            layer.spatial.window = 1
    assert gap(ours(pixels), theirs(pixels)) > 1e-3


@pytest.mark.parametrize(("name", "millions"), [("tiny", 28.4), ("small", 49.7), ("base", 88.0)])
def test_named_sizes_have_timms_numbers_of_weights(name, millions):
    timm = import_timm_or_skip()
    with torch.device("meta"):
        theirs = timm.create_model(f"davit_{name}")
    config = DaViTConfig(**PRESETS[f"davit-{name}"])
    ours = sum(torch.Size(shape).numel() for shape in config.shapes().values())
    assert ours == sum(p.numel() for p in theirs.parameters())
    assert round(ours / 1e6, 1) == millions
    read = DaViTConverter().table(config).read({n: p.to("meta") for n, p in theirs.named_parameters()}, config.shapes())
    assert set(read) == set(config.shapes())


@pytest.mark.slow
def test_every_architecture_that_is_read_is_timms():
    timm = import_timm_or_skip()
    for name, fields in DaViTConverter.architectures.items():
        with torch.device("meta"):
            theirs = timm.create_model(name)
        shapes = DaViTConfig(**fields).shapes().values()
        assert sum(torch.Size(s).numel() for s in shapes) == sum(p.numel() for p in theirs.parameters())


def test_the_table_is_reversible_and_total(tmp_path):
    theirs, ours = both(tmp_path)
    table, state = DaViTConverter().table(ours.config), dict(theirs.state_dict())
    written = table.write(ours.state_dict())
    assert set(written) == set(state)
    assert all(torch.equal(written[name], tensor) for name, tensor in state.items())
    with pytest.raises(WeightsError, match=r"stages.0.blocks.0.0.more"):
        table.read(state | {"stages.0.blocks.0.0.more": torch.ones(1)}, ours.config.shapes())
    del state["stages.1.blocks.1.1.attn.qkv.bias"]
    with pytest.raises(WeightsError, match=r"nothing in the file fills 'stages.1.layers.1.channel.attention"):
        table.read(state, ours.config.shapes())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_heads": (1, 2, 3, 8)}, "heads of the same width"),
        ({"num_heads": (1, 2, 3)}, "heads of the same width"),
        ({"channel_attn_v2": True}, "channel_attn_v2 = True"),
        ({"down_kernel_size": 3}, "down_kernel_size = 3"),
        ({"cpe_act": True}, "cpe_act = True"),
    ],
)
def test_what_we_cannot_compute_is_refused(arguments, words, tmp_path):
    theirs = make_timm_model("davit_tiny", **SIZES)
    folder = write_timm_folder(tmp_path / "folder", theirs, "davit_tiny", SIZES | arguments)
    with pytest.raises(UnsupportedError, match=words):
        _ = HuggingFaceFolder(folder).config
    folder = write_timm_folder(tmp_path / "florence", theirs, "davit_base_fl", SIZES)
    with pytest.raises(UnsupportedError, match="davit_base_fl"):
        _ = HuggingFaceFolder(folder).config
