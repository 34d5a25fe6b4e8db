"""Filters and choices against Hugging Face's processors, and against what the words mean."""

import numpy as np
import pytest
import torch

from weft.generation import GenerationConfig
from weft.generation.sampling import candidates, choose, next_tokens, penalised

transformers = pytest.importorskip("transformers")


def settings(**changes):
    return GenerationConfig(**({"temperature": 1.0, "top_p": None} | changes))


def dense(logits, config, seen=()):
    """The probabilities over the whole vocabulary."""
    found = candidates(logits, config, seen)
    return torch.zeros_like(logits).scatter(1, found.tokens, found.logits.softmax(-1))


def processed(logits, config, seen):
    from transformers import (
        LogitsProcessorList,
        MinPLogitsWarper,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    steps = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(config.repetition_penalty)])
    steps.append(TemperatureLogitsWarper(config.temperature))
    if config.top_k is not None:
        steps.append(TopKLogitsWarper(config.top_k))
    if config.top_p is not None:
        steps.append(TopPLogitsWarper(config.top_p))
    if config.min_p is not None:
        steps.append(MinPLogitsWarper(config.min_p))
    return steps(torch.tensor(seen), logits.clone()).softmax(-1)


@pytest.mark.parametrize("vocabulary", [7, 300, 5000])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"temperature": 0.3},
        {"temperature": 2.5},
        {"top_k": 1},
        {"top_k": 5},
        {"top_k": 10_000},
        {"top_p": 0.001},
        {"top_p": 0.5},
        {"top_p": 0.9},
        {"top_p": 0.999},
        {"top_p": 1.0},
        {"min_p": 0.02},
        {"min_p": 0.9},
        {"repetition_penalty": 1.3},
        {"repetition_penalty": 0.7},
        {"temperature": 0.7, "top_k": 50, "top_p": 0.8, "min_p": 0.05, "repetition_penalty": 1.2},
    ],
    ids=str,
)
def test_same_distribution_as_hugging_face(vocabulary, changes):
    torch.manual_seed(1)
    logits = 3 * torch.randn(4, vocabulary)
    seen = torch.randint(0, vocabulary, (4, 6)).tolist()
    config = settings(**changes)
    torch.testing.assert_close(dense(logits, config, seen), processed(logits, config, seen), atol=2e-6, rtol=1e-4)


def test_the_comparison_would_notice():
    torch.manual_seed(1)
    logits, seen = 3 * torch.randn(4, 300), [[1, 2]] * 4
    ours = dense(logits, settings(top_p=0.5), seen)
    theirs = processed(logits, settings(top_p=0.6), seen)
    assert (ours - theirs).abs().max() > 1e-3


def test_a_flat_distribution_needs_more_than_the_first_look():
    logits = torch.zeros(2, 5000)
    logits[0, :3] = 20.0  # one row is done at once, the other needs nearly all
    shares = dense(logits, settings(top_p=0.9))
    assert int((shares[0] > 0).sum()) == 3
    assert int((shares[1] > 0).sum()) == pytest.approx(4500, abs=2)


def test_choices_have_the_frequencies_of_the_distribution():
    logits = torch.tensor([[0.0, 1.0, 2.0, -torch.inf, 0.5]])
    found = candidates(logits, settings())
    random = np.random.default_rng(0)
    counts = np.bincount([choose(found, [random.random()])[0] for _ in range(20_000)], minlength=5) / 20_000
    np.testing.assert_allclose(counts, logits.softmax(-1)[0], atol=0.012)
    assert counts[3] == 0


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2**-53])
def test_the_ends_of_the_range_choose_possible_tokens(uniform):
    logits = torch.tensor([[-torch.inf, 1.0, 2.0, -torch.inf]])
    assert choose(candidates(logits, settings()), [uniform])[0] in (1, 2)


def test_greedy_top_k_one_and_low_temperature_agree():
    torch.manual_seed(0)
    logits = torch.randn(5, 40)
    random = [np.random.default_rng(i) for i in range(5)]
    wanted = logits.argmax(-1).tolist()
    assert next_tokens(logits, settings(temperature=0.0), [], random) == wanted
    assert next_tokens(logits, settings(top_k=1), [], random) == wanted
    assert next_tokens(logits, settings(temperature=1e-4), [], random) == wanted


def test_the_penalty_reaches_greedy_too():
    logits = torch.tensor([[2.0, 1.9]])
    config = settings(temperature=0.0, repetition_penalty=1.5)
    assert next_tokens(logits, config, [[0]], []) == [1]
    assert penalised(logits, [[0]], 1.0) is logits
