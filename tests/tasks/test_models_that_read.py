"""A BERT can be opened and used from Python; what it cannot do is refused in words."""

import pytest
import torch

import weft
from weft.errors import UnsupportedError
from weft.exchange.transfer import import_model

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert") / "hf"
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=60, max_position_embeddings=32, **sizes)
    transformers.BertForMaskedLM(config).save_pretrained(path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", *"abcdefghijklmnopqrstuvwxyz"]
    (path / "vocab.txt").write_text("\n".join(words) + "\n")
    return path


def test_it_opens_with_its_tokenizer(folder):
    run = weft.load(folder)
    ids, segments = run.tokenizer.encode_pair("the cats")
    assert ids.tolist() == [2, 5, 6, 7, 3] and not segments.any()
    found = run.model(torch.from_numpy(ids.astype("int64"))[None])
    theirs = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = theirs(torch.tensor([[2, 5, 6, 7, 3]])).logits
    assert (found - logits).abs().max() < 1e-5
    assert "bert" in run._repr_html_()


@pytest.mark.parametrize("use", ["generate", "samples", "stream"])
def test_it_does_not_write(folder, use):
    with pytest.raises(UnsupportedError, match="does not write"):
        getattr(weft.load(folder), use)("the")


def test_imported_it_is_a_run_that_fills_and_does_not_write(folder, tmp_path):
    assert import_model(folder, tmp_path / "run")["task"] == "fill"
    run = weft.load(tmp_path / "run")
    assert run.tokenizer.encode_pair("the cats")[0].tolist() == [2, 5, 6, 7, 3]
    with pytest.raises(UnsupportedError, match="does not write"):
        run.generate("the")


def test_a_bert_is_not_trained_to_write(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 50)
    with pytest.raises(UnsupportedError, match="does not continue a text"):
        weft.train(str(tmp_path / "text.txt"), task="generate", model="bert-tiny", steps=1, out=str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_training_to_write_cannot_begin_from_a_bert(folder, tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 50)
    with pytest.raises(UnsupportedError, match="does not write"):
        weft.train(str(tmp_path / "text.txt"), task="generate", from_=str(folder), steps=1, out=str(tmp_path / "run"))
