"""Meta-TS and AdaTS against the dense joint Gaussian of population, users and single rewards."""

import itertools
from dataclasses import astuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines import meta_ts
from cocobandits.policies.baselines.meta_ts import AdaTS, MetaTS
from cocobandits.users.statistics import Statistics
from support.sessions import Session

PROBLEM = Problem(3, (None,), (-2.0, 2.0), 0.3)
NOISE = PROBLEM.reward_noise
SETTINGS = MetaTS(-0.3, 0.8, 0.35)
KEY = jax.random.key(5)
NOBODY = jnp.zeros(1)
# Unequal histories: all arms, one arm often, nothing, two arms.
HISTORIES = [
    [(0, 0.9), (1, -0.2), (2, 0.3), (0, 1.1)],
    [(2, 0.5), (2, 0.7), (2, 0.4), (2, 0.6), (2, 0.55)],
    [],
    [(1, -1.0), (0, 0.2), (1, -0.6)],
]


@pytest.fixture(params=["meta-ts", "ada-ts"])
def policy(request):
    return build(request.param == "meta-ts")


def build(is_drawn, problem=PROBLEM):
    settings = SETTINGS if is_drawn else AdaTS(*astuple(SETTINGS))
    return Session(settings.build(problem))


def statistics_of(history, num_arms=3) -> Statistics:
    statistics = Statistics.empty(num_arms)
    for arm, reward in history:
        statistics = statistics.add(arm, reward)
    return statistics


def states(policy, histories=HISTORIES):
    """Serve one user after another: the states before the first and after each."""
    state = policy.init(KEY)
    yield state
    for user, history in enumerate(histories):
        state = policy.enrol(state, jnp.array([0.1 * user]))
        state, _ = policy.update(KEY, state, user, statistics_of(history, policy.problem.num_arms))
        yield state


def served(policy, histories=HISTORIES):
    return list(states(policy, histories))[-1]


def dense(histories, arm, given=None):
    """Condition (μ*, μ_0, …, μ_4) of one arm on single rewards, and on a value of μ* if given."""
    covariance = SETTINGS.population_deviation**2 * np.ones((6, 6))
    covariance[1:, 1:] += SETTINGS.user_deviation**2 * np.eye(5)
    seen = [(1 + u, r) for u, history in enumerate(histories) for a, r in history if a == arm]
    rows, values = [row for row, _ in seen], [reward for _, reward in seen]
    noise = [NOISE**2] * len(seen)
    if given is not None:
        rows, values, noise = [*rows, 0], [*values, given], [*noise, 0.0]
    mean = np.full(6, SETTINGS.population_mean)
    if not rows:
        return mean, np.diagonal(covariance)
    joint = covariance[np.ix_(rows, rows)] + np.diag(noise)
    gain = np.linalg.solve(joint, covariance[rows]).T
    mean = mean + gain @ (np.array(values) - SETTINGS.population_mean)
    return mean, np.diagonal(covariance - gain @ covariance[rows])


def dense_arms(histories, row, given=(None, None, None)):
    """Read one of the six off for every arm."""
    found = [dense(histories, arm, given[arm]) for arm in range(3)]
    return np.array([(mean[row], variance[row]) for mean, variance in found]).T


def best_of(means, variances):
    """Integrate φ_a ∏ Φ_b over a fine grid."""
    deviations = np.sqrt(variances)
    values = np.linspace(-8.0, 8.0, 200_001)[:, None]
    below, density = norm.cdf(values, means, deviations), norm.pdf(values, means, deviations)
    return np.array(
        [
            np.trapezoid(density[:, a] * np.delete(below, a, axis=1).prod(axis=1), values[:, 0])
            for a in range(len(means))
        ]
    )


def read_normals(belief):
    return belief.mean(), belief.variance()


def test_population_matches_the_dense_joint_gaussian(policy):
    """At any time, whoever is still being served."""
    for number, state in enumerate(states(policy)):
        mean, variance = dense_arms(HISTORIES[:number], 0)
        found = meta_ts.population(state.users.statistics, policy._constants)
        np.testing.assert_allclose(found.mean, mean, atol=1e-10)
        np.testing.assert_allclose(found.variance, variance, atol=1e-10)


def test_ada_ts_starts_and_goes_on_as_the_dense_joint_gaussian():
    policy = build(is_drawn=False)
    before, *after = states(policy)
    for user, state in enumerate(after):
        start = dense_arms(HISTORIES[:user], 1 + user)
        for found, expected in zip(state.priors, start, strict=True):
            np.testing.assert_allclose(found[user], expected, atol=1e-10)
        expected = dense_arms(HISTORIES[: user + 1], 1 + user)
        belief = meta_ts.posterior(state.users, state.priors, user, jnp.array(NOISE))
        np.testing.assert_allclose(read_normals(belief), expected, atol=1e-10)
        # The belief that the state before implies is the one about this user too.
        own = statistics_of(HISTORIES[user])
        readings = policy.read(before, NOBODY, own, read_normals)
        np.testing.assert_allclose([leaf[0] for leaf in readings.values], expected, atol=1e-10)
        np.testing.assert_allclose(policy.probabilities(state, user), best_of(*expected), atol=1e-5)
        before = state


def test_meta_ts_goes_on_as_if_its_draw_were_the_population():
    policy = build(is_drawn=True)
    for user, state in enumerate(list(states(policy))[1:]):
        drawn = np.asarray(state.priors.mean[user])
        np.testing.assert_allclose(state.priors.variance[user], SETTINGS.user_deviation**2)
        expected = dense_arms(HISTORIES[: user + 1], 1 + user, drawn)
        belief = meta_ts.posterior(state.users, state.priors, user, jnp.array(NOISE))
        np.testing.assert_allclose(read_normals(belief), expected, atol=1e-10)
        np.testing.assert_allclose(policy.probabilities(state, user), best_of(*expected), atol=1e-5)


def test_meta_ts_is_ada_ts_once_its_draws_are_averaged_out():
    """Mean, variance and first arm of somebody who enrols now, over many keys."""
    policy, other = build(is_drawn=True), build(is_drawn=False)
    state = served(policy)
    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(8), 4000))
    start = jax.jit(
        jax.vmap(lambda key: meta_ts._start(state.users, key, policy._constants, is_drawn=True))
    )(keys)
    draws = np.asarray(start.mean)
    mean, variance = dense_arms(HISTORIES, 5)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * error)
    within = np.asarray(start.variance)[0]
    squares = (draws - mean) ** 2 + within
    error = squares.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(squares.mean(axis=0) - variance) < 4 * error)
    first = jax.jit(
        jax.vmap(lambda one: meta_ts._belief(one, jnp.array(NOISE)).best_probability())
    )(start)
    newcomer = other.enrol(served(other), NOBODY)
    expected = np.asarray(other.probabilities(newcomer, 4))
    error = np.asarray(first).std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(np.asarray(first).mean(axis=0) - expected) < 4 * error)
    np.testing.assert_allclose(policy.prior(state, NOBODY).mean(), mean, atol=1e-10)
    np.testing.assert_allclose(policy.prior(state, NOBODY).variance(), variance, atol=1e-10)


def test_draws_differ_between_users_arms_and_keys():
    policy, drawn = build(is_drawn=True), []
    for seed in (1, 2):
        state = policy.init(jax.random.key(seed))
        for _ in range(3):
            state = policy.enrol(state, NOBODY)
        drawn.append(np.asarray(state.priors.mean[:3]))
    assert len(np.unique(drawn)) == 18


def test_a_prior_stays_with_its_user(policy):
    """Rewards of others reach those who enrol later."""
    state = served(policy)
    before = np.asarray(policy.probabilities(state, 3))
    state = policy.reward(state, 0, 1, 1.9)
    np.testing.assert_array_equal(policy.probabilities(state, 3), before)
    mean, _ = dense_arms([[*HISTORIES[0], (1, 1.9)], *HISTORIES[1:]], 5)
    np.testing.assert_allclose(policy.prior(state, NOBODY).mean(), mean, atol=1e-10)


def test_withdrawn_rewards_leave_no_trace_in_priors(policy):
    """Nor in those of users who enrolled while they were there."""
    state = served(policy)
    state, _ = policy.update(KEY, state, 1, Statistics.empty(3))
    without = served(policy, [HISTORIES[0], [], HISTORIES[2], HISTORIES[3]])
    for left, right in zip(state.priors, without.priors, strict=True):
        np.testing.assert_allclose(left[:4], right[:4], atol=1e-12)


def test_only_the_arms_given_are_compared(policy):
    state = served(policy)
    belief = meta_ts.posterior(state.users, state.priors, 3, jnp.array(NOISE))
    means, variances = map(np.asarray, read_normals(belief))
    everything = np.asarray(policy.probabilities(state, 3))
    distances = []
    for arms in ((0, 1), (0, 2), (1, 2)):
        chosen = list(arms)
        found = np.asarray(policy.probabilities(state, 3, arms))
        np.testing.assert_allclose(found, best_of(means[chosen], variances[chosen]), atol=1e-5)
        distances.append(np.abs(found - everything[chosen] / everything[chosen].sum()).max())
    assert max(distances) > 0.005


def test_a_new_arm_is_as_if_it_had_always_been_there(policy):
    """Nobody was given it, so that it makes no difference when it came."""
    wider, more = policy.add_arm(KEY, served(policy))
    always = build(policy.settings.is_drawn, PROBLEM.with_arm())
    expected = served(always)
    for left, right in zip(more.priors, expected.priors, strict=True):
        np.testing.assert_allclose(left[:4], right[:4], atol=1e-14)
    for user in range(4):
        np.testing.assert_allclose(
            wider.probabilities(more, user), always.probabilities(expected, user), atol=1e-12
        )
    belief = wider.prior(more, NOBODY)
    np.testing.assert_allclose(belief.mean()[3], -0.3)
    np.testing.assert_allclose(belief.variance()[3], 0.8**2 + 0.35**2)
    later, again = (wider.enrol(state, NOBODY) for state in (more, expected))
    np.testing.assert_allclose(later.priors.mean[4], again.priors.mean[4], atol=1e-14)


def test_priors_grow_with_the_table(policy):
    state = served(policy)
    before = state.priors
    for _ in range(253):
        state = policy.enrol(state, NOBODY)
    assert int(state.users.num_users) == 257
    for part, old in zip(state.priors, before, strict=True):
        assert len(part) == len(state.users.contexts)
        np.testing.assert_array_equal(part[:4], old[:4])
        assert np.all(np.asarray(part[256]) != 0)
    np.testing.assert_allclose(np.sum(policy.probabilities(state, 256)), 1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *itertools.product(["population_deviation", "user_deviation"], [0.0, -1.0, float("nan")]),
        ("population_mean", float("inf")),
    ],
)
def test_settings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"got {name}={value}"):
        MetaTS(**{name: value})


def test_a_noise_is_needed():
    with pytest.raises(ConfigurationError, match="got noise=None"):
        AdaTS().build(Problem(3, (None,), (-2.0, 2.0), None))
