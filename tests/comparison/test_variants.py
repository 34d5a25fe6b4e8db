"""Which runs a comparison has, and what they are called."""

import pytest

from weft.comparison.variants import make_variants, parse_values, parse_vary
from weft.errors import ConfigError


def names(models=(), **vary):
    return [variant.name for variant in make_variants(models, {k.replace("__", "."): v for k, v in vary.items()})]


def test_values_are_separated_by_commas_or_by_semicolons():
    assert parse_vary(["a.b=x, y", "c=1,2;3", "d=x,y;"]) == {"a.b": ["x", "y"], "c": ["1,2", "3"], "d": ["x,y"]}
    assert parse_vary(["a=b=c,d"]) == {"a": ["b=c", "d"]}


@pytest.mark.parametrize("word", ["a", "=x", "a=", "a=x,,y", "a=x;;y", "a=,"])
def test_words_that_say_nothing(word):
    with pytest.raises(ConfigError, match="--vary"):
        parse_vary([word])


def test_a_key_has_one_place():
    with pytest.raises(ConfigError, match="given twice"):
        parse_vary(["a=x,y", "a=z"])


def test_every_combination_in_the_order_given():
    found = make_variants(["gpt", "gpt2"], {"model.attention.kind": ["softmax", "hard"], "model.width": ["64", "128"]})
    assert [v.name for v in found[:3]] == ["gpt-softmax-width-64", "gpt-softmax-width-128", "gpt-hard-width-64"]
    assert len(found) == 8 and len({v.name for v in found}) == 8
    assert found[-1].model == "gpt2"
    assert found[-1].changes == {"model.attention.kind": "hard", "model.width": "128"}
    assert found[-1].settings == {"model": "gpt2", **found[-1].changes}


def test_words_stand_for_themselves_and_numbers_need_their_setting():
    assert names(x__kind=["softmax", "hard"]) == ["softmax", "hard"]
    assert names(x__rate=[1e-3, 0.01]) == ["rate-0.001", "rate-0.01"]
    assert names(x__tied=[True, False]) == ["tied-true", "tied-false"]
    assert names(x__clip=[None, 1]) == ["clip-none", "clip-1"]
    assert names(x__kinds=["a,b", ["a", "c"]]) == ["a+b", "a+c"]


def test_names_are_fit_for_folders():
    assert names(x__y=["../up", "a b/c", "a:b?c", ".hidden"]) == ["y-..-up", "a-b-c", "a-b-c-2", "y-.hidden"]
    assert names(x__y=["case", "Case"]) == ["case", "Case-2"]  # one folder on some disks
    tables = ['{kind="local", window=64}', "{window = 3}", {"kind": "local", "window": 64}]
    assert names(x__y=tables) == ["local-window-64", "window-3", "local-window-64-2"]
    assert max(map(len, names(x__y=["l" * 300, "m" * 300]))) <= 80


def test_one_run_is_nothing_to_compare():
    for models, vary in ((["gpt"], {}), ([], {"a": ["x"]}), (["gpt"], {"a": ["x"], "b": [1]})):
        with pytest.raises(ConfigError, match="one run is nothing to compare"):
            make_variants(models, vary)
    assert len(make_variants(["gpt"], {"a": ["x", "y"], "b": [1]})) == 2  # one value holds for all


@pytest.mark.parametrize(
    ("models", "vary", "told"),
    [
        ([], {}, "nothing to compare"),
        (["gpt", "gpt"], {}, "gpt is given twice"),
        ([], {"a": ["x", "x"]}, "x is given twice"),
        ([], {"a": [1, "1"]}, "1 is given twice"),
        ([], {"a": []}, "no values"),
        ([], {"a": "xyz"}, "a list of values"),
        ([], {"data.validation_share": [0.1, 0.2]}, "the same data and split"),
        ([], {"data.train": ["a", "b"]}, "the same data and split"),
        ([], {"a": list(range(300))}, "300 combinations"),
    ],
)
def test_what_cannot_be_compared(models, vary, told):
    with pytest.raises(ConfigError, match=told):
        make_variants(models, vary)


def test_a_list_of_models():
    assert parse_values("gpt, gpt2", "--models") == ["gpt", "gpt2"]
    with pytest.raises(ConfigError, match="--models: a value is empty"):
        parse_values("gpt,", "--models") and parse_values("", "--models")
