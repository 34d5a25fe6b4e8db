"""`weft import` and `weft export` as people type them."""

import json
import os
import subprocess
import sys

import pytest
import torch

from weft.checkpoints import RunDirectory
from weft.checkpoints.hugging_face import write_folder
from weft.cli.main import main
from weft.models import BERTConfig, GPTConfig, TransformerConfig, converter_for, preset
from weft.text import TokenizerConfig


def a_run(path, **fields):
    tokenizer = TokenizerConfig.from_config("characters").train(["the cat sat on the mat"])
    config = GPTConfig(vocab_size=tokenizer.vocab_size, width=16, depth=1, max_length=12, **fields)
    model = config.build()
    torch.nn.init.normal_(model.head.weight)
    run = RunDirectory.create(path)
    tokenizer.save(run.tokenizer_file)
    run.write_model(dict(model.named_parameters()))
    rest = {"tokenizer": {"kind": "characters"}, "data": {"train": ["a"]}, "training": {"steps": 1, "batch": 1}}
    run.write_config({"task": "generate", "model": config.to_dict(), **rest})


@pytest.fixture
def weft(tmp_path, monkeypatch, capsys):
    """The command in this process: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["weft", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        said = capsys.readouterr()
        return caught.value.code or 0, said.out, said.err

    return call


@pytest.fixture
def alone(monkeypatch):
    """As if transformers were not installed."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_there_and_back(weft, alone, tmp_path):
    a_run(tmp_path / "run", dropout=0.1)
    code, out, err = weft("export", "run", "hf", "--to", "hf")
    assert code == 0 and err == ""
    assert "Exported run to hf as NanoChatForCausalLM." in out and "bit-equal" in out
    assert "not compared: transformers is not installed" in out
    assert "Note: left out: dropout = 0.1 (used in training only)." in out
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md"} <= set(
        os.listdir("hf")
    )
    code, out, err = weft("import", "hf", "--out", "again")
    assert code == 0 and "Imported hf (nanochat" in out and 'weft generate again "Once' in out
    code, out, _ = weft("import", "hf", "--out", "more", "--json")
    assert code == 0 and json.loads(out)["run"] == "more"
    code, out, _ = weft("export", "again", "hf2", "--json")
    assert code == 0 and json.loads(out) == json.loads((tmp_path / "hf2" / "certificate.json").read_text())
    assert (tmp_path / "hf2" / "model.safetensors").read_bytes() == (tmp_path / "hf" / "model.safetensors").read_bytes()
    (tmp_path / "book.txt").write_text("the cat sat on the mat. " * 10)
    code, out, _ = weft("evaluate", "again", "book.txt")
    assert code == 0 and "bits per byte" in out
    code, out, _ = weft("runs", ".")
    assert code == 0 and "imported" in out


def test_a_model_that_translates_there_and_back(weft, alone, tmp_path):
    tokenizer = TokenizerConfig.from_config("characters").train(["the cat sat on the mat"])
    sizes = {"vocab_size": tokenizer.vocab_size, "start": tokenizer.end, "width": 16, "depth": 1, "max_length": 24}
    fields = preset("transformer-base")[1] | sizes | {"attention": {"kind": "softmax", "heads": 2}}
    config = TransformerConfig(**fields)
    run = RunDirectory.create(tmp_path / "run")
    tokenizer.save(run.tokenizer_file)
    run.write_model(dict(config.build().named_parameters()))
    run.write_config({"task": "translate", "model": config.to_dict(), "origin": {"converter": "marian", "source": "a"}})
    code, out, err = weft("export", "run", "hf")
    assert code == 0 and err == "" and "as MarianMTModel." in out and "AutoModelForSeq2SeqLM" in out
    code, out, _ = weft("import", "hf", "--out", "again")
    assert code == 0 and "Imported hf (marian" in out and 'weft translate again "' in out
    assert "weft evaluate again FILE.tsv" in (tmp_path / "again" / "README.md").read_text()
    code, _, err = weft("generate", "again", "the cat")
    assert code == 1 and "translate" in err and len(err.splitlines()) <= 3


def a_bert(path, head):
    """A Hugging Face folder with BERT's parts and a WordPiece tokenizer, by our own writer."""
    tokenizer = TokenizerConfig.from_config("wordpiece").train(["the cat sat on the mat. " * 5])
    fields = preset("bert-base")[1] | {"vocab_size": tokenizer.vocab_size, "width": 16, "depth": 1, "max_length": 24}
    config = BERTConfig(**fields | {"attention": {"kind": "softmax", "heads": 2}, "head": head})
    path.mkdir()
    write_folder(path, converter_for(config), config, dict(config.build().named_parameters()), tokenizer)


@pytest.mark.parametrize(
    ("head", "task", "name", "auto"),
    [
        ("pooled", "embed", "BertModel", "AutoModel"),
        ("masked", "fill", "BertForMaskedLM", "AutoModelForMaskedLM"),
        ("pretraining", "fill", "BertForPreTraining", "AutoModelForPreTraining"),
        (
            {"kind": "classes", "labels": ["no", "yes"]},
            "classify",
            "BertForSequenceClassification",
            "AutoModelForSequenceClassification",
        ),
    ],
)
def test_a_bert_there_and_back(head, task, name, auto, weft, alone, tmp_path):
    a_bert(tmp_path / "hf", head)
    code, out, err = weft("import", "hf", "--out", "run")
    assert code == 0 and err == "" and "a wordpiece tokenizer" in out
    assert out.splitlines()[-1].startswith(f"Try:  weft {task} run ")
    assert ("no head for tokens or classes" in out) == (head == "pooled")
    assert f"weft {task} run" in (tmp_path / "run" / "README.md").read_text()
    code, out, err = weft("export", "run", "back")
    assert code == 0 and err == "" and f"Exported run to back as {name}." in out
    assert "bit-equal and states" in out and f"from transformers import {auto}\n" in out
    assert json.loads((tmp_path / "back" / "certificate.json").read_text())["auto_class"] == auto
    for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "back" / file).read_bytes() == (tmp_path / "hf" / file).read_bytes(), file
    code, out, _ = weft("runs", ".")
    assert code == 0 and "imported" in out


@pytest.mark.parametrize(
    ("words", "code", "answer"),
    [
        (["import", "nowhere", "--out", "new"], 1, "there is no folder or file nowhere"),
        (["import", "run"], 2, "--out"),
        (["import", "run", "--out", "new"], 1, "run is a run of Weft already"),
        (["import", "empty", "--out", "new"], 1, "it has no config.json"),
        (["import", "stranger", "--out", "new"], 1, "format None"),
        (["import", "run", "--out", "run"], 1, "run is there already"),
        (["export", "run", "empty/hf", "--to", "onnx"], 2, "--to onnx"),
        (["export", "run", "stranger"], 1, "stranger is there already"),
        (["export", "nowhere", "new"], 1, "there is no run nowhere"),
        (["export", "odd", "new"], 1, "no converter of Hugging Face can write this model"),
    ],
)
def test_mistakes(words, code, answer, weft, alone, tmp_path):
    a_run(tmp_path / "run")
    a_run(tmp_path / "odd", position="alibi")
    (tmp_path / "empty").mkdir()
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "config.json").write_text('{"name": "something else"}')
    before = sorted(path for path in tmp_path.rglob("*"))
    found, out, err = weft(*words)
    assert found == code and answer in err and out == ""
    assert len(err.splitlines()) <= 3
    assert sorted(path for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("verb", ["import", "export"])
def test_help_begins_with_an_example_and_loads_no_torch(verb):
    code = (
        f"import sys; sys.argv = ['weft', '{verb}', '--help']\n"
        "from weft.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert f"Example:  weft {verb}" in out.stdout and out.stdout.splitlines()[-1] == "False"
