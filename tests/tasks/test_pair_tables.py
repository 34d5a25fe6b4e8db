"""Pairs as the data of a run: read in every way, split without leaks, and the same again at a resume."""

import gzip
import json
from pathlib import Path

import pytest

from fixtures.tables import make_reversals, write_parallel_files, write_table, write_translation_table
from real_data import DATA, needs_data
from weft.config import Config
from weft.errors import ConfigError, DataError
from weft.tasks.request import make_request
from weft.tasks.task import task_of
from weft.tasks.training import paths_of
from weft.tasks.translate.pair_data import PairConfig, check_same, open_pairs, read_pair_data


def config(*train, **fields):
    names = ("validation", "test")
    paths = {name: tuple(map(str, fields.pop(name))) for name in names if name in fields}
    return PairConfig(train=tuple(map(str, train)), **paths, **fields)


def together(pairs):
    return list(zip(pairs.sources, pairs.targets, strict=True))


def everything(data):
    return sorted(together(data.train) + together(data.validation))


# -- reading ----------------------------------------------------------------------------------


def test_the_same_pairs_from_tables_and_from_two_files(tmp_path):
    given = [
        [write_translation_table(tmp_path / "a.csv")],
        [write_translation_table(tmp_path / "a.tsv")],
        [write_translation_table(tmp_path / "a.jsonl")],
        write_parallel_files(tmp_path),
        [write_translation_table(tmp_path / "b.csv", 96)],
    ]
    found = [read_pair_data(config(*paths)) for paths in given]
    assert len({data.config.fingerprint for data in found}) == 1
    for data in found:
        assert together(data.train) == together(found[0].train)
        assert data.test is None and data.warnings == ()
        assert data.config.rows == len(data.train) == 87 and len(data.validation) == 9
        assert data.config.characters == data.train.characters == data.config.bytes
        assert data.config.reason == data.why
    assert (found[0].config.source, found[0].config.target) == ("source", "target")
    assert (found[3].config.source, found[3].config.target) == (None, None)
    assert "because the first is the source" in found[0].why
    assert found[3].why.endswith("train.de, line by line")


def test_several_tables_are_one(tmp_path):
    first = write_translation_table(tmp_path / "a.csv", 40, seed=1)
    second = write_table(
        tmp_path / "b.tsv", ("id", "target", "source"), [(n, *r[::-1]) for n, r in enumerate(make_reversals(40, 2))]
    )
    data = read_pair_data(config(first, second))
    assert everything(data) == sorted(make_reversals(40, 1) + make_reversals(40, 2))


def test_named_columns(tmp_path):
    rows = [(n, a, b, a.upper()) for n, (a, b) in enumerate(make_reversals(40))]
    path = write_table(tmp_path / "a.csv", ("id", "en", "de", "fr"), rows)
    data = read_pair_data(config(path, source="fr", target="en"))
    assert everything(data) == sorted((a.upper(), a) for a, _ in make_reversals(40))
    assert "you named 'fr' and 'en'" in data.why
    with pytest.raises(ConfigError, match="'em'"):
        read_pair_data(config(path, source="em"))
    with pytest.raises(ConfigError, match="--target de without a table"):
        read_pair_data(config(*write_parallel_files(tmp_path), target="de"))
    with pytest.raises(ConfigError, match="--source x without a table"):
        read_pair_data(config("demo", source="x"))


def test_parts_of_their_own_in_any_form(tmp_path):
    train = write_translation_table(tmp_path / "train.csv")
    dev = write_parallel_files(tmp_path, "dev", 10, seed=8)
    test = tmp_path / "test.tsv"
    test.write_text("".join(f"{a}.\t{b}.\n" for a, b in make_reversals(12, 9)))  # without a header
    data = read_pair_data(config(train, validation=dev, test=[test]))
    assert len(data.train) == 96, "nothing is held out"
    assert together(data.validation) == make_reversals(10, 8)
    assert data.test.sources == [f"{a}." for a, _ in make_reversals(12, 9)]
    assert any("test.tsv has no header" in text for text in data.warnings)
    other = write_table(tmp_path / "other.csv", ("source", "targets"), make_reversals(10, 8))
    with pytest.raises(DataError, match=r"(?s)other.csv has no column 'target', which .*train.csv has.*'targets'"):
        read_pair_data(config(train, validation=[other]))
    swapped = write_table(tmp_path / "swapped.csv", ("target", "source"), [row[::-1] for row in make_reversals(10, 8)])
    assert together(read_pair_data(config(train, validation=[swapped])).validation) == make_reversals(10, 8)


def test_the_embedded_pairs():
    data = read_pair_data(config("demo"))
    assert len(data.test) == len(data.validation) == 1000 and data.warnings == ()
    assert not set(data.train.sources) & {*data.test.sources, *data.validation.sources}
    assert open_pairs(["demo"], part="test")[0].sources == data.test.sources


REFUSED = {
    "book.txt": (["book.txt"], r"book.txt alone\nexpected two text files"),
    "three": (["train.en", "train.de", "book.txt"], "3 text files, .*train.en and others"),
    "mixed": (["train.csv", "train.de"], "train.de is a text and .*train.csv is a table"),
    "folder": (["train.en", "folder"], r"folder is a folder\nexpected two text files"),
    "missing": (["train.en", "trian.de"], r"trian.de does not exist\ndid you mean '.*train.de'"),
    "missing table": (["trian.csv"], "did you mean '.*train.csv'"),
    "same": (["train.en", "train.en"], "are the same file"),
    "one column": (["one.csv"], "one column"),
    "few": (["few.csv"], "3 pairs in .*few.csv\nexpected at least 4"),
    "alike": (["alike.csv"], "1 different texts"),
    "twice": (["twice.csv"], "several columns named 'en'"),
    "image": (["image.en", "train.de"], "a PNG image"),
    "shorter": (["train.en", "few.de"], "has 96 lines and .*few.de has 3"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, tmp_path):
    write_parallel_files(tmp_path)
    write_parallel_files(tmp_path, "few", 3)
    write_translation_table(tmp_path / "train.csv")
    write_translation_table(tmp_path / "few.csv", 3)
    write_table(tmp_path / "one.csv", ("text",), [(a,) for a, _ in make_reversals()])
    write_table(tmp_path / "alike.csv", ("en", "de"), [("Same  one", str(n)) for n in range(4)])
    write_table(tmp_path / "twice.csv", ("en", "en"), make_reversals())
    (tmp_path / "book.txt").write_text("Once upon a time.\n" * 9)
    (tmp_path / "image.en").write_bytes(b"\x89PNG\r\n\x1a\n123")
    (tmp_path / "folder").mkdir()
    names, words = REFUSED[what]
    with pytest.raises(DataError, match=words) as error:
        read_pair_data(config(*(tmp_path / name for name in names)))
    assert len(str(error.value).splitlines()) <= 3


def test_nothing_held_out_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"held_out = 0\n.*--validation"):
        read_pair_data(config(*write_parallel_files(tmp_path), held_out=0))


# -- splitting --------------------------------------------------------------------------------


def test_pairs_with_the_same_source_stay_on_one_side(tmp_path):
    rows = [(f"{'The' if n % 2 else 'the'}  source {n % 60}", f"target {n}") for n in range(240)]
    data = read_pair_data(config(write_table(tmp_path / "a.csv", ("en", "de"), rows)))
    assert everything(data) == sorted(rows)
    sides = [{" ".join(text.casefold().split()) for text in part.sources} for part in (data.train, data.validation)]
    assert not sides[0] & sides[1]
    assert 20 <= len(data.validation) <= 24


def test_not_more_than_a_thousand_are_held_out_and_always_the_same(tmp_path):
    paths = [tmp_path / "a.en", tmp_path / "a.de"]
    for path in paths:
        path.write_text("".join(f"{path.suffix} {n}\n" for n in range(10_100)))
    data, again = read_pair_data(config(*paths)), read_pair_data(config(*paths))
    assert len(data.validation) == 1000 and data.validation.sources == again.validation.sources
    assert len(read_pair_data(config(*paths, held_out=0.05)).validation) == 505
    assert len(read_pair_data(config(write_translation_table(tmp_path / "b.csv", 5))).validation) == 1


# -- warnings ---------------------------------------------------------------------------------


def test_leaks_copies_duplicates_and_what_is_uneven(tmp_path):
    rows = make_reversals(200)
    train = write_table(tmp_path / "train.csv", ("en", "de"), rows)
    one, two = together(read_pair_data(config(train)).train)[:2]  # which are not held out
    test = write_table(tmp_path / "test.csv", ("en", "de"), [*make_reversals(8, 9), (one[0].upper(), "x y z"), two])
    told = read_pair_data(config(train, test=[test])).warnings
    assert told == (
        f"20.0% of the sources in {test} also stand in {train} (1 with the same target, 1 with another): "
        "results on it look better than they are",
    )
    told = read_pair_data(config(train, validation=[test])).warnings
    assert len(told) == 1 and "20.0% of the sources" in told[0]
    odd = [*rows, *rows[:5], *((a, a) for a, _ in make_reversals(40, 9)), *((str(n), "x" * 30) for n in range(5))]
    told = read_pair_data(config(write_table(tmp_path / "odd.csv", ("en", "de"), odd), validation=[test])).warnings
    for word in ("stand there before", "learn to copy", "9 times as long", "look better"):
        assert sum(word in line for line in told) == 1, word
    assert read_pair_data(config(train)).warnings == ()


def test_empty_lines_are_told(tmp_path):
    source, target = write_parallel_files(tmp_path)
    lines = target.read_text().split("\n")
    lines[4] = ""
    target.write_text("\n".join(lines))
    data = read_pair_data(config(source, target))
    assert "left out: 1 (line 5)" in data.warnings[0] and len(everything(data)) == 95


# -- a resume ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["table", "bare table", "files", "demo"])
def test_what_was_recorded_reads_the_same_again(kind, tmp_path):
    if kind == "table":
        rows = [(n, a, b) for n, (a, b) in enumerate(make_reversals())]
        paths = [write_table(tmp_path / "a.csv", ("id", "en", "de"), rows)]
    elif kind == "bare table":
        paths = [tmp_path / "a.tsv"]
        paths[0].write_text("".join(f"{a}.\t{b}.\n" for a, b in make_reversals()))
    else:
        paths = ["demo"] if kind == "demo" else write_parallel_files(tmp_path)
    first = read_pair_data(config(*paths))
    recorded = PairConfig.from_dict(json.loads(json.dumps(first.config.to_dict())))
    again = read_pair_data(recorded)
    assert again.config == recorded == first.config and isinstance(recorded, Config)
    assert together(again.validation) == together(first.validation) and again.why == first.why
    check_same(recorded, again.config)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ("train.de", r"train.en and .*train.de have changed since this run began: 96 pairs to learn from then, 96 now"),
        ("dev.en", r"the pairs in .*dev.en and .*dev.de have changed since this run began\n"),
        ("test.csv", r"the pairs in .*test.csv have changed"),
    ],
)
def test_other_pairs_are_refused(changed, words, tmp_path):
    train, dev = write_parallel_files(tmp_path), write_parallel_files(tmp_path, "dev", 9, 7)
    test = write_translation_table(tmp_path / "test.csv", 9, 8)
    recorded = read_pair_data(config(*train, validation=dev, test=[test])).config
    path = tmp_path / changed
    path.write_text(path.read_text().replace("the", "teh"))
    with pytest.raises(DataError, match=words):
        check_same(recorded, read_pair_data(recorded).config)


def test_swapped_sides_are_other_pairs(tmp_path):
    one, two = write_parallel_files(tmp_path)
    found = [read_pair_data(config(*paths)).config.fingerprint for paths in ((one, two), (two, one))]
    assert found[0] != found[1]


# -- what the user says -----------------------------------------------------------------------


def test_the_task_is_told_from_the_data(tmp_path):
    assert task_of([str(write_translation_table(tmp_path / "a.csv"))]) == "translate"
    assert (
        task_of(
            [
                str(
                    write_table(
                        tmp_path / "b.csv", ("text", "label"), [(a, n % 2) for n, (a, _) in enumerate(make_reversals())]
                    )
                )
            ]
        )
        == "classify"
    )
    bare = tmp_path / "c.tsv"
    bare.write_text("".join(f"{a}.\t{b}.\n" for a, b in make_reversals()))
    assert task_of([str(bare)]) == "translate"
    assert task_of([str(path) for path in write_parallel_files(tmp_path)]) == "generate", "two files need the word"
    with gzip.open(tmp_path / "d.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"question": a, "answer": b}) + "\n" for a, b in make_reversals())
    assert task_of([str(tmp_path / "d.jsonl.gz")]) == "translate"
    assert task_of([str(tmp_path / "none.csv")]) == "classify", "which says that it is not there"
    (tmp_path / "broken.csv").write_text("a,a\n1,2\n")
    assert task_of([str(tmp_path / "broken.csv")]) == "classify"


def test_named_columns_tell_the_task(tmp_path):
    path = str(write_translation_table(tmp_path / "a.csv"))
    labelled = str(
        write_table(tmp_path / "b.csv", ("text", "label"), [(a, n % 2) for n, (a, _) in enumerate(make_reversals())])
    )
    assert make_request([path], {}).task == "translate"
    assert make_request([path], {"label": "target"}).task == "classify"
    assert make_request([path], {}, changes={"data.label": "target"}).task == "classify"
    request = make_request([labelled], {"source": "text", "target": "label"})
    assert request.task == "translate"
    found = request.data_config(PairConfig)
    assert (found.source, found.target, found.train) == ("text", "label", (labelled,))
    with pytest.raises(ConfigError, match=r"(?s)data.rows.*nobody to set it"):
        make_request([path], {}, changes={"data.rows": "3"}).data_config(PairConfig)
    with pytest.raises(ConfigError, match="--label"):
        make_request([path], {"label": "x"}, task="translate").data_config(PairConfig)


class Frame:
    """As much of a data frame as is asked for."""

    def __init__(self, **columns):
        self.columns, self._columns = list(columns), columns

    def to_dict(self, how):
        assert how == "list"
        return self._columns


def test_pairs_from_python(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("weft.tasks.training.cache_folder", lambda: tmp_path / "cache")
    rows = make_reversals(20)
    data = read_pair_data(config(*paths_of(rows, "translate")))
    assert everything(data) == sorted(rows) and (data.config.source, data.config.target) == ("source", "target")
    frame = Frame(en=[a for a, _ in rows] + ["no target"], de=[b for _, b in rows] + [float("nan")])
    data = read_pair_data(config(*paths_of(frame, "translate")))
    assert everything(data) == sorted(rows) and "left out: 1" in data.warnings[0]
    paths = write_parallel_files(tmp_path)
    assert paths_of(paths, "translate") == tuple(map(str, paths)) == paths_of([*map(str, paths)], "translate")
    with pytest.raises(ConfigError, match=r"\(source, target\) tuples"):
        paths_of(["a text", "another"], "translate")
    with pytest.raises(ConfigError, match=r"a tuple of 3\nexpected \(source, target\)"):
        paths_of([("a", "b", "c")], "translate")
    labelled = json.loads(Path(paths_of([("a", "b")])[0]).read_text())
    assert labelled == {"text": "a", "label": "b"}, "without the word, the second is a label"


@needs_data("multi30k")
def test_public_pairs():
    raw = DATA / "multi30k" / "raw"
    parts = {
        name: [raw / f"{file}.{side}.gz" for side in ("en", "de")]
        for name, file in (("train", "train"), ("validation", "val"), ("test", "test_2016_flickr"))
    }
    data = read_pair_data(config(*parts.pop("train"), **parts))
    assert (len(data.train), len(data.validation), len(data.test)) == (29_000, 1014, 1000)
    assert data.warnings == () and sum("\t" in text for text in data.train.targets) == 1
