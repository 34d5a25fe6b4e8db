"""Probabilities that mean what they say: one temperature, fitted on examples that were not trained on.

Guo et al. 2017, "On Calibration of Modern Neural Networks".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.errors import DataError, ShapeError

LOWEST, HIGHEST = 0.05, 20.0
STEPS = 100
Floats = NDArray[np.float64]


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """The temperature T for which softmax(logits / T), or the sigmoid for several labels, is likeliest to be right.

    Labels are ids (N,) or rows of 0 and 1 (N, classes). The loss is convex in 1/T, so its gradient has one zero, which
    is found by Newton steps kept between bounds. Where no finite T is best, because no example is wrong, there is
    nothing to learn from and T is 1.
    """
    scores, truth = _checked(logits, labels)
    if _is_separated(scores, truth):
        return 1.0
    low, high = 1 / HIGHEST, 1 / LOWEST
    if _gradient(scores, truth, high)[0] < 0:
        return LOWEST
    if _gradient(scores, truth, low)[0] >= 0:
        return HIGHEST if _gradient(scores, truth, 1.0)[0] > 0 else 1.0
    beta = 1.0
    for _ in range(STEPS):
        gradient, curve = _gradient(scores, truth, beta)
        low, high = (beta, high) if gradient < 0 else (low, beta)
        step = beta - gradient / curve if curve > 0 else low
        step = step if low < step < high else np.sqrt(low * high)
        if abs(step - beta) <= 1e-12 * beta:
            break
        beta = float(step)
    fitted = 1 / beta
    better = negative_log_likelihood(scores, truth, fitted) <= negative_log_likelihood(scores, truth)
    return fitted if better else 1.0


def negative_log_likelihood(logits: ArrayLike, labels: ArrayLike, temperature: float = 1.0) -> float:
    """The mean over the examples of -log p(label), in nats; over all their labels too if there are several."""
    scores, truth = _checked(logits, labels)
    scores = scores / temperature
    if truth.ndim == 2:
        return float(np.mean(np.logaddexp(0, scores) - truth * scores))
    top = scores.max(axis=1)
    total = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return float(np.mean(total - scores[np.arange(len(truth)), truth]))


def _checked(logits: ArrayLike, labels: ArrayLike) -> tuple[Floats, NDArray[np.int64] | Floats]:
    scores, truth = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    fits = truth.shape == scores.shape or (truth.ndim == 1 and len(truth) == len(scores))
    if scores.ndim != 2 or not fits or not scores.size:
        raise ShapeError(
            f"logits of the shape {scores.shape}, labels {truth.shape}", expected="(N, classes), and (N,) or the same"
        )
    if not np.isfinite(scores).all():
        raise DataError("logits that are infinite or not a number", expected="finite ones")
    if truth.ndim == 2:
        return scores, truth.astype(np.float64)
    if truth.min() < 0 or truth.max() >= scores.shape[1]:
        raise ShapeError(f"labels from {truth.min()} to {truth.max()}", expected=f"from 0 to {scores.shape[1] - 1}")
    return scores, truth.astype(np.int64)


def _gradient(scores: Floats, truth: NDArray[np.int64] | Floats, beta: float) -> tuple[float, float]:
    """First and second derivative of the loss by beta = 1/T."""
    if truth.ndim == 2:
        chance = 0.5 * (1 + np.tanh(beta * scores / 2))  # the sigmoid, without overflow
        return float(np.mean((chance - truth) * scores)), float(np.mean(chance * (1 - chance) * scores**2))
    weights = np.exp(beta * (scores - scores.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    mean = (weights * scores).sum(axis=1)
    spread = (weights * (scores - mean[:, None]) ** 2).sum(axis=1)
    return float(np.mean(mean - scores[np.arange(len(truth)), truth])), float(spread.mean())


def _is_separated(scores: Floats, truth: NDArray[np.int64] | Floats) -> bool:
    """Whether every example is right already."""
    if truth.ndim == 2:
        return bool(((scores > 0) == (truth > 0.5)).all())
    return bool((scores[np.arange(len(truth)), truth] >= scores.max(axis=1)).all())
