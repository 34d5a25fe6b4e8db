"""Models that write one text from another, from Hugging Face into a run and back: the same numbers, ids and texts."""

import json
import os
import warnings

import pytest
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, processors

import weft
from weft.checkpoints import RunDirectory
from weft.checkpoints.hugging_face import HuggingFaceFolder, write_folder
from weft.errors import DataError, UnsupportedError, WeftError
from weft.exchange.probes import TEXTS, TranslatingProbe
from weft.exchange.transfer import export_run, import_model
from weft.generation.search import SearchConfig
from weft.generation.text_to_text import write
from weft.models import MarianConverter, ModelConfig, preset
from weft.text import Tokenizer, TokenizerConfig
from weft.weights import Row, WeightTable

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SOURCES = ["the cat sat on the mat", "a dog", "x", "the cats and the dogs, under the tree!"]
TEXT = "The cat sat on the mat, and the dog ran under the tree. Naïve cafés — 你好!\n" * 20
MARIAN = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 60,
    "scale_embedding": True,
    "activation_function": "swish",
}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 4, "n_positions": 60}


def their_tokenizer():
    """As T5's and converted Marian's: pieces that carry their space, and the end put after each text."""
    letters = ["</s>", "<unk>", *sorted({*"abcdefghijklmnopqrstuvwxyz.,!▁"}), "▁the", "▁cat", "at", "og", "<pad>"]
    engine = tokenizers.Tokenizer(models.Unigram([(piece, -float(len(piece) < 2)) for piece in letters], unk_id=1))
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.decoder = decoders.Metaspace()
    engine.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 0)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine, eos_token="</s>", unk_token="<unk>", pad_token="<pad>"
    )


def moved(model):
    """Every parameter away from zeros and ones, but not the sinusoids."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "embed_positions" not in name and name != "position":
                p.add_(0.3 * torch.randn_like(p))
    return model.eval()


def a_folder(path, family="marian"):
    """A folder of theirs with a tokenizer."""
    tokenizer = their_tokenizer()
    size = len(tokenizer)
    ids = {"vocab_size": size, "eos_token_id": 0, "pad_token_id": size - 1, "decoder_start_token_id": size - 1}
    torch.manual_seed(2)
    if family == "marian":
        model = transformers.MarianMTModel(transformers.MarianConfig(**MARIAN, **ids, forced_eos_token_id=None))
        model.final_logits_bias.normal_()
    else:
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(**T5, **ids))
    moved(model).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return model


def a_run(path, family="transformer", *, kind="bpe", source_kind=None, **fields):
    """A run of ours as far as using it goes; with `source_kind`, sources have a vocabulary of their own."""
    target = TokenizerConfig.from_config({"kind": kind}).train([TEXT])
    source = None if source_kind is None else TokenizerConfig.from_config({"kind": source_kind}).train([TEXT.lower()])
    sizes = {"vocab_size": target.vocab_size, "start": target.end, "width": 32, "depth": 2, "max_length": 60}
    sizes |= {} if source is None else {"source_vocab_size": source.vocab_size}
    parts = preset("transformer-base")[1] | {"attention": {"kind": "softmax", "heads": 4}} if family != "t5" else {}
    config = ModelConfig.from_config({"kind": family, **parts, **sizes, **fields})
    torch.manual_seed(3)
    model = moved(config.build())
    run = RunDirectory.create(path)
    target.save(run.tokenizer_file)
    if source is not None:
        source.save(run.source_tokenizer_file)
    run.write_model(dict(model.named_parameters()))
    origin = {"converter": "marian", "source": "here"}
    run.write_config({"task": "translate", "model": config.to_dict(), "origin": origin})
    return weft.load(path)


def sources_of(run):
    return [[*run.source_tokenizer.encode(text).tolist(), run.source_tokenizer.end] for text in SOURCES]


def we_write(run, beams, limit=8):
    """Ids as `weft translate` finds them, with the end where one was found."""
    start, end = run.model_config.start, run.tokenizer.end
    suppress = () if start == end else (start,)
    search = SearchConfig(beams=beams, end=end, suppress=suppress)
    found = write(run.model, sources_of(run), search, start=start, limits=[limit] * len(SOURCES))
    return [texts[0].tokens for texts in found]


def they_write(model, tokenizer, end, beams, limit=8):
    batch = tokenizer(SOURCES, padding=True, return_tensors="pt")
    found = model.generate(**batch, num_beams=beams, do_sample=False, max_new_tokens=limit).tolist()
    texts = [row[1:] for row in found]
    return [text[: text.index(end)] if end in text else text for text in texts]


def opened(path):
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(path).eval()
    return model, transformers.AutoTokenizer.from_pretrained(path)


def check_same(run, model, tokenizer, beams=(1, 3)):
    """Logits and texts, from text to text, in both programs."""
    batch = tokenizer(SOURCES, padding=True, return_tensors="pt")
    assert [row[keep.bool()].tolist() for row, keep in zip(*batch.values(), strict=True)] == sources_of(run)
    torch.manual_seed(4)
    target = torch.randint(0, run.model_config.vocab_size, (len(SOURCES), 7))
    target[:, 0] = run.model_config.start
    with torch.no_grad():
        expected = model(**batch, decoder_input_ids=target).logits
        found = run.model(batch["input_ids"], target, source_keep=batch["attention_mask"].bool())
    assert (found - expected).abs().max() < 1e-5 * max(1.0, float(expected.abs().max())) and expected.abs().max() > 0.1
    for count in beams:
        found = we_write(run, count)
        assert found == they_write(model, tokenizer, run.tokenizer.end, count) and any(found)


# -- theirs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_in_and_out_again(family, tmp_path):
    model = a_folder(tmp_path / "hf", family)
    made = import_model(tmp_path / "hf", tmp_path / "run")
    assert made["task"] == "translate" and made["converter"] == family and made["notes"] == []
    run, tokenizer = weft.load(tmp_path / "run"), transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert run.source_tokenizer is run.tokenizer and run.tokenizer.special.pad == run.model_config.start
    model.generation_config.bad_words_ids = [[run.model_config.start]]  # as Marian's own files say, and T5's do not
    check_same(run, model, tokenizer)
    check_same(weft.load(tmp_path / "hf"), model, tokenizer, beams=())
    assert "weft translate" in (tmp_path / "run" / "README.md").read_text()

    certificate = export_run(tmp_path / "run", tmp_path / "back")
    assert certificate["auto_class"] == "AutoModelForSeq2SeqLM" and certificate["weights"] == "bit-equal"
    found = certificate["transformers"]
    assert found["difference"] < 1e-4 and found["texts_tokenised"] == len(TEXTS) and found["tokens_written"] > 3
    again, exported = opened(tmp_path / "back")
    assert type(again) is type(model)
    state, wanted = again.state_dict(), model.state_dict()
    assert state.keys() == wanted.keys() and all(torch.equal(state[name], wanted[name]) for name in state)
    assert again.config.eos_token_id == 0 and again.config.pad_token_id == run.model_config.start
    check_same(run, again, exported, beams=[3])
    card = (tmp_path / "back" / "README.md").read_text()
    assert "pipeline_tag: translation\n" in card and "import AutoModelForSeq2SeqLM, AutoTokenizer" in card

    import_model(tmp_path / "back", tmp_path / "twice")
    twice = weft.load(tmp_path / "twice")
    assert twice.model_config == run.model_config and twice.tokenizer.fingerprint == run.tokenizer.fingerprint


def test_without_a_tokenizer_it_goes_both_ways(tmp_path):
    model = a_folder(tmp_path / "hf")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "hf" / name).unlink()
    made = import_model(tmp_path / "hf", tmp_path / "run")
    assert made["notes"] == ["there is no tokenizer: the model reads and writes ids only"]
    certificate = export_run(tmp_path / "run", tmp_path / "back")
    assert certificate["transformers"]["tokens_written"] > 3
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back")
    for name in ("eos_token_id", "pad_token_id", "decoder_start_token_id"):
        assert getattr(again.generation_config, name) == getattr(model.generation_config, name)


def put_sentence_pieces(folder):
    """Marian's own files: a SentencePiece model for each side, over one vocabulary that lacks some pieces."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece trains the files")
    lines = {"source": ["the cat sat on the mat", "a dog ran under the tree!", "x, and the dogs, cats and mats"]}
    lines["target"] = ["le chat est sur le tapis", "un chien court sous l'arbre"]
    pieces = {}
    for side, texts in lines.items():
        given = {"model_prefix": str(folder / side), "vocab_size": 50, "hard_vocab_limit": False, "minloglevel": 2}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts * 5), **given)
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        pieces[side] = [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
    names = dict.fromkeys(["</s>", "<unk>", *pieces["source"], *pieces["target"][:-9], "<pad>"])
    (folder / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    return len(names)


def test_marians_own_files(tmp_path):
    """Two SentencePiece models in, two `tokenizer.json` out: what is read is what the folder opens with."""
    folder = tmp_path / "hf"
    folder.mkdir()
    size = put_sentence_pieces(folder)
    ids = {"vocab_size": size, "eos_token_id": 0, "pad_token_id": size - 1, "decoder_start_token_id": size - 1}
    torch.manual_seed(2)
    model = moved(transformers.MarianMTModel(transformers.MarianConfig(**MARIAN, **ids, forced_eos_token_id=None)))
    model.generation_config.bad_words_ids = [[size - 1]]
    model.save_pretrained(folder)
    made = import_model(folder, tmp_path / "run")
    assert made["tokenizer"] and (tmp_path / "run" / "source_tokenizer.json").exists()
    with warnings.catch_warnings():  # it misses a package that cleans punctuation
        warnings.simplefilter("ignore")
        run, slow = weft.load(tmp_path / "run"), transformers.MarianTokenizer.from_pretrained(folder)
    check_same(run, model, slow)
    text = "un chien court sous le chat"
    assert [*run.tokenizer.encode(text).tolist(), 0] == slow(text_target=text)["input_ids"]

    certificate = export_run(tmp_path / "run", tmp_path / "back")
    assert "pieces of text that the vocabulary lacks" in certificate["left_out"][0]
    again, tokenizer = opened(tmp_path / "back")
    check_same(run, again, tokenizer)
    written = run.tokenizer.encode("le chat est sur").tolist()
    # one vocabulary: either of them gives a text back
    assert tokenizer.decode(written, skip_special_tokens=True) == run.tokenizer.decode(written)
    folder = weft.load(tmp_path / "back")
    assert folder.source_tokenizer.fingerprint == run.source_tokenizer.fingerprint


# -- ours -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bpe", "words", "characters", "bytes"])
def test_our_own_transformer_translates_there_as_here(kind, tmp_path):
    run = a_run(tmp_path / "run", kind=kind)
    certificate = run.export(tmp_path / "hf")
    assert certificate["architecture"] == "MarianMTModel" and certificate["difference"] < 1e-4
    model, tokenizer = opened(tmp_path / "hf")
    check_same(run, model, tokenizer)
    assert model.generation_config.max_length == 60 and model.generation_config.num_beams == 4
    text = tokenizer.batch_decode([run.tokenizer.encode("The cat — 你好!").tolist()], skip_special_tokens=True)
    assert text == ["The cat — 你好!"]

    import_model(tmp_path / "hf", tmp_path / "again")
    again = weft.load(tmp_path / "again")
    assert again.tokenizer.fingerprint == run.tokenizer.fingerprint and again.tokenizer.kind == kind


def test_a_vocabulary_for_each_side(tmp_path):
    run = a_run(tmp_path / "run", kind="bpe", source_kind="characters", head_bias=True)
    assert run.source_tokenizer.vocab_size < run.tokenizer.vocab_size and run.source_tokenizer.end != run.tokenizer.end
    assert run.export(tmp_path / "hf")["transformers"]["texts_tokenised"] == len(TEXTS)
    model, tokenizer = opened(tmp_path / "hf")
    check_same(run, model, tokenizer)
    written = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf" / "target_tokenizer")
    for text in TEXTS:
        assert written(text)["input_ids"] == [*run.tokenizer.encode(text).tolist(), run.tokenizer.end]
    folder = weft.load(tmp_path / "hf")
    assert folder.tokenizer.fingerprint == run.tokenizer.fingerprint
    assert folder.source_tokenizer.fingerprint == run.source_tokenizer.fingerprint

    import_model(tmp_path / "hf", tmp_path / "again")
    assert (tmp_path / "again" / "source_tokenizer.json").exists()
    check_same(weft.load(tmp_path / "again"), model, tokenizer)
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "written.batch_decode" in card and "target_tokenizer" in card


def test_our_own_t5_translates_there_as_here(tmp_path):
    run = a_run(tmp_path / "run", "t5")
    run.export(tmp_path / "hf")
    check_same(run, *opened(tmp_path / "hf"))


def test_our_default_parts_are_refused_with_what_to_do(tmp_path):
    target = TokenizerConfig.from_config("characters").train([TEXT])
    config = ModelConfig.from_config({"kind": "transformer", "vocab_size": target.vocab_size, "width": 32, "depth": 1})
    run = RunDirectory.create(tmp_path / "run")
    target.save(run.tokenizer_file)
    run.write_model(dict(config.build().named_parameters()))
    origin = {"converter": "marian", "source": "here"}
    run.write_config({"task": "translate", "model": config.to_dict(), "origin": origin})
    with pytest.raises(UnsupportedError, match="position is sinusoidal there, not rotary; norm_first") as caught:
        export_run(tmp_path / "run", tmp_path / "hf")
    assert "--model transformer-base" in str(caught.value) and os.listdir(tmp_path) == ["run"]


# -- negative controls: an export that is wrong is caught -------------------------------------


def changed(name, **settings):
    """Fields of a JSON file set to something else, or gone."""

    def damage(folder):
        found = json.loads((folder / name).read_text()) | settings
        (folder / name).write_text(json.dumps({k: v for k, v in found.items() if v != "gone"}))

    return damage


DAMAGE = {
    "another start": (changed("generation_config.json", decoder_start_token_id=3), "decoder_start_token_id = 3, not"),
    "another end": (changed("generation_config.json", eos_token_id=5), "eos_token_id = 5, not"),
    "never the likeliest": (changed("generation_config.json", bad_words_ids=[[n] for n in range(250)]), "other tokens"),
    "no end after a text": (changed("tokenizer.json", post_processor=None), "with its end"),
    "no padding": (changed("tokenizer_config.json", pad_token="gone"), "the pad_token"),
    "segments": (
        changed("tokenizer_config.json", model_input_names=["input_ids", "token_type_ids", "attention_mask"]),
        "the inputs of a model",
    ),
    "start of the model": (changed("config.json", decoder_start_token_id=3), "config.json describes another model"),
    "activation": (changed("config.json", activation_function="gelu"), "config.json describes another model"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_export_is_caught(what, tmp_path, monkeypatch):
    damage, words = DAMAGE[what]
    a_run(tmp_path / "run")

    def write_wrongly(folder, *parts):
        write_folder(folder, *parts)
        damage(folder)

    monkeypatch.setattr("weft.exchange.transfer.write_folder", write_wrongly)
    with pytest.raises(DataError, match=words) as caught:
        export_run(tmp_path / "run", tmp_path / "out")
    assert len(str(caught.value).splitlines()) <= 3 and os.listdir(tmp_path) == ["run"]


def unmoved(row):
    return Row(row.foreign, row.ours, row.transposed, None, row.ones) if isinstance(row, Row) else row


def unmoved_norms(row):
    return unmoved(row) if isinstance(row, Row) and "layer_norm" in row.foreign else row


def exchanged(row):
    """Keys and values of the source under each other's name."""
    if not isinstance(row, Row) or "encoder_attn" not in row.foreign:
        return row
    name = row.foreign.replace("k_proj", "?").replace("v_proj", "k_proj").replace("?", "v_proj")
    return Row(name, row.ours, row.transposed, row.change)


@pytest.mark.parametrize("edit", [unmoved, unmoved_norms, exchanged])
def test_rows_in_the_wrong_place_are_caught(edit, tmp_path, monkeypatch):
    """The converter's table, changed in both directions alike: Weft reads what it wrote, others read it wrongly."""
    a_run(tmp_path / "run")
    real = MarianConverter.table

    def table(self, config, **options):
        return WeightTable(*(edit(row) for row in real(self, config, **options).rows))

    monkeypatch.setattr(MarianConverter, "table", table)
    with pytest.raises(DataError, match="gives logits that differ"):
        export_run(tmp_path / "run", tmp_path / "out")
    assert os.listdir(tmp_path) == ["run"]
    monkeypatch.undo()
    export_run(tmp_path / "run", tmp_path / "out")


def test_the_probe_sees_padding_sources_and_targets(tmp_path):
    """A model that forgot one of them would be another one."""
    run = a_run(tmp_path / "run")
    probe = TranslatingProbe(run.model_config)
    with torch.no_grad():
        right = probe.ours(run.model)["logits"]
        for name in ("keep", "sources", "targets"):
            whole = getattr(probe, name)
            setattr(probe, name, torch.ones_like(whole) if name == "keep" else whole.flip(1))
            assert (probe.ours(run.model)["logits"] - right).abs().max() > 1e-2, name
            setattr(probe, name, whole)
    assert not probe.keep.all() and len({tuple(row) for row in probe.targets.tolist()}) == len(probe.targets)


def test_a_tokenizer_that_is_too_large_is_refused(tmp_path):
    a_run(tmp_path / "run", source_kind="characters")
    TokenizerConfig.from_config("bpe").train([TEXT]).save(tmp_path / "run" / "source_tokenizer.json")
    with pytest.raises(WeftError, match="the tokenizer of its sources has"):
        export_run(tmp_path / "run", tmp_path / "out")


def test_two_tokenizers_with_other_names_are_not_imported(tmp_path):
    a_run(tmp_path / "run", source_kind="characters").export(tmp_path / "hf")
    theirs = json.loads((tmp_path / "hf" / "tokenizer.json").read_text().replace("<|endoftext|>", "</s>"))
    (tmp_path / "hf" / "tokenizer.json").write_text(json.dumps(theirs))
    changed("tokenizer_config.json", eos_token="</s>", pad_token="</s>")(tmp_path / "hf")
    assert weft.load(tmp_path / "hf").source_tokenizer.end_name == "</s>"
    with pytest.raises(UnsupportedError, match="special tokens have different names"):
        import_model(tmp_path / "hf", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_files_that_put_the_end_after_a_text_have_the_same_ids_and_fingerprint(tmp_path):
    run = a_run(tmp_path / "run")
    run.export(tmp_path / "hf")
    read = HuggingFaceFolder(tmp_path / "hf").read_tokenizer()
    assert read.encode("the cat").tolist() == run.tokenizer.encode("the cat").tolist()
    assert read.fingerprint == run.tokenizer.fingerprint
    settings = json.loads(read.to_json())
    assert settings["post_processor"] is not None
    settings["post_processor"]["single"] *= 2  # a negative control: a file that does more
    assert Tokenizer.from_json(json.dumps(settings)).fingerprint != run.tokenizer.fingerprint
