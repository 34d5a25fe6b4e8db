"""BERT from Hugging Face into a run and back: the same numbers, ids and labels, and a certificate that can fail."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file, save_file

import weft
from fixtures.weights import move_weights
from weft.checkpoints import RunDirectory
from weft.checkpoints.hugging_face import write_folder
from weft.errors import DataError, UnsupportedError, WeftError
from weft.exchange.probes import TEXTS, ReadingProbe
from weft.exchange.transfer import export_run, import_model
from weft.models import BERTConfig, BertConverter, preset
from weft.text import TokenizerConfig
from weft.weights import Change, Row, WeightTable

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", *".,!", *LETTERS, *(f"##{c}" for c in LETTERS)]
SIZES = {
    "vocab_size": 66,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
NAMES = {"id2label": {0: "no", 1: "maybe", 2: "yes"}, "label2id": {"no": 0, "maybe": 1, "yes": 2}}
SEVERAL = {"problem_type": "multi_label_classification"}
SORTS = "BertForSequenceClassification"
CASES = {
    "trunk": ("BertModel", {}, "read", "AutoModel", "feature-extraction"),
    "masked": ("BertForMaskedLM", {}, "fill", "AutoModelForMaskedLM", "fill-mask"),
    "pretraining": ("BertForPreTraining", {}, "fill", "AutoModelForPreTraining", "fill-mask"),
    "classes": (SORTS, NAMES, "classify", f"AutoModel{SORTS[4:]}", "text-classification"),
    "several": (SORTS, {**NAMES, **SEVERAL}, "classify", f"AutoModel{SORTS[4:]}", "text-classification"),
    "number": (SORTS, {"num_labels": 1}, "classify", f"AutoModel{SORTS[4:]}", "text-classification"),
}


def model_of(case):
    """A model of theirs, with every parameter moved away from zeros and ones."""
    torch.manual_seed(1)
    model = getattr(transformers, CASES[case][0])(transformers.BertConfig(**SIZES, **CASES[case][1])).eval()
    move_weights(model)
    return model


def a_folder(path, case, tokenizer="vocab.txt"):
    """Their folder with BERT's vocabulary, or with the tokenizer.json that they make of it."""
    model = model_of(case)
    model.save_pretrained(path)
    (path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    if tokenizer == "tokenizer.json":
        transformers.AutoTokenizer.from_pretrained(path).save_pretrained(path)
        assert (path / "tokenizer.json").exists()
        (path / "vocab.txt").unlink(missing_ok=True)
    return model


@pytest.fixture
def imported(tmp_path):
    """`imported(case)`: the path of a run."""

    def make(case):
        a_folder(tmp_path / "hf", case)
        import_model(tmp_path / "hf", tmp_path / "run")
        return tmp_path / "run"

    return make


def encoded(tokenizer, pairs):
    """Their batch of texts, as they make it: padded, with segments."""
    firsts, seconds = zip(*pairs, strict=True)
    return tokenizer(list(firsts), list(seconds), padding=True, return_tensors="pt")


PAIRS = [("the cat, the cat!", "a dog"), ("x", "the cats sat on the mat."), ("ab", "c")]


def our_answer(model, batch):
    """What their `.logits` has, by our own call."""
    keep = batch["attention_mask"].bool()
    found = model(batch["input_ids"], batch["token_type_ids"], keep)
    return found[keep] if found.dim() == 3 else found


def their_answer(model, batch):
    found, keep = model(**batch), batch["attention_mask"].bool()
    if hasattr(found, "last_hidden_state"):
        return found.last_hidden_state[keep]
    logits = found.prediction_logits if hasattr(found, "prediction_logits") else found.logits
    return logits[keep] if logits.dim() == 3 else logits


# -- both ways --------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", ["vocab.txt", "tokenizer.json"])
@pytest.mark.parametrize("case", CASES)
def test_in_and_out_again(case, tokenizer, tmp_path):
    _, fields, task, auto, tag = CASES[case]
    model = a_folder(tmp_path / "hf", case, tokenizer)
    made = import_model(tmp_path / "hf", tmp_path / "run")
    assert made["task"] == task == json.loads((tmp_path / "run" / "config.json").read_text())["task"]
    run, theirs = weft.load(tmp_path / "run"), transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    batch = encoded(theirs, PAIRS)
    with torch.no_grad():
        expected = their_answer(model, batch)
        assert (our_answer(run.model, batch) - expected).abs().max() < 1e-5
        assert (our_answer(weft.load(tmp_path / "hf").model, batch) - expected).abs().max() < 1e-5
    assert expected.abs().max() > 0.1 and not batch["attention_mask"].all() and batch["token_type_ids"].any()

    certificate = export_run(tmp_path / "run", tmp_path / "back")
    assert certificate["architecture"] == CASES[case][0] and certificate["auto_class"] == auto
    assert certificate["transformers"]["difference"] < 1e-5 and certificate["transformers"]["pairs_tokenised"] == 9
    assert len(certificate["compared"]) == (3 if case == "pretraining" else 2)
    again = getattr(transformers, auto).from_pretrained(tmp_path / "back").eval()
    assert type(again) is type(model)
    state, wanted = again.state_dict(), model.state_dict()
    assert state.keys() == wanted.keys() and all(torch.equal(state[name], wanted[name]) for name in state)
    assert again.config.id2label == model.config.id2label and again.config.pad_token_id == 0
    assert "problem_type" not in fields or again.config.problem_type == fields["problem_type"]
    exported = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    for key, values in encoded(exported, PAIRS).items():
        assert torch.equal(values, batch[key]), key
    card = (tmp_path / "back" / "README.md").read_text()
    assert f"pipeline_tag: {tag}\n" in card and f"import {auto}, AutoTokenizer" in card
    assert not (tmp_path / "back" / "generation_config.json").exists()  # it does not write

    import_model(tmp_path / "back", tmp_path / "twice")
    twice = weft.load(tmp_path / "twice")
    assert twice.model_config == run.model_config and twice.tokenizer.fingerprint == run.tokenizer.fingerprint


def test_pipelines_open_what_was_exported(imported, tmp_path):
    run = weft.load(imported("classes"))
    run.export(tmp_path / "out")
    sorts = transformers.pipeline("text-classification", model=str(tmp_path / "out"), device="cpu")
    for text in ("the cat", "a dog!", "x, y"):
        ids, segments = (torch.from_numpy(part.astype("int64"))[None] for part in run.tokenizer.encode_pair(text))
        with torch.no_grad():
            shares = run.model(ids, segments).softmax(-1)[0]
        found = sorts(text)[0]
        assert found["label"] == run.model_config.head.labels[int(shares.argmax())]
        assert abs(found["score"] - float(shares.max())) < 1e-5


@pytest.mark.parametrize("case", ["masked", "pretraining"])
def test_gaps_are_filled_with_the_same_tokens(case, imported, tmp_path):
    run = weft.load(imported(case))
    run.export(tmp_path / "out")
    fills = transformers.pipeline("fill-mask", model=str(tmp_path / "out"), device="cpu", top_k=3)
    body = run.tokenizer.encode_with_mask("the [MASK], a dog.").tolist()
    ids = torch.tensor([[run.tokenizer.special.classify, *body, run.tokenizer.special.separate]])
    with torch.no_grad():
        shares = run.model(ids)[0, 1 + body.index(4)].softmax(-1)
    found = fills("the [MASK], a dog.")
    assert [entry["token"] for entry in found] == shares.topk(3).indices.tolist()
    assert abs(found[0]["score"] - float(shares.max())) < 1e-5


def test_labels_and_kinds_of_labels_come_along(imported):
    head = weft.load(imported("several")).model_config.head
    assert head.multilabel and head.labels == ("no", "maybe", "yes") and head.classes == 3


# -- our own runs -----------------------------------------------------------------------------

PARTS = preset("bert-base")[1] | {"width": 32, "depth": 2, "max_length": 40}
PARTS |= {"attention": {"kind": "softmax", "heads": 4}}
TEXT = "The cat sat on the mat, and the dog ran under the tree. Naïve cafés — 你好!\n" * 20
RESERVED = ["[PAD]", "[CLS]", "[SEP]", "[MASK]"]


def a_run(path, kind="wordpiece", **fields):
    """A BERT with a tokenizer of ours, as far as using it goes."""
    special = () if kind == "wordpiece" else RESERVED
    tokenizer = TokenizerConfig.from_config({"kind": kind}).train([TEXT], special=special)
    config = BERTConfig(**PARTS | {"vocab_size": tokenizer.vocab_size} | fields)
    torch.manual_seed(2)
    model = config.build()
    move_weights(model)
    run = RunDirectory.create(path)
    tokenizer.save(run.tokenizer_file)
    run.write_model(dict(model.named_parameters()))
    run.write_config({"task": "fill", "model": config.to_dict(), "origin": {"converter": "bert", "source": "here"}})
    return weft.load(path)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "words", "characters"])
def test_our_tokenizers_join_pairs_there_as_here(kind, tmp_path):
    run = a_run(tmp_path / "run", kind)
    found = export_run(tmp_path / "run", tmp_path / "hf")["transformers"]
    assert found["texts_tokenised"] == len(TEXTS) and found["pairs_tokenised"] == 9
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    for first, second in PAIRS:
        ids, segments = run.tokenizer.encode_pair(first, second)
        assert theirs(first, second)["input_ids"] == ids.tolist()
        assert theirs(first, second)["token_type_ids"] == segments.tolist()
    assert theirs.mask_token_id == run.tokenizer.special.mask and theirs.pad_token_id == run.tokenizer.special.pad
    settings = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert settings["pad_token_id"] == run.tokenizer.special.pad


def test_a_tokenizer_that_cannot_join_texts_is_exported_without_that_promise(tmp_path):
    tokenizer = TokenizerConfig.from_config("characters").train([TEXT])
    a_run(tmp_path / "run", vocab_size=tokenizer.vocab_size)
    tokenizer.save(tmp_path / "run" / "tokenizer.json")
    found = export_run(tmp_path / "run", tmp_path / "hf")["transformers"]
    assert found["texts_tokenised"] == len(TEXTS) and "pairs_tokenised" not in found


def test_a_model_without_a_tokenizer_goes_both_ways(tmp_path):
    model = model_of("classes")
    model.save_pretrained(tmp_path / "hf")
    made = import_model(tmp_path / "hf", tmp_path / "run")
    assert made["tokenizer"] is None and made["notes"] == ["there is no tokenizer: the model reads ids only"]
    assert export_run(tmp_path / "run", tmp_path / "back")["transformers"]["difference"] < 1e-5
    assert not (tmp_path / "back" / "tokenizer_config.json").exists()


def test_our_default_parts_are_refused_with_what_to_do(tmp_path):
    tokenizer = TokenizerConfig.from_config("wordpiece").train([TEXT])
    run = RunDirectory.create(tmp_path / "run")
    config = BERTConfig(vocab_size=tokenizer.vocab_size, width=32, depth=1)
    tokenizer.save(run.tokenizer_file)
    run.write_model(dict(config.build().named_parameters()))
    run.write_config({"task": "fill", "model": config.to_dict(), "origin": {"converter": "bert", "source": "here"}})
    with pytest.raises(UnsupportedError, match="position is learned there, not rotary; norm_first") as caught:
        export_run(tmp_path / "run", tmp_path / "hf")
    assert "--model bert-base" in str(caught.value) and os.listdir(tmp_path) == ["run"]


# -- negative controls: an export that is wrong is caught -------------------------------------

FLIP = Change(lambda rows: rows.flip(0), lambda rows: rows.flip(0))


def with_rows(monkeypatch, edit):
    """The converter's table, changed in both directions alike: Weft reads what it wrote, others read it wrongly."""
    real = BertConverter.table

    def table(self, config, **options):
        return WeightTable(*(edit(row) for row in real(self, config, **options).rows))

    monkeypatch.setattr(BertConverter, "table", table)


def flipped(name):
    """One tensor with its rows in the other order."""
    return lambda row: Row(row.foreign, row.ours, row.transposed, FLIP) if row.foreign.endswith(name) else row


def exchanged(one, other):
    """Two tensors under each other's name."""

    def edit(row):
        if not isinstance(row, Row):
            return row
        swapped = row.foreign.replace(one, "?").replace(other, one).replace("?", other)
        return Row(swapped, row.ours, row.transposed, row.change)

    return edit


WRONG_ROWS = {
    "segments": ("masked", flipped("token_type_embeddings.weight"), "states"),
    "positions": ("masked", flipped("position_embeddings.weight"), "states"),
    "query and key": ("masked", exchanged("self.query", "self.key"), "states"),
    "the two norms": ("masked", exchanged("attention.output.LayerNorm", "output.LayerNorm"), "states"),
    "the bias of the vocabulary": ("masked", flipped("cls.predictions.bias"), "masked_logits"),
    "the map before the vocabulary": ("pretraining", flipped("transform.dense.weight"), "masked_logits"),
    "yes and no": ("pretraining", flipped("seq_relationship.weight"), "pair_logits"),
    "the pooler": ("trunk", flipped("pooler.dense.weight"), "pooled"),
    "classes": ("classes", flipped("classifier.weight"), "class_logits"),
    "the bias of classes": ("several", flipped("classifier.bias"), "class_logits"),
}


@pytest.mark.parametrize("what", WRONG_ROWS)
def test_rows_in_the_wrong_place_are_caught(what, imported, tmp_path, monkeypatch):
    case, edit, part = WRONG_ROWS[what]
    run = imported(case)
    with_rows(monkeypatch, edit)
    with pytest.raises(DataError, match=f"opened by transformers, the folder gives ({part}) that differ"):
        export_run(run, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["hf", "run"]
    monkeypatch.undo()
    export_run(run, tmp_path / "out")


def changed(name, **settings):
    """Fields of a JSON file set to something else, or gone."""

    def damage(folder):
        found = json.loads((folder / name).read_text()) | settings
        (folder / name).write_text(json.dumps({k: v for k, v in found.items() if v != "gone"}))

    return damage


def two_rows_swapped(folder):
    tensors = load_file(folder / "model.safetensors")
    table = tensors["bert.embeddings.word_embeddings.weight"]
    table[[7, 8]] = table[[8, 7]]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


SHUFFLED = {"id2label": {"0": "yes", "1": "maybe", "2": "no"}}
DAMAGE = {
    "two rows swapped": (two_rows_swapped, "'tokens.weight' and 0 more are not what was written"),
    "labels": (changed("config.json", **SHUFFLED), "config.json describes another model"),
    "kind of labels": (changed("config.json", **SEVERAL), "config.json describes another model"),
    "eps": (changed("config.json", layer_norm_eps=1e-5), "config.json describes another model"),
    "activation": (changed("config.json", hidden_act="relu"), "config.json describes another model"),
    "segments left out": (changed("tokenizer_config.json", model_input_names=["input_ids"]), "the segments for"),
    "no mask token": (changed("tokenizer_config.json", mask_token="gone"), "the mask_token"),
    "another pad token": (changed("tokenizer_config.json", pad_token="[SEP]"), "the pad_token"),
    "texts are not joined": (changed("tokenizer.json", post_processor=None), "with special tokens"),
    "capitals count": (changed("tokenizer.json", normalizer=None), "the ids for 'Once upon"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_export_is_caught(what, imported, tmp_path, monkeypatch):
    damage, words = DAMAGE[what]
    run = imported("classes")

    def write_wrongly(folder, *parts):
        write_folder(folder, *parts)
        damage(folder)

    monkeypatch.setattr("weft.exchange.transfer.write_folder", write_wrongly)
    with pytest.raises(DataError, match=words) as caught:
        export_run(run, tmp_path / "out")
    assert len(str(caught.value).splitlines()) <= 3 and sorted(os.listdir(tmp_path)) == ["hf", "run"]


def test_the_probe_sees_padding_and_segments(imported):
    """A model that forgot either would be another one."""
    run = weft.load(imported("classes"))
    probe = ReadingProbe(run.model_config)
    with torch.no_grad():
        right = probe.ours(run.model)
        keep, probe.keep = probe.keep, torch.ones_like(probe.keep)
        assert (probe.ours(run.model)["class_logits"] - right["class_logits"]).abs().max() > 1e-2
        probe.keep, probe.segments = keep, torch.zeros_like(probe.segments)
        assert (probe.ours(run.model)["states"] - right["states"]).abs().max() > 1e-2
    assert not keep.all() and probe.tokens == int(keep.sum())


# -- what cannot be imported ------------------------------------------------------------------


def without(name):
    def damage(folder):
        tensors = load_file(folder / "model.safetensors")
        del tensors[name]
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return damage


HOSTILE = {
    "a tensor is missing": (without("classifier.bias"), "nothing in the file fills 'classes.1.bias'"),
    "more labels than rows": (
        changed("config.json", id2label={str(i): f"l{i}" for i in range(4)}),
        "'classifier.(weight|bias)' has shape",
    ),
    "labels that occur twice": (changed("config.json", id2label={"0": "a", "1": "a", "2": "b"}), "twice"),
    "another problem": (changed("config.json", problem_type="ranking"), "problem_type = 'ranking'"),
    "another class": (changed("config.json", architectures=["BertForMultipleChoice"]), "MultipleChoice"),
    "a vocabulary that is too large": (
        lambda folder: (folder / "vocab.txt").write_text("\n".join([*WORDS, *(f"word{c}" for c in LETTERS)])),
        "tokens, the model in",
    ),
    "a vocabulary with a word twice": (
        lambda folder: (folder / "vocab.txt").write_text("\n".join([*WORDS, "the"])),
        "has 'the' on the lines 6 and",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_damaged_folders_are_not_imported(what, tmp_path):
    damage, words = HOSTILE[what]
    a_folder(tmp_path / "hf", "classes")
    import_model(tmp_path / "hf", tmp_path / "sound")
    damage(tmp_path / "hf")
    with pytest.raises(WeftError, match=words) as caught:
        import_model(tmp_path / "hf", tmp_path / "run")
    assert len(str(caught.value).splitlines()) <= 3 and sorted(os.listdir(tmp_path)) == ["hf", "sound"]
