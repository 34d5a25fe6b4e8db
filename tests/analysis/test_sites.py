"""What models say of their attentions, layers and places, against what they do; and a family that came from outside."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from fixtures.families import ATTENDING, CASES, FAMILIES, Case, run_model
from weft.analysis import attention_maps, capture, softmax_health
from weft.analysis.model_reach import model_reach, recorded
from weft.blocks import CAUSAL, AttentionConfig, Layers, Mask, PreNorm, TransformerLayer
from weft.blocks.attention.base import Grid
from weft.blocks.sight import Convolves, Looks
from weft.config import Size
from weft.errors import ConfigError, UnsupportedError
from weft.models import LanguageConfig, ModelConfig, PackedTexts, PairModel
from weft.models.base import Model
from weft.models.images import ImageConfig, ImageModel
from weft.models.sites import AttentionSite, Place, attentions
from weft.tasks.attention_view.view import view_of
from weft.text import TokenizerConfig

SIZES = [(12, 12), (13, 18), (22, 11)]
IMAGES = [family for family in FAMILIES if issubclass(ModelConfig.registry[family], ImageConfig)]


# -- attentions -------------------------------------------------------------------------------


def lengths_of(model, inputs):
    """How many rows each of the things has that an attention may be said to look at."""
    if isinstance(model, ImageModel):
        return {}
    if isinstance(model, PairModel):
        source, target = (one.shape[1] for one in inputs)
        return {"source": source, "written": target, "next": target, "source and written": source + target}
    if isinstance(inputs, PackedTexts):
        return {"text": inputs.tokens.shape[1]}
    return {"text": (inputs[0] if isinstance(inputs, tuple) else inputs).shape[1]}


def check_sites(model, inputs, options, sites):
    """All are there, once, and tables have the rows and columns that are claimed."""
    assert sorted(site.name for site in sites) == sorted(attentions(model))
    assert len({(site.place, site.name.rpartition(".")[2]) for site in sites}) == len(sites)
    lengths = lengths_of(model, inputs)
    grids = model.place_grids(*inputs.shape[2:]) if isinstance(model, ImageModel) else []
    with capture(model) as maps:
        run_model(model, inputs, options)
    for site in sites:
        found = maps[site.name]
        if found.mask.grid is not None and found.over == "tokens" and found.mask.grid != grids[site.grid]:
            continue  # windows that are filled up at the border
        for rows, count in ((site.asking, found.query.shape[2]), (site.answering, found.key.shape[2])):
            expected = grids[site.grid].places + site.class_token if rows == "places" else lengths[rows]
            assert count == expected, (site, count)
        assert site.reads_itself or not site.rollout


@pytest.mark.parametrize("name", CASES)
def test_every_family_says_what_its_maps_are(name):
    case = CASES[name]
    model = case.model()
    check_sites(model, *case.inputs(model), model.attention_sites())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_without_attention_says_that_it_has_none(family):
    config = Case(family).config()
    model = config.skeleton() if config.learned_in_steps else config.build()
    assert bool(model.attention_sites()) == (family in ATTENDING)


def test_a_wrong_claim_is_found():
    """Negative control: a table of the source is taken for one of what is written; one is forgotten; one is twice."""
    case = Case("transformer")
    model = case.model()
    sites = model.attention_sites()
    wrong = AttentionSite(sites[0].name, sites[0].place, "written", "written")
    for claimed in ([wrong, *sites[1:]], sites[1:], [*sites[1:], sites[1]]):
        with pytest.raises(AssertionError):
            check_sites(model, *case.inputs(model), claimed)


def test_how_people_count():
    def told(family, **changes):
        return {site.name: site.place for site in Case(family, changes).config().skeleton().attention_sites()}

    assert told("gpt")["layers.1.attention"] == Place("", 2)
    assert told("transformer")["encoder.layers.0.attention"] == Place("encoder", 1)
    assert told("transformer")["decoder.layers.1.attention"] == Place("decoder", 2)
    assert told("t5")["decoder.layers.1.cross_attention"] == Place("decoder → encoder", 2)
    assert told("bahdanau") == {"decoder.layers.0.attention": Place("decoder → encoder", 1)}
    assert told("davit")["stages.1.layers.0.channel.attention"] == Place("stage 2, channels", 1)
    assert told("davit")["stages.0.layers.0.spatial.attention"] == Place("stage 1, windows", 1)


# -- places of an image -----------------------------------------------------------------------


def stages_of(model, rows, columns):
    """The grids on which its layers stood while it ran, each once; of a ViT, as many places as it gave states."""
    image = torch.randn(1, model.config.channels, rows, columns)
    stacks = model.reach_stacks()
    ran = recorded(model, lambda model, _: model(image), stacks, 0)
    if not ran.grids:
        return [ran.inputs[0].shape[1] - (getattr(model, "class_token", None) is not None)]
    return [grid.places for grid in dict.fromkeys(ran.grids_after[layer.module] for layer in stacks[0].layers)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", IMAGES)
def test_places_are_where_the_model_says(family, size):
    model = Case(family).model()
    told = model.place_grids(*size)
    assert [grid.places for grid in told] == stages_of(model, *size)
    assert model.place_grids(size[1], size[0]) == [Grid(grid.columns, grid.rows) for grid in told]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", IMAGES)
def test_all_pixels_that_are_read_and_no_other(family, size):
    """The last row and column that are read change the states, and what lies beyond does not."""
    model = Case(family).model(torch.float64)
    pixels = torch.randn(1, model.config.channels, *size, dtype=torch.float64)
    rows, columns = model.pixels_read(*size)

    def changed(row, column):
        other = pixels.clone()
        other[:, :, row, column] += 1
        with torch.no_grad():
            return not torch.equal(model(other), model(pixels))

    assert changed(rows - 1, 0) and changed(0, columns - 1)
    assert rows == size[0] or not changed(rows, slice(None))
    assert columns == size[1] or not changed(slice(None), columns)


def test_a_model_that_does_not_say_is_refused():
    class Silent(ImageModel):
        pass

    for asked in (Silent(None).place_grids, Silent(None).pixels_read):
        with pytest.raises(UnsupportedError, match="Silent does not define"):
            asked(8, 8)


# -- convolutions that no family has ----------------------------------------------------------


class Convolution(nn.Module):
    def __init__(self, *convolutions):
        super().__init__()
        self.convolutions = nn.ModuleList(convolutions)

    def sees(self):
        return tuple(Convolves(one) for one in self.convolutions)

    def forward(self, x):
        for one in self.convolutions:
            x = one(x)
        return x


class Plain(Model):
    """Layers in a list, and no word about them."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def image(size=13):
    return lambda model, seed: model(
        torch.randn(1, 2, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    )


def test_a_convolution_with_gaps_and_one_that_steps_between_others():
    gaps = nn.Conv2d(2, 2, 3, padding=2, dilation=2)
    before, after = nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, (1, 3), padding=(0, 1))
    model = Plain(Convolution(gaps), Convolution(before, nn.Conv2d(2, 2, 3, stride=2, padding=1), after))
    found = model_reach(model, image(), 6 * 13 + 6)
    assert found.agrees and found.counts[0] == 9
    assert not found.predicted[0][6 * 13 + 7] and found.predicted[0][6 * 13 + 8], "a gap is not seen"


def test_what_cannot_be_followed_is_refused():
    twice = Convolution(nn.Conv2d(2, 2, 3, stride=2, padding=1), nn.Conv2d(2, 2, 3, stride=2, padding=1))
    for layer, told in (
        (twice, "2 strides"),
        (Convolution(nn.Conv2d(2, 2, 3)), "0 strides"),
        (Convolution(nn.Conv2d(2, 2, 3, stride=2, padding=1), nn.Conv2d(2, 2, 3)), "1 strides"),
        (Convolution(nn.Conv2d(2, 2, 3, padding="same")), "zeros around"),
        (Convolution(nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular")), "zeros around"),
        (nn.Conv2d(2, 2, 3, padding=1), "the reach of a Conv2d"),
    ):
        with pytest.raises(UnsupportedError, match="the reach of") as said:
            model_reach(Plain(layer), image(), 0)
        assert told in str(said.value)


# -- a family from outside --------------------------------------------------------------------


class ParallelLayer(TransformerLayer):
    """Attention and feed-forward side by side: x + attention(norm(x)) + feed_forward(norm(x))."""

    def forward(self, x, *, mask=CAUSAL, memory=None, memory_mask=None, cache=None):
        read = self.attention_residual(x, lambda h: self.attention(h, mask=mask, cache=cache))
        return read + self.feed_forward_residual(x, self.feed_forward) - x


@pytest.fixture
def parallel():
    """The settings of a causal decoder with parallel branches, on the registry while a test runs."""

    class ParallelConfig(LanguageConfig, kind="parallel"):
        vocab_size: Size
        width: Size = 16
        depth: Size = 2
        attention: AttentionConfig = AttentionConfig.from_config({"kind": "local", "window": 3, "heads": 2})

        @property
        def context(self):
            return 32

        def build(self):
            return Parallel(self)

    yield ParallelConfig(vocab_size=40)
    del ModelConfig.registry["parallel"]


class Parallel(Model):
    def __init__(self, config):
        super().__init__()
        self.config, width = config, config.width
        self.tokens = nn.Embedding(config.vocab_size, width)
        self.layers = Layers(
            ParallelLayer(
                attention=config.attention.for_layer(number).build(width),
                attention_residual=PreNorm(nn.LayerNorm(width)),
                feed_forward=nn.Linear(width, width),
                feed_forward_residual=PreNorm(nn.LayerNorm(width)),
            )
            for number in range(config.depth)
        )
        self.head = nn.Linear(width, config.vocab_size)

    @property
    def context(self):
        return self.config.context

    def new_caches(self, capacity=None):
        return self.layers.new_caches(capacity)

    def next_logits(self, tokens, *, keep=None, caches):
        return self.head(self.layers(self.tokens(tokens), mask=Mask(causal=True, keep=keep), caches=caches)[:, -1])

    def forward(self, tokens):
        return self.head(self.layers(self.tokens(tokens), mask=CAUSAL))


def tokens(model, seed):
    return model(torch.randint(40, (1, 12), generator=torch.Generator().manual_seed(seed)))


def test_a_family_from_outside_is_looked_into(parallel):
    model = ModelConfig.from_config({"kind": "parallel", "vocab_size": 40}).build()
    found = model_reach(model, tokens, None)
    assert found.agrees and found.position == 11 and found.counts == [3, 5] and found.layers == ("1", "2")
    with capture(model, "layers.*.attention") as maps:
        tokens(model, 0)
    assert [layer.place for layer in softmax_health([maps])] == [Place("", 1), Place("", 2)]
    weights = attention_maps(model, torch.randint(40, (1, 12)))["layers.1.attention"]
    assert weights.shape == (1, 2, 12, 12) and np.allclose(weights.sum(-1), 1, atol=1e-6)


def test_a_leak_in_a_family_from_outside_is_found(parallel):
    model = parallel.build()
    model.layers[0].register_forward_hook(lambda _, given, output: output + given[0].roll(-1, 1))
    assert not model_reach(model, tokens, 5).agrees


def test_the_view_of_a_family_from_outside(parallel):
    tokenizer = TokenizerConfig.from_config("characters").train(["The cat sat on a mat. " * 4])
    config = parallel.override({"vocab_size": tokenizer.vocab_size})
    given = SimpleNamespace(
        model_config=config, model=config.build(), tokenizer=tokenizer, context=32, device=torch.device("cpu")
    )
    found = view_of(given, "The cat sat")
    assert found.family == "parallel" and list(found.parts) == ["layers"] and list(found.rollouts) == ["layers"]
    assert found.maps[1].asking.labels == tuple("The␣cat␣sat") and "what follows" in found.facts
    assert (np.triu(found.rollouts["layers"], 1) == 0).all() and found.rollouts["layers"][-1, 5] == 0, "out of sight"


def test_what_a_family_from_outside_does_not_say_is_named(parallel):
    model = parallel.build()
    model.beside = AttentionConfig.from_config({"kind": "softmax", "heads": 2}).build(16)
    with pytest.raises(UnsupportedError, match="Parallel does not say what beside looks at"):
        model.attention_sites()
    with capture(model) as maps:  # the weights are there all the same
        tokens(model, 0)
    assert maps["layers.0.attention"].weights.shape == (1, 2, 12, 12)
    with pytest.raises(ConfigError, match=r"the model of layers\.0\.attention does not say where it stands"):
        softmax_health([maps])
    model.layers[0].sees = lambda: (Looks("elsewhere"),)
    with pytest.raises(ConfigError, match=r"no attention 'layers\.0\.elsewhere'"):
        model_reach(model, tokens, 5)
