"""Families of independent arms: who is best, what rewards say and are expected to be."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mixture_oracles import beta_contest, gaussian_contest, reordered
from model_oracles import statistics_of
from scipy import special, stats
from scipy.special import betaln, gammaln

from cocobandits.populations.mixture.arms import GaussianArms
from cocobandits.populations.mixture.beta_arms import BetaArms, log_rising

NUM_DRAWS, NUM_ROUNDS = 1_000_000, 10
RANGE = (-1.5, 2.0)


def gaussian(means, deviations, noise=0.3):
    """Make one component."""
    variances = np.asarray(deviations, dtype=float) ** 2
    return GaussianArms(
        jnp.asarray(means, dtype=float)[None], jnp.asarray(variances)[None], jnp.array([noise])
    )


def beta(successes, failures, ends=RANGE):
    alpha, failures = (jnp.asarray(part, dtype=float)[None] for part in (successes, failures))
    return BetaArms(alpha, failures, ends)


def spread_out(num_arms, kind):
    """Draw means and deviations of normal arms."""
    generator = np.random.default_rng(num_arms)
    means = generator.normal(0.2, 0.5, num_arms)
    if kind == "equal":
        return np.full(num_arms, 0.3), np.full(num_arms, 0.2)
    if kind == "hundredfold":
        return means, np.where(np.arange(num_arms) % 2 == 0, 1.0, 0.01)
    return means, np.exp(generator.normal(-1.0, 0.7, num_arms))


def outcomes(num_arms, kind):
    """Draw successes and failures of Beta arms."""
    generator = np.random.default_rng(num_arms)
    chances = generator.uniform(0.35, 0.6, num_arms)
    if kind == "equal":
        return np.full(num_arms, 3.0), np.full(num_arms, 2.0)
    if kind == "hundredfold":  # in deviations
        pulls = np.where(np.arange(num_arms) % 2 == 0, 3.0, 3e4)
    elif kind == "few":
        pulls = generator.uniform(0.7, 3.0, num_arms)
    elif kind == "many":
        pulls = generator.uniform(1e3, 1e4, num_arms)
        chances = 0.5 + 0.01 * generator.normal(size=num_arms)
    else:
        pulls = 15 * np.exp(generator.normal(0.0, 1.0, num_arms))
    return pulls * chances, pulls * (1 - chances)


contest_of = jax.jit(lambda arms: arms.contest())


def check_draws(arms, draw, num_arms):
    """Compare with a million draws of all arms, within four standard errors."""
    best = mean = square = 0.0
    for _ in range(NUM_ROUNDS):
        values = draw((NUM_DRAWS // NUM_ROUNDS, num_arms))
        top = values.max(axis=1)
        best = best + np.bincount(values.argmax(axis=1), minlength=num_arms) / NUM_DRAWS
        mean += top.sum() / NUM_DRAWS
        square += (top**2).sum() / NUM_DRAWS
    contest = contest_of(arms)
    errors = np.sqrt(best * (1 - best) / NUM_DRAWS) + 1e-6
    assert np.abs((np.asarray(contest.best_probability)[0] - best) / errors).max() < 4
    error = math.sqrt((square - mean**2) / NUM_DRAWS)
    assert abs(float(contest.mean[0]) - mean) < 4 * error


@pytest.mark.parametrize("kind", ["equal", "hundredfold", "mixed"])
@pytest.mark.parametrize("num_arms", [2, 3, 10, 50])
def test_normal_contest_matches_a_million_draws(num_arms, kind):
    means, deviations = spread_out(num_arms, kind)
    generator = np.random.default_rng(1)
    arms = gaussian(means, deviations)
    check_draws(arms, lambda size: generator.normal(means, deviations, size), num_arms)


@pytest.mark.parametrize(
    ("num_arms", "kind"),
    [(2, "few"), (3, "mixed"), (3, "many"), (10, "equal"), (10, "hundredfold"), (50, "mixed")],
)
def test_beta_contest_matches_a_million_draws(num_arms, kind):
    alpha, failures = outcomes(num_arms, kind)
    generator = np.random.default_rng(1)

    def draw(size):
        return RANGE[0] + (RANGE[1] - RANGE[0]) * generator.beta(alpha, failures, size)

    check_draws(beta(alpha, failures), draw, num_arms)


@pytest.mark.parametrize("kind", ["equal", "hundredfold", "mixed"])
@pytest.mark.parametrize("num_arms", [2, 3, 10, 50])
def test_normal_contest_matches_a_fine_integral(num_arms, kind):
    means, deviations = spread_out(num_arms, kind)
    best, mean = gaussian_contest(means, deviations)
    contest = contest_of(gaussian(means, deviations))
    errors = np.abs(np.asarray(contest.best_probability)[0] - best).max()
    off = abs(float(contest.mean[0]) - mean)
    print(f"\n{num_arms} {kind} normal arms: P(best) off by {errors:.1e}, best mean by {off:.1e}")
    # Four digits, with deviations a hundredfold apart; six or more otherwise.
    assert errors < (2e-4 if kind == "hundredfold" else 1e-6)
    assert off < 3e-4
    assert float(np.sum(contest.best_probability)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["equal", "hundredfold", "few", "many", "mixed"])
@pytest.mark.parametrize("num_arms", [2, 3, 10])
def test_beta_contest_matches_the_incomplete_beta_function(num_arms, kind):
    """From less than one earlier pull to thirty thousand."""
    alpha, failures = outcomes(num_arms, kind)
    best, chance = beta_contest(alpha, failures)
    contest = contest_of(beta(alpha, failures, (0.0, 1.0)))
    errors = np.abs(np.asarray(contest.best_probability)[0] - best).max()
    off = abs(float(contest.mean[0]) - chance)
    print(f"\n{num_arms} {kind} chances: P(best) off by {errors:.1e}, best chance by {off:.1e}")
    assert errors < 1e-4
    assert off < 1e-3


def test_two_normal_arms_match_the_closed_form():
    """Φ of the standardised difference, and Clark's formula for the best."""
    for means, deviations in (([0.3, 0.1], [0.2, 0.4]), ([0.0, 1.0], [1.0, 0.01])):
        spread = math.hypot(*deviations)
        lead = (means[0] - means[1]) / spread
        contest = contest_of(gaussian(means, deviations))
        assert float(contest.best_probability[0, 0]) == pytest.approx(
            stats.norm.cdf(lead), abs=1e-4
        )
        clark = (
            means[0] * stats.norm.cdf(lead)
            + means[1] * stats.norm.cdf(-lead)
            + spread * stats.norm.pdf(lead)
        )
        assert float(contest.mean[0]) == pytest.approx(clark, abs=1e-4)


@pytest.mark.parametrize(
    ("first", "second"),
    [((3, 2), (4, 7)), ((1, 1), (1, 1)), ((40, 61), (2, 3)), ((900, 800), (5, 4))],
)
def test_two_chances_match_the_closed_form(first, second):
    """P(second > first) = Σ_i B(α₁ + i, β₁ + β₂) / ((β₂ + i) B(1 + i, β₂) B(α₁, β₁)), i < α₂."""
    (a, b), (c, d) = first, second
    expected = sum(
        math.exp(betaln(a + i, b + d) - math.log(d + i) - betaln(1 + i, d) - betaln(a, b))
        for i in range(c)
    )
    contest = contest_of(beta([a, c], [b, d]))
    assert float(contest.best_probability[0, 1]) == pytest.approx(expected, abs=1e-5)


def test_chances_that_are_nearly_all_or_nothing():
    """A third of an earlier pull: the chance is next to 0 or next to 1, and seldom between."""
    alpha, failures = np.array([0.1, 0.2, 0.15]), np.array([0.2, 0.15, 0.05])
    best, chance = beta_contest(alpha, failures)
    contest = contest_of(beta(alpha, failures, (0.0, 1.0)))
    np.testing.assert_allclose(contest.best_probability[0], best, atol=1e-3)
    assert float(contest.mean[0]) == pytest.approx(chance, abs=1e-3)


RARE = [
    ([0.15, 0.15], [40.0, 10.0]),
    ([0.03, 0.15], [15.0, 15.0]),
    ([0.03, 0.03], [170.0, 3.0]),
    ([30.0, 3.0, 0.2], [0.1, 0.1, 0.02]),
    ([20.0, 0.1, 0.02], [8000.0, 1.0, 300.0]),
]


def contest_in_logits(alpha, failures):
    """Add up a million logits; SciPy's inverse gives out where chances are next to nothing."""
    logits = np.linspace(max(-12 / min(alpha), -700) - 30, min(12 / min(failures), 700) + 30, 10**6)
    step = logits[1] - logits[0]
    logs = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    laws = zip(alpha, failures, strict=True)
    mass = np.array([step * np.exp(a * logs[0] + b * logs[1] - betaln(a, b)) for a, b in laws])
    below = np.cumsum(mass, axis=1) - mass / 2
    best = mass * np.prod(below, axis=0) / np.maximum(below, 1e-300)
    best /= best.sum()
    return best.sum(axis=1), float(np.sum(best * special.expit(logits)))


def test_million_logits_agree_with_the_incomplete_beta_function():
    for found, expected in zip(
        contest_in_logits([2.0, 0.7], [3.0, 1.4]),
        beta_contest(np.array([2.0, 0.7]), np.array([3.0, 1.4])),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("alpha", "failures"), RARE)
def test_rare_events_have_the_right_winner(alpha, failures):
    """Chances of a few in a hundred or a thousand, of which little is known."""
    best, chance = contest_in_logits(alpha, failures)
    contest = contest_of(beta(alpha, failures, (0.0, 1.0)))
    np.testing.assert_allclose(contest.best_probability[0], best, atol=1e-3)
    assert float(contest.mean[0]) == pytest.approx(chance, abs=1e-3)


@pytest.mark.parametrize("law", [(0.015, 15.0), (0.15, 15.0), (20.0, 2000.0), (0.02, 0.02), (9, 4)])
def test_distribution_of_a_rare_chance(law):
    arms = beta([law[0], 1.0], [law[1], 1.0], (0.0, 1.0))
    values = np.array([-0.1, 0.0, 1e-9, 5e-4, 1e-3, 0.01, 0.3, 0.999, 1.0, 1.2])
    found = np.asarray(arms.cumulative(jnp.asarray(values)))[0, 0]
    expected = stats.beta.cdf(values, *law)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize(
    "arms", [gaussian([0.3, 0.1, 0.2], [0.1, 0.4, 0.02]), beta([3, 9, 1], [4, 9, 2])]
)
def test_order_and_number_of_components_do_not_matter_to_a_contest(arms):
    """Permute the arms, and repeat the component."""
    order = np.array([2, 0, 1])
    straight, permuted = contest_of(arms), contest_of(reordered(arms, order))
    np.testing.assert_allclose(
        permuted.best_probability[0], straight.best_probability[0, order], atol=1e-12
    )
    twice = jax.tree.map(lambda part: jnp.concatenate([part, part]), arms)
    for one, two in zip(straight, contest_of(twice), strict=True):
        np.testing.assert_allclose(two[1], one[0], atol=1e-14)


def test_single_precision_keeps_four_digits():
    for arms in (
        gaussian(*spread_out(10, "hundredfold")),
        beta(*outcomes(10, "hundredfold")),
        beta(*outcomes(10, "many")),
    ):
        lighter = jax.tree.map(lambda part: part.astype(jnp.float32), arms)
        exact, rough = contest_of(arms), contest_of(lighter)
        assert rough.best_probability.dtype == jnp.float32
        np.testing.assert_allclose(rough.best_probability, exact.best_probability, atol=1e-4)


def test_normal_arms_learn_as_one_does_reward_by_reward():
    """Condition on one reward after another by the formula of two normals."""
    arms = gaussian([0.3, -0.2], [0.5, 0.2], noise=0.4)
    rewards = ([0.9, 0.1, 0.4], [-0.7])
    after, log_density = arms.condition(statistics_of(rewards))
    expected = 0.0
    for arm, given in enumerate(rewards):
        mean, variance = float(arms.location[0, arm]), float(arms.spread[0, arm])
        for reward in given:
            expected += stats.norm.logpdf(reward, mean, math.sqrt(variance + 0.16))
            gain = variance / (variance + 0.16)
            mean, variance = mean + gain * (reward - mean), variance * (1 - gain)
        assert float(after.location[0, arm]) == pytest.approx(mean, abs=1e-12)
        assert float(after.spread[0, arm]) == pytest.approx(variance, abs=1e-12)
    assert float(log_density[0]) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("ratio", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-7])
@pytest.mark.parametrize("gap", [0.0, 0.4, -1.3])
def test_arms_of_very_different_widths_match_the_closed_form(gap, ratio):
    """Two arms, one with a deviation of almost nothing: Φ of the standardised difference."""
    contest = contest_of(gaussian([gap, 0.0], [ratio, 1.0]))
    deviation = math.hypot(1.0, ratio)
    expected = stats.norm.cdf(gap / deviation)
    best = gap * expected + deviation * stats.norm.pdf(gap / deviation)
    assert float(contest.best_probability[0, 0]) == pytest.approx(expected, abs=1e-4)
    assert float(contest.mean[0]) == pytest.approx(best, abs=1e-4)


def test_chances_learn_as_one_does_outcome_by_outcome():
    arms = beta([2.5, 0.7], [1.5, 4.0])
    low, high = RANGE
    rewards = ([high, low, high], [low])
    after, log_probability = arms.condition(statistics_of(rewards))
    expected = 0.0
    for arm, given in enumerate(rewards):
        a, b = float(arms.successes[0, arm]), float(arms.failures[0, arm])
        for reward in given:
            is_success = reward == high
            expected += math.log((a if is_success else b) / (a + b))
            a, b = a + is_success, b + (not is_success)
        np.testing.assert_allclose([after.successes[0, arm], after.failures[0, arm]], [a, b])
    assert float(log_probability[0]) == pytest.approx(expected, abs=1e-7)


def test_laws_of_chances_match_scipy():
    alpha, failures = np.array([2.5, 15.0, 0.9]), np.array([1.5, 30.0, 3.0])
    arms, width = beta(alpha, failures), RANGE[1] - RANGE[0]
    law = stats.beta(alpha, failures, loc=RANGE[0], scale=width)
    np.testing.assert_allclose(arms.mean()[0], law.mean(), atol=1e-12)
    np.testing.assert_allclose(arms.variance()[0], law.var(), atol=1e-12)
    chance = stats.beta(alpha, failures)
    noise = width**2 * np.mean(chance.mean() - chance.mean() ** 2 - chance.var())
    assert float(arms.noise_variance()[0]) == pytest.approx(noise, abs=1e-12)
    values = np.linspace(RANGE[0] + 0.1, RANGE[1] - 0.1, 23)
    expected = law.cdf(values[:, None]).T
    np.testing.assert_allclose(arms.cumulative(jnp.asarray(values))[0], expected, atol=5e-3)
    density = arms.joint(jnp.ones(1), jnp.array(RANGE))[0]
    np.testing.assert_allclose(density, np.stack([1 - chance.mean(), chance.mean()], axis=1))


def test_laws_of_normal_arms_match_scipy():
    means, deviations, values = np.array([0.3, -0.2]), np.array([0.5, 0.02]), np.linspace(-2, 2, 41)
    arms = gaussian(means, deviations, noise=0.4)
    law = stats.norm(means[:, None], deviations[:, None])
    np.testing.assert_allclose(arms.cumulative(jnp.asarray(values))[0], law.cdf(values), atol=1e-12)
    seen = stats.norm(means[:, None], np.hypot(deviations, 0.4)[:, None])
    np.testing.assert_allclose(
        arms.joint(jnp.ones(1), jnp.asarray(values))[0], seen.pdf(values), rtol=1e-11
    )


def test_rising_factorials_match_the_gamma_function():
    base = np.array([1e-3, 0.02, 0.5, 3.0, 40.0, 1e4])[:, None]
    steps = np.array([0.0, 1.0, 2.0, 17.0, 500.0])[None, :]
    found = np.asarray(log_rising(*map(jnp.asarray, np.broadcast_arrays(base, steps))))
    expected = gammaln(base + steps) - gammaln(base)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=2e-8)
    np.testing.assert_array_equal(found[:, 0], 0.0)
