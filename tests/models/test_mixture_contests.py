"""Who is best of independent arms, and what rewards say: draws, closed forms, dense algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from cocobandits.models.base import Statistics
from cocobandits.models.gaussian_belief import GaussianBelief
from cocobandits.models.mixture.arms import BetaArms, GaussianArms, beta_log_evidence, log_rising
from cocobandits.models.mixture.belief import MixtureBelief
from cocobandits.models.mixture.factors import FactorArms

NUM_DRAWS = 1_000_000
NOISE = 0.3


def gaussian_arms(num_arms, seed, ratio=1.0):
    generator = np.random.default_rng(seed)
    location = generator.normal(0.2, 1.0, (1, num_arms))
    deviation = np.exp(generator.uniform(-1, 0, (1, num_arms)))
    deviation[0, 0] /= ratio
    return GaussianArms(jnp.asarray(location), jnp.asarray(deviation**2), jnp.array([NOISE]))


CASES = {
    "two": gaussian_arms(2, 1),
    "three": gaussian_arms(3, 2),
    "ten": gaussian_arms(10, 3),
    "fifty": gaussian_arms(50, 4),
    "equal": GaussianArms(jnp.full((1, 5), 0.3), jnp.full((1, 5), 0.04), jnp.array([NOISE])),
    "uneven": gaussian_arms(4, 5, ratio=100.0),
    "beta": BetaArms(
        jnp.array([[2.0, 30.0, 0.8, 5.0]]), jnp.array([[3.0, 20.0, 0.9, 4.0]]), (-2.0, 2.0)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_best_arm_matches_a_million_draws(name):
    """Count who is best, and average the best, within four standard errors."""
    arms = CASES[name]
    contest = arms.contest()
    draws = np.asarray(arms.sample(jax.random.key(7), jnp.zeros(NUM_DRAWS, dtype=int)))
    shares = np.bincount(draws.argmax(axis=1), minlength=draws.shape[1]) / NUM_DRAWS
    error = np.sqrt(shares * (1 - shares) / NUM_DRAWS) + 1e-6
    assert np.max(np.abs(np.asarray(contest.best_probability[0]) - shares) / error) < 4
    best = draws.max(axis=1)
    assert abs(contest.mean[0] - best.mean()) < 4 * best.std() / np.sqrt(NUM_DRAWS)
    # A variance has a standard error of about its own size times the root of 2/N; tails add to it.
    assert contest.variance[0] == pytest.approx(best.var(), rel=0.01)


def test_two_arms_match_the_closed_form():
    """P(first is better) is a normal distribution function of the difference."""
    arms = CASES["two"]
    gap = float(arms.location[0, 0] - arms.location[0, 1])
    expected = stats.norm.cdf(gap / np.sqrt(float(jnp.sum(arms.spread))))
    assert arms.contest().best_probability[0, 0] == pytest.approx(expected, abs=1e-5)


def history(seed, num_arms, values=None):
    generator = np.random.default_rng(seed)
    statistics, rewards = Statistics.empty(num_arms), []
    for _ in range(6):
        arm = int(generator.integers(num_arms))
        reward = float(generator.normal() if values is None else generator.choice(values))
        statistics, rewards = statistics.add(arm, reward), [*rewards, (arm, reward)]
    return statistics, rewards


@pytest.mark.parametrize("rank", [0, 1, 2])
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


def test_factors_are_expanded_to_places_with_the_same_moments():
    """Mean and covariance of the expanded types are those of the component."""
    arms = GaussianArms(jnp.array([[0.1, -0.4, 0.3]]), jnp.full((1, 3), 0.05), jnp.array([NOISE]))
    for rank, tolerance in ((1, 3e-3), (2, 1e-2)):
        loadings = jax.random.normal(jax.random.key(rank), (1, 3, rank))
        weights, places = FactorArms(arms, loadings).expanded(jnp.zeros(1))
        shares = np.exp(np.asarray(weights))
        mean = shares @ np.asarray(places.location)
        centred = np.asarray(places.location) - mean
        covariance = (shares[:, None] * centred).T @ centred + 0.05 * np.eye(3)
        expected = np.asarray(loadings[0] @ loadings[0].T) + 0.05 * np.eye(3)
        np.testing.assert_allclose(mean, arms.location[0], atol=1e-9)
        np.testing.assert_allclose(covariance, expected, atol=tolerance * expected.max())


def _likelihood(p, s, f, law):
    return p**s * (1 - p) ** f * law.pdf(p)


def test_chances_match_quadrature():
    """Integrate p^s (1 - p)^f against the Beta density."""
    alpha, beta = jnp.array([[1.3, 20.0], [0.6, 3.0]]), jnp.array([[2.1, 5.0], [0.7, 40.0]])
    successes, failures = jnp.array([3.0, 0.0]), jnp.array([1.0, 4.0])
    found = beta_log_evidence(alpha, beta, successes, failures)
    for each in range(2):
        expected = 0.0
        for a in range(2):
            law = stats.beta(float(alpha[each, a]), float(beta[each, a]))
            s, f = float(successes[a]), float(failures[a])
            expected += np.log(
                integrate.quad(lambda p, s=s, f=f, law=law: p**s * (1 - p) ** f * law.pdf(p), 0, 1)[
                    0
                ]
            )
        assert found[each] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("base", [0.02, 0.7, 9.0, 4e3])
def test_rising_factorials_have_eight_digits(base):
    """Compare with the library's functions of the same."""
    steps = np.array([0.0, 1.0, 7.0, 60.0])
    expected = [np.sum(np.log(base + np.arange(step))) for step in steps]
    np.testing.assert_allclose(
        log_rising(jnp.full(4, base), jnp.asarray(steps)), expected, atol=1e-6
    )


def mixture_of(num_arms, seed):
    """Make the same belief twice: with independent arms, and with dense covariances."""
    generator = np.random.default_rng(seed)
    weights = jnp.log(jnp.asarray(generator.dirichlet([2.0, 1.0, 3.0])))
    location = jnp.asarray(generator.normal(size=(3, num_arms)))
    spread = jnp.asarray(generator.uniform(0.02, 0.3, (3, num_arms)))
    arms = GaussianArms(location, spread, jnp.full(3, NOISE))
    dense = GaussianBelief(weights, location, jax.vmap(jnp.diag)(spread), NOISE)
    return MixtureBelief(weights, arms), dense


def test_conditioning_matches_dense_algebra():
    """Weights, means and variances, after the same rewards."""
    ours, dense = mixture_of(3, 1)
    statistics, _ = history(8, 3)
    found, expected = ours.condition(statistics), dense.condition(statistics)
    np.testing.assert_allclose(found.log_weights, expected.log_weights, atol=1e-10)
    np.testing.assert_allclose(found.mean(), expected.mean(), atol=1e-10)
    np.testing.assert_allclose(found.variance(), expected.variance(), atol=1e-10)
    np.testing.assert_allclose(found.best_probability(), expected.best_probability(), atol=1e-4)
    np.testing.assert_allclose(found.expected_best(), expected.expected_best(), atol=1e-4)


REWARDS = jnp.linspace(-4.5, 4.5, 151)


def informations(joint):
    """Compute I(A*; r_a) for every arm from a table of both."""
    joint = np.asarray(joint) / np.asarray(joint).sum(axis=(0, 2), keepdims=True)
    independent = joint.sum(axis=2)[:, :, None] * joint.sum(axis=0)[None]
    ratio = np.log(np.maximum(joint, 1e-300)) - np.log(np.maximum(independent, 1e-300))
    return (joint * ratio).sum(axis=(0, 2))


@pytest.mark.parametrize("num_arms", [2, 3, 5])
def test_best_and_reward_tells_as_much_as_the_exact_joint(num_arms):
    """Margins are right, and the information about the best arm is within five percent."""
    ours, dense = mixture_of(num_arms, 10 + num_arms)
    found = ours.best_and_reward(REWARDS)
    step = float(REWARDS[1] - REWARDS[0])
    np.testing.assert_allclose(jnp.sum(found, axis=0), ours.predictive(REWARDS), atol=1e-9)
    by_best = np.asarray(jnp.sum(found, axis=2)) * step
    expected_best = np.tile(np.asarray(ours.best_probability())[:, None], num_arms)
    np.testing.assert_allclose(by_best, expected_best, atol=2e-3)
    exact = informations(dense.best_and_reward(REWARDS))
    np.testing.assert_allclose(informations(found), exact, rtol=0.05, atol=0.01)


def test_mean_and_reward_matches_conditioning_one_by_one():
    """The base class conditions on every reward of every arm."""
    ours, _ = mixture_of(3, 4)
    slow = super(MixtureBelief, ours).mean_and_reward(REWARDS)
    np.testing.assert_allclose(ours.mean_and_reward(REWARDS), slow, atol=1e-10)
