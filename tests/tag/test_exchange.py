"""A tagger of Hugging Face into a run and out again with a certificate, and used on the way: the same tags as there."""

import json

import pytest
import torch

import weft
from fixtures.weights import move_weights
from weft.errors import WeftError
from weft.exchange.probes import ReadingProbe
from weft.exchange.transfer import export_run, import_model
from weft.tasks.tag.tagger import WordTagger

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ada", ".", *LETTERS, *(f"##{c}" for c in LETTERS)]
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(1)
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {label: n for n, label in enumerate(LABELS)}}
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    config = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=64, **sizes, **names)
    model = transformers.BertForTokenClassification(config).eval()
    move_weights(model, 0.3)
    model.save_pretrained(tmp_path / "hf")
    (tmp_path / "hf" / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return tmp_path / "hf"


def test_in_and_out_again(folder, tmp_path):
    told = import_model(folder, tmp_path / "run")
    assert not any("no head" in note for note in told["notes"])
    run = weft.load(tmp_path / "run")
    assert list(run.model_config.head.labels) == LABELS
    export_run(tmp_path / "run", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == ["BertForTokenClassification"]
    models = [
        transformers.AutoModelForTokenClassification.from_pretrained(p).eval() for p in (folder, tmp_path / "out")
    ]
    ids = torch.randint(5, len(WORDS), (3, 12))
    one, other = (model(ids).logits for model in models)
    assert (one - other).abs().max() < 1e-5 and models[1].config.id2label == dict(enumerate(LABELS))


def test_the_certificate_looks_at_the_labels(folder, tmp_path, monkeypatch):
    import_model(folder, tmp_path / "run")
    model = weft.load(tmp_path / "run").model
    probe = ReadingProbe(model.config)
    assert set(probe.ours(model)) == {"states", "token_logits"}
    kept = ReadingProbe.ours

    def otherwise(self, given):
        found = kept(self, given)
        return found | {"token_logits": found["token_logits"] + 0.01}

    monkeypatch.setattr(ReadingProbe, "ours", otherwise)
    with pytest.raises(WeftError, match="differ"):
        export_run(tmp_path / "run", tmp_path / "out")


def test_words_get_the_tags_that_transformers_gives_them(folder, tmp_path):
    run = weft.load(folder)
    tagger = WordTagger(run.model, run.tokenizer, run.model_config.head.labels)
    theirs = transformers.AutoModelForTokenClassification.from_pretrained(folder).eval()
    cutter = transformers.AutoTokenizer.from_pretrained(folder)
    for words in (["Ada", "saw", "the", "sea", "."], ["x"], ["Unbelievable", "zebras", "…", "ran"]):
        given = cutter(words, is_split_into_words=True, return_tensors="pt")
        chances = theirs(**given).logits[0].softmax(-1)
        firsts = {word: place for place, word in reversed(list(enumerate(given.word_ids()))) if word is not None}
        found = tagger.tag_words(words)
        best = chances[[firsts[n] for n in range(len(words))]].max(-1)
        assert found.tags == [LABELS[n] for n in best.indices.tolist()]
        assert [word.probability for word in found.words] == pytest.approx(best.values.tolist(), abs=1e-5)
