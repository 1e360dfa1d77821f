"""Mixtures of Gaussians against the dense joint Gaussian of all rewards, quadrature and draws."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_oracles import normal_density, statistics_of
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from cocobandits.populations.gaussian_belief import GaussianBelief, condition
from cocobandits.users.statistics import Statistics
from support.draws import draw_means

NOISE = 0.25
WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.4, -0.3, 0.1], [-0.6, 0.8, 0.5], [0.2, 0.1, -0.9]])
# Of full rank, of rank one, and of rank zero: a kind of users who are all the same.
FACTORS = np.array(
    [
        [[0.5, 0.0, 0.0], [-0.3, 0.4, 0.0], [0.1, 0.2, 0.3]],
        [[0.6, 0.0, 0.0], [-0.4, 0.0, 0.0], [0.2, 0.0, 0.0]],
        np.zeros((3, 3)),
    ]
)
COVARIANCES = FACTORS @ FACTORS.transpose(0, 2, 1)
CASES = {
    "all arms": ([0.3, 0.1, 0.35], [0.9], [-0.2, 0.4]),
    "arm unseen": ([], [-0.4, 0.2], [0.1]),
    "one arm": ([], [], [1.1, 0.8]),
    "no rewards": ([], [], []),
    "far away": ([4.0, 4.1], [-5.0], []),
}
# None of them where the last kind of users has all its mass.
VALUES = jnp.array([-2.0, -0.95, -0.35, 0.15, 0.3, 0.6, 1.4, 3.0])


def belief(arms=3) -> GaussianBelief:
    parts = (np.log(WEIGHTS), MEANS[:, :arms], COVARIANCES[:, :arms, :arms])
    return GaussianBelief(*map(jnp.asarray, parts), NOISE)


learn = jax.jit(condition)


@jax.jit
def ask(given):
    return {
        "mean": given.mean(),
        "variance": given.variance(),
        "best": given.best_probability(),
        "expected_best": given.expected_best(),
    }


def dense(rewards):
    """Condition each component's joint Gaussian of arm means and single rewards."""
    arms = [arm for arm, observed in enumerate(rewards) for _ in observed]
    values = np.array([reward for observed in rewards for reward in observed])
    pick = np.eye(3)[arms].reshape(-1, 3)
    logs, means, covariances = [], [], []
    for mean, covariance in zip(MEANS, COVARIANCES, strict=True):
        joint = pick @ covariance @ pick.T + NOISE**2 * np.eye(len(arms))
        gain = covariance @ pick.T @ np.linalg.inv(joint)
        density = multivariate_normal(pick @ mean, joint).logpdf(values) if arms else 0.0
        logs.append(density)
        means.append(mean + gain @ (values - pick @ mean))
        covariances.append(covariance - gain @ pick @ covariance)
    total = np.log(WEIGHTS) + logs
    return total - logsumexp(total), np.array(means), np.array(covariances), logsumexp(total)


@pytest.mark.parametrize("case", CASES)
def test_posterior_and_evidence_match_the_dense_joint_gaussian(case):
    log_weights, means, covariances, evidence = dense(CASES[case])
    posterior, log_density = learn(belief(), statistics_of(CASES[case]))
    np.testing.assert_allclose(posterior.log_weights, log_weights, atol=1e-10)
    np.testing.assert_allclose(posterior.means, means, atol=1e-12)
    np.testing.assert_allclose(posterior.covariances, covariances, atol=1e-12)
    assert float(log_density) == pytest.approx(evidence, rel=1e-12, abs=1e-12)


def test_posterior_and_evidence_match_quadrature():
    """The second kind alone is a line in one variable t: integrate over it."""
    mean, loadings, rewards = MEANS[1], FACTORS[1][:, 0], CASES["all arms"]

    def integrand(t, power):
        product = norm.pdf(t) * t**power
        for arm, observed in enumerate(rewards):
            for reward in observed:
                product *= normal_density(reward, mean[arm] + loadings[arm] * t, NOISE)
        return product

    mass, first, second = (quad(integrand, -9, 9, (p,), epsabs=0, limit=200)[0] for p in range(3))
    parts = (jnp.zeros(1), jnp.asarray(MEANS[1:2]), jnp.asarray(COVARIANCES[1:2]))
    posterior, log_density = learn(GaussianBelief(*parts, NOISE), statistics_of(rewards))
    assert float(log_density) == pytest.approx(np.log(mass), rel=1e-9)
    np.testing.assert_allclose(posterior.means[0], mean + loadings * first / mass, atol=1e-9)
    spread = second / mass - (first / mass) ** 2
    np.testing.assert_allclose(
        posterior.covariances[0], np.outer(loadings, loadings) * spread, atol=1e-9
    )


@pytest.mark.parametrize("case", ["all arms", "far away"])
def test_two_steps_are_one(case):
    once, density = learn(belief(), statistics_of(CASES[case]))
    early = [observed[:1] for observed in CASES[case]]
    late = [observed[1:] for observed in CASES[case]]
    half, first = learn(belief(), statistics_of(early))
    twice, second = learn(half, statistics_of(late))
    for one, two in zip(jax.tree.leaves(once), jax.tree.leaves(twice), strict=True):
        np.testing.assert_allclose(two, one, atol=1e-10)
    assert float(first + second) == pytest.approx(float(density), rel=1e-12)
    np.testing.assert_array_equal(belief().condition(statistics_of(early)).means, half.means)


def test_expected_best_of_two_arms_is_clarks_formula():
    """E max = m₁Φ(a) + m₂Φ(-a) + sφ(a); where s = 0, the larger mean."""
    posterior, _ = learn(belief(2), statistics_of(([0.3], [0.1, 0.2])))
    expected, wins = 0.0, np.zeros(2)
    for weight, (one, two), covariance in zip(
        np.exp(posterior.log_weights), posterior.means, posterior.covariances, strict=True
    ):
        spread = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1] + 1e-24)
        lead = (one - two) / spread
        share = np.array([norm.cdf(lead), norm.cdf(-lead)])
        wins += weight * share
        expected += weight * (share @ np.array([one, two]) + spread * norm.pdf(lead))
    answers = ask(posterior)
    np.testing.assert_allclose(answers["best"], wins, atol=1e-12)
    assert float(answers["expected_best"]) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("num_arms", [3, 4, 5])
def test_expected_best_of_arms_on_a_line_is_an_integral(num_arms):
    """Arms m + b·t, two of them always equal: integrate the best of them over t."""
    generator = np.random.default_rng(num_arms)
    means, loadings = generator.normal(size=(2, 2, num_arms))
    means[:, 1], loadings[:, 1] = means[:, 0], loadings[:, 0]
    t = np.linspace(-9.0, 9.0, 40_001)
    best = np.max(means[:, None, :] + loadings[:, None, :] * t[None, :, None], axis=2)
    expected = np.trapezoid(best * norm.pdf(t), t, axis=1)
    shared = jnp.asarray(loadings[:, :, None] * loadings[:, None, :])
    given = GaussianBelief(jnp.log(jnp.array([0.3, 0.7])), jnp.asarray(means), shared, NOISE)
    assert float(ask(given)["expected_best"]) == pytest.approx(expected @ [0.3, 0.7], abs=1e-6)


@pytest.mark.parametrize("case", ["arm unseen", "no rewards"])
def test_answers_match_a_million_draws(case):
    """Draw with numpy from the dense posterior; |error| / standard error < 4."""
    log_weights, means, covariances, _ = dense(CASES[case])
    generator = np.random.default_rng(17)
    counts = generator.multinomial(1_000_000, np.exp(log_weights))
    draws = np.concatenate(
        [
            generator.multivariate_normal(mean, covariance, count)
            for mean, covariance, count in zip(means, covariances, counts, strict=True)
        ]
    )
    answers = ask(learn(belief(), statistics_of(CASES[case]))[0])
    assert_near(draws, answers["mean"])
    assert_near((draws - draws.mean(axis=0)) ** 2, answers["variance"])
    assert_near(np.eye(3)[draws.argmax(axis=1)], answers["best"])
    assert_near(draws.max(axis=1), answers["expected_best"])
    np.testing.assert_allclose(answers["best"].sum(), 1.0, atol=1e-12)


def assert_near(samples, expected):
    errors = samples.std(axis=0) / np.sqrt(len(samples)) + 1e-12
    assert np.max(np.abs(samples.mean(axis=0) - np.asarray(expected)) / errors) < 4


def test_cumulative_pairs_and_draws_agree():
    """Compare 200,000 draws with both distribution functions."""
    posterior, _ = learn(belief(), statistics_of(CASES["arm unseen"]))
    draws = draw_means(posterior, 4, 200_000)
    values = np.asarray(VALUES)
    below = draws[:, :, None] <= values[None, None, :]
    cumulative = np.asarray(jax.jit(lambda b: b.cumulative(VALUES))(posterior))
    errors = np.sqrt(cumulative * (1 - cumulative) / len(draws)) + 1e-7
    assert np.max(np.abs(below.mean(axis=0) - cumulative) / errors) < 4
    pair = jax.jit(lambda b: (b.pair_probability(0, 2, VALUES), b.pair_probability(2, 0, VALUES)))
    forward, backward = map(np.asarray, pair(posterior))
    np.testing.assert_allclose(forward, backward.T, atol=1e-12)
    counted, *_ = np.histogram2d(draws[:, 0], draws[:, 2], bins=(values, values))
    errors = np.sqrt(forward * (1 - forward) / len(draws)) + 1e-7
    assert np.max(np.abs(counted / len(draws) - forward) / errors) < 4


@pytest.mark.parametrize("case", ["arm unseen", "no rewards"])
def test_predictive_is_a_density_and_a_ratio_of_evidences(case):
    statistics, rewards = statistics_of(CASES[case]), jnp.linspace(-4.0, 4.0, 801)
    posterior, now = learn(belief(), statistics)
    density = np.asarray(posterior.predictive(rewards))
    np.testing.assert_allclose(np.trapezoid(density, rewards, axis=1), np.ones(3), atol=1e-8)
    for arm, index in [(0, 390), (1, 450), (2, 425)]:
        _, following = learn(belief(), statistics.add(arm, float(rewards[index])))
        assert density[arm, index] == pytest.approx(float(jnp.exp(following - now)), rel=1e-10)


def test_values_are_in_order_and_reach_both_tails():
    posterior, _ = learn(belief(), statistics_of(CASES["all arms"]))
    values = posterior.values()
    assert np.all(np.diff(values) >= 0)
    reached = np.asarray(posterior.cumulative(values))
    assert reached[:, 0].max() < 1e-8
    assert reached[:, -1].min() > 1 - 1e-8


look_ahead = jax.jit(lambda given: given.expected_best_mean_after_one())


@jax.jit
@partial(jax.vmap, in_axes=(None, None, 0))
def best_mean_after(given, arm, reward):
    return jnp.max(given.condition(Statistics.empty(3)._shift(arm, 1.0, reward)).mean())


@pytest.mark.parametrize("case", CASES)
def test_best_mean_after_one_reward_matches_dense_quadrature(case):
    """Condition on each of 40,001 rewards of an arm, and weigh them by their density."""
    posterior, _ = learn(belief(), statistics_of(CASES[case]))
    rewards = jnp.linspace(-8.0, 8.0, 40_001)
    density = np.asarray(jax.jit(GaussianBelief.predictive)(posterior, rewards))
    expected = [
        np.trapezoid(density[arm] * best_mean_after(posterior, arm, rewards), rewards)
        for arm in range(3)
    ]
    np.testing.assert_allclose(look_ahead(posterior), expected, atol=2e-3)


def test_best_mean_after_one_reward_matches_draws():
    """Draw users and rewards from the prior with numpy; |error| / standard error < 4."""
    generator = np.random.default_rng(23)
    counts = generator.multinomial(400_000, WEIGHTS)
    kinds = zip(MEANS, COVARIANCES, counts, strict=True)
    users = np.concatenate([generator.multivariate_normal(*kind) for kind in kinds])
    rewards = users + NOISE * generator.normal(size=users.shape)
    best = [best_mean_after(belief(), arm, jnp.asarray(rewards[:, arm])) for arm in range(3)]
    assert_near(np.stack(best, axis=1), look_ahead(belief()))


@pytest.mark.parametrize("case", CASES)
def test_looking_ahead_is_worth_something_and_less_than_the_truth(case):
    """Jensen, twice: max E ≤ E max E[· | reward] ≤ E max, up to the error of the quadrature."""
    posterior, _ = learn(belief(), statistics_of(CASES[case]))
    ahead = np.asarray(look_ahead(posterior))
    assert ahead.min() > float(posterior.mean().max()) - 1e-4
    assert ahead.max() < float(ask(posterior)["expected_best"]) + 1e-4


def test_looking_ahead_is_worth_nothing_where_all_is_known():
    """A component of variance zero beside one of weight zero."""
    parts = (
        jnp.array([0.0, -jnp.inf]),
        jnp.asarray(MEANS[[2, 0]]),
        jnp.asarray(COVARIANCES[[2, 0]]),
    )
    np.testing.assert_allclose(look_ahead(GaussianBelief(*parts, NOISE)), 0.2, atol=1e-12)
