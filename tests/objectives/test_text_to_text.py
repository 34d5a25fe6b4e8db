"""Text to text: which tokens are asked for, padding costs and changes nothing, and smoothing is what it says."""

import math

import pytest
import torch

from weft.models import TransformerConfig
from weft.objectives.text_to_text import PairBatch, TextToText, wanted_logits

SOURCES, TARGETS = [[5, 6, 7, 2], [8, 2], [9, 9, 2]], [[11, 12, 2], [13, 14, 15, 16, 2], [2]]


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = TransformerConfig(vocab_size=20, width=16, depth=1, dropout=0.0, start=1).build().double()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return model


def test_teacher_forcing_shifts_by_one():
    batch = PairBatch.of(SOURCES, TARGETS, start=1)
    assert batch.written.tolist()[1] == [1, 13, 14, 15, 16]
    assert batch.wanted.tolist() == [11, 12, 2, 13, 14, 15, 16, 2, 2]
    assert batch.source_keep is not None and batch.source_keep.sum() == 9
    even = PairBatch.of([[1, 2]], [[3, 4]], start=0)
    assert even.places is None and even.source_keep is None


def test_a_batch_is_the_sum_of_its_pairs(model):
    summed, count = TextToText(0.1)(model, PairBatch.of(SOURCES, TARGETS, start=1))
    alone = [TextToText(0.1)(model, PairBatch.of([s], [t], start=1)) for s, t in zip(SOURCES, TARGETS, strict=True)]
    assert count == sum(n for _, n in alone) == 9
    assert summed.item() == pytest.approx(sum(loss.item() for loss, _ in alone), abs=1e-9)


def test_smoothing_against_its_formula(model):
    batch = PairBatch.of(SOURCES, TARGETS, start=1)
    logs = wanted_logits(model, batch).log_softmax(-1)
    right = -logs.gather(1, batch.wanted[:, None]).sum()
    spread = -logs.mean(1).sum()
    for share in (0.0, 0.1, 0.5):
        found, _ = TextToText(share)(model, batch)
        assert found.item() == pytest.approx(((1 - share) * right + share * spread).item(), abs=1e-9)


def test_gradients_of_a_batch_are_those_of_its_pairs(model):
    def gradients(sources, targets):
        model.zero_grad()
        loss, _ = TextToText(0.1)(model, PairBatch.of(sources, targets, start=1))
        loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    together = gradients(SOURCES, TARGETS)
    alone = sum(gradients([s], [t]) for s, t in zip(SOURCES, TARGETS, strict=True))
    torch.testing.assert_close(together, alone, atol=1e-9, rtol=0)


def test_a_certain_model_has_no_loss_without_smoothing():
    batch = PairBatch.of([[1, 2]], [[3, 2]], start=0)

    class Certain:
        def encode(self, *_):
            return None

        def states(self, written, _):
            return torch.nn.functional.one_hot(torch.tensor([[3, 2]]), 20).double()

        def logits(self, states):
            return states * 1000

    assert TextToText(0.0)(Certain(), batch)[0].item() == pytest.approx(0.0)
    assert TextToText(0.1)(Certain(), batch)[0].item() > 0.1 * 1000 * 0.9
    assert not math.isnan(TextToText(0.1)(Certain(), batch)[0].item())
