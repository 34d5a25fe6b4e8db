"""Count models from the first word to the last: train, resume, evaluate, generate, compare, export."""

import json
import math
import os
import signal

import numpy as np
import pytest
import torch

import weft
from fixtures.commands import generator_command, read_last_event, run_weft
from fixtures.runs import hash_run
from fixtures.texts import make_text
from weft.errors import UnsupportedError
from weft.models.ngram import counts as ngram_counts
from weft.models.ngram import model as ngram_model
from weft.tasks.generate import counts as generate_counts


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text(make_text(8000))
    (tmp_path / "other.txt").write_text(make_text(2000, seed=5))
    return tmp_path


def count_words(*more, model="3gram", out="run"):
    return ["train", "book.txt", "--model", model, "--tokenizer", "words", "--out", out, "--threads", "1", *more]


def test_the_whole_way(desk):
    result = run_weft(*count_words("--test", "other.txt", "--json", "--sample", "The"), cwd=desk)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    plan = next(event for event in events if event["event"] == "plan")
    assert (plan["model"], plan["order"], plan["smoothing"], plan["steps"]) == ("ngram", 3, "kneser-ney", 1)
    last = events[-1]
    assert last["event"] == "done" and last["measured_on"] == "test" and last["steps"] == 1
    assert last["parameters"] > 100 and 0 < last["validation_loss"] < 4 and 0 < last["bits_per_byte"] < 3
    assert any(event["event"] == "sample" for event in events)
    run = weft.load(desk / "run")
    line = json.loads((desk / "run" / "metrics.jsonl").read_text())
    assert line["step"] == 1 and line["validation_loss"] == last["validation_loss"]
    assert len(line["ngrams"]) == 3 and line["loss"] < line["validation_loss"]
    names = {path.name for path in (desk / "run").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "report.html", "checkpoints"} <= names
    measured = json.loads(run_weft("evaluate", "run", "--json", cwd=desk).stdout)
    assert measured["measured_on"] == "test" and measured["loss"] == pytest.approx(last["test_loss"], rel=1e-12)
    on_book = json.loads(run_weft("evaluate", "run", "book.txt", "--json", cwd=desk).stdout)
    assert on_book["loss"] < measured["loss"]
    listed = json.loads(run_weft("runs", ".", "--json", cwd=desk).stdout.splitlines()[0])
    assert "finished" in str(listed)
    ids = torch.from_numpy(run.tokenizer.encode("The cat sat").astype(np.int64))[None]
    logits = run.model(ids)
    assert logits.shape == (1, ids.shape[1], run.tokenizer.vocab_size)
    assert torch.allclose(logits.exp().sum(-1), torch.ones(1, ids.shape[1], dtype=torch.float64), atol=1e-9, rtol=0)
    assert "ngram of order 3" in run._repr_html_()


def test_the_loss_of_training_is_that_of_the_text(desk):
    run_weft(*count_words(), cwd=desk)
    run = weft.load(desk / "run")
    ids = np.concatenate([[run.tokenizer.end], run.tokenizer.encode("".join(run.training_text().pieces()))])
    line = json.loads((desk / "run" / "metrics.jsonl").read_text())
    assert run.model.text_nats(ids) / line["tokens"] == pytest.approx(line["loss"], rel=1e-9)


def test_it_writes(desk):
    run_weft(*count_words("--sample", "The"), cwd=desk)
    run = weft.load(desk / "run")
    greedy = run.generate("The cat", temperature=0, max_tokens=12)
    assert greedy == run.generate("The cat", temperature=0, max_tokens=12)
    ids = [int(i) for i in run.tokenizer.encode("The cat")]
    for token in run.samples("The cat", temperature=0, max_tokens=12)[0].tokens:  # by hand, one after the other
        assert token == int(run.model(torch.tensor([ids]))[0, -1].argmax())
        ids.append(token)
    several = run.generate("", samples=3, max_tokens=8, seed=1)
    assert len(set(several)) > 1
    assert several == run.generate("", samples=3, max_tokens=8, seed=1)
    assert run_weft("generate", "run", "The dog", "--max-tokens", "5", cwd=desk).stdout.startswith("The dog")


@pytest.mark.parametrize("place", ["counting", "before the end"])
def test_killed_and_resumed_is_the_same_to_the_byte(desk, monkeypatch, place):
    run_weft(*count_words(out="whole"), cwd=desk)

    class KilledError(BaseException):
        pass

    def killed(*_, **__):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(
            *((ngram_model, "counted") if place == "counting" else (generate_counts, "save_checkpoint")), killed
        )
        with pytest.raises(KilledError):
            run_weft(*count_words(), cwd=desk)
    assert not (desk / "run" / "checkpoints").exists()
    run_weft("resume", "run", cwd=desk)
    assert hash_run(desk / "run") == hash_run(desk / "whole")
    before = hash_run(desk / "run")
    assert (
        read_last_event(run_weft("resume", "run", "--json", cwd=desk))["event"] == "done"
    )  # a finished one stays as it is
    assert hash_run(desk / "run") == before


def test_a_signal_stops_between_two_lengths(desk, monkeypatch):
    def interrupted(*given):
        for level in ngram_counts.counted(*given):
            os.kill(os.getpid(), signal.SIGINT)
            yield level

    with monkeypatch.context() as patch:
        patch.setattr(ngram_model, "counted", interrupted)
        stopped = run_weft(*count_words(), cwd=desk, check=False)
    assert stopped.returncode == 130 and "weft resume run" in stopped.stderr
    run_weft(*count_words(out="whole"), cwd=desk)
    run_weft("resume", "run", cwd=desk)
    assert hash_run(desk / "run") == hash_run(desk / "whole")


def test_an_impossible_token_is_an_outcome_and_no_crash(desk):
    words = count_words(
        "--set", "model.smoothing.kind=maximum-likelihood", "--test", "other.txt", "--json", model="5gram"
    )
    result = run_weft(*words, cwd=desk)
    assert "Infinity" not in result.stdout + (desk / "run" / "metrics.jsonl").read_text()
    assert "impossible" in result.stderr and "kneser-ney" in result.stderr
    assert read_last_event(result)["validation_loss"] is None and read_last_event(result)["bits_per_byte"] is None
    told = run_weft("evaluate", "run", cwd=desk).stdout
    assert "inf nats per token" in told
    assert weft.load(desk / "run").evaluate()["loss"] is None
    assert run_weft("generate", "run", "The cat", "--max-tokens", "5", cwd=desk).stdout  # and it still writes
    plain = run_weft(*count_words("--set", "model.smoothing.kind=ml", out="other", model="5gram"), cwd=desk)
    assert "inf nats per token" in plain.stderr


def test_smoothing_is_set_by_its_name(desk):
    losses = {}
    for kind in ("add-k", "interpolated", "witten-bell", "kneser-ney"):
        out = f"run-{kind}"
        result = run_weft(*count_words("--set", f"model.smoothing.kind={kind}", "--json", out=out), cwd=desk)
        losses[kind] = read_last_event(result)["validation_loss"]
        line = json.loads((desk / out / "metrics.jsonl").read_text())
        if kind == "add-k":
            assert line["smoothing"]["k"] > 0
        if kind == "interpolated":
            assert len(line["smoothing"]["weights"]) == 3
    assert all(math.isfinite(loss) for loss in losses.values()) and len(set(losses.values())) == 4
    run_weft(*count_words("--set", "model.order=4", "--set", "model.smoothing.kind=add-k", out="four"), cwd=desk)
    assert weft.load(desk / "four").model_config.order == 4


def test_a_plan_writes_nothing(desk):
    told = run_weft(*count_words("--dry-run"), cwd=desk).stderr
    assert "n-grams of 1 to 3 tokens, kneser-ney" in told and "counted once" in told
    assert not (desk / "run").exists()


def test_time_and_steps_are_accepted_and_not_used_up(desk):
    for number, length in enumerate((["--minutes", "5"], ["--steps", "100"], ["--epochs", "2"])):
        assert read_last_event(run_weft(*count_words(*length, "--json", out=f"run-{number}"), cwd=desk))["steps"] == 1


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (["--from", "other-run"], 2, "from the text alone"),
        (["--freeze", "2"], 2, "no layers"),
        (["--set", "model.order=0"], 2, "from 1 to 20"),
        (["--set", "model.order=1000"], 2, "from 1 to 20"),
        (["--set", "model.smoothing.kind=kneser"], 2, "did you mean 'kneser-ney'"),
        (["--set", "model.smoothing.kind=imported"], 2, "a way to smooth counts"),
        (["--set", "model.smoothing.k=1"], 2, "unknown field 'k'"),
        (["--set", "model.width=8"], 2, "unknown field 'width'"),
        (["--tokenizer", "wordpiece"], 2, "not for writing"),
    ],
)
def test_what_is_refused(desk, more, code, words):
    result = run_weft(*count_words(*more), cwd=desk, check=False)
    assert result.returncode == code and words in result.stderr
    assert len([line for line in result.stderr.splitlines() if "…" not in line]) <= 3
    assert not (desk / "run").exists()


def test_too_little_text(desk):
    for content in ("", "too short"):
        (desk / "book.txt").write_text(content)
        result = run_weft(*count_words(), cwd=desk, check=False)
        assert result.returncode == 1 and len(result.stderr.splitlines()) <= 4


def test_it_cannot_be_trained_further(desk):
    run_weft(*count_words(), cwd=desk)
    further = run_weft("resume", "run", "--minutes", "1", cwd=desk, check=False)
    assert further.returncode != 0 and "counted" in further.stderr
    started = run_weft("train", "book.txt", "--from", "run", "--out", "new", "--steps", "1", cwd=desk, check=False)
    assert started.returncode != 0 and "cannot be trained further" in started.stderr
    (desk / "book.txt").write_text(make_text(8000, seed=9))
    changed = run_weft("resume", "run", cwd=desk, check=False)
    assert changed.returncode == 1 and "has changed" in changed.stderr


def test_damaged_tables_are_refused(desk):
    from safetensors.torch import load_file, save_file

    run_weft(*count_words(), cwd=desk)
    tensors = load_file(desk / "run" / "model.safetensors")
    tensors["levels.1.starts"] = tensors["levels.1.starts"].flip(0)
    save_file(tensors, desk / "run" / "model.safetensors")
    result = run_weft("evaluate", "run", cwd=desk, check=False)
    assert result.returncode == 1 and "levels.1.starts" in result.stderr and len(result.stderr.splitlines()) <= 3


def test_out_and_in_as_arpa(desk):
    run_weft(*count_words("--test", "other.txt"), cwd=desk)
    told = run_weft("export", "run", "book.arpa", "--to", "arpa", cwd=desk).stdout
    assert "n-grams of 1 … 3 tokens" in told and (desk / "book.tokenizer.json").exists()
    assert (
        run_weft("export", "run", "book.arpa", "--to", "arpa", cwd=desk, check=False).returncode == 1
    )  # never overwritten
    made = json.loads(run_weft("import", "book.arpa", "--out", "back", "--json", cwd=desk).stdout)
    assert made["converter"] == "arpa" and made["tokenizer"] == "words"
    ours, back = weft.load(desk / "run"), weft.load(desk / "back")
    assert back.evaluate(str(desk / "other.txt"))["loss"] == pytest.approx(
        ours.evaluate(str(desk / "other.txt"))["loss"], abs=1e-6
    )
    assert back.generate("The", temperature=0, max_tokens=9) == ours.generate("The", temperature=0, max_tokens=9)
    assert "imported" in run_weft("runs", ".", cwd=desk).stdout
    (desk / "book.tokenizer.json").unlink()  # then its words are all there is
    run_weft("import", "book.arpa", "--out", "words", cwd=desk)
    assert weft.load(desk / "words").tokenizer.names[0] == "<unk>"
    with pytest.raises(UnsupportedError):
        weft.load(desk / "run").export(desk / "hf", to="hf")


def test_words_from_elsewhere(desk):
    text = "\\data\\\nngram 1=5\nngram 2=3\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.3\n-0.7\t</s>\n"
    text += "-0.5\tred\t-0.2\n-0.4\tfox\t0\n"
    (desk / "fox.arpa").write_text(text + "\\2-grams:\n-0.2\t<s> red\n-0.1\tred fox\n-0.3\tfox </s>\n\\end\\\n")
    note = run_weft("import", "fox.arpa", "--out", "fox", cwd=desk).stdout
    assert "words between spaces" in note
    run = weft.load(desk / "fox")
    assert run.generate("", temperature=0, max_tokens=4) == "red fox"
    expected = (0.1 + 0.5 + (0.2 + 1) + 0.4) * math.log(10)  # zebra is <unk>, which begins nothing
    assert run.model.text_nats(run.tokenizer.encode("red fox red zebra fox")) == pytest.approx(expected, rel=1e-6)
    (desk / "say.txt").write_text("red fox red zebra fox\n" * 10)
    assert run.evaluate("say.txt")["tokens"] == 50
    run_weft("export", "fox", "again.arpa", "--to", "arpa", cwd=desk)
    assert not (desk / "again.tokenizer.json").exists()
    assert "-0.1\tred fox" in (desk / "again.arpa").read_text()
    (desk / "fox.arpa").write_text(text)
    broken = run_weft("import", "fox.arpa", "--out", "broken", cwd=desk, check=False)
    assert broken.returncode == 1 and "fox.arpa, line" in broken.stderr and not (desk / "broken").exists()


def test_other_models_have_no_arpa(desk):
    run_weft(*generator_command("book.txt", "gpt", 1), cwd=desk)
    result = run_weft("export", "gpt", "gpt.arpa", "--to", "arpa", cwd=desk, check=False)
    assert result.returncode != 0 and "no n-grams" in result.stderr
