"""Checking pairs: the counts are those of a plain count, and tokens are those that training makes."""

import json
import statistics

import pytest

from fixtures.tables import make_reversals, write_parallel_files, write_table, write_translation_table
from weft.errors import ConfigError, DataError
from weft.tasks import token_lengths
from weft.tasks.data_check import CheckRequest
from weft.tasks.translate import check
from weft.tasks.translate.pair_data import PairConfig, read_pair_data
from weft.tasks.vocabulary import pair_tokenizer_fields
from weft.text import TokenizerConfig


def check_pairs(train, validation=(), test=(), **asked):
    return check.check_pairs(CheckRequest(train, validation, test, **asked))


def paths(*given):
    return [str(path) for path in given]


def table(path, rows):
    return str(write_table(path, ("en", "de"), rows))


@pytest.mark.parametrize("kind", [None, "characters"])
def test_lengths_and_vocabulary_are_those_of_training(tmp_path, kind):
    train, dev = write_parallel_files(tmp_path, "train", 200), write_parallel_files(tmp_path, "dev", 30, 9)
    found = check_pairs(paths(*train), paths(*dev), tokenizer=kind)
    data = read_pair_data(PairConfig(train=tuple(paths(*train)), validation=tuple(paths(*dev))))
    config = TokenizerConfig.from_config(pair_tokenizer_fields(kind, data.config.characters))
    tokenizer = config.train([*data.train.sources, *data.train.targets])
    assert found.facts["tokenizer"] == {"kind": tokenizer.kind, "vocab_size": tokenizer.vocab_size, "one_in": 1}
    for name, pairs in (("train", data.train), ("validation", data.validation)):
        part = found.parts[name]
        for side, texts in (("source", pairs.sources), ("target", pairs.targets)):
            lengths = [len(ids) + 1 for ids in tokenizer.encode_batch(texts)]
            assert (part["tokens"][side]["shortest"], part["tokens"][side]["longest"]) == (min(lengths), max(lengths))
            assert part["characters"][side]["longest"] == max(map(len, texts))
        assert part["counted"] == part["rows"] == part["pairs"] == len(pairs)
    assert found.parts["train"]["ratio"] == 1
    assert found.notes == found.problems == [] and len(found.warnings) == 1, "two hundred are few"
    assert (found.facts["columns"]["source"], found.facts["columns"]["target"]) == (None, None)


def test_ratio_and_cut(tmp_path):
    rows = [("x " * n, "y " * (2 * n)) for n in range(1, 151)]
    found = check_pairs([table(tmp_path / "a.csv", rows)], tokenizer="words")
    part = found.parts["train"]
    assert part["ratio"] == pytest.approx(statistics.median(len(b) / len(a) for a, b in rows), abs=1e-3)
    longest = part["tokens"]["target"]["longest"]
    assert part["tokens"]["source"]["longest"] < longest
    assert part["cut"][64] > part["cut"][128] > part["cut"][256] > 0
    assert any("of the pairs have more than 256 tokens on a side" in warning for warning in found.warnings)


def test_leakage_in_every_direction(tmp_path):
    rows, other = make_reversals(100), make_reversals(20, 9)
    train = table(tmp_path / "train.csv", rows)
    dev = table(tmp_path / "dev.csv", [*other[:9], (rows[0][0].upper(), "another one")])
    test = table(tmp_path / "test.csv", [*other[10:], rows[1], other[0], (other[1][0], "x")])
    found = check_pairs([train], [dev], [test])
    leaks = {
        (name, other): (overlap["sources"], overlap["pairs"])
        for name, part in found.parts.items()
        for other, overlap in part["leakage"].items()
    }
    assert leaks == {("validation", "train"): (1, 0), ("test", "train"): (1, 1), ("test", "validation"): (2, 1)}
    assert sum("look better than they are" in warning for warning in found.warnings) == 3


def test_very_many_pairs_are_sampled(tmp_path, monkeypatch):
    path = str(write_translation_table(tmp_path / "a.csv", 300))
    whole = check_pairs([path])
    monkeypatch.setattr(token_lengths, "MAX_SAMPLE_CHARACTERS", 4000)
    some = check_pairs([path])
    assert whole.facts["tokenizer"]["one_in"] == 1 and whole.parts["train"]["counted"] == 300
    assert (one_in := some.facts["tokenizer"]["one_in"]) > 2 and some.parts["train"]["counted"] == -(-300 // one_in)
    assert some.parts["train"]["characters"] == whole.parts["train"]["characters"]


def test_progress_comes_to_its_end(tmp_path):
    told = []
    check_pairs(
        [str(write_translation_table(tmp_path / "a.csv"))], progress=lambda done, total: told.append((done, total))
    )
    assert told[-1] == (192, 192)


def test_what_training_would_refuse_is_a_problem(tmp_path):
    found = check_pairs([table(tmp_path / "few.csv", make_reversals(3))])
    assert "3 pairs in" in found.problems[0] and found.parts["train"]["pairs"] == 3
    alike = table(tmp_path / "alike.csv", [("same", str(n)) for n in range(9)])
    assert "are the same" in check_pairs([alike]).problems[0]
    assert check_pairs([alike], [alike]).problems == [], "nothing has to be split"
    with pytest.raises(DataError, match="does not exist"):
        check_pairs([str(tmp_path / "none.csv")])
    with pytest.raises(ConfigError, match="did you mean 'characters'"):
        check_pairs([str(tmp_path / "none.csv")], tokenizer="caracters")
    with pytest.raises(ConfigError, match="'em'"):
        check_pairs([alike], columns={"source": "em"})


def test_the_findings_as_json(tmp_path):
    rows = [*make_reversals(50), ("Berlin", "Berlin"), ("", "x")]
    found = json.loads(json.dumps(check_pairs([table(tmp_path / "a.csv", rows)]).to_dict()))
    assert found["validation"] is found["test"] is None
    assert found["columns"]["source"] == "en" and "first is the source" in found["columns"]["reason"]
    train = found["train"]
    assert (train["rows"], train["pairs"], train["without_text"], train["copied"]) == (52, 51, 1, 1)
    assert train["cut"] == {"64": 0, "128": 0, "256": 0} and "left out: 1 (line 53)" in found["notes"][0]
    assert set(train["tokens"]) == set(train["characters"]) == {"source", "target"}
