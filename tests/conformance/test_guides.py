"""The family of docs/guides/add-a-family.md as a plugin: the logits of `transformers`, both ways, and every verb.

No file of src/ knows of it.
"""

import json

import pytest
import torch

import weft
from fixtures.commands import generator_command, run_weft
from fixtures.plugins import GUIDES, restore_registries, write_plugins
from fixtures.texts import make_text
from fixtures.weights import move_weights
from weft.cost.flops import walk
from weft.errors import UnsupportedError
from weft.exchange.transfer import export_run, import_model
from weft.models import Converter, ModelConfig, preset
from weft.plugins import load_plugin

SIZES = {
    "vocab_size": 61,
    "hidden_size": 32,
    "word_embed_proj_dim": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "ffn_dim": 48,
    "max_position_embeddings": 40,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


@pytest.fixture
def opt(tmp_path):
    """The file of the guide, loaded; a folder with it."""
    write_plugins(GUIDES / "add-a-family.md", tmp_path)
    with restore_registries():
        load_plugin(tmp_path / "opt.py")
        yield tmp_path


def theirs(folder, **changes):
    """A model of theirs in a folder, with every parameter moved away from zeros and ones."""
    transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(1)
    model = transformers.OPTForCausalLM(transformers.OPTConfig(**SIZES | changes)).eval()
    move_weights(model)
    model.save_pretrained(folder)
    return model


def apart(ours, model, ids):
    with torch.no_grad():
        return float((ours(ids) - model(ids).logits).abs().max())


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": False, "activation_function": "gelu"}], ids=str)
def test_logits_are_theirs_and_their_tensors_come_back(opt, changes):
    model, ids = theirs(opt / "hf", **changes), torch.randint(61, (3, 40))
    import_model(opt / "hf", opt / "run")
    ours = weft.load(opt / "run").model
    assert apart(ours, model, ids) < 1e-5 and model(ids).logits.abs().max() > 0.5
    certificate = export_run(opt / "run", opt / "back")
    assert certificate["architecture"] == "OPTForCausalLM" and certificate["difference"] == 0
    assert certificate["transformers"]["difference"] < 1e-5
    again = type(model).from_pretrained(opt / "back").state_dict()
    assert again.keys() == model.state_dict().keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in model.state_dict().items())
    with torch.no_grad():
        ours.position.weight[:2].normal_()
        assert apart(ours, model, ids) < 1e-5, "no token reads the first two rows"
        ours.position.weight[2, 0] += 0.5
        assert apart(ours, model, ids) > 1e-3, "a negative control"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"do_layer_norm_before": False}, "norms before each branch"),
        ({"word_embed_proj_dim": 16}, "as wide as its states"),
        ({"enable_bias": False}, "has biases"),
        ({"layer_norm_elementwise_affine": False}, "norms have weights"),
    ],
)
def test_what_it_does_not_compute_is_refused(opt, changes, told):
    theirs(opt / "hf", **changes)
    with pytest.raises(UnsupportedError, match=told):
        _ = weft.load(opt / "hf").model_config


def test_every_verb_knows_the_family(opt):
    (opt / "book.txt").write_text(make_text(3000))

    def says(*words):
        told = run_weft(*words, "--plugin", "opt.py", "--json", cwd=opt)
        return json.loads(told.stdout.splitlines()[-1] if words[0] in ("train", "resume") else told.stdout)

    says(*generator_command("book.txt", "run", 2, "--model", "opt"))
    config = json.loads((opt / "run" / "config.json").read_text())
    assert config["model"]["kind"] == config["model"]["position"]["kind"] == "opt"
    assert [one["file"] for one in config["plugins"]] == ["opt.py"]
    assert says("generate", "run", "the cat", "--max-tokens", "5")
    before = says("evaluate", "run")
    told = says("inspect", "run")
    parts = walk(ModelConfig.from_config(config["model"]), batch=6, length=16).parts
    assert {name: part["forward"] for name, part in told["flops"]["parts"].items() if part["forward"]} == {
        name: part.forward for name, part in parts.items() if part.forward
    }
    told = says("inspect", "run", "--reach", "--health")
    assert len(told["reach"]["layers"]) == len(told["health"]["layers"]) == 2
    maps = says("attention", "run", "the cat sat", "--weights")["maps"]
    assert [len(one["heads"]) for one in maps] == [2, 2]
    assert says("export", "run", "hf", "--to", "hf")["architecture"] == "OPTForCausalLM"
    says("import", "hf", "--out", "again")
    assert says("evaluate", "again", "book.txt")
    says("resume", "run", "--steps", "1")
    assert says("evaluate", "run") != before
    assert says("inspect", "opt-125m")


def test_an_imported_run_names_the_plugin_that_it_needs(opt):
    theirs(opt / "hf")
    import_model(opt / "hf", opt / "run")
    assert [one["file"] for one in json.loads((opt / "run" / "config.json").read_text())["plugins"]] == ["opt.py"]


def test_nothing_of_it_stays(tmp_path):
    write_plugins(GUIDES / "add-a-family.md", tmp_path)
    with restore_registries():
        load_plugin(tmp_path / "opt.py")
        assert preset("opt-1.3b")[0] == "opt"
    assert "opt" not in ModelConfig.registry and "opt" not in Converter.registry
