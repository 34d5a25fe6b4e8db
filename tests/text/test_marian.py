"""Marian's two SentencePiece files over one vocabulary, against transformers' MarianTokenizer."""

import json
import warnings

import pytest

from weft.errors import WeftError
from weft.text.hugging_face import has_tokenizer, json_with_end, lacking_pieces, read_folder, read_source
from weft.text.tokenizer import Tokenizer

sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece trains the files; `make setup` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")

ENGLISH = ["the cat sat on the mat", "a dog ran under the tree", "where are the dogs and the cats?", "it is late now"]
FRENCH = ["le chat est sur le tapis", "un chien court sous l'arbre", "où sont les chiens et les chats ?", "il est tard"]
TEXTS = [
    *ENGLISH,
    *FRENCH,
    "",
    " ",
    "  two  spaces ",
    "Cats, dogs & trees!",
    "naïve 你好 ½ ﬁn",
    "</s> is text",
    "a\tb\nc",
]


def train(path, lines, size=60):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 4),
        model_prefix=str(path.with_suffix("")),
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path.with_suffix(".model").rename(path)
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """`made(separate, lacking, codes)`: a folder as Marian's converter leaves it."""
    root = tmp_path_factory.mktemp("marian")

    def make(name, *, separate=False, lacking=0, codes=(), alike=False):
        folder = root / name
        folder.mkdir()
        source = train(folder / "source.spm", ENGLISH)
        if alike:
            (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
        target = source if alike else train(folder / "target.spm", FRENCH)
        sides = [[m.id_to_piece(i) for i in range(3, m.get_piece_size())] for m in (source, target)]
        groups = sides if separate else [[*sides[0][: len(sides[0]) - lacking], *sides[1]]]
        files = ["vocab.json", "target_vocab.json"] if separate else ["vocab.json"]
        for file, pieces in zip(files, groups, strict=True):
            names = dict.fromkeys(["</s>", "<unk>", *pieces, *codes, "<pad>"])
            (folder / file).write_text(json.dumps({piece: number for number, piece in enumerate(names)}))
        config = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate, "source_lang": "en"}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        return folder

    return make


def theirs(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.MarianTokenizer.from_pretrained(folder)


def ids_of(tokenizer, text):
    return [*tokenizer.encode(text).tolist(), tokenizer.end]


def foreign(text, lines):
    """Whether a side has never seen a letter: they look up what is unknown once more, among the other side's pieces."""
    return bool(set(text.split("<<")[-1]) - {*"".join(lines), " ", "\t", "\n"})


CASES = {
    "one vocabulary": {},
    "two vocabularies": {"separate": True},
    "pieces that the vocabulary lacks": {"lacking": 12},
    "languages": {"codes": (">>fra<<", ">>ita<<")},
}


@pytest.mark.parametrize("case", CASES)
def test_ids_are_theirs_on_both_sides(case, made):
    folder = made(case.replace(" ", "-"), **CASES[case])
    assert has_tokenizer(folder)
    target, source, other = read_folder(folder), read_source(folder), theirs(folder)
    texts = [*TEXTS, ">>fra<< the cat", ">>ita<<a dog"] if "codes" in CASES[case] else TEXTS
    for text in texts:
        if "</s>" in text:  # they read special tokens out of texts
            continue
        assert ids_of(source, text) == other(text)["input_ids"] or foreign(text, ENGLISH), text
        assert ids_of(target, text) == other(text_target=text)["input_ids"] or foreign(text, FRENCH), text
    for text in FRENCH:
        assert target.decode(target.encode(text)) == text
    assert source.special.pad == other.pad_token_id and source.special.unknown == other.unk_token_id
    assert any(ids_of(source, text) != ids_of(target, text) for text in ENGLISH)  # they are two


def test_what_a_person_types_is_no_special_token(made):
    source = read_source(made("typed"))
    assert source.end not in source.encode("</s> is text") and source.special.pad not in source.encode("<pad>")


def test_two_equal_files_are_one_tokenizer(made):
    folder = made("alike", alike=True)
    assert read_source(folder) is None
    assert ids_of(read_folder(folder), ENGLISH[0]) == theirs(folder)(ENGLISH[0])["input_ids"]


def test_pieces_that_the_vocabulary_lacks_are_not_for_others(made):
    folder = made("lacking", lacking=12)
    source = read_source(folder)
    assert 0 < lacking_pieces(source) <= 12 and lacking_pieces(read_folder(folder)) == 0
    written = Tokenizer.from_json(json_with_end(source), ends=["</s>"])
    assert lacking_pieces(written) == 0 and written.vocab_size == source.vocab_size
    same = [text for text in TEXTS if source.special.unknown not in source.encode(text)]
    assert same and all(written.encode(text).tolist() == source.encode(text).tolist() for text in same)
    lost = [text for text in ENGLISH if source.special.unknown in source.encode(text)]
    assert lost and all(written.encode(text).max() < source.vocab_size for text in lost)


BROKEN = {
    "no unknown": ({"</s>": 0, "▁the": 1, "<pad>": 2}, "without <unk>"),
    "text as id": ({"</s>": 0, "<unk>": "1", "<pad>": 2}, "ids are no numbers"),
    "an id twice": ({"</s>": 0, "<unk>": 1, "<pad>": 1}, "each once"),
    "a huge id": ({"</s>": 0, "<unk>": 1, "<pad>": 10**9}, "ids up to"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_vocabularies_are_refused(what, made, tmp_path):
    vocabulary, words = BROKEN[what]
    folder = made("broken-" + what.replace(" ", "-"))
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    with pytest.raises(WeftError, match=words) as caught:
        read_folder(folder)
    assert len(str(caught.value).splitlines()) <= 3


def test_a_broken_file_is_refused_by_name(made):
    folder = made("cut")
    (folder / "target.spm").write_bytes((folder / "target.spm").read_bytes()[:100])
    with pytest.raises(WeftError, match=r"target\.spm"):
        read_folder(folder)
