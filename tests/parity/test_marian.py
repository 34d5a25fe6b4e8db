"""The Transformer against Hugging Face's Marian, tiny and random: logits, gradients, padding, folders both ways."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from fixtures.weights import move_weights
from parity.peers import compute_named_gradients, read_model
from weft.checkpoints.hugging_face import HuggingFaceFolder, write_folder
from weft.errors import DataError, UnsupportedError, WeightsError
from weft.models import TransformerConfig, converter_for, preset
from weft.models.converter import Converter

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SIZES = {
    "vocab_size": 41,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 20,
    "scale_embedding": True,
    "pad_token_id": 36,
    "eos_token_id": 0,
    "decoder_start_token_id": 35,  # not padding, whose vector their table does not train
}
CASES = {
    "shared": {"activation_function": "swish"},
    "two vocabularies": {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 37},
    "one layer that writes": {"decoder_layers": 1, "activation_function": "relu"},
    "an odd width": {"d_model": 9, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
}


def theirs(case="shared", **fields):
    """A model of theirs, with every parameter moved away from zeros and ones, and biases of the logits."""
    torch.manual_seed(1)
    model = transformers.MarianMTModel(transformers.MarianConfig(**SIZES | CASES[case] | fields)).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "embed_positions" not in name:
                p.add_(0.2 * torch.randn_like(p))
        model.final_logits_bias.normal_()
    return model


def folder_of(path, case="shared", **fields):
    model = theirs(case, **fields)
    model.save_pretrained(path)
    return model


def batch(targets=37):
    """Ragged sources, and targets that begin with the start token: source, keep, target."""
    torch.manual_seed(3)
    keep = torch.arange(11) < torch.tensor([11, 7, 1, 4])[:, None]
    source = torch.randint(0, 35, (4, 11)).masked_fill(~keep, SIZES["pad_token_id"])
    target = torch.randint(0, min(35, targets), (4, 9))
    target[:, 0] = SIZES["decoder_start_token_id"]
    return source, keep, target


def their_logits(model, source, keep, target):
    return model(input_ids=source, attention_mask=keep.long(), decoder_input_ids=target).logits


def our_logits(model, source, keep, target):
    return model(source, target, source_keep=keep)


@pytest.mark.parametrize("case", CASES)
def test_logits_and_gradients_are_theirs(case, tmp_path):
    model = folder_of(tmp_path / "hf", case)
    ours, given = read_model(tmp_path / "hf"), batch()
    logits, expected = our_logits(ours, *given), their_logits(model, *given)
    assert (logits - expected).abs().max() < 1e-5 and expected.abs().max() > 1

    folder = HuggingFaceFolder(tmp_path / "hf")
    table = folder.converter.table_for(folder.config, folder.entries)
    found = table.write(compute_named_gradients({"logits": logits}, dict(ours.named_parameters()), unused=True))
    parameters = {n: p for n, p in model.named_parameters() if "embed_positions" not in n}
    wanted = compute_named_gradients({"logits": expected}, parameters, unused=True)
    assert len(wanted) > 40 and wanted.keys() == found.keys() - {"final_logits_bias"}
    for name, gradient in wanted.items():
        assert (found[name] - gradient).abs().max() < 1e-5 * max(1.0, float(gradient.abs().max())), name

    with torch.no_grad():
        ours.decoder.layers[0].cross_attention.key.weight[0] += 0.5  # a negative control: one row of one map
    assert (our_logits(ours, *given) - expected).abs().max() > 1e-4


def test_padding_changes_nothing_there_or_here(tmp_path):
    model = folder_of(tmp_path / "hf")
    ours, (source, keep, target) = read_model(tmp_path / "hf"), batch()
    with torch.no_grad():
        together = our_logits(ours, source, keep, target)
        for i, length in enumerate(keep.sum(1).tolist()):
            alone = source[i : i + 1, :length], keep[i : i + 1, :length], target[i : i + 1]
            assert (our_logits(ours, *alone) - together[i]).abs().max() < 1e-5
            assert (their_logits(model, *alone) - together[i]).abs().max() < 1e-5
        assert (our_logits(ours, source, torch.ones_like(keep), target) - together).abs().max() > 1e-2


def test_step_by_step_is_their_whole(tmp_path):
    model = folder_of(tmp_path / "hf")
    ours, (source, keep, target) = read_model(tmp_path / "hf"), batch()
    with torch.no_grad():
        memory, caches = ours.encode(source, keep), ours.new_caches()
        parts = [ours.logits(ours.states(target[:, i : i + 1], memory, caches=caches)) for i in range(9)]
        assert (torch.cat(parts, 1) - their_logits(model, source, keep, target)).abs().max() < 1e-5


# -- both ways --------------------------------------------------------------------------------


def export(path, model):
    path.mkdir()
    write_folder(path, converter_for(model.config), model.config, dict(model.named_parameters()), None)


@pytest.mark.parametrize("case", CASES)
def test_there_and_back_gives_the_same_bits(case, tmp_path):
    model = folder_of(tmp_path / "hf", case)
    ours = read_model(tmp_path / "hf")
    export(tmp_path / "back", ours)
    again, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert type(again) is type(model) and not report["missing_keys"] and not report["unexpected_keys"]
    state, expected = again.state_dict(), model.state_dict()
    assert state.keys() == expected.keys() and all(torch.equal(state[name], expected[name]) for name in state)
    for name in [*SIZES.keys() - {"pad_token_id", "eos_token_id"}, *CASES[case].keys() - {"activation_function"}]:
        assert getattr(again.config, name) == getattr(model.config, name), name
    twice = read_model(tmp_path / "back")
    assert twice.config == ours.config
    assert all(torch.equal(a, b) for a, b in zip(twice.parameters(), ours.parameters(), strict=True))


def papers(name="transformer-base", **fields):
    """A preset of ours in a small size, its parameters moved away from where they begin."""
    sizes = {"vocab_size": 41, "width": 32, "depth": 2, "max_length": 20, "start": 35}
    config = TransformerConfig(**preset(name)[1] | sizes | {"attention": {"kind": "softmax", "heads": 4}} | fields)
    torch.manual_seed(5)
    model = config.build().eval()
    move_weights(model)
    return model


@pytest.mark.parametrize("name", ["transformer-base", "transformer-big"])
@pytest.mark.parametrize(
    "fields", [{}, {"head_bias": True, "source_vocab_size": 40}, {"width": 9, "attention": "softmax"}]
)
def test_the_papers_own_models_open_there(name, fields, tmp_path):
    """Sines and cosines in turn here, in halves there: the same model with its channels in another order."""
    ours = papers(name, **fields)
    assert not ours.config.position.halves
    export(tmp_path / "hf", ours)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf").eval()
    given = batch()
    with torch.no_grad():
        expected = our_logits(ours, *given)
        assert (their_logits(model, *given) - expected).abs().max() < 1e-5
        again = read_model(tmp_path / "hf")
        assert again.config.position.halves and (our_logits(again, *given) - expected).abs().max() < 1e-5
    assert again.config.head_bias == ours.config.head_bias
    assert not torch.equal(again.tokens.weight, ours.tokens.weight)
    assert torch.equal(again.tokens.weight[:, 0], ours.tokens.weight[:, 0])
    assert torch.equal(again.tokens.weight[:, 1], ours.tokens.weight[:, 2])
    # read with the config that it was written with, every bit is where it was
    folder = HuggingFaceFolder(tmp_path / "hf")
    for name, tensor in folder.read_weights(ours.config).items():
        assert torch.equal(tensor, ours.get_parameter(name)), name


def test_channels_that_are_not_moved_are_another_model(tmp_path):
    """A negative control: the same weights with sinusoids in the other order."""
    ours, given = papers(), batch()
    other = ours.config.override({"position.halves": True}).with_weights(dict(ours.named_parameters())).eval()
    assert (our_logits(other, *given) - our_logits(ours, *given)).abs().max() > 1e-2


# -- files as they are found ------------------------------------------------------------------


def change(path, **settings):
    found = json.loads((path / "config.json").read_text()) | settings
    (path / "config.json").write_text(json.dumps({k: v for k, v in found.items() if v != "gone"}))


def rename(path, edit):
    tensors = load_file(path / "model.safetensors")
    save_file(edit(tensors), path / "model.safetensors", {"format": "pt"})


TABLES = ["model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"]


@pytest.mark.parametrize("stored", [[*TABLES, "lm_head.weight"], ["lm_head.weight"], TABLES[2:], TABLES[1:2]])
def test_old_files_with_positions_and_the_table_under_other_names(stored, tmp_path):
    model = folder_of(tmp_path / "hf")
    table = model.model.shared.weight.detach()
    places = model.model.encoder.embed_positions.weight.detach()
    stacks = {f"model.{stack}.embed_positions.weight": places.clone() for stack in ("encoder", "decoder")}

    def edit(tensors):
        rest = {name: t for name, t in tensors.items() if name not in TABLES}
        return rest | stacks | {name: table.clone() for name in stored}

    rename(tmp_path / "hf", edit)
    ours, given = read_model(tmp_path / "hf"), batch()
    assert (our_logits(ours, *given) - their_logits(model, *given)).abs().max() < 1e-5
    rename(tmp_path / "hf", lambda tensors: {name: t.half() for name, t in tensors.items()})
    assert (our_logits(read_model(tmp_path / "hf"), *given) - their_logits(model, *given)).abs().max() < 0.1


def test_a_trunk_without_its_head_and_no_biases(tmp_path):
    model = theirs()
    model.model.save_pretrained(tmp_path / "hf")
    ours, (source, keep, target) = read_model(tmp_path / "hf"), batch()
    assert not ours.config.head_bias
    expected = model.model(input_ids=source, attention_mask=keep.long(), decoder_input_ids=target).last_hidden_state
    assert (ours.states(target, ours.encode(source, keep)) - expected).abs().max() < 1e-5


def other_positions(tensors):
    return tensors | {"model.decoder.embed_positions.weight": torch.rand(20, 32)}


def in_turn(tensors):
    from weft.blocks.position.sinusoidal import sinusoids

    return tensors | {"model.encoder.embed_positions.weight": sinusoids(torch.arange(20), 32).float()}


def more_positions(tensors):
    return tensors | {"model.encoder.embed_positions.weight": torch.zeros(21, 32)}


def a_stranger(tensors):
    return tensors | {"model.encoder.layernorm_embedding.weight": torch.ones(32)}


def without_a_bias(tensors):
    return {name: t for name, t in tensors.items() if name != "model.decoder.layers.1.encoder_attn.k_proj.bias"}


def a_long_bias(tensors):
    return tensors | {"final_logits_bias": torch.zeros(41)[None].repeat(2, 1)}


def another_head(tensors):
    return tensors | {"lm_head.weight": torch.zeros(41, 32)}


DAMAGE = {
    "other positions": (other_positions, "'model.decoder.embed_positions.weight' holds other numbers"),
    "positions in turn": (in_turn, "'model.encoder.embed_positions.weight' holds other numbers"),
    "more positions": (more_positions, "has shape .21, 32."),
    "a norm of the embedding": (a_stranger, "layernorm_embedding.weight' that this model has no place for"),
    "a bias is missing": (without_a_bias, "fills 'decoder.layers.1.cross_attention.key.bias'"),
    "two rows of biases": (a_long_bias, r"'final_logits_bias' has shape .2, 41..*\n?.*.1, 41."),
    "a head of its own": (another_head, "'lm_head.weight' differs from 'model.shared.weight'"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_tensors_that_are_not_the_model_are_refused(what, tmp_path):
    edit, words = DAMAGE[what]
    folder_of(tmp_path / "hf")
    read_model(tmp_path / "hf")
    rename(tmp_path / "hf", edit)
    with pytest.raises(WeightsError, match=words) as caught:
        read_model(tmp_path / "hf")
    assert str(tmp_path / "hf") in str(caught.value) and len(str(caught.value).splitlines()) <= 3


HOSTILE = {
    "unscaled": ({"scale_embedding": False}, UnsupportedError, "scale_embedding = False"),
    "unscaled by default": ({"scale_embedding": "gone"}, UnsupportedError, "scale_embedding = False"),
    "pre-norm": ({"normalize_before": True}, UnsupportedError, "normalize_before = True"),
    "a norm of the embedding": ({"normalize_embedding": True}, UnsupportedError, "normalize_embedding"),
    "a last norm": ({"add_final_layer_norm": True}, UnsupportedError, "add_final_layer_norm"),
    "learned positions": ({"static_position_embeddings": False}, UnsupportedError, "static_position_embeddings"),
    "a decoder alone": ({"is_encoder_decoder": False}, UnsupportedError, "is_encoder_decoder"),
    "untied": ({"tie_word_embeddings": False}, UnsupportedError, "tie_word_embeddings"),
    "unequal widths": ({"decoder_ffn_dim": 64}, UnsupportedError, "encoder_ffn_dim = 48, decoder_ffn_dim = 64"),
    "unequal heads": ({"decoder_attention_heads": 8}, UnsupportedError, "decoder_attention_heads = 8"),
    "one table for two sizes": ({"decoder_vocab_size": 37}, UnsupportedError, "41 of the source and 37"),
    "another activation": ({"activation_function": "mish"}, UnsupportedError, "activation_function = 'mish'"),
    "no start": ({"decoder_start_token_id": "gone"}, DataError, "decoder_start_token_id"),
    "a start outside": ({"decoder_start_token_id": 41}, DataError, "start = 41"),
    "a start below": ({"decoder_start_token_id": -1}, DataError, "decoder_start_token_id = -1"),
    "heads that do not divide": (
        {"encoder_attention_heads": 5, "decoder_attention_heads": 5},
        DataError,
        "width 32 with 5 heads",
    ),
    "two tables where one is stored": (
        {"share_encoder_decoder_embeddings": False},
        WeightsError,
        "model.shared.weight",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_it_cannot_be_is_refused(what, tmp_path):
    settings, error, words = HOSTILE[what]
    folder_of(tmp_path / "hf")
    change(tmp_path / "hf", **settings)
    with pytest.raises(error, match=words) as caught:
        read_model(tmp_path / "hf")
    assert str(tmp_path / "hf") in str(caught.value) and len(str(caught.value).splitlines()) <= 3


def test_the_words_of_old_files_are_understood(tmp_path):
    model = folder_of(tmp_path / "hf")
    old = {"normalize_before": False, "normalize_embedding": False, "add_final_layer_norm": False}
    old |= {"static_position_embeddings": True, "add_bias_logits": False, "decoder_vocab_size": "gone"}
    change(tmp_path / "hf", **old, share_encoder_decoder_embeddings="gone", tie_word_embeddings="gone")
    assert (our_logits(read_model(tmp_path / "hf"), *batch()) - their_logits(model, *batch())).abs().max() < 1e-5


# -- what has no name there -------------------------------------------------------------------


def test_our_default_parts_have_no_name_there():
    """Every field that is in the way is named, and what to do."""
    with pytest.raises(UnsupportedError, match="marian: position is sinusoidal there, not rotary") as caught:
        converter_for(TransformerConfig(vocab_size=41))
    said = str(caught.value)
    assert "another family" not in said and len(said.splitlines()) == 3
    for field in ("norm_first", "norm is layer", "qk_norm", "feed_forward.bias", "attention.bias"):
        assert field in said
    assert "--model transformer-base" in said.splitlines()[2]


IN_THE_WAY = {
    "position": ({"position": "learned"}, "position is sinusoidal there, not learned"),
    "base": ({"position.base": 500.0}, "position.base is 10000 there"),
    "norm_first": ({"norm_first": True}, "norm_first is off there"),
    "norm": ({"norm": "rms"}, "norm is layer with biases there"),
    "eps": ({"norm.eps": 1e-6}, "norm.eps is 1e-05 there"),
    "qk_norm": ({"qk_norm": True}, "qk_norm is off there"),
    "memory": ({"memory": "same"}, "memory is last there, not same"),
    "gated": ({"feed_forward": "gated"}, "feed_forward is plain there, not gated"),
    "feed_forward.bias": ({"feed_forward.bias": False}, "feed_forward.bias is on there"),
    "attention.bias": ({"attention.bias": False}, "attention.bias is on there"),
    "hard": ({"attention": "hard"}, "attention is softmax there, not hard"),
    "kv_heads": ({"attention.kv_heads": 2}, "attention.kv_heads is heads there"),
    "value_width": ({"attention.value_width": 3}, "attention.value_width is head_width there"),
    "beta": ({"attention.beta": 0.5}, "attention.beta is 1/√head_width there"),
    "head_width": ({"attention.head_width": 4}, "heads × head_width is width there"),
}


@pytest.mark.parametrize("field", IN_THE_WAY)
def test_one_field_in_the_way_is_the_one_that_is_named(field):
    change, reason = IN_THE_WAY[field]
    config = papers().config
    assert converter_for(config).name == "marian"
    with pytest.raises(UnsupportedError) as caught:
        converter_for(config.override(change))
    assert str(caught.value).splitlines()[1] == f"expected marian: {reason}"


def test_every_setting_of_theirs_that_is_written_is_one_of_theirs():
    """A misspelled key would be kept by them and not understood."""
    known = set(transformers.MarianConfig().to_dict()) | {"static_position_embeddings"}
    assert set(Converter.registry["marian"].write_config(papers().config)) <= known
