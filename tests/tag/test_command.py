"""`weft tag` and `weft check` on tagged sentences, as a person meets them; and a run taken away and back."""

import json

import pytest

import weft as package
from fixtures.commands import read_last_event, run_weft, set_flags
from tag.tagged_files import tagger_command, write_conll

LONG = "Ada saw the sea . " * 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that found some of the names in a few hundred sentences."""
    path = tmp_path_factory.mktemp("tag")
    write_conll(path / "train.conll", "train", 300)
    write_conll(path / "test.conll", "test", 40)
    run_weft(*tagger_command("train.conll", "run", 60, *set_flags("tokenizer.vocab_size=600")), cwd=path)
    return path


def objects(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


# -- weft tag ---------------------------------------------------------------------------------


def test_one_text_shows_its_entities(folder):
    text = "It rained in Port Ravik on 3 May 1900 ."
    shown = run_weft("tag", "run", text, cwd=folder).stdout.splitlines()
    (found,) = objects(run_weft("tag", "run", text, "--json", cwd=folder))
    assert len(shown) == max(1, len(found["entities"])) and found["entities"], shown
    for line, entity in zip(shown, found["entities"], strict=True):
        place = f"({entity['start']} to {entity['end']})"
        assert line.split()[0] == entity["type"] and entity["text"] in line and place in line and "%" in line
        assert text[entity["start"] : entity["end"]] == entity["text"]


def test_all_shows_every_word(folder):
    shown = run_weft("tag", "run", "It rained .", "--all", cwd=folder).stdout.splitlines()
    assert [line.split()[2] for line in shown] == ["It", "rained", "."]


def test_json_is_an_object_for_each_text(folder):
    texts = ["Ada left .", "", "…!?", "xq\u0007zz ☃ 東京", "train.conll"]
    found = objects(run_weft("tag", "run", *texts, "--json", cwd=folder))
    assert [one["text"] for one in found] == texts
    assert set(found[0]) == {"text", "words", "tags", "probabilities", "entities"}
    assert found[0]["words"] == ["Ada", "left", "."] and found[1]["words"] == []
    assert found[2]["words"] == ["…", "!", "?"]
    for one in found:
        assert len(one["words"]) == len(one["tags"]) == len(one["probabilities"])
        assert all(0 < probability <= 1 for probability in one["probabilities"])


def test_texts_without_words_or_entities_say_so(folder):
    shown = run_weft("tag", "run", "", cwd=folder).stdout
    assert shown.strip() == "no words"


def test_ten_thousand_words(folder):
    (found,) = objects(run_weft("tag", "run", LONG, "--json", cwd=folder))
    assert len(found["words"]) == len(found["tags"]) == 10_000


def test_files_are_streams_in_both_forms(folder, tmp_path):
    (tmp_path / "in.txt").write_text("Ada left Rome .\nIt rained .\n")
    for name in ("out.conll", "out.jsonl"):
        run_weft("tag", "run", "--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / name), cwd=folder)
    sentences = (tmp_path / "out.conll").read_text().strip().split("\n\n")
    rows = [[line.split("\t") for line in sentence.splitlines()] for sentence in sentences]
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [[word for word, _ in row] for row in rows] == [one["words"] for one in found]
    assert [[tag for _, tag in row] for row in rows] == [one["tags"] for one in found]
    from_stdin = run_weft("tag", "run", "-", "--json", cwd=folder, stdin="Ada left Rome .\nIt rained .\n")
    assert objects(from_stdin) == found


def test_python_gives_the_same(folder):
    run = package.load(folder / "run")
    (found,) = objects(run_weft("tag", "run", "Ada left Rome .", "--json", cwd=folder))
    assert run.tag("Ada left Rome .").tags == found["tags"]
    assert [one.tags for one in run.tag(["Ada left Rome .", ""])] == [found["tags"], []]
    assert "F1" in repr(run) and "on validation" in repr(run)


def test_a_run_that_does_not_tag_is_refused(desk, folder):
    result = run_weft("tag", str(desk.run("single")), "a text", cwd=folder, check=False)
    assert result.returncode == 1 and "does not tag words" in result.stderr and "weft train tag" in result.stderr
    result = run_weft("classify", "run", "a text", cwd=folder, check=False)
    assert result.returncode == 1 and "does not classify" in result.stderr


# -- weft check -------------------------------------------------------------------------------


def test_check_knows_such_files(folder):
    shown = run_weft("check", "train.conll", "--test", "test.conll", cwd=folder).stdout
    assert "IOB2" in shown and "sentences" in shown and "words that train does not have" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("sentences")] == [["sentences", "300", "40"]]
    found = json.loads(run_weft("check", "tag", "demo", "--json", cwd=folder).stdout)
    assert found["train"]["sentences"] == 2400 and found["labels"][0] == "O"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tag", "train.conll", "--source", "x"], "--source with tagged sentences"),
        (["train.conll", "--tokenizer", "bpe"], "--tokenizer bpe with tagged sentences"),
        (["train.conll", "--label", "7"], "has no column '7'"),
        (["outside.conll"], "marks no entity"),
    ],
)
def test_check_refuses_in_words(folder, words, said):
    (folder / "outside.conll").write_text("Ada\tO\nleft\tO\n\n" * 5)
    result = run_weft("check", *words, cwd=folder, check=False)
    assert result.returncode in (1, 2) and said in result.stderr


# -- the report, and away and back ------------------------------------------------------------


def test_the_report_shows_numbers_types_and_mistakes(folder, monkeypatch):
    from weft.report.training import made_report

    monkeypatch.chdir(folder)
    page = made_report(folder / "run").read_text()
    found = json.loads((folder / "run" / "examples.json").read_text())
    assert not found["problems"] and found["kind"] == "answers"
    assert found["data"]["classes"]["PER"]["train"] > 50 and found["data"]["parts"]["train"]["sentences"] in range(
        260, 280
    )
    assert "of whole entities" in page and "tags the words of a text" in page and "Mistakes of which" in page


def test_out_to_hugging_face_and_back(folder):
    sizes = ["model.width=32", "model.depth=1", "model.attention.heads=2", "model.max_length=32"]
    words = ["train", "tag", "train.conll", "--model", "bert-base", "--out", "plain", "--steps", "3", "--threads", "1"]
    run_weft(*words, *set_flags(*sizes), cwd=folder)
    run_weft("export", "plain", "away", cwd=folder)
    config = json.loads((folder / "away" / "config.json").read_text())
    assert config["architectures"] == ["BertForTokenClassification"] and config["id2label"]["0"] == "O"
    assert "token-classification" in (folder / "away" / "README.md").read_text()
    result = run_weft("import", "away", "--out", "back", cwd=folder)
    assert "weft tag back" in result.stdout + result.stderr
    text = "Ada left Rome ."
    before, after, there = (package.load(folder / name).tag(text) for name in ("plain", "back", "away"))
    assert before.tags == after.tags == there.tags
    assert [w.probability for w in before.words] == pytest.approx([w.probability for w in after.words], abs=1e-5)
    found = read_last_event(run_weft("evaluate", "back", "test.conll", "--json", cwd=folder))
    assert found["measured_on"] == "data" and found["sentences"] == 40
    result = run_weft("evaluate", "back", cwd=folder, check=False)
    assert result.returncode == 1 and "no sentences of its own" in result.stderr
