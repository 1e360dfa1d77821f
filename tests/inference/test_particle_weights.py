import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocobandits.inference.weights import (
    average,
    effective_sample_size,
    entropy,
    normalise,
    uniform,
)

WEIGHTS = np.array([0.5, 0.3, 0.2])
# Five particles always, so that each function is compiled once.
five_log_weights = st.lists(st.floats(-50, 50), min_size=5, max_size=5).map(jnp.array)


def test_uniform_weights_are_equal_and_sum_to_one():
    """Four particles have a quarter each."""
    np.testing.assert_allclose(np.exp(uniform(4)), [0.25] * 4, rtol=1e-15)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(five_log_weights, st.floats(-800, 800))
def test_normalised_weights_sum_to_one_whatever_their_scale(log_weights, shift):
    """Divide by the sum after taking out the largest, in numpy."""
    weights = np.exp(np.asarray(log_weights) - float(log_weights.max()))
    actual = np.exp(normalise(log_weights + shift))
    np.testing.assert_allclose(actual, weights / weights.sum(), rtol=1e-10, atol=1e-300)
    assert actual.sum() == pytest.approx(1.0, abs=1e-12)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(five_log_weights, st.floats(-800, 800))
def test_effective_sample_size_lies_between_one_and_the_number_of_particles(log_weights, shift):
    """Compute (Σw)² / Σw² directly from the weights."""
    weights = np.exp(np.asarray(log_weights) - float(log_weights.max()))
    actual = float(effective_sample_size(log_weights + shift))
    assert actual == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-9)
    assert 1 - 1e-9 <= actual <= 5 + 1e-9


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([0.5, 0.3, 0.2], 1 / 0.38),
        ([1.0, 1.0, 1.0], 3.0),
        ([0.0, 4.0, 0.0], 1.0),
        ([2.0, 0.0, 2.0], 2.0),
    ],
)
def test_effective_sample_size_of_known_weights(weights, expected):
    """Compute by hand."""
    with np.errstate(divide="ignore"):
        log_weights = jnp.asarray(np.log(weights))
    assert float(effective_sample_size(log_weights)) == pytest.approx(expected, rel=1e-12)


def test_entropy_of_known_weights():
    """Sum -w log w by hand, whatever the scale."""
    expected = -sum(w * math.log(w) for w in WEIGHTS)
    assert float(entropy(jnp.log(WEIGHTS) + 7.0)) == pytest.approx(expected, rel=1e-12)
    assert float(entropy(uniform(3))) == pytest.approx(math.log(3), rel=1e-12)


def test_entropy_ignores_particles_of_weight_zero():
    """Two particles that share all weight have entropy log 2; a single one has none."""
    two = jnp.array([-jnp.inf, 3.0, 3.0])
    assert float(entropy(two)) == pytest.approx(math.log(2), rel=1e-12)
    one = jnp.array([-jnp.inf, 3.0, -jnp.inf])
    assert float(entropy(one)) == pytest.approx(0.0, abs=1e-15)


def test_average_of_vectors_and_matrices():
    """Add up weight times value with numpy."""
    generator = np.random.default_rng(2)
    log_weights = jnp.log(WEIGHTS) - 3.0
    scalars, matrices = generator.normal(size=3), generator.normal(size=(3, 2, 4))
    assert float(average(log_weights, jnp.asarray(scalars))) == pytest.approx(WEIGHTS @ scalars)
    expected = sum(w * m for w, m in zip(WEIGHTS, matrices, strict=True))
    np.testing.assert_allclose(average(log_weights, jnp.asarray(matrices)), expected, rtol=1e-12)
