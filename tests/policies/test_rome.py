"""RoME against dense algebra over all blocks of θ, and draws of the law it states."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines import rome
from cocobandits.policies.baselines.rome import RoME, RomePolicy
from cocobandits.policies.baselines.rome_algebra import (
    Bags,
    advantages,
    coefficients_without,
    contribution,
    exploration,
    largest_probability,
    predict,
)
from cocobandits.users.statistics import Statistics
from support.sessions import Session

PROBLEM = Problem(3, (None, 3), (-2.0, 2.0), 0.2)
SETTINGS = RoME(shared_precision=0.3, user_precision=1.7, scale=0.6, num_bags=3)
CONTEXTS = np.array([[0.4, 0.0], [-0.7, 2.0], [0.9, 1.0], [0.1, 2.0]])
# Unequal histories, served in this order: (user, arm, reward).
STEPS = [
    *((0, 0, 0.9), (1, 2, 0.5), (0, 1, -0.2), (1, 2, 0.7), (3, 1, -1.0), (0, 2, 0.3)),
    *((1, 2, 0.4), (3, 0, 0.2), (0, 0, 1.1), (1, 0, -0.6), (3, 1, -0.6)),
]
forms_of = jax.jit(advantages)
compiled_law = jax.jit(rome._law, static_argnums=0)
SHARED, OWN, SCALE = SETTINGS.shared_precision, SETTINGS.user_precision, SETTINGS.scale


@pytest.fixture(scope="module")
def policy():
    return Session(RomePolicy(PROBLEM, SETTINGS))


def enrolled(policy):
    state = policy.init(jax.random.key(0))
    for context in CONTEXTS:
        state = policy.enrol(state, jnp.asarray(context))
    return state


def learned(policy, steps=STEPS):
    """Enrol everybody and learn, one reward at a time; every reward has a key of its own."""
    state = enrolled(policy)
    for number, (user, arm, reward) in enumerate(steps):
        statistics = state.users.of(user)[1].add(arm, reward)
        state, _ = policy.update(jax.random.key(number), state, user, statistics)
    return state


@pytest.fixture(scope="module")
def state(policy):
    return learned(policy)


def terms_of(context):
    return np.array([1.0, context[0], *(context[1] == np.arange(3))])


def dense_posterior(weights, pulls, contexts=CONTEXTS):
    """Stack θ = (shared, user 1, user 2, …), each one-hot(arm) ⊗ terms, and sum up V and b."""
    block = weights.shape[1] * 5
    size = block * (1 + len(contexts))
    prior = np.diag(np.repeat([SHARED, OWN], [block, size - block]))
    precision, shift, forms = prior.copy(), np.zeros(size), []
    for user, context in enumerate(contexts):
        for candidate in range(weights.shape[1]):
            phi = np.zeros(size)
            start = 5 * candidate
            phi[start : start + 5] = terms_of(context)
            phi[block * (1 + user) + start : block * (1 + user) + start + 5] = terms_of(context)
            precision += weights[user, candidate] * np.outer(phi, phi)
            shift += pulls[user, candidate] * phi
            forms.append(phi)
    covariance = np.linalg.inv(precision)
    gains = []
    for user in range(len(contexts)):
        added_up = np.zeros((block, size))
        added_up[:, :block] = added_up[:, block * (1 + user) : block * (2 + user)] = np.eye(block)
        half = covariance @ added_up.T
        sizes = [np.linalg.slogdet(each)[1] for each in (added_up @ half, half.T @ prior @ half)]
        gains.append(sizes[0] - sizes[1])
    mean = np.array(forms) @ covariance @ shift
    spread = np.array(forms) @ covariance @ np.array(forms).T
    return mean.reshape(len(contexts), -1), spread, np.array(gains)


def test_forms_match_dense_algebra_over_all_users(state):
    """θ̂, V⁻¹ and the gain of every user; different arms do not correlate."""
    terms = jnp.asarray([terms_of(context) for context in CONTEXTS])
    evidence = jax.tree.map(lambda rows: rows[:4], state.evidence)
    weights, pulls = map(np.asarray, evidence)
    assert np.count_nonzero(weights) == 6
    expected, spread, gains = dense_posterior(weights, pulls)
    assert gains.min() > 0.1
    for user in range(4):
        mean, variance, found = forms_of(terms, evidence, jnp.asarray(user), (SHARED, OWN))
        own = spread[2 * user : 2 * user + 2, 2 * user : 2 * user + 2]
        np.testing.assert_allclose(mean, expected[user], atol=1e-10)
        np.testing.assert_allclose(np.diag(variance), own, atol=1e-10)
        np.testing.assert_allclose(found, gains[user], atol=1e-10)


def exact_gain(weight, terms, user):
    """Log det V̄ - log det Λ of one candidate, in fractions: nothing is rounded before the end."""
    terms = [[Fraction(float(term)) for term in row] for row in terms]
    size, width = len(terms), len(terms[0])
    prior = [Fraction(SMALL[0])] * width + [Fraction(SMALL[1])] * (width * size)
    total = [[prior[i] * (i == j) for j in range(len(prior))] for i in range(len(prior))]
    for number, row in enumerate(terms):
        phi = row + [Fraction(0)] * (width * size)
        phi[width * (1 + number) : width * (2 + number)] = row
        for i, j in itertools.product(range(len(phi)), repeat=2):
            total[i][j] += Fraction(float(weight[number])) * phi[i] * phi[j]
    chosen = [[int(i == j) for j in range(width)] for i in range(len(prior))]
    for term in range(width):
        chosen[width * (1 + user) + term][term] = 1
    half = solve_fractions(total, chosen)
    columns = range(width)
    covariance = [[half[i][j] + half[width * (1 + user) + i][j] for j in columns] for i in columns]
    share = [
        [sum(p * x[i] * x[j] for p, x in zip(prior, half, strict=True)) for j in columns]
        for i in columns
    ]
    return math.log(determinant(covariance) / determinant(share))


def solve_fractions(matrix, columns):
    """Eliminate without rounding; the matrix is positive definite, so no pivots are needed."""
    rows = [[*left, *right] for left, right in zip(matrix, columns, strict=True)]
    for pivot in range(len(rows)):
        rows[pivot] = [value / rows[pivot][pivot] for value in rows[pivot]]
        for other in range(len(rows)):
            if other != pivot and rows[other][pivot]:
                factor = rows[other][pivot]
                pairs = zip(rows[other], rows[pivot], strict=True)
                rows[other] = [value - factor * known for value, known in pairs]
    return [row[len(matrix) :] for row in rows]


def determinant(matrix):
    rows, product = [list(row) for row in matrix], Fraction(1)
    for pivot in range(len(rows)):
        product *= rows[pivot][pivot]
        for other in range(pivot + 1, len(rows)):
            factor = rows[other][pivot] / rows[pivot][pivot]
            pairs = zip(rows[other], rows[pivot], strict=True)
            rows[other] = [value - factor * known for value, known in pairs]
    return product


SMALL = (0.04, 1e-9)


@pytest.mark.parametrize("scale", [0.0, 1.0, 75.0, 1e8, 1e12])
def test_gain_keeps_its_digits(scale):
    """Small γᵤ and many rewards, against fractions; a user without rewards among them."""
    terms = np.array([[1.0, 0.5], [1.0, -0.25], [1.0, 1.0]])
    weight = scale * np.array([1.0, 0.0, 0.375])
    for user in range(3):
        sums = jnp.asarray(weight), jnp.zeros(3)
        found = coefficients_without(jnp.asarray(terms), sums, jnp.asarray(user), SMALL)
        gain = found.advantage(jnp.asarray(terms[user]), weight[user])[2]
        np.testing.assert_allclose(gain, exact_gain(weight, terms, user), rtol=1e-7, atol=1e-9)


def test_probabilities_are_finite_with_a_weak_prior_of_users():
    policy = Session(RomePolicy(Problem(5, (), (-2.0, 2.0), 0.2), RoME(user_precision=1e-15)))
    state = policy.init(jax.random.key(0))
    for user in range(3):
        state = policy.enrol(state, jnp.zeros(0))
        counts = jnp.full(5, 300.0)
        rewards = Statistics(counts, counts * jnp.linspace(-1, 1, 5), counts)
        state, _ = policy.update(jax.random.key(user), state, user, rewards)
    np.testing.assert_allclose(np.sum(policy.probabilities(state, 1)), 1.0)


def literal_law(evidence, user, num_users=4):
    """Compute mean, deviation and P(control | candidate) from dense algebra."""
    weights, pulls = (np.asarray(field)[:4] for field in evidence)
    mean, spread, gains = dense_posterior(weights, pulls)
    deviation = np.sqrt(np.diag(spread).reshape(4, -1)[user])
    confidence = 2 * np.log(2 * num_users * (num_users + 1) / 0.01)
    floor = 10 * max(1, np.log(num_users) ** 0.75)
    beta, first = (SCALE * np.sqrt(confidence + more) + floor for more in (gains[user], 0))
    return mean[user], SCALE * beta / first * deviation


def draw_arms(generator, mean, deviation, num_draws=100_000):
    """Draw θ̃ for the candidate, and again for control given the candidate, with the limits."""
    forms = mean + deviation * generator.normal(size=(num_draws, len(mean)))
    candidate = np.argmax(forms, axis=1)
    again = mean + deviation * generator.normal(size=(1_000_000, len(mean)))
    control = np.clip(np.mean(again <= 0, axis=0), 0.05, 0.95)
    return np.where(generator.uniform(size=num_draws) < control[candidate], 0, candidate + 1)


@pytest.mark.parametrize("user", range(4))
def test_probabilities_match_draws(policy, state, user):
    generator = np.random.default_rng(user)
    mean, deviation = literal_law(state.evidence, user)
    found = np.asarray(policy.probabilities(state, user))
    shares = np.bincount(draw_arms(generator, mean, deviation), minlength=3) / 1e5
    assert np.all(np.abs(found - shares) < 4 * np.sqrt(0.25 / 1e5))
    for arm in (1, 2):
        drawn = draw_arms(generator, mean[[arm - 1]], deviation[[arm - 1]])
        pair = np.asarray(policy.probabilities(state, user, (0, arm)))
        assert abs(pair[1] - np.mean(drawn == 1)) < 4 * np.sqrt(0.25 / 1e5)
    forms = mean + deviation * generator.normal(size=(100_000, 2))
    without_control = np.asarray(policy.probabilities(state, user, (1, 2)))
    assert abs(without_control[0] - np.mean(forms[:, 0] > forms[:, 1])) < 4 * np.sqrt(0.25 / 1e5)


def test_largest_of_many_forms_matches_quadrature():
    """Unequal widths, one very narrow; by adaptive integration of each form's density."""
    mean = np.array([0.3, -0.2, 0.5, 0.1, 0.45])
    deviation = np.array([0.4, 1.1, 0.05, 0.6, 0.004])
    expected = []
    for form in range(5):
        others = np.delete(np.arange(5), form)

        def density(z, form=form, others=others):
            value = mean[form] + deviation[form] * z
            return norm.pdf(z) * np.prod(norm.cdf((value - mean[others]) / deviation[others]))

        breaks = (mean[others] - mean[form]) / deviation[form]
        breaks = breaks[np.abs(breaks) < 9]
        expected.append(quad(density, -9, 9, points=breaks, limit=500, epsabs=1e-10)[0])
    found = largest_probability(jnp.asarray(mean), jnp.asarray(deviation))
    np.testing.assert_allclose(sum(expected), 1.0, atol=1e-6)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_control_keeps_its_limits(policy):
    """However sure it is, control has 0.05 of what a candidate would get, and no more than 0.95."""
    for sign, expected in ((1.0, 0.05), (-1.0, 0.95)):
        rewards = Statistics(
            jnp.array([90.0, 90.0, 90.0]), sign * jnp.array([-135.0, 135.0, 100.0]), jnp.zeros(3)
        )
        state, _ = policy.update(jax.random.key(5), enrolled(policy), 0, rewards)
        found = policy.probabilities(state, 0)
        np.testing.assert_allclose(found[0], expected, atol=1e-9)


def literal_prediction(bags, contexts=CONTEXTS):
    """Fit every bag on rows (terms, terms if arm 1, terms if arm 2), and average the fits."""
    counts, totals = (np.asarray(field) for field in bags)

    def row(context, arm):
        terms = terms_of(context)
        return np.concatenate([terms, terms * (arm == 1), terms * (arm == 2)])

    fits = []
    for bag in range(counts.shape[1]):
        gram, shift = np.eye(15), np.zeros(15)
        for (user, context), arm in itertools.product(enumerate(contexts), range(3)):
            gram += counts[user, bag, arm] * np.outer(row(context, arm), row(context, arm))
            shift += totals[user, bag, arm] * row(context, arm)
        fits.append(np.linalg.solve(gram, shift))
    return lambda context: np.array([row(context, arm) @ np.mean(fits, axis=0) for arm in range(3)])


def test_bags_are_averaged_ridge_regressions(state):
    terms = jnp.asarray([terms_of(context) for context in CONTEXTS])
    bags = Bags(*(field[:4] for field in state.bags))
    for context in (CONTEXTS[1], np.array([-0.3, 1.0])):
        found = predict(terms, bags, 1.0, jnp.asarray(terms_of(context)))
        np.testing.assert_allclose(found, literal_prediction(bags)(context), atol=1e-10)
        assert np.ptp(np.asarray(found)) > 0.1


def test_bags_hold_their_share_of_rewards(policy):
    """Every reward is in a bag with probability 0.8, whatever other bags it is in."""
    state, statistics = enrolled(policy), Statistics.empty(3).add(2, 0.7).add(0, -0.4)
    keys = jax.random.split(jax.random.key(3), 60)
    bags = [policy.update(key, state, 1, statistics)[0].bags for key in keys]
    counts, totals = (np.stack([rows[field][1] for rows in bags]) for field in range(2))
    assert set(np.unique(counts)) == {0.0, 1.0}
    assert np.all(counts[..., 1] == 0)
    np.testing.assert_allclose(totals, counts * np.array([-0.4, 0.0, 0.7]))
    own, both = counts[..., [0, 2]], counts[:, 0, 0] * counts[:, 1, 0]
    assert np.all(np.abs(own.mean(axis=0) - 0.8) < 4 * np.sqrt(0.8 * 0.2 / 60))
    assert abs(both.mean() - 0.64) < 4 * np.sqrt(0.64 * 0.36 / 60)


def test_a_reward_adds_its_pseudo_reward(policy, state):
    """Both kinds of reward by hand, with π, P(ā) and f̂ of the state before."""
    for user, arm, reward in ((1, 2, -0.8), (3, 0, 1.3)):
        mean, deviation = literal_law(state.evidence, user)
        after, _ = policy.update(
            jax.random.key(77), state, user, state.users.of(user)[1].add(arm, reward)
        )
        control = np.clip(norm.cdf(-mean / deviation), 0.05, 0.95)
        first = norm.cdf((mean[0] - mean[1]) / np.hypot(*deviation))
        guess = literal_prediction(state.bags)(CONTEXTS[user])
        if arm > 0:
            share = np.arange(2) == arm - 1
            divided = (reward - guess[arm]) / (1 - control)
        else:
            share = np.array([first, 1 - first]) * control
            share = share / share.sum()
            divided = (reward - guess[0]) / (0 - control)
        weight = share * control * (1 - control)
        pull = weight * (guess[1:] - guess[0] + divided)
        change = jax.tree.map(
            lambda new, old: np.asarray(new - old), after.evidence, state.evidence
        )
        np.testing.assert_allclose(change.weight[user], weight, atol=1e-10)
        np.testing.assert_allclose(change.pull[user], pull, atol=1e-10)
        assert np.abs(pull).max() > 0.05
        assert not np.delete(change.pull, user, axis=0).any()


@pytest.mark.parametrize("guess", [(0.0, 0.0), (5.0, -3.0)], ids=["nothing", "far off"])
@pytest.mark.parametrize("control", [0.05, 0.4, 0.9])
def test_pseudo_rewards_have_the_mean_of_the_advantage(guess, control):
    """Over who is played and the noise, whatever f̂ says; and in sum, weights times as much."""
    generator = np.random.default_rng(8)
    means = np.array([0.3, 1.1])
    is_candidate = generator.uniform(size=200_000) >= control
    rewards = means[1 * is_candidate] + 0.2 * generator.normal(size=len(is_candidate))
    residual = rewards - np.array(guess)[1 * is_candidate]
    arguments = (
        jnp.asarray(is_candidate),
        jnp.full(len(residual), control),
        jnp.full(len(residual), guess[1] - guess[0]),
        jnp.asarray(residual),
    )
    weight, pull = map(np.asarray, contribution(*arguments))
    found = pull / weight
    literal = guess[1] - guess[0] + residual / (is_candidate - control)
    np.testing.assert_allclose(found, literal, atol=1e-10)
    assert abs(found.mean() - 0.8) < 4 * found.std() / np.sqrt(len(found))
    np.testing.assert_allclose(pull, control * (1 - control) * literal)


def test_sharing_out_control_leaves_the_mean_of_the_sums(policy, state):
    """Σ_A P(A) × what A adds to a candidate is P(ā) × the mean given ā: σ̃² and σ̃² × advantage."""
    means, user = np.array([0.4, -0.7, 1.2]), 0
    law = compiled_law(policy._rules, state.users, state.own, jnp.asarray(user), jnp.arange(2))
    played = np.asarray(policy.probabilities(state, user))
    total = np.zeros((2, 2))
    for arm in range(3):
        statistics = state.users.of(user)[1].add(arm, means[arm])
        after, _ = policy.update(jax.random.key(4), state, user, statistics)
        for row, field in enumerate(("weight", "pull")):
            new, old = getattr(after.evidence, field), getattr(state.evidence, field)
            total[row] += played[arm] * np.asarray(new - old)[user]
    candidate, control = np.asarray(law.candidate), np.asarray(law.control)
    weight = candidate * control * (1 - control)
    np.testing.assert_allclose(total[0], weight, atol=1e-12)
    np.testing.assert_allclose(total[1], weight * (means[1:] - means[0]), atol=1e-12)


def test_exploration_grows_with_users_and_what_was_learned():
    for groups, gain in ((1, 0.0), (2, 3.0), (100, 40.0)):
        expected = 0.5 * np.sqrt(2 * np.log(2 * groups * (groups + 1) / 0.02) + gain)
        expected += 7 * max(1, np.log(groups) ** 0.75)
        np.testing.assert_allclose(exploration(groups, gain, 0.5, 0.02, 7.0), expected)


def test_tables_grow_together(policy, state):
    """The 257th user has rows everywhere, and those before keep theirs."""
    full = state._replace(users=state.users._replace(num_users=jnp.asarray(256)))
    grown = policy.enrol(full, jnp.array([0.2, 1.0]))
    assert {len(rows) for rows in jax.tree.leaves(grown.own)} == {1024}
    for rows, old in zip(*map(jax.tree.leaves, (grown.own, state.own)), strict=True):
        np.testing.assert_array_equal(rows[:256], old)
        assert not np.any(rows[256:])


def test_a_single_candidate():
    """Two arms, as its authors have: nothing is known, so both are as likely."""
    policy = Session(RomePolicy(Problem(2, (), (-2.0, 2.0), 0.2), SETTINGS))
    state = policy.enrol(policy.init(jax.random.key(0)), jnp.zeros(0))
    np.testing.assert_allclose(policy.probabilities(state, 0), 0.5)
    state, _ = policy.update(jax.random.key(0), state, 0, Statistics.empty(2).add(1, 1.0))
    # σ̃²R̃ = π R = 0.5, along one term: mean and variance by hand.
    variance = 1 / SHARED + 1 / OWN
    mean = variance * 0.5 / (1 + variance / 4)
    assert np.isclose(state.evidence.pull[0].sum(), 0.5)
    terms = jnp.ones((1, 1))
    evidence = jax.tree.map(lambda rows: rows[:1], state.evidence)
    np.testing.assert_allclose(
        forms_of(terms, evidence, jnp.asarray(0), (SHARED, OWN))[0], [mean], atol=1e-12
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *itertools.product(
            ["shared_precision", "user_precision", "scale", "floor", "ridge"],
            [0.0, -1.0, float("nan")],
        ),
        *itertools.product(["error", "least_control", "most_control"], [0.0, 1.0, float("nan")]),
        ("bag_share", 1.5),
        ("num_bags", 0),
        ("least_control", 0.99),
    ],
)
def test_settings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"got {name}={value}"):
        RoME(**{name: value})
