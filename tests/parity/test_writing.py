"""Writing with GPT-2 weights: the same tokens as transformers' own generate."""

import pytest
import torch

import weft
from weft.generation import GenerationConfig, Reading, generate, packed
from weft.text import TokenizerConfig

transformers = pytest.importorskip("transformers")
TINY = {"n_layer": 3, "n_head": 4, "n_embd": 64, "vocab_size": 300, "n_positions": 256}


def folder_of(path, **sizes):
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).eval()
    with torch.no_grad():
        for name, p in theirs.named_parameters():  # random weights of GPT-2's own size say the same token for ever
            if p.dim() > 1:
                p.mul_(4.0 if "wte" not in name else 1.0)
    theirs.save_pretrained(path)
    return theirs


def greedy_ids(model, rows, count):
    """Through our reading, from ids to ids."""
    with torch.inference_mode():
        reading = Reading(model, rows, device=torch.device("cpu"), room=count)
        for _ in range(count):
            reading.append(reading.logits.argmax(-1).tolist())
    return [row[-count:] for row in reading.rows]


def their_ids(theirs, row, count):
    ids = torch.tensor([row])
    with torch.inference_mode():
        out = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, min_new_tokens=count, do_sample=False,
            pad_token_id=0, eos_token_id=None,
        )  # fmt: skip
    return out[0, len(row) :].tolist()


def check(tmp_path, count, **sizes):
    theirs = folder_of(tmp_path / "hf", **sizes)
    run = weft.load(tmp_path / "hf")
    torch.manual_seed(1)
    rows = [torch.randint(0, theirs.config.vocab_size, (n,)).tolist() for n in (3, 11, 7)]
    with torch.no_grad():
        for row in rows:
            difference = (run.model(torch.tensor([row])) - theirs(torch.tensor([row])).logits).abs().max()
            assert difference <= 1e-5
    wanted = [their_ids(theirs, row, count) for row in rows]
    assert len({tuple(ids) for ids in wanted}) == 3
    assert len(set(wanted[0])) > 5  # a text, not one token for ever
    for model in (run.model, packed(run.model)):
        assert greedy_ids(model, rows, count) == wanted  # in company, ragged
        assert greedy_ids(model, rows[:1], count) == wanted[:1]  # alone


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_greedy_tokens(tmp_path, count):
    check(tmp_path, count, **TINY)


@pytest.mark.slow
def test_two_hundred_greedy_tokens_of_124_million_parameters(tmp_path):
    check(tmp_path, 200)


def test_from_text_to_text_with_their_tokenizer(tmp_path):
    tokenizer = TokenizerConfig.from_config({"kind": "bpe", "vocab_size": 300}).train(["the cat sat on the mat, " * 50])
    theirs = folder_of(tmp_path / "hf", **TINY | {"vocab_size": tokenizer.vocab_size})
    tokenizer.save(tmp_path / "hf" / "tokenizer.json")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "hf" / "tokenizer.json"))
    run = weft.load(tmp_path / "hf")
    sample = generate(run.model, run.tokenizer, ["the cat sat"], GenerationConfig(temperature=0.0, max_tokens=30))[0]
    wanted = their_ids(theirs, fast("the cat sat")["input_ids"], 30)
    wanted = wanted[: wanted.index(tokenizer.end) if tokenizer.end in wanted else 30]
    assert sample.tokens == wanted
    assert fast.decode(wanted).rstrip("\ufffd") == sample.text.rstrip("\ufffd")
