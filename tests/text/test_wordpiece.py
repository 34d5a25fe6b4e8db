"""WordPiece on the user's own text, and BERT's `vocab.txt` with everything that can be wrong in it."""

import json
import subprocess
import sys

import numpy as np
import pytest

from weft.errors import ConfigError, DataError, UnsupportedError, WeftError
from weft.tasks.experiment import Experiment
from weft.tasks.request import make_request
from weft.text import Tokenizer, TokenizerConfig
from weft.text.hugging_face import has_tokenizer, read_folder
from weft.text.special import BERT_NAMES

TEXT = "It was the best of times, it was the worst of times; naïve café CAFÉ, the timing of 日本 and 日本.\n" * 6
TRAINED = TokenizerConfig.from_config({"kind": "wordpiece", "vocab_size": 120}).train([TEXT])
CASED = TokenizerConfig.from_config({"kind": "wordpiece", "vocab_size": 120, "lowercase": False}).train([TEXT])
VOCABULARY = [*BERT_NAMES, "the", "cat", "##s", "sat", ",", "Cat", "é", "e"]


def folder_with(path, lines=VOCABULARY, **settings):
    path.mkdir(exist_ok=True)
    content = lines if isinstance(lines, bytes) else "".join(line + "\n" for line in lines).encode()
    (path / "vocab.txt").write_bytes(content)
    if settings:
        (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return path


def names(tokenizer, ids):
    spelled = {number: token for token, number in tokenizer._vocabulary.items()}
    return [spelled[int(number)] for number in ids]


# -- learned here -----------------------------------------------------------------------------


def test_special_tokens_come_first():
    assert names(TRAINED, range(5)) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    special = TRAINED.special
    assert (special.pad, special.unknown, special.classify, special.separate, special.mask) == (0, 1, 2, 3, 4)
    assert TRAINED.end == special.end == 3 and TRAINED.end_name == "[SEP]"
    assert TRAINED.kind == "wordpiece" and TRAINED.vocab_size <= 120


def test_words_are_spelled_with_pieces():
    assert names(TRAINED, TRAINED.encode("The BEST times")) == ["the", "best", "times"]
    assert names(TRAINED, TRAINED.encode("bestimes")) != ["[UNK]"]
    pieces = names(TRAINED, TRAINED.encode("timesthe"))
    assert len(pieces) > 1 and all(piece.startswith("##") for piece in pieces[1:]) and pieces[0][:2] != "##"
    assert "".join(piece.removeprefix("##") for piece in pieces) == "timesthe"


def test_text_is_cleaned_and_not_given_back():
    assert TRAINED.decode(TRAINED.encode("It was  NAÏVE café,\nthe best")) == "it was naive cafe, the best"
    assert CASED.decode(CASED.encode("It was café CAFÉ")) == "It was café CAFÉ"
    assert not TokenizerConfig.registry["wordpiece"].gives_text_back
    assert names(TRAINED, TRAINED.encode("日本")) == ["日", "本"], "Chinese characters stand alone"
    assert "##日" not in TRAINED._vocabulary, "so no piece goes on with one"


def test_what_is_unknown():
    assert names(TRAINED, TRAINED.encode("the Ω times")) == ["the", "[UNK]", "times"]
    assert TRAINED.unseen_share(TRAINED.encode("the Ω times")) == pytest.approx(1 / 3)
    assert TRAINED.unseen_share(TRAINED.encode("the best times")) == 0 == TRAINED.unseen_share([])
    once = TokenizerConfig.from_config("wordpiece").train([TEXT + "Ω"])
    assert once.unseen_share(once.encode(TEXT + "Ω")) > 0, "a character seen once is left out"
    twice = TokenizerConfig.from_config("wordpiece").train([TEXT + "Ω Ω"])
    assert twice.unseen_share(twice.encode("Ω")) == 0
    assert names(TRAINED, TRAINED.encode("t" * 101)) == ["[UNK]"] != names(TRAINED, TRAINED.encode("t" * 100))


def test_bytes_of_pieces():
    ids = TRAINED.encode("the café 日本")
    assert TRAINED.byte_length(ids) == len("thecafe日本".encode()), "spaces are not counted"
    assert TRAINED.token_bytes[:5].tolist() == [0] * 5


@pytest.mark.parametrize("size", [16, 20, 40, 60])
def test_the_vocabulary_is_never_larger_than_asked(size):
    small = TokenizerConfig.from_config({"kind": "wordpiece", "vocab_size": size}).train([TEXT], special=["[A]", "[B]"])
    assert small.vocab_size <= size and names(small, [small.vocab_size - 2, small.vocab_size - 1]) == ["[A]", "[B]"]
    assert names(small, range(5)) == list(BERT_NAMES)


def test_the_most_frequent_letters_stay():
    small = TokenizerConfig.from_config({"kind": "wordpiece", "vocab_size": 17}).train(
        ["a b c d e f g h i j k " + "z y x " * 9]
    )
    assert {"x", "y", "z"} <= set(small._vocabulary) and "k" not in small._vocabulary


def test_refused_settings_and_nothing_to_read():
    with pytest.raises(ConfigError, match="at least 16"):
        TokenizerConfig.from_config({"kind": "wordpiece", "vocab_size": 15})
    nothing = TokenizerConfig.from_config("wordpiece").train([])
    assert nothing.vocab_size == 5 and nothing.encode("some text").tolist() == [1, 1]


def test_another_process_learns_the_same():
    program = (
        "from weft.text import TokenizerConfig\n"
        f"print(TokenizerConfig.from_config({{'kind': 'wordpiece', 'vocab_size': 120}}).train([{TEXT!r}]).fingerprint)"
    )
    found = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(3)
    }
    assert found == {TRAINED.fingerprint}  # the engine alone numbers its pieces anew each time


def test_files(tmp_path):
    TRAINED.save(tmp_path / "tokenizer.json")
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert (again.special, again.end_name, again.kind) == (TRAINED.special, "[SEP]", "wordpiece")
    assert again.fingerprint == TRAINED.fingerprint != CASED.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": None},
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"decoder": None},
    ],
)
def test_other_rules_are_another_kind(change):
    settings = json.loads(TRAINED.to_json()) | change
    assert Tokenizer.from_json(json.dumps(settings)).kind == "other"
    model = settings["model"] | {"continuing_subword_prefix": "@@"}
    assert Tokenizer.from_json(json.dumps(json.loads(TRAINED.to_json()) | {"model": model})).kind == "other"


def test_it_is_refused_for_writing(tmp_path):
    (tmp_path / "book.txt").write_text(TEXT * 20)
    for said in ({"tokenizer": "wordpiece"}, {}):
        changes = {} if said else {"tokenizer.kind": "wordpiece"}
        request = make_request([str(tmp_path / "book.txt")], {"steps": 1, **said}, changes=changes)
        with pytest.raises(ConfigError, match=r"'wordpiece' is not for writing: it does not give text back\n.*bpe"):
            Experiment.plan(request)


# -- BERT's vocab.txt -------------------------------------------------------------------------


def test_ids_are_line_numbers(tmp_path):
    assert not has_tokenizer(tmp_path)
    tokenizer = read_folder(folder_with(tmp_path))
    assert has_tokenizer(tmp_path)
    assert tokenizer.kind == "wordpiece" and tokenizer.vocab_size == len(VOCABULARY)
    assert tokenizer.encode("THE cats sat, É dog").tolist() == [5, 6, 7, 8, 9, 12, 1]
    assert tokenizer.special.end == tokenizer.end == 3
    cased = read_folder(folder_with(tmp_path, do_lower_case=False, tokenizer_class="BertTokenizer"))
    assert cased.encode("the Cat CATS é").tolist() == [5, 10, 1, 11]
    kept = read_folder(folder_with(tmp_path, do_lower_case=True, strip_accents=False))
    assert kept.encode("É e").tolist() == [11, 12]
    assert len({tokenizer.fingerprint, cased.fingerprint, kept.fingerprint}) == 3


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_end_as_people_end_them(ending, last, mark, tmp_path):
    content = mark + (ending.join(VOCABULARY) + (ending if last else "")).encode()
    assert read_folder(folder_with(tmp_path, content)).fingerprint == read_folder(folder_with(tmp_path)).fingerprint


def test_only_a_newline_ends_a_line(tmp_path):
    odd = ["\u2028", "\x85", "\u3000", "\x0b", "a\u2029b"]
    tokenizer = read_folder(folder_with(tmp_path, [*VOCABULARY, *odd, "dog"]))
    assert tokenizer.encode("dog").tolist() == [len(VOCABULARY) + len(odd)]


def test_names_of_its_own(tmp_path):
    lines = ["<pad>", "<unk>", "<cls>", "<sep>", "<gap>", "a", "b"]
    named = {"pad_token": "<pad>", "unk_token": {"content": "<unk>"}, "cls_token": "<cls>", "sep_token": "<sep>"}
    tokenizer = read_folder(folder_with(tmp_path, lines, mask_token="<gap>", **named))
    special = tokenizer.special
    assert (special.pad, special.unknown, special.classify, special.separate, special.mask) == (0, 1, 2, 3, 4)
    assert tokenizer.encode("a <gap> z").tolist()[0] == 5 and 4 not in tokenizer.encode("a <gap> z")
    assert tokenizer.encode_with_mask("a <gap>", mask="<gap>").tolist() == [5, 4]
    tokenizer.save(tmp_path / "tokenizer.json")
    again = read_folder(tmp_path)
    assert again.special == special and again.fingerprint == tokenizer.fingerprint
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(DataError, match=r"no <\|endoftext\|>"):
        read_folder(tmp_path)  # nothing tells any more which token is which


def _broken():
    yield "empty", b"", "is empty"
    yield "only lines", b"\n\n\n", "is empty"
    yield "twice", [*VOCABULARY, "cat"], "'cat' on the lines 7 and 14"
    yield "a gap", [*VOCABULARY, "", "dog"], "is empty on line 14"
    yield "no unknown", [line for line in VOCABULARY if line != "[UNK]"], r"has no \[UNK\]"
    yield "no end", [line for line in VOCABULARY if line != "[SEP]"], r"has no \[SEP\]"
    yield "not UTF-8", "\n".join(VOCABULARY).encode() + b"\n\xff\xfe\n", "not UTF-8 text: see line 14"
    yield "an image", b"\x89PNG\r\n\x1a\n", "not UTF-8"


@pytest.mark.parametrize(("what", "content", "said"), list(_broken()), ids=[what for what, *_ in _broken()])
def test_broken_vocabularies_are_refused_by_name(what, content, said, tmp_path):
    with pytest.raises(DataError, match=said) as caught:
        read_folder(folder_with(tmp_path, content))
    assert str(tmp_path / "vocab.txt") in str(caught.value) and len(str(caught.value).splitlines()) <= 3


def test_a_gigantic_vocabulary(tmp_path, monkeypatch):
    with (tmp_path / "vocab.txt").open("wb") as file:
        file.truncate(33 << 20)  # a hole: no disk is filled
    with pytest.raises(DataError, match=r"vocab\.txt has 33 MB"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"tokenizer_class": "BertJapaneseTokenizer"},
        {"tokenizer_class": 7},
        {"tokenizer_class": ["BertTokenizer"]},
        {"do_basic_tokenize": False},
        {"do_lower_case": "no"},
        {"strip_accents": 1},
    ],
)
def test_settings_that_we_do_not_follow(settings, tmp_path):
    with pytest.raises((UnsupportedError, DataError)) as caught:
        read_folder(folder_with(tmp_path, **settings))
    assert isinstance(caught.value, WeftError) and len(str(caught.value).splitlines()) <= 3


def test_dtype_and_batches(tmp_path):
    tokenizer = read_folder(folder_with(tmp_path))
    rows = tokenizer.encode_batch(["the cat", "", "sat"])
    assert [row.tolist() for row in rows] == [[5, 6], [], [8]] and all(row.dtype == np.uint32 for row in rows)
