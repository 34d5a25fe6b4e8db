"""BERT against Hugging Face's own code, tiny and random: states, logits, gradients, and folders both ways."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from fixtures.weights import move_weights
from parity.peers import compute_named_gradients, largest_difference, read_model
from weft.checkpoints.hugging_face import HuggingFaceFolder, write_folder
from weft.errors import DataError, UnsupportedError, WeightsError
from weft.models import BERTConfig, converter_for, encode, encode_first, preset

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SIZES = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 20,
}
NAMES = {"id2label": {0: "no", 1: "maybe", 2: "yes"}, "label2id": {"no": 0, "maybe": 1, "yes": 2}}
CASES = {
    "trunk": ("BertModel", {}),
    "masked": ("BertForMaskedLM", {}),
    "pairs": ("BertForNextSentencePrediction", {}),
    "pretraining": ("BertForPreTraining", {"hidden_act": "relu", "layer_norm_eps": 1e-3}),
    "classes": ("BertForSequenceClassification", {**NAMES, "classifier_dropout": 0.3}),
    "nameless classes": ("BertForSequenceClassification", {"num_labels": 5, "hidden_act": "gelu_new"}),
    "regression": ("BertForSequenceClassification", {"num_labels": 1, "problem_type": "regression"}),
    "several labels": ("BertForSequenceClassification", {**NAMES, "problem_type": "multi_label_classification"}),
    "tokens": ("BertForTokenClassification", {**NAMES, "classifier_dropout": 0.3}),
    "nameless tokens": ("BertForTokenClassification", {"num_labels": 5}),
    "three segments": ("BertForMaskedLM", {"type_vocab_size": 3}),
}


PROBLEM = ("single_label_classification", "regression", None)  # what none at all means, written down


def theirs(case):
    """A model of theirs, with every parameter moved away from zeros and ones."""
    name, fields = CASES[case]
    torch.manual_seed(1)
    model = getattr(transformers, name)(transformers.BertConfig(**SIZES, **fields)).eval()
    move_weights(model)
    return model


def batch():
    """Ragged rows with segments: tokens, segments, keep. Token 0, their padding, stands nowhere else."""
    torch.manual_seed(3)
    keep = torch.arange(14) < torch.tensor([14, 9, 1, 5])[:, None]
    tokens = torch.randint(1, 61, (4, 14)).masked_fill(~keep, 0)
    return tokens, (torch.arange(14) >= 4).long().expand(4, -1).masked_fill(~keep, 0), keep


def their_results(model, tokens, segments, keep):
    """States of real tokens, and every logit."""
    found = model(tokens, attention_mask=keep.long(), token_type_ids=segments, output_hidden_states=True)
    results = {"states": found.hidden_states[-1][keep]}
    kind = type(model).__name__
    if kind == "BertModel":
        results["pooled"] = found.pooler_output
    elif kind == "BertForPreTraining":
        results |= {"masked": found.prediction_logits[keep], "pairs": found.seq_relationship_logits}
    else:
        names = {"BertForMaskedLM": "masked", "BertForNextSentencePrediction": "pairs"}
        name = (names | {"BertForTokenClassification": "tokens"}).get(kind, "classes")
        results[name] = found.logits[keep] if name in ("masked", "tokens") else found.logits
    return results


def our_results(model, tokens, segments, keep):
    hidden, head = model.hidden(tokens, segments, keep), model.config.head
    results = {"states": hidden[keep]}
    if head.kind == "pooled":
        results["pooled"] = model.pooled(hidden)
    if head.kind in ("masked", "pretraining"):
        results["masked"] = model.masked_logits(hidden[keep])
    if head.pairs:
        results["pairs"] = model.pair_logits(hidden)
    if head.kind == "classes":
        results["classes"] = model.class_logits(hidden)
    if head.kind == "tokens":
        results["tokens"] = model.token_logits(hidden[keep])
    return results


@pytest.mark.parametrize("case", CASES)
def test_states_logits_and_gradients_are_theirs(case, tmp_path):
    model = theirs(case)
    model.save_pretrained(tmp_path / "hf")
    ours, given = read_model(tmp_path / "hf"), batch()
    results, expected = our_results(ours, *given), their_results(model, *given)
    assert largest_difference(results, expected) < 1e-5
    assert all(value.abs().max() > 0.1 for value in expected.values())  # it is not all zeros that agree

    folder = HuggingFaceFolder(tmp_path / "hf")
    table = folder.converter.table_for(folder.config, folder.entries)
    found = table.write(compute_named_gradients(results, dict(ours.named_parameters()), unused=True))
    wanted = compute_named_gradients(expected, dict(model.named_parameters()), unused=True)
    assert len(wanted) > 30 and wanted.keys() <= found.keys()
    for name, gradient in wanted.items():
        assert (found[name] - gradient).abs().max() < 1e-5 * max(1.0, float(gradient.abs().max())), name

    with torch.no_grad():
        ours.layers[1].attention.key.weight[0] += 0.5  # a negative control: one row of one map
    assert largest_difference(our_results(ours, *given), expected) > 1e-4


def test_encoding_without_padding_is_theirs_with_padding(tmp_path):
    model = theirs("classes")
    model.save_pretrained(tmp_path / "hf")
    ours, (tokens, segments, keep) = read_model(tmp_path / "hf"), batch()
    expected = their_results(model, tokens, segments, keep)
    texts, told = ([row[real].tolist() for row, real in zip(t, keep, strict=True)] for t in (tokens, segments))
    with torch.inference_mode():
        assert (torch.cat(encode(ours, texts, told, tokens=15)) - expected["states"]).abs().max() < 1e-5
        logits = ours.class_logits(encode_first(ours, texts, told)[:, None])
        assert (logits - expected["classes"]).abs().max() < 1e-5


AUTO = {
    "pooled": "AutoModel",
    "masked": "AutoModelForMaskedLM",
    "pairs": "AutoModelForNextSentencePrediction",
    "pretraining": "AutoModelForPreTraining",
    "classes": "AutoModelForSequenceClassification",
    "tokens": "AutoModelForTokenClassification",
}


def export(path, model):
    path.mkdir()
    write_folder(path, converter_for(model.config), model.config, dict(model.named_parameters()), None)


@pytest.mark.parametrize("case", CASES)
def test_there_and_back_gives_the_same_bits(case, tmp_path):
    model = theirs(case)
    model.save_pretrained(tmp_path / "hf")
    ours = read_model(tmp_path / "hf")
    export(tmp_path / "back", ours)
    auto = getattr(transformers, AUTO[ours.config.head.kind])
    again, report = auto.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert type(again) is type(model)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    state, expected = again.state_dict(), model.state_dict()
    assert state.keys() == expected.keys() and all(torch.equal(state[name], expected[name]) for name in state)
    assert again.config.id2label == model.config.id2label and again.config.num_labels == model.config.num_labels
    assert again.config.classifier_dropout == model.config.classifier_dropout
    assert again.config.problem_type in (
        model.config.problem_type,
        *(PROBLEM if model.config.problem_type is None else ()),
    )
    given = batch()
    assert largest_difference(their_results(again.eval(), *given), our_results(ours, *given)) < 1e-5
    twice = read_model(tmp_path / "back")
    assert twice.config == ours.config
    assert all(torch.equal(a, b) for a, b in zip(twice.parameters(), ours.parameters(), strict=True))


@pytest.mark.parametrize("head", [*AUTO, "none"])
def test_our_own_models_open_there(head, tmp_path):
    fields = preset("bert-base")[1] | {"vocab_size": 61, "width": 32, "depth": 2, "max_length": 20}
    attention = {"kind": "softmax", "heads": 4}
    head = {"kind": "tokens", "labels": ["O", "B-PER", "I-PER"]} if head == "tokens" else head
    config = BERTConfig(**fields | {"attention": attention, "feed_forward": {"kind": "plain"}, "head": head})
    if head == "none":
        with pytest.raises(UnsupportedError, match="bert: a trunk has its pooler there"):
            converter_for(config)
        return
    ours = config.build().eval()
    export(tmp_path / "hf", ours)
    model = getattr(transformers, AUTO[config.head.kind]).from_pretrained(tmp_path / "hf").eval()
    given = batch()
    assert largest_difference(their_results(model, *given), our_results(ours, *given)) < 1e-5


# -- files as they are found ------------------------------------------------------------------


def change(path, **settings):
    found = json.loads((path / "config.json").read_text()) | settings
    (path / "config.json").write_text(json.dumps({k: v for k, v in found.items() if v != "gone"}))


def rename(path, edit):
    tensors = load_file(path / "model.safetensors")
    save_file(edit(tensors), path / "model.safetensors", {"format": "pt"})


def old_names(tensors):
    """As bert-base-uncased is stored: gamma and beta, positions, and the tied tensors once more."""
    swaps = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    found = {}
    for name, tensor in tensors.items():
        new = next((new for new in swaps if name.endswith(new)), "")
        found[name.removesuffix(new) + swaps.get(new, "")] = tensor
    found["bert.embeddings.position_ids"] = torch.arange(20)[None]
    found["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    found["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()
    return found


def test_old_names_and_a_masked_model_with_all_heads(tmp_path):
    model = theirs("pretraining")
    model.save_pretrained(tmp_path / "hf")
    rename(tmp_path / "hf", old_names)
    for given in (["BertForMaskedLM"], "gone"):
        change(tmp_path / "hf", architectures=given)
        ours = read_model(tmp_path / "hf")
        assert ours.config.head.kind == "pretraining"
        assert largest_difference(our_results(ours, *batch()), their_results(model, *batch())) < 1e-5


def test_a_head_that_nothing_reads_and_a_trunk_without_one(tmp_path):
    model = theirs("masked")
    model.save_pretrained(tmp_path / "hf")
    map_ = {"bert.pooler.dense.weight": torch.ones(32, 32), "bert.pooler.dense.bias": torch.ones(32)}
    rename(tmp_path / "hf", lambda tensors: tensors | map_)
    assert read_model(tmp_path / "hf").config.head.kind == "masked"
    trunk = transformers.BertModel(transformers.BertConfig(**SIZES), add_pooling_layer=False).eval()
    trunk.save_pretrained(tmp_path / "trunk")
    ours, (tokens, segments, keep) = read_model(tmp_path / "trunk"), batch()
    assert ours.config.head.kind == "none"
    expected = trunk(tokens, attention_mask=keep.long(), token_type_ids=segments).last_hidden_state
    assert (ours(tokens, segments, keep) - expected)[keep].abs().max() < 1e-5


HOSTILE = {
    "another class": (
        {"architectures": ["BertForMultipleChoice"]},
        UnsupportedError,
        "BertForMultipleChoice",
    ),
    "no text as class": ({"architectures": [7]}, DataError, "architectures = 7"),
    "relative positions": ({"position_embedding_type": "relative_key"}, UnsupportedError, "relative_key"),
    "a decoder": ({"is_decoder": True}, UnsupportedError, "is_decoder"),
    "untied": ({"tie_word_embeddings": False}, UnsupportedError, "tie_word_embeddings"),
    "another problem": ({"problem_type": "multiple_choice"}, UnsupportedError, "problem_type = 'multiple_choice'"),
    "no text as problem": ({"problem_type": 3}, DataError, "problem_type = 3"),
    "a choice of one": (
        {"problem_type": "single_label_classification", "id2label": {"0": "a"}},
        UnsupportedError,
        "a choice between 1 class",
    ),
    "three numbers": ({"problem_type": "regression"}, UnsupportedError, "regression of 3 numbers"),
    "labels with holes": ({"id2label": {"0": "a", "2": "b", "3": "c"}}, DataError, "id2label"),
    "labels that are no text": ({"id2label": {"0": 1, "1": 2, "2": 3}}, DataError, "id2label"),
    "labels that are no table": ({"id2label": ["a", "b", "c"]}, DataError, "id2label"),
    "twins": ({"id2label": {"0": "a", "1": "a", "2": "b"}}, DataError, "twice"),
    "two counts": ({"num_labels": 4}, DataError, "id2label"),
    "fewer classes than the file": ({"id2label": {"0": "a", "1": "b"}}, WeightsError, "classifier.bias"),
    "a class without its head": (
        {"architectures": ["BertModel"]},
        WeightsError,
        "'classifier.bias'|'classifier.weight'",
    ),
    "heads that do not divide": ({"num_attention_heads": 5}, DataError, "width 32 with 5 heads"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_it_cannot_be_is_refused(what, tmp_path):
    settings, error, words = HOSTILE[what]
    theirs("classes").save_pretrained(tmp_path / "hf")
    read_model(tmp_path / "hf")
    change(tmp_path / "hf", **settings)
    with pytest.raises(error, match=words) as caught:
        read_model(tmp_path / "hf")
    assert str(tmp_path / "hf") in str(caught.value) and len(str(caught.value).splitlines()) <= 3


HOSTILE_TOKENS = {
    "labels with holes": ({"id2label": {"0": "a", "2": "b", "3": "c"}}, DataError, "id2label"),
    "twins": ({"id2label": {"0": "a", "1": "a", "2": "b"}}, DataError, "two or more different names"),
    "fewer labels than the file": ({"id2label": {"0": "a", "1": "b"}}, WeightsError, "classifier.bias"),
    "one label": ({"id2label": {"0": "a"}}, DataError, "labels = a"),
    "a problem that is no label": ({"problem_type": "regression", "id2label": {"0": "a"}}, DataError, "labels = a"),
}


@pytest.mark.parametrize("what", HOSTILE_TOKENS)
def test_labels_of_tokens_that_cannot_be_are_refused(what, tmp_path):
    settings, error, words = HOSTILE_TOKENS[what]
    theirs("tokens").save_pretrained(tmp_path / "hf")
    assert read_model(tmp_path / "hf").config.head.labels == ("no", "maybe", "yes")
    change(tmp_path / "hf", **settings)
    with pytest.raises(error, match=words):
        read_model(tmp_path / "hf")


def test_tied_tensors_that_differ_are_refused(tmp_path):
    theirs("masked").save_pretrained(tmp_path / "hf")
    rename(tmp_path / "hf", lambda tensors: tensors | {"cls.predictions.decoder.bias": torch.ones(61)})
    with pytest.raises(WeightsError, match=r"'cls.predictions.decoder.bias' differs from 'cls.predictions.bias'"):
        read_model(tmp_path / "hf")


def test_our_default_parts_have_no_name_there():
    """Every field that is in the way is named, and what to do."""
    with pytest.raises(UnsupportedError, match="bert: position is learned there, not rotary") as caught:
        converter_for(BERTConfig(vocab_size=61))
    said = str(caught.value)
    assert "another family" not in said and len(said.splitlines()) == 3
    for field in ("norm_first", "norm is layer", "qk_norm", "feed_forward.bias", "attention.bias"):
        assert field in said
    assert "--model bert-base" in said.splitlines()[2]


IN_THE_WAY = {
    "position": ({"position": "alibi"}, "position is learned there, not alibi"),
    "norm_first": ({"norm_first": True}, "norm_first is off there"),
    "norm": ({"norm": "rms"}, "norm is layer with biases there"),
    "qk_norm": ({"qk_norm": True}, "qk_norm is off there"),
    "gated": ({"feed_forward": "gated"}, "feed_forward is plain there, not gated"),
    "feed_forward.bias": ({"feed_forward.bias": False}, "feed_forward.bias is on there"),
    "attention.bias": ({"attention.bias": False}, "attention.bias is on there"),
    "hard": ({"attention": "hard"}, "attention is softmax there, not hard"),
    "kv_heads": ({"attention.kv_heads": 2}, "attention.kv_heads is heads there"),
    "value_width": ({"attention.value_width": 3}, "attention.value_width is head_width there"),
    "beta": ({"attention.beta": 0.5}, "attention.beta is 1/√head_width there"),
    "head_width": ({"attention.head_width": 4}, "heads × head_width is width there"),
    "untied": ({"head.tied": False}, "head.tied is on there"),
}


@pytest.mark.parametrize("field", IN_THE_WAY)
def test_one_field_in_the_way_is_the_one_that_is_named(field):
    change, reason = IN_THE_WAY[field]
    fields = preset("bert-base")[1] | {"vocab_size": 61, "width": 32, "depth": 1, "max_length": 20}
    config = BERTConfig(**fields | {"attention": {"kind": "softmax", "heads": 4}})
    assert converter_for(config).name == "bert"
    with pytest.raises(UnsupportedError) as caught:
        converter_for(config.override(change))
    assert str(caught.value).splitlines()[1] == f"expected bert: {reason}"


@pytest.mark.parametrize("kind", ["pairs", "pretraining"])
@pytest.mark.parametrize(("questions", "answers"), [(["inversion"], [2]), (["next-sentence"], [3])])
def test_other_questions_have_no_name_there(kind, questions, answers):
    fields = preset("bert-base")[1] | {"head": {"kind": kind, "questions": questions, "answers": answers}}
    with pytest.raises(UnsupportedError, match="next-sentence with 2 answers there"):
        converter_for(BERTConfig(**fields))
    converter_for(BERTConfig(**fields | {"head": kind}))  # a negative control
