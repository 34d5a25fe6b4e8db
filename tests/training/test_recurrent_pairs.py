"""`weft train translate --model seq2seq|bahdanau`: the whole way, the same bytes after a stop, and what is refused."""

import json

import numpy as np
import pytest

import weft as package
from fixtures.commands import read_error_lines, run_until_crash, run_weft, set_flags
from fixtures.runs import hash_run, read_metrics
from fixtures.tables import make_reversals, write_translation_table
from weft.models import BahdanauConfig, ModelConfig, Seq2SeqConfig, Seq2SeqLM, sizing_of
from weft.models.seq2seq import SIZES as SIZE_PRESETS
from weft.report import training_report
from weft.tasks.translate.task import pair_budget
from weft.training.optimizer import MuonConfig
from weft.training.trainer import Trainer

KINDS = ("seq2seq", "bahdanau")
SIZES = [
    "model.width=16", "model.depth=1", "model.max_length=24", "model.dropout=0.1", "training.batch=2",
    "training.micro_batch=1", "objective.batch_tokens=150", "objective.respelling=0.2", "training.precision=float32",
]  # fmt: skip
EVERY = ["training.evaluate_every=3", "training.checkpoint_every=2", "training.average=2"]
TEXT = "the film was a story of it"
STEPS = 6


def words(kind, out, *more, data="pairs.tsv", steps=STEPS):
    start = ["train", "translate", data, "--model", kind, "--steps", str(steps), "--out", str(out), "--threads", "1"]
    return [*start, *set_flags(*SIZES), *more]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recurrent")
    write_translation_table(folder / "pairs.tsv", 40)
    write_translation_table(folder / "test.tsv", 6, seed=9)
    for kind in KINDS:
        run_weft(*words(kind, kind, "--test", "test.tsv", *set_flags(*EVERY)), cwd=folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_and_is_measured(folder, kind):
    lines = read_metrics(folder / kind)
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.2
    checks = [line for line in lines if "validation_bleu" in line]
    assert [line["step"] for line in checks] == [3, 6] and "validation_chrf" in checks[0]
    test = json.loads((folder / kind / "test.json").read_text())
    assert 0 <= test["bleu"] <= 100 and sum(row["pairs"] for row in test["by_length"]) == 6
    assert "By the length of the source" in training_report(folder / kind)
    run = package.load(folder / kind)
    assert run.task == "translate" and "weft translate" in (folder / kind / "README.md").read_text()
    found = json.loads(run_weft("evaluate", kind, "--json", cwd=folder).stdout)
    assert found["bleu"] == pytest.approx(test["bleu"]) and found["by_length"] == test["by_length"]
    table = run_weft("evaluate", kind, cwd=folder).stdout.splitlines()
    assert table[1].split() == ["words", "of", "the", "source", "pairs", "BLEU", "exact"] and len(table) > 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_changes_nothing(folder, kind):
    more = ["--test", "test.tsv", *set_flags(*EVERY)]
    run_until_crash((Trainer, "_step", 5, True), *words(kind, f"{kind}-crashed", *more), cwd=folder)
    run_weft("resume", f"{kind}-crashed", cwd=folder)
    assert hash_run(folder / f"{kind}-crashed") == hash_run(folder / kind)
    assert (folder / f"{kind}-crashed" / "test.json").read_bytes() == (folder / kind / "test.json").read_bytes()
    run_weft(*words(kind, f"{kind}-seeded", *more, "--seed", "1"), cwd=folder)
    assert hash_run(folder / f"{kind}-seeded")["model.safetensors"] != hash_run(folder / kind)["model.safetensors"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_verb_is_the_same(folder, kind, tmp_path):
    texts = [source for source, _ in make_reversals(5, seed=8)]
    run = package.load(folder / kind)
    alone = [run.translate(text).text for text in texts]
    assert [one.text for one in run.translate(texts)] == alone
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts))
    run_weft("translate", kind, "--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt"), cwd=folder)
    assert (tmp_path / "out.txt").read_text() == "".join(" ".join(text.splitlines()) + "\n" for text in alone)
    best = run.translate(TEXT, best=3, beams=4)
    assert len(best.others) == 2 and best.score >= best.others[0].score >= best.others[1].score
    greedy = run_weft("translate", kind, TEXT, "--beams", "1", cwd=folder).stdout
    assert greedy == run_weft("translate", kind, TEXT, "--beams", "1", "--alpha", "0", cwd=folder).stdout


def test_additive_weights_are_the_alignment(folder):
    shown = json.loads(run_weft("translate", "bahdanau", TEXT, "--align", "--json", cwd=folder).stdout)
    words = "".join(link["word"] for link in shown["alignment"])
    assert "".join(words.split()) == "".join(shown["translation"].split())
    for link in shown["alignment"]:
        weights = [share for _, share in link["looks"]]
        assert 0.3 < sum(weights) <= 1 + 1e-6 and link["weight"] == max(weights)
    for text in (TEXT, ""):  # before anything is searched for
        refused = run_weft("translate", "seq2seq", text, "--align", cwd=folder, check=False)
        assert (
            refused.returncode == 1
            and "nothing looks at the source" in refused.stderr
            and len(read_error_lines(refused)) <= 3
        )
        assert refused.stdout == ""


@pytest.mark.parametrize("kind", KINDS)
def test_separate_vocabularies_and_a_beginning_from_it(folder, kind):
    run_weft(
        *words(kind, f"{kind}-two", *set_flags("data.vocabularies=separate", "model.depth=2"), steps=2), cwd=folder
    )
    two = package.load(folder / f"{kind}-two")
    assert two.source_tokenizer is not two.tokenizer and two.model.source_tokens is not None
    assert two.translate(TEXT).source == TEXT
    run_weft(
        "train", "translate", "test.tsv", "--from", f"{kind}-two", "--freeze", "1", "--steps", "1", "--threads", "1",
        "--out", f"{kind}-further", cwd=folder,
    )  # fmt: skip
    before, after = (
        dict(package.load(folder / name).model.named_parameters()) for name in (f"{kind}-two", f"{kind}-further")
    )
    same = {name for name in before if bool((before[name] == after[name]).all())}
    frozen = {
        n for n in before if n.startswith(("tokens.", "source_tokens.", "encoder.layers.0.", "decoder.layers.0."))
    }
    assert same == frozen and set(before) - frozen


def test_lengths_are_told_of_what_was_held_out_if_there_is_no_test(folder):
    run_weft(*words("seq2seq", "untested", steps=2), cwd=folder)
    rows = json.loads((folder / "untested" / "by_length.json").read_text())
    assert sum(row["pairs"] for row in rows) == 4 and not (folder / "untested" / "test.json").exists()
    assert "By the length of the source" in training_report(folder / "untested")
    found = json.loads(run_weft("evaluate", "untested", "--json", cwd=folder).stdout)
    assert [row["words"] for row in found["by_length"]] == [row["words"] for row in rows]


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (["train", "fill", "pairs.tsv", "--model", "seq2seq"], 2, "not for fill"),
        (["train", "fill", "pairs.tsv", "--model", "bahdanau"], 2, "not for fill"),
        (["train", "translate", "pairs.tsv", "--model", "bahdanu"], 2, "did you mean 'bahdanau'?"),
        (["train", "translate", "pairs.tsv", "--model", "seq2sec"], 2, "did you mean 'seq2seq'?"),
        (
            ["train", "translate", "pairs.tsv", "--model", "seq2seq", *set_flags("model.attention.heads=2")],
            2,
            "attention",
        ),
        (
            ["train", "translate", "pairs.tsv", "--model", "seq2seq", *set_flags("model.revers=1")],
            2,
            "did you mean 'reverse'?",
        ),
        (["train", "translate", "pairs.tsv", "--model", "bahdanau", *set_flags("model.depth=0")], 2, "depth"),
        (
            ["train", "translate", "pairs.tsv", "--model", "seq2seq", "--freeze", "7", *set_flags("model.depth=1")],
            2,
            "at most",
        ),
        (["export", "seq2seq", "away", "--to", "hf"], 1, "not seq2seq"),
        (["export", "bahdanau", "away", "--to", "hf"], 1, "not bahdanau"),
        (["generate", "seq2seq", "The"], 1, "writes one text from another"),
        (["embed", "bahdanau", "The"], 1, "gives no vectors of texts"),
        (["fill", "bahdanau", "The [MASK]"], 1, "does not fill in"),
    ],
)
def test_what_cannot_be_is_refused(folder, typed, code, said):
    result = run_weft(*typed, cwd=folder, check=False)
    assert result.returncode == code, result.stderr
    assert said in result.stderr and "Traceback" not in result.stderr and len(read_error_lines(result)) <= 3
    assert not (folder / "away").exists() and not (folder / "runs").exists()


# -- planning ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_more_time_plans_a_larger_model(kind):
    model = ModelConfig.from_config({"kind": kind, "vocab_size": 2000})

    def size(model, flops, tokens):
        return sizing_of(model.kind, Seq2SeqLM).choose(pair_budget(flops, tokens), model).model

    widths = [size(model, flops, 100_000)["width"] for flops in 10.0 ** np.arange(8, 19)]
    assert widths == sorted(widths) and widths[0] == SIZE_PRESETS[0][0] and widths[-1] == SIZE_PRESETS[-1][0]
    assert model.override(size(model, 1e14, 100_000)).width in {one[0] for one in SIZE_PRESETS}
    transformer = ModelConfig.from_config({"kind": "transformer", "vocab_size": 2000})
    assert size(transformer, 1.0, 100)["attention.heads"] == 4


def test_each_gate_is_a_matrix_of_its_own():
    """The optimizer turns each of the three alone: rows of one gate do not change what another's become."""
    for config in (Seq2SeqConfig(vocab_size=9, width=8), BahdanauConfig(vocab_size=9, width=8)):
        model = config.build()
        names = {p: name for name, p in model.named_parameters()}
        groups = {names[p]: group for group in MuonConfig().build(model).param_groups for p in group["params"]}
        gates = {name for name, group in groups.items() if group["heads"] == 3}
        own = {"encoder.layers.0.weight_ih_l0", "encoder.layers.0.weight_hh_l0"}
        own |= {f"{name}_reverse" for name in own} if config.kind == "bahdanau" else set()
        layer = "decoder.layers.0"
        if config.kind == "bahdanau":
            own |= {f"{layer}.{part}.weight" for part in ("input", "context", "state")}
        else:
            own |= {f"{layer}.weight_ih_l0", f"{layer}.weight_hh_l0"}
        assert gates == own and all(groups[name]["muon"] for name in own)
