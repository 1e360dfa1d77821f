"""HierTS against the dense joint Gaussian of the common means, all users and all single rewards."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines.hierts import HierTS
from cocobandits.policies.baselines.mtts import MTTS, HierarchyPolicy, MttsPolicy
from cocobandits.populations.hierarchy.linear_mixed import mixed_model_log_evidence
from cocobandits.users.statistics import Statistics
from support.sessions import Session

PROBLEM = Problem(3, (None, 2), (-2.0, 2.0), 0.2)
NOISE = PROBLEM.reward_noise
CONTEXTS = np.array([[0.4, 0.0], [-0.7, 1.0], [0.9, 1.0], [0.1, 0.0]])
# Unequal histories: all arms, one arm often, nothing, two arms.
HISTORIES = [
    [(0, 0.9), (1, -0.2), (2, 0.3), (0, 1.1)],
    [(2, 0.5), (2, 0.7), (2, 0.4), (2, 0.6), (2, 0.55)],
    [],
    [(1, -1.0), (0, 0.2), (1, -0.6)],
]
COVARIANCE = ((0.30, 0.21, -0.09), (0.21, 0.25, 0.02), (-0.09, 0.02, 0.11))
# With a covariance that is known: of the settings, or one that ties arms as a fit would.
SETTINGS = {
    "independent": HierTS(-0.3, 0.8, 0.35, prior_users=None),
    "tied": HierTS(0.4, 0.5, 0.9, prior_users=None),
}
FITTED = HierTS(0.2, 0.6, 0.4, prior_users=2.5)


@pytest.fixture(params=SETTINGS)
def policy(request):
    return policy_of(request.param)


def policy_of(name):
    policy = HierarchyPolicy(PROBLEM, SETTINGS[name])
    if name == "tied":
        policy.model = replace(policy.model, user_covariance=jnp.array(COVARIANCE))
    return Session(policy)


def read_gaussian(belief):
    return belief.means[0], belief.covariances[0]


def literal_covariance(settings, num_arms):
    if settings == SETTINGS["tied"]:
        return np.array(COVARIANCE)
    return settings.user_deviation**2 * np.eye(num_arms)


def dense_joint(settings, histories, num_arms=3, deviations=None):
    """Stack (μ*, θ_1, θ_2, …) as one Gaussian vector, and condition on every single reward."""
    if deviations is None:
        deviations = literal_covariance(settings, num_arms)
    num_blocks = 1 + len(histories)
    size = num_arms * num_blocks
    covariance = np.zeros((size, size))
    for i in range(num_blocks):
        for j in range(num_blocks):
            block = settings.arm_deviation**2 * np.eye(num_arms)
            if i == j and i > 0:
                block = block + deviations
            rows, columns = num_arms * i, num_arms * j
            covariance[rows : rows + num_arms, columns : columns + num_arms] = block
    mean = np.full(size, settings.arm_mean)
    seen = [(u, a, r) for u, history in enumerate(histories) for a, r in history]
    pick = np.eye(size)[[num_arms * (1 + user) + arm for user, arm, _ in seen]]
    rewards = np.array([reward for *_, reward in seen])
    joint = pick @ covariance @ pick.T + NOISE**2 * np.eye(len(seen))
    gain = np.linalg.solve(joint, pick @ covariance).T
    return mean + gain @ (rewards - pick @ mean), covariance - gain @ pick @ covariance


def dense_posterior(settings, histories, num_arms=3, deviations=None):
    """Cut the law of μ* and of every θ out of that vector."""
    mean, covariance = dense_joint(settings, histories, num_arms, deviations)
    blocks = [slice(num_arms * i, num_arms * (i + 1)) for i in range(1 + len(histories))]
    return [(mean[block], covariance[block, block]) for block in blocks]


def literal_paper(settings, histories, user):
    """Follow the formulas of the paper, step by step: G, B, T, Σ̄, μ̄, then the marginal of θ_s."""
    inverse = np.linalg.inv(literal_covariance(settings, 3))
    precision = np.eye(3) / settings.arm_deviation**2
    shift = precision @ np.full(3, settings.arm_mean)
    within, pulls = [], []
    for history in histories:
        data, pull = np.zeros((3, 3)), np.zeros(3)
        for arm, reward in history:
            action = np.eye(3)[arm]
            data += np.outer(action, action) / NOISE**2
            pull += action * reward / NOISE**2
        within.append(np.linalg.inv(inverse + data))
        pulls.append(pull)
        precision = precision + inverse - inverse @ within[-1] @ inverse
        shift = shift + inverse @ within[-1] @ pull
    common = np.linalg.inv(precision)
    own = within[user]
    mean = own @ (inverse @ common @ shift + pulls[user])
    return mean, own + own @ inverse @ common @ inverse @ own


def learned(policy, histories=HISTORIES):
    """Enrol everybody and learn, one reward at a time, users in turn."""
    state = policy.init(jax.random.key(0))
    for context in CONTEXTS[: len(histories)]:
        state = policy.enrol(state, jnp.asarray(context))
    for turn in range(max(map(len, histories))):
        for user, history in enumerate(histories):
            if turn < len(history):
                statistics = state.users.of(user)[1].add(*history[turn])
                state, _ = policy.update(jax.random.key(0), state, user, statistics)
    return state


def belief_of(policy, state, user):
    _, (mean, covariance) = policy.read(state, *state.users.of(user), read_gaussian)
    return mean[0], covariance[0]


def test_beliefs_match_the_dense_joint_gaussian(policy):
    state = learned(policy)
    (common, uncertainty), *users = dense_posterior(policy.settings, HISTORIES)
    for user, (mean, covariance) in enumerate(users):
        found, spread = belief_of(policy, state, user)
        np.testing.assert_allclose(found, mean, atol=1e-10)
        np.testing.assert_allclose(spread, covariance, atol=1e-10)
    np.testing.assert_allclose(jnp.linalg.solve(*state.sums), common, atol=1e-10)
    np.testing.assert_allclose(jnp.linalg.inv(state.sums.precision), uncertainty, atol=1e-10)
    newcomer = policy.prior(state, jnp.array([-0.3, 1.0]))
    np.testing.assert_allclose(newcomer.means[0], common, atol=1e-10)
    expected = uncertainty + literal_covariance(policy.settings, 3)
    np.testing.assert_allclose(newcomer.covariances[0], expected, atol=1e-10)


def test_beliefs_match_the_formulas_of_the_paper(policy):
    state = learned(policy)
    for user in range(4):
        mean, covariance = literal_paper(policy.settings, HISTORIES, user)
        found, spread = belief_of(policy, state, user)
        np.testing.assert_allclose(found, mean, atol=1e-10)
        np.testing.assert_allclose(spread, covariance, atol=1e-10)


def test_probabilities_are_those_of_the_two_draws(policy):
    """Draw μ_t, then θ given μ_t, and count who is best of all arms and of two."""
    generator, num_draws, user = np.random.default_rng(4), 100_000, 3
    (common, uncertainty), *_ = dense_posterior(policy.settings, HISTORIES)
    inverse = np.linalg.inv(literal_covariance(policy.settings, 3))
    counts, totals = np.zeros(3), np.zeros(3)
    for arm, reward in HISTORIES[user]:
        counts[arm] += 1
        totals[arm] += reward
    own = np.linalg.inv(inverse + np.diag(counts) / NOISE**2)
    first = generator.multivariate_normal(common, uncertainty, num_draws)
    second = (first @ inverse + totals / NOISE**2) @ own
    draws = second + generator.multivariate_normal(np.zeros(3), own, num_draws)
    state = learned(policy)
    for arms in (None, (0, 1), (0, 2), (1, 2)):
        columns = list(arms or range(3))
        shares = np.bincount(draws[:, columns].argmax(1), minlength=len(columns)) / num_draws
        found = np.asarray(policy.probabilities(state, user, arms))
        errors = np.sqrt(found * (1 - found) / num_draws)
        assert np.all(np.abs(found - shares) <= 4 * errors + 1e-6)


def test_contexts_do_not_matter(policy):
    """Other contexts, known or not, change nothing that is learned or chosen."""
    state, points = learned(policy), jnp.array([[0.1, 0.0], [-0.8, 1.0]])
    statistics = state.users.of(3)[1]
    moved, _ = policy.update(jax.random.key(0), state, 3, statistics, points)
    for left, right in zip(state.sums, moved.sums, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-10)
    np.testing.assert_allclose(
        policy.probabilities(state, 3), policy.probabilities(moved, 3), atol=1e-10
    )


def test_corrections_and_withdrawals_leave_no_trace(policy):
    """Correct a reward of one user, take all of another back: as if it had always been so."""
    state = learned(policy)
    corrected = state.users.of(0)[1].remove(1, -0.2).add(2, 0.8)
    state, _ = policy.update(jax.random.key(0), state, 0, corrected)
    state, _ = policy.update(jax.random.key(0), state, 1, Statistics.empty(3))
    histories = [[(0, 0.9), (2, 0.8), (2, 0.3), (0, 1.1)], [], [], HISTORIES[3]]
    expected = learned(policy, histories)
    for left, right in zip(jax.tree.leaves(state), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)
    mean, covariance = dense_posterior(policy.settings, histories)[1]
    found, spread = belief_of(policy, state, 0)
    np.testing.assert_allclose(found, mean, atol=1e-10)
    np.testing.assert_allclose(spread, covariance, atol=1e-10)


def test_a_new_arm_is_as_if_it_had_always_been_there():
    """Learn three arms, add the fourth and learn on: against the dense Gaussian of four."""
    policy = policy_of("independent")
    wider, state = policy.add_arm(jax.random.key(0), learned(policy))
    found, spread = belief_of(wider, state, 0)
    mean, covariance = dense_posterior(policy.settings, HISTORIES, 4)[1]
    np.testing.assert_allclose(found, mean, atol=1e-10)
    np.testing.assert_allclose(spread, covariance, atol=1e-10)
    state, _ = wider.update(jax.random.key(0), state, 2, Statistics.empty(4).add(3, -0.8))
    histories = [*HISTORIES[:2], [(3, -0.8)], HISTORIES[3]]
    for user, (mean, covariance) in enumerate(dense_posterior(policy.settings, histories, 4)[1:]):
        found, spread = belief_of(wider, state, user)
        np.testing.assert_allclose(found, mean, atol=1e-10)
        np.testing.assert_allclose(spread, covariance, atol=1e-10)


def test_it_is_mtts_without_a_context():
    """MTTS with one constant per arm, and the same covariance to fit."""
    constants = np.zeros((3, 3, 4))
    constants[:, :, 0] = np.eye(3)
    constant = MTTS(constants.tolist(), 0.2, 0.6, 0.4, prior_users=2.5)
    policies = HierarchyPolicy(PROBLEM, FITTED), MttsPolicy(PROBLEM, constant)
    states = [learned(Session(policy)) for policy in policies]
    for left, right in zip(*map(jax.tree.leaves, states), strict=True):
        np.testing.assert_array_equal(left, right)


def test_fit_is_a_step_of_em():
    """E[δδᵀ] of users with rewards, from the dense Gaussian of the common mean and all users."""
    known = learned(Session(HierarchyPolicy(PROBLEM, replace(FITTED, prior_users=None))))
    state, _ = Session(HierarchyPolicy(PROBLEM, FITTED)).update(
        jax.random.key(0), known, 0, known.users.of(0)[1]
    )
    mean, covariance = dense_joint(FITTED, HISTORIES)
    moments = 2.5 * literal_covariance(FITTED, 3)
    for user in (0, 1, 3):
        gap = np.zeros((3, len(mean)))
        gap[:, :3] = -np.eye(3)
        gap[:, 3 * (1 + user) : 3 * (2 + user)] = np.eye(3)
        moments += np.outer(gap @ mean, gap @ mean) + gap @ covariance @ gap.T
    np.testing.assert_allclose(state.covariance, moments / 5.5, atol=1e-10)
    # What else is believed is what that covariance implies, and arms are tied now.
    assert abs(float(state.covariance[0, 1])) > 0.01
    expected = dense_posterior(FITTED, HISTORIES, deviations=np.asarray(state.covariance))
    for user, (mean, covariance) in enumerate(expected[1:]):
        found, spread = belief_of(Session(HierarchyPolicy(PROBLEM, FITTED)), state, user)
        np.testing.assert_allclose(found, mean, atol=1e-10)
        np.testing.assert_allclose(spread, covariance, atol=1e-10)


def test_fit_settles_where_the_evidence_is_highest():
    """The slope of log p - ½ ν (log|Σ| + tr(Σ₀ Σ⁻¹)) vanishes there, and not at the start."""
    policy = Session(HierarchyPolicy(PROBLEM, FITTED))
    state = policy.init(jax.random.key(0))
    generator = np.random.default_rng(1)
    draws = generator.multivariate_normal([0.3, 0.0, -0.2], COVARIANCE, 30)
    for number, means in enumerate(draws):
        state = policy.enrol(state, jnp.asarray(CONTEXTS[0]))
        statistics = Statistics.empty(3)
        for arm in generator.choice(3, 2, replace=False):
            statistics = statistics.add(int(arm), float(means[arm]))
        state, _ = policy.update(jax.random.key(0), state, number, statistics)

    def height(covariance):
        model = replace(policy.model, user_covariance=covariance)
        start = policy.model.covariance()
        penalty = jnp.linalg.slogdet(covariance)[1] + jnp.trace(jnp.linalg.solve(covariance, start))
        return mixed_model_log_evidence(model, state.users) - 0.5 * FITTED.prior_users * penalty

    def slope(covariance):
        found = jax.grad(height)(covariance)
        return float(jnp.abs(found + found.T).max())

    heights = [float(height(state.covariance))]
    for _ in range(400):
        state, _ = policy.update(jax.random.key(0), state, 0, state.users.of(0)[1])
        heights.append(float(height(state.covariance)))
    assert slope(policy.model.covariance()) > 1
    assert slope(state.covariance) < 1e-4
    assert np.diff(heights).min() > -1e-9
    correlation = state.covariance[0, 1] / np.sqrt(state.covariance[0, 0] * state.covariance[1, 1])
    assert correlation > 0.4


def test_a_fitted_covariance_knows_nothing_of_a_new_arm():
    policy = Session(HierarchyPolicy(PROBLEM, FITTED))
    state = learned(policy)
    wider, more = policy.add_arm(jax.random.key(0), state)
    np.testing.assert_array_equal(more.covariance[:3, :3], state.covariance)
    np.testing.assert_array_equal(more.covariance[3], [0, 0, 0, 0.4**2])
    for user in range(4):
        found, spread = belief_of(wider, more, user)
        mean, covariance = belief_of(policy, state, user)
        np.testing.assert_allclose(found, [*mean, 0.2], atol=1e-10)
        np.testing.assert_allclose(spread[:3, :3], covariance, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arm_mean", float("nan")),
        ("arm_deviation", 0.0),
        ("user_deviation", -1.0),
        ("user_deviation", float("nan")),
        ("prior_users", 0.0),
        ("prior_users", float("inf")),
    ],
)
def test_settings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"got {name}={value}"):
        HierTS(**{name: value})
