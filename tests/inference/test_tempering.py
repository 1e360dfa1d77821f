import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from cocobandits.inference.tempering import next_temperature
from cocobandits.inference.weights import uniform

NUM_PARTICLES = 50
# Skewed, so that a sign error or a missing shift would be seen.
INCREMENTS = -10 * np.random.default_rng(4).exponential(size=NUM_PARTICLES)
EVEN = np.asarray(uniform(NUM_PARTICLES))
UNEVEN = np.random.default_rng(5).normal(scale=0.3, size=NUM_PARTICLES)


def effective_sample_size(log_weights):
    weights = np.exp(log_weights - log_weights.max())
    return weights.sum() ** 2 / (weights**2).sum()


def find(log_weights, increments, temperature, target_ess):
    return float(
        next_temperature(
            jnp.asarray(log_weights),
            jnp.asarray(increments),
            jnp.asarray(float(temperature)),
            jnp.asarray(float(target_ess)),
        )
    )


@pytest.mark.parametrize("log_weights", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("temperature", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("target_ess", [12.5, 25.0, 40.0])
def test_temperature_solves_for_the_target(log_weights, temperature, target_ess):
    """Solve ESS(temperature) = target with scipy's root finder."""

    def excess(candidate):
        shifted = log_weights + (candidate - temperature) * INCREMENTS
        return effective_sample_size(shifted) - target_ess

    expected = 1.0 if excess(1.0) >= 0 else brentq(excess, temperature, 1.0, xtol=1e-13)
    found = find(log_weights, INCREMENTS, temperature, target_ess)
    assert found == pytest.approx(expected, abs=1e-9)
    if found < 1:
        assert excess(found) == pytest.approx(0.0, abs=1e-6)
        assert excess(found) >= 0


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_reachable_end_is_returned_exactly(temperature):
    """Equal increments leave the ESS as it is, so the end is reached at once."""
    assert find(EVEN, np.full(NUM_PARTICLES, -300.0), temperature, 25.0) == 1.0
    assert find(EVEN, INCREMENTS / 100, temperature, 25.0) == 1.0


def test_higher_targets_stop_earlier():
    """Raise the target step by step: the temperature falls strictly."""
    found = [find(EVEN, INCREMENTS, 0.0, target) for target in (10, 15, 20, 30, 45)]
    assert np.all(np.diff(found) < 0)
    assert all(0 < temperature < 1 for temperature in found)


def test_larger_increments_stop_earlier():
    """Doubling all increments halves the temperature."""
    once, twice = (find(EVEN, factor * INCREMENTS, 0.0, 25.0) for factor in (1, 2))
    assert twice == pytest.approx(once / 2, rel=1e-8)
