"""One temperature: found again when known, never worse than none, and honest afterwards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from weft.errors import DataError, ShapeError
from weft.objectives import expected_calibration_error, fit_temperature, negative_log_likelihood


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def sampled(count=20_000, classes=4, seed=0):
    """Logits, and labels drawn from their own softmax: temperature 1 is right."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(count, classes)) * 1.5
    drawn = (softmax(logits).cumsum(axis=1) < rng.random((count, 1))).sum(axis=1)
    return logits, np.minimum(drawn, classes - 1)


def sampled_several(count=10_000, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(count, 3)) * 2
    return logits, (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.float32)


@pytest.mark.parametrize("data", [sampled, sampled_several])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5, 8.0])
def test_a_known_temperature_is_recovered(data, temperature):
    logits, labels = data()
    assert fit_temperature(logits * temperature, labels) == pytest.approx(temperature, rel=0.04)


@pytest.mark.parametrize("data", [sampled, sampled_several])
def test_it_is_the_minimum(data):
    logits, labels = data(500)
    found = fit_temperature(logits * 3, labels)
    best = minimize_scalar(
        lambda t: negative_log_likelihood(logits * 3, labels, t),
        bounds=(0.05, 20),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert found == pytest.approx(best.x, rel=1e-5)
    assert negative_log_likelihood(logits * 3, labels, found) <= best.fun + 1e-12


def test_overconfident_logits_become_honest():
    logits, labels = sampled()
    logits = logits * 4
    before = expected_calibration_error(softmax(logits), labels)
    fitted = fit_temperature(logits[:5000], labels[:5000])
    after = expected_calibration_error(softmax(logits[5000:] / fitted), labels[5000:])
    assert before > 0.15 and after < 0.02
    assert (logits.argmax(axis=1) == (logits / fitted).argmax(axis=1)).all(), "the answers stay the same"


@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 10**6),
    st.integers(1, 30),
    st.integers(1, 5),
    st.sampled_from([0, 1e-9, 0.1, 1, 30, 1e4, 1e8]),
    st.booleans(),
)
def test_it_never_makes_it_worse(seed, count, classes, scale, several):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(count, classes)) * scale
    labels = rng.integers(0, 2, (count, classes)) if several else rng.integers(0, classes, count)
    found = fit_temperature(logits, labels)
    assert 0.05 <= found <= 20
    assert (
        negative_log_likelihood(logits, labels, found) <= negative_log_likelihood(logits, labels) * (1 + 1e-12) + 1e-12
    )


def test_without_a_mistake_there_is_nothing_to_learn():
    assert fit_temperature([[3.0, 0], [0, 2.0]], [0, 1]) == 1
    assert fit_temperature([[3.0, -1]], [[1, 0]]) == 1
    assert fit_temperature(np.zeros((5, 3)), [0, 1, 2, 0, 1]) == 1
    assert fit_temperature([[3.0, 0]] * 5, [1] * 5) == 20, "always wrong: as unsure as possible"


def test_the_likelihood_is_the_one_of_the_definition():
    logits, labels = sampled(50)
    wanted = -np.log(softmax(logits / 2)[np.arange(50), labels]).mean()
    assert negative_log_likelihood(logits, labels, 2.0) == pytest.approx(wanted)
    assert negative_log_likelihood([[1000.0, 0.0]], [1]) == 1000
    assert negative_log_likelihood([[1000.0]], [[0]]) == 1000


def test_wrong_input_is_refused():
    for logits, labels in (
        ([1.0], [0]),
        ([[1.0, 2]], [0, 1]),
        ([[1.0, 2]], [2]),
        ([[1.0, 2]], [-1]),
        (np.ones((0, 2)), []),
    ):
        with pytest.raises(ShapeError):
            fit_temperature(logits, labels)
    with pytest.raises(DataError, match="infinite"):
        fit_temperature([[np.nan, 1]], [0])
