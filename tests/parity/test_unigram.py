"""Unigram files of others: T5's, XLM-RoBERTa's and one with bytes give the ids that transformers gives."""

import gzip
import io
import json
from itertools import pairwise

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from real_data import DATA, needs_data
from weft.text import SpecialTokens, Tokenizer
from weft.text.hugging_face import read_folder
from weft.text.piece_file import CONTROL, UNKNOWN, read_piece_file
from weft.text.word_edges import WordEdges

transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is a peer; `make setup` installs it")
transformers.logging.set_verbosity_error()

PROSE = (
    "The naïve cats sat and sat on the mats, and the bats sat on the cats; café — and 42 owls.\n"
    "Sitting, catting, batting: the cat that sat was sitting (and the bat that sat was batting).\n"
    "Où sont les chiens? Il n'y a pas de chats. Straße, Äpfel & Öl: 1 000 %, 日本語.\n"
)
ODD = [
    "",
    " ",
    "  a  b ",
    "\t\n",
    "½ ﬁ Ａ ①",
    "👩‍👩‍👧",
    "e\u0301 \u3000\u0308",
    "▁x▁",
    "Ω ΩΨ",
    "x" * 200,
    "\0\x01",
    "<b>",
]
text = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.lists(st.sampled_from([*PROSE.split(), *ODD, "<extra_id_1>", "</s>"]), max_size=15).map(" ".join),
)


@pytest.fixture(scope="module")
def spiece(tmp_path_factory):
    """A small file of SentencePiece, with T5's ids."""
    content = io.BytesIO()
    numbers = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "vocab_size": 150}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(PROSE.split("\n") * 8),
        model_writer=content,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **numbers,
    )
    path = tmp_path_factory.mktemp("spiece") / "spiece.model"
    path.write_bytes(content.getvalue())
    return path


def t5(path):
    """What transformers makes of T5's file."""
    found = read_piece_file(path)
    pieces = [(piece.name, piece.score) for piece in found.pieces]
    pieces += [(f"<extra_id_{number}>", 0.0) for number in reversed(range(10))]
    return transformers.T5Tokenizer(vocab=pieces, _spm_precompiled_charsmap=found.charsmap, extra_ids=10)


def xlm_roberta(path):
    """Four special tokens first, a mask that takes the space before it, and `<s> … </s>` around a text."""
    found = read_piece_file(path)
    first = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces = [(piece.name, piece.score) for piece in found.pieces if piece.role not in (UNKNOWN, CONTROL)]
    engine = tokenizers.Tokenizer(models.Unigram([*first, *pieces, ("<mask>", 0.0)], unk_id=3))
    engine.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(found.charsmap), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")]
    )
    engine.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    engine.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    engine.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    engine.add_special_tokens([name for name, _ in first])
    engine.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    names = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=engine, bos_token="<s>", cls_token="<s>", **names)


def with_bytes(path):
    """Nothing is cleaned, and bytes stand for what is unknown, as in Llama's files."""
    found = read_piece_file(path)
    pieces = [(piece.name, piece.score) for piece in found.pieces]
    pieces += [(f"<0x{value:02X}>", -20.0) for value in range(256)]
    engine = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=True))
    engine.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    engine.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    names = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=engine, **names)


@pytest.fixture(scope="module", params=[t5, xlm_roberta, with_bytes], ids=lambda make: make.__name__)
def both(request, spiece, tmp_path_factory):
    """Ours, read from the folder that theirs writes."""
    folder = tmp_path_factory.mktemp("folder")
    theirs = request.param(spiece)
    theirs.save_pretrained(folder)
    return read_folder(folder), theirs


def ids_of(theirs, texts):
    return theirs(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]


LINES = [*ODD, *PROSE.split("\n"), *PROSE.split()]


def lines_of_data():
    """Lines of prose in three languages."""
    found = []
    for name in ("wikitext2/valid.txt", "multi30k/raw/val.de.gz", "multi30k/raw/val.fr.gz"):
        content = (DATA / name).read_bytes()
        content = gzip.decompress(content) if name.endswith(".gz") else content
        found += content.decode().split("\n")[:300]
    return found


def check_same_ids(ours, theirs, texts, distinct):
    """The same ids for every text, at least so many of them different, and the same texts back."""
    rows = [row.tolist() for row in ours.encode_batch(texts)]
    assert rows == ids_of(theirs, texts) and len({tuple(row) for row in rows}) >= distinct
    assert [ours.decode(row) for row in rows] == theirs.batch_decode(
        rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )


def test_no_text_is_read_otherwise(both):
    ours, theirs = both

    @settings(max_examples=200, deadline=None)
    @given(st.lists(text, min_size=1, max_size=4))
    def same(texts):
        rows = [row.tolist() for row in ours.encode_batch(texts)]
        assert rows == ids_of(theirs, texts)
        for row in rows:
            assert ours.decode(row) == theirs.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    same()
    check_same_ids(ours, theirs, LINES, distinct=30)


@needs_data("wikitext2", "multi30k")
def test_no_line_of_real_prose_is_read_otherwise(both):
    check_same_ids(*both, lines_of_data(), distinct=600)


def test_special_tokens_are_found(both):
    ours, theirs = both
    assert ours.kind == "other"
    assert (ours.end, ours.end_name) == (theirs.eos_token_id, "</s>")
    assert (ours.special.pad, ours.special.unknown) == (theirs.pad_token_id, theirs.unk_token_id)
    assert ours.special.mask == theirs.mask_token_id and ours.special.classify == theirs.cls_token_id
    wanted = [theirs.convert_tokens_to_ids(f"<extra_id_{number}>") for number in range(10)]
    assert ours.sentinels == (wanted if isinstance(theirs, transformers.T5Tokenizer) else [])


def test_the_end_is_found_without_other_files(spiece, tmp_path):
    t5(spiece).save_pretrained(tmp_path)
    ours = Tokenizer.from_json((tmp_path / "tokenizer.json").read_text())
    assert ours.special == SpecialTokens(end=1, unknown=2, pad=0)
    spec = json.loads((tmp_path / "tokenizer.json").read_text())
    for token in spec["added_tokens"]:
        token["special"] = False
    assert Tokenizer.from_json(json.dumps(spec), ends=["</s>"]).special.pad is None, "a name alone is text"


def test_bytes_are_counted(both):
    """A space before the first word is counted with it."""
    ours, _ = both
    for line in ("cats sat", "the bats sat on the mats", "sitting"):
        ids = ours.encode(line)
        assert ours.byte_length(ids) == len(f" {line}".encode())
    assert ours.unseen_share(ours.encode("the Ω cats")) == (0 if "<0x41>" in ours._vocabulary else pytest.approx(0.25))


def test_files_keep_their_fingerprint(both, tmp_path):
    """The engine reads the last digits of a score otherwise than it wrote them."""
    ours, _ = both
    kept = ours
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        kept.save(tmp_path / str(number) / "tokenizer.json")
        kept = read_folder(tmp_path / str(number))
        assert kept.fingerprint == ours.fingerprint and kept.special == ours.special


def test_words_are_put_together(both):
    ours, _ = both
    line = "The naïve cats sat, catting: 42 owls."
    ids = ours.encode(line)
    begins = WordEdges.of(ours).begins(ids, np.array([0]))
    edges = [*np.flatnonzero(begins), len(ids)]
    words = [b"".join(ours._spelling[number] for number in ids[a:b]).decode() for a, b in pairwise(edges)]
    assert words == [" The", " naïve", " cats", " sat", ",", " catting", ":", " 42", " owls", "."]


def test_t5s_old_file_gives_the_ids_of_its_new_one(spiece, tmp_path):
    """The folder that has only `spiece.model`; marks in an order of their own apart, which theirs loses."""
    (tmp_path / "spiece.model").write_bytes(spiece.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 10, "tokenizer_class": "T5Tokenizer"}))
    ours, theirs = read_folder(tmp_path), t5(spiece)
    everything = [line for line in LINES if "\u0308" not in line]
    assert [row.tolist() for row in ours.encode_batch(everything)] == ids_of(theirs, everything)
    assert ours.sentinels == [theirs.convert_tokens_to_ids(f"<extra_id_{number}>") for number in range(10)]
    assert ours.vocab_size == len(theirs) and ours.special == SpecialTokens(end=1, unknown=2, pad=0)
    for line in everything:
        ids = ours.encode(line)
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    (typed,) = ids_of(theirs, ["a</s><unk>"])
    assert 1 in typed and 1 not in ours.encode("a</s><unk>"), "what a person types is text here"
    ours.save(tmp_path / "tokenizer.json")
    opened = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert ids_of(opened, everything) == ids_of(theirs, everything), "and others open what we write"
