"""Images of a bright square in one of four corners, which a small model of images learns to tell apart."""

import torch
from torch.nn import functional as F


def draw_squares(count=64):
    """Pixels of noise with a square, and the corner of each."""
    torch.manual_seed(0)
    corners = torch.arange(count) % 4
    pixels = 0.1 * torch.randn(count, 1, 12, 12)
    for image, corner in zip(pixels, corners.tolist(), strict=True):
        image[0, 6 * (corner // 2) + 1 : 6 * (corner // 2) + 5, 6 * (corner % 2) + 1 : 6 * (corner % 2) + 5] += 1
    return pixels, corners


def learn_squares(model, pixels, corners, steps=60):
    """Train on all images at once; the last loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = F.cross_entropy(model(pixels), corners)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss
