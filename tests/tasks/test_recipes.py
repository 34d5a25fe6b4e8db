"""Recipes: each of ours is planned to the end, and options, `--set` and typos meet them as the page says."""

import json
import re
from pathlib import Path

import pytest

from fixtures.texts import make_text
from weft.errors import ConfigError, DataError
from weft.models import GPTConfig, ModelConfig, preset
from weft.tasks.experiment import Experiment
from weft.tasks.recipe import read_recipe
from weft.tasks.request import make_request
from weft.tasks.sources import DataConfig
from weft.tasks.task import find_task

RECIPES = sorted((Path(__file__).resolve().parents[2] / "recipes").glob("*.toml"))


def planned(request):
    """The plan of a dry run."""
    events = []
    request.dry_run = True
    Experiment.plan(request, events.append)
    return next(event for event in events if event["event"] == "plan")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text(make_text(5000))
    return tmp_path


def recipe(content, name="r.toml"):
    Path(name).write_text(content, encoding="utf-8")
    return name


def test_there_are_recipes():
    assert len(RECIPES) >= 3


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_our_recipes_can_be_planned(path, folder):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ") and any(str(path.name) in line for line in lines[:5]), "it says what it is for"
    request = make_request(["book.txt"], {"steps": 1, "threads": 1}, config=path)
    plan = planned(request)
    assert plan["steps"] == 1 and plan["parameters"] > 0
    settings = read_recipe(path).settings
    for name in ("width", "depth"):
        assert plan[name] == settings.get(f"model.{name}", plan[name])


def test_the_recipe_of_the_tutorial(folder):
    page = RECIPES[0].parents[1] / "docs" / "tutorials" / "train-on-your-own-text.md"
    (content,) = re.findall(r"^```toml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    plan = planned(make_request([], {"steps": 1}, config=recipe(content)))
    assert (plan["width"], plan["tokenizer"]) == (192, "characters")


def test_the_recipe_in_gpt2_style_has_the_parts_of_gpt2(folder):
    path = next(path for path in RECIPES if path.stem == "gpt2-style-small")
    request = make_request(["book.txt"], {}, config=path)
    small = request.apply("model", ModelConfig.from_config({"kind": "gpt", "vocab_size": 4096}))
    assert isinstance(small, GPTConfig)
    _, fields = preset("gpt2")
    parts = ("feed_forward", "norm", "position", "qk_norm", "embedding_norm", "tied", "zero_outputs")
    original = GPTConfig(**fields)
    assert {name: getattr(small, name) for name in parts} == {name: getattr(original, name) for name in parts}
    assert small.attention == original.attention.override({"heads": 8})


def test_a_recipe_may_name_its_data(folder):
    (folder / "a, b.txt").write_text(make_text(400, seed=1))
    path = recipe('[data]\ntrain = "book.txt"\nvalidation = ["a, b.txt"]\ntest = "a, b.txt"\n')
    request = make_request([], {}, config=path)
    assert (request.data, request.validation, request.test) == (("book.txt",), ("a, b.txt",), ("a, b.txt",))
    request = make_request(["other.txt"], {"test": ("t.txt",)}, config=path, changes={"data.validation": "x,y"})
    assert (request.data, request.validation, request.test) == (("other.txt",), ("x", "y"), ("t.txt",))
    held = make_request([], {}, config=recipe('[data]\ntrain = ["book.txt"]\nvalidation_share = 0.25\n'))
    assert held.data_config(DataConfig).validation_share == 0.25
    assert planned(make_request([], {"steps": 1, "tokenizer": "bytes"}, config=held.recipe.path))["characters"] == 3750


def test_recipe_then_options_then_set(folder):
    path = recipe(
        'model = "gpt-small"\ntokenizer = "words"\n'
        "[training]\nminutes = 3\nseed = 4\nthreads = 2\nbatch = 5\noptimizer.learning_rate = 0.5\n"
    )
    request = make_request(["book.txt"], {}, config=path)
    assert (request.model, request.tokenizer, request.minutes) == ("gpt-small", "words", 3.0)
    assert (request.seed, request.threads, request.steps) == (4, 2, None)
    assert request.recipe.settings["training.batch"] == 5
    request = make_request(["book.txt"], {"steps": 7, "seed": 0, "model": "gpt-tiny"}, config=path)
    assert (request.steps, request.minutes, request.seed, request.model) == (7, None, 0, "gpt-tiny")
    changes = {"training.epochs": "2", "training.batch": "6", "training.seed": "9", "model.width": "16"}
    request = make_request(["book.txt"], {"steps": 7}, config=path, changes=changes)
    assert (request.epochs, request.steps, request.minutes, request.seed) == (2.0, None, None, 9)
    from weft.training import TrainingConfig

    training = request.apply("training", TrainingConfig(steps=1, batch=1))
    assert (training.batch, training.optimizer.learning_rate) == (6, 0.5)


def test_an_option_replaces_a_model_that_is_written_out(folder):
    path = recipe("[model]\nwidth = 64\ndepth = 3\ndropout = 0.3\nattention.heads = 2\n")
    base = ModelConfig.from_config({"kind": "gpt", "vocab_size": 300})
    model = make_request(["book.txt"], {}, config=path).apply("model", base)
    assert (model.width, model.depth, model.dropout) == (64, 3, 0.3)
    request = make_request(["book.txt"], {"model": "gpt-tiny"}, config=path)
    model = request.apply("model", base.override({"width": 128, "depth": 4}))
    assert (model.width, model.depth, model.dropout) == (128, 4, 0.3)
    request = make_request(["book.txt"], {"model": "gpt"}, config=path)  # sized by the plan
    assert request.recipe.settings == {"model.dropout": 0.3}


def test_an_option_replaces_another_kind_of_tokenizer(folder):
    path = recipe('[tokenizer]\nkind = "bpe"\nvocab_size = 300\n')
    assert planned(make_request(["book.txt"], {"steps": 1}, config=path))["vocab_size"] == 300
    plan = planned(make_request(["book.txt"], {"steps": 1, "tokenizer": "bytes"}, config=path))
    assert (plan["tokenizer"], plan["vocab_size"]) == ("bytes", 257)
    assert planned(make_request(["book.txt"], {"steps": 1, "tokenizer": "bpe"}, config=path))["vocab_size"] == 300


def test_set_switches_a_kind_without_the_fields_of_the_old_one(folder):
    path = recipe('[training]\nsteps = 1\n[training.optimizer]\nkind = "muon"\nrounds = 3\n')
    request = make_request(["book.txt"], {}, config=path, changes={"training.optimizer.kind": "adamw"})
    request.check()


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ("[modle]\nwidth = 3\n", "r.toml: unknown section 'modle'\ndid you mean 'model'?"),
        ("[model]\nwidht = 3\n", "r.toml: model: unknown field 'widht'\ndid you mean 'width'?"),
        ("[model.attention]\nhaeds = 3\n", "r.toml: model: attention: unknown field 'haeds'\ndid you mean 'heads'?"),
        ("[tokenizer]\nvocab = 3\n", "r.toml: tokenizer: unknown field 'vocab'\ndid you mean 'vocab_size'?"),
        ("[training]\nbacth = 3\n", "r.toml: training: unknown field 'bacth'\ndid you mean 'batch'?"),
        ("[training]\nminutes = -1\n", "r.toml: training: minutes = -1.0\nexpected a number above 0"),
        ("[training]\nsteps = 1\nminutes = 1\n", "r.toml: minutes and steps together\nexpected one of them"),
        (
            "[data]\nvalidation_shar = 0.1\n",
            "r.toml: data: unknown field 'validation_shar'\ndid you mean 'validation_share'?",
        ),
        ("[data]\ncharacters = 3\n", "'data.characters' is found out from the data"),
        ('model = "gtp"\n', "r.toml: unknown model 'gtp'\ndid you mean 'gpt'?"),
        ('tokenizer = "charcters"\n', "r.toml: unknown tokenizer kind 'charcters'\ndid you mean 'characters'?"),
        ("model = 3\n", "r.toml: model = 3\nexpected a table"),
        ("task = 3\n", "r.toml: task = 3"),
        ("width = \n", "r.toml is not valid TOML"),
    ],
)
def test_mistakes_in_a_recipe_name_the_file(folder, content, answer):
    path = recipe(content)
    with pytest.raises(ConfigError) as error:
        find_task("generate").check(make_request(["book.txt"], {}, config=path))
    assert str(error.value).startswith(answer)
    assert len(str(error.value).splitlines()) <= 3


def test_files_that_are_no_recipes(folder):
    recipe("", "recipe.toml")
    with pytest.raises(DataError, match=r"no recipe recpie.toml\nexpected a TOML file\ndid you mean 'recipe.toml'"):
        make_request(["book.txt"], {}, config="recpie.toml")
    with pytest.raises(DataError, match="cannot be read"):
        make_request(["book.txt"], {}, config=folder)
    (folder / "latin.toml").write_bytes(b'model = "caf\xe9"')
    with pytest.raises(ConfigError, match="not valid UTF-8 at byte 12"):
        make_request(["book.txt"], {}, config="latin.toml")
    with pytest.raises(ConfigError, match="the task 'fil' does not exist yet\ndid you mean 'fill'"):
        Experiment.plan(make_request(["book.txt"], {}, config=recipe('task = "fil"\n')))
    with pytest.raises(ConfigError, match="no data was given"):
        make_request([], {}, config=recipe('model = "gpt"\n'))


def test_weft_train_takes_a_recipe(folder):
    import weft

    small = "[model]\nwidth = 16\ndepth = 1\nmax_length = 16\nattention.heads = 2\n"
    path = recipe(
        f'tokenizer = "characters"\n[data]\ntrain = ["book.txt"]\n{small}[training]\nsteps = 2\nthreads = 1\n'
    )
    run = weft.train(config=path, out="runs/a", set={"model.depth": 2})
    config = json.loads(Path("runs/a/config.json").read_text())
    assert (config["model"]["width"], config["model"]["depth"], config["training"]["steps"]) == (16, 2, 2)
    assert run.config.data.train == ("book.txt",)
