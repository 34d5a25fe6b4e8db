"""Models of Hugging Face's own code, tiny and random: the same logits from the same folder, both ways."""

import json
import time

import pytest
import torch

import weft
from fixtures.weights import move_weights
from weft.checkpoints import RunDirectory
from weft.errors import DataError, UnsupportedError
from weft.exchange.probes import TEXTS
from weft.exchange.transfer import export_run, import_model
from weft.models import Converter, GPTConfig, converter_for, preset
from weft.models.gpt.llama import NanoChatConverter
from weft.text import END, TokenizerConfig
from weft.weights import Change

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

IDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
GPT2 = {"vocab_size": 61, "n_positions": 40, "n_embd": 32, "n_layer": 2, "n_head": 4, **IDS}
LLAMA = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    **IDS,
}
UNCAPPED = {"final_logit_softcapping": None}
CASES = {
    "gpt2": ("GPT2", GPT2),
    "gpt2 untied": ("GPT2", GPT2 | {"tie_word_embeddings": False}),
    "gpt2 relu": ("GPT2", GPT2 | {"activation_function": "relu", "n_inner": 20, "layer_norm_epsilon": 1e-3}),
    "gpt2 exact gelu, unscaled": ("GPT2", GPT2 | {"activation_function": "gelu", "scale_attn_weights": False}),
    "llama": ("Llama", LLAMA),
    "llama biased, tied": ("Llama", LLAMA | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "llama wide heads": ("Llama", LLAMA | {"head_dim": 12, "num_key_value_heads": 4, "rms_norm_eps": 1e-3}),
    "llama slow": ("Llama", LLAMA | {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}),
    "qwen3": ("Qwen3", LLAMA | {"head_dim": 16}),
    "qwen3 biased, tied": ("Qwen3", LLAMA | {"attention_bias": True, "tie_word_embeddings": True}),
    "nanochat": ("NanoChat", LLAMA | UNCAPPED),
    "nanochat biased, tied": ("NanoChat", LLAMA | UNCAPPED | {"attention_bias": True, "tie_word_embeddings": True}),
}


def theirs(case, dtype=torch.float32):
    """A model of theirs, with every parameter moved away from zeros and ones."""
    kind, fields = CASES[case]
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, f"{kind}Config")(**fields)).eval()
    move_weights(model)
    return model.to(dtype)


def apart(ours, model, ids):
    with torch.no_grad():
        return float((ours(ids) - model(ids).logits).abs().max())


def bits(state):
    return {name: t.detach().contiguous().view(torch.int32) for name, t in state.items()}


def same_bits(one, other):
    one, other = bits(one), bits(other)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("case", CASES)
def test_logits_are_theirs(case, tmp_path):
    model = theirs(case)
    model.save_pretrained(tmp_path / "hf")
    run = weft.load(tmp_path / "hf")
    ids = torch.randint(61, (3, 40))
    assert apart(run.model, model, ids) < 1e-5
    assert model(ids).logits.abs().max() > 0.5  # it is not all zeros that agree
    wrong = dict(run.model.named_parameters())["layers.1.attention.key.weight"]
    with torch.no_grad():
        wrong[0] += 0.5  # a negative control: one row of one map
    assert apart(run.model, model, ids) > 1e-3


@pytest.mark.parametrize("case", CASES)
def test_import_then_export_gives_their_tensors_back(case, tmp_path):
    model = theirs(case)
    model.save_pretrained(tmp_path / "hf")
    import_model(tmp_path / "hf", tmp_path / "run")
    certificate = export_run(tmp_path / "run", tmp_path / "back")
    assert certificate["transformers"]["difference"] < 1e-5 and certificate["difference"] == 0
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "back")
    assert type(again) is type(model)
    assert same_bits(again.state_dict(), model.state_dict())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_types_are_read_as_float32_and_that_is_said(dtype, tmp_path):
    model = theirs("llama", dtype)
    model.save_pretrained(tmp_path / "hf")
    made = import_model(tmp_path / "hf", tmp_path / "run")
    assert made["notes"][0] == f"the weights were {str(dtype).removeprefix('torch.')} and are now float32"
    ours = weft.load(tmp_path / "run").model
    assert {p.dtype for p in ours.parameters()} == {torch.float32}
    wide = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf", dtype=torch.float32)
    assert apart(ours, wide, torch.randint(61, (2, 40))) < 1e-5  # (`model.float()` would keep angles in half)


def test_shards_are_put_together(tmp_path):
    model = theirs("qwen3")
    model.save_pretrained(tmp_path / "hf", max_shard_size="20KB")
    assert len(list((tmp_path / "hf").glob("model-*.safetensors"))) > 2
    assert apart(weft.load(tmp_path / "hf").model, model, torch.randint(61, (2, 40))) < 1e-5


def test_a_model_without_its_head_and_with_its_old_masks(tmp_path):
    from safetensors.torch import load_file, save_file

    model = theirs("gpt2")
    model.transformer.save_pretrained(tmp_path / "hf")
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    assert "wte.weight" in tensors
    for layer in range(2):
        tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 40, 40, dtype=torch.bool).tril()
        tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, tmp_path / "hf" / "model.safetensors")
    assert apart(weft.load(tmp_path / "hf").model, model, torch.randint(61, (2, 40))) < 1e-5


def test_settings_of_older_files_are_understood(tmp_path):
    model = theirs("llama slow")
    model.save_pretrained(tmp_path / "hf")
    path = tmp_path / "hf" / "config.json"
    settings = json.loads(path.read_text())
    settings |= {"rope_theta": settings.pop("rope_parameters")["rope_theta"], "rope_scaling": None}
    path.write_text(json.dumps(settings))
    assert apart(weft.load(tmp_path / "hf").model, model, torch.randint(61, (2, 40))) < 1e-5


# -- our own runs -----------------------------------------------------------------------------


TEXT = "The cat sat on the mat, and the dog ran under the tree. Naïve cafés — 你好 👋!\n" * 20
SMALL = {"width": 32, "depth": 2, "max_length": 48}
STYLES = {
    "gpt2": {**preset("gpt2")[1], "attention": {"kind": "softmax", "heads": 4}, **SMALL},
    "default": SMALL,
    "llama": {
        **SMALL,
        "norm": "rms",
        "feed_forward": "gated",
        "qk_norm": False,
        "embedding_norm": False,
        "attention": {"kind": "softmax", "heads": 4, "kv_heads": 2, "bias": False},
    },
}
STYLES["qwen3"] = {**STYLES["llama"], "qk_norm": "learned", "tied": True}


def a_run(path, style, kind="bpe"):
    """A run directory as training leaves it, as far as using it goes."""
    tokenizer = TokenizerConfig.from_config({"kind": kind}).train([TEXT])
    config = GPTConfig(**{**STYLES[style], "vocab_size": tokenizer.vocab_size})
    torch.manual_seed(2)
    model = config.build()
    move_weights(model)
    run = RunDirectory.create(path)
    tokenizer.save(run.tokenizer_file)
    run.write_model(dict(model.named_parameters()))
    settings = {"tokenizer": {"kind": kind}, "data": {"train": ["book.txt"]}, "training": {"steps": 1, "batch": 1}}
    run.write_config({"task": "generate", "model": config.to_dict(), **settings})
    return weft.load(path)


@pytest.mark.parametrize("style", STYLES)
def test_an_exported_run_opens_in_transformers(style, tmp_path):
    run = a_run(tmp_path / "run", style)
    certificate = export_run(tmp_path / "run", tmp_path / "hf")
    assert certificate["converter"] == {"default": "nanochat"}.get(style, style)
    assert certificate == json.loads((tmp_path / "hf" / "certificate.json").read_text())
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    ids = torch.tensor([run.tokenizer.encode("The dog sat — 你好").tolist()])
    assert tokenizer("The dog sat — 你好", return_tensors="pt")["input_ids"].tolist() == ids.tolist()
    assert apart(run.model, model, ids) < 1e-5
    assert model.generate(ids, max_new_tokens=3, do_sample=False).shape[1] <= ids.shape[1] + 3

    import_model(tmp_path / "hf", tmp_path / "again")
    again = weft.load(tmp_path / "again")
    assert same_bits(dict(again.model.named_parameters()), dict(run.model.named_parameters()))
    assert torch.equal(again.model(ids), run.model(ids))
    assert again.tokenizer.fingerprint == run.tokenizer.fingerprint


@pytest.mark.parametrize("kind", ["characters", "words", "bytes", "bpe"])
def test_ids_are_equal_in_auto_tokenizer(kind, tmp_path):
    run = a_run(tmp_path / "run", "default", kind)
    assert export_run(tmp_path / "run", tmp_path / "hf")["transformers"]["texts_tokenised"] == len(TEXTS)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    for text in (TEXT[:200], "1 ŵ \x00\u200b x", *TEXTS):
        assert theirs(text)["input_ids"] == run.tokenizer.encode(text).tolist()
        assert theirs.decode(theirs(text)["input_ids"]) == text
    assert theirs.eos_token == END and theirs.eos_token_id == run.tokenizer.end


def test_the_old_files_of_gpt2_give_its_ids(tmp_path):
    trained = TokenizerConfig.from_config("bpe").train([TEXT])
    model = json.loads(trained.to_json())["model"]
    folder = tmp_path / "hf"
    config = transformers.GPT2Config(**GPT2 | {"vocab_size": trained.vocab_size, "eos_token_id": trained.end})
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({**model["vocab"], END: trained.end}))
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    for run in (weft.load(folder), import_and_load(folder, tmp_path / "run")):
        assert run.tokenizer.kind == "bpe" and run.tokenizer.end == trained.end
        for text in TEXTS:
            assert run.tokenizer.encode(text).tolist() == theirs(text)["input_ids"] == trained.encode(text).tolist()


def import_and_load(folder, path):
    import_model(folder, path)
    return weft.load(path)


def test_another_end_of_text_is_found_and_kept(tmp_path):
    import tokenizers

    engine = tokenizers.Tokenizer(tokenizers.models.BPE())
    engine.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    engine.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>", "<s>", "</s>"])
    engine.train_from_iterator([TEXT], trainer)
    size = engine.get_vocab_size()
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA | {"vocab_size": size, "eos_token_id": 2}))
    model.save_pretrained(tmp_path / "by-id")
    engine.save(str(tmp_path / "by-id" / "tokenizer.json"))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=engine, eos_token="</s>", bos_token="<s>")
    model.config.eos_token_id = None
    model.save_pretrained(tmp_path / "by-name")
    fast.save_pretrained(tmp_path / "by-name")
    for name in ("by-id", "by-name"):
        run = import_and_load(tmp_path / name, tmp_path / f"{name}-run")
        assert (run.tokenizer.end, run.tokenizer.end_name) == (2, "</s>")
        assert run.tokenizer.encode("the cat").tolist() == fast("the cat", add_special_tokens=False)["input_ids"]
        certificate = export_run(tmp_path / f"{name}-run", tmp_path / f"{name}-back")
        assert certificate["transformers"]["texts_tokenised"] == len(TEXTS)


# -- what cannot be said, and what is not the same --------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attention": {"kind": "hard", "bias": False}}, "llama: attention is softmax there, not hard"),
        ({"position": "learned"}, "gpt2: norm is layer with biases there"),
        ({"position": "alibi"}, "nanochat: position is rotary there, not alibi"),
        ({"qk_norm": False}, "nanochat: qk_norm is on there"),
        ({"embedding_norm": False}, "nanochat: embedding_norm is on there"),
        ({"norm": {"kind": "rms", "learned": False, "eps": 1e-5}}, "nanochat: all norms share one eps"),
        (
            {"attention": {"kind": "softmax", "bias": False, "beta": 0.5}},
            "nanochat: attention.beta is 1/√head_width there",
        ),
        (
            {"attention": {"kind": "softmax", "bias": False, "value_width": 3}},
            "nanochat: attention.value_width is head_width there",
        ),
        (
            {"attention": {"kind": "softmax", "heads": 4, "head_width": 4}},
            "nanochat: heads × head_width is width there",
        ),
    ],
)
def test_a_model_that_no_layout_can_say_is_refused_with_reasons(change, reason):
    config = GPTConfig(vocab_size=50, **{**SMALL, **change})
    with pytest.raises(UnsupportedError) as caught:
        converter_for(config)
    assert reason in str(caught.value)
    assert {name for name in Converter.registry if f"{name}: " in str(caught.value)} == {
        "gpt2",
        "llama",
        "qwen3",
        "nanochat",
    }


def test_dropout_that_a_layout_cannot_say_is_named(tmp_path):
    converter = converter_for(GPTConfig(vocab_size=50, dropout=0.1))
    assert converter.losses(GPTConfig(vocab_size=50, dropout=0.1)) == ["dropout = 0.1 (used in training only)"]
    gpt2 = GPTConfig(**{**STYLES["gpt2"], "vocab_size": 50, "dropout": 0.2})
    assert converter_for(gpt2).write_config(gpt2)["embd_pdrop"] == 0.2 and converter_for(gpt2).losses(gpt2) == []


def test_a_wrong_export_is_caught_and_leaves_nothing(tmp_path, monkeypatch):
    """Without turning queries and keys round, Weft reads its own folder back, and transformers reads another model."""
    a_run(tmp_path / "run", "default")
    same = Change(lambda rows: rows, lambda rows: rows)
    monkeypatch.setattr("weft.models.gpt.llama._other_way_round", lambda width: same)
    with pytest.raises(DataError, match="opened by transformers, the folder gives logits that differ"):
        export_run(tmp_path / "run", tmp_path / "deep" / "er" / "hf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
    monkeypatch.undo()
    export_run(tmp_path / "run", tmp_path / "hf")


def test_without_transformers_the_certificate_says_so(tmp_path, monkeypatch):
    a_run(tmp_path / "run", "default")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    certificate = export_run(tmp_path / "run", tmp_path / "hf")
    assert certificate["transformers"] == {"not_compared": "transformers is not installed"}
    assert certificate["weights"] == "bit-equal"


def test_a_capped_nanochat_is_refused(tmp_path):
    for cap in ({"final_logit_softcapping": 15.0}, {}):
        config = transformers.NanoChatConfig(**LLAMA | cap)
        transformers.NanoChatForCausalLM(config).save_pretrained(tmp_path / f"hf{len(cap)}")
        with pytest.raises(UnsupportedError, match=r"final_logit_softcapping = 15\.0: .* no cap"):
            weft.load(tmp_path / f"hf{len(cap)}").model  # noqa: B018
    assert isinstance(Converter.registry["nanochat"], NanoChatConverter)


@pytest.mark.slow
def test_gpt2_124m(tmp_path):
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    model.save_pretrained(tmp_path / "hf")
    ids = torch.randint(50257, (1, 128))
    began = time.perf_counter()
    ours = weft.load(tmp_path / "hf").model
    assert time.perf_counter() - began < 10  # about 1.5 s on a machine that does nothing else
    assert apart(ours, model, ids) < 1e-5
    del ours
    import_model(tmp_path / "hf", tmp_path / "run")
    assert export_run(tmp_path / "run", tmp_path / "back")["transformers"]["difference"] < 1e-5
