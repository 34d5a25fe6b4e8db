"""How good predictions are, in numbers: classes, several labels, and measures. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.errors import ConfigError, ShapeError

Floats = NDArray[np.float64]


def _both(true: ArrayLike, predicted: ArrayLike, ndim: int) -> tuple[NDArray[Any], NDArray[Any]]:
    one, two = np.asarray(true), np.asarray(predicted)
    if one.shape != two.shape or one.ndim != ndim or not len(one):
        expected = "the same, (N,)" if ndim == 1 else "the same, (N, classes)"
        raise ShapeError(f"labels of the shape {one.shape}, predictions {two.shape}", expected=f"{expected}, N ≥ 1")
    return one, two


# -- one class each ---------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassScores:
    """For each class: how many of the predicted are right, how many of the true are found, and both in one."""

    precision: Floats
    recall: Floats
    f1: Floats
    support: NDArray[np.int64]


def accuracy(true: ArrayLike, predicted: ArrayLike) -> float:
    """The share of examples that are right."""
    one, two = _both(true, predicted, 1)
    return float((one == two).mean())


def confusion_matrix(true: ArrayLike, predicted: ArrayLike, classes: int) -> NDArray[np.int64]:
    """How often class i (row) was taken for class j (column)."""
    one, two = _both(true, predicted, 1)
    if min(one.min(), two.min()) < 0 or max(one.max(), two.max()) >= classes:
        raise ShapeError(f"ids up to {max(one.max(), two.max())}", expected=f"from 0 to {classes - 1}")
    return np.bincount(one * classes + two, minlength=classes**2).reshape(classes, classes).astype(np.int64)


def class_scores(confusion: NDArray[np.int64]) -> ClassScores:
    """Precision, recall and F1 of every class; 0 where there is nothing to divide by."""
    return _scores(np.diag(confusion), confusion.sum(axis=0), confusion.sum(axis=1))


def macro_f1(true: ArrayLike, predicted: ArrayLike) -> float:
    """The mean F1 of the classes that occur among labels or predictions: rare ones count as much as frequent ones."""
    one, two = _both(true, predicted, 1)
    ids = np.unique(np.concatenate([one, two]))
    matrix = confusion_matrix(np.searchsorted(ids, one), np.searchsorted(ids, two), len(ids))
    return float(class_scores(matrix).f1.mean())


def _scores(right: NDArray[Any], predicted: NDArray[Any], true: NDArray[Any]) -> ClassScores:
    precision, recall = _ratio(right, predicted), _ratio(right, true)
    return ClassScores(precision, recall, _ratio(2 * right, predicted + true), np.asarray(true, dtype=np.int64))


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    return np.divide(part, whole, out=np.zeros(np.shape(whole), dtype=np.float64), where=np.asarray(whole) > 0)


# -- several labels ---------------------------------------------------------------------------


def multilabel_scores(true: ArrayLike, predicted: ArrayLike) -> ClassScores:
    """The scores of every label, from rows of 0 and 1."""
    one, two = (side.astype(bool) for side in _both(true, predicted, 2))
    return _scores((one & two).sum(axis=0), two.sum(axis=0), one.sum(axis=0))


def multilabel_macro_f1(true: ArrayLike, predicted: ArrayLike) -> float:
    """The mean of the labels' F1."""
    return float(multilabel_scores(true, predicted).f1.mean())


def micro_f1(true: ArrayLike, predicted: ArrayLike) -> float:
    """F1 over all labels of all examples together: frequent labels count more."""
    one, two = (side.astype(bool) for side in _both(true, predicted, 2))
    return float(_ratio(np.array(2 * (one & two).sum()), np.array(one.sum() + two.sum())))


def exact_match(true: ArrayLike, predicted: ArrayLike) -> float:
    """The share of examples with every label right."""
    one, two = (side.astype(bool) for side in _both(true, predicted, 2))
    return float((one == two).all(axis=1).mean())


# -- numbers ----------------------------------------------------------------------------------


def mean_squared_error(true: ArrayLike, predicted: ArrayLike) -> float:
    """The mean of the squared differences."""
    one, two = _both(true, predicted, 1)
    return float(np.mean((one.astype(np.float64) - two) ** 2))


def pearson(true: ArrayLike, predicted: ArrayLike) -> float:
    """The linear correlation, from -1 to 1; 0 if one side is constant, where it has no meaning."""
    one, two = (side.astype(np.float64) for side in _both(true, predicted, 1))
    if one.min() == one.max() or two.min() == two.max():
        return 0.0
    one, two = one - one.mean(), two - two.mean()
    one, two = one / np.abs(one).max(), two / np.abs(two).max()  # so that squares stay finite
    return float(np.clip(one @ two / np.sqrt((one @ one) * (two @ two)), -1, 1))


def spearman(true: ArrayLike, predicted: ArrayLike) -> float:
    """The correlation of the ranks; equal values share the mean of their ranks."""
    one, two = _both(true, predicted, 1)
    return pearson(_ranks(one), _ranks(two))


def _ranks(values: NDArray[Any]) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]


# -- calibration ------------------------------------------------------------------------------


def expected_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    """How far confidence and success lie apart, averaged over bins of confidence (Guo et al. 2017).

    For ids (N,) the confidence is the largest probability of a row, and success a right answer. For several labels
    (N, classes) every probability is judged by itself.
    """
    chances, truth = np.asarray(probabilities, dtype=np.float64), np.asarray(labels)
    if bins < 1:
        raise ConfigError(f"bins = {bins}", expected="at least one")
    if (
        chances.ndim != 2
        or len(chances) != len(truth)
        or not len(truth)
        or (truth.ndim > 1 and truth.shape != chances.shape)
    ):
        given = f"probabilities of the shape {chances.shape}, labels {truth.shape}"
        raise ShapeError(given, expected="(N, classes), and (N,) or the same")
    if truth.ndim == 1:
        success = chances.argmax(axis=1) == truth
        chances = chances.max(axis=1)
    else:
        success, chances = truth.ravel() > 0.5, chances.ravel()
    place = np.clip(np.ceil(chances * bins).astype(np.int64) - 1, 0, bins - 1)  # bins are open below, closed above
    gaps = np.bincount(place, weights=success - chances, minlength=bins)
    return float(np.abs(gaps).sum() / len(chances))
