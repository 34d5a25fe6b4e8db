"""Settings: checked, frozen, to and from dict, TOML and the command line, and they speak."""

import dataclasses
import json
import math
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.blocks import FeedForwardConfig, NormConfig
from weft.config import Amount, Choice, Config, Positive, Share, Size
from weft.errors import ConfigError


class ShapeConfig(Choice):
    """A registry for these tests."""


class Circle(ShapeConfig, kind="circle", aliases=("round",)):
    radius: float = 1.0
    colour: str = "red"


class Polygon(ShapeConfig, kind="polygon"):
    corners: Size = 3
    colour: str = "red"


class Image(Config):
    width: Size
    title: str = "untitled"
    dropout: Share = 0.0
    beta: Amount | None = None
    clip: Positive | None = 1.0
    size: Size | Literal["auto"] = "auto"
    pair: tuple[float, int] = (0.5, 1)
    layers: ShapeConfig | tuple[ShapeConfig, ...] | None = None
    level: Literal[1, 2, 4] = 1
    style: Literal["plain", "bold"] = "plain"
    visible: bool = True
    shape: ShapeConfig = Circle()
    sizes: tuple[int, ...] = (1, 2)
    more: tuple[ShapeConfig, ...] = ()

    def check(self):
        if self.width == 13:
            raise ConfigError("width = 13", expected="a luckier number")


def test_values_are_kept_and_fitted():
    image = Image(width=3, dropout=0, shape={"kind": "polygon", "corners": 5}, sizes=[4, 5], more=["round"])
    assert image.dropout == 0.0
    assert isinstance(image.dropout, float)
    assert image.shape == Polygon(corners=5)
    assert image.sizes == (4, 5)
    assert image.more == (Circle(),)


def test_configs_are_frozen_and_hashable():
    image = Image(width=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        image.width = 4
    assert hash(image) == hash(Image(width=3))


def test_repr_is_short():
    assert repr(Image(width=3, shape=Circle(radius=2))) == "Image(width=3, shape=Circle(radius=2.0))"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"widht": 3}, ["unknown field 'widht'", "did you mean 'width'?"]),
        ({}, ["needs 'width'"]),
        ({"width": "3"}, ["width = '3'", "a whole number"]),
        ({"width": 3.5}, ["width = 3.5", "a whole number"]),
        ({"width": True}, ["width = True", "a whole number"]),
        ({"width": 0}, ["width = 0", "from 1"]),
        ({"width": 10**12}, ["width = 1000000000000", "to 2.14748e+09"]),
        ({"width": 3, "dropout": 1.5}, ["dropout = 1.5", "from 0 to 1"]),
        ({"width": 3, "beta": -1}, ["beta = -1", "at least 0"]),
        ({"width": 3, "beta": math.nan}, ["beta = nan"]),
        ({"width": 3, "style": "blod"}, ["style = 'blod'", "one of plain, bold"]),
        ({"width": 3, "visible": 1}, ["visible = 1", "true or false"]),
        ({"width": 3, "shape": "cirlce"}, ["shape: unknown shape kind 'cirlce'", "did you mean 'circle'?"]),
        ({"width": 3, "shape": {"radius": 2}}, ["shape: no 'kind' given", "circle, polygon"]),
        ({"width": 3, "shape": {"kind": "circle", "raduis": 2}}, ["shape: unknown field 'raduis'", "'radius'"]),
        ({"width": 3, "shape": 7}, ["shape = 7"]),
        ({"width": 3, "sizes": "12"}, ["sizes = '12'", "a list"]),
        ({"width": 3, "sizes": [1, "x"]}, ["sizes[1] = 'x'"]),
        ({"width": 3, "title": None}, ["title = None", "text"]),
        ({"width": 13}, ["width = 13", "a luckier number"]),
        ({"width": 3, "clip": 0}, ["clip = 0.0", "above 0"]),
        ({"width": 3, "clip": 10**400}, ["clip = 1000", "a number"]),
        ({"width": 3, "size": 0}, ["size = 0", "from 1", "or one of auto"]),
        ({"width": 3, "pair": [1.0, 2, 3]}, ["pair", "a list of 2"]),
        ({"width": 3, "level": 3}, ["level = 3", "one of 1, 2, 4"]),
        ({"width": 3, "shape": {"kind": ["circle"]}}, ["shape: unknown shape kind"]),
    ],
)
def test_mistakes_are_named(fields, words):
    for make in (lambda: Image(**fields), lambda: Image.from_dict(fields)):
        with pytest.raises(ConfigError) as error:
            make()
        assert all(word in str(error.value) for word in words), str(error.value)
        assert len(str(error.value).splitlines()) <= 3
        assert error.value.exit_code == 2


images = st.builds(
    Image,
    width=st.integers(1, 1000).filter(lambda n: n != 13),
    title=st.text(st.characters(exclude_categories=["Cs"])),
    beta=st.none() | st.floats(0, allow_nan=False),
    shape=st.builds(Circle, radius=st.floats(allow_nan=False)) | st.builds(Polygon, corners=st.integers(1, 9)),
    sizes=st.lists(st.integers(-(2**60), 2**60)),
    more=st.lists(st.builds(Circle, colour=st.text(st.characters(exclude_categories=["Cs"])))),
)


@given(images)
def test_dict_json_and_toml_round_trip(image):
    assert Image.from_dict(image.to_dict()) == image
    assert Image.from_dict(json.loads(json.dumps(image.to_dict()))) == image
    assert Image.from_toml(image.to_toml()) == image


def test_toml_reads_as_a_person_writes_it():
    image = Image.from_toml('width = 8\nshape = "round"\n')
    assert image == Image(width=8)
    assert Image.from_toml('width = 8\n[shape]\nkind = "polygon"\ncorners = 4').shape == Polygon(corners=4)
    with pytest.raises(ConfigError, match="not valid TOML"):
        Image.from_toml("width = ")


def test_overrides_as_the_command_line_gives_them():
    image = Image(width=3)
    changed = image.override(
        {
            "width": "8",
            "dropout": "0.1",
            "beta": "none",
            "visible": "false",
            "sizes": "7,8",
            "shape.kind": "polygon",
            "shape.corners": "6",
        }
    )
    assert changed == Image(width=8, dropout=0.1, visible=False, sizes=(7, 8), shape=Polygon(corners=6))
    assert image.width == 3


def test_a_changed_kind_keeps_what_was_set_and_has_its_own_defaults():
    image = Image(width=3, shape=Circle(colour="blue"))
    assert image.override({"shape.kind": "polygon"}).shape == Polygon(colour="blue")
    assert NormConfig.from_config("layer").override({"kind": "rms"}) == NormConfig.from_config("rms")
    assert FeedForwardConfig.from_config("plain").override({"kind": "gated"}) == FeedForwardConfig.from_config("gated")


def test_overrides_that_need_their_type_to_be_read():
    image = Image(width=3)
    assert image.override({"level": "2"}).level == 2
    assert image.override({"size": "5"}).size == 5
    assert image.override({"size": "auto"}).size == "auto"
    assert image.override({"pair": "2,3"}).pair == (2.0, 3)
    assert image.override({"layers": "circle,polygon"}).layers == (Circle(), Polygon())
    assert image.override({"layers.kind": "polygon", "layers.corners": "5"}).layers == Polygon(corners=5)
    assert image.override({"shape": "polygon", "shape.corners": "7"}).shape == Polygon(corners=7)


def test_none_survives_toml_where_it_is_not_the_default():
    assert Image.from_toml(Image(width=3, clip=None).to_toml()).clip is None


def test_what_is_not_a_table_of_fields_is_refused():
    for wrong in ([1], None, {1: 2}):
        with pytest.raises(ConfigError):
            Image.from_dict(wrong)
        with pytest.raises(ConfigError):
            ShapeConfig.from_config(wrong)
    with pytest.raises(ConfigError, match="is a registry"):
        ShapeConfig()
    with pytest.raises(ConfigError, match=r"use \.from_config"):
        ShapeConfig(kind="circle")


def test_text_for_a_kind_alone():
    image = Image(width=3)
    assert image.override({"shape": "polygon"}).shape == Polygon()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"widht": "3"}, "did you mean 'width'"),
        ({"width": "three"}, "width = 'three'"),
        ({"shape.raduis": "3"}, "shape: unknown field 'raduis'"),
        ({"width.x": "3"}, "'width' has no fields"),
        ({"shape.kind": "sphere"}, "unknown shape kind"),
    ],
)
def test_wrong_overrides_are_named(changes, words):
    with pytest.raises(ConfigError, match=words):
        Image(width=3).override(changes)


def test_a_registry_understands_other_spellings_but_lists_each_kind_once():
    assert ShapeConfig.registry["round"] is Circle
    assert list(ShapeConfig.registry) == ["circle", "polygon"]
    assert ShapeConfig.from_config(Circle(radius=3)) == Circle(radius=3)
    with pytest.raises(ConfigError, match="expected kind 'circle'"):
        Circle.from_config("polygon")


def test_an_empty_list_can_be_typed():
    assert Image(width=8).override({"sizes": "3,4"}).sizes == (3, 4)
    assert Image(width=8).override({"sizes": ""}).sizes == ()
