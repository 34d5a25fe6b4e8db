"""What is known without torch: typed mistakes are answered from the index, in the words of the real settings."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft import index as known
from weft.cli.main import main
from weft.index import stand_ins
from weft.models import ModelConfig
from weft.tasks.mistakes import refuse_inspection, refuse_mistakes

ROOT = Path(__file__).resolve().parent.parent
SAME = os.environ | {"PYTHONPATH": str(Path(known.__file__).parent.parent)}  # the code that is tested, from any folder
TRAIN = ["train", "book.txt"]
MISTAKES = [
    ([*TRAIN, "--model", "gtp"], "did you mean 'gpt'?"),
    ([*TRAIN, "--tokenizer", "bqe"], "did you mean 'bpe'?"),
    ([*TRAIN, "--set", "model.widht=3"], "did you mean 'width'?"),
    ([*TRAIN, "--set", "model.heads=7"], "known: attention, depth"),
    ([*TRAIN, "--set", "model.width=-3"], "expected a number from 1"),
    ([*TRAIN, "--set", "model.width=wide"], "expected a whole number"),
    ([*TRAIN, "--set", "model.attention.kind=sofmax"], "did you mean 'softmax'?"),
    ([*TRAIN, "--set", "model.attention.hads=2"], "did you mean 'heads'?"),
    ([*TRAIN, "--set", "model.attention.kind=local", "--set", "model.attention.widow=2"], "unknown field 'widow'"),
    ([*TRAIN, "--set", "model.feed_forward.activation=rleu"], "activation = 'rleu'"),
    ([*TRAIN, "--set", "tokenizer.vocab_siz=9"], "did you mean 'vocab_size'?"),
    ([*TRAIN, "--set", "training.learning_rat=1"], "known: average, batch"),
    ([*TRAIN, "--set", "training.optimizer.kind=adam"], "did you mean 'adamw'?"),
    ([*TRAIN, "--set", "training.schedule=lin"], "expected one of linear, inverse-sqrt"),
    ([*TRAIN, "--set", "training.steps=none_such"], "training: steps = 'none_such'"),
    ([*TRAIN, "--set", "data.validation_shar=1"], "did you mean 'validation_share'?"),
    ([*TRAIN, "--set", "modle.width=1"], "unknown setting 'modle.width'"),
    ([*TRAIN, "--config", "fields.toml"], "fields.toml: model: unknown field 'widht'"),
    ([*TRAIN, "--config", "kinds.toml"], "kinds.toml: unknown tokenizer kind 'bqe'"),
    ([*TRAIN, "--config", "no.toml"], "there is no recipe no.toml"),
    ([*TRAIN, "--device", "cuad"], "expected one of cpu, cuda, mps"),
    ([*TRAIN, "--minutes", "-1"], "expected more than 0"),
    (["train", "demo", "--set", "model.widht=3"], "did you mean 'width'?"),
    (["train", "d.csv", "--set", "training.bacth=3"], "did you mean 'batch'?"),
    (["train", "classify", "d.csv", "--set", "objective.smothing=1"], "did you mean 'smoothing'?"),
    (["train", "fill", "book.txt", "--model", "bert", "--set", "model.dept=1"], "did you mean 'depth'?"),
    (["train", "clasify", "d.csv"], "did you mean 'classify'?"),
    (["inspect", "gtp2"], "did you mean 'gpt2'?"),
    (["inspect", "qqqq"], "is no run, no recipe and no model"),
    (["inspect", "gpt2", "--set", "model.widht=3"], "did you mean 'width'?"),
    (["compare", "d.csv", "--models", "bert,brt"], "model=brt: unknown model 'brt'"),
    (["compare", "book.txt", "--vary", "model.widht=1,2"], "model.widht=1: model: unknown field 'widht'"),
    (["theory", "T99"], "did you mean 'T40'?"),
    (["export", "RUN", "x", "--to", "hff"], "did you mean 'hf'?"),
    (["tour", "--kind", "sofmax"], "did you mean 'softmax'?"),
]
ALL_IN_ONE = """
import contextlib, io, json, sys
from weft.cli.main import main
answers = []
for words in json.loads(sys.argv[1]):
    sys.argv, said = ["weft", *words], io.StringIO()
    with contextlib.redirect_stderr(said):
        try: main()
        except SystemExit as end: code = end.code
    answers.append([code, said.getvalue(), "torch" in sys.modules])
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("typed")
    (path / "book.txt").write_text("a cat sat on a mat. " * 50)
    (path / "d.csv").write_text("text,label\n" + "a good one,1\na bad one,0\n" * 20)
    (path / "fields.toml").write_text("[model]\nwidht = 3\n")
    (path / "kinds.toml").write_text('tokenizer = "bqe"\n')
    return path


@pytest.fixture(scope="module")
def answers(folder):
    """Of a process that has not loaded torch; one for all, as nothing stays behind."""
    words = json.dumps([words for words, _ in MISTAKES])
    done = subprocess.run(
        [sys.executable, "-c", ALL_IN_ONE, words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=SAME,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("number", range(len(MISTAKES)), ids=[" ".join(words) for words, _ in MISTAKES])
def test_a_typed_mistake_is_answered_without_torch_and_as_the_real_settings_would(number, answers, folder, monkeypatch):
    words, answer = MISTAKES[number]
    code, said, torch = answers[number]
    assert not torch
    assert answer in said and len(said.splitlines()) <= 3
    assert code == (1 if "no.toml" in words else 2)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["weft", *words])
    real = io.StringIO()  # torch is here: the index is not asked
    with contextlib.redirect_stderr(real), pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, real.getvalue()) == (code, said)


def test_the_index_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tests" / "make_index.py", "--check"], check=False, env=SAME)
    assert done.returncode == 0, "what can be chosen has changed:  python tests/make_index.py"


@pytest.fixture
def quick(monkeypatch):
    """The index is asked although torch is here."""
    for home in ("weft.tasks.mistakes", "weft.index"):
        monkeypatch.setattr(sys.modules[home], "is_enough", lambda: True)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "changes",
    [
        {"model.attention.heads": "7", "model.width": "32"},
        {"model.attention.kind": "local", "model.attention.window": "4"},
        {"model.attention.kind": "softmax,local"},
        {"model.position.kind": "alibi", "training.optimizer.kind": "adamw", "training.freeze": "embeddings"},
        {"tokenizer.vocab_size": "300", "data.validation_share": "0.2", "training.minutes": "none"},
    ],
)
def test_what_may_be_right_passes(changes):
    refuse_mistakes(["book.txt"], {}, changes=changes)


@pytest.mark.usefixtures("quick")
def test_a_recipe_may_say_what_is_an_option_too(tmp_path):
    (tmp_path / "r.toml").write_text('model = "gpt-tiny"\n[training]\nminutes = 1\nseed = 2\ndevice = "cpu"\n')
    refuse_mistakes(["book.txt"], {}, config=str(tmp_path / "r.toml"))


@pytest.mark.usefixtures("quick")
def test_settings_that_some_task_may_have_pass_while_the_task_is_not_known():
    with pytest.raises(ValueError, match="unknown field 'smothing'"):
        refuse_mistakes(["d.csv"], {}, task="classify", changes={"objective.smothing": "0.1"})
    refuse_mistakes(["d.csv"], {}, changes={"objective.smoothing": "0.1"})
    refuse_mistakes(["d.csv"], {"start": "runs/x"}, changes={"model.widht": "1"})
    refuse_mistakes(["d.csv"], {}, task="one-of-a-plugin", changes={"model.widht": "1"})


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", [*ModelConfig.registry, "gpt2", "vit-b"])
def test_every_model_can_be_inspected(name):
    refuse_inspection(name, {})


def test_stand_ins_have_the_defaults_of_the_real_ones():
    for kind, real in ModelConfig.registry.items():
        if "vocab_size" in real.__dataclass_fields__ and kind in known.index()["classes"]["ModelConfig"]["kinds"]:
            fields = {"kind": kind, "vocab_size": 9}
            try:
                expected = ModelConfig.from_config(fields).to_dict()
            except ValueError:
                continue
            assert stand_ins()["ModelConfig"].from_config(fields).to_dict() == expected


def test_a_new_file_in_the_package_is_found_before_the_index_is_made_anew(tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    kind = (
        "from weft.blocks.attention import SoftmaxConfig\n\nclass MineConfig(SoftmaxConfig, kind='mine'):\n    pass\n"
    )
    (tmp_path / "src" / "weft" / "blocks" / "attention" / "mine.py").write_text(kind)
    words = ["inspect", "gpt-tiny", "--set", "model.attention.kind=mine", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "weft", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=SAME | {"PYTHONPATH": str(tmp_path / "src")},
    )
    assert done.returncode == 0, done.stderr


def test_a_plugin_has_names_that_the_index_does_not_know(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from weft.text import TokenizerConfig\nclass MineConfig(TokenizerConfig, kind='mine'):\n    size: int = 1\n"
    )
    words = ["--plugin", str(file), "train", "no-such.txt", "--tokenizer", "mine", "--set", "tokenizer.sise=3"]
    done = subprocess.run(
        [sys.executable, "-m", "weft", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=SAME,
    )
    assert "unknown tokenizer kind" not in done.stderr and "did you mean 'size'?" in done.stderr
