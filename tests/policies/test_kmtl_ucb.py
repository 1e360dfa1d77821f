"""KMTL-UCB against dense algebra with one row per reward, weights and all."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Problem, highest_probability
from cocobandits.policies.baselines.kmtl_ucb import KmtlUCB, KmtlUcbPolicy
from cocobandits.users.statistics import Statistics
from support.sessions import Session

PROBLEM = Problem(3, (None, 2), (-2.0, 2.0), 0.2)
CONTEXTS = np.array([[0.4, 0.0], [-0.7, 1.0], [0.9, 1.0], [0.1, 0.0]])
# Unequal histories: all arms, one arm often, nothing, two arms.
HISTORIES = [
    [(0, 0.9), (1, -0.2), (2, 0.3), (0, 1.1)],
    [(2, 0.5), (2, 0.7), (2, 0.4), (2, 0.6), (2, 0.55)],
    [],
    [(1, -1.0), (0, 0.2), (1, -0.6)],
]
SETTINGS = {
    "independent": KmtlUCB("independent", 0.7, 0.05, 0.6),
    "by contexts": KmtlUCB("contexts", 1.3, 0.05, 0.6, contrast=2.5, similarity_bandwidth=0.4),
    "by rewards": KmtlUCB("rewards", 1.3, 0.05, 0.6, contrast=1.5, similarity_bandwidth=0.8),
    "own deviation": KmtlUCB("contexts", 0.7, 0.05, 0.6, contrast=2.5, user_share=0.4),
}


@pytest.fixture(params=SETTINGS)
def policy(request):
    return Session(KmtlUcbPolicy(PROBLEM, SETTINGS[request.param]))


def learned(policy, contexts=CONTEXTS, histories=HISTORIES):
    state = policy.init(jax.random.key(0))
    for user, (context, history) in enumerate(zip(contexts, histories, strict=True)):
        state = policy.enrol(state, jnp.asarray(context))
        statistics = Statistics.empty(policy.problem.num_arms)
        for arm, reward in history:
            statistics = statistics.add(arm, reward)
        state, _ = policy.update(jax.random.key(0), state, user, statistics)
    return state


def features_of(context):
    """The continuous value and two categories, averaged over points."""
    points = np.atleast_2d(context)
    return np.mean([[x, group == 0, group == 1] for x, group in points], axis=0)


def radial(bandwidth, first, second):
    return math.exp(-bandwidth * sum((first - second) ** 2))


def similarity_of(settings, rows, points, num_arms=3):
    if settings.similarity == "independent":
        return np.eye(num_arms)
    similarity, seen = np.eye(num_arms), {arm: [] for arm in range(num_arms)}
    for user, arm, _ in rows:
        # A user's average; the range of rewards is four wide.
        average = np.mean([r for who, what, r in rows if (who, what) == (user, arm)])
        own = [average / 2] if settings.similarity == "rewards" else []
        seen[arm].append(np.array([*points[user], *own]))

    def mean(first, second):
        bandwidth = settings.similarity_bandwidth
        return np.mean([radial(bandwidth, x, y) for x in seen[first] for y in seen[second]])

    for i in range(num_arms):
        for j in range(num_arms):
            if seen[i] and seen[j]:
                distance = mean(i, i) + mean(j, j) - 2 * mean(i, j)
                similarity[i, j] = math.exp(-settings.contrast * distance)
    return similarity


def dense_scores(settings, contexts, histories, user, num_arms=3):
    """Write (ηK + γI)⁻¹η down with one row per reward."""
    rows = [(u, arm, r) for u, history in enumerate(histories) for arm, r in history]
    points = [features_of(context) for context in contexts]
    similarity = similarity_of(settings, rows, points, num_arms)

    def kernel(first, second):
        (i, a), (j, b) = first, second
        near = radial(settings.bandwidth, points[i], points[j]) + settings.user_share * (i == j)
        return similarity[a, b] * near

    matrix = np.array([[kernel(one[:2], two[:2]) for two in rows] for one in rows])
    eta = np.diag([1 / sum(arm == other[1] for other in rows) for _, arm, _ in rows])
    solved = np.linalg.inv(eta @ matrix + settings.ridge * np.eye(len(rows))) @ eta
    rewards, scores = np.array([reward for *_, reward in rows]), []
    for arm in range(num_arms):
        asked = np.array([kernel((user, arm), row[:2]) for row in rows])
        variance = kernel((user, arm), (user, arm)) - asked @ solved @ asked
        scores.append(asked @ solved @ rewards + settings.alpha * math.sqrt(variance))
    return np.array(scores)


def test_scores_match_one_row_per_reward(policy):
    state = learned(policy)
    for user in range(4):
        expected = dense_scores(policy.settings, CONTEXTS, HISTORIES, user)
        np.testing.assert_allclose(policy.scores(state, user), expected, atol=1e-10)


def test_two_rewards_worked_out_by_hand():
    """Kernel (1 ½; ½ 1), η = ½, γ = ½, rewards 3 and 1: f̂ = 23/15 and s² = 7/15 for the first."""
    problem = Problem(2, (None,), (-2.0, 2.0), 0.1)
    policy = Session(KmtlUcbPolicy(problem, KmtlUCB("independent", math.log(2), 0.5, 0.3)))
    state = learned(policy, np.array([[-0.5], [0.5]]), [[(0, 3.0)], [(0, 1.0)]])
    expected = [23 / 15 + 0.3 * math.sqrt(7 / 15), 0.3]
    np.testing.assert_allclose(policy.scores(state, 0), expected, atol=1e-12)
    np.testing.assert_array_equal(policy.probabilities(state, 0), [1.0, 0.0])


def test_more_rows_than_one_block_match():
    """60 users with up to three arms each, in two blocks of rows."""
    generator = np.random.default_rng(2)
    contexts = np.stack([generator.uniform(-1, 1, 60), generator.integers(0, 2, 60)], axis=1)
    histories = [
        [(arm, generator.normal()) for arm in range(3) for _ in range(generator.integers(1, 4))]
        for _ in range(60)
    ]
    settings = SETTINGS["own deviation"]
    policy = Session(KmtlUcbPolicy(PROBLEM, settings))
    state = learned(policy, contexts, histories)
    found = policy.scores(state, 17)
    np.testing.assert_allclose(
        found, dense_scores(settings, contexts, histories, 17), rtol=1e-9, atol=1e-9
    )


def test_missing_values_are_expected_ones(policy):
    points = np.array([[0.7, 1.0], [-0.2, 0.0], [0.3, 1.0]])
    contexts = [*CONTEXTS, points]
    histories = [*HISTORIES, [(1, 0.4), (2, -0.1)]]
    state = learned(policy, contexts, histories)
    for user in (1, 4):
        expected = dense_scores(policy.settings, contexts, histories, user)
        np.testing.assert_allclose(policy.scores(state, user), expected, atol=1e-10)


def test_published_similarity_is_about_contexts_not_rewards():
    """Arms given to the same users are entirely alike, whatever their rewards are."""
    settings = KmtlUCB("contexts", 1.3, 0.05, 0.0)
    policy = Session(KmtlUcbPolicy(Problem(2, (None, 2), (-2.0, 2.0), 0.1), settings))
    state = learned(policy, CONTEXTS, [[(0, 1.5), (1, -1.5)]] * 4)
    scores = np.asarray(policy.scores(state, 0))
    np.testing.assert_allclose(scores, 0.0, atol=1e-10)
    apart = learned(policy, CONTEXTS, [[(user % 2, 1.5 - 3 * (user % 2))] for user in range(4)])
    assert policy.scores(apart, 0)[0] > policy.scores(apart, 0)[1] + 0.1


def test_withdrawn_rewards_leave_no_trace(policy):
    state = learned(policy)
    without = learned(policy, CONTEXTS, [HISTORIES[0], [], [], HISTORIES[3]])
    assert np.abs(np.asarray(policy.scores(state, 1) - policy.scores(without, 1))).max() > 0.02
    state, _ = policy.update(jax.random.key(0), state, 1, Statistics.empty(3))
    for user in range(4):
        np.testing.assert_array_equal(policy.scores(state, user), policy.scores(without, user))


def test_only_the_arms_given_are_compared():
    policy = Session(KmtlUcbPolicy(PROBLEM, SETTINGS["own deviation"]))
    state = learned(policy)
    for user in range(4):
        scores = np.asarray(policy.scores(state, user))
        for arms in ((0, 1), (0, 2), (1, 2)):
            part = scores[list(arms)]
            found = policy.probabilities(state, user, arms)
            np.testing.assert_array_equal(found, part == part.max())


def test_ties_share_equally():
    """Nothing is known at first."""
    policy = Session(KmtlUcbPolicy(PROBLEM, KmtlUCB()))
    state = policy.enrol(policy.init(jax.random.key(0)), jnp.asarray(CONTEXTS[0]))
    np.testing.assert_array_equal(policy.probabilities(state, 0), np.full(3, 1 / 3))
    scores = jnp.array([0.3, 0.7, 0.7, -1.0])
    np.testing.assert_array_equal(highest_probability(scores, None), [0.0, 0.5, 0.5, 0.0])
    np.testing.assert_array_equal(highest_probability(scores, (0, 2, 3)), [0.0, 1.0, 0.0])


def test_similarity_by_rewards_tells_arms_apart_that_were_given_alike():
    """As above, but now unequal rewards keep arms apart, and equal ones do not."""
    settings = KmtlUCB("rewards", 1.3, 0.05, 0.0)
    policy = Session(KmtlUcbPolicy(Problem(2, (None, 2), (-2.0, 2.0), 0.1), settings))
    apart = policy.scores(learned(policy, CONTEXTS, [[(0, 1.5), (1, -1.5)]] * 4), 0)
    assert apart[0] > 1.0
    assert apart[1] < -1.0
    rewards = (1.5, -1.2, 0.3, 0.8)
    alike = policy.scores(learned(policy, CONTEXTS, [[(0, r), (1, r)] for r in rewards]), 0)
    np.testing.assert_allclose(alike[0], alike[1], atol=1e-10)
    assert alike[0] > 0.5


@pytest.mark.parametrize("name", ["independent", "by contexts", "by rewards"])
def test_a_new_arm_is_like_the_others_as_far_as_they_are_alike(name):
    policy = Session(KmtlUcbPolicy(PROBLEM, SETTINGS[name]))
    wider, state = policy.add_arm(jax.random.key(0), learned(policy))
    for user in range(4):
        expected = dense_scores(policy.settings, CONTEXTS, HISTORIES, user, num_arms=4)
        np.testing.assert_allclose(wider.scores(state, user), expected, atol=1e-10)
    np.testing.assert_allclose(wider.scores(state, 0)[3], 0.6, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("similarity", value) for value in ("alike", "pooled")],
        *[("ridge", value) for value in (0.0, -1.0, float("nan"))],
        *[(name, -0.1) for name in ("bandwidth", "alpha", "contrast", "user_share")],
        *[(name, float("inf")) for name in ("bandwidth", "alpha", "contrast", "user_share")],
    ],
)
def test_settings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"got {name}={value!r}"):
        KmtlUCB(**{name: value})
