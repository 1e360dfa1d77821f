"""Arms that share a factor: dense algebra, and places with the same moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from cocobandits.populations.mixture.arms import GaussianArms
from cocobandits.populations.mixture.factors import FactorArms
from cocobandits.users.statistics import Statistics


def history(seed, num_arms):
    generator = np.random.default_rng(seed)
    statistics, rewards = Statistics.empty(num_arms), []
    for _ in range(6):
        arm = int(generator.integers(num_arms))
        reward = float(generator.normal())
        statistics, rewards = statistics.add(arm, reward), [*rewards, (arm, reward)]
    return statistics, rewards


@pytest.mark.parametrize("rank", [0, 1])
def test_evidence_is_the_density_of_the_raw_rewards(rank):
    """Write down the covariance of all rewards, noise, spread and factors, and ask SciPy."""
    generator = np.random.default_rng(5)
    location, spread = generator.normal(size=(2, 3)), generator.uniform(0.1, 0.5, (2, 3))
    loadings = generator.normal(size=(2, 3, rank))
    statistics, rewards = history(3, 3)
    arms = GaussianArms(jnp.asarray(location), jnp.asarray(spread), jnp.array([0.3, 0.5]))
    moved, found = FactorArms(arms, jnp.asarray(loadings)).condition(statistics)
    which, values = np.array([arm for arm, _ in rewards]), np.array([r for _, r in rewards])
    for each, noise in enumerate((0.3, 0.5)):
        covariance = np.diag(spread[each]) + loadings[each] @ loadings[each].T
        of_rewards = covariance[np.ix_(which, which)] + noise**2 * np.eye(len(which))
        expected = stats.multivariate_normal(location[each][which], of_rewards).logpdf(values)
        assert found[each] == pytest.approx(expected, abs=1e-10)
        # And the posterior by conditioning that Gaussian.
        gain = np.linalg.solve(of_rewards, covariance[which]).T
        mean = location[each] + gain @ (values - location[each][which])
        left = covariance - gain @ covariance[which]
        root = np.asarray(moved.loadings[each])
        np.testing.assert_allclose(moved.arms.location[each], mean, atol=1e-10)
        np.testing.assert_allclose(
            np.diag(np.asarray(moved.arms.spread[each])) + root @ root.T, left, atol=1e-10
        )


def test_factor_is_expanded_to_places_with_the_same_moments():
    """Mean and covariance of the expanded components are those of the component."""
    arms = GaussianArms(jnp.array([[0.1, -0.4, 0.3]]), jnp.full((1, 3), 0.05), jnp.array([0.3]))
    loadings = jax.random.normal(jax.random.key(1), (1, 3, 1))
    weights, places = FactorArms(arms, loadings).expanded(jnp.zeros(1))
    shares = np.exp(np.asarray(weights))
    mean = shares @ np.asarray(places.location)
    centred = np.asarray(places.location) - mean
    covariance = (shares[:, None] * centred).T @ centred + 0.05 * np.eye(3)
    expected = np.asarray(loadings[0] @ loadings[0].T) + 0.05 * np.eye(3)
    np.testing.assert_allclose(mean, arms.location[0], atol=1e-9)
    np.testing.assert_allclose(covariance, expected, atol=3e-3 * expected.max())
