"""What tests of parity share: our model of a folder of theirs, and how far apart results and gradients are."""

import torch

from weft.checkpoints.hugging_face import HuggingFaceFolder


def read_model(path):
    """Our model with the weights of a Hugging Face folder."""
    folder = HuggingFaceFolder(path)
    return folder.config.with_weights(folder.read_weights()).eval()


def largest_difference(one, other):
    """Of two dicts of tensors with the same names."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).detach().abs().max()) for name in one)


def compute_gradients(results, given):
    """Gradients of all results, weighed at random, for the tensors given."""
    torch.manual_seed(4)
    loss = sum((value * torch.randn(value.shape, dtype=value.dtype)).mean() for value in results.values())
    return torch.autograd.grad(loss, given)


def compute_named_gradients(results, parameters, unused=False):
    """The same for a dict of parameters, by name; those that took no part are left out where there may be such."""
    torch.manual_seed(4)
    loss = sum((value * torch.randn(value.shape).to(value) / value.numel() ** 0.5).sum() for value in results.values())
    found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=unused)
    return {name: gradient for name, gradient in zip(parameters, found, strict=True) if gradient is not None}
