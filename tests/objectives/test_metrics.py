"""Metrics: the numbers of scikit-learn and SciPy, also where there is nothing to divide by."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as reference

from weft import objectives as ours
from weft.errors import ConfigError, ShapeError

IDS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)
ROWS = st.integers(1, 20).flatmap(
    lambda n: st.tuples(*[st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=n, max_size=n)] * 2)
)
VALUES = st.lists(st.tuples(*[st.integers(-20, 20).map(lambda n: n / 4)] * 2), min_size=2, max_size=40)


@settings(deadline=None, max_examples=100)
@given(IDS)
def test_classes(pairs):
    true, predicted = np.array(pairs).T
    matrix = ours.confusion_matrix(true, predicted, 5)
    assert np.array_equal(matrix, reference.confusion_matrix(true, predicted, labels=range(5)))
    found = ours.class_scores(matrix)
    wanted = reference.precision_recall_fscore_support(true, predicted, labels=range(5), zero_division=0)
    for one, two in zip((found.precision, found.recall, found.f1, found.support), wanted, strict=True):
        assert np.allclose(one, two, atol=1e-12)
    assert ours.accuracy(true, predicted) == pytest.approx(reference.accuracy_score(true, predicted))
    assert ours.macro_f1(true, predicted) == pytest.approx(
        reference.f1_score(true, predicted, average="macro", zero_division=0)
    )


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_several_labels(rows):
    true, predicted = (np.array(side).astype(int) for side in rows)
    for average, mine in (("micro", ours.micro_f1), ("macro", ours.multilabel_macro_f1)):
        wanted = reference.f1_score(true, predicted, average=average, zero_division=0)
        assert mine(true, predicted) == pytest.approx(wanted, abs=1e-12)
    assert ours.exact_match(true, predicted) == pytest.approx(reference.accuracy_score(true, predicted))
    wanted = reference.precision_recall_fscore_support(true, predicted, zero_division=0)
    found = ours.multilabel_scores(true, predicted)
    assert np.allclose(found.precision, wanted[0]) and np.allclose(found.recall, wanted[1])


@settings(deadline=None, max_examples=100)
@given(VALUES)
def test_numbers(pairs):
    true, predicted = np.array(pairs).T
    assert ours.mean_squared_error(true, predicted) == pytest.approx(reference.mean_squared_error(true, predicted))
    if len(set(true)) > 1 and len(set(predicted)) > 1:
        assert ours.pearson(true, predicted) == pytest.approx(stats.pearsonr(true, predicted)[0], abs=1e-10)
        assert ours.spearman(true, predicted) == pytest.approx(stats.spearmanr(true, predicted)[0], abs=1e-10)
    else:
        assert ours.pearson(true, predicted) == ours.spearman(true, predicted) == 0


def test_correlation_at_the_edges():
    values = np.array([1.0, 2.0, 4.0])
    assert ours.pearson(values, values * 1e200) == 1 and ours.pearson(values, -values) == -1
    assert ours.pearson(values + 1e9, values) == pytest.approx(1)
    assert ours.spearman(values, np.exp(values)) == 1 > ours.pearson(values, np.exp(values))
    assert ours.spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.9486832980505138)


def calibration_by_hand(probabilities, labels, bins):
    total, top = 0.0, probabilities.max(axis=1)
    for place in range(bins):
        inside = (top > place / bins) & (top <= (place + 1) / bins)
        if inside.any():
            right = (probabilities.argmax(axis=1) == labels)[inside].mean()
            total += inside.mean() * abs(right - top[inside].mean())
    return total


def test_calibration_error_against_the_definition():
    rng = np.random.default_rng(0)
    probabilities, labels = rng.dirichlet(np.ones(3), 500), rng.integers(0, 3, 500)
    for bins in (1, 7, 15):
        wanted = calibration_by_hand(probabilities, labels, bins)
        assert ours.expected_calibration_error(probabilities, labels, bins) == pytest.approx(wanted, abs=1e-12)
    assert ours.expected_calibration_error([[1, 0], [0, 1]], [0, 1]) == 0
    assert ours.expected_calibration_error([[1, 0], [1, 0]], [0, 1]) == 0.5
    assert ours.expected_calibration_error([[0, 0.0]], [[0, 0]]) == 0
    assert ours.expected_calibration_error([[0.4], [0.6]], [[1], [0]], bins=2) == pytest.approx(0.6)
    assert ours.expected_calibration_error([[0.5], [0.6]], [[1], [0]], bins=2) == pytest.approx(0.55), "closed above"
    labels = (rng.random((4000, 2)) < [0.2, 0.7]).astype(float)
    honest, boastful = np.tile([0.2, 0.7], (4000, 1)), np.tile([0.01, 0.99], (4000, 1))
    assert (
        ours.expected_calibration_error(honest, labels) < 0.03 < 0.2 < ours.expected_calibration_error(boastful, labels)
    )


def test_wrong_shapes_are_refused():
    for call in (ours.accuracy, ours.macro_f1, ours.pearson, ours.spearman, ours.mean_squared_error, ours.micro_f1):
        for wrong in (([], []), ([1, 2], [1]), ([[1, 2]], [1, 2])):
            with pytest.raises(ShapeError):
                call(*wrong)
    with pytest.raises(ShapeError, match="from 0 to 1"):
        ours.confusion_matrix([0, 2], [0, 1], 2)
    with pytest.raises(ShapeError):
        ours.expected_calibration_error([0.5], [0])
    with pytest.raises(ConfigError, match="bins"):
        ours.expected_calibration_error([[0.5, 0.5]], [0], bins=0)


def test_results_are_plain_numbers():
    for value in (
        ours.accuracy([1], [1]),
        ours.macro_f1([1], [0]),
        ours.pearson([1, 1], [1, 2]),
        ours.micro_f1([[0]], [[0]]),
    ):
        assert type(value) is float and math.isfinite(value)
    with pytest.raises(AttributeError, match="no attribute 'acuracy'"):
        ours.acuracy  # noqa: B018
