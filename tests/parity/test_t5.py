"""T5 against Hugging Face's own code, tiny and random: states, logits, gradients, buckets, and folders both ways."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from parity.peers import compute_named_gradients, largest_difference, read_model
from weft.blocks.position.relative import buckets_of
from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.errors import DataError, UnsupportedError, WeightsError
from weft.models import Converter, T5Config, converter_for, preset

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
modeling = transformers.models.t5.modeling_t5

SIZES = {
    "vocab_size": 61,
    "d_model": 32,
    "d_kv": 6,  # heads × head width is not the width
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
    "decoder_start_token_id": 2,
}
OWN_HEAD = {"tie_word_embeddings": False}
CASES = {
    "v1.0": {},
    "v1.1": {"feed_forward_proj": "gated-gelu", **OWN_HEAD},
    "v1.1, tied": {"feed_forward_proj": "gated-gelu", **OWN_HEAD, "tied": True},
    "gated, scaled": {"feed_forward_proj": "gated-gelu", "layer_norm_epsilon": 1e-3, "num_decoder_layers": 1},
    "plain, own head": {"feed_forward_proj": "silu", **OWN_HEAD, "dropout_rate": 0.3},
    "gated-silu": {"feed_forward_proj": "gated-silu", "relative_attention_num_buckets": 9},
    "exact gelu, gated": {"feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu"},
}


def theirs(case, **more):
    """A model of theirs, with norms moved away from one. A new one has a tied head in any case; some get their own."""
    fields = {**SIZES, **CASES[case], **more}
    tied = fields.pop("tied", fields.get("tie_word_embeddings", True))
    torch.manual_seed(1)
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**fields)).eval()
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight) / 32**0.5)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1 + 0.2 * torch.randn_like(p))
    return model


def saved(path, case="v1.0", **settings):
    theirs(case).save_pretrained(path)
    change(path, **settings)
    return path


def change(path, **settings):
    found = json.loads((path / "config.json").read_text()) | settings
    (path / "config.json").write_text(json.dumps({k: v for k, v in found.items() if v != "gone"}))


def edit(path, make):
    save_file(make(load_file(path / "model.safetensors")), path / "model.safetensors", {"format": "pt"})


def export(path, model):
    path.mkdir()
    converter = converter_for(model.config)
    (path / "config.json").write_text(json.dumps(converter.write_config(model.config)))
    tensors = {name: p.detach() for name, p in model.named_parameters()}
    save_file(converter.table(model.config, prefix=converter.prefix).write(tensors), path / "model.safetensors")
    return path


def batch():
    """Ragged sources and targets: source, which of it is real, target, and which of that."""
    torch.manual_seed(3)
    source_keep = torch.arange(19) < torch.tensor([19, 12, 1, 6])[:, None]
    keep = torch.arange(14) < torch.tensor([9, 14, 3, 1])[:, None]
    return torch.randint(61, (4, 19)), source_keep, torch.randint(61, (4, 14)), keep


def their_results(model, source, source_keep, target, keep):
    found = model(input_ids=source, attention_mask=source_keep.long(), decoder_input_ids=target)
    return {"states": found.encoder_last_hidden_state[source_keep], "logits": found.logits[keep]}


def our_results(model, source, source_keep, target, keep):
    memory = model.encode(source, source_keep)
    return {"states": memory.states[source_keep], "logits": model.logits(model.states(target, memory))[keep]}


def compare(ours, model, limit):
    """States, logits and gradients; returns how far apart they are with one row of one map changed."""
    given = batch()
    results, expected = our_results(ours, *given), their_results(model, *given)
    assert largest_difference(results, expected) < limit
    assert all(value.abs().max() > 0.5 for value in expected.values())  # it is not all zeros that agree
    table = Converter.registry["t5"].table(ours.config, prefix="")
    found = table.write(compute_named_gradients(results, dict(ours.named_parameters())))
    wanted = compute_named_gradients(expected, dict(model.named_parameters()))
    assert wanted.keys() == found.keys()
    for name, gradient in wanted.items():
        assert gradient.any(), name
        assert (found[name] - gradient).abs().max() < limit * max(1.0, float(gradient.abs().max())), name
    with torch.no_grad():
        ours.decoder.layers[0].cross_attention.key.weight[0] += 0.5
    return largest_difference(our_results(ours, *given), expected)


@pytest.mark.parametrize("case", CASES)
def test_states_logits_and_gradients_are_theirs(case, tmp_path):
    model = theirs(case)
    model.save_pretrained(tmp_path / "hf")
    assert compare(read_model(tmp_path / "hf"), model, 1e-5) > 1e-3


@pytest.mark.parametrize("case", ["v1.0", "v1.1"])
def test_they_are_the_same_function_in_float64(case, tmp_path, monkeypatch):
    def norm(self, x):  # theirs takes the mean in float32 whatever the model is
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)

    monkeypatch.setattr(modeling.T5LayerNorm, "forward", norm)
    theirs(case).save_pretrained(tmp_path / "hf")
    model = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path / "hf", dtype=torch.float64).eval()
    assert compare(read_model(tmp_path / "hf").double(), model, 1e-12) > 1e-3


@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (8, 10), (9, 20), (64, 256)])
@pytest.mark.parametrize("two_way", [True, False])
def test_buckets_are_theirs(buckets, max_distance, two_way):
    ahead = torch.arange(-1000, 1001)
    found = buckets_of(ahead, buckets=buckets, max_distance=max_distance, two_way=two_way)
    wanted = modeling.T5Attention._relative_position_bucket(ahead, two_way, buckets, max_distance)
    assert torch.equal(found, wanted)
    assert found.min() == 0 and len(found.unique()) > 4
    other = modeling.T5Attention._relative_position_bucket(ahead, not two_way, buckets, max_distance)
    assert not torch.equal(found, other)  # a negative control


def test_greedy_writing_is_theirs(tmp_path):
    model = theirs("v1.1", num_decoder_layers=2)  # their cache has room for as many layers as read
    model.save_pretrained(tmp_path / "hf")
    ours, (source, source_keep, _, _) = read_model(tmp_path / "hf"), batch()
    wanted = model.generate(
        input_ids=source, attention_mask=source_keep.long(), max_new_tokens=12, do_sample=False, eos_token_id=None
    )
    memory, caches = ours.encode(source, source_keep), ours.new_caches()
    written = torch.full((4, 1), ours.config.start)
    with torch.no_grad():
        for _ in range(12):
            logits = ours.logits(ours.states(written[:, -1:], memory, caches=caches)[:, -1])
            written = torch.cat([written, logits.argmax(-1, keepdim=True)], 1)
    assert torch.equal(written, wanted) and len(written.unique()) > 5


# -- there and back ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_there_and_back_gives_the_same_bits(case, tmp_path):
    model = theirs(case)
    model.save_pretrained(tmp_path / "hf")
    ours = read_model(tmp_path / "hf")
    own = CASES[case].get("tied", CASES[case].get("tie_word_embeddings", True)) is False
    assert ours.config.tied is (False if own else "unscaled" if "tied" in CASES[case] else True)
    export(tmp_path / "back", ours)
    auto = getattr(transformers, converter_for(ours.config).auto_class(ours.config))
    again, report = auto.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert type(again) is type(model)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    state, expected = again.state_dict(), model.state_dict()
    assert state.keys() == expected.keys() and all(torch.equal(state[name], expected[name]) for name in state)
    for name in [*SIZES, *CASES[case], "dropout_rate", "scale_decoder_outputs", "dense_act_fn", "is_gated_act"]:
        assert name == "tied" or getattr(again.config, name) == getattr(model.config, name)
    given = batch()
    assert largest_difference(their_results(again.eval(), *given), our_results(ours, *given)) < 1e-5
    twice = read_model(tmp_path / "back")
    assert twice.config == ours.config
    assert all(torch.equal(a, b) for a, b in zip(twice.parameters(), ours.parameters(), strict=True))


LAPTOP = {"vocab_size": 61, "width": 32, "depth": 2, "max_length": 40}


@pytest.mark.parametrize("name", ["t5", "t5-tiny", "t5-small", "t5-v1_1-small"])
def test_our_own_models_open_there(name, tmp_path):
    family, fields = preset(name)
    assert family == "t5"
    config = T5Config(**fields | LAPTOP).override({"attention.head_width": 8, "feed_forward.ff_width": 48, "start": 3})
    ours = config.build().eval()
    export(tmp_path / "hf", ours)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf").eval()
    assert model.config.decoder_start_token_id == 3
    assert largest_difference(their_results(model, *batch()), our_results(ours, *batch())) < 1e-5


def test_dropout_that_has_no_word_there_is_named():
    config = T5Config(**LAPTOP, dropout=0.1, attention={"kind": "softmax", "beta": 1.0, "bias": False, "dropout": 0.1})
    lost = converter_for(config).losses(config)
    assert len(lost) == 1 and lost[0].startswith("feed_forward.dropout = 0 ")
    assert converter_for(config).losses(config.override({"feed_forward.dropout": 0.1})) == []


# -- files as they are found ------------------------------------------------------------------


def test_settings_of_version_4_and_older_files(tmp_path):
    """`tie_word_embeddings` says all, copies of the token table are stored, and an unread bias with them."""
    model = theirs("v1.0")
    model.save_pretrained(tmp_path / "hf")
    change(tmp_path / "hf", scale_decoder_outputs="gone", dense_act_fn="gone", is_gated_act="gone")
    change(tmp_path / "hf", relative_attention_max_distance="gone", n_positions=77, architectures=["T5WithLMHeadModel"])
    model.config.relative_attention_max_distance = 128  # what it is when nothing is said
    for attention in model.modules():
        if isinstance(attention, modeling.T5Attention):
            attention.relative_attention_max_distance = 128
    copies = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
    extra = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.ones(8, 4)}
    edit(tmp_path / "hf", lambda t: t | extra | {name: t["shared.weight"].clone() for name in copies})
    ours = read_model(tmp_path / "hf")
    assert ours.config.tied is True and ours.config.max_length == 77
    assert largest_difference(our_results(ours, *batch()), their_results(model, *batch())) < 1e-5


@pytest.mark.parametrize("kept", ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"])
def test_the_token_table_under_any_of_its_names(kept, tmp_path):
    path = saved(tmp_path / "hf")
    before = read_model(path)
    edit(path, lambda t: {(kept if name == "shared.weight" else name): tensor for name, tensor in t.items()})
    assert torch.equal(read_model(path).tokens.weight, before.tokens.weight)


def test_a_head_of_its_own_in_settings_of_version_4(tmp_path):
    model = theirs("v1.1")
    model.save_pretrained(tmp_path / "hf")
    change(tmp_path / "hf", scale_decoder_outputs="gone", tie_word_embeddings=False)
    ours = read_model(tmp_path / "hf")
    assert ours.config.tied is False
    assert largest_difference(our_results(ours, *batch()), their_results(model, *batch())) < 1e-5
    edit(tmp_path / "hf", lambda t: {name: tensor for name, tensor in t.items() if name != "lm_head.weight"})
    with pytest.raises(WeightsError, match=r"nothing in the file fills 'head.weight'"):
        read_model(tmp_path / "hf")


def test_without_a_start_token_it_is_the_padding(tmp_path):
    path = saved(tmp_path / "hf", decoder_start_token_id="gone", pad_token_id=5)
    assert HuggingFaceFolder(path).config.start == 5
    change(path, pad_token_id=None)
    assert HuggingFaceFolder(path).config.start == 0


HOSTILE = {
    "a part of it": ({"architectures": ["T5EncoderModel"]}, UnsupportedError, "T5EncoderModel"),
    "no text as class": ({"architectures": [7]}, DataError, "architectures = 7"),
    "a decoder": ({"is_decoder": True}, UnsupportedError, "is_decoder"),
    "no pair of stacks": ({"is_encoder_decoder": False}, UnsupportedError, "is_encoder_decoder"),
    "shared stacks": ({"tie_encoder_decoder": True}, UnsupportedError, "tie_encoder_decoder"),
    "another activation": ({"feed_forward_proj": "gated-mish"}, UnsupportedError, "gated-mish"),
    "another inner word": ({"dense_act_fn": "mish"}, UnsupportedError, "dense_act_fn = 'mish'"),
    "no text as activation": ({"feed_forward_proj": 3}, DataError, "feed_forward_proj = 3"),
    "a start that is no token": ({"decoder_start_token_id": 0.5}, DataError, "decoder_start_token_id = 0.5"),
    "a start below zero": ({"decoder_start_token_id": -1}, DataError, "decoder_start_token_id = -1"),
    "a start beyond the vocabulary": ({"decoder_start_token_id": 61}, DataError, "start = 61"),
    "too few buckets": ({"relative_attention_num_buckets": 3}, DataError, "3 buckets"),
    "distances that fit in near buckets": ({"relative_attention_max_distance": 4}, DataError, "distances up to 4"),
    "no sizes": ({"d_kv": "gone"}, DataError, "d_kv"),
    "absurd sizes": ({"d_model": 2**40}, DataError, "d_model"),
    "more layers than the file": ({"num_layers": 3}, WeightsError, "encoder.layers.2"),
    "fewer layers than the file": ({"num_decoder_layers": 2}, WeightsError, "decoder.layers.2"),
    "another feed-forward": ({"feed_forward_proj": "gated-gelu", "is_gated_act": True}, WeightsError, "wi.weight"),
    "wider heads": ({"d_kv": 7}, WeightsError, r"\(28, 32\)"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_it_cannot_be_is_refused(what, tmp_path):
    settings, error, words = HOSTILE[what]
    path = saved(tmp_path / "hf")
    read_model(path)
    change(path, **settings)
    with pytest.raises(error, match=words) as caught:
        read_model(path)
    assert str(path) in str(caught.value) and len(str(caught.value).splitlines()) <= 3


def test_a_tied_head_that_differs_is_refused(tmp_path):
    path = saved(tmp_path / "hf")
    edit(path, lambda tensors: tensors | {"lm_head.weight": torch.ones(61, 32)})
    with pytest.raises(WeightsError, match=r"'lm_head.weight' differs from 'shared.weight'"):
        read_model(path)


IN_THE_WAY = {
    "position": ({"position": "rotary"}, "position is relative there, not rotary"),
    "norm": ({"norm": "layer"}, "norm is rms with weights there"),
    "norm.learned": ({"norm.learned": False}, "norm is rms with weights there"),
    "feed_forward.bias": ({"feed_forward.bias": True}, "feed_forward.bias is off there"),
    "attention.bias": ({"attention.bias": True}, "attention.bias is off there"),
    "hard": ({"attention": "hard"}, "attention is softmax there, not hard"),
    "kv_heads": ({"attention.kv_heads": 2}, "attention.kv_heads is heads there"),
    "value_width": ({"attention.value_width": 3}, "attention.value_width is head_width there"),
    "beta": ({"attention.beta": "none"}, "attention.beta is 1 there"),
}


@pytest.mark.parametrize("field", IN_THE_WAY)
def test_one_field_in_the_way_is_the_one_that_is_named(field):
    changed, reason = IN_THE_WAY[field]
    config = T5Config(**LAPTOP).override({"attention.heads": 4})
    assert converter_for(config).name == "t5"
    with pytest.raises(UnsupportedError) as caught:
        converter_for(config.override(changed))
    said = str(caught.value).splitlines()
    assert said[1] == f"expected t5: {reason}" and "--model t5" in said[2]
