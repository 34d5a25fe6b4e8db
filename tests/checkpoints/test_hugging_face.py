"""Hugging Face folders from strangers: refused by name, nothing executed, nothing left behind."""

import json
import os
import pickle
import sys
import types

import pytest
import torch
from safetensors.torch import load_file, save_file

import weft
from weft.checkpoints.hugging_face import WANTED, HuggingFaceFolder, fetch, is_remote_name, write_folder
from weft.errors import DataError, UnsupportedError, WeftError
from weft.exchange.transfer import import_model
from weft.models import Converter, GPTConfig, preset
from weft.text import TokenizerConfig

GPT2 = preset("gpt2")[1] | {"width": 8, "depth": 2, "max_length": 12, "attention": {"kind": "softmax", "heads": 2}}
TOKENIZER = TokenizerConfig.from_config("bytes").train([])


@pytest.fixture
def folder(tmp_path):
    """A sound GPT-2 folder, made by our own writer."""
    config = GPTConfig(**GPT2 | {"vocab_size": 257})
    path = tmp_path / "hf"
    path.mkdir()
    write_folder(path, Converter.registry["gpt2"], config, dict(config.build().named_parameters()), TOKENIZER)
    return path


def change(path, **settings):
    found = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in (found | settings).items() if v != "gone"}))


def tensors(path, **changes):
    """Change, add or (None) remove tensors of the file."""
    found = load_file(path / "model.safetensors")
    save_file(
        {k: v for k, v in (found | changes).items() if v is not None}, path / "model.safetensors", {"format": "pt"}
    )


def refused(folder, words, error=WeftError):
    """Loading and importing both refuse, in at most three lines with the path, and leave nothing behind."""
    before = sorted(os.listdir(folder.parent))
    with pytest.raises(error, match=words) as caught:
        import_model(folder, folder.parent / "runs" / "new")
    assert len(str(caught.value).splitlines()) <= 3 and str(folder) in str(caught.value)
    with pytest.raises(error, match=words):
        weft.load(folder).model  # noqa: B018
    assert sorted(os.listdir(folder.parent)) == before


def test_a_sound_folder_is_read(folder, tmp_path):
    made = import_model(folder, tmp_path / "run")
    assert made["converter"] == "gpt2" and made["tokenizer"] == "bytes" and made["notes"] == []
    assert weft.load(folder).model(torch.zeros(1, 3, dtype=torch.long)).shape == (1, 3, 257)
    run = weft.load(tmp_path / "run")
    assert run.origin["converter"] == "gpt2" and run.origin["source"] == str(folder)
    assert run.model.head.weight is run.model.tokens.weight


# -- settings ---------------------------------------------------------------------------------

HOSTILE = {
    "a text for a size": ({"n_embd": "768"}, "n_embd = '768'\nexpected a whole number"),
    "a fraction for a size": ({"n_head": 2.5}, "n_head = 2.5"),
    "true for a size": ({"n_layer": True}, "n_layer = True"),
    "no heads": ({"n_head": 0}, "n_head = 0"),
    "negative": ({"vocab_size": -1}, "vocab_size = -1"),
    "absurd width": ({"n_embd": 2**31, "n_head": 1}, "more bytes than can be counted"),
    "beyond absurd": ({"n_embd": 10**40}, "n_embd = 1000"),
    "large, but not in the file": ({"n_embd": 4096}, r"has shape \(24,\)\nexpected \(12288,\)"),
    "more words than the file has": ({"vocab_size": 2**31}, "shape|GB"),
    "deep": ({"n_layer": 10**6}, "depth = 1000000"),
    "fewer layers than the file": (
        {"n_layer": 1},
        "fills 'layers.1.attention.query.bias' and 2 more, not in this model",
    ),
    "more layers than the file": ({"n_layer": 3}, "nothing in the file fills 'layers.2"),
    "heads that do not divide": ({"n_head": 3}, "width 8 with 3 heads"),
    "a missing size": ({"n_layer": "gone"}, "does not say n_layer"),
    "a table for a word": ({"activation_function": {"module": "os"}}, "activation_function = {'module': 'os'}"),
    "an unknown activation": ({"activation_function": "os.system"}, "activation_function = 'os.system'"),
    "another family": ({"model_type": "gtp2"}, "did you mean 'gpt2'"),
    "no text as family": ({"model_type": ["gpt2"]}, "model_type = "),
    "code of its own": ({"auto_map": {"AutoModelForCausalLM": "evil.Model"}}, "auto_map.*Weft runs no such code"),
    "packed weights": ({"quantization_config": {"bits": 4}}, "quantization_config"),
    "scaled by layer": ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True"),
    "cross-attention": ({"add_cross_attention": True}, "add_cross_attention"),
    "NaN": ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon = nan"),
    "dropout of two": ({"resid_pdrop": 2}, "dropout = 2.0"),
    "a yes for a flag": ({"tie_word_embeddings": "yes"}, "tie_word_embeddings = 'yes'"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_settings(what, folder):
    settings, words = HOSTILE[what]
    change(folder / "config.json", **settings)
    refused(folder, words)


@pytest.mark.parametrize("text", ["[]", "{", "null", '{"model_type": "gpt2"', "[" * 100_000, "\udcff"])
def test_settings_that_are_none(text, folder):
    (folder / "config.json").write_bytes(text.encode(errors="surrogateescape"))
    refused(folder, "config.json")


LLAMA = {
    "vocab_size": 50,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 12,
}


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("llama", {"rope_scaling": {"rope_type": "llama3", "factor": 8}}, "scaled by 'llama3'"),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 2}}, "scaled by 'linear'"),
        ("llama", {"rope_parameters": {"rope_type": "yarn"}}, "scaled by 'yarn'"),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor = 0.5"),
        ("llama", {"rope_parameters": [1]}, r"rope_parameters = \[1\]"),
        ("llama", {"rope_parameters": {"rope_theta": "big"}}, "rope_theta = 'big'"),
        ("llama", {"rope_theta": 0}, "base = 0.0"),
        ("llama", {"num_key_value_heads": 3}, "2 heads with 3 kv_heads"),
        ("llama", {"head_dim": 3}, "an even head width"),
        ("llama", {"hidden_act": "mish"}, "hidden_act = 'mish'"),
        ("llama", {"hidden_size": 9}, "width 9 with 2 heads"),
        ("qwen3", {"use_sliding_window": True}, "use_sliding_window"),
        ("qwen3", {"layer_types": ["sliding_attention"]}, "layer_types"),
        ("qwen3", {"rms_norm_eps": 1e-5}, "rms_norm_eps"),
        ("nanochat", {"final_logit_softcapping": 15.0}, "final_logit_softcapping"),
        ("nanochat", {"final_logit_softcapping": None, "head_dim": 8}, "head_dim = 8"),
        ("nanochat", {"final_logit_softcapping": None, "rms_norm_eps": 1e-5}, "rms_norm_eps"),
    ],
)
def test_what_the_llama_family_can_ask_for_and_we_cannot_do(kind, settings, words, tmp_path):
    folder = tmp_path / "hf"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **LLAMA, **settings}))
    with pytest.raises(WeftError, match=words):
        HuggingFaceFolder(folder).config  # noqa: B018
    without = {"final_logit_softcapping": None} if kind == "nanochat" else {}
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **LLAMA, **without}))
    assert HuggingFaceFolder(folder).config.depth == 1  # the rest is fine


# -- weights ----------------------------------------------------------------------------------

WTE, BIAS = "transformer.wte.weight", "transformer.h.0.attn.c_attn.bias"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({WTE: None}, "nothing in the file fills 'tokens.weight'"),
        ({BIAS: None}, "nothing in the file fills 'layers.0.attention.query.bias' and 2 more"),
        ({"evil": torch.ones(1)}, "a tensor 'evil' that this model has no place for"),
        ({WTE: torch.ones(257, 9)}, r"shape \(257, 9\)"),
        ({BIAS: torch.ones(24, 1)}, "shape"),
        ({BIAS: torch.ones(24, dtype=torch.int32)}, "has type torch.int32"),
        ({"lm_head.weight": torch.ones(257, 8)}, "'lm_head.weight' differs"),
        ({"lm_head.weight": torch.ones(2, 8)}, "'lm_head.weight' differs"),
    ],
)
def test_tensors_that_do_not_fit(changes, words, folder):
    tensors(folder, **changes)
    refused(folder, words)


def test_shapes_are_compared_before_anything_is_read(folder, monkeypatch):
    tensors(folder, **{WTE: torch.ones(257, 9)})
    monkeypatch.setattr("weft.checkpoints.hugging_face.read_tensors", lambda path: pytest.fail("it was read"))
    refused(folder, "shape")


def test_pickles_are_refused_under_any_name(folder):
    class Bomb:
        def __reduce__(self):
            return (os.system, (f"touch {folder / 'executed'}",))

    content = pickle.dumps(Bomb())
    (folder / "model.safetensors").write_bytes(content)
    refused(folder, "pickled Python objects")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(folder, r"pytorch_model.bin: pickled[\s\S]*save_pretrained")
    torch.save({"a": torch.ones(2)}, folder / "pytorch_model.bin")
    refused(folder, r"pytorch_model.bin: pickled[\s\S]*save_pretrained")
    (folder / "pytorch_model.bin").unlink()
    refused(folder, "has no weights")
    assert not (folder / "executed").exists()


def shard(folder, places=None):
    """The folder's weights in two files."""
    found = load_file(folder / "model.safetensors")
    names = sorted(found)
    files = {"model-1.safetensors": names[:5], "model-2.safetensors": names[5:]}
    for file, inside in files.items():
        save_file({name: found[name] for name in inside}, folder / file)
    (folder / "model.safetensors").unlink()
    weight_map = {name: file for file, inside in files.items() for name in inside} | (places or {})
    index = {"metadata": {"total_size": 1}, "weight_map": {k: v for k, v in weight_map.items() if v is not None}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards(folder):
    whole = HuggingFaceFolder(folder).read_weights()
    shard(folder)
    again = HuggingFaceFolder(folder).read_weights()
    assert whole.keys() == again.keys() and all(torch.equal(whole[name], again[name]) for name in whole)


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({WTE: "../secret.safetensors"}, "names the file '../secret.safetensors'"),
        ({WTE: "/etc/secret.safetensors"}, "names the file '/etc/secret.safetensors'"),
        ({WTE: "..\\secret.safetensors"}, "names the file"),
        ({WTE: "a/b.safetensors"}, "names the file"),
        ({WTE: "model-2.bin"}, "names the file 'model-2.bin'"),
        ({WTE: "https://example.org/x.safetensors"}, "names the file"),
        ({WTE: "model-1.safetensors\n"}, "names the file"),
        ({WTE: 5}, "names the file '5'"),
        ({WTE: "model-3.safetensors"}, "model-3.safetensors is not there|names for another shard"),
        ({WTE: "model-1.safetensors"}, "names for another shard"),
        ({WTE: None}, "does not name"),
        ({"ghost": "model-1.safetensors"}, "does not hold 'ghost'"),
    ],
)
def test_a_shard_index_leads_nowhere_else(places, words, folder):
    save_file({WTE: torch.ones(257, 8)}, folder.parent / "secret.safetensors")
    shard(folder, places)
    refused(folder, words)


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"weight_map": []}', '{"weight_map": {}}'])
def test_an_index_that_is_none(text, folder):
    shard(folder)
    (folder / "model.safetensors.index.json").write_text(text)
    refused(folder, "index.json")


# -- tokenizers -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "{}", "[" * 100_000, '{"model": {"type": "BPE", "vocab": {"a": -1}}}', "\x00"])
def test_hostile_tokenizers(text, folder):
    (folder / "tokenizer.json").write_text(text)
    refused(folder, "tokenizer.json", DataError)


def test_a_tokenizer_that_is_too_large_for_the_model(folder):
    TokenizerConfig.from_config("characters").train(["abc"]).save(folder / "tokenizer.json")
    refused(folder, "tokenizer.json has 260 tokens, the model in")


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("tokenizer_config.json", "[]", "no table"),
        ("tokenizer_config.json", "{", "not valid JSON"),
        ("vocab.json", None, "no tokenizer that can be read"),
        ("merges.txt", None, "no merges.txt"),
        ("merges.txt", "a b c", "no pair of tokens"),
        ("merges.txt", "q zz", "vocab.json cannot be used"),
        ("vocab.json", '{"a": "b"}', "vocab.json"),
    ],
)
def test_old_tokenizer_files_that_are_broken(file, text, words, folder):
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(json.loads(TOKENIZER.to_json())["model"]["vocab"]))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text)
    if words.startswith("no tokenizer"):  # a model without one can still be used with ids
        assert weft.load(folder).model is not None
        with pytest.raises(DataError, match=words):
            weft.load(folder).tokenizer  # noqa: B018
    else:
        refused(folder, words)


@pytest.mark.parametrize("token", [["a"], {"content": 5}, 7, "<|nope|>", "../../etc/passwd"])
def test_a_strange_name_for_the_end_is_passed_over(token, folder):
    change(folder / "tokenizer_config.json", eos_token=token, auto_map={"AutoTokenizer": ["evil.T", None]})
    assert weft.load(folder).tokenizer.end == TOKENIZER.end


def test_a_model_without_a_tokenizer(folder, tmp_path):
    (folder / "tokenizer.json").unlink()
    made = import_model(folder, tmp_path / "run")
    assert made["tokenizer"] is None and "ids only" in made["notes"][0]
    for path in (folder, tmp_path / "run"):
        run = weft.load(path)
        assert run.model(torch.zeros(1, 2, dtype=torch.long)).shape == (1, 2, 257)
        with pytest.raises(DataError, match="tokenizer"):
            run.tokenizer  # noqa: B018


# -- the hub ----------------------------------------------------------------------------------


def hub(monkeypatch, download):
    module = types.ModuleType("huggingface_hub")
    module.snapshot_download = download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)


def test_a_name_on_the_hub_is_downloaded_without_code(folder, tmp_path, monkeypatch):
    asked = []

    def download(name, *, allow_patterns):
        asked.append((name, allow_patterns))
        return str(folder)

    hub(monkeypatch, download)
    monkeypatch.chdir(tmp_path)
    made = import_model("somebody/small-model", tmp_path / "run")
    assert asked == [("somebody/small-model", WANTED)] and made["source"] == "somebody/small-model"
    assert not any(pattern.endswith((".py", ".bin", "*")) for pattern in WANTED)
    with pytest.raises(DataError, match="there is no run"):
        weft.load("somebody/small-model")  # never downloads
    assert len(asked) == 1


def test_offline_and_without_the_package_it_says_so(tmp_path, monkeypatch):
    def download(name, *, allow_patterns):
        raise ConnectionError("no route to host\nand more")

    monkeypatch.chdir(tmp_path)
    hub(monkeypatch, download)
    with pytest.raises(DataError, match=r"somebody/model cannot be downloaded: no route to host\nis the name right"):
        import_model("somebody/model", "run")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UnsupportedError, match="pip install huggingface_hub"):
        fetch("somebody/model")
    assert os.listdir(tmp_path) == []


def test_what_is_a_name_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_remote_name("openai-community/gpt2") and is_remote_name("a/b.c_d-1")
    for name in ("gpt2", "./gpt2", "../a", "/a/b", "a/b/c", "a/..", "~/x", "a b/c", "", "a/b\n"):
        assert not is_remote_name(name), name
    (tmp_path / "models" / "mine").mkdir(parents=True)
    assert not is_remote_name("models/mine")


# -- runs of Weft -----------------------------------------------------------------------------


def test_an_imported_run_says_what_it_cannot(folder, tmp_path):
    import_model(folder, tmp_path / "run")
    for path in (folder, tmp_path / "run"):
        run = weft.load(path)
        with pytest.raises(DataError, match="was not trained here"):
            run.config  # noqa: B018
        for ask in (run.evaluate, run.validation_tokens, run.training_text):
            with pytest.raises(DataError, match="it has no validation data"):
                ask()
        (tmp_path / "book.txt").write_text("The cat sat on the mat. " * 30)
        assert run.evaluate(str(tmp_path / "book.txt"))["tokens"] == 24 * 30
    with pytest.raises(DataError, match="is a run of Weft already"):
        import_model(tmp_path / "run", tmp_path / "other")
    with pytest.raises(DataError, match="is there already"):
        import_model(folder, tmp_path / "run")


def test_a_run_shows_itself(folder, tmp_path):
    import_model(folder, tmp_path / "run")
    run = weft.load(tmp_path / "run")
    assert repr(run).startswith(f"TextGenerator({tmp_path / 'run'}, gpt, 2 layers of width 8")
    shown = run._repr_html_()
    assert "<td>gpt, 2 layers of width 8</td>" in shown and "257" in shown and str(folder) in shown
    change(tmp_path / "run" / "config.json", origin={"converter": "gpt2", "source": "<script>alert(1)</script>"})
    shown = weft.load(tmp_path / "run")._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown
    change(tmp_path / "run" / "config.json", model={"kind": "<b>"})
    assert "problem" in weft.load(tmp_path / "run")._repr_html_()
    assert "gpt" in weft.load(folder)._repr_html_()


@pytest.mark.parametrize(
    ("model", "words"), [({"width": 2**31}, "more bytes than can be counted"), ({"width": 16}, "does not fit")]
)
def test_a_changed_config_of_a_run_is_refused(model, words, folder, tmp_path):
    import_model(folder, tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    change(tmp_path / "run" / "config.json", model=config["model"] | model)
    with pytest.raises(DataError, match=words):
        weft.load(tmp_path / "run").model  # noqa: B018
