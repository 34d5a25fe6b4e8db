"""Every command and every snippet in README and docs is executed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import weft
from conformance import attention_checks
from fixtures.commands import generator_command, image_classifier_command, run_weft
from fixtures.images import write_image_folder
from fixtures.plugins import restore_registries, write_plugins
from fixtures.tables import write_parallel_files, write_translation_table
from fixtures.texts import make_text
from weft.blocks import AttentionConfig
from weft.checkpoints.hugging_face import write_folder
from weft.cost.flops import walk
from weft.models import BERTConfig, ModelConfig, TransformerConfig, converter_for, preset
from weft.text import TokenizerConfig

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page, language):
    return [body for tag, body in FENCE.findall(page.read_text(encoding="utf-8")) if tag == language]


def execute(page):
    """All Python of a page, as one program from top to bottom."""
    module = sys.modules["page"] = types.ModuleType("page")
    for body in blocks(page, "python"):
        exec(compile(body, str(page), "exec", dont_inherit=True), vars(module))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_snippets_run(page, desk, monkeypatch):
    """Training at a scale for tests; what a page says was trained on the command line before is there."""
    real = weft.train

    def quick(data, **options):
        options.pop("minutes", None)
        tiny = {"model.width": 16, "model.depth": 1, "model.max_length": 32, "model.attention.heads": 2}
        tiny = {} if COUNTED.search(options.get("model", "")) else tiny
        return real(data, steps=3, tokenizer="characters", set=tiny, threads=1, **options)

    monkeypatch.setattr(weft, "train", quick, raising=False)
    if "runs/book" in page.read_text(encoding="utf-8"):
        quick("book.txt", out="runs/book")
    if 'load("runs/flowers")' in page.read_text(encoding="utf-8"):
        run_weft(*image_classifier_command("flowers", "runs/flowers", 2), cwd=desk)
    if 'load("runs/vectors")' in page.read_text(encoding="utf-8"):
        run_weft("train", "embed", "book.txt", "--steps", "2", "--out", "runs/vectors", cwd=desk)
    put_bert(page, desk)
    put_marian(page, desk)
    with restore_registries():
        execute(page)


def test_the_guides_own_kind_passes_the_conformance_suite():
    with restore_registries():
        execute(ROOT / "docs/guides/add-an-attention.md")
        for config in (
            AttentionConfig.from_config("top-k"),
            AttentionConfig.from_config({"kind": "top-k", "k": 2, "heads": 1}),
        ):
            for check in attention_checks.ALL.values():
                check(config)


def test_the_guides_own_kind_is_everywhere(tmp_path):
    """No file of src/ knows of it: it is trained, counted, inspected, looked into and drawn as any other."""
    (tmp_path / "book.txt").write_text(make_text(3000))
    with restore_registries():
        execute(ROOT / "docs/guides/add-an-attention.md")

        def weft_says(*words):
            return json.loads(run_weft(*words, "--json", cwd=tmp_path).stdout)

        words = generator_command("book.txt", "run", 3, "--set", "model.attention.kind=top-k")
        run_weft(*words, "--set", "model.attention.k=3", cwd=tmp_path)
        shared = {"kind": "gpt", "vocab_size": 50, "width": 32, "depth": 2}
        ours, full = (ModelConfig.from_config({**shared, "attention": kind}) for kind in ("top-k", "softmax"))
        ours, full = (walk(config, batch=2, length=70).parts["attention scores"] for config in (ours, full))
        assert (ours.forward, ours.backward) == (full.forward, full.backward)
        told = weft_says("inspect", "run")["flops"]
        assert told["parts"]["attention scores"]["forward"] == 2 * 6 * 16 * 16 * (16 + 16) * 2
        health = weft_says("inspect", "run", "--health")["health"]
        assert [len(layer["heads"]) for layer in health["layers"]] == [2, 2]
        reach = weft_says("inspect", "run", "--reach")["reach"]
        assert len(reach["layers"]) == 2 and set(reach["predicted"][0]) == {"1"}
        (first, _) = weft_says("attention", "run", "the cat sat", "--weights")["maps"]
        for row in first["heads"][0]["weights"]:
            assert sum(row) == pytest.approx(1, abs=1e-3) and sum(weight > 0 for weight in row) <= 3
        assert first["rows"] == "sums to one" and first["heads"][0]["entropy"] > 0
        (drawn,) = weft_says("attention", "--patterns", "--kind", "top-k", "--set", "k=2")["patterns"]
        assert drawn["cost"].startswith("N² pairs") and drawn["encoder"]["pairs"] <= 24 * 3


def commands(page):
    for body in blocks(page, "console"):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command.split("  #")[0].strip(), output


SMALL = ["--steps", "3", "--tokenizer", "characters"]
SMALL += [
    word
    for size in ("width=16", "depth=1", "max_length=32", "attention.heads=2")
    for word in ("--set", "model." + size)
]


RECURRENT = re.compile(r"\b(rnn|gru|lstm)\b")  # models without a longest text and without heads
PAIRED = re.compile(r"\b(seq2seq|bahdanau)\b")  # and those without heads
COUNTED = re.compile(r"\w+gram\b")  # models that have no sizes but their order
IMAGES = {"flowers", "vit"}  # words of a command that trains on images, which have no tokens
SIZELESS = re.compile("bag-of-words")  # models without layers


def small(words):
    """A training command at a scale for tests: a few steps of a tiny model instead of minutes."""
    if words[0] not in ("train", "resume", "compare") or "--resume" in words:
        return words
    kept = [w for i, w in enumerate(words) if w != "--minutes" and (i == 0 or words[i - 1] != "--minutes")]
    if "--models" in kept:  # each is a process of its own; the first and the last will do
        models = kept[kept.index("--models") + 1].split(",")
        kept[kept.index("--models") + 1] = f"{models[0]},{models[-1]}"
    if words[0] == "resume":
        return kept if kept == words else [*kept, "--steps", "2"]
    if (IMAGES | {"embed"}) & set(words) or any(COUNTED.search(word) or SIZELESS.search(word) for word in words):
        return [*kept[:1], *SMALL[:2], *kept[1:]]
    sizes = SMALL[:2] if "--from" in words else SMALL  # what it starts from has its sizes already
    if any(map(PAIRED.search, words)):
        sizes = SMALL[:-2]
    if any(map(RECURRENT.search, words)):
        sizes = SMALL[:-4]
    return [*kept[:1], *sizes, *kept[1:]]


def reviews(count, seed, copied=""):
    """A table of texts and labels; a part of it may be copied from another one."""
    sentences = make_text(60 * count, seed).splitlines()[:count]
    rows = [f'"{line}",{("good", "bad", "good")[n % 3]}\n' for n, line in enumerate(sentences)]
    return "text,label\n" + "".join(rows) + "".join(copied.splitlines(keepends=True)[1:])


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a book, tables and pairs of texts in it, as the pages assume."""
    (tmp_path / "book.txt").write_text(make_text(3000))
    (tmp_path / "reviews.csv").write_text(reviews(200, seed=1))
    (tmp_path / "reviews-test.csv").write_text(reviews(47, seed=2, copied=reviews(3, seed=1)))
    write_translation_table(tmp_path / "pairs.tsv", 60)
    for seed, name in enumerate(("train", "val", "test")):
        write_parallel_files(tmp_path, name, 60 if name == "train" else 8, seed)
    (tmp_path / "sources.txt").write_text("the house\n\na story of it\n")
    for seed, part in enumerate(("train", "test")):
        write_image_folder(tmp_path / "flowers" / part, 24, seed)
    shutil.copy(next((tmp_path / "flowers" / "test").rglob("*.png")), tmp_path / "tulip.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put_bert(page, desk):
    """The Hugging Face folder that a page takes for granted."""
    if "models/bert" not in page.read_text(encoding="utf-8"):
        return
    tokenizer = TokenizerConfig.from_config("wordpiece").train([make_text(3000)])
    fields = preset("bert-base")[1] | {"vocab_size": tokenizer.vocab_size, "width": 16, "depth": 1, "max_length": 64}
    config = BERTConfig(**fields | {"attention": {"kind": "softmax", "heads": 2}, "head": "masked"})
    folder = desk / "models" / "bert"
    folder.mkdir(parents=True)
    write_folder(folder, converter_for(config), config, dict(config.build().named_parameters()), tokenizer)


def put_marian(page, desk):
    """The same for a model that translates."""
    if "models/marian" not in page.read_text(encoding="utf-8"):
        return
    tokenizer = TokenizerConfig.from_config("bpe").train([make_text(3000)])
    sizes = {"vocab_size": tokenizer.vocab_size, "start": tokenizer.end, "width": 16, "depth": 1, "max_length": 64}
    fields = preset("transformer-base")[1] | sizes | {"attention": {"kind": "softmax", "heads": 2}}
    config = TransformerConfig(**fields)
    folder = desk / "models" / "marian"
    folder.mkdir(parents=True)
    write_folder(folder, converter_for(config), config, dict(config.build().named_parameters()), tokenizer)


TYPED = [p for p in PAGES if blocks(p, "console")]
SLOW = {
    f"{name}.md"
    for name in [
        "write-with-a-model",
        "translate",
        "fill-in-words",
        "classify-images",
        "to-and-from-hugging-face",
        "bottleneck",
        "ladder",  # its commands are README's too
        "recurrent",
    ]
}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in SLOW else []) for page in TYPED],
)
def test_commands_work(page, desk):
    """All commands of a page, in order, in one folder; a run that the page takes for granted is there."""
    lines = list(commands(page))
    put_bert(page, desk)
    put_marian(page, desk)
    if any("runs/book" in line for line, _ in lines) and not any("--out runs/book" in line for line, _ in lines):
        check_weft_line(small(["train", "book.txt", "--out", "runs/book"]), "", desk)
    write_plugins(page, desk)
    with restore_registries():
        check_lines(lines, desk)


def check_lines(lines, desk):
    for command, output in lines:
        words = shlex.split(command)
        if words[0] == "make":  # these run this very suite or set it up; their targets must exist
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in words[1:])
        elif "venv" in words:
            assert words[1:3] == ["-m", "venv"]
        elif "pip" in words:
            check_pip_line(words)
        else:
            assert words[0].removeprefix(".venv/bin/") == "weft", f"do not know how to check {command!r}"
            check_weft_line(small(words[1:]), output, desk)


def check_weft_line(words, output, folder):
    if not output.strip():  # in this process, which has torch loaded already
        run_weft(*words, cwd=folder)
        return
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    result = subprocess.run(
        [sys.executable, "-m", "weft", *words], cwd=folder, env=env, capture_output=True, check=False, encoding="utf-8"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == output.strip()


def check_pip_line(words):
    assert words[1:4] == ["-m", "pip", "install"]
    assert words[words.index("-c") + 1] == "constraints.txt"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extras in re.findall(r"\.\[([\w,]+)\]", " ".join(words)):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    for pinned in (word for word in words if "==" in word):
        assert pinned in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
