"""MTTS against the dense joint Gaussian of coefficients, arm means and single rewards."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.environments.lmm import DESIGN, SLOPES
from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines.mtts import MTTS, MttsPolicy
from cocobandits.populations.hierarchy import gaussian_hierarchy
from cocobandits.users.statistics import Statistics
from support.sessions import Session

PROBLEM = Problem(3, (None, 3), (-2.0, 2.0), 0.2)
NOISE = PROBLEM.reward_noise
CONTEXTS = np.array([[0.4, 0.0], [-0.7, 2.0], [0.9, 1.0], [0.1, 2.0]])
# Unequal histories: all arms, one arm often, nothing, two arms.
HISTORIES = [
    [(0, 0.9), (1, -0.2), (2, 0.3), (0, 1.1)],
    [(2, 0.5), (2, 0.7), (2, 0.4), (2, 0.6), (2, 0.55)],
    [],
    [(1, -1.0), (0, 0.2), (1, -0.6)],
]
# Four coefficients that the arms share, in five terms of the context.
SHARED = np.random.default_rng(6).normal(size=(3, 4, 5)).tolist()
SHARED_DESIGN = tuple(tuple(map(tuple, arm)) for arm in SHARED)
# Deviations of arms that go together, apart, and hardly with each other.
COVARIANCE = ((0.30, 0.21, -0.09), (0.21, 0.25, 0.02), (-0.09, 0.02, 0.11))
SETTINGS = {
    "own lines": MTTS(None, -0.3, 0.8, 0.35),
    "shared coefficients": MTTS(SHARED_DESIGN, 0.4, 0.5, 0.1),
    "tied arms": MTTS(SHARED_DESIGN, 0.4, 0.5, 0.9),
    "own lines, tied arms": MTTS(None, -0.3, 0.8, 0.9),
}


@pytest.fixture(params=SETTINGS)
def policy(request):
    return policy_of(request.param)


def policy_of(name, **changes):
    """Build a policy; one of tied arms has a covariance as a fit would give it."""
    policy = MttsPolicy(PROBLEM, replace(SETTINGS[name], **changes))
    if "tied" in name:
        policy.model = replace(policy.model, user_covariance=jnp.array(COVARIANCE))
    return Session(policy)


def read_gaussian(belief):
    return belief.means[0], belief.covariances[0]


def statistics_of(history) -> Statistics:
    statistics = Statistics.empty(3)
    for arm, reward in history:
        statistics = statistics.add(arm, reward)
    return statistics


def design_matrix(settings, context):
    """Lay out Φ(x) by hand: the terms are (1, x, three categories)."""
    terms = np.array([1.0, context[0], *(context[1] == np.arange(3))])
    if settings.design is None:
        return np.stack([np.kron(np.eye(3)[arm], terms) for arm in range(3)])
    return np.array(settings.design) @ terms


def deviation_covariance(settings):
    is_tied = settings.user_deviation == 0.9
    return np.array(COVARIANCE) if is_tied else settings.user_deviation**2 * np.eye(3)


def dense_joint(settings, contexts, histories):
    """Stack (θ, μ_1, μ_2, …, all rewards) as one Gaussian vector, and condition on the rewards."""
    matrices = [design_matrix(settings, context) for context in contexts]
    num_coefficients, num_users = matrices[0].shape[1], len(matrices)
    size = num_coefficients + 3 * num_users
    # Rows of `root`: how θ and all μ follow from independent standard normals.
    root = settings.coefficient_deviation * np.eye(size)
    for user, matrix in enumerate(matrices):
        rows = slice(num_coefficients + 3 * user, num_coefficients + 3 * user + 3)
        root[rows, :num_coefficients] = settings.coefficient_deviation * matrix
        root[rows, rows] = np.linalg.cholesky(deviation_covariance(settings))
    centre = np.full(num_coefficients, settings.coefficient_mean)
    mean = np.concatenate([centre, *(matrix @ centre for matrix in matrices)])
    covariance = root @ root.T
    seen = [(u, a, r) for u, history in enumerate(histories) for a, r in history]
    pick = np.eye(size)[[num_coefficients + 3 * user + arm for user, arm, _ in seen]]
    rewards = np.array([reward for *_, reward in seen])
    joint = pick @ covariance @ pick.T + NOISE**2 * np.eye(len(seen))
    gain = np.linalg.solve(joint, pick @ covariance).T
    mean = mean + gain @ (rewards - pick @ mean)
    return mean, covariance - gain @ pick @ covariance


def dense_posterior(settings, contexts, histories):
    """Cut the joint Gaussian into the coefficients and one user after the other."""
    mean, covariance = dense_joint(settings, contexts, histories)
    num_coefficients = len(mean) - 3 * len(contexts)
    blocks = [slice(0, num_coefficients)]
    blocks += [slice(num_coefficients + 3 * u, num_coefficients + 3 * u + 3) for u in range(4)]
    return [(mean[block], covariance[block, block]) for block in blocks]


def learned(policy, steps=None):
    """Enrol everybody and learn, one reward at a time in the order given."""
    state = policy.init(jax.random.key(0))
    for context in CONTEXTS:
        state = policy.enrol(state, jnp.asarray(context))
    if steps is None:
        steps = [(u, *pull) for u, history in enumerate(HISTORIES) for pull in history]
    for user, arm, reward in steps:
        statistics = state.users.of(user)[1].add(arm, reward)
        state, _ = policy.update(jax.random.key(0), state, user, statistics)
    return state


def test_beliefs_match_the_dense_joint_gaussian(policy):
    state = learned(policy)
    expected = dense_posterior(policy.settings, CONTEXTS, HISTORIES)
    for user, (mean, covariance) in enumerate(expected[1:]):
        _, (actual_mean, actual_covariance) = policy.read(
            state, *state.users.of(user), read_gaussian
        )
        np.testing.assert_allclose(actual_mean[0], mean, atol=1e-10)
        np.testing.assert_allclose(actual_covariance[0], covariance, atol=1e-10)
    coefficients, uncertainty = expected[0]
    np.testing.assert_allclose(jnp.linalg.inv(state.sums.precision), uncertainty, atol=1e-10)
    np.testing.assert_allclose(jnp.linalg.solve(*state.sums), coefficients, atol=1e-10)


@pytest.mark.parametrize("name", SETTINGS)
def test_fit_is_a_step_of_em_around_the_line(name):
    """E[δδᵀ] of users with rewards, δ = μ - Φ(x) θ, from the dense Gaussian of θ and all users."""
    given, known = SETTINGS[name], learned(policy_of(name))
    fitting = policy_of(name, prior_users=2.5)
    state, _ = fitting.update(jax.random.key(0), known, 0, known.users.of(0)[1])
    mean, covariance = dense_joint(given, CONTEXTS, HISTORIES)
    num_coefficients = len(mean) - 12
    moments = 2.5 * deviation_covariance(given)
    for user in (0, 1, 3):
        gap = np.zeros((3, len(mean)))
        gap[:, :num_coefficients] = -design_matrix(given, CONTEXTS[user])
        gap[:, num_coefficients + 3 * user : num_coefficients + 3 * user + 3] = np.eye(3)
        moments += np.outer(gap @ mean, gap @ mean) + gap @ covariance @ gap.T
    np.testing.assert_allclose(state.covariance, moments / 5.5, atol=1e-10)


def test_prior_adds_the_deviation_of_a_newcomer_to_the_line(policy):
    """N(Φ θ̂, Φ Λ⁻¹ Φᵀ + Σ), θ̂ and Λ from the dense posterior."""
    coefficients, uncertainty = dense_posterior(policy.settings, CONTEXTS, HISTORIES)[0]
    context = np.array([-0.2, 1.0])
    matrix = design_matrix(policy.settings, context)
    belief = policy.prior(learned(policy), jnp.asarray(context))
    np.testing.assert_allclose(belief.means[0], matrix @ coefficients, atol=1e-10)
    spread = matrix @ uncertainty @ matrix.T + deviation_covariance(policy.settings)
    np.testing.assert_allclose(belief.covariances[0], spread, atol=1e-10)


def test_order_of_updates_does_not_matter(policy):
    steps = [(u, *pull) for u, history in enumerate(HISTORIES) for pull in history]
    shuffled = [steps[i] for i in np.random.default_rng(1).permutation(len(steps))]
    first, second = learned(policy, steps), learned(policy, shuffled)
    for left, right in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)


def test_removed_rewards_leave_no_trace(policy):
    """Take back one user's rewards at once, and then the user's later rewards one by one."""
    kept = [(u, *pull) for u, history in enumerate(HISTORIES) for pull in history if u != 1]
    state, without = learned(policy), learned(policy, kept)
    assert np.abs(np.asarray(state.sums.shift - without.sums.shift)).max() > 0.1
    state, _ = policy.update(jax.random.key(0), state, 1, Statistics.empty(3))
    for left, right in zip(jax.tree.leaves(state), jax.tree.leaves(without), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)


def test_an_update_touches_one_row_and_fixed_sums(policy):
    """A larger table compiles nothing new: no array of its size enters the arithmetic."""
    state = learned(policy)
    large = state._replace(users=state.users._grow(4096))
    compiled = gaussian_hierarchy.replaced._cache_size()
    statistics = state.users.of(3)[1].add(2, 0.8)
    small, _ = policy.update(jax.random.key(0), state, 3, statistics)
    grown, _ = policy.update(jax.random.key(0), large, 3, statistics)
    assert gaussian_hierarchy.replaced._cache_size() == compiled
    for left, right in zip(small.sums, grown.sums, strict=True):
        np.testing.assert_array_equal(left, right)
    others = np.delete(np.arange(4096), 3)
    for before, after in zip(large.users.statistics, grown.users.statistics, strict=True):
        np.testing.assert_array_equal(before[others], after[others])


def test_tied_deviations_carry_a_user_s_rewards_to_other_arms():
    """With Σ a reward of arm 1 lifts arm 2 of the same user, and of nobody else as much."""
    shifts = {}
    for name in ("own lines", "own lines, tied arms"):
        policy = policy_of(name)
        before = learned(policy)
        statistics = before.users.of(2)[1].add(0, 1.8)
        after, _ = policy.update(jax.random.key(0), before, 2, statistics)
        means = [
            policy.read(state, *state.users.of(2), read_gaussian).values[0][0]
            for state in (before, after)
        ]
        shifts[name] = float(means[1][1] - means[0][1])
    assert abs(shifts["own lines"]) < 0.01
    assert shifts["own lines, tied arms"] > 0.2


def test_many_rewards_leave_a_covariance():
    """A million rewards of two arms: positive, symmetric, and the noise of the averages."""
    policy = policy_of("tied arms")
    state = learned(policy)
    many = Statistics(*(jnp.array(row) for row in ([1e6, 0, 4e6], [3e5, 0, -2e6], [2e5, 0, 4e6])))
    state, _ = policy.update(jax.random.key(0), state, 1, many)
    _, (mean, covariance) = policy.read(state, *state.users.of(1), read_gaussian)
    np.testing.assert_allclose(mean[0][jnp.array([0, 2])], [0.3, -0.5], atol=1e-6)
    variances = np.diagonal(covariance[0])[[0, 2]]
    np.testing.assert_allclose(variances, NOISE**2 / np.array([1e6, 4e6]), rtol=1e-6)
    np.testing.assert_array_equal(covariance[0], covariance[0].T)
    assert np.linalg.eigvalsh(covariance[0])[0] > 0


def test_design_of_the_mixed_model_environment():
    """Φ(x) = (ρ_a x, 1), with θ one for all arms."""
    problem = Problem(3, (None,), (-2.0, 2.0), 0.1)
    policy = Session(MttsPolicy(problem, MTTS(DESIGN, 1.0, 0.5, 0.05)))
    belief = policy.prior(policy.init(jax.random.key(0)), jnp.array([0.6]))
    matrix = np.stack([0.6 * np.array(SLOPES), np.ones(3)], axis=1)
    np.testing.assert_allclose(belief.means[0], matrix.sum(axis=1), atol=1e-14)
    expected = 0.25 * matrix @ matrix.T + 0.05**2 * np.eye(3)
    np.testing.assert_allclose(belief.covariances[0], expected, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *itertools.product(["coefficient_deviation", "user_deviation"], [0.0, -1.0, float("nan")]),
        ("coefficient_mean", float("nan")),
    ],
)
def test_settings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"got {name}={value}"):
        MTTS(**{name: value})


@pytest.mark.parametrize(
    ("design", "message"),
    [
        (SHARED_DESIGN[:2], r"3 arms × coefficients × 5 terms, all finite; got shape \(2, 4, 5\)"),
        (DESIGN, r"got shape \(3, 2, 2\). Give one row per arm"),
        ((((0.0, 1.0), (1.0,)),) * 3, "design"),
        ((((float("nan"),) * 5,) * 4,) * 3, "design"),
    ],
    ids=["too few arms", "too few terms", "ragged", "not finite"],
)
def test_designs_are_refused(design, message):
    with pytest.raises(ConfigurationError, match=message):
        Session(MttsPolicy(PROBLEM, MTTS(design)))
