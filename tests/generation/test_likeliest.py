"""The few likeliest tokens against a sort of all."""

import pytest
import torch

from weft.generation.likeliest import largest, likeliest


@pytest.mark.parametrize("size", [1, 5, 64, 700, 2111, 8000])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_the_largest_are_those_of_a_sort(size, count):
    count = min(count, size)
    values = torch.randn(7, size)
    values[1] = values[1].round()  # ties
    values[2, ::2] = -torch.inf
    values[3, -1] = 9.0
    values[4] = -torch.inf
    found, at = largest(values, count)
    assert torch.equal(found, values.sort(descending=True).values[:, :count])
    assert torch.equal(found, values.gather(1, at))
    assert all(len(set(row)) == count for row in at.tolist())


def test_log_probabilities_of_the_likeliest():
    logits = 5 * torch.randn(70, 8001)  # more than one piece
    found, at = likeliest(logits, 4, suppress=(int(logits[0].argmax()), 8001))
    wanted = logits.log_softmax(-1).gather(1, at)
    assert found[0, 0] == -torch.inf and (found == -torch.inf).sum() == (at == at[0, 0]).sum()
    assert torch.allclose(found[found > -torch.inf], wanted[found > -torch.inf], atol=1e-5)
    half, _ = likeliest(logits.bfloat16(), 4)
    assert half.dtype == torch.float32
