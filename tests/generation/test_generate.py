"""Writing: what the cache, the company, the padding and the window must not change."""

import pytest
import torch

from weft.errors import ConfigError, DataError
from weft.generation import GenerationConfig, Reading, generate, stream, window_start
from weft.models import GPTConfig
from weft.models.gpt.model import gpt2
from weft.text import TokenizerConfig

CPU = torch.device("cpu")
TOKENIZER = TokenizerConfig.from_config("characters").train(["abcdefghijklmnopqrstuvwxyz .,\n" * 2])
STYLES = {"default": {"width": 32, "depth": 2}, "gpt2": gpt2(2, 32, 4)}
PROMPTS = ["the cat", "a", "of all the things that", "so"]


@pytest.fixture(params=sorted(STYLES))
def model(request):
    return small(request.param)


def small(style="gpt2", max_length=48):
    torch.manual_seed(3)
    config = GPTConfig(**STYLES[style] | {"vocab_size": TOKENIZER.vocab_size, "max_length": max_length})
    built = config.build()
    for p in built.parameters():  # outputs that start at zero would make every text the same
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.2)
    return built.eval()


def greedy(**changes):
    return GenerationConfig(**({"temperature": 0.0, "max_tokens": 24} | changes))


def uncached(model, ids, count):
    """Greedy tokens with the documented window, every token computed from scratch."""
    ids = list(ids)
    for _ in range(count):
        seen = ids[window_start(len(ids), model.context) :]
        with torch.no_grad():
            ids.append(int(model(torch.tensor([seen]))[0, -1].argmax()))
    return ids[-count:]


def test_cached_is_uncached(model):
    for sample in generate(model, TOKENIZER, PROMPTS, greedy()):
        assert sample.tokens == uncached(model, TOKENIZER.encode(sample.prompt).tolist(), 24)


def test_alone_is_in_company(model):
    together = generate(model, TOKENIZER, PROMPTS, greedy())
    alone = [generate(model, TOKENIZER, [prompt], greedy())[0] for prompt in PROMPTS]
    assert [s.tokens for s in together] == [s.tokens for s in alone]
    assert len({tuple(s.tokens) for s in together}) > 1  # not all the same, or this would show nothing


def test_logits_in_company_left_and_right_padded(model):
    rows = [TOKENIZER.encode(prompt).tolist() for prompt in PROMPTS]
    longest = max(map(len, rows))
    with torch.no_grad():
        alone = torch.stack([model(torch.tensor([row]))[0, -1] for row in rows])
        together = Reading(model, rows, device=CPU, room=4)
        left = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
        keep = torch.tensor([[False] * (longest - len(row)) + [True] * len(row) for row in rows])
        padded_left = model.next_logits(left, keep=keep, caches=model.new_caches())
    torch.testing.assert_close(together.logits, alone, atol=1e-5, rtol=0)
    torch.testing.assert_close(padded_left, alone, atol=1e-5, rtol=0)


def test_chunks_are_the_whole(model):
    ids = TOKENIZER.encode("some text to read in parts").tolist()
    with torch.no_grad():
        whole = Reading(model, [ids], device=CPU, room=0).logits
        parts = Reading(model, [ids[:1]], device=CPU, room=0)
        for token in ids[1:]:
            parts.append([token])
        caches = model.new_caches()
        for start in range(0, len(ids), 5):
            chunked = model.next_logits(torch.tensor([ids[start : start + 5]]), caches=caches)
    torch.testing.assert_close(parts.logits, whole, atol=1e-5, rtol=0)
    torch.testing.assert_close(chunked, whole, atol=1e-5, rtol=0)


@pytest.mark.parametrize("style", sorted(STYLES))
def test_past_the_context_the_window_slides_by_halves(style):
    model = small(style, max_length=10)
    config = greedy(max_tokens=40)
    for sample in generate(model, TOKENIZER, [*PROMPTS, "a prompt that is longer than all of the context"], config):
        assert sample.tokens == uncached(model, TOKENIZER.encode(sample.prompt).tolist(), 40)
        assert len(sample.tokens) == 40


@pytest.mark.parametrize("context", [1, 2, 3, 10, 11])
def test_the_window_is_a_function_of_the_length_alone(context):
    starts = [window_start(count, context) for count in range(100)]
    seen = [count - start for count, start in enumerate(starts)]
    assert max(seen) == context
    assert min(seen[context:]) >= context // 2
    assert starts == sorted(starts)
    assert all(start % max(1, context // 2) == 0 for start in starts)
    assert window_start(10**9, None) == 0


def test_continuing_is_beginning_with_more():
    model = small(max_length=10)
    ids = torch.randint(0, TOKENIZER.vocab_size, (33,)).tolist()
    with torch.no_grad():
        grown = Reading(model, [ids[:3]], device=CPU, room=30)
        for count in range(4, 34):
            grown.append([ids[count - 1]])
            whole = Reading(model, [ids[:count]], device=CPU, room=0)
            torch.testing.assert_close(grown.logits, whole.logits, atol=1e-5, rtol=0)


def test_samples_differ_and_are_the_same_in_any_company():
    model = small()
    config = GenerationConfig(temperature=1.0, max_tokens=20, samples=3, seed=5)
    together = generate(model, TOKENIZER, PROMPTS, config)
    again = generate(model, TOKENIZER, PROMPTS[1:2], config)
    assert [s.text for s in together if s.prompt == PROMPTS[1]] == [s.text for s in again]
    assert len({s.text for s in again}) == 3
    fewer = generate(model, TOKENIZER, PROMPTS[1:2], config.override({"samples": 1}))
    assert fewer[0].text == again[0].text
    assert generate(model, TOKENIZER, PROMPTS[1:2], config.override({"seed": 6}))[0].text != again[0].text


def test_more_prompts_than_fit_side_by_side_keep_their_order():
    model = small()
    prompts = [f"{word} {'x' * n}" for n, word in enumerate(["one", "two", "three"] * 12)]
    samples = generate(model, TOKENIZER, prompts, greedy(max_tokens=3))
    assert [s.prompt for s in samples] == prompts


def test_pieces_add_up_to_the_sample():
    model = small()
    texts = dict.fromkeys(range(4), "")
    whole = {}
    for piece in stream(model, TOKENIZER, PROMPTS[:2], GenerationConfig(samples=2, max_tokens=15)):
        texts[piece.index] += piece.text
        if piece.sample is not None:
            whole[piece.index] = piece.sample
    assert {i: s.text for i, s in whole.items()} == texts
    assert [whole[i].number for i in range(4)] == [0, 1, 0, 1]


def test_ends():
    model = small()
    sample = generate(model, TOKENIZER, ["the"], greedy())[0]
    assert sample.ended_by == "max_tokens" and len(sample.tokens) == 24
    stop = sample.text[5:8]
    cut = generate(model, TOKENIZER, ["the"], greedy(stop=(stop,)))[0]
    assert cut.ended_by == "stop" and cut.text == sample.text[: sample.text.index(stop)]
    with torch.no_grad():  # now the end of text is what it wants to say
        model.head.weight[:] = 0
        model.head.weight[TOKENIZER.end] = model.hidden(torch.tensor([TOKENIZER.encode("the").tolist()]))[0, -1]
    ended = generate(model, TOKENIZER, ["the"], greedy())[0]
    assert ended.ended_by == "end" and ended.text == "" and ended.tokens == []


def test_probabilities_on_request():
    model = small()
    sample = generate(model, TOKENIZER, ["the cat"], GenerationConfig(alternatives=3, max_tokens=6, seed=1))[0]
    assert [step.token for step in sample.steps] == sample.tokens
    ids = TOKENIZER.encode("the cat").tolist()
    for step in sample.steps:
        with torch.no_grad():
            shares = model(torch.tensor([ids]))[0, -1].softmax(-1)
        assert step.probability == pytest.approx(float(shares[step.token]), abs=1e-6)
        best = [int(t) for t in shares.argsort(descending=True) if int(t) != step.token][:3]
        assert [text for text, _ in step.others] == [
            TOKENIZER.decode([t]) if t != TOKENIZER.end else "<end>" for t in best
        ]
        ids.append(step.token)
    assert generate(model, TOKENIZER, ["the cat"], GenerationConfig(max_tokens=6, seed=1))[0].steps == []


def test_room_for_tokens_that_the_tokenizer_lacks_is_never_chosen():
    torch.manual_seed(0)
    model = GPTConfig(vocab_size=TOKENIZER.vocab_size + 50, width=32, depth=1).build()
    torch.nn.init.normal_(model.head.weight)
    sample = generate(model, TOKENIZER, ["a"], GenerationConfig(temperature=5.0, top_p=None, max_tokens=100))[0]
    assert max(sample.tokens) < TOKENIZER.vocab_size


def test_an_empty_prompt_begins_after_the_end_of_a_text():
    model = small()
    empty = generate(model, TOKENIZER, [""], greedy(max_tokens=5))[0]
    assert empty.tokens == uncached(model, [TOKENIZER.end], 5)
    with pytest.raises(DataError):
        Reading(model, [[]], device=CPU, room=1)


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1.0}, {"top_p": 1.5}, {"top_k": 0}, {"stop": ("",)}, {"tempature": 1}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ConfigError):
        GenerationConfig(**wrong)
