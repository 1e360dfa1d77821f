"""Arms that share a factor: dense algebra, and places with the same moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from cocobandits.populations.base import Belief
from cocobandits.populations.gaussian_belief import GaussianBelief
from cocobandits.populations.mixture.arms import GaussianArms
from cocobandits.populations.mixture.belief import MixtureBelief
from cocobandits.populations.mixture.factors import FactorArms
from cocobandits.users.statistics import Statistics

REWARDS = jnp.linspace(-1.0, 1.0, 5)


def history(seed, num_arms):
    generator = np.random.default_rng(seed)
    statistics, rewards = Statistics.empty(num_arms), []
    for _ in range(6):
        arm = int(generator.integers(num_arms))
        reward = float(generator.normal())
        statistics, rewards = statistics.add(arm, reward), [*rewards, (arm, reward)]
    return statistics, rewards


def test_evidence_is_the_density_of_the_raw_rewards():
    """Write down the covariance of all rewards, noise, spread and factors, and ask SciPy."""
    generator = np.random.default_rng(5)
    location, spread = generator.normal(size=(2, 3)), generator.uniform(0.1, 0.5, (2, 3))
    loadings = generator.normal(size=(2, 3, 1))
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


@pytest.mark.parametrize("noise", [0.1, 0.02])
def test_a_conditioned_belief_is_that_of_dense_covariances(noise):
    """Condition before or after reading, in a mixture of two components; ask who is best."""
    generator = np.random.default_rng(8)
    location, loadings = 0.4 * generator.normal(size=(2, 3)), 0.4 * generator.normal(size=(2, 3, 1))
    spread, log_weights = np.full((2, 3), 0.25**2), np.log([0.6, 0.4])
    arms = GaussianArms(*map(jnp.asarray, (location, spread, np.full(2, noise))))
    sparse = MixtureBelief(jnp.asarray(log_weights), FactorArms(arms, jnp.asarray(loadings)))
    covariances = spread[:, :, None] * np.eye(3) + loadings @ loadings.transpose(0, 2, 1)
    dense = GaussianBelief(*map(jnp.asarray, (log_weights, location, covariances)), noise)
    for pulls in ([], [(0, 0.3)], [(0, 0.3), (1, -0.2), (0, 0.35)]):
        statistics = Statistics.empty(3)
        for arm, reward in pulls:
            statistics = statistics.add(arm, reward)
        one, other = sparse.condition(statistics), dense.condition(statistics)
        np.testing.assert_allclose(one.log_weights, other.log_weights, atol=1e-9)
        np.testing.assert_allclose(one.mean(), other.mean(), atol=1e-9)
        np.testing.assert_allclose(one.variance(), other.variance(), atol=1e-9)
        np.testing.assert_allclose(one.predictive(REWARDS), other.predictive(REWARDS), atol=1e-9)
        after = Belief.mean_and_reward(other, REWARDS)
        np.testing.assert_allclose(one.mean_and_reward(REWARDS), after, atol=1e-9)
        np.testing.assert_allclose(one.best_probability(), other.best_probability(), atol=5e-3)
        assert float(one.expected_best()) == pytest.approx(float(other.expected_best()), abs=1e-3)


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
    np.testing.assert_allclose(covariance, expected, atol=1e-9)
